"""A server of the official SDK with a bit of everything: `python official.py stdio | http PORT | sse PORT | pages`."""

from __future__ import annotations

import asyncio
import sys
from typing import Annotated, Any

import mcp_types as types
from listening import listen
from mcp.server import MCPServer
from mcp.server.elicitation import AcceptedElicitation, ElicitationResult
from mcp.server.lowlevel import Server
from mcp.server.mcpserver import Context, Elicit, Image, ListRoots, Resolve, Sample
from mcp.server.mcpserver.utilities.types import Audio
from mcp.server.stdio import stdio_server
from pydantic import BaseModel

server = MCPServer("official", instructions="Be kind.", version="7", log_level="ERROR")
befell = {"started": 0, "cancelled": 0, "subscribed": 0}


class Person(BaseModel):
    name: str
    age: int


class Answer(BaseModel):
    name: str
    often: int = 2


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def person(name: str) -> Person:
    """Make somebody up."""
    return Person(name=name, age=30)


@server.tool(structured_output=False)
def blocks() -> list[Any]:
    """One block of each kind."""
    inside = types.TextResourceContents(uri="test://inside", text="inside", mime_type="text/plain")
    return [
        "words",
        Image(data=b"\x89PNG\x00\xff", format="png"),
        Audio(data=b"RIFF\x00\xff", format="wav"),
        types.ResourceLink(name="thing", uri="test://thing", description="over there"),
        types.EmbeddedResource(resource=inside),
    ]


@server.tool()
def fail() -> str:
    """Fail."""
    raise ValueError("on purpose")


@server.tool()
async def steps(ctx: Context) -> str:
    """Tell how far it is."""
    for at in range(3):
        await ctx.report_progress(at, 3, f"step {at}")
    return "done"


@server.tool()
async def wait(ctx: Context) -> str:
    """Wait until it is cancelled."""
    befell["started"] += 1
    await ctx.report_progress(1)
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        befell["cancelled"] += 1
        raise
    return "never"


@server.tool()
def count(what: str) -> int:
    """How often something befell the server."""
    return befell[what]


@server.tool()
async def speak(ctx: Context) -> str:
    """Log something at two levels."""
    await ctx.debug("a whisper")
    await ctx.error({"loud": True}, logger_name="town crier")
    return "spoken"


@server.tool(structured_output=False)
def big(size: int) -> str:
    """A lot."""
    return "é" * size


@server.tool()
def length(text: str) -> int:
    """How long a text is."""
    return len(text)


@server.tool()
async def touch(ctx: Context) -> str:
    """Say that the thing has changed, and the tools."""
    await ctx.notify_resource_updated("test://thing")
    await ctx.notify_tools_changed()
    await ctx.session.send_resource_updated("test://thing")
    await ctx.session.send_tool_list_changed()
    return "touched"


# -- questions


def ask_name() -> Elicit[Answer]:
    return Elicit("What is your name?", Answer)


def ask_model() -> Sample:
    text = types.TextContent(text="Say something.")
    return Sample([types.SamplingMessage(role="user", content=text)], max_tokens=10)


def ask_roots() -> ListRoots:
    return ListRoots()


@server.tool()
def greet(answer: Annotated[ElicitationResult[Answer], Resolve(ask_name)]) -> str:
    """Ask for a name."""
    if isinstance(answer, AcceptedElicitation):
        return " ".join(["hello", *[answer.data.name] * answer.data.often])
    return answer.action


@server.tool()
def think(said: Annotated[types.CreateMessageResult, Resolve(ask_model)]) -> str:
    """Ask a model."""
    assert isinstance(said.content, types.TextContent)
    return f"{said.model}: {said.content.text}"


@server.tool()
def look(found: Annotated[types.ListRootsResult, Resolve(ask_roots)]) -> list[str]:
    """Ask for the roots."""
    return [str(root.uri) for root in found.roots]


# -- resources, prompts, completion


@server.resource("test://thing", mime_type="text/plain")
def thing() -> str:
    """Something to read."""
    return "it"


@server.resource("test://bytes", mime_type="application/octet-stream")
def some_bytes() -> bytes:
    """Something that is no text."""
    return b"\x00\xff"


@server.resource("test://numbers/{n}")
def number(n: str) -> str:
    """Any number."""
    return f"number {n}"


@server.prompt()
def poem(about: str) -> str:
    """Ask for a poem."""
    return f"write about {about}"


@server.completion()
async def complete(ref: Any, argument: Any, context: Any) -> types.Completion:
    if isinstance(ref, types.ResourceTemplateReference):
        return types.Completion(values=["1", "12"], total=2, has_more=False)
    style = (context.arguments or {}).get("style", "") if context else ""
    return types.Completion(values=[f"{argument.value}{style}!"])


async def subscribe(_: Any, params: types.SubscribeRequestParams) -> types.EmptyResult:
    """The SDK's server has none for the handshake era by itself."""
    befell["subscribed"] += 1
    return types.EmptyResult()


async def unsubscribe(_: Any, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
    befell["subscribed"] -= 1
    return types.EmptyResult()


core = server._lowlevel_server
core.add_request_handler("resources/subscribe", types.SubscribeRequestParams, subscribe)
core.add_request_handler("resources/unsubscribe", types.UnsubscribeRequestParams, unsubscribe)


# -- lists of many pages

PAGE = 7


async def page_of_tools(_: Any, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
    start = int((params and params.cursor) or 0)
    tools = [types.Tool(name=f"tool{n}", input_schema={"type": "object"}) for n in range(start, min(start + PAGE, 40))]
    return types.ListToolsResult(tools=tools, next_cursor=str(start + PAGE) if start + PAGE < 40 else None)


async def page_of_prompts(_: Any, params: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
    """A list that never ends: its cursors go round."""
    return types.ListPromptsResult(prompts=[types.Prompt(name="again")], next_cursor="round")


async def serve_pages() -> None:
    pages = Server("pages", on_list_tools=page_of_tools, on_list_prompts=page_of_prompts)
    async with stdio_server() as (reading, writing):
        await pages.run(reading, writing, pages.create_initialization_options())


def main(kind: str, port: str = "0") -> None:
    if kind == "pages":
        asyncio.run(serve_pages())
    elif kind == "stdio":
        server.run("stdio")
    else:
        listen(server.sse_app() if kind == "sse" else server.streamable_http_app(), int(port))


if __name__ == "__main__":
    main(*sys.argv[1:])
