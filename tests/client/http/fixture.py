"""The server that the client's HTTP tests drive, one of its own for each test."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

from longshore import Ask, Context, Sample, Server
from serving import Served, serve

HOST = "behind.test"
"""The host that clients name that come through a relay, which has another port."""
ERAS = ("modern", "2025-03-26", "2025-11-25")


class Counter:
    """Events on the server, for the test's thread to read."""

    def __init__(self) -> None:
        self.calls = 0
        self.started = 0
        self.cancelled = 0


def make_server(seen: Counter) -> Server:
    app = Server("fixture", version="1.0", instructions="Try it.")

    @app.tool(effects="read")
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        seen.calls += 1
        return a + b

    @app.tool(effects="write")
    async def count() -> int:
        """Count calls: not one that may be repeated."""
        seen.calls += 1
        return seen.calls

    @app.tool
    async def echo(text: str) -> str:
        """Say it back."""
        return text

    @app.tool(effects="read")
    async def steps(ctx: Context, n: int = 5) -> str:
        """Tell how far it is."""
        for at in range(n):
            await ctx.progress(at, n, f"step {at}")
        return "done"

    @app.tool(timeout=60)
    async def wait(ctx: Context) -> str:
        """Wait until it is cancelled."""
        seen.started += 1
        await ctx.progress(1)
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            seen.cancelled += 1
            raise
        return "never"

    @app.tool(effects="read", timeout=60)
    async def broken_off(ctx: Context) -> str:
        """Close the stream, and answer when it is visited again."""
        seen.calls += 1
        await ctx.progress(1)
        await ctx.close_stream(retry=0.1)
        await asyncio.sleep(0.2)
        await ctx.progress(2)
        return "taken up again"

    @app.tool
    def greet(name: Annotated[str, Ask("What is your name?")]) -> str:
        """Greet a person who is asked for their name."""
        return f"hello {name}"

    @app.tool(replay=True)
    async def rhyme(ctx: Context) -> str:
        """Have the client's model say something."""
        answer = (await ctx.ask(tone=Sample("say something")))["tone"]
        return str(answer.text)

    @app.tool
    async def change(ctx: Context) -> str:
        """Change the resource, and the list of tools."""
        app.resource_changed("test://thing")

        def added() -> str:
            """Another tool."""
            return "x"

        app.tool(added, replace=True)
        return "changed"

    @app.resource("test://thing")
    def thing() -> str:
        """Something to read."""
        return "it"

    @app.prompt
    def poem(about: str) -> str:
        """Ask for a poem."""
        return f"write about {about}"

    return app


@contextmanager
def served(*, own: bool = False, seen: Counter | None = None, **settings: Any) -> Iterator[tuple[Served, Counter]]:
    counter = seen or Counter()
    app = make_server(counter)
    asgi = app.asgi(**{"rate": 0, "hosts": [HOST], **settings})
    with serve(asgi, own=own) as server:
        yield server, counter
