"""Longshore's client; in memory the argument of TOOLS says how its server's tool runs, as in servers/."""

import os
from contextlib import asynccontextmanager

from calling import MEMORY, environment, main

from longshore.client import Client


def make_server():
    from longshore import Server

    app = Server("bench", version="1")

    def add(a: int, b: int) -> int:
        """Add two integers."""
        return a + b

    async def add_async(a: int, b: int) -> int:
        """Add two integers."""
        return a + b

    run = os.environ.get("TOOLS", "async")
    if run == "async":
        app.tool(name="add")(add_async)
    else:
        app.tool(run=run)(add)
    return app


@asynccontextmanager
async def connect(target, era):
    where = make_server() if target == MEMORY else target
    env = environment() if isinstance(target, list) else None
    async with Client(where, era=era, env=env) as client:
        await client.list_tools()  # so that results are checked against the tool's schema

        def add(a, b):
            return client.call_tool("add", {"a": a, "b": b})

        yield add


def read(result):
    return result.text, result.structured


if __name__ == "__main__":
    main(connect, read)
