"""Peers that take their time are cut off at the named deadlines, and nobody else notices them."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from serving import SECONDS, Exchange, eventually

from .bare import closes_with, echo, listen, read_to_end

LONG = 600.0
"""A deadline that is not the one of the test."""
PATIENT = {"header_seconds": LONG, "body_seconds": LONG, "idle_seconds": LONG, "stall_seconds": LONG}
SHORT = 0.2
HEAD = 1.0
"""Long enough for a request that is made as it should be, on a machine that has other things to do."""


@pytest.mark.parametrize("said", [b"", b"G", b"GET / HTTP/1.1\r\n", b"GET / HTTP/1.1\r\nHost: a\r\nX: "])
def test_a_head_that_does_not_end(said: bytes) -> None:
    with listen(echo, **{**PATIENT, "header_seconds": HEAD}) as server:
        answer = server.say(said)
        assert server.serves()
        assert closes_with(answer, 408)


def test_a_head_that_goes_on_and_on() -> None:
    """Each byte is progress, and the head is not done for it."""
    with listen(echo, **{**PATIENT, "header_seconds": HEAD}) as server:
        answer = server.say(b"GET / HTTP/1.1\r\nX: ")
        while not answer.read(0.01):
            answer.wire.sendall(b"x")
        assert closes_with(answer, 408)


def test_the_second_head_of_a_connection() -> None:
    with listen(echo, **{**PATIENT, "header_seconds": HEAD}) as server:
        first = server.send("GET").finish()
        second = Exchange(first.wire)
        second.wire.sendall(b"GET / HT")
        assert closes_with(second, 408)


@pytest.mark.parametrize("framing", [b"Content-Length: 100", b"Transfer-Encoding: chunked"])
def test_a_body_that_stops(framing: bytes) -> None:
    with listen(echo, **{**PATIENT, "body_seconds": SHORT}) as server:
        answer = server.say(b"POST / HTTP/1.1\r\nHost: a\r\n" + framing + b"\r\n\r\n5\r\nab")
        assert server.serves()
        assert closes_with(answer, 408)


def test_a_body_that_trickles() -> None:
    """Each byte is progress, and not enough of it."""
    with listen(echo, **{**PATIENT, "body_seconds": HEAD}) as server:
        answer = server.say(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n")
        while not answer.read(0.01):
            answer.wire.sendall(b"x")
        assert closes_with(answer, 408)


@pytest.mark.parametrize(("size", "cut"), [(15, True), (16, False), (17, False)])
def test_a_body_that_is_slow_but_moves_is_not_cut(size: int, cut: bool) -> None:
    """The time is ours here: each piece comes just before its deadline."""
    with listen(echo, **PATIENT, body_bytes=16) as server:
        server.look(server.listener.end)
        answer = server.say(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999\r\n\r\n")
        (connection,) = eventually(lambda: server.look(lambda: [*server.listener.connections]), "the connection")
        eventually(lambda: server.look(lambda: connection.place()[0] == "body"), "the head")
        now, before = int(server.listener.now), server.look(lambda: connection._received)
        server.look(lambda: connection.check(now))
        for n in range(1, 2 if cut else 6):
            answer.wire.sendall(b"x" * size)
            eventually(lambda n=n: server.look(lambda: connection._received) == before + n * size, "the piece")
            server.look(lambda n=n: connection.check(now + n * LONG))
        assert server.look(lambda: connection._discarding) is cut


def test_an_idle_connection_is_closed_without_a_word() -> None:
    with listen(echo, **{**PATIENT, "idle_seconds": SHORT}) as server:
        answer = server.send("GET").finish()
        assert server.serves()
        assert read_to_end(answer) == b""


def test_an_app_that_takes_its_time_is_waited_for() -> None:
    async def slow(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.sleep(1.5 * HEAD)
        await echo(scope, receive, send)

    short = {**dict.fromkeys(PATIENT, SHORT), "header_seconds": HEAD}
    with listen(slow, **short) as server:
        assert server.send("POST", body=b"{}").finish().json["body"] == "{}"


def test_a_silent_stream_is_left_open() -> None:
    done = threading.Event()

    async def stream(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while not done.is_set():
            await asyncio.sleep(0.01)
        await send({"type": "http.response.body", "body": b"end"})

    short = {**dict.fromkeys(PATIENT, SHORT), "header_seconds": HEAD}
    with listen(stream, **short) as server:
        answer = server.send("GET").begin()  # the head of a stream comes before its first event
        assert not answer.read(1.5 * HEAD)
        done.set()
        assert answer.finish().body == b"end"


class Flood:
    """An app that writes without end to /flood, and notes whether its client is still there."""

    def __init__(self) -> None:
        self.ended = threading.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] != "/flood":
            await echo(scope, receive, send)
            return
        await receive()
        watch = asyncio.create_task(receive())
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while not watch.done():
            await send({"type": "http.response.body", "body": b"x" * 50_000, "more_body": True})
            await asyncio.sleep(0)
        self.ended.set()


def test_a_reader_that_stops_is_cut_off() -> None:
    app = Flood()
    with listen(app, **{**PATIENT, "stall_seconds": SHORT}) as server:
        server.send("GET", "/flood").begin()
        assert server.serves()
        assert app.ended.wait(SECONDS)
        assert server.serves()


def test_a_slow_reader_is_not() -> None:
    app = Flood()
    with listen(app, **{**PATIENT, "stall_seconds": 1.0}) as server:
        answer = server.send("GET", "/flood").begin()
        for _ in range(40):
            time.sleep(0.05)
            answer.wire.recv(200_000)
        assert not app.ended.is_set()


def test_a_reader_of_one_large_answer_that_stops_is_cut_off() -> None:
    async def large(scope: Any, receive: Any, send: Any) -> None:
        body = b"x" * 30_000_000
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
        await send({"type": "http.response.body", "body": body})

    with listen(large, **{**PATIENT, "stall_seconds": SHORT}) as server:
        answer = server.send("GET").begin()
        deadline = time.monotonic() + SECONDS
        while server.look(lambda: len(server.listener.connections)):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert len(read_to_end(answer)) < 30_000_000


def test_a_refusal_is_read_by_a_peer_that_is_still_sending() -> None:
    """A reset would throw it away on its way."""
    with listen(echo, **PATIENT) as server:
        answer = server.say(b"no HTTP at all\r\n\r\n" + b"x" * 500_000)
        for _ in range(20):
            answer.wire.sendall(b"x" * 50_000)
        assert answer.finish().status == 400


def test_a_crowd_of_slow_peers_is_sent_away_while_others_are_served() -> None:
    limits = {"header_seconds": 1.0, "body_seconds": 1.0, "idle_seconds": 1.0, "stall_seconds": LONG}
    with listen(echo, **limits) as server:
        kinds = (b"", b"GET / HTTP/1.1\r\nHost:", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{")
        crowd = [server.say(kinds[n % 3]) for n in range(200)]
        served = 0
        while any(not each.ended for each in crowd):
            assert server.serves()
            served += 1
            for each in crowd:
                if not each.ended:
                    each.read(0)
            assert served < 10_000
        assert {each.status for each in crowd} == {408}
        assert served >= 1
