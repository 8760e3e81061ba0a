"""What a connection may hold: its head, its headers, its body, its place. Each at the limit, and one beyond it."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from typing import Any

import pytest

from longshore import Limits, Server
from longshore.telemetry.recorder import Recorder
from longshore.transports.http_server.connection import WAITING_BYTES
from longshore.transports.http_server.connection import Connection as HttpConnection
from longshore.transports.http_server.listener import Listener
from serving import SECONDS, Connection, Exchange, serve

from .bare import Bare, Peer, closes_with, echo, listen, read_to_end

HEAD_BYTES = 1 << 12


def head_of(size: int) -> bytes:
    start, end = b"GET / HTTP/1.1\r\nHost: a\r\nX: ", b"\r\n\r\n"
    return start + b"x" * (size - len(start) - len(end)) + end


@pytest.mark.parametrize("pieces", [1, 2, 10])
@pytest.mark.parametrize(("size", "status"), [(HEAD_BYTES - 1, 200), (HEAD_BYTES, 200), (HEAD_BYTES + 1, 431)])
def test_the_length_of_a_head(size: int, status: int, pieces: int) -> None:
    with listen(echo, header_bytes=HEAD_BYTES) as server:
        data = head_of(size)
        assert len(data) == size
        answer = server.say(b"")
        answer.wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        step = len(data) // pieces + 1
        for start in range(0, len(data), step):
            answer.wire.sendall(data[start : start + step])
            if pieces > 1:
                server.serves()  # so that the piece is read by itself
        assert answer.finish().status == status


def test_a_long_head_behind_a_long_body_is_not_mistaken() -> None:
    body = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % (HEAD_BYTES * 3) + b"x" * (HEAD_BYTES * 3)
    with listen(echo, header_bytes=HEAD_BYTES) as server:
        answer = server.say(body + head_of(HEAD_BYTES)[:-100])
        assert answer.finish().status == 200
        answer.wire.sendall(head_of(HEAD_BYTES)[-100:])
        assert Exchange(answer.wire).finish().status == 200


def test_a_head_without_end() -> None:
    with listen(echo, header_bytes=HEAD_BYTES) as server:
        answer = server.say(b"GET / HTTP/1.1\r\nX: ")
        for _ in range(20):
            answer.wire.sendall(b"x" * 1000)
        assert closes_with(answer, 431)


def test_trailers_without_end() -> None:
    with listen(echo, header_bytes=HEAD_BYTES) as server:
        answer = server.say(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: ")
        try:
            for _ in range(100):
                answer.wire.sendall(b"x" * 1000)
        except OSError:
            pass
        assert closes_with(answer, 400)


@pytest.mark.parametrize(("count", "status"), [(127, 200), (128, 431)])
def test_the_number_of_headers(count: int, status: int) -> None:
    with listen(echo) as server:
        assert server.say(b"GET / HTTP/1.1\r\nHost: a\r\n" + b"X: y\r\n" * count + b"\r\n").finish().status == status


# -- places


def test_the_number_of_connections() -> None:
    with listen(echo, connections=3) as server:
        held = [server.connect() for _ in range(3)]
        assert all(each.send("GET", "/").finish().status == 200 for each in held)
        refused = server.send("GET")
        assert closes_with(refused, 503)
        assert refused.headers["retry-after"] == "1"
        assert all(each.send("GET", "/").finish().status == 200 for each in held)
        held.pop().close()
        eventually_served(server)


def eventually_served(server: Bare) -> None:
    """A connection that was closed frees its place a moment later."""
    deadline = time.monotonic() + SECONDS
    while not server.serves():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_the_number_of_connections_of_one_address() -> None:
    """This machine's own are not counted: a proxy on it is every client."""

    async def come_and_go() -> None:
        listener = Listener(echo, asyncio.get_running_loop(), Limits(peer_connections=2), Recorder())
        first, second = come(listener, "192.0.2.1"), come(listener, "192.0.2.1")
        assert not first._transport.written and not second._transport.written
        assert come(listener, "192.0.2.1")._transport.written.startswith(b"HTTP/1.1 503 ")
        for other in ("192.0.2.2", *["127.0.0.1", "::1", "::ffff:127.0.0.1", None] * 3):
            assert not come(listener, other)._transport.written
        first.connection_lost(None)
        assert not come(listener, "192.0.2.1")._transport.written
        assert come(listener, "192.0.2.1")._transport.written.startswith(b"HTTP/1.1 503 ")
        for connection in list(listener.connections):
            connection.connection_lost(None)  # type: ignore[attr-defined]
        assert listener._peers == {}
        listener.end()

    asyncio.run(come_and_go())


def come(listener: Listener, address: str | None) -> Any:
    connection = HttpConnection(listener)
    connection.connection_made(Peer(address))
    return connection


def test_a_flood_of_connections_does_not_stop_accepting() -> None:
    with listen(echo, connections=5, header_seconds=600) as server:
        held = server.connect()
        crowd = [server.connect() for _ in range(200)]
        assert held.send("GET", "/").finish().status == 200
        for each in crowd:
            each.close()
        eventually_served(server)


# -- bodies


class Unread:
    """An app that does not read until it may."""

    def __init__(self) -> None:
        self.may = threading.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        while not self.may.is_set():
            await asyncio.sleep(0.01)
        await echo(scope, receive, send)


def test_what_the_app_does_not_read_is_not_taken() -> None:
    app, size = Unread(), 20_000_000
    with listen(app, body_seconds=0.2) as server:
        connection = Connection(server.port)
        head = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % size
        sender = threading.Thread(target=lambda: connection.write(head + b"x" * size), daemon=True)
        sender.start()
        paused_for_good(server)
        assert held_bytes(server) <= (1 << 16) + (1 << 18)
        app.may.set()
        answer = Exchange(connection.wire).finish()
        assert len(answer.json["body"]) == size
        sender.join(SECONDS)
        connection.close()


def incoming(server: Bare) -> Any:
    (connection,) = server.listener.connections
    return connection


def held_bytes(server: Bare) -> int:
    return server.look(lambda: len(incoming(server)._exchange.body))


def paused_for_good(server: Bare) -> None:
    """Until reading has stopped, and stays so beyond the deadline for bodies: it is not the peer's fault."""
    deadline = time.monotonic() + SECONDS
    while not server.look(lambda: bool(server.listener.connections) and incoming(server).read_paused):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    time.sleep(0.5)
    assert server.look(lambda: incoming(server).read_paused)


class Counted:
    """Our app, with a count of what it takes of a body."""

    def __init__(self, **limits: Any) -> None:
        self.app = Server("quay", limits=Limits(**limits)).asgi()
        self.begin_post = self.app.begin_post
        self.taken = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def count() -> Any:
            message = await receive()
            self.taken += len(message.get("body", b""))
            return message

        await self.app(scope, count, send)


def test_no_more_than_the_limit_and_one_read_is_taken_of_a_body_without_end() -> None:
    most, one_read = 100_000, 256_000
    outer = Counted(frame_bytes=most)
    with serve(outer, shut=[outer.app], own=True) as server:
        answer = server.send("POST", "/mcp", [("Transfer-Encoding", "chunked")], b"")
        chunk = b"%x\r\n%b\r\n" % (50_000, b"x" * 50_000)
        deadline = time.monotonic() + SECONDS
        while not answer.read(0.0):
            answer.wire.sendall(chunk)
            assert time.monotonic() < deadline
        assert answer.begin().status == 413
        assert server.look(lambda: outer.taken) <= most + WAITING_BYTES + one_read


def test_an_answer_before_the_end_of_the_body_ends_the_connection() -> None:
    async def refuse(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 413, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})

    with listen(refuse) as server:
        answer = server.say(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999\r\n\r\n")
        answer.wire.sendall(b"x" * 1_000_000)
        assert answer.finish().status == 413
        assert answer.headers["connection"] == "close"
        assert read_to_end(answer) == b""


# -- apps that do not do as they should


async def _raise(scope: Any, receive: Any, send: Any) -> None:
    raise LookupError("no such thing")


async def _raise_later(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"9")]})
    raise LookupError("no such thing")


async def _forget(scope: Any, receive: Any, send: Any) -> None:
    await receive()


async def _break_a_header(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"x", b"a\r\nset-cookie: b")]})


async def _say_too_much(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"1")]})
    await send({"type": "http.response.body", "body": b"four"})


@pytest.mark.parametrize("app", [_raise, _raise_later, _forget, _break_a_header, _say_too_much])
def test_an_app_that_fails_is_answered_for(app: Any) -> None:
    with listen(app) as server:
        answer = server.send("GET", "/here")
        assert closes_with(answer, 500)
        assert b"no such thing" not in answer.raw and b"set-cookie" not in answer.raw
        (problem,) = server.problems
        assert problem.startswith("GET /here ")
        server.problems.clear()


def test_a_stream_that_fails_is_not_taken_for_whole() -> None:
    async def fail(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"half", "more_body": True})
        raise LookupError("no such thing")

    with listen(fail) as server:
        answer = server.send("GET").wait_closed()
        assert answer.body == b"half" and not answer.ended
        assert server.problems.pop().startswith("GET / failed")


def test_head_and_no_content_have_no_body() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        status = 204 if scope["path"] == "/none" else 200
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    with listen(app) as server:
        for method, path in (("HEAD", "/"), ("GET", "/none")):
            raw = read_to_end(server.say(f"{method} {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode()))
            assert raw.endswith(b"\r\n\r\n") and raw.count(b"\r\n\r\n") == 1


def test_who_hangs_up_at_any_byte_is_not_missed() -> None:
    """Whatever was read by then, the app hears of it and nothing is reported."""
    app = Flood()
    data = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n{  }"
    with listen(app) as server:
        for length in range(1, len(data) + 1):
            answer = server.say(data[:length])
            if length == len(data):
                answer.begin()
            answer.drop()
        deadline = time.monotonic() + SECONDS
        while server.look(lambda: len(server.listener.connections)) or app.running:
            assert time.monotonic() < deadline, app.running
            time.sleep(0.01)


class Flood:
    """Streams until its client is gone."""

    running = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.running += 1
        try:
            while (message := await receive())["type"] == "http.request" and message["more_body"]:
                pass
            if message["type"] == "http.disconnect":
                return
            gone = asyncio.create_task(receive())
            await send({"type": "http.response.start", "status": 200, "headers": []})
            while not gone.done():
                await send({"type": "http.response.body", "body": b"x", "more_body": True})
                await asyncio.sleep(0.001)
        finally:
            self.running -= 1
