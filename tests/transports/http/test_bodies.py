"""Bodies that are too long, of the wrong kind, or not what their headers say."""

from __future__ import annotations

import gzip
from collections.abc import Callable

import pytest

from longshore import Limits
from posting import Session, ask_modern, call, encode, modern, modern_headers
from serving import ABSENT, Connection, Exchange, Pairs, Served, request_head

from .fixture import BOTH, UVICORN, rigged

MOST = 20_000
LIMITS = Limits(frame_bytes=MOST)
ECHO = modern(call("echo", {"text": "x"}))
CHUNKED = ("Transfer-Encoding", "chunked")


def of_length(length: int) -> bytes:
    """A good message of exactly so many bytes."""
    body = encode(ECHO)
    return body + b" " * (length - len(body))


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def head(server: Served, *headers: tuple[str, str], body: bytes = b"") -> bytes:
    return request_head(server.port, "POST", "/mcp", [*modern_headers(ECHO), *headers], body)


def begin(server: Served, data: bytes) -> tuple[Connection, Exchange]:
    connection = server.connect()
    connection.write(data)
    return connection, Exchange(connection.wire)


# -- length


@BOTH
@pytest.mark.parametrize(("length", "status"), [(MOST - 1, 200), (MOST, 200), (MOST + 1, 413), (10 * MOST, 413)])
def test_a_body_may_have_so_many_bytes_and_not_one_more(length: int, status: int) -> None:
    with rigged(LIMITS) as (_, server):
        answer = server.send("POST", "/mcp", modern_headers(ECHO), of_length(length)).finish()
        assert answer.status == status
        body = of_length(length)
        pieces = b"".join(chunk(body[at : at + 1000]) for at in range(0, length, 1000))
        _, chunked = begin(server, head(server, CHUNKED) + pieces + b"0\r\n\r\n")
        assert chunked.finish().status == status
        legacy = Session(server).open().post(encode(call("echo")).ljust(length)).finish()
        assert legacy.status == status


def test_a_long_body_is_refused_by_its_announcement_before_it_is_sent() -> None:
    with rigged(LIMITS) as (rig, server):
        for length in (str(MOST + 1), str(1 << 40), "9" * 18):
            _, exchange = begin(server, head(server, ("Content-Length", length)))
            exchange.begin()
            assert (exchange.status, exchange.headers["connection"]) == (413, "close")
        assert ask_modern(server, call("echo")).status == 200
        assert server.look(rig.stored) == 0


@BOTH
def test_a_body_without_an_end_is_refused_where_the_limit_is() -> None:
    with rigged(LIMITS) as (_, server):
        connection, exchange = begin(server, head(server, CHUNKED))
        sent = 0
        while not exchange.read(0.001) and sent < 100 * MOST:
            connection.write(chunk(b" " * 1000))
            sent += 1000
        exchange.begin()
        assert exchange.status == 413
        assert sent < 50 * MOST, "it read on and on"
        assert ask_modern(server, call("echo")).status == 200


def test_a_body_that_is_longer_than_announced_is_cut_and_the_rest_is_no_request() -> None:
    with rigged(LIMITS) as (_, server):
        body = encode(ECHO)
        _, exchange = begin(server, head(server, ("Content-Length", "10")) + body)
        assert exchange.finish().status == 400
        assert ask_modern(server, call("echo")).status == 200


def test_a_body_that_is_shorter_than_announced_is_never_acted_on() -> None:
    with rigged(LIMITS) as (rig, server):
        body = encode(modern(call("hold")))
        for cut in (0, 1, len(body) - 1, len(body)):
            headers = [*modern_headers(modern(call("hold"))), ("Content-Length", str(len(body) + 1))]
            _, exchange = begin(server, request_head(server.port, "POST", "/mcp", headers, body) + body[:cut])
            server.settle()
            exchange.drop()
        server.until(lambda: not server.busy, "the end of the requests")
        assert rig.befell == {}
        assert ask_modern(server, call("echo")).status == 200


@pytest.mark.parametrize(
    "headers",
    [
        [("Content-Length", "5"), CHUNKED],
        [("Content-Length", "5"), ("Content-Length", "6")],
        [("Content-Length", "-5")],
        [("Content-Length", "5x")],
        [("Content-Length", "")],
        [("Transfer-Encoding", "xchunked")],
        [("Transfer-Encoding", "chunked, identity")],
    ],
)
def test_lengths_that_contradict_are_refused_and_nothing_is_acted_on(headers: Pairs) -> None:
    """Two readers that disagree on where a request ends are how requests are smuggled."""
    with rigged(LIMITS) as (rig, server):
        smuggled = modern(call("hold"))
        inner = request_head(server.port, "POST", "/mcp", modern_headers(smuggled), encode(smuggled)) + encode(smuggled)
        _, exchange = begin(server, head(server, *headers) + b"0\r\n\r\n" + inner)
        exchange.begin()
        assert exchange.status == 400
        server.settle()
        assert rig.befell == {}
        assert ask_modern(server, call("echo")).status == 200


# -- kind

KINDS = {
    "application/json": 200,
    "application/json; charset=utf-8": 200,
    'Application/JSON ;charset="UTF-8"': 200,
    ABSENT: 415,
    "": 415,
    "text/plain": 415,
    "text/json": 415,
    "application/jsonp": 415,
    "application/json, text/plain": 415,
    "application/json; charset=latin-1": 415,
    "application/json-rpc": 415,
    "application/x-www-form-urlencoded": 415,
    "multipart/form-data; boundary=application/json": 415,
    "*/*": 415,
}


def post_modern_kind(server: Served, *headers: tuple[str, str]) -> Exchange:
    return server.send("POST", "/mcp", [*modern_headers(ECHO), *headers], encode(ECHO)).finish()


def post_legacy_kind(server: Served, *headers: tuple[str, str]) -> Exchange:
    return Session(server).initialize(None, *headers).finish()


@pytest.mark.parametrize("send", [post_modern_kind, post_legacy_kind])
def test_a_body_is_json_and_says_so(send: Callable[..., Exchange]) -> None:
    with rigged(LIMITS) as (rig, server):
        for kind, status in KINDS.items():
            stored = server.look(rig.stored)
            assert send(server, ("Content-Type", kind)).status == status, kind
            if status != 200:
                assert server.look(rig.stored) == stored
        twice = [("Content-Type", "application/json"), ("Content-Type", "application/json")]
        assert send(server, *twice).status == 415


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd", "gzip, gzip"])
def test_a_compressed_body_is_refused_unread(coding: str) -> None:
    with rigged(LIMITS) as (_, server):
        bomb = gzip.compress(b"[" * 1000 * MOST)
        for body in (gzip.compress(encode(ECHO)), bomb[: MOST - 1], encode(ECHO)):
            headers = [*modern_headers(ECHO), ("Content-Encoding", coding)]
            assert server.send("POST", "/mcp", headers, body).finish().status == 415


# -- all together


@UVICORN
def test_in_another_server_a_body_that_finds_no_room_is_refused() -> None:
    with rigged(Limits(upload_bytes=MOST)) as (rig, server):
        body = of_length(MOST)
        data = head(server, body=body)
        first, answer = begin(server, data + body[: MOST - 10])
        server.until(lambda: rig.app.uploads.held == MOST - 10)
        late = begin(server, data + body[:20])[1].finish()
        assert late.status == 503 and late.headers["retry-after"] == "1"
        assert ask_modern(server, call("echo", {"text": "x"})).status == 200
        first.write(body[MOST - 10 :])
        assert answer.finish().status == 200
        assert server.look(lambda: rig.app.uploads.held) == 0
