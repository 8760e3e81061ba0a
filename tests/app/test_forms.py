"""`[server] schemas`: tools listed in the form of one kind of client, and checked as their authors wrote them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import pytest

from longshore import Server, Tool
from longshore.config import load
from longshore.config.sections import SchemaForm
from longshore.schema.client_forms import lower
from talk import call, listed, text

SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Fetch",
    "$comment": "as an author wrote it",
    "x-own": [None, 1.0, {"title": ""}],
    "type": "object",
    "properties": {
        "path": {"type": "string", "title": "Path"},
        "url": {"$ref": "#/$defs/url"},
        "any": True,
        "note": {"type": ["string", "null"], "default": None},
    },
    "anyOf": [{"required": ["path"]}, {"required": ["url"]}],
    "$defs": {"url": {"type": "string", "pattern": "^http"}},
}


def server(form: str | None, folder: Path) -> Server:
    """A server with an author's schema and one of ours, configured by a file."""
    app = Server("forms")
    waived = {"E02": "the test is about it", "E04": "the test is about it"}
    tool = Tool(name="fetch", description="Fetch a page.", input_schema=SCHEMA, waive=waived)
    app.add_tool(tool, lambda arguments, ctx: {"content": [{"type": "text", "text": "fetched"}]})

    @app.tool
    def add(a: int, b: int | None = None) -> int:
        return a + (b or 0)

    path = folder / "longshore.toml"
    path.write_text("" if form is None else f'[server]\nschemas = "{form}"\n')
    app.config = load(None, path=str(path))
    return app


def test_an_authors_schema_goes_out_as_it_was_written(tmp_path: Path) -> None:
    found = listed(server(None, tmp_path), "fetch")
    assert json.dumps(found["inputSchema"]) == json.dumps(SCHEMA)
    assert found["description"] == "Fetch a page."


@pytest.mark.parametrize("form", get_args(SchemaForm))
def test_tools_are_listed_in_the_form_that_was_asked_for(tmp_path: Path, form: Any) -> None:
    plain, app = server(None, tmp_path), server(form, tmp_path)
    for name in ("fetch", "add"):
        assert listed(app, name) == lower(listed(plain, name), form)
    found = listed(app, "fetch")
    assert "anyOf" not in found["inputSchema"]
    assert found["description"] == "Fetch a page. At least one of these must be given: path; url."
    assert ("input_schema" in found) is (form == "brooklyn")


def test_arguments_are_checked_against_the_authors_schema(tmp_path: Path) -> None:
    app = server("claude", tmp_path)
    assert text(call(app, "fetch", {"url": "http://a"})) == "fetched"
    for wrong in ({}, {"url": "ftp://a"}):
        assert call(app, "fetch", wrong)["isError"] is True


def test_null_is_taken_for_what_strict_mode_makes_a_model_give(tmp_path: Path) -> None:
    app = server("openai-strict", tmp_path)
    found = listed(app, "add")["inputSchema"]
    assert found["required"] == ["a", "b"] and found["properties"]["b"] == {"type": ["integer", "null"]}
    assert call(app, "add", {"a": 1, "b": None})["structuredContent"] in (1, {"result": 1})
