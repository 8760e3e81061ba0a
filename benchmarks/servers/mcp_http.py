"""One tool on the official SDK, as an ASGI app that answers in JSON. It serves both eras; legacy sessions are kept.

Its tool is async, which is the faster kind there, and its log is off: by default it writes a line a request.
"""

import os

from mcp.server.mcpserver import MCPServer

server = MCPServer("bench", version="1", log_level="CRITICAL")


@server.tool()
async def add(a: int, b: int) -> int:
    """Add two integers."""
    return a + b


SESSION_TTL = float(os.environ.get("SESSION_TTL", "1800"))
MOST_SESSIONS = 20_000  # the default would refuse the last of those that the figure opens
app = server.streamable_http_app(json_response=True, session_idle_timeout=SESSION_TTL, max_sessions=MOST_SESSIONS)
