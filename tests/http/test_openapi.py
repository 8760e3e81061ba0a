"""GET /openapi.json: the REST routes, in a form that tools of other people's read."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, TypedDict

import jsonschema_rs
import pytest
from asgi import Answer, configured, opened, request
from pydantic import BaseModel

from longshore import Ask, CallResult, Server, Text, Tool

Json = dict[str, Any]


class Point(TypedDict):
    x: int
    y: int


class Shape(TypedDict):
    name: str
    corners: list[Point]
    parts: "list[Shape]"  # noqa: UP037  (it names itself)


NODE: Json = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {
        "left": {"$ref": "#"},
        "right": {"$ref": "#"},
        "value": {"$ref": "#/$defs/deep/anyOf/1"},
        "size": {"$ref": "#/$defs/a~1b%20c"},
        "color": {"$ref": "#/$defs/color"},
        "next": {"$ref": "#"},
        "$ref": {"type": "string"},
        "label": {"const": {"$ref": "#/$defs/color"}},
    },
    "additionalProperties": False,
    "$defs": {
        "a/b c": {"type": "integer", "minimum": 1},
        "color": {"enum": ["red", {"$ref": "#"}]},
        "deep": {"anyOf": [{"type": "null"}, {"type": "number"}]},
    },
}
NAMED: Json = {
    "$id": "https://example.com/named",
    "type": "object",
    "properties": {"a": {"$ref": "#/$defs/a"}},
    "$defs": {"a": {"type": "null"}},
}
GOOD_NODES = [
    {},
    {"left": {"right": {"left": {}}}},
    {"value": 1.5, "size": 2, "color": "red", "$ref": "x"},
    {"color": {"$ref": "#"}, "label": {"$ref": "#/$defs/color"}},
    {"next": {"next": {"size": 1}}},
]
BAD_NODES = [
    {"left": {"odd": 1}},
    {"right": {"left": {"value": "1"}}},
    {"value": None},
    {"size": 0},
    {"color": "blue"},
    {"next": {"next": {"size": 0}}},
    {"$ref": 1},
    {"label": {"$ref": "#/components/schemas/node.input/$defs/color"}},
]


def shop() -> Server:
    server = Server("shop", version="1.2.3", title="The shop", description="Sells things.")

    @server.tool(title="Move a shape", category="shapes")
    def move(shape: Shape, by: Point) -> Shape:
        """Move a shape, and all of its parts."""
        return shape

    @server.tool
    def area(shape: Shape) -> float:
        return 1.0

    @server.tool(scopes=["pay", "admin"])
    def pay(amount: int = 1) -> str:
        """Pay."""
        return ""

    @server.tool
    async def refund(ok: Annotated[bool, Ask("Really?")]) -> str:
        return ""

    server.add_tool(Tool(name="node", input_schema=NODE, output_schema=NODE), lambda *_: CallResult([Text("")]))
    old = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "definitions": {"n": {"type": "null"}},
    }
    server.add_tool(
        Tool(name="v1.old-tool", input_schema=old | {"properties": {"n": {"$ref": "#/definitions/n"}}}),
        lambda *_: CallResult([Text("")]),
    )
    return server


def fetch(app: Any, root: str = "") -> Answer:
    async def main() -> Answer:
        async with opened(app):
            return await request(app, "GET", "/openapi.json", root=root)

    return asyncio.run(main())


@pytest.fixture
def document(tmp_path: Path) -> Json:
    answer = fetch(configured(shop(), tmp_path))
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json"
    found: Json = answer.json()
    return found


# -- the rules of OpenAPI 3.1

# Each kind of object: the members that it must have, those that it may have, and what kinds those are.
RULES: dict[str, tuple[set[str], dict[str, str]]] = {
    "document": (
        {"openapi", "info", "paths"},
        {
            "openapi": "text",
            "info": "info",
            "servers": "[server]",
            "paths": "{path}",
            "components": "components",
            "security": "[{[text]}]",
        },
    ),
    "info": ({"title", "version"}, {"title": "text", "version": "text", "description": "text"}),
    "server": ({"url"}, {"url": "text"}),
    "path": (set(), {"get": "operation", "post": "operation"}),
    "operation": (
        {"responses"},
        {
            "operationId": "text",
            "summary": "text",
            "description": "text",
            "tags": "[text]",
            "requestBody": "body",
            "responses": "{response}",
            "security": "[{[text]}]",
        },
    ),
    "body": ({"content"}, {"content": "{media}", "required": "flag"}),
    "media": (set(), {"schema": "schema"}),
    "response": ({"description"}, {"description": "text", "content": "{media}"}),
    "components": (
        set(),
        {"schemas": "{schema}", "responses": "{response}", "securitySchemes": "{scheme}"},
    ),
    "scheme": ({"type"}, {"type": "text", "scheme": "text", "in": "text", "name": "text"}),
}


def check(kind: str, value: Any, where: str = "#") -> None:
    """Fail where a part of the document is not what the specification has there."""
    if kind == "text":
        assert isinstance(value, str), where
    elif kind == "flag":
        assert isinstance(value, bool), where
    elif kind == "schema":
        assert isinstance(value, (dict, bool)), where
    elif kind[0] == "[":
        assert isinstance(value, list), where
        for at, each in enumerate(value):
            check(kind[1:-1], each, f"{where}/{at}")
    elif kind[0] == "{":
        assert isinstance(value, dict), where
        for name, each in value.items():
            check(kind[1:-1], each, f"{where}/{name}")
    elif not (isinstance(value, dict) and value.keys() == {"$ref"}):
        needed, known = RULES[kind]
        assert needed <= value.keys() <= known.keys(), f"{where} is a {kind} with {sorted(value)}"
        for name, each in value.items():
            check(known[name], each, f"{where}/{name}")


def references(part: Any) -> Iterator[str]:
    """Every reference that is not data of a schema's."""
    if isinstance(part, list):
        for each in part:
            yield from references(each)
    elif isinstance(part, dict):
        for name, each in part.items():
            if name in ("$ref", "$dynamicRef") and isinstance(each, str):
                yield each
            elif name not in ("const", "enum", "default", "examples"):
                yield from references(each)


def look_up(document: Json, reference: str) -> Any:
    here: Any = document
    for step in reference.removeprefix("#/").split("/"):
        step = step.replace("%20", " ").replace("~1", "/").replace("~0", "~")
        here = here[int(step)] if isinstance(here, list) else here[step]
    return here


def test_the_document_is_open_api(document: Json) -> None:
    check("document", document)
    assert re.fullmatch(r"3\.1\.\d+", document["openapi"])
    assert all(path.startswith("/") for path in document["paths"])
    for part in document["components"].values():
        assert all(re.fullmatch(r"[a-zA-Z0-9._-]+", name) for name in part)
    operations = [operation for path in document["paths"].values() for operation in path.values()]
    for operation in operations:
        assert all(re.fullmatch(r"[1-5](?:\d\d|XX)|default", status) for status in operation["responses"])
    ids = [operation["operationId"] for operation in operations if "operationId" in operation]
    assert len(ids) == len(set(ids)) == len(operations) - 1


def test_every_reference_leads_somewhere(document: Json) -> None:
    found = list(references(document))
    assert len(found) > 30
    for reference in found:
        assert isinstance(look_up(document, reference), dict), reference


def test_the_server_is_named(document: Json) -> None:
    assert document["info"] == {"title": "The shop", "version": "1.2.3", "description": "Sells things."}
    assert document["servers"] == [{"url": "/"}]


def test_each_tool_is_an_operation(document: Json) -> None:
    assert document["paths"].keys() == {
        "/tools",
        *(f"/tools/{name}" for name in ("move", "area", "pay", "refund", "node", "v1.old-tool")),
    }
    move = document["paths"]["/tools/move"]["post"]
    assert (move["operationId"], move["summary"], move["tags"]) == ("move", "Move a shape", ["shapes"])
    assert move["description"] == "Move a shape, and all of its parts."
    assert move["requestBody"]["required"] is True
    assert document["paths"]["/tools/pay"]["post"]["requestBody"]["required"] is False
    assert "422" in document["paths"]["/tools/refund"]["post"]["responses"]
    assert "422" not in move["responses"]


# -- the schemas


def accepts(document: Json, schema: Json, value: Any) -> bool:
    whole = {"components": document["components"], **schema}
    return bool(jsonschema_rs.validator_for(whole).is_valid(value))


def taken(document: Json, name: str) -> Json:
    content: Json = document["paths"][f"/tools/{name}"]["post"]["requestBody"]["content"]
    return content["application/json"]["schema"]  # type: ignore[no-any-return]


def given(document: Json, name: str, status: str = "200") -> Json:
    response = document["paths"][f"/tools/{name}"]["post"]["responses"][status]
    if "$ref" in response:
        response = look_up(document, response["$ref"])
    return response["content"]["application/json"]["schema"]  # type: ignore[no-any-return]


def test_a_schema_with_definitions_that_name_each_other_holds(document: Json) -> None:
    point = {"x": 1, "y": 2}
    shape = {"name": "a", "corners": [point], "parts": [{"name": "b", "corners": [], "parts": []}]}
    assert accepts(document, taken(document, "move"), {"shape": shape, "by": point})
    bad = shape | {"parts": [shape | {"corners": [{"x": 1}]}]}
    assert not accepts(document, taken(document, "move"), {"shape": bad, "by": point})
    assert accepts(document, taken(document, "area"), {"shape": shape})
    assert not accepts(document, taken(document, "area"), {"shape": bad})


@pytest.mark.parametrize("node", GOOD_NODES)
def test_an_authors_own_schema_takes_what_it_took(document: Json, node: Json) -> None:
    assert jsonschema_rs.validator_for(NODE).is_valid(node)
    assert accepts(document, taken(document, "node"), node)


@pytest.mark.parametrize("node", BAD_NODES)
def test_an_authors_own_schema_refuses_what_it_refused(document: Json, node: Json) -> None:
    assert not jsonschema_rs.validator_for(NODE).is_valid(node)
    assert not accepts(document, taken(document, "node"), node)


def test_the_authors_own_record_is_not_touched(tmp_path: Path) -> None:
    before = repr(NODE)
    fetch(configured(shop(), tmp_path))
    assert repr(NODE) == before


def test_a_schema_with_an_id_is_served_as_it_is(tmp_path: Path) -> None:
    server = Server("x")
    server.add_tool(Tool(name="named", input_schema=NAMED), lambda *_: CallResult([Text("")]))
    document = fetch(configured(server, tmp_path)).json()
    assert document["components"]["schemas"]["named.input"] == NAMED


def test_an_older_dialect_is_still_named(document: Json) -> None:
    schemas = document["components"]["schemas"]
    assert schemas["v1.old-tool.input"]["$schema"] == "http://json-schema.org/draft-07/schema#"
    assert "$schema" not in schemas["node.input"]


def test_answers_are_what_the_document_says(document: Json, tmp_path: Path) -> None:
    app = configured(shop(), tmp_path)
    shape = b'{"name": "a", "corners": [{"x": 1, "y": 2}], "parts": []}'
    headers = {"content-type": "application/json"}

    async def main() -> tuple[Answer, Answer, Answer]:
        async with opened(app):
            return (
                await request(app, "POST", "/tools/move", headers, b'{"shape": %s, "by": {"x": 1, "y": 1}}' % shape),
                await request(app, "POST", "/tools/move", headers, b"{}"),
                await request(app, "GET", "/tools"),
            )

    good, bad, tools = asyncio.run(main())
    assert accepts(document, given(document, "move"), good.json())
    assert accepts(document, given(document, "move", "400"), bad.json())
    assert not accepts(document, given(document, "move"), good.json() | {"data": {"name": 1}})
    assert not accepts(document, given(document, "move"), bad.json())
    listed = document["paths"]["/tools"]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    assert accepts(document, listed, tools.json())


# -- who, where and when


AUTH = '[auth]\ntoken = "a-secret-token-0123456789abcdef"\n'


@pytest.mark.parametrize(
    ("more", "schemes"),
    [
        (
            'key_header = "X-Shop-Key"\ncookie = "shop"',
            {
                "bearer": {"type": "http", "scheme": "bearer"},
                "apiKey": {"type": "apiKey", "in": "header", "name": "X-Shop-Key"},
                "cookie": {"type": "apiKey", "in": "cookie", "name": "shop"},
            },
        ),
        ('key_header = ""\ncookie = ""', {"bearer": {"type": "http", "scheme": "bearer"}}),
    ],
)
def test_the_ways_to_show_a_credential_are_named(tmp_path: Path, more: str, schemes: Json) -> None:
    app = configured(shop(), tmp_path, AUTH + more)
    bearer = {"authorization": "Bearer a-secret-token-0123456789abcdef"}

    async def main() -> Answer:
        async with opened(app):
            return await request(app, "GET", "/openapi.json", bearer)

    answer = asyncio.run(main())
    document = answer.json()
    check("document", document)
    assert document["components"]["securitySchemes"] == schemes
    assert document["security"] == [{name: []} for name in schemes]
    pay = document["paths"]["/tools/pay"]["post"]
    assert pay["security"] == [{name: ["admin", "pay"]} for name in schemes]
    assert {"401", "403"} <= pay["responses"].keys()
    assert b"a-secret-token" not in answer.body


def test_an_open_server_asks_for_nothing(document: Json) -> None:
    assert "security" not in document
    assert "securitySchemes" not in document["components"]
    assert "401" not in document["paths"]["/tools/pay"]["post"]["responses"]


def test_paths_begin_where_the_app_is_mounted(tmp_path: Path) -> None:
    assert fetch(configured(shop(), tmp_path), root="/api").json()["servers"] == [{"url": "/api"}]


@pytest.mark.parametrize(
    ("public", "base"),
    [
        ("https://shop.example.com", "https://shop.example.com"),
        ("https://example.com/shop/", "https://example.com/shop"),
        ("https://example.com/shop/mcp", "https://example.com/shop"),
    ],
)
def test_paths_begin_at_the_public_address(tmp_path: Path, public: str, base: str) -> None:
    document = fetch(configured(shop(), tmp_path, public_url=public)).json()
    assert document["servers"] == [{"url": base}]


def test_the_document_follows_the_tools(tmp_path: Path) -> None:
    server = shop()
    app = configured(server, tmp_path)

    async def main() -> list[Answer]:
        async with opened(app):
            first = await request(app, "GET", "/openapi.json")
            again = await request(app, "GET", "/openapi.json")
            server.remove_tool("pay")
            return [first, again, await request(app, "GET", "/openapi.json")]

    first, again, last = asyncio.run(main())
    assert first.body == again.body
    assert first.json()["paths"].keys() - last.json()["paths"].keys() == {"/tools/pay"}


class Unlistable(BaseModel):
    """pydantic checks values of it, and has no JSON Schema for it."""

    action: Callable[[], int]


@pytest.mark.parametrize("path", ["/tools", "/openapi.json"])
def test_a_tool_without_a_schema_does_not_hide_the_others(tmp_path: Path, path: str) -> None:
    server = Server("shop")
    server.tool(name="good")(lambda: "x")

    @server.tool
    def bad(of: Unlistable) -> str:
        return "x"

    app = configured(server, tmp_path)

    async def main() -> Answer:
        async with opened(app):
            return await request(app, "GET", path)

    answer = asyncio.run(main())
    assert answer.status == 200
    assert b"good" in answer.body and b"bad" not in answer.body
