"""The small server on FastMCP; the argument says whether its tools are `sync` or `async`.

Text tools declare no output schema: otherwise FastMCP would send their text twice. The banner is off.
"""

import os
import sys

from fastmcp import FastMCP

app = FastMCP("bench", version="1")


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
app.tool(sums, name="add")
app.tool(blobs, name="blob", output_schema=None)
app.tool(lengths, name="length", output_schema=None)
for number in range(int(os.environ.get("NTOOLS", "0"))):
    description = f"Search collection {number} and return the rows that match."
    app.tool(search, name=f"tool_{number:04d}", description=description, output_schema=None)

if __name__ == "__main__":
    app.run(show_banner=False)
