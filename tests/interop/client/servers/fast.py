"""The server of official.py on FastMCP: `python fast.py stdio | http PORT | sse PORT`. Its lists have pages of 4."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

os.environ["FASTMCP_CHECK_FOR_UPDATES"] = "off"  # it would ask the package index

import mcp_types as types
from fastmcp import Context, FastMCP
from fastmcp.utilities.types import Audio, Image
from listening import listen
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel

server = FastMCP("fast", instructions="Be kind.", version="7", list_page_size=4, mask_error_details=True)
befell = {"started": 0, "cancelled": 0}


class Person(BaseModel):
    name: str
    age: int


class Answer(BaseModel):
    name: str
    often: int = 2


@server.tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool
def person(name: str) -> Person:
    """Make somebody up."""
    return Person(name=name, age=30)


@server.tool(output_schema=None)
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


@server.tool
def fail() -> str:
    """Fail."""
    raise ValueError("on purpose")


@server.tool
async def steps(ctx: Context) -> str:
    """Tell how far it is."""
    for at in range(3):
        await ctx.report_progress(at, 3, f"step {at}")
    return "done"


@server.tool
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


@server.tool
def count(what: str) -> int:
    """How often something befell the server."""
    return befell[what]


@server.tool
async def speak(ctx: Context) -> str:
    """Log something at two levels."""
    await ctx.debug("a whisper")
    await ctx.error("a shout", logger_name="town crier", extra={"loud": True})
    return "spoken"


@server.tool(output_schema=None)
def big(size: int) -> str:
    """A lot."""
    return "é" * size


@server.tool
def length(text: str) -> int:
    """How long a text is."""
    return len(text)


@server.tool
async def touch(ctx: Context) -> str:
    """Say that the tools have changed."""
    await ctx.send_notification(types.ToolListChangedNotification())
    return "touched"


# -- questions: asked on the way in the handshake era, returned in the modern one


def is_modern(ctx: Context) -> bool:
    assert ctx.request_context is not None
    return ctx.request_context.protocol_version in MODERN_PROTOCOL_VERSIONS


async def ask(ctx: Context, request: Any) -> Any:
    """The answer to a question, or what to return to have it asked."""
    if ctx.input_responses is None:
        return types.InputRequiredResult(input_requests={"it": request}, request_state="asked")
    assert ctx.request_state == "asked"
    return ctx.input_responses["it"]


@server.tool(output_schema=None)
async def greet(ctx: Context) -> Any:
    """Ask for a name."""
    if not is_modern(ctx):
        given = await ctx.elicit("What is your name?", Answer)
        return " ".join(["hello", *[given.data.name] * given.data.often]) if given.action == "accept" else given.action
    form = types.ElicitRequestFormParams(message="Your name?", requested_schema=Answer.model_json_schema())
    answer = await ask(ctx, types.ElicitRequest(params=form))
    if isinstance(answer, types.InputRequiredResult) or answer.action != "accept":
        return answer if isinstance(answer, types.InputRequiredResult) else answer.action
    return " ".join(["hello", *[answer.content["name"]] * answer.content["often"]])


@server.tool(output_schema=None)
async def think(ctx: Context) -> Any:
    """Ask a model."""
    message = types.SamplingMessage(role="user", content=types.TextContent(text="Say something."))
    params = types.CreateMessageRequestParams(messages=[message], max_tokens=10)
    if is_modern(ctx):
        said = await ask(ctx, types.CreateMessageRequest(params=params))
    else:
        said = await ctx.session.create_message([message], max_tokens=10, related_request_id=ctx.request_id)
    return said if isinstance(said, types.InputRequiredResult) else f"{said.model}: {said.content.text}"


@server.tool(output_schema=None)
async def look(ctx: Context) -> Any:
    """Ask for the roots."""
    found = await ask(ctx, types.ListRootsRequest()) if is_modern(ctx) else await ctx.session.list_roots()
    return found if isinstance(found, types.InputRequiredResult) else " ".join(str(root.uri) for root in found.roots)


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


@server.prompt
def poem(about: str) -> str:
    """Ask for a poem."""
    return f"write about {about}"


@server.completion
def complete(ref: Any, argument: Any, context: Any) -> types.Completion:
    if isinstance(ref, types.ResourceTemplateReference):
        return types.Completion(values=["1", "12"], total=2, has_more=False)
    style = (context.arguments or {}).get("style", "") if context else ""
    return types.Completion(values=[f"{argument.value}{style}!"])


def main(kind: str, port: str = "0") -> None:
    if kind == "stdio":
        server.run("stdio", show_banner=False, log_level="ERROR")
    else:
        listen(server.http_app(transport="sse" if kind == "sse" else "http"), int(port))


if __name__ == "__main__":
    main(*sys.argv[1:])
