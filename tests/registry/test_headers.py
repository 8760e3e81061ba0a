"""`Header`: an argument that HTTP clients repeat. The schema, the server's check, and the refusals."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Literal, NamedTuple, TypedDict

import pytest
from msgspec import Meta, Struct
from pydantic import BaseModel, Field

from longshore import Ask, CallResult, Context, Header, RegistrationError, Server, Text, Tool, Toolset, tool
from longshore.protocol.http_headers import HeaderParam
from talk import call, listed, text

REGION = HeaderParam(("region",), b"mcp-param-region", "string")


class Zone(Enum):
    EU = "eu"
    US = "us"


class Place(Struct):
    region: Annotated[str, Header("Region")]
    city: str = ""


@dataclass
class Site:
    region: Annotated[str, Header("Region"), Meta(min_length=2)]
    note: str = ""


class Spot(TypedDict):
    region: Annotated[str, Meta(extra_json_schema={"x-mcp-header": "Region"})]


class Model(BaseModel):
    region: Annotated[str, Header("Region")]


class Wide(BaseModel):
    region: Annotated[str | None, Header("Region")] = "eu"


class Extra(BaseModel):
    region: str = Field(json_schema_extra={"x-mcp-header": "Region"})


class Pair(NamedTuple):
    region: Annotated[str, Header("Region")]
    city: str


def registered(annotation: Any, default: Any = ..., **options: Any) -> Server:
    """A server with one tool of one parameter, `region`."""
    app = Server("headers")

    def look(region: Any) -> str:
        return repr(region)

    look.__annotations__["region"] = annotation
    if default is not ...:
        look.__defaults__ = (default,)
    app.tool(**options)(look)
    return app


def headers(app: Server, name: str = "look") -> tuple[HeaderParam, ...]:
    return app.engine.tools[name].headers


def schema(app: Server, name: str = "look") -> dict[str, Any]:
    found: dict[str, Any] = listed(app, name)["inputSchema"]
    return found


@pytest.mark.parametrize(
    ("annotation", "kind", "written"),
    [
        (str, "string", {"type": "string"}),
        (int, "integer", {"type": "integer"}),
        (bool, "boolean", {"type": "boolean"}),
        (Literal["eu", "us"], "string", {"type": "string", "enum": ["eu", "us"]}),
        (Literal[1, 2], "integer", {"type": "integer", "enum": [1, 2]}),
        (Zone, "string", {"type": "string", "enum": ["eu", "us"]}),
        (Annotated[int, Meta(ge=1)], "integer", {"type": "integer", "minimum": 1}),
    ],
)
def test_a_marked_parameter_says_so_in_its_schema(annotation: Any, kind: Any, written: dict[str, Any]) -> None:
    app = registered(Annotated[annotation, Header("Region")])
    assert schema(app) == {
        "type": "object",
        "properties": {"region": {**written, "x-mcp-header": "Region"}},
        "required": ["region"],
        "additionalProperties": False,
    }
    assert headers(app) == (HeaderParam(("region",), b"mcp-param-region", kind),)


@pytest.mark.parametrize("default", [None, "eu"])
def test_an_optional_header_argument_keeps_its_plain_type_and_is_not_required(default: str | None) -> None:
    app = registered(Annotated[str | None, Header("Region"), "where it runs"], default)
    said = {} if default is None else {"default": default}
    assert schema(app)["properties"]["region"] == {
        "type": "string",
        "description": "where it runs",
        "x-mcp-header": "Region",
        **said,
    }
    assert "required" not in schema(app)
    assert headers(app) == (REGION,)
    for given, got in (({}, default), ({"region": None}, None), ({"region": "us"}, "us")):
        assert text(call(app, "look", given)) == repr(got)


def test_validation_is_as_it_was() -> None:
    marked = registered(Annotated[int, Meta(ge=1), Header("Region")], 3)
    plain = registered(Annotated[int, Meta(ge=1)], 3)
    for given in ({}, {"region": 5}, {"region": 0}, {"region": "x"}, {"region": None}, {"other": 1}):
        assert call(marked, "look", given) == call(plain, "look", given)


def test_the_other_ways_to_say_it_are_the_same() -> None:
    for annotation in (
        Annotated[str, Meta(extra_json_schema={"x-mcp-header": "Region"})],
        Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})],
        "Annotated[str, Header('Region')]",
    ):
        assert headers(registered(annotation)) == (REGION,)


@pytest.mark.parametrize("record", [Place, Site, Spot, Model, Wide, Extra])
def test_a_field_of_a_record_may_be_marked(record: Any) -> None:
    app = registered(record)
    assert headers(app) == (HeaderParam(("region", "region"), b"mcp-param-region", "string"),)
    written = schema(app)["properties"]["region"]["properties"]["region"]
    assert written["type"] == "string" and written["x-mcp-header"] == "Region"
    assert not call(app, "look", {"region": {"region": "eu"}}).get("isError")
    assert call(app, "look", {"region": {"region": 5}})["isError"]
    perhaps = registered(record | None, None)
    assert headers(perhaps) == headers(app)


def test_tools_without_marks_have_none() -> None:
    app = Server("plain")

    @app.tool
    def one(a: int, b: Annotated[str, "what"], c: list[Zone] | None = None) -> int:
        return 1

    @app.tool
    def two(a: Extra | None = None, ctx: Context | None = None) -> Annotated[str, Header("Region")]:
        return ""

    assert headers(app, "one") == ()
    assert headers(app, "two") == (HeaderParam(("a", "region"), b"mcp-param-region", "string"),)


def test_a_model_without_a_schema_is_left_to_the_list() -> None:
    class Odd:
        pass

    class Strange(BaseModel, arbitrary_types_allowed=True):
        odd: Odd

    assert headers(registered(Strange)) == ()


def test_a_marked_inline_tool_is_still_called_directly() -> None:
    app = registered(Annotated[str, Header("Region")], run="inline")
    assert app.engine.tools["look"].direct


def test_methods_of_toolsets_may_be_marked() -> None:
    class Weather(Toolset):
        @tool
        def today(self, region: Annotated[str, Header("Region")]) -> str:
            return region

    app = Server("sets")
    app.add_toolset(Weather())
    assert headers(app, "today") == (REGION,)


# The raw level


def answer(arguments: dict[str, Any], ctx: Context) -> CallResult:
    return CallResult([Text("done")])


def raw(schema: dict[str, Any]) -> Server:
    app = Server("raw")
    app.add_tool(Tool(name="look", input_schema={"type": "object", **schema}), answer)
    return app


def test_a_raw_tool_says_it_in_its_own_schema() -> None:
    given = {"properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}
    app = raw(given)
    assert headers(app) == (REGION,)
    assert schema(app) == {"type": "object", **given}
    assert headers(raw({"properties": {"region": {"type": "string"}}})) == ()


# Mistakes


def mistake(declare: Any) -> RegistrationError:
    with pytest.raises(RegistrationError) as caught:
        declare()
    where, what, fix = str(caught.value).split("\n")
    assert "test_headers.py:" in where and what.startswith("  ") and fix.startswith("  fix: ")
    return caught.value


@pytest.mark.parametrize(
    ("annotation", "what"),
    [
        (Annotated[float, Header("Region")], "'region' has an x-mcp-header, but is of type 'number'"),
        (Annotated[list[str], Header("Region")], "'region' has an x-mcp-header, but is of type 'array'"),
        (Annotated[dict[str, str], Header("Region")], "'region' has an x-mcp-header, but is of type 'object'"),
        (Annotated[Any, Header("Region")], "'region' has an x-mcp-header, but has no single type"),
        (Annotated[str | int, Header("Region")], "'region' has an x-mcp-header, but has no single type"),
        (Annotated[str | None, Header("Region")], "'region' has an x-mcp-header, but has no single type"),
        (Annotated[Literal[1, "a"], Header("Region")], "'region' has an x-mcp-header, but has no single type"),
        (Annotated[str, Header("")], "the x-mcp-header of 'region' is '', which can't be part of a header's name"),
        (Annotated[str, Header("My Region")], "is 'My Region', which can't be part of a header's name"),
        (Annotated[str, Header(5)], "is 5, which can't be part of a header's name"),  # type: ignore[arg-type]
        (list[Annotated[str, Header("Region")]], "an x-mcp-header stands at 'region.items'"),
        (list[Place], "an x-mcp-header stands at 'region.items.region'"),
        (dict[str, Place], "an x-mcp-header stands at 'region.additionalProperties.region'"),
        (Place | int, "an x-mcp-header stands at 'region.anyOf.0.region'"),
        (list[Model], "an x-mcp-header stands at 'region.items.region'"),
        (Pair, "an x-mcp-header stands at 'region.prefixItems.0'"),
    ],
)
def test_a_mark_that_clients_could_not_use_is_refused(annotation: Any, what: str) -> None:
    assert what in mistake(lambda: registered(annotation)).what


def test_two_parameters_need_two_names() -> None:
    app = Server("twice")

    def look(a: Annotated[str, Header("Region")], b: Annotated[str, Header("region")]) -> str:
        return a + b

    assert mistake(lambda: app.tool(look)).what == "'a' and 'b' have the same x-mcp-header, 'region'"


def test_a_parameter_that_is_asked_of_the_client_can_not_be_a_header() -> None:
    app = Server("asked")

    def look(ok: Annotated[bool, Ask("Really?"), Header("Ok")]) -> str:
        return str(ok)

    assert mistake(lambda: app.tool(look)).what == "'ok' is asked of the client, so no request has it"


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"region": {"enum": ["eu"], "x-mcp-header": "Region"}}},
        {"properties": {"region": {"type": "array", "items": {"type": "string", "x-mcp-header": "Region"}}}},
        {"$defs": {"region": {"type": "string", "x-mcp-header": "Region"}}},
        {"anyOf": [{"properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}]},
    ],
)
def test_a_raw_schema_with_a_mark_that_clients_could_not_use_is_refused(schema: dict[str, Any]) -> None:
    assert "x-mcp-header" in mistake(lambda: raw(schema)).what
