"""Bodies that end early or find no room. Their limits are tested with the gate."""

from __future__ import annotations

from longshore import Limits
from posting import ask_modern, call, encode, modern, modern_headers
from serving import Connection, Exchange, Served, request_head

from .fixture import UVICORN, rigged

MOST = 20_000
LIMITS = Limits(frame_bytes=MOST)
ECHO = modern(call("echo", {"text": "x"}))


def of_length(length: int) -> bytes:
    """A good message of exactly so many bytes."""
    body = encode(ECHO)
    return body + b" " * (length - len(body))


def head(server: Served, *headers: tuple[str, str], body: bytes = b"") -> bytes:
    return request_head(server.port, "POST", "/mcp", [*modern_headers(ECHO), *headers], body)


def begin(server: Served, data: bytes) -> tuple[Connection, Exchange]:
    connection = server.connect()
    connection.write(data)
    return connection, Exchange(connection.wire)


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


CHUNKED = ("Transfer-Encoding", "chunked")


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


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
