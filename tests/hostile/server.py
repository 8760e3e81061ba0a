"""The server that the hostile tests attack."""

from __future__ import annotations

import asyncio
from typing import Any

from longshore import Server

app = Server("victim", version="1")
gates: dict[str, asyncio.Event] = {}
SECRET = "AKIAIOSFODNN7EXAMPLE"


def gate(key: str) -> asyncio.Event:
    return gates.setdefault(key, asyncio.Event())


@app.tool(run="inline")
def echo(text: str = "") -> str:
    """Say it again."""
    return text


@app.tool(run="inline")
def length(text: str) -> int:
    """How long it is."""
    return len(text)


@app.tool
async def hold(key: str) -> str:
    """Wait for `release`."""
    await gate(key).wait()
    return key


@app.tool
async def release(key: str) -> str:
    """Let a `hold` go on."""
    gate(key).set()
    return "ok"


@app.tool
async def crash() -> str:
    """Raise what nobody should see, on the loop."""
    raise RuntimeError(f"secret={SECRET}")


@app.tool
def crash_on_thread() -> str:
    """The same on a thread."""
    raise RuntimeError(f"secret={SECRET}")


@app.tool(run="inline")
def crash_inline() -> str:
    """The same inline, with a cause and notes."""
    try:
        raise KeyError(SECRET)
    except KeyError as cause:
        problem = ValueError(f"secret={SECRET}")
        problem.add_note(SECRET)
        raise problem from cause


@app.tool(run="inline")
def quit_process() -> str:
    """Try to end the process."""
    raise SystemExit(f"secret={SECRET}")


@app.tool
async def interrupt() -> str:
    """Raise what is no Exception."""
    raise KeyboardInterrupt(f"secret={SECRET}")


@app.tool
def wrong_type() -> int:
    """Return what it did not promise."""
    return "secret=" + SECRET  # type: ignore[return-value]


@app.tool
def deep(levels: int) -> Any:
    """Return what nests deeply."""
    value: Any = []
    for _ in range(levels):
        value = [value]
    return value


@app.tool
def odd() -> Any:
    """Return what JSON has no word for."""
    return object()
