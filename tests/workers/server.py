"""Processes that serve together. Run as a script it is their nursery: for each line of settings it forks one.

What takes long to start, the interpreter and its imports, is there before the fork, so that a test can afford to kill a
server twenty times. The tools do what the tests tell them by calling other tools of the same process: `walk` takes a
step whenever `allow` lets it, `befell` says what became of calls.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import nullcontext
from typing import Annotated, Any

import redis.asyncio  # noqa: F401
import uvicorn
import uvicorn.lifespan.on
import uvicorn.protocols.http.httptools_impl

from longshore import Ask, Context, Limits, Sample, Server, Toolset, tool
from longshore.stores import redis as _redis
from longshore.stores import sqlite
from longshore.transports.http import app as _app  # noqa: F401
from longshore.transports.http import cluster


class Extra(Toolset):
    """Comes and goes."""

    @tool(run="inline")
    def bonus(self) -> str:
        """There since just now."""
        return "bonus"


def make(limits: Limits | None = None) -> Server:
    app = Server("workers", version="1", limits=limits)
    befell_here: Counter[str] = Counter()
    gates: defaultdict[str, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(0))

    @app.tool(run="inline", effects="read")
    def echo(text: str = "") -> str:
        """Say it again."""
        return text

    @app.tool(run="inline", effects="read")
    def process() -> str:
        """Which process this is."""
        return str(os.getpid())

    @app.tool
    async def keep(key: str, value: str, ctx: Context) -> str:
        """Keep a value in the session."""
        await ctx.session.state.set(key, value)
        return str(os.getpid())

    @app.tool
    def kept(key: str, ctx: Context) -> str:
        """What the session keeps; on a thread."""
        return str(ctx.session.state.get(key, "nothing"))

    @app.tool(timeout=False)
    async def walk(name: str, to: int, ctx: Context) -> str:
        """Tell of each step, and take it when it is allowed."""
        befell_here[f"{name} began"] += 1
        try:
            for n in range(1, to + 1):
                await gates[name].acquire()
                await ctx.progress(n, to)
            await gates[name].acquire()
        except asyncio.CancelledError:
            befell_here[f"{name} cancelled"] += 1
            raise
        befell_here[f"{name} arrived"] += 1
        return f"{name} walked {to}"

    @app.tool(run="inline")
    def allow(name: str, steps: int = 1) -> str:
        """Let a walk go on."""
        for _ in range(steps):
            gates[name].release()
        return "allowed"

    @app.tool(run="inline", effects="read")
    def befell(what: str) -> str:
        """How often something happened."""
        return str(befell_here[what])

    @app.tool(run="inline")
    def note_down(level: str, text: str, ctx: Context) -> str:
        """Send a log message."""
        ctx.log(level, text)
        return "noted"

    @app.tool(run="inline")
    def touch(uri: str, ctx: Context) -> str:
        """Say that a resource has changed."""
        ctx.resource_changed(uri)
        return "touched"

    @app.tool(run="inline")
    def touch_many(uri: str, first: int, last: int, ctx: Context) -> str:
        """Say that parts of a resource have changed, one after the other."""
        for n in range(first, last + 1):
            ctx.resource_changed(f"{uri}/{n}")
        return "touched"

    @app.tool(run="inline")
    def grow() -> str:
        """Add a toolset."""
        app.add_toolset(Extra(), replace=True)
        return "grown"

    @app.tool
    async def refund(order: str, ok: Annotated[bool, Ask("Refund {order}?")]) -> str:
        """Ask first. Doing it twice would not be the same."""
        befell_here[f"{order} refunded"] += 1
        return f"{order}: {ok}"

    @app.tool
    async def title(found: Annotated[str, Ask(Sample("A title", max_tokens=5))]) -> str:
        """Have the client's model find one."""
        return found

    @app.tool(effects="read")
    async def where(ctx: Context) -> str:
        """Which folders it may touch."""
        return " ".join(await ctx.folders())

    @app.tool(run="inline", effects="read")
    def inside() -> dict[str, int]:
        """What this process holds."""
        engine = app.engine
        return {
            "tasks": len(asyncio.all_tasks()),
            "files": len(os.listdir("/proc/self/fd")),
            "calls": len(engine.executor.live),
            "links": len(engine.subscriptions.links),
        }

    @app.resource("note://{+name}")
    def note(name: str) -> str:
        """A note."""
        return f"note {name}"

    return app


async def serve(settings: dict[str, Any], say: Callable[[int], None], lifespan: bool) -> None:
    app = make(Limits(**settings.pop("limits", {})))
    asgi = app.asgi(**settings)
    listening = socket.create_server(("127.0.0.1", 0))
    mode = "on" if lifespan else "off"
    config = uvicorn.Config(
        asgi, http="httptools", lifespan=mode, log_level="error", access_log=False, timeout_keep_alive=60
    )  # type: ignore[arg-type]
    server = uvicorn.Server(config)

    async def stop() -> None:
        await asgi.shut(asgi.config.http.grace)
        server.should_exit = True

    stopping: list[Any] = []
    loop = asyncio.get_running_loop()
    server.capture_signals = nullcontext  # type: ignore[assignment, method-assign]
    loop.add_signal_handler(signal.SIGTERM, lambda: stopping.append(loop.create_task(stop())))
    serving = loop.create_task(server.serve(sockets=[listening]))
    while not server.started and not serving.done():
        await asyncio.sleep(0.002)
    if server.started:
        say(listening.getsockname()[1])
    await serving


def begin(order: dict[str, Any]) -> None:
    """Be a server, in a process that was just forked."""
    log = os.open(order["log"], os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    os.dup2(log, 2)
    os.close(log)
    out = os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    os.close(nothing)

    def say(port: int) -> None:
        os.write(out, b"%d %d %d\n" % (order["number"], os.getpid(), port))
        os.close(out)

    cluster.BEAT_SECONDS, cluster.DEAD_SECONDS = order.get("beat") or (cluster.BEAT_SECONDS, cluster.DEAD_SECONDS)
    if order.get("patience"):
        sqlite.SqliteStore.__init__.__kwdefaults__["patience"] = order["patience"]
    _redis.SECONDS = order.get("redis_seconds", _redis.SECONDS)
    asyncio.run(serve(order["settings"], say, order.get("lifespan", True)))


def nurse() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody has to wait for them
    for line in iter(sys.stdin.readline, ""):
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            try:
                begin(json.loads(line))
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)


if __name__ == "__main__":
    nurse()
else:
    app = make()  # for `longshore serve`
