"""The real app behind our own listener, where a POST may be answered without a task: what only that can get wrong."""

from __future__ import annotations

import asyncio
import gc
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import pytest

from longshore import Limits, Server
from longshore.transports.http.pending import PendingResponse
from posting import call, encode, modern, modern_headers
from serving import Exchange, Served, request_head, serve

from .bare import closes_with, listen, read_to_end

SET: ContextVar[str] = ContextVar("SET", default="nothing")


@contextmanager
def quay(**limits: Any) -> Iterator[Served]:
    app = Server("quay", limits=Limits(**limits))

    @app.tool
    async def later() -> str:
        await asyncio.sleep(0)
        return "later"

    @app.tool(run="inline")
    def large(size: int) -> str:
        return "x" * size

    with serve(app.asgi(), own=True) as server:
        yield server


def posted(server: Served, message: dict[str, Any], *headers: tuple[str, str]) -> tuple[bytes, bytes]:
    """The head and the body of a request."""
    body = encode(message)
    return request_head(server.port, "POST", "/mcp", [*modern_headers(message), *headers], body), body


@pytest.mark.parametrize("size", [1, 10_000_000])
def test_nothing_is_answered_after_the_last_answer(size: int) -> None:
    """Also if that is still on its way, so that more could be written behind it."""
    with quay() as server:
        connection = server.connect()
        head, body = posted(server, modern(call("large", {"size": size})), ("Connection", "close"))
        connection.write(head + body + b"GET /health HTTP/1.1\r\n\r\n")
        assert re.findall(rb"HTTP/1.1 (\d+)", read_to_end(Exchange(connection.wire))) == [b"200"]


def test_an_idle_connection_keeps_nothing_of_its_last_answer() -> None:
    others = waiters()  # of tests before
    with quay() as server:
        connection = server.connect()
        head, body = posted(server, modern(call("later")))
        connection.write(head + body)
        assert Exchange(connection.wire).finish().json["result"]["content"][0]["text"] == "later"
        server.until(lambda: all(each in others for each in waiters()), "the end of the call")


def waiters() -> list[Any]:
    gc.collect()
    return [each for each in gc.get_objects() if isinstance(each, PendingResponse)]


def test_what_a_request_sets_is_not_seen_by_the_one_sent_after_it() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen = SET.get().encode()
        SET.set(scope["path"])
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(seen))]})
        await send({"type": "http.response.body", "body": seen})

    with listen(app) as server:
        connection = server.connect()
        for path in ("/one", "/two"):
            assert connection.send("GET", path).finish().body == b"nothing"


@pytest.mark.parametrize("early", [True, False])
def test_continue_is_said_before_the_answer_or_not_at_all(early: bool) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        if early:
            await receive()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"event", "more_body": True})
        await receive() if not early else None
        await send({"type": "http.response.body", "body": b""})

    with listen(app) as server:
        raw = read_to_end(server.say(b"GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n"))
        assert re.findall(rb"HTTP/1.1 (\d+)", raw) == ([b"100", b"200"] if early else [b"200"])
        assert raw.endswith(b"\r\n\r\n5\r\nevent\r\n0\r\n\r\n")


def test_a_failure_before_there_is_a_task_is_reported_and_answered() -> None:
    class Failing:
        def begin_post(self, exchange: Any) -> None:
            raise ValueError("not so")

        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            raise AssertionError("it is not called")

    with listen(Failing()) as server:
        assert closes_with(server.send("POST", "/mcp", body=b"{}"), 500)
        [problem] = server.problems
        assert problem.startswith("POST /mcp failed") and "ValueError: not so" in problem
        server.problems.clear()
