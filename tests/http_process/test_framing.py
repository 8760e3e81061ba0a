"""A request that two servers could read differently is read by neither: 400, and the connection ends."""

from __future__ import annotations

import asyncio
import contextlib
import re
import threading
import time
from typing import Any

import pytest

from serving import Exchange

from .bare import Bare, closes_with, echo, listen, read_to_end

HEAD = b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\n"
TWO = b"Content-Length: 2\r\n\r\n{}"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"

REFUSED = {
    "length and chunks": HEAD + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks and length": HEAD + b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n",
    "two lengths": HEAD + b"Content-Length: 3\r\n" + TWO,
    "two equal lengths": HEAD + b"Content-Length: 2\r\n" + TWO,
    "a list of lengths": HEAD + b"Content-Length: 2, 2\r\n\r\n{}",
    "a signed length": HEAD + b"Content-Length: +2\r\n\r\n{}",
    "a negative length": HEAD + b"Content-Length: -2\r\n\r\n{}",
    "a hexadecimal length": HEAD + b"Content-Length: 0x2\r\n\r\n{}",
    "a length in two words": HEAD + b"Content-Length: 2 2\r\n\r\n{}",
    "an empty length": HEAD + b"Content-Length: \r\n\r\n{}",
    "a length over 64 bits": HEAD + b"Content-Length: 99999999999999999999999\r\n\r\n{}",
    "xchunked": HEAD + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "identity": HEAD + b"Transfer-Encoding: identity\r\n\r\n0\r\n\r\n",
    "chunked, identity": HEAD + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "gzip, chunked": HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "chunked twice": HEAD + b"Transfer-Encoding: chunked\r\n" + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunked and identity": HEAD + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
    "a tab before chunked": HEAD + b"Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n",
    "chunked in quotes": HEAD + b'Transfer-Encoding: "chunked"\r\n\r\n0\r\n\r\n',
    "an empty coding": HEAD + b"Transfer-Encoding:\r\n\r\n0\r\n\r\n",
    "a blank before the colon": HEAD + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    "chunks in HTTP/1.0": CHUNKED.replace(b"/1.1", b"/1.0") + b"0\r\n\r\n",
    "bare line feeds": (HEAD + TWO).replace(b"\r\n", b"\n"),
    "one bare line feed": b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\n" + TWO,
    "a bare line feed at the end": HEAD + b"Content-Length: 2\r\n\n{}",
    "a bare carriage return": HEAD + b"X: a\r" + TWO,
    "a folded header": HEAD + b"X: a\r\n b\r\n" + TWO,
    "a folded length": HEAD + b"Content-Length:\r\n 2\r\n\r\n{}",
    "a fold at the start": b"POST /mcp HTTP/1.1\r\n X: a\r\nHost: 127.0.0.1\r\n" + TWO,
    "a NUL in a value": HEAD + b"X: a\0b\r\n" + TWO,
    "a control in a value": HEAD + b"X: a\x01b\r\n" + TWO,
    "a DEL in a value": HEAD + b"X: a\x7fb\r\n" + TWO,
    "a blank in a name": HEAD + b"X Y: a\r\n" + TWO,
    "a parenthesis in a name": HEAD + b"X(Y: a\r\n" + TWO,
    "a high byte in a name": HEAD + b"X\xe9: a\r\n" + TWO,
    "an empty name": HEAD + b": a\r\n" + TWO,
    "no colon": HEAD + b"XY\r\n" + TWO,
    "junk after a chunk": CHUNKED + b"2\r\n{}XX0\r\n\r\n",
    "line feeds in chunks": CHUNKED + b"2\n{}\n0\n\n",
    "controls in a chunk extension": CHUNKED + b"2;\x01\x02\r\n{}\r\n0\r\n\r\n",
    "a line feed in a chunk extension": CHUNKED + b"2;a\nb\r\n{}\r\n0\r\n\r\n",
    "a carriage return in a chunk extension": CHUNKED + b"2;a\rb\r\n{}\r\n0\r\n\r\n",
    "a blank after a chunk size": CHUNKED + b"2 \r\n{}\r\n0\r\n\r\n",
    "a chunk size with 0x": CHUNKED + b"0x2\r\n{}\r\n0\r\n\r\n",
    "a negative chunk size": CHUNKED + b"-2\r\n{}\r\n0\r\n\r\n",
    "a chunk size over 64 bits": CHUNKED + b"fffffffffffffffff\r\n{}\r\n0\r\n\r\n",
    "no chunk size": CHUNKED + b"\r\n{}\r\n0\r\n\r\n",
    "HTTP/1.2": b"GET / HTTP/1.2\r\nHost: a\r\n\r\n",
    "an HTTP/2 preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "a method in lower case": b"get / HTTP/1.1\r\nHost: a\r\n\r\n",
    "an unknown method": b"FOO / HTTP/1.1\r\nHost: a\r\n\r\n",
    "CONNECT": b"CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n",
    "a tab in the first line": b"GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n",
    "a blank before the method": b" GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "a control in the path": b"GET /\x01 HTTP/1.1\r\nHost: a\r\n\r\n",
    "a high byte in the path": b"GET /\xe9 HTTP/1.1\r\nHost: a\r\n\r\n",
    "a line of JSON": b'{"jsonrpc":"2.0"}\n',
    "TLS": bytes.fromhex("16030100f8010000f40303"),
}


@pytest.mark.parametrize("request_", REFUSED.values(), ids=REFUSED)
def test_refused(request_: bytes) -> None:
    with listen(echo) as server:
        assert closes_with(server.say(request_), 400)


@pytest.mark.parametrize("piece", [1, 7])
def test_refused_however_it_is_split(piece: int) -> None:
    with listen(echo) as server:
        for name in ("length and chunks", "a bare line feed at the end", "junk after a chunk", "gzip, chunked"):
            answer = server.say(b"")
            data = REFUSED[name]
            for start in range(0, len(data), piece):
                answer.wire.sendall(data[start : start + piece])
            assert closes_with(answer, 400), name


@pytest.mark.parametrize("line", [b"GET /\r\n\r\n", b"GET / HTTP/2.0\r\nHost: a\r\n\r\n"], ids=["0.9", "2.0"])
def test_other_versions(line: bytes) -> None:
    with listen(echo) as server:
        assert closes_with(server.say(line), 505)


def ask(server: Bare, data: bytes) -> Exchange:
    answer = server.say(data).finish()
    assert answer.status == 200
    return answer


def test_a_chunked_body_is_put_together_and_its_trailers_are_dropped() -> None:
    with listen(echo) as server:
        said = ask(server, CHUNKED + b"2;name=value\r\n{}\r\n1\r\n!\r\n0\r\nAuthorization: x\r\n\r\n").json
        assert said["body"] == "{}!"
        assert "authorization" not in [name for name, _ in said["headers"]]


def test_an_empty_header_stays_apart_from_the_next() -> None:
    with listen(echo) as server:
        said = ask(server, b"POST / HTTP/1.1\r\nX-Empty:\r\nHost: a\r\n" + TWO).json
        assert said["headers"] == [["x-empty", ""], ["host", "a"], ["content-length", "2"]]


def test_an_absolute_target_says_the_host() -> None:
    with listen(echo) as server:
        said = ask(server, b"GET http://evil.example:1/mcp?a=b HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").json
        assert (said["path"], said["query"], said["headers"]) == ("/mcp", "a=b", [["host", "evil.example:1"]])


def test_an_offer_of_http_2_is_passed_over() -> None:
    """Java's client makes it with its first request, and means the body too."""
    offer = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n"
    with listen(echo) as server:
        answer = ask(server, HEAD + offer + TWO)
        assert answer.json["body"] == "{}"
        again = Exchange(answer.wire)
        again.wire.sendall(HEAD + TWO)
        assert again.finish().json["body"] == "{}"


def test_a_websocket_is_not_opened() -> None:
    offer = b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\r\n"
    with listen(echo) as server:
        assert "upgrade" not in ask(server, b"GET / HTTP/1.1\r\nHost: a\r\n" + offer).headers


def test_expect_is_answered_when_the_body_is_wanted() -> None:
    with listen(echo) as server:
        connection = server.connect()
        connection.write(HEAD + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n")
        first = Exchange(connection.wire).wait(lambda it: it.status == 100)
        connection.write(b"{}")
        assert b"100 Continue" in first.raw
        assert Exchange(connection.wire).finish().json["body"] == "{}"


# -- requests sent ahead


def statuses(answer: Exchange) -> list[bytes]:
    """Every status line until the connection closes."""
    return re.findall(rb"HTTP/1.1 (\d+)", read_to_end(answer))


def test_a_request_sent_ahead_ends_the_connection_after_the_answer_that_is_due() -> None:
    with listen(echo) as server:
        answer = server.say((HEAD + TWO) * 50)
        assert closes_with(answer, 200)
        assert answer.json["body"] == "{}"


@pytest.mark.parametrize("size", [1000, 3_000_000])
def test_an_answer_arrives_whole_though_a_request_was_sent_ahead_and_is_not_read(size: int) -> None:
    """A socket that is closed with unread bytes is reset, and what the kernel holds of the answer is lost."""

    async def late(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.sleep(0.05)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % size)]})
        await send({"type": "http.response.body", "body": bytes(size)})

    with listen(late) as server:
        answer = server.say(HEAD + TWO + HEAD + b"Content-Length: 1000000000\r\n\r\n")
        stop = threading.Event()

        def send_on() -> None:
            with contextlib.suppress(OSError):
                while not stop.is_set():
                    answer.wire.sendall(bytes(60_000))

        thread = threading.Thread(target=send_on)
        thread.start()
        time.sleep(0.2)  # the answer is written, and nobody has read it
        try:
            assert len(answer.finish().body) == size
        finally:
            stop.set()
            answer.drop()
            thread.join()


def test_what_follows_a_good_request_does_not_spoil_its_answer() -> None:
    with listen(echo) as server:
        assert statuses(server.say(HEAD + TWO + b"junk\r\n\r\n")) == [b"200"]
        assert statuses(server.say(HEAD + b"Connection: close\r\n" + TWO + b"GET / HTTP/1.1\r\n\r\n")) == [b"200"]


def test_http_1_0_gets_no_chunks() -> None:
    async def stream(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"one ", "more_body": True})
        await send({"type": "http.response.body", "body": b"two"})

    with listen(stream) as server:
        raw = read_to_end(server.say(b"GET / HTTP/1.0\r\n\r\n"))
        assert raw.endswith(b"\r\n\r\none two")
        assert b"chunked" not in raw
