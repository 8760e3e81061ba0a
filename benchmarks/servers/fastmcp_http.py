"""One tool on FastMCP, as an ASGI app that answers in JSON. It serves both eras; legacy sessions are kept.

Its tool is async, which is the faster kind there.
"""

from fastmcp import FastMCP

server = FastMCP("bench", version="1")


@server.tool
async def add(a: int, b: int) -> int:
    """Add two integers."""
    return a + b


app = server.http_app(json_response=True)
