"""Servers of each era that leave the rest to a test, and an authorizer to go with them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from client.http.scripted import SECONDS, Got, ScriptedServer, Wire, result, scripted
from longshore.client import Client
from longshore.client.auth import AuthRequest
from longshore.http_client.response import HttpResponse

MODERN = "2026-07-28"
Take = Callable[[Got, Wire], Awaitable[None]]


def modern(take: Take) -> Take:
    """A modern server: it says who it is, and leaves the rest to the test."""

    async def handler(got: Got, wire: Wire) -> None:
        if got.message.get("method") == "server/discover":
            found = {"supportedVersions": [MODERN], "capabilities": {"tools": {}}, "resultType": "complete"}
            await wire.answer(200, result(got.message, **found))
        else:
            await take(got, wire)

    return handler


def legacy(take: Take, version: str = "2025-11-25", session: str | None = "abc", get: Take | None = None) -> Take:
    """A server of the handshake era: it shakes hands, has a stream or not, and leaves the rest to the test."""

    async def handler(got: Got, wire: Wire) -> None:
        if got.method == "GET":
            await (get or refuse_405)(got, wire)
        elif got.method == "DELETE":
            await wire.answer(200)
        elif got.message.get("method") == "server/discover":
            await wire.answer(400, b"what?", "text/plain")
        elif got.message.get("method") == "initialize":
            found = {
                "protocolVersion": version,
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "s", "version": "1"},
            }
            own = [] if session is None else [("Mcp-Session-Id", session)]
            await wire.answer(200, result(got.message, **found), "application/json", *own)
        elif got.message.get("method") == "notifications/initialized":
            await wire.answer(202)
        else:
            await take(got, wire)

    return handler


async def refuse_405(_: Got, wire: Wire) -> None:
    await wire.answer(405)


async def call_ok(got: Got, wire: Wire) -> None:
    await wire.answer(200, done(got))


def done(got: Got, text: str = "ok") -> Any:
    return result(got.message, content=[{"type": "text", "text": text}], resultType="complete")


@asynccontextmanager
async def attempt(handler: Take, **options: Any) -> AsyncIterator[tuple[Client, ScriptedServer]]:
    async with scripted(handler) as server, Client(server.url, **{"timeout": SECONDS, **options}) as client:
        yield client, server


class Key:
    """An authorizer that has another token each time it is asked for one."""

    def __init__(self, tries: int = 99, problem: Exception | None = None) -> None:
        self.token = 0
        self.tries = tries
        self.problem = problem
        self.challenges: list[tuple[int, str | None]] = []
        self.answers = 0
        self.closed = 0

    async def auth_flow(self, request: AuthRequest) -> AsyncGenerator[list[tuple[str, str]], HttpResponse]:
        assert request.url.startswith("http://127.0.0.1:") and request.method in ("POST", "GET", "DELETE")
        while True:
            response = yield [("Authorization", f"Test {self.token}")]
            self.answers += 1
            if response.status not in (401, 403):
                return
            self.challenges.append((response.status, response.header("www-authenticate")))
            await asyncio.sleep(0)
            if self.problem is not None:
                raise self.problem
            if self.token >= self.tries:
                return
            self.token += 1

    async def close(self) -> None:
        self.closed += 1
