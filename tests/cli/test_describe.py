"""The description of a server that the linter gets."""

from __future__ import annotations

from typing import Any

import pytest

from longshore import Icon, Server, Tool, Toolset, tool
from longshore.cli.describe import tool_list_of

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"city": {"type": "string"}}}


class Weather(Toolset):
    @tool(examples=[{"city": "Oslo"}], errors={"no_city": "there is none"}, waive={"W22": "it is plain"})
    def look(self, city: str) -> str:
        return city


@pytest.fixture
def app() -> Server:
    made = Server("shop", instructions="Ask.", categories=["weather"], waive={"W25": "nobody uses it", "W22": "all"})
    made.add_toolset(Weather())
    made.add_tool(Tool(name="raw", input_schema=SCHEMA, icons=[Icon("https://e.com/i.png")]), lambda arguments, ctx: {})
    return made


def test_a_tool_list_has_the_tools_as_they_are_listed(app: Server) -> None:
    surface = tool_list_of(app)
    assert (surface.name, surface.instructions, surface.categories) == ("shop", "Ask.", ("weather",))
    assert [each["name"] for each in surface.tools] == ["look", "raw"]
    assert surface.tools[1] == {"name": "raw", "inputSchema": SCHEMA, "icons": [{"src": "https://e.com/i.png"}]}


def test_a_declaration_is_what_the_author_declared(app: Server) -> None:
    declared = tool_list_of(app).declared
    assert declared["look"].category == "weather"
    assert (declared["look"].examples, declared["look"].errors) == (({"city": "Oslo"},), {"no_city": "there is none"})
    assert declared["look"].waived == {"W22": "it is plain", "W25": "nobody uses it"}
    assert "test_describe.py:" in declared["look"].where and declared["look"].where.endswith("look(self, city)")
    assert (declared["look"].typed, declared["raw"].typed) == (True, False)
    assert declared["raw"].category is None


def test_a_tool_without_a_schema_is_left_out_as_in_the_list(app: Server) -> None:
    class Odd:
        def __call__(self) -> dict[str, Any]:
            raise TypeError("no schema")

    app.catalog.tools["raw"].describe = Odd()
    assert [each["name"] for each in tool_list_of(app).tools] == ["look"]


def test_an_output_schema_that_is_no_object_is_shown_wrapped(app: Server) -> None:
    tool = Tool(name="many", input_schema=SCHEMA, output_schema={"type": "array", "items": {"type": "string"}})
    app.add_tool(tool, lambda arguments, ctx: {})
    assert tool_list_of(app).tools[2]["outputSchema"]["properties"]["result"]["type"] == "array"
