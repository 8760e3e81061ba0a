"""A server with tools of every kind that the console shows: each shape of schema, each kind of result, questions."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from longshore import (
    Ask,
    Audio,
    CallResult,
    Context,
    Image,
    ResourceLink,
    Sample,
    Server,
    Text,
    Tool,
    ToolError,
)
from serving import Served, serve

TOKEN = "harbour-token-for-the-console-tests"
VIEWER = "viewer-token-for-the-console-tests"
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAFklEQVR4nGPQK3iDFTEMLonEtbVYEfkSAPLBfaFwPyWNAAAAAElFTkSuQmCC"
)
EVIL = "<img src=x onerror=window.pwned=1><script>window.pwned=1</script>"
"""If this is ever read as HTML, the page's `pwned` is set."""

SHAPES: dict[str, tuple[Any, Any]] = {
    "text": ({"type": "string", "minLength": 2, "maxLength": 10}, "Oslo"),
    "long_text": ({"type": "string", "description": "A long text."}, 'two\nlines with "quotes" and ö'),
    "integer": ({"type": "integer", "minimum": 1, "maximum": 9}, 7),
    "number": ({"type": "number", "exclusiveMinimum": 0}, 2.5),
    "boolean": ({"type": "boolean"}, False),
    "enum": ({"enum": ["small", "large", 3, True]}, 3),
    "titled": ({"oneOf": [{"const": "a", "title": "First"}, {"const": "b", "title": "Second"}]}, "b"),
    "constant": ({"const": "fixed"}, "fixed"),
    "nullable": ({"type": ["string", "null"]}, None),
    "optional_null": ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, 4),
    "date": ({"type": "string", "format": "date"}, "2026-07-28"),
    "list": ({"type": "array", "items": {"type": "string"}, "minItems": 1}, ["a", "b"]),
    "objects": (
        {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}},
        [{"n": 1}, {"n": 2}],
    ),
    "several": ({"type": "array", "uniqueItems": True, "items": {"enum": ["x", "y", "z"]}}, ["x", "z"]),
    "tuple": ({"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "items": False}, ["a", 1]),
    "nested": (
        {
            "type": "object",
            "properties": {
                "street": {"type": "string"},
                "at": {"type": "object", "properties": {"lat": {"type": "number"}}, "required": ["lat"]},
            },
            "required": ["street"],
        },
        {"street": "Quay 1", "at": {"lat": 59.9}},
    ),
    "reference": ({"$ref": "#/$defs/tree"}, {"name": "root", "children": [{"name": "leaf"}]}),
    "choice": (
        {
            "oneOf": [
                {"title": "Circle", "type": "object", "properties": {"r": {"type": "number"}}, "required": ["r"]},
                {"title": "Square", "type": "object", "properties": {"side": {"type": "number"}}, "required": ["side"]},
            ]
        },
        {"side": 3},
    ),
    "mixed": ({"type": ["integer", "string"]}, "12"),
    "map": ({"type": "object", "additionalProperties": {"type": "integer"}}, {"a": 1, "b": 2}),
    "anything": ({}, {"deep": [1, None, {"x": "y"}]}),
    "any_object": ({"type": "object"}, {"k": "v"}),
    "merged": (
        {
            "allOf": [
                {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
                {"properties": {"b": {"type": "boolean"}}},
            ]
        },
        {"a": "x", "b": True},
    ),
    "extra": (
        {"type": "object", "properties": {"id": {"type": "string"}}, "additionalProperties": {"type": "number"}},
        {"id": "q", "more": 1.5},
    ),
    "defaulted": ({"type": "string", "default": "from the schema"}, "mine"),
    "secret": ({"type": "string", "format": "password"}, "hush"),
    "header": ({"type": "string", "x-mcp-header": "Berth"}, "Kai 4, Ü"),
}
"""Each property of the tool `shapes`: its schema, and a value for it."""
TREE = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#/$defs/tree"}}},
    "required": ["name"],
}


def shapes_schema() -> dict[str, Any]:
    properties = {name: schema for name, (schema, _) in SHAPES.items()}
    return {"type": "object", "properties": properties, "required": ["text"], "$defs": {"tree": TREE}}


async def _echo(arguments: dict[str, Any], ctx: Context) -> CallResult:
    return CallResult([Text(json.dumps(arguments))])


async def _say_evil(arguments: dict[str, Any], ctx: Context) -> CallResult:
    ctx.info(EVIL)
    ctx.progress(1, 2, EVIL)
    return CallResult(
        [Text(EVIL), ResourceLink("javascript:window.pwned=1", name=EVIL)], structured={EVIL: EVIL}, is_error=True
    )


@dataclass
class Berth:
    quay: Annotated[str, "Which quay."]
    metres: int = 10


def make_server(**options: Any) -> Server:
    """The server. `options` are its configuration, over those that every test needs."""
    usual = {
        "auth.token": TOKEN,
        "tokens.viewer.token": VIEWER,
        "tokens.viewer.scopes": ["console:read"],
    }
    app = Server("harbour", version="1.2.3", title="Harbour office", standards="off", defaults={**usual, **options})
    app.add_tool(Tool(name="shapes", input_schema=shapes_schema(), description="Give back its arguments."), _echo)
    evil_schema = {"type": "object", "properties": {EVIL: {"type": "string", "title": EVIL, "description": EVIL}}}
    app.add_tool(Tool(name="evil", title=EVIL, input_schema=evil_schema, description=EVIL), _say_evil)
    _add_results(app)
    _add_questions(app)
    _add_content(app)
    return app


def _add_results(app: Server) -> None:
    @app.tool(effects="read")
    async def wait_for_tide(ctx: Context, label: str = "tide") -> str:
        """Wait until somebody cancels."""
        ctx.info("the tide is low")
        ctx.progress(3, 10, f"3 of 10 for {label}")
        await asyncio.Event().wait()
        return "high"

    @app.tool(effects="read")
    def picture() -> list[str | Image]:
        """Show a picture."""
        return ["a picture", Image(PIXEL)]

    @app.tool(effects="read")
    def sound() -> Audio:
        """Sound a horn."""
        return Audio(
            b"RIFF\x24\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x40\x1f\0\0\x40\x1f\0\0\1\0\x08\0data\0\0\0\0", "audio/wav"
        )

    @app.tool(effects="read")
    def link() -> ResourceLink:
        """Link to the log book."""
        return ResourceLink("book://today", name="log book")

    @app.tool(effects="destroy")
    def sink(ship: str) -> str:
        """Fail."""
        raise ToolError(f"{ship} does not sink; moor it first")

    @app.tool(effects="read")
    def add(a: int, b: int) -> dict[str, int]:
        """Add two numbers."""
        return {"sum": a + b}


def _add_questions(app: Server) -> None:
    @app.tool(effects="write")
    async def moor(ship: str, berth: Annotated[Berth | None, Ask("Where does {ship} moor?")] = None) -> str:
        """Moor a ship where the user says."""
        return f"{ship} lies at nobody's" if berth is None else f"{ship} lies at {berth.quay}, {berth.metres} m"

    @app.tool(effects="write")
    async def pay(ship: str, paid: Annotated[bool, Ask("Pay for {ship}", url="https://pay.example/{ship}")]) -> str:
        """Have the user pay."""
        return f"{ship}: {'paid' if paid else 'unpaid'}"

    @app.tool(effects="read")
    async def forecast(
        text: Annotated[str, Ask(Sample(f"How will the weather be? {EVIL}", system="You are a skipper."))],
    ) -> str:
        """Ask the client's model."""
        return text

    @app.tool(effects="read")
    async def plan(text: Annotated[str, Ask(Sample("Plan it.", tools=[{"name": "map", "inputSchema": {}}]))]) -> str:
        """Ask the client's model, with tools."""
        return text


def _add_content(app: Server) -> None:
    @app.resource("book://today", mime_type="text/plain")
    def today() -> str:
        """The log book of today."""
        return f"08:00 fog {EVIL}"

    @app.resource("ship://{name}/papers")
    def papers(name: str) -> str:
        """The papers of a ship."""
        return json.dumps({"ship": name, "flag": "NO"})

    @app.completion("ship://{name}/papers", "name")
    async def names(typed: str) -> list[str]:
        return [name for name in ("Fram", "Maud", "Gjoa") if name.lower().startswith(typed.lower())]

    @app.prompt
    def greet(ship: str, tone: str = "plain") -> str:
        """Greet a ship."""
        return f"Greet {ship} in a {tone} tone {EVIL}"


@contextmanager
def serve_console(app: Server, folder: Path) -> Iterator[Served]:
    """A server with its console, over HTTP, with a configuration file in `folder`."""
    file = folder / "longshore.toml"
    if not file.exists():
        file.write_text("# The harbour's own file.\n[server]\ntimeout = 50 # seconds\n")
    with serve(app.asgi(config_path=str(file), console=True), own=True) as served:
        yield served


@contextmanager
def harbour(folder: Path) -> Iterator[Served]:
    """The harbour's server."""
    with serve_console(make_server(), folder) as served:
        yield served
