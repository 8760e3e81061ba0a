"""The server that the tests mount, in this process or as its own: `python mounted_server.py`."""

from __future__ import annotations

import asyncio
import os
from typing import Annotated

from longshore import Ask, Context, Header, Sample, Server, ToolError


def make_server(name: str = "behind") -> Server:
    app = Server(name, version="1.2.3")
    seen = {"begun": 0, "cancelled": 0, "waiting": 0}

    @app.tool(effects="read", title="Sum")
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    @app.tool(effects="read")
    def echo(text: str, ctx: Context) -> str:
        """Say it back, with what came beside the arguments."""
        return f"{text} {ctx.meta.get('example.org/mark', '')}".strip()

    @app.tool
    async def fail() -> str:
        """Fail."""
        raise ToolError("on purpose")

    @app.tool(effects="read")
    async def steps(ctx: Context) -> str:
        """Tell how far it is, and log."""
        for at in range(1, 4):
            await ctx.progress(at, 3, f"step {at}")
            await ctx.warning(f"at {at}")
        return "done"

    @app.tool(timeout=60)
    async def wait(ctx: Context) -> str:
        """Wait until it is cancelled."""
        seen["waiting"] += 1
        await ctx.progress(1)
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            seen["cancelled"] += 1
            raise
        return "never"

    @app.tool(effects="read")
    async def counts() -> dict[str, int]:
        """What has happened here."""
        return {**seen, "pid": os.getpid()}

    @app.tool(effects="write")
    def greet(name: Annotated[str, Ask("What is your name?")]) -> str:
        """Greet a person who is asked for their name."""
        return f"hello {name}"

    @app.tool(replay=True, effects="write")
    async def trip(ctx: Context) -> str:
        """Ask twice, one after the other."""
        seen["begun"] += 1
        where = await ctx.elicit("Where to?", str, key="where")
        how = await ctx.elicit(f"How to {where.value}?", str, key="how")
        return f"to {where.value} by {how.value}"

    @app.tool(replay=True)
    async def rhyme(ctx: Context) -> str:
        """Have the client's model say something, and look where it works."""
        said = (await ctx.ask(tone=Sample("rhyme on sea")))["tone"]
        roots = await ctx.roots()
        return f"{said.text} in {roots[0].uri}"

    @app.tool(effects="write")
    async def die() -> str:
        """End without a word."""
        os.write(2, b"I am going\n")
        os._exit(3)

    @app.tool
    async def grow() -> str:
        """Bring another tool."""

        def grown() -> str:
            """It came later."""
            return "grown"

        app.tool(grown, replace=True)
        return "grew"

    @app.tool
    async def touch(ctx: Context) -> str:
        """Say that the thing has changed."""
        await ctx.resource_changed("test://thing")
        return "touched"

    @app.tool(effects="read")
    async def deploy(
        region: Annotated[str, Header("Region")], ctx: Context, dry: Annotated[bool, Header("Dry")] = False
    ) -> str:
        """Take arguments that headers repeat."""
        return f"{region} {dry}"

    @app.tool
    async def big(size: int) -> str:
        """As much text."""
        return "x" * size

    @app.resource("test://thing", mime_type="text/plain")
    def thing() -> str:
        """Something to read."""
        return "it"

    @app.resource("test://parts/{part}")
    def part(part: str) -> str:
        """A part of it."""
        return f"part {part}"

    @app.prompt
    def poem(about: str) -> str:
        """Ask for a poem."""
        return f"write about {about}"

    @app.completion("poem", "about")
    def topics(text: str) -> list[str]:
        return [topic for topic in ("sea", "seal", "sun") if topic.startswith(text)]

    return app


app = make_server()

if __name__ == "__main__":
    app.run()
