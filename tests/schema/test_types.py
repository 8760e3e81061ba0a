# ruff: noqa: UP007, UP045  (both spellings of unions are tested)
"""The JSON that each supported parameter type accepts and refuses, and its schema."""

import datetime
import decimal
import pathlib
import re
import sys
import uuid
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NewType, Optional, TypeVar, Union

import annotated_types
import jsonschema_rs
import msgspec
import pydantic
import pytest
from msgspec import Meta

from longshore.schema.infer import input_schema, type_schema
from longshore.schema.output import read_output
from longshore.schema.signature import SignatureProblem

from .conftest import taking
from .models import (
    Account,
    Cat,
    Checked,
    Circle,
    Color,
    Counted,
    Dog,
    Drawing,
    Left,
    Level,
    Mixed,
    Node,
    Options,
    Point,
    Right,
    Row,
    Team,
    Tree,
    User,
)

UserId = NewType("UserId", int)
T = TypeVar("T")
Bounded = TypeVar("Bounded", bound=int)

# annotation, JSON, the decoded value
TAKEN: list[tuple[Any, str, Any]] = [
    (str, '"a"', "a"),
    (int, "12345678901234567890123", 12345678901234567890123),
    (float, "1", 1.0),
    (bool, "true", True),
    (None, "null", None),
    (Any, '{"a":[null]}', {"a": [None]}),
    (object, "1", 1),
    (Optional[int], "null", None),
    (int | str | None, '"a"', "a"),
    (Color, '"red"', Color.RED),
    (Level, "2", Level.HIGH),
    (Mixed, "0.5", Mixed.HALF),
    (Mixed, '"name"', Mixed.NAME),
    (Literal["a", "b"], '"b"', "b"),
    (Literal["a", 1, None], "null", None),
    (list[int], "[1]", [1]),
    (list, "[1]", [1]),
    (Sequence[int], "[1]", [1]),
    (set[int], "[1,1]", {1}),
    (set, '[1,"a"]', {1, "a"}),
    (frozenset[Any], "[1]", frozenset((1,))),
    (set[tuple[int, int]], "[[1,2]]", {(1, 2)}),
    (frozenset[str], '["a"]', frozenset("a")),
    (tuple[int, str], '[1,"a"]', (1, "a")),
    (tuple[int, ...], "[1,2,3]", (1, 2, 3)),
    (dict[str, int], '{"a":1}', {"a": 1}),
    (dict[int, int], '{"1":1}', {1: 1}),
    (Mapping[str, Point], '{"a":{"x":1}}', {"a": Point(1)}),
    (Point, '{"x":1,"y":2}', Point(1, 2)),
    (Tree, '{"value":1,"children":[{"value":2}]}', Tree(1, [Tree(2)])),
    (Row, '["k",2]', Row("k", 2)),
    (Options, '{"depth":1}', {"depth": 1}),
    (Cat | Dog, '{"type":"Dog","tricks":["sit"]}', Dog(["sit"])),
    (datetime.datetime, '"2026-01-31T12:00:00Z"', datetime.datetime(2026, 1, 31, 12, tzinfo=datetime.UTC)),
    (datetime.date, '"2026-01-31"', datetime.date(2026, 1, 31)),
    (datetime.time, '"12:00:00"', datetime.time(12)),
    (datetime.timedelta, '"PT1H"', datetime.timedelta(hours=1)),
    (uuid.UUID, '"12345678-1234-5678-1234-567812345678"', uuid.UUID("12345678-1234-5678-1234-567812345678")),
    (decimal.Decimal, '"1.50"', decimal.Decimal("1.50")),
    (bytes, '"aGk="', b"hi"),
    (pathlib.Path, '"/a/b"', pathlib.Path("/a/b")),
    (pathlib.PurePosixPath | None, '"/a"', pathlib.PurePosixPath("/a")),
    (UserId, "7", 7),
    (T, "7", 7),
    (Bounded, "7", 7),
    # Unions that msgspec refuses
    (Point | Circle, '{"x":1,"radius":2.5}', Circle(1, 2.5)),
    (Point | Circle, '{"x":1,"y":2}', Point(1, 2)),
    (Point | dict[str, str], '{"a":"b"}', {"a": "b"}),
    (list[int] | tuple[str, str], '["a","b"]', ("a", "b")),
    (list[int] | list[str], '["a"]', ["a"]),
    (datetime.date | str, '"2026-01-31"', datetime.date(2026, 1, 31)),
    (datetime.date | str, '"tomorrow"', "tomorrow"),
    (Color | str, '"green"', "green"),
    (pathlib.Path | int, "3", 3),
    (Point | Circle | None, "null", None),
    (list[Point | Circle], '[{"x":1},{"x":1,"radius":2}]', [Point(1), Circle(1, 2.0)]),
    (Union[User, Point, str], '{"x":1}', Point(1)),
    # The same inside records
    (Drawing, '{"shape":{"x":1,"radius":2},"inner":{"shape":{"x":3}}}', Drawing(Circle(1, 2.0), Drawing(Point(3)))),
    (Account, '{"accountId":1,"shape":{"x":1,"radius":3}}', Account(1, Circle(1, 3.0))),
    (
        Left,
        '{"shape":{"x":1},"other":{"shape":{"x":2},"back":{"shape":{"x":3,"radius":4}}}}',
        Left(Point(1), Right(Circle(2), Left(Circle(3, 4.0)))),
    ),
    (Right, '{"shape":{"x":1,"y":2},"back":{"x":3}}', Right(Point(1, 2), Point(3))),
    (list[Drawing] | None, '[{"shape":{"x":1}}]', [Drawing(Point(1))]),
    # pydantic
    (User, '{"name":"a"}', User(name="a")),
    (list[User], '[{"name":"a","age":null}]', [User(name="a")]),
    (Team, '{"lead":{"name":"a"},"members":[{"name":"b"}]}', Team(User(name="a"), [User(name="b")])),
    (User | str, '"a"', "a"),
    (Node, '{"value":1,"next":{"value":2}}', Node(value=1, next=Node(value=2))),
    (pydantic.HttpUrl, '"http://a.example/"', pydantic.HttpUrl("http://a.example/")),
    (Annotated[str, pydantic.AfterValidator(str.upper)], '"a"', "A"),
    (Annotated[str, pydantic.StringConstraints(strip_whitespace=True)], '" a "', "a"),
    (pydantic.PositiveInt, "1", 1),
    (pydantic.conlist(int, min_length=1), "[1]", [1]),
    # Constraints
    (Annotated[int, Meta(ge=1, le=3)], "3", 3),
    (Annotated[int, annotated_types.Interval(gt=0, le=3)], "3", 3),
    (Annotated[int | None, Meta(ge=1)], "null", None),
    (Annotated[int | str, pydantic.Field(ge=1)], '"a"', "a"),
    (Annotated[str, pydantic.Field(pattern="^a+$")], '"aa"', "aa"),
    (Annotated[decimal.Decimal, pydantic.Field(gt=0)], '"1.5"', decimal.Decimal("1.5")),
    (Counted, '{"count":1}', Counted(1)),
]


@pytest.mark.parametrize(("annotation", "text", "value"), TAKEN)
def test_a_supported_type_takes_its_json(annotation: Any, text: str, value: Any) -> None:
    decoded = taking(annotation).decode(b'{"x":%s}' % text.encode()).x
    assert decoded == value
    assert type(decoded) is type(value)


@pytest.mark.parametrize(("annotation", "text", "value"), TAKEN)
def test_the_schema_admits_what_the_decoder_takes(annotation: Any, text: str, value: Any) -> None:
    signature = taking(annotation)
    # Sets take repeats, which their schema forbids: sending them is the client's mistake, refusing them nobody's gain.
    if annotation != set[int]:
        schema = type_schema(annotation)
        assert jsonschema_rs.Draft202012Validator(schema).is_valid(msgspec.json.decode(text))
    assert_client_safe(input_schema(signature, {}))


@pytest.mark.parametrize(
    ("annotation", "text"),
    [
        (str, "1"),
        (str, "null"),
        (int, '"1"'),
        (int, "true"),
        (float, '"1"'),
        (bool, "1"),
        (None, "0"),
        (Color, '"green"'),
        (Level, "3"),
        (Mixed, "true"),
        (Mixed, '"x"'),
        (Literal["a"], '"b"'),
        (list[int], '["a"]'),
        (set, "[[1]]"),
        (tuple[int, int], "[1]"),
        (dict[str, int], '{"a":"b"}'),
        (Point, '{"y":1}'),
        (Row, "[]"),
        (Options, '{"label":"a"}'),
        (Account, '{"accountId":1,"other":2}'),
        (Account, '{"account_id":1}'),
        (Drawing, '{"shape":{"radius":1}}'),
        (Point | Circle, '{"x":"a"}'),
        (Point | dict[str, str], "1"),
        (User, '{"name":""}'),
        (list[User], '[{"name":"a"},{}]'),
        (Team, '{"lead":{}}'),
        (Checked, '{"x":0}'),
        (pydantic.HttpUrl, '"nothing"'),
        (pathlib.Path, "1"),
        (Annotated[int, Meta(ge=1)], "0"),
        (Annotated[int, annotated_types.Ge(1)], "0"),
        (Annotated[int | None, pydantic.Field(ge=1)], "0"),
        (Annotated[str, pydantic.Field(min_length=2)], '"a"'),
        (Annotated[str, Meta(pattern="^a$")], '"b"'),
        (Annotated[list[Annotated[int, annotated_types.Ge(1)]], annotated_types.Len(1)], "[0]"),
        (Annotated[decimal.Decimal, pydantic.Field(gt=0)], '"-1"'),
        (Counted, '{"count":0}'),
        (list[Counted], '[{"count":1},{"count":0}]'),
        (datetime.date, '"tomorrow"'),
        (uuid.UUID, '"x"'),
        (bytes, '"%"'),
    ],
)
def test_a_wrong_value_is_refused(annotation: Any, text: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        taking(annotation).decode(b'{"x":%s}' % text.encode())


def test_a_pydantic_field_as_the_default_gives_constraint_default_and_description() -> None:
    signature = taking(int, pydantic.Field(3, ge=1, description="how many"))
    assert signature.decode(b"{}").x == 3
    assert input_schema(signature, {})["properties"]["x"] == {
        "type": "integer",
        "minimum": 1,
        "default": 3,
        "description": "how many",
    }
    assert taking(int, pydantic.Field(ge=1)).parameters[0].required
    fresh = taking(list[int], pydantic.Field(default_factory=list))
    assert fresh.decode(b"{}").x == []


def test_a_pydantic_dataclass_is_validated_by_pydantic() -> None:
    decoded = taking(Checked).decode(b'{"x":{"x":2}}').x
    assert isinstance(decoded, Checked) and decoded.x == 2


@pytest.mark.skipif(sys.version_info < (3, 12), reason="type statements are new in 3.12")
def test_type_statements_are_followed() -> None:
    names: dict[str, Any] = {}
    exec("type Names = list[str]\ntype Box[T] = dict[str, T]", names)
    assert taking(names["Names"]).decode(b'{"x":["a"]}').x == ["a"]
    assert taking(names["Box"][int]).decode(b'{"x":{"a":1}}').x == {"a": 1}


@pytest.mark.skipif(sys.version_info < (3, 12), reason="type statements are new in 3.12")
@pytest.mark.parametrize(
    ("statement", "alias", "value"),
    [
        ("type Swapped[A, B] = dict[B, A]", "Swapped[int, str]", {"a": 1}),
        ("type Same[T] = T", "Same[int]", 1),
        ("type Fixed[T] = int", "Fixed[str]", 1),
        ("type Maybe[T] = list[T] | None", "Maybe[Maybe[int]]", [[1]]),
        ("type Row[*T] = tuple[*T]", "Row[int, str]", (1, "a")),
    ],
)
def test_arguments_of_an_alias_go_where_it_uses_them(statement: str, alias: str, value: Any) -> None:
    names: dict[str, Any] = {}
    exec(statement, names)
    signature = taking(eval(alias, names))
    assert signature.decode(msgspec.json.encode({"x": value})).x == value
    with pytest.raises(msgspec.ValidationError):
        signature.decode(b'{"x":{"a":"b"}}')


@pytest.mark.skipif(sys.version_info < (3, 12), reason="type statements are new in 3.12")
@pytest.mark.parametrize(
    ("statement", "alias", "said"),
    [
        ("type Tree = dict[str, Tree] | int", "Tree", "holds itself"),
        ("type Tree = dict[str, Tree] | int", "list[Tree] | None", "holds itself"),
        ("type Nest[T] = T | list[Nest[list[T]]]", "Nest[int]", "holds itself"),
        ("type Loop = Loop", "Loop", "has no end"),
        ("type Gone = list[Missing]", "Gone", "'Missing'"),
    ],
)
def test_aliases_that_lead_nowhere_are_refused(statement: str, alias: str, said: str) -> None:
    names: dict[str, Any] = {}
    exec(statement, names)
    with pytest.raises(SignatureProblem, match=f"^parameter 'x': .*{said}"):
        taking(eval(alias, names))
    with pytest.raises(SignatureProblem, match=f"^its return type: .*{said}"):
        read_output(eval(alias, names), passthrough=())


@pytest.mark.skipif(sys.version_info < (3, 13), reason="ReadOnly is new in 3.13")
def test_a_key_that_is_read_only_is_a_key() -> None:
    names: dict[str, Any] = {}
    head = "from typing import NotRequired, ReadOnly, TypedDict\nclass Held(TypedDict):\n"
    exec(f"{head}    a: ReadOnly[int]\n    b: ReadOnly[NotRequired[str]]\n    c: NotRequired[ReadOnly[str]]", names)
    signature = taking(names["Held"])
    assert signature.decode(b'{"x":{"a":1,"c":"z"}}').x == {"a": 1, "c": "z"}
    for wrong in (b'{"x":{}}', b'{"x":{"a":"1"}}', b'{"x":{"a":1,"b":2}}', b'{"x":{"a":1,"c":2}}'):
        with pytest.raises(msgspec.ValidationError):
            signature.decode(wrong)


def assert_client_safe(schema: Any, *, root: bool = True) -> None:
    """The rules that real clients enforce: no boolean sub-schemas, no titles, `items` on arrays, references resolve."""
    assert isinstance(schema, dict)
    if root:
        assert schema["type"] == "object" and not {"anyOf", "oneOf", "allOf", "not"} & schema.keys()
        for target in re.findall(r'"#/\$defs/([^"]+)"', msgspec.json.encode(schema).decode()):
            assert target in schema["$defs"]
    assert not isinstance(schema.get("title"), str)
    if schema.get("type") == "array":
        assert isinstance(schema["items"], dict)
    for keyword in ("properties", "$defs"):
        for sub in schema.get(keyword, {}).values():
            assert_client_safe(sub, root=False)
    for sub in [*schema.get("anyOf", []), *schema.get("prefixItems", [])]:
        assert_client_safe(sub, root=False)
    if "items" in schema:
        assert_client_safe(schema["items"], root=False)
