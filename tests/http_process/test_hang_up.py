"""A client that hangs up at any point of a request costs the server nothing: no trace, no work, no place."""

from __future__ import annotations

import socket

import pytest

from posting import Session, ask_modern, call, encode, modern, modern_headers
from serving import request_head

from .bare import echo, listen
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
        assert len(server.stderr.splitlines()) == 4, "the greeting alone"


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
        assert len(server.stderr.splitlines()) == 4, "the greeting alone"


def test_while_a_session_ends() -> None:
    with start(SOURCE) as server:
        for _ in range(20):
            session = Session(server).open()
            stream = session.get().begin()
            session.delete().drop()
            stream.drop()
        assert Session(server).open().call("add", a=1, b=2) == "3"
        assert len(server.stderr.splitlines()) == 4, "the greeting alone"


def test_who_stops_to_read_a_stream_is_let_go_and_not_worked_for() -> None:
    with start(SOURCE, config="[limits]\nstall_seconds = 1\n") as server:
        message = modern(call("chatter", progressToken="p"))
        stream = server.connect().send("POST", "/mcp", modern_headers(message), encode(message))
        stream.wait(lambda it: it.events, "a first event")
        assert running(server) == 1
        eventually("the end of the call", lambda: running(server) == 0)
        assert len(server.stderr.splitlines()) == 4, "the greeting alone"


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="Linux has this deadline")
def test_what_the_kernel_holds_for_a_reader_has_the_same_deadline() -> None:
    with listen(echo, stall_seconds=7.5) as server:
        assert server.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 7500


def test_in_the_middle_of_a_body() -> None:
    with start(SOURCE, config="[limits]\nbody_seconds = 600\n") as server:
        head = b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\n" % server.port
        accept = b"Accept: application/json, text/event-stream\r\n"
        for framing in (b"Content-Length: 100000\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n5\r\n"):
            for politely in (True, False):
                send_and_leave(server, head + accept + framing + b"{", politely=politely)
        assert ask_modern(server, call("add", {"a": 1, "b": 2})).status == 200
        assert len(server.stderr.splitlines()) == 4, "the greeting alone"
