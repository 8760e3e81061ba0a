"""The small server on the official SDK; the argument says whether its tools are `sync` or `async`.

Text tools declare structured_output=False: otherwise the SDK would send their text twice.
"""

import os
import sys

from mcp.server.mcpserver import MCPServer

app = MCPServer("bench", version="1")


def add(a: int, b: int) -> int:
    """Add two integers."""
    return a + b


def blob(size: int) -> str:
    """Return a text of this size."""
    return "x" * size


def length(text: str) -> str:
    """Return the length of a text."""
    return str(len(text))


async def add_async(a: int, b: int) -> int:
    """Add two integers."""
    return a + b


async def blob_async(size: int) -> str:
    """Return a text of this size."""
    return "x" * size


async def length_async(text: str) -> str:
    """Return the length of a text."""
    return str(len(text))


def search(query: str, limit: int = 10, tags: list[str] | None = None) -> str:
    return query


sums, blobs, lengths = {"sync": (add, blob, length), "async": (add_async, blob_async, length_async)}[sys.argv[1]]
app.add_tool(sums, name="add")
app.add_tool(blobs, name="blob", structured_output=False)
app.add_tool(lengths, name="length", structured_output=False)
for number in range(int(os.environ.get("NTOOLS", "0"))):
    description = f"Search collection {number} and return the rows that match."
    app.add_tool(search, name=f"tool_{number:04d}", description=description, structured_output=False)

if __name__ == "__main__":
    app.run()
