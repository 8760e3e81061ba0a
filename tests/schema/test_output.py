# ruff: noqa: UP045  (both spellings of unions are tested)
import datetime
import pathlib
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, NoReturn, Optional

import jsonschema_rs
import msgspec
import pydantic
import pytest
from msgspec import UNSET

from longshore.schema.output import Output, OutputMismatch, encode, read_output
from longshore.schema.signature import SignatureProblem

from .models import Account, Checked, Color, Node, Options, Point, Row, Team, Tree, User


class Image:
    """Stands for a content class."""


class Photo(Image): ...


def output(returns: Any) -> Output:
    return read_output(returns, passthrough=(Image,))


@pytest.mark.parametrize(
    "returns",
    [
        str,
        None,
        type(None),
        UNSET,
        Any,
        Image,
        Photo,
        NoReturn,
        Optional[str],
        Optional[Image],
        str | Image,
        list[Image],
        list[str | Image],
        list[Image] | str | None,
        tuple[Image, dict[str, Any]],
        Annotated[str, "text"],
    ],
)
def test_text_and_content_are_not_structured(returns: Any) -> None:
    found = output(returns)
    assert not found.structured and not found.wrap
    assert found.schema() is None


@pytest.mark.parametrize(
    ("returns", "wrap"),
    [
        (int, True),
        (float, True),
        (bool, True),
        (list, True),
        (list[str], True),
        (set[int], True),
        (tuple[int, str], True),
        (Row, True),
        (Color, True),
        (datetime.datetime, True),
        (bytes, True),
        (pathlib.Path, True),
        (Point | None, True),
        (Point | Tree, True),
        (int | str, True),
        (pydantic.RootModel[list[int]], True),
        (dict, False),
        (dict[str, int], False),
        (Point, False),
        (Tree, False),
        (Options, False),
        (Account, False),
        (User, False),
        (Node, False),
        (Checked, False),
        (Annotated[Point, "where"], False),
    ],
)
def test_structure_is_wrapped_unless_its_root_is_an_object(returns: Any, wrap: bool) -> None:
    found = output(returns)
    assert found.structured
    assert found.wrap is wrap
    schema = found.schema()
    assert schema is not None
    assert schema["type"] == "object"
    assert not wrap or list(schema["properties"]) == ["result"]


def test_the_wrapped_schema_is_closed() -> None:
    assert output(int).schema() == {
        "type": "object",
        "properties": {"result": {"type": "integer"}},
        "required": ["result"],
        "additionalProperties": False,
    }


def test_exact_classes_need_no_check_but_floats_may_be_nan() -> None:
    assert [output(t).exact for t in (int, bool, str, float, Point)] == [int, bool, str, None, None]


def test_a_class_without_a_json_form_is_refused_at_once() -> None:
    class Opaque: ...

    with pytest.raises(SignatureProblem) as caught:
        output(list[Opaque])
    assert "return type" in caught.value.what and "Opaque" in caught.value.what


@dataclass
class Loose:
    x: Any


KEPT: list[tuple[Any, Any, bytes]] = [
    (int, 3, b"3"),
    (int, 2**80, b"1208925819614629174706176"),
    (float, 1.5, b"1.5"),
    (float, 2, b"2"),
    (bool, True, b"true"),
    (Point, Point(1), b'{"x":1,"y":0}'),
    (Point, {"x": 1}, b'{"x":1}'),
    (list[Point], [Point(1), {"x": 2}], b'[{"x":1,"y":0},{"x":2}]'),
    (dict[str, Any], {"a": None, "b": (1,)}, b'{"a":null,"b":[1]}'),
    (Point | None, None, b"null"),
    (set[int], {1}, b"[1]"),
    (Color, Color.RED, b'"red"'),
    (bytes, b"hi", b'"aGk="'),
    (pathlib.Path, pathlib.Path("/a"), b'"/a"'),
    (User, User(name="a"), b'{"name":"a","age":null,"tags":[]}'),
    (Team, Team(User(name="a")), b'{"lead":{"name":"a","age":null,"tags":[]},"members":[]}'),
    (Tree, Tree(1, [Tree(2)]), b'{"value":1,"children":[{"value":2,"children":[]}]}'),
    (Account, Account(1), b'{"accountId":1,"shape":null}'),
    (Any, MappingProxyType({"a": 1}), b'{"a":1}'),
    (Any, {"a": 1}.keys(), b'["a"]'),
    (UNSET, datetime.date(2026, 1, 31), b'"2026-01-31"'),
    (Any, "null", b'"null"'),
]


@pytest.mark.parametrize(("returns", "value", "text"), KEPT)
def test_a_value_that_keeps_the_declaration_is_written_compactly(returns: Any, value: Any, text: bytes) -> None:
    found = output(returns)
    assert found.enforce(value) == text
    if (schema := found.schema()) is not None:
        plain = msgspec.json.decode(text)
        sent = {"result": plain} if found.wrap else plain
        assert jsonschema_rs.Draft202012Validator(schema).is_valid(sent)


class Nasty:
    def __str__(self) -> str:
        raise RuntimeError("no words")

    __repr__ = __str__


def cyclic() -> Any:
    loop: list[Any] = []
    loop.append(loop)
    return loop


@pytest.mark.parametrize(
    ("returns", "value", "said"),
    [
        (int, "abc", "not the declared int: expected an integer, got a string"),
        (int, True, "expected an integer, got a boolean"),
        (bool, 1, "expected a boolean"),
        (str, 3, "expected a string, got an integer"),
        (Point, Point("a"), "x: expected an integer, got a string"),  # type: ignore[arg-type]
        (Account, Account("a"), "accountId: expected an integer"),  # type: ignore[arg-type]
        (list[Point], [Point(1), {"y": 1}], "[1]: x is missing"),
        (User, {"name": ""}, "name: string should have at least 1 character"),
        (list[User], [User(name="a"), Point(1)], "name: field required"),
        (float, float("nan"), "holds nan"),
        (dict[str, Any], {"a": [1, None, float("inf")]}, "holds inf at a[2]"),
        (Loose, Loose(float("-inf")), "holds -inf at x"),
        (Any, cyclic(), "contains itself"),
        (Any, {"a": Nasty()}, "holds a Nasty"),
        (Any, Image(), "holds a Image"),
        (Any, (i for i in "ab"), "holds a generator"),
        (Any, 1 + 2j, "holds a complex"),
        (Any, {Point: 1}, "has no JSON form"),
    ],
)
def test_a_value_that_breaks_the_declaration_is_a_mismatch(returns: Any, value: Any, said: str) -> None:
    with pytest.raises(OutputMismatch) as caught:
        output(returns).enforce(value)
    assert said in str(caught.value)
    assert "`" not in str(caught.value) and "http" not in str(caught.value)


def test_an_exception_inside_an_authors_serializer_is_a_mismatch() -> None:
    class Broken(pydantic.BaseModel):
        x: int

        @pydantic.field_serializer("x")
        def fail(self, _: int) -> int:
            raise KeyError("inside")

    with pytest.raises(OutputMismatch, match="can't be written as JSON"):
        encode(Broken(x=1))


class Stamp(pydantic.BaseModel, extra="forbid"):
    """Writes itself in a form that it would not read."""

    at: datetime.datetime

    @pydantic.computed_field
    def year(self) -> int:
        return self.at.year

    @pydantic.field_serializer("at")
    def short(self, value: datetime.datetime) -> str:
        return value.strftime("%d %b")


def test_pydantic_vouches_for_its_own_instances() -> None:
    stamp = Stamp(at=datetime.datetime(2026, 1, 31))
    text = b'{"at":"31 Jan","year":2026}'
    assert output(Stamp).enforce(stamp) == text
    assert output(list[Stamp | Point]).enforce([stamp, Point(1)]) == b'[%s,{"x":1,"y":0}]' % text
    with pytest.raises(OutputMismatch, match=r"year: extra inputs"):
        output(Stamp).enforce({"at": datetime.datetime(2026, 1, 31), "year": 2026})
    with pytest.raises(OutputMismatch, match="expected User, got Stamp"):
        output(list[User]).enforce([stamp])
