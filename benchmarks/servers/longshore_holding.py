"""Calls that stay until something ends them, on Longshore: on stdio if it is run, over HTTP by `longshore serve`."""

import asyncio
import subprocess
import sys
import time

from longshore import Context, Server

IGNORE_SIGTERM = "import signal, time; signal.signal(15, signal.SIG_IGN); print(flush=True); time.sleep(60)"
UPDATED = "note://updated"

app = Server("holding", version="1")
children: list[int] = []
cancelled: dict[str, float] = {}


@app.tool(timeout=False)
async def wait(name: str = "") -> str:
    """Wait for ever, and note when it was cancelled."""
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        cancelled[name] = time.monotonic()
        raise
    return ""


@app.tool(timeout=False)
def sleep() -> str:
    """Hold a thread."""
    time.sleep(60)
    return ""


@app.tool(timeout=False)
def stubborn() -> str:
    """Wait for a child process that ignores SIGTERM, which it says."""
    child = subprocess.Popen([sys.executable, "-c", IGNORE_SIGTERM], stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    children.append(child.pid)
    child.wait()
    return ""


@app.tool(run="inline")
def state() -> dict[str, list[int] | int | dict[str, float]]:
    """How many calls run, which children ignore SIGTERM, and when calls were cancelled (CLOCK_MONOTONIC)."""
    return {"running": app.engine.executor.running, "children": children, "cancelled": cancelled}


@app.tool(run="inline")
def touch(ctx: Context) -> str:
    """Say that a resource has changed."""
    ctx.resource_changed(UPDATED)
    return "touched"


@app.tool(run="inline")
def add(a: int, b: int) -> int:
    """Add two integers."""
    return a + b


@app.resource(UPDATED)
def updated() -> str:
    """What changes."""
    return "updated"


if __name__ == "__main__":
    app.run()
