"""The official SDK's client, and in memory its server, connected the way that it recommends for tests."""

import os
from contextlib import asynccontextmanager

from calling import MEMORY, environment, main
from mcp import Client, StdioServerParameters

MODES = {"auto": "auto", "modern": "2026-07-28", "legacy": "legacy"}


def make_server():
    from mcp.server.mcpserver import MCPServer

    app = MCPServer("bench", version="1", log_level="CRITICAL")

    def add(a: int, b: int) -> int:
        """Add two integers."""
        return a + b

    async def add_async(a: int, b: int) -> int:
        """Add two integers."""
        return a + b

    app.add_tool(add if os.environ.get("TOOLS") == "sync" else add_async, name="add")
    return app


@asynccontextmanager
async def connect(target, era):
    if target == MEMORY:
        where = make_server()
    elif isinstance(target, list):
        where = StdioServerParameters(command=target[0], args=target[1:], env=environment())
    else:
        where = target
    async with Client(where, mode=MODES[era]) as client:
        await client.list_tools()  # it does so by itself at the first call, to check results against the tool's schema

        def add(a, b):
            return client.call_tool("add", {"a": a, "b": b})

        yield add


def read(result):
    return result.content[0].text, result.structured_content


if __name__ == "__main__":
    main(connect, read)
