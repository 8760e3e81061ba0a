"""The server that these tests talk to, fresh for each of them, and where its tools leave word of what befell them."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import pytest

from longshore import Ask, Context, Header, Limits, Sample, Server, ToolError, Toolset, tool
from longshore.transports.http.app import HttpApp
from serving import Served, serve

BOTH = pytest.mark.parametrize("server_kind", ["uvicorn", "longshore"], indirect=True)
UVICORN = pytest.mark.parametrize("server_kind", ["uvicorn"], indirect=True)
"""For a test that has no server, or whose server is not ours in either case."""


class Extra(Toolset):
    """Comes and goes."""

    @tool(run="inline")
    def bonus(self) -> str:
        """There since just now."""
        return "bonus"


class Rig:
    """A server with its app, and what its tools did."""

    def __init__(self, limits: Limits | None = None, **settings: Any) -> None:
        self.server = Server("rig", version="1.2.3", limits=limits)
        self.befell: Counter[str] = Counter()
        self.gate: asyncio.Event = asyncio.Event()
        self.step: asyncio.Event = asyncio.Event()
        """Lets `steps` go on by one."""
        self.free = threading.Event()
        """Lets `block` go on, which holds a thread."""
        _declare(self)
        self.app: HttpApp = self.server.asgi(**settings)

    @property
    def executor(self) -> Any:
        return self.server.engine.executor

    @property
    def links(self) -> set[Any]:
        return self.server.engine.subscriptions.links

    @property
    def listens(self) -> set[Any]:
        return self.server.engine.subscriptions.listens

    @property
    def sessions(self) -> dict[str, Any]:
        return self.app.sessions.loaded

    def stored(self) -> int:
        """How many sessions the store holds."""
        family = self.app.store._families.get("session:")  # type: ignore[attr-defined]
        return 0 if family is None else len(family)


def _declare(rig: Rig) -> None:
    app = rig.server

    @app.tool(run="inline")
    def echo(text: str = "") -> str:
        """Say it again."""
        return text

    @app.tool
    async def later(text: str = "") -> str:
        """Say it again, a moment later."""
        await asyncio.sleep(0)
        return text

    @app.tool
    def threaded(text: str = "") -> str:
        """Say it from a thread."""
        return text

    @app.tool
    async def count(to: int, ctx: Context) -> str:
        """Tell how far it is."""
        for n in range(1, to + 1):
            await ctx.progress(n, to)
            await asyncio.sleep(0)
        return f"counted to {to}"

    @app.tool(timeout=False)
    async def walk(to: int, ctx: Context) -> str:
        """Tell how far it is, one step each time that it may go on."""
        for n in range(1, to + 1):
            await ctx.progress(n, to)
            rig.befell["walked"] += 1
            await rig.step.wait()
            rig.step.clear()
        return f"walked to {to}"

    @app.tool(timeout=False)
    async def chatter(messages: int, size: int, ctx: Context) -> str:
        """Log a lot, wait for the gate, and say one thing more."""
        for n in range(messages):
            ctx.info(f"{n} {'x' * size}")
        rig.befell["chattered"] += 1
        await rig.gate.wait()
        ctx.info("last")
        await rig.step.wait()
        return "chattered"

    @app.tool(run="inline")
    def count_inline(to: int, ctx: Context) -> str:
        """Tell how far it is, all at once."""
        for n in range(1, to + 1):
            ctx.progress(n, to)
        return f"counted to {to}"

    @app.tool(timeout=False)
    async def hold(ctx: Context) -> str:
        """Wait for the gate."""
        rig.befell["held"] += 1
        try:
            await rig.gate.wait()
        except asyncio.CancelledError:
            rig.befell["cancelled"] += 1
            raise
        return "released"

    @app.tool(timeout=False)
    async def hold_loudly(ctx: Context) -> str:
        """Wait for the gate, and say so."""
        await ctx.progress(1)
        return await hold(ctx)

    @app.tool(timeout=False)
    def spin(ctx: Context) -> str:
        """Work on a thread until nobody wants it any more."""
        rig.befell["spun"] += 1
        while not ctx.cancelled:
            threading.Event().wait(0.001)
        rig.befell["cancelled"] += 1
        return "too late"

    @app.tool(timeout=False)
    async def poll(ctx: Context, times: int = 1, retry: float = 0.01) -> str:
        """Send the client away, wait for the gate, and have it come back for the rest."""
        for n in range(1, times + 1):
            await ctx.progress(n, times)
            await ctx.close_stream(retry)
            rig.befell["closed"] += 1
            await rig.step.wait()
            rig.step.clear()
        return "polled"

    @app.tool
    async def refund(order: str, ok: Annotated[bool, Ask("Refund {order}?")]) -> str:
        """Ask first."""
        return f"{order}: {ok}"

    @app.tool
    async def title(found: Annotated[str, Ask(Sample("A title", max_tokens=5))]) -> str:
        """Have the client's model find one."""
        return found

    @app.tool(run="inline")
    def place(
        region: Annotated[str, Header("Region")] = "",
        floor: Annotated[int, Header("Floor")] = 0,
        roof: Annotated[bool, Header("Roof")] = False,
    ) -> str:
        """Arguments that headers repeat."""
        rig.befell["placed"] += 1
        return f"{region} {floor} {roof}"

    @app.tool(run="inline")
    def fail() -> str:
        """Fail."""
        raise ToolError("out of stock")

    @app.tool(run="inline")
    def touch(uri: str, ctx: Context) -> str:
        """Say that a resource has changed."""
        ctx.resource_changed(uri)
        return "touched"

    @app.tool(run="inline")
    def grow() -> str:
        """Add a toolset."""
        app.add_toolset(Extra())
        return "grown"

    @app.tool(run="inline")
    def shrink() -> str:
        """Take it away."""
        app.remove_toolset("extra")
        return "shrunk"

    @app.tool(run="inline", scopes=["admin"])
    def guarded() -> str:
        """For some only."""
        return "opened"

    @app.resource("note://{name}")
    def note(name: str) -> str:
        """A note."""
        return f"note {name}"

    @app.prompt
    def greet(name: str) -> str:
        """Greet."""
        return f"Greet {name}."


@contextmanager
def rigged(limits: Limits | None = None, **settings: Any) -> Iterator[tuple[Rig, Served]]:
    """A rig that is served, with the rates off unless they are set."""
    rig = Rig(limits, **{"rate": 0, **settings})
    with serve(rig.app) as server:
        yield rig, server
        server.until(lambda: not rig.executor.live, "the end of every call")
