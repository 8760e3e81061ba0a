"""A gateway to a mounted server, over every transport and in every pair of eras."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from longshore import Server
from longshore.client import Client
from longshore.telemetry.records import Problem, Record
from serving import serve

from .mounted_server import make_server

T = TypeVar("T")
BEHIND = Path(__file__).parent / "mounted_server.py"
COMMAND = [sys.executable, str(BEHIND)]
WAYS = ("memory", "stdio", "http")
ERAS = ("modern", "legacy")
SECONDS = 40.0
"""The longest that anything is waited for."""


def run(work: Callable[[], Awaitable[T]]) -> T:
    async def within() -> T:
        async with asyncio.timeout(3 * SECONDS):
            return await work()

    return asyncio.run(within())


async def until(what: str, check: Callable[[], Any]) -> Any:
    """Look until it is so."""
    loop = asyncio.get_running_loop()
    end = loop.time() + SECONDS
    while not (found := check()):
        assert loop.time() < end, f"not within {SECONDS:g} s: {what}"
        await asyncio.sleep(0.005)
    return found


async def until_async(what: str, check: Callable[[], Awaitable[Any]]) -> Any:
    loop = asyncio.get_running_loop()
    end = loop.time() + SECONDS
    while not (found := await check()):
        assert loop.time() < end, f"not within {SECONDS:g} s: {what}"
        await asyncio.sleep(0.02)
    return found


def hostile(mode: str, *more: str) -> list[str]:
    """The command of a server that means no good."""
    return [sys.executable, str(BEHIND.with_name("hostile.py")), mode, *more]


def gate_to(target: Any, era: str | None = None, **options: Any) -> Server:
    """A server with another one mounted as `b`, by a client of this era."""
    gate = Server("gate", version="1.0")
    gate.mount(target if era is None else Client(target, era=era, **options), prefix="b")
    return gate


@contextmanager
def behind(way: str) -> Iterator[Any]:
    """What to point a client at."""
    if way == "memory":
        yield make_server()
    elif way == "stdio":
        yield COMMAND
    else:
        with serve(make_server().asgi(rate=0)) as served:
            yield served.url


@asynccontextmanager
async def through(gate: Server, era: str = "modern", **options: Any) -> AsyncIterator[Client]:
    """A client of the server in front. What is mounted there ends with the block."""
    try:
        async with Client(gate, era=era, **options) as client:
            yield client
    finally:
        await close(gate)


async def close(gate: Server) -> None:
    for holder in list(gate.catalog.toolsets.values()):
        await holder.close()


def problems(gate: Server) -> list[str]:
    """What whoever runs it is told, as it comes."""
    told: list[str] = []

    def hear(record: Record) -> None:
        if isinstance(record, Problem):
            told.append(f"{record.level}: {record.text}")

    gate.listen(hear)
    return told
