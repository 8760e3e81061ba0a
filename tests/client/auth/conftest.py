"""One authorization server and one MCP server, and a client of both."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeVar

import pytest

from longshore.client import Client
from longshore.client.auth import Authorizer, AuthRequest, MemoryStorage, OAuth
from longshore.client.auth.authorizer import Headers

from .oauth_servers import AuthorizationServer, ProtectedServer, follow, running

T = TypeVar("T")
SECONDS = 60.0


@pytest.fixture
def authority() -> AuthorizationServer:
    return AuthorizationServer()


@pytest.fixture
def server(authority: AuthorizationServer) -> Iterator[ProtectedServer]:
    place = ProtectedServer(authority)
    with running(authority, place):
        yield place


def login(**options: Any) -> OAuth:
    """An OAuth whose person logs in at once."""
    return OAuth(**{"redirect": follow, "storage": MemoryStorage(), **options})


async def first_headers(auth: Authorizer, server: str, on_login: Callable[[bool], None] = lambda _: None) -> Headers:
    """The headers that the first request to a server would get."""
    flow = auth.auth_flow(AuthRequest("POST", server, b"", server, on_login))
    try:
        return await anext(flow)
    finally:
        await flow.aclose()


def run(work: Callable[[], Awaitable[T]]) -> T:
    """Run it, bounded; nothing of it may be left."""

    async def bounded() -> T:
        async with asyncio.timeout(SECONDS):
            result = await work()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left, left
        return result

    result = asyncio.run(bounded())
    gc.collect()
    return result


def talk(server: ProtectedServer, auth: Any, calls: int = 1) -> list[str]:
    """Connect, call the tool so many times one after the other, and hang up."""

    async def work() -> list[str]:
        async with Client(server.mcp, auth=auth, era="2025-11-25", timeout=10, reconnect=False) as client:
            return [(await client.call_tool("hello")).text for _ in range(calls)]

    return run(work)


def tokens_sent(server: ProtectedServer) -> list[str]:
    """The different credentials that the MCP server was shown, in order."""
    return list(dict.fromkeys(each.headers.get("authorization", "") for each in server.asked if each.path == "/mcp"))


def age(storage: MemoryStorage, seconds: float) -> None:
    """Let time pass for the stored tokens."""
    for key, record in list(storage._records.items()):
        if key.startswith("tokens ") and "expires" in record:
            storage.write(key, {**record, **{name: record[name] - seconds for name in ("expires", "renew")}})
