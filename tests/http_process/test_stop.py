"""Ending: what runs is finished or answered, what streams ends with its last word, and nothing is left."""

from __future__ import annotations

import os
import signal
import socket
import sys

import pytest

from posting import Session, ask_modern, call, modern, post_modern

from .serverproc import ServerProcess, eventually, is_alive, start
from .servers import SOURCE

SOON = 60.0
"""Seconds to wait for an end that nothing holds up: what is in flight would hold it for 600."""
SIGNALS = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP]


def greeting(server: ServerProcess) -> str:
    """What an untroubled server has said in all its life."""
    return "".join(server.stderr.splitlines(keepends=True)[:4])


def text(message: dict) -> str:
    return message["result"]["content"][0]["text"]


@pytest.mark.parametrize("signum", SIGNALS, ids=lambda s: s.name)
def test_an_idle_server(signum: int) -> None:
    with start(SOURCE) as server:
        kept = server.connect()
        assert kept.send("GET", "/health").finish().status == 200
        server.kill(signum)
        assert server.wait(SOON) == 128 + signum
        assert server.stderr == greeting(server)
        assert kept.wire.recv(1) == b""


@pytest.mark.parametrize("signum", SIGNALS, ids=lambda s: s.name)
def test_a_call_in_flight_may_finish(signum: int) -> None:
    with start(SOURCE, "--grace", "60") as server:
        answer = post_modern(server, modern(call("wait", {"file": "go"})))
        eventually("the call", (server.folder / "go.begun").exists)
        server.kill(signum)
        eventually("the server accepts no more", lambda: not accepts(server))
        assert server.process.poll() is None
        (server.folder / "go").touch()
        answer.finish()
        assert text(answer.messages[-1]) == "waited"
        assert server.wait(SOON) == 128 + signum
        assert server.stderr == greeting(server)


def accepts(server: ServerProcess) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", server.port)) == 0


@pytest.mark.parametrize("tool", ["hold", "swallow"])
def test_a_call_that_does_not_finish_is_answered(tool: str) -> None:
    with start(SOURCE, "--grace", "0.2") as server:
        answer = post_modern(server, modern(call(tool)))
        ask_modern(server, call("add", {"a": 1, "b": 2}))
        server.kill()
        answer.finish()
        assert answer.messages[-1]["result"]["isError"] is True
        assert "shut down" in text(answer.messages[-1])
        assert server.wait(SOON) == 128 + signal.SIGTERM


def test_streams_end_with_their_last_event() -> None:
    """Of the modern era, of a session, and of a session's own: each is whole, none is cut off."""
    with start(SOURCE, "--grace", "0.2") as server:
        counting = modern(call("count", {"upto": 3}, progressToken="p"))
        listening = modern({"jsonrpc": "2.0", "id": 9, "method": "subscriptions/listen", "params": LISTEN})
        session = Session(server).open()
        streams = [
            post_modern(server, counting),
            post_modern(server, listening),
            session.post(call("count", {"upto": 3}, progressToken="p")),
            session.get(),
        ]
        for stream in streams:
            stream.wait(lambda it: it.events, "a first event")
        server.kill()
        for stream in streams:
            stream.finish()
        assert "shut down" in text(streams[0].messages[-1])
        assert any(message.get("id") == 9 and "result" in message for message in streams[1].messages)
        assert "shut down" in text(streams[2].messages[-1])
        assert server.wait(SOON) == 128 + signal.SIGTERM
        assert server.stderr == greeting(server)


LISTEN = {"notifications": {"toolsListChanged": True}}


def test_what_tools_have_started_ends_too() -> None:
    with start(SOURCE) as server:
        answer = ask_modern(server, call("start_child"))
        child = int(text(answer.messages[-1]))
        assert is_alive(child)
        assert server.stop() == 128 + signal.SIGTERM
        assert not is_alive(child)


def test_a_second_signal_ends_it_at_once() -> None:
    with start(SOURCE, "--grace", "600") as server:
        post_modern(server, modern(call("wait", {"file": "go"})))
        eventually("the call", (server.folder / "go.begun").exists)
        server.kill(signal.SIGINT)
        eventually("the server accepts no more", lambda: not accepts(server))
        assert server.process.poll() is None
        server.kill(signal.SIGINT)
        assert server.wait(SOON) == 128 + signal.SIGINT


def test_a_tool_that_holds_the_main_thread_does_not_hold_the_end() -> None:
    with start(SOURCE, "--grace", "0.2") as server:
        post_modern(server, modern(call("block")))
        eventually("the tool", (server.folder / "blocked").exists)
        server.kill()
        assert server.wait(SOON) == 128 + signal.SIGTERM


def test_a_reader_that_does_not_read_does_not_hold_the_end() -> None:
    with start(SOURCE, "--grace", "0.2") as server:
        post_modern(server, modern(call("large", {"size": 15_000_000}))).begin()
        server.kill()
        assert server.wait(SOON) == 128 + signal.SIGTERM


def test_the_server_outlives_who_started_it() -> None:
    """Unlike on stdio: `longshore serve --http &` is meant to stay."""
    script = '"$0" -m longshore serve --http --port 0 --auth off & echo $! > pid; wait'
    with start(None, argv=("sh", "-c", script, sys.executable)) as server:
        pid = int((server.folder / "pid").read_text())
        os.kill(server.pid, signal.SIGKILL)
        server.process.wait(SOON)
        try:
            assert ask_modern(server, call("hello")).status == 200
            assert is_alive(pid)
        finally:
            os.kill(pid, signal.SIGTERM)
        eventually("its end", lambda: not is_alive(pid))


SLOW = """
    import asyncio
    from longshore import Server, Toolset, tool
    app = Server("quay")

    class Slow(Toolset):
        stop_seconds = 60.0
        async def start(self): ...
        async def stop(self):
            await asyncio.sleep(1.5)  # longer than a server without such a toolset takes to end
            open("stopped", "w").close()
        @tool
        async def use(self) -> str: return "used"

    app.add_toolset(Slow())
"""


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_toolset_that_asks_for_it_has_longer_to_stop(workers: str) -> None:
    with start(SLOW, "--grace", "0.1", "--workers", workers) as server:
        assert text(ask_modern(server, call("use")).messages[-1]) == "used"
        server.kill()
        assert server.wait(SOON) == 128 + signal.SIGTERM
        assert (server.folder / "stopped").exists()
