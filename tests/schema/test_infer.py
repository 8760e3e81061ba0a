# ruff: noqa: UP045  (both spellings of unions are tested)
import datetime
import pathlib
from dataclasses import dataclass, make_dataclass
from typing import Annotated, Any, Literal, Optional

import pydantic
import pytest
from msgspec import Meta

from longshore.schema.infer import input_schema, type_schema

from .conftest import Ask, Context, read_fn, taking
from .models import Account, Cat, Color, Dog, Drawing, Level, Node, Options, Point, Row, Tree, User


def test_a_tool_without_parameters_takes_an_empty_object() -> None:
    assert input_schema(read_fn(lambda: None), {}) == {
        "type": "object",
        "properties": {},
        "additionalProperties": False,
    }


def test_the_whole_schema_of_an_ordinary_tool() -> None:
    def search(
        query: Annotated[str, "what to look for"],
        ctx: Context,
        ok: Annotated[bool, Ask("Sure?")],
        limit: Annotated[int, Meta(ge=1, le=50)] = 10,
        kind: Literal["web", "news"] = "web",
        since: datetime.date | None = None,
    ) -> None: ...

    assert input_schema(read_fn(search), {"query": "from the docstring", "limit": "at most"}) == {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "what to look for"},
            "limit": {"type": "integer", "minimum": 1, "maximum": 50, "default": 10, "description": "at most"},
            "kind": {"type": "string", "enum": ["web", "news"], "default": "web"},
            "since": {"type": "string", "format": "date"},
        },
        "required": ["query"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (Any, {}),
        (list, {"type": "array", "items": {}}),
        (dict, {"type": "object", "properties": {}}),
        (dict[str, Any], {"type": "object", "properties": {}}),
        (dict[str, int], {"type": "object", "properties": {}, "additionalProperties": {"type": "integer"}}),
        (set[str], {"type": "array", "items": {"type": "string"}, "uniqueItems": True}),
        (tuple[int, int], {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2}),
        (tuple[()], {"type": "array", "items": {}, "minItems": 0, "maxItems": 0}),
        (
            Row,
            {
                "type": "array",
                "prefixItems": [{"type": "string"}, {"type": "integer"}],
                "items": {},
                "minItems": 1,
                "maxItems": 2,
            },
        ),
        (Color, {"type": "string", "enum": ["red", "blue"]}),
        (Level, {"type": "integer", "enum": [1, 2]}),
        (Optional[int], {"type": ["integer", "null"]}),
        (Optional[Color], {"type": ["string", "null"], "enum": ["red", "blue", None]}),
        (Literal["a", None], {"type": ["string", "null"], "enum": ["a", None]}),
        (Literal[3, 1, 2], {"type": "integer", "enum": [3, 1, 2]}),
        (list[Literal["low", "high"]], {"type": "array", "items": {"type": "string", "enum": ["low", "high"]}}),
        (Optional[Literal["low", "high"]], {"type": ["string", "null"], "enum": ["low", "high", None]}),
        (Literal["z", "y", "x"], {"type": "string", "enum": ["z", "y", "x"]}),
        (
            Literal["z", "y"] | int,
            {"anyOf": [{"type": "string", "enum": ["z", "y"]}, {"type": "integer"}]},
        ),
        (int | str | None, {"anyOf": [{"type": "integer"}, {"type": "string"}, {"type": "null"}]}),
        (Optional[list[int]], {"type": ["array", "null"], "items": {"type": "integer"}}),
        (pathlib.Path, {"type": "string"}),
        (bytes, {"type": "string", "contentEncoding": "base64"}),
        (Annotated[bytes, Meta(max_length=4)], {"type": "string", "contentEncoding": "base64", "maxLength": 8}),
        (
            Options,
            {
                "type": "object",
                "properties": {"depth": {"type": "integer"}, "label": {"type": "string"}},
                "required": ["depth"],
            },
        ),
        (
            Annotated[dict[Annotated[str, Meta(pattern="^a")], int], Meta(min_length=1)],
            {
                "type": "object",
                "properties": {},
                "propertyNames": {"pattern": "^a"},
                "additionalProperties": {"type": "integer"},
                "minProperties": 1,
            },
        ),
    ],
)
def test_the_schema_of_a_type(annotation: Any, schema: dict[str, Any]) -> None:
    assert type_schema(annotation) == schema


def test_optional_with_default_none_is_a_plain_type_that_may_be_left_out() -> None:
    signature = taking(Optional[Point], None)
    schema = input_schema(signature, {})
    assert "required" not in schema
    assert schema["properties"]["x"]["type"] == "object"
    assert signature.decode(b'{"x":null}').x is None


def test_optional_without_a_default_keeps_its_null() -> None:
    schema = input_schema(taking(Optional[int]), {})
    assert schema["required"] == ["x"]
    assert schema["properties"]["x"] == {"type": ["integer", "null"]}


def test_optional_fields_of_models_are_lowered_for_input_and_kept_for_output() -> None:
    lowered = input_schema(taking(User), {})["properties"]["x"]
    assert lowered["properties"]["age"] == {"type": "integer"}
    assert lowered["description"] == "A user."
    kept = type_schema(User, mode="serialization")
    assert kept["properties"]["age"] == {"type": ["integer", "null"], "default": None}


def test_a_header_keyword_passes_through_onto_a_plain_type() -> None:
    region = Annotated[str | None, Meta(extra_json_schema={"x-mcp-header": "Region"})]
    assert input_schema(taking(region, None), {})["properties"]["x"] == {"type": "string", "x-mcp-header": "Region"}


@pytest.mark.parametrize("annotation", [Tree, Node, Drawing], ids=lambda a: a.__name__)
def test_only_recursive_models_are_referenced(annotation: Any) -> None:
    schema = input_schema(taking(annotation), {})
    assert schema["properties"]["x"] == {"$ref": f"#/$defs/{annotation.__name__}"}
    assert list(schema["$defs"]) == [annotation.__name__]


def test_a_described_reference_keeps_its_description() -> None:
    schema = input_schema(taking(Annotated[Tree, "the root"]), {})
    assert schema["properties"]["x"] == {"$ref": "#/$defs/Tree", "description": "the root"}


def test_tagged_structs_show_their_tags() -> None:
    schema = type_schema(Cat | Dog)
    assert [option["properties"]["type"]["const"] for option in schema["anyOf"]] == ["Cat", "Dog"]
    assert "discriminator" not in schema


def test_renamed_fields_and_closed_structs_are_shown_as_they_are_sent() -> None:
    schema = type_schema(Account)
    assert list(schema["properties"]) == ["accountId", "shape"]
    assert schema["additionalProperties"] is False


def test_two_recursive_classes_of_one_name_get_two_definitions() -> None:
    def tree(extra: str) -> Any:
        cls = make_dataclass("Twin", [("value", int), ("next", Any, None), (extra, str, "")])
        cls.__annotations__["next"] = cls | None
        return cls

    schema = type_schema(tuple[tree("a"), tree("b")])
    assert set(schema["$defs"]) == {"Twin", "Twin_2"}


def test_shared_models_do_not_double_at_each_level() -> None:
    level: Any = Point
    for depth in range(24):
        level = make_dataclass(f"Level{depth}", [("left", level), ("right", level)])
    schema = type_schema(level)
    assert len(str(schema)) < 50_000


def test_a_default_without_a_json_form_is_left_out() -> None:
    sentinel = object()

    def fn(a: Any = sentinel, b: pathlib.Path = pathlib.Path("."), c: Color = Color.RED) -> None: ...

    properties = input_schema(read_fn(fn), {})["properties"]
    assert properties == {
        "a": {},
        "b": {"type": "string", "default": "."},
        "c": {"type": "string", "enum": ["red", "blue"], "default": "red"},
    }


def test_made_up_docstrings_of_dataclasses_are_no_descriptions() -> None:
    @dataclass
    class Documented:
        """Where
        it is."""

        x: int

    assert type_schema(Documented)["description"] == "Where it is."
    assert "description" not in type_schema(Point)


class Paid(pydantic.BaseModel):
    """A model whose author adds to its schema, in the words of an older dialect."""

    model_config = {
        "json_schema_extra": {
            "dependencies": {"card": ["name"], "note": {"title": "noise", "required": ["name"]}},
            "contentSchema": {"title": "noise", "type": "string"},
        }
    }
    name: str = ""


def test_keywords_of_an_older_dialect_in_a_model_are_rewritten_where_they_are_schemas() -> None:
    schema = type_schema(Paid)
    assert schema["dependencies"] == {"card": ["name"], "note": {"required": ["name"]}}
    assert schema["contentSchema"] == {"type": "string"}
