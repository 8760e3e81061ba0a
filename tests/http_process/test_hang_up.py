"""A client that hangs up at any point of a request costs the server nothing: no trace, no work, no place."""

from __future__ import annotations

import socket

from posting import Session, ask_modern, call, encode, modern, modern_headers
from serving import request_head

from .serverproc import ServerProcess, eventually, start
from .servers import SOURCE


def running(server: ServerProcess) -> int:
    return int(ask_modern(server, call("running")).json["result"]["content"][0]["text"])


def send_and_leave(server: ServerProcess, data: bytes, *, politely: bool) -> None:
    with socket.create_connection(("127.0.0.1", server.port), 10) as wire:
        wire.sendall(data)
        if not politely:
            wire.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")


def whole_request(server: ServerProcess, message: dict) -> bytes:
    body = encode(message)
    return request_head(server.port, "POST", "/mcp", modern_headers(message), body) + body


def test_at_any_byte_of_a_request() -> None:
    with start(SOURCE) as server:
        data = whole_request(server, modern(call("swallow")))
        for length in range(0, len(data) + 1, 3):
            send_and_leave(server, data[:length], politely=length % 2 == 0)
        send_and_leave(server, data, politely=True)
        eventually("nothing runs for nobody", lambda: running(server) == 0)
        assert len(server.stderr.splitlines()) == 2


def test_in_the_middle_of_an_answer() -> None:
    with start(SOURCE) as server:
        message = modern(call("count", {"upto": 5}, progressToken="p"))
        for _ in range(20):
            stream = server.connect().send("POST", "/mcp", modern_headers(message), encode(message))
            stream.wait(lambda it: it.events, "a first event")
            stream.drop()
        large = modern(call("large", {"size": 5_000_000}))
        for _ in range(5):
            server.connect().send("POST", "/mcp", modern_headers(large), encode(large)).begin().drop()
        eventually("nothing runs for nobody", lambda: running(server) == 0)
        assert len(server.stderr.splitlines()) == 2


def test_while_a_session_ends() -> None:
    with start(SOURCE) as server:
        for _ in range(20):
            session = Session(server).open()
            stream = session.get().begin()
            session.delete().drop()
            stream.drop()
        assert Session(server).open().call("add", a=1, b=2) == "3"
        assert len(server.stderr.splitlines()) == 2


def test_in_the_middle_of_a_body() -> None:
    with start(SOURCE, config="[limits]\nbody_seconds = 600\n") as server:
        head = b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\n" % server.port
        accept = b"Accept: application/json, text/event-stream\r\n"
        for framing in (b"Content-Length: 100000\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n5\r\n"):
            for politely in (True, False):
                send_and_leave(server, head + accept + framing + b"{", politely=politely)
        assert ask_modern(server, call("add", {"a": 1, "b": 2})).status == 200
        assert len(server.stderr.splitlines()) == 2
