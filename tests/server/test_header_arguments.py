"""Arguments that headers repeat, sent under an old name, in an earlier form or inside of a text: nobody gets past a
proxy that decides by the header."""

from __future__ import annotations

import json
from typing import Annotated, Any

import pytest

from longshore import Alias, CallResult, Header, Server, Text, Tool
from longshore.protocol.http_headers import HEADER_MISMATCH, Headers
from longshore.server.link import Link
from posting import call, encode, modern, modern_headers


def from_v1(q: str) -> dict[str, Any]:
    return {"region": q}


def from_v2(region: str) -> dict[str, Any]:
    return {"region": region.lower()}


def typed() -> Server:
    app = Server("x")

    @app.tool(migrations=[from_v1], aliases={"place_v1": from_v1, "place_v2": from_v2}, run="inline")
    def place(
        region: Annotated[str, Header("Region"), Alias("area")] = "eu",
        floor: Annotated[int, Header("Floor"), Alias("level")] = 0,
    ) -> str:
        return f"{region} {floor}"

    return app


def raw() -> Server:
    app = Server("x")
    schema = {
        "type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
        "additionalProperties": False,
    }

    def answer(arguments: dict[str, Any], _: Any) -> CallResult:
        return CallResult([Text(f"{arguments.get('region', 'eu')} 0")])

    app.add_tool(Tool(name="place", input_schema=schema, migrations=[from_v1], run="inline"), answer)
    return app


def ask(app: Server, arguments: Any, tool: str = "place", **headers: str) -> Any:
    message = modern(call(tool, arguments))
    given = {name.lower().encode(): value.encode() for name, value in modern_headers(message)}
    link = Link()
    link.headers = Headers(given | {f"mcp-param-{name}".encode(): value.encode() for name, value in headers.items()})
    reply = json.loads(app.engine.handle(encode(message), link) or b"null")
    return reply["result"]["content"][0]["text"] if "result" in reply else reply["error"]["code"]


TAKEN: dict[str, tuple[Any, dict[str, str], str]] = {
    "nothing": ({}, {}, "eu 0"),
    "an old name": ({"area": "us"}, {"region": "us"}, "us 0"),
    "two old names": ({"area": "us", "level": 3}, {"region": "us", "floor": "3"}, "us 3"),
    "an old name, and one that is left out": ({"level": 3}, {"floor": "3"}, "eu 3"),
}
REFUSED: dict[str, tuple[Any, dict[str, str]]] = {
    "an old name": ({"area": "us"}, {}),
    "an old name, and another value": ({"area": "us"}, {"region": "eu"}),
    "an earlier form": ({"q": "us"}, {}),
    "a text": ('{"region": "us"}', {}),
}


@pytest.mark.parametrize("case", TAKEN)
def test_a_header_may_repeat_an_argument_under_its_old_name(case: str) -> None:
    arguments, headers, text = TAKEN[case]
    assert ask(typed(), arguments, **headers) == text


@pytest.mark.parametrize("case", REFUSED)
def test_an_argument_that_differs_from_its_header_is_refused_in_every_form(case: str) -> None:
    arguments, headers = REFUSED[case]
    assert ask(typed(), arguments, **headers) == HEADER_MISMATCH


@pytest.mark.parametrize("arguments", [{"q": "us"}, '{"region": "us"}'])
def test_the_same_holds_for_a_schema_of_the_authors(arguments: Any) -> None:
    assert ask(raw(), arguments) == HEADER_MISMATCH
    assert ask(raw(), {"region": "us"}, region="us") == "us 0"


def test_the_same_holds_for_what_is_made_of_the_arguments_of_an_alias() -> None:
    assert ask(typed(), {"q": "us"}, "place_v1") == HEADER_MISMATCH
    assert ask(typed(), {"region": "US"}, "place_v2", region="US") == HEADER_MISMATCH
    assert ask(typed(), {"region": "us"}, "place_v2", region="us") == "us 0"
