"""JSON-RPC lines on the HTTP port: where they are switched on, from loopback, for as long as every line is JSON."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from longshore import Limits, Server
from longshore.telemetry.recorder import Recorder
from longshore.transports.http_server.listener import Listener
from posting import LEGACY, ask_modern, call, modern, request

from .bare import Peer, echo
from .serverproc import PATIENCE, ServerProcess, eventually, start
from .servers import SOURCE


class Lines:
    """A client that speaks lines."""

    def __init__(self, server: ServerProcess) -> None:
        self.wire = socket.create_connection(("127.0.0.1", server.port), PATIENCE)
        self._rest = b""

    def say(self, *messages: Any) -> None:
        lines = (m if isinstance(m, bytes) else json.dumps(m).encode() + b"\n" for m in messages)
        self.wire.sendall(b"".join(lines))

    def hear(self) -> Any:
        """The next line; None: there is no more."""
        while b"\n" not in self._rest:
            try:
                piece = self.wire.recv(1 << 16)
            except ConnectionResetError:
                piece = b""
            if not piece:
                return None
            self._rest += piece
        line, _, self._rest = self._rest.partition(b"\n")
        return json.loads(line)

    def answer(self, id: Any) -> Any:
        while (heard := self.hear()) is not None:
            if heard.get("id") == id:
                return heard
        raise AssertionError(f"no answer to {id!r}")

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, *_: object) -> None:
        self.wire.close()


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with start(SOURCE, "--lines") as running:
        yield running


def test_both_eras(server: ServerProcess) -> None:
    with Lines(server) as peer:
        info = {"name": "tests", "version": "1"}
        peer.say(request("initialize", {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": info}))
        assert peer.hear()["result"]["protocolVersion"] == LEGACY
        peer.say({"jsonrpc": "2.0", "method": "notifications/initialized"}, b"\n", call("add", {"a": 1, "b": 2}, 2))
        assert peer.answer(2)["result"]["content"][0]["text"] == "3"
        peer.say(modern(call("add", {"a": 2, "b": 2}, 3)))
        assert peer.answer(3)["result"]["content"][0]["text"] == "4"


def test_a_batch_may_come_first(server: ServerProcess) -> None:
    with Lines(server) as peer:
        peer.say(b"[]\n")
        assert peer.hear()["error"]["code"] == -32600


def test_http_is_spoken_on_the_same_port(server: ServerProcess) -> None:
    with Lines(server) as peer:
        peer.say(modern(call("add", {"a": 1, "b": 2}, 1)))
        assert peer.answer(1)
        assert ask_modern(server, call("add", {"a": 1, "b": 2})).status == 200


@pytest.mark.parametrize("junk", [b"POST /mcp HTTP/1.1\n", b"hello\n", b'{"jsonrpc":\n', b"\xff\xfe\n"])
def test_the_first_line_that_is_not_json_ends_the_connection(server: ServerProcess, junk: bytes) -> None:
    with Lines(server) as peer:
        after = modern(call("wait", {"file": "never"}, 2))
        peer.say(modern(call("add", {"a": 1, "b": 2}, 1)), junk, after)
        assert peer.answer(1)["result"]
        assert peer.hear()["error"]["code"] == -32700
        assert peer.hear() is None
    assert not (server.folder / "never.begun").exists()


def test_a_request_that_only_looks_like_a_line_is_never_read_as_one(server: ServerProcess) -> None:
    """What a web page can make a browser send begins with a method, and is HTTP to its end."""
    body = json.dumps(modern(call("wait", {"file": "smuggled"}))).encode() + b"\n"
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as wire:
        wire.sendall(b"POST / HTTP/1.1\r\nHost: evil.example\r\nContent-Type: text/plain\r\n")
        wire.sendall(b"Content-Length: %d\r\n\r\n%b%b" % (len(body), body, body))
        said = b""
        while piece := wire.recv(1 << 16):
            said += piece
    assert b" 200 " not in said
    assert not (server.folder / "smuggled.begun").exists()


def test_a_line_that_is_too_long(server: ServerProcess) -> None:
    with Lines(server) as peer:
        try:
            peer.say(b'{"jsonrpc":"' + b"x" * (17 << 20) + b"\n")
        except OSError:
            pass
        heard = peer.hear()
        assert heard is None or "16,777,216 bytes" in heard["error"]["message"]
    assert ask_modern(server, call("add", {"a": 1, "b": 2})).status == 200


def test_who_says_no_more_is_still_answered() -> None:
    with start(SOURCE, "--lines", config="[server]\neof_grace = 2\n") as server, Lines(server) as peer:
        peer.say(modern(call("wait", {"file": "late"}, 1)), modern(call("hold", {}, 2)))
        peer.wire.shutdown(socket.SHUT_WR)
        eventually("the call", (server.folder / "late.begun").exists)
        (server.folder / "late").touch()
        assert peer.answer(1)["result"]["content"][0]["text"] == "waited"
        assert peer.answer(2)["result"]["isError"] is True
        assert peer.hear() is None


def test_who_is_gone_is_not_worked_for(server: ServerProcess) -> None:
    with Lines(server) as peer:
        peer.say(modern(call("wait", {"file": "gone"}, 1)))
        eventually("the call", (server.folder / "gone.begun").exists)
        peer.wire.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    eventually("nothing runs", lambda: ask_modern(server, call("running")).json["result"]["content"][0]["text"] == "0")


def test_a_reader_that_stops_holds_only_itself(server: ServerProcess) -> None:
    with Lines(server) as peer:
        peer.say(*(modern(call("large", {"size": 1_000_000}, n)) for n in range(40)))
        for _ in range(5):
            assert ask_modern(server, call("add", {"a": 1, "b": 2})).status == 200
        for n in range(40):
            assert len(peer.answer(n)["result"]["content"][0]["text"]) == 1_000_000


def test_a_reader_that_never_reads_is_cut_off() -> None:
    with start(SOURCE, "--lines", config="[limits]\nstall_seconds = 0.3\n") as server, Lines(server) as peer:
        peer.say(*(modern(call("large", {"size": 1_000_000}, n)) for n in range(40)))
        with pytest.raises(ConnectionError):
            while True:
                peer.wire.sendall(b"\n" * 1_000)
        assert ask_modern(server, call("add", {"a": 1, "b": 2})).status == 200


def test_lines_end_with_the_server() -> None:
    with start(SOURCE, "--lines", "--grace", "0.2") as server, Lines(server) as peer:
        peer.say(modern(call("add", {"a": 1, "b": 2}, 1)))
        assert peer.answer(1)
        peer.say(modern(call("hold", {}, 2)))
        assert ask_modern(server, call("add", {"a": 1, "b": 2})).status == 200
        server.kill()
        assert peer.answer(2)["result"]["isError"] is True
        assert peer.hear() is None
        assert server.wait() == 143


def test_a_call_in_flight_has_the_grace_of_the_server() -> None:
    """Not that of a peer which says no more: the server has not had its last word yet."""
    config = "[server]\neof_grace = 0\n"
    with start(SOURCE, "--lines", "--grace", "60", config=config) as server, Lines(server) as peer:
        peer.say(modern(call("wait", {"file": "go"}, 1)))
        eventually("the call", (server.folder / "go.begun").exists)
        server.kill()
        eventually("the server accepts no more", lambda: not accepts(server))
        (server.folder / "go").touch()
        assert peer.answer(1)["result"]["content"][0]["text"] == "waited"
        assert peer.hear() is None
        assert server.wait() == 143


def accepts(server: ServerProcess) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", server.port)) == 0


@pytest.mark.parametrize(
    ("address", "may"),
    [
        *((ours, True) for ours in ("127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1")),
        *((other, False) for other in ("192.0.2.1", "::ffff:192.0.2.1", "fe80::1%eth0", None)),
    ],
)
def test_only_loopback_may_speak_them(address: str | None, may: bool) -> None:
    async def offer() -> None:
        engine, peer = Server("quay").engine, Peer(address)
        listener = Listener(echo, asyncio.get_running_loop(), Limits(), Recorder(), engine)
        assert listener.serve_jsonl(peer, b"{") is may
        assert (peer.protocol is not None) is may
        listener.end()

    asyncio.run(offer())


def test_they_are_off_unless_switched_on() -> None:
    with start(SOURCE) as server, Lines(server) as peer:
        peer.say(modern(call("add", {"a": 1, "b": 2}, 1)))
        assert peer.wire.recv(100).startswith(b"HTTP/1.1 400")
