"""A server of the official SDK over HTTP: `python official.py http|json|stateless|sse`. It prints its port."""

from __future__ import annotations

import asyncio
import socket
import sys

import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from pydantic import BaseModel

server = MCPServer("official", instructions="Be kind.", log_level="ERROR")
cancelled = 0


class Name(BaseModel):
    name: str


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


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
    global cancelled
    await ctx.report_progress(1)
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        cancelled += 1
        raise
    return "never"


@server.tool()
def how_many_cancelled() -> int:
    """How many calls were cancelled."""
    return cancelled


@server.tool()
async def greet(ctx: Context) -> str:
    """Ask for a name."""
    answer = await ctx.elicit("What is your name?", schema=Name)
    return f"hello {answer.data.name}" if answer.action == "accept" else "hello nobody"


@server.tool()
def big(size: int) -> str:
    """A lot."""
    return "é" * size


@server.resource("test://thing")
def thing() -> str:
    """Something to read."""
    return "it"


@server.prompt()
def poem(about: str) -> str:
    """Ask for a poem."""
    return f"write about {about}"


def main(kind: str) -> None:
    if kind == "sse":
        app = server.sse_app()
    else:
        app = server.streamable_http_app(json_response=kind == "json", stateless_http=kind == "stateless")
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen(100)
    print(listener.getsockname()[1], flush=True)
    config = uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1, timeout_keep_alive=60)
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main(sys.argv[1])
