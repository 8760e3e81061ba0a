"""FastMCP's client, in memory with its own server."""

from contextlib import asynccontextmanager

from calling import MEMORY, main
from fastmcp import Client, FastMCP


def make_server():
    app = FastMCP("bench", version="1")

    @app.tool
    async def add(a: int, b: int) -> int:
        """Add two integers."""
        return a + b

    return app


@asynccontextmanager
async def connect(target, era):
    async with Client(make_server() if target == MEMORY else target) as client:
        await client.list_tools()

        def add(a, b):
            return client.call_tool("add", {"a": a, "b": b})

        yield add


def read(result):
    return result.content[0].text, result.structured_content


if __name__ == "__main__":
    main(connect, read)
