"""Descriptors as some launchers hand them over: one socket for both ways, and no stderr at all."""

from __future__ import annotations

import json
import socket
import struct
import subprocess

import pytest

from waiting import PATIENCE

from .conftest import Workshop
from .peer import LONGSHORE, call, encode, initialize

SERVER = """
    import asyncio
    from longshore import Server
    app = Server("both")

    @app.tool(run="inline")
    def echo(text: str) -> str:
        return text

    @app.tool
    async def later(text: str) -> str:
        await asyncio.sleep(0)
        return text

    @app.tool(timeout=False)
    async def hang() -> str:
        await asyncio.Event().wait()
"""


class Plug:
    """A server with one socket as its stdin and stdout, and our end of it."""

    def __init__(self, workshop: Workshop) -> None:
        self.end, theirs = socket.socketpair()
        self.end.settimeout(PATIENCE)
        self.lines = self.end.makefile("rb")
        with theirs:
            self.peer = workshop.serve(SERVER, stdin=theirs.fileno(), stdout=theirs.fileno())

    def ask(self, message: dict[str, object]) -> dict[str, object]:
        self.end.sendall(encode(message))
        answer: dict[str, object] = json.loads(self.lines.readline())
        assert answer["id"] == message["id"], self.peer.stderr
        return answer

    def close(self) -> None:
        self.lines.close()
        self.end.close()


@pytest.mark.parametrize("tool", ["echo", "later"])
def test_one_socket_may_be_both_stdin_and_stdout(workshop: Workshop, tool: str) -> None:
    plug = Plug(workshop)
    plug.ask(initialize())
    for id in range(3):
        assert "result" in plug.ask(call(id, tool, text="x" * 300_000 * id))
    plug.end.shutdown(socket.SHUT_WR)
    assert plug.lines.read() == b""
    assert plug.peer.wait() == 0
    plug.close()
    assert plug.peer.stderr == ""


@pytest.mark.parametrize("tools", [[], ["echo"], ["later"], ["later", "hang"]])
def test_a_connection_that_is_reset_ends_the_server_as_its_end_does(workshop: Workshop, tools: list[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ours = socket.create_connection(listener.getsockname())
        theirs, _ = listener.accept()
    ours.settimeout(PATIENCE)
    with theirs:
        peer = workshop.serve(SERVER, "--eof-grace", "0.1", stdin=theirs.fileno(), stdout=theirs.fileno())
    lines = ours.makefile("rb")
    ours.sendall(encode(initialize()))
    assert b"init" in lines.readline()
    for tool in tools:
        ours.sendall(encode(call(tool, tool, **({} if tool == "hang" else {"text": "x"}))))
        if tool != "hang":
            assert tool.encode() in lines.readline()
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # close() resets
    lines.close()
    ours.close()
    assert peer.wait() == 0
    assert peer.stderr == ""


@pytest.mark.parametrize("tool", ["echo", "later"])
def test_a_server_without_stderr_serves(workshop: Workshop, tool: str) -> None:
    command = 'exec "$@" 2>&-'
    workshop.write(SERVER)
    done = subprocess.run(
        ["sh", "-c", command, "sh", *LONGSHORE, "serve", "server.py"],
        cwd=workshop.folder,
        env=workshop.env,
        input=encode(initialize(), call(1, tool, text="x")),
        stdout=subprocess.PIPE,
        timeout=PATIENCE,
    )
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == ["init", 1]
    assert done.returncode == 0


def test_an_authors_type_that_raises_does_not_end_the_process(workshop: Workshop) -> None:
    """Once a tool is called often, its arguments are made while the frame is read."""
    peer = workshop.serve(
        """
        from dataclasses import dataclass
        from longshore import Server
        app = Server("t")

        @dataclass
        class Share:
            part: int
            def __post_init__(self): 1 / self.part

        @app.tool(run="inline")
        def take(share: Share) -> int:
            return share.part
        """
    )
    peer.start()
    for id in range(8):
        assert peer.call("take", id=id, share={"part": 1})["result"]["content"][0]["text"] == "1"
    for text in ("", "x" * 200_000):  # the long one is read another way
        answer = peer.call("take", id=f"bad {len(text)}", share={"part": 0, "text": text})
        assert answer["result"]["isError"]
    assert not peer.call("take", id="good", share={"part": 1})["result"].get("isError")
    peer.close_input()
    assert peer.wait() == 0
