"""The official client, connected over HTTP to a Longshore server on a thread, and a connection that can be cut."""

from __future__ import annotations

import runpy
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client import session as client_session
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from serving import serve

from .peer import HANDSHAKES, HERE, LEGACY, PATIENCE


@asynccontextmanager
async def connect(mode: str = "auto", **options: Any) -> AsyncIterator[Client]:
    """A client of a server of its own, over streamable HTTP."""
    app = runpy.run_path(str(HERE / "server.py"))["app"]
    with serve(app.asgi()) as server:
        async with connect_to(server.url, mode, **options) as client:
            yield client


@asynccontextmanager
async def connect_old(mode: str = "2024-11-05", **options: Any) -> AsyncIterator[Client]:
    """A client of a server of its own, over HTTP+SSE as it was in 2024."""
    app = runpy.run_path(str(HERE / "server.py"))["app"]
    with serve(app.asgi()) as server, offering(mode):
        transport = sse_client(server.url.replace("/mcp", "/sse"))
        async with Client(transport, mode=LEGACY, read_timeout_seconds=PATIENCE, **options) as client:
            yield client


@asynccontextmanager
async def connect_to(
    url: str, mode: str = "auto", *, wire: httpx2.AsyncBaseTransport | None = None, keep: bool = False, **options: Any
) -> AsyncIterator[Client]:
    """A client of a server that runs. `keep` leaves the session there when the client goes."""
    with offering(mode):
        async with httpx2.AsyncClient(transport=wire or httpx2.AsyncHTTPTransport(), timeout=PATIENCE) as http:
            transport = streamable_http_client(url, http_client=http, terminate_on_close=not keep)
            era = LEGACY if mode in HANDSHAKES else mode
            async with Client(transport, mode=era, read_timeout_seconds=PATIENCE, **options) as client:
                yield client


def offering(mode: str) -> Any:
    """The client offers this revision in its handshake, if it has one: by itself it offers the newest."""
    patch = pytest.MonkeyPatch()
    if mode in HANDSHAKES:
        patch.setattr(client_session, "LATEST_HANDSHAKE_VERSION", mode)
    return _Undo(patch)


class _Undo:
    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._patch = patch

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        self._patch.undo()


class Wire(httpx2.AsyncBaseTransport):
    """Keeps what was asked, and cuts the next streams of answers to POSTs after so many bytes each."""

    def __init__(self, *cuts: int) -> None:
        self._inner = httpx2.AsyncHTTPTransport()
        self.cuts = list(cuts)
        self.asked: list[tuple[str, httpx2.Headers]] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.asked.append((request.method, request.headers))
        response = await self._inner.handle_async_request(request)
        answers = request.method == "POST" or "last-event-id" in request.headers
        if self.cuts and answers and "event-stream" in response.headers.get("content-type", ""):
            assert isinstance(response.stream, httpx2.AsyncByteStream)
            response.stream = _Cut(response.stream, self.cuts.pop(0))
        return response

    def resumed(self) -> list[str]:
        """The events that the client came back for."""
        return [headers["last-event-id"] for method, headers in self.asked if "last-event-id" in headers]

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Cut(httpx2.AsyncByteStream):
    def __init__(self, inner: httpx2.AsyncByteStream, after: int) -> None:
        self._inner, self._left = inner, after

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._inner:
            yield chunk[: self._left]
            self._left -= len(chunk)
            if self._left <= 0:
                await self._inner.aclose()
                raise httpx2.ReadError("the wire is cut")

    async def aclose(self) -> None:
        await self._inner.aclose()
