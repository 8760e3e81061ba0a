"""The lifespan of a server process: when it opens and closes, and what happens if it can't be opened."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

from http_process.serverproc import launch, start
from waiting import eventually

from .conftest import Workshop
from .peer import failed, initialize, request, text_of

SERVER = """
    import asyncio, os
    from contextlib import asynccontextmanager
    from longshore import Context, Server

    def note(what):
        with open("events.txt", "a") as file:
            file.write(what + "\\n")

    @asynccontextmanager
    async def open_state(app):
        if os.path.exists("broken"):
            raise OSError("no database here")
        note("open")
        yield {"answer": 42}
        if os.path.exists("hang"):
            await asyncio.Event().wait()
        note("close")

    app = Server("shop", lifespan=open_state)

    @app.tool
    def blocking(ctx: Context) -> int:
        return ctx.lifespan["answer"]

    @app.tool(run="inline")
    def quick() -> int:
        return 7

    if __name__ == "__main__":
        app.run()
"""


def events(folder: Path) -> list[str]:
    path = folder / "events.txt"
    return path.read_text().split() if path.exists() else []


@pytest.mark.parametrize("tool", ["blocking", "quick"])
def test_the_first_call_on_stdio_finds_it_open_and_the_end_of_the_input_closes_it(
    workshop: Workshop, tool: str
) -> None:
    peer = workshop.serve(SERVER)
    peer.start()
    assert text_of(peer.call(tool)) == {"blocking": "42", "quick": "7"}[tool]
    assert events(workshop.folder) == ["open"]
    peer.close_input()
    assert peer.wait() == 0
    assert events(workshop.folder) == ["open", "close"]


def test_it_opens_while_the_client_is_idle_before_any_call(workshop: Workshop) -> None:
    peer = workshop.serve(SERVER)
    peer.start()
    peer.ask(request(1, "tools/list"))
    eventually("the state", lambda: events(workshop.folder) == ["open"])
    peer.close_input()
    assert peer.wait() == 0
    assert events(workshop.folder) == ["open", "close"]


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_closes_it(workshop: Workshop, signum: int) -> None:
    peer = workshop.serve(SERVER)
    peer.start()
    peer.call("quick")
    peer.process.send_signal(signum)
    assert peer.wait() == 128 + signum
    assert events(workshop.folder) == ["open", "close"]


def test_a_lifespan_that_does_not_end_does_not_hold_the_process(workshop: Workshop) -> None:
    (workshop.folder / "hang").touch()
    peer = workshop.serve(SERVER)
    peer.start()
    peer.call("quick")
    peer.close_input()
    assert peer.wait() == 0
    assert events(workshop.folder) == ["open"]
    assert "the lifespan was not closed within" in peer.stderr


def test_a_lifespan_that_does_not_open_ends_the_process_after_the_calls_that_wait_for_it(workshop: Workshop) -> None:
    (workshop.folder / "broken").touch()
    peer = workshop.serve(SERVER)
    peer.start()
    answer = peer.call("quick")
    assert failed(answer)
    assert text_of(answer) == "the server could not open what its tools need; its log says why"
    assert peer.wait() == 1
    assert "the lifespan did not open: OSError: no database here" in peer.stderr.splitlines()


def test_a_server_without_calls_never_opens_it(workshop: Workshop) -> None:
    workshop.write(SERVER)
    done = workshop.run([sys.executable, "-m", "longshore", "serve", "server.py"], initialize())
    assert done.returncode == 0
    assert events(workshop.folder) == []


@pytest.mark.parametrize("workers", ["1", "2"])
def test_each_http_process_opens_and_closes_its_own(workers: str) -> None:
    with start(SERVER, "--workers", workers) as server:
        assert events(server.folder) == ["open"] * int(workers)
        server.stop(signal.SIGTERM)
        assert sorted(events(server.folder)) == sorted(["open", "close"] * int(workers))


def test_an_http_process_whose_state_can_not_be_opened_ends_with_an_error(tmp_path: Path) -> None:
    (tmp_path / "broken").touch()
    server = launch(tmp_path, SERVER)
    try:
        assert server.wait() == 1
        assert "the lifespan did not open: OSError: no database here" in server.stderr.splitlines()
        assert server.address is None
    finally:
        server.close()
