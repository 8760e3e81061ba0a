"""A server with run_code and tools to call from it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from msgspec import Struct

from longshore import Client, Context, Server
from longshore.errors import ToolError, ToolFailed
from longshore.protocol.content import Image, ResourceLink, Text
from longshore.toolsets.code.options import CodeOptions
from longshore.toolsets.code.tools import Code

PIXEL = b"\x89PNG\r\n\x1a\n" + bytes(24)
ERAS = ("legacy", "modern")


class Point(Struct):
    x: int
    y: int


class Counting:
    """What the tools saw."""

    def __init__(self) -> None:
        self.begun = self.ended = self.cancelled = 0
        self.meeting = asyncio.Event()


def make_server(counting: Counting | None = None, **options: Any) -> Server:
    app = Server("code", catalog="code")
    seen = counting or Counting()
    app.add_toolset(Code(CodeOptions(**options), app))

    @app.tool(run="inline", effects="read")
    def add(a: int, b: int = 1) -> int:
        return a + b

    @app.tool(effects="read", aliases=["hello"])
    def greet(name: str) -> str:
        return f"hello {name}"

    @app.tool(effects="read", name="move-point")
    def move(x: int, y: int) -> Point:
        return Point(x + 1, y + 1)

    @app.tool(effects="read")
    def fail(why: str) -> str:
        raise ToolError(why)

    @app.tool(effects="read")
    def picture() -> list[Text | Image]:
        return [Text("a pixel"), Image(PIXEL)]

    @app.tool(effects="write", artifacts=True)
    def store(ctx: Context, text: str) -> ResourceLink:
        return ctx.save_artifact("note.txt", text)

    @app.tool
    async def meet(ctx: Context) -> str:
        """Wait until two calls of it run at once."""
        seen.begun += 1
        if seen.begun == 2:
            seen.meeting.set()
        await ctx.progress(seen.begun, message="waiting")
        try:
            await seen.meeting.wait()
        except asyncio.CancelledError:
            seen.cancelled += 1
            raise
        return "met"

    @app.tool(replay=True)
    async def ask_name(ctx: Context) -> str:
        answer = await ctx.elicit("What is your name?", str, key="name")
        if not answer.accepted:
            raise ToolError("without a name there is no greeting")
        return f"hello {answer.value}"

    return app


@asynccontextmanager
async def connected(app: Server | None = None, **options: Any) -> AsyncIterator[Client]:
    async with Client(make_server() if app is None else app, **options) as client:
        yield client


async def run(client: Client, code: str, **arguments: Any) -> str:
    """The text of an answer that is no error."""
    answer = await client.call_tool("run_code", {"code": code, **arguments})
    return answer.text


async def failure(client: Client, code: str, **arguments: Any) -> str:
    try:
        answer = await client.call_tool("run_code", {"code": code, **arguments})
    except ToolFailed as failed:
        return str(failed)
    raise AssertionError(f"it answered {answer.text!r}")
