"""One tool on Longshore, for `longshore serve --http`. TOOLS says how it runs: `inline` or `async`."""

import os

from longshore import Server

app = Server("bench", version="1")


def add(a: int, b: int) -> int:
    """Add two integers."""
    return a + b


async def add_async(a: int, b: int) -> int:
    """Add two integers."""
    return a + b


if os.environ.get("TOOLS") == "async":
    app.tool(name="add")(add_async)
else:
    app.tool(run="inline")(add)
