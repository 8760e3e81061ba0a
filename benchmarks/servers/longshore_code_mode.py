"""A server in code form with one small tool to call from code."""

from longshore import Server

app = Server("bench", version="1", catalog="code")


@app.tool(run="inline", effects="read")
def add(a: int, b: int) -> int:
    """Add two integers."""
    return a + b
