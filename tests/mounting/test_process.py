"""A gateway as a process answers at once, whatever it has mounted, and leaves no child behind."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from http_process.serverproc import start
from longshore.client import Client
from process.peer import PYTHON, Peer, failed, request, text_of
from waiting import eventually, is_alive

from .gateway import BEHIND, gate_to, hostile, run, through, until_async

GATE = """
    import sys
    from longshore import Server
    app = Server("gate")

    @app.tool
    def own() -> str:
        "Ours."
        return "ours"

    app.mount([sys.executable, {behind!r}], prefix="b")
    if {other!r}:
        app.mount({other!r}, prefix="o")
    if __name__ == "__main__":
        app.run()
"""


@pytest.fixture
def peers(tmp_path: Path) -> Iterator[Any]:
    started: list[Peer] = []

    def start(other: list[str] | None = None, config: str = "") -> Peer:
        (tmp_path / "gate.py").write_text(textwrap.dedent(GATE.format(behind=str(BEHIND), other=other)))
        (tmp_path / "longshore.toml").write_text(config)
        env = {**os.environ, "LONGSHORE_CONFIG": str(tmp_path / "longshore.toml")}
        started.append(Peer([*PYTHON, "gate.py"], tmp_path, env))
        return started[-1]

    yield start
    for peer in started:
        if peer.process.poll() is None:
            os.kill(peer.pid, signal.SIGTERM)  # not SIGKILL: a child that ignores the end of its input would survive
            peer.wait()
        peer.kill()


def child_of(peer: Peer) -> int:
    answer = peer.call("b_counts", "counts")
    found: int = answer["result"]["structuredContent"]["pid"]
    return found


def test_a_gateway_answers_at_once_and_lists_mounted_tools_later(peers: Any) -> None:
    peer = peers(hostile("never"))
    answer = peer.start()
    assert set(answer["result"]["capabilities"]) >= {"tools", "resources", "prompts", "completions"}
    assert text_of(peer.call("own")) == "ours"
    names = [tool["name"] for tool in peer.ask(request(1, "tools/list"))["result"]["tools"]]
    assert names[0] == "own"
    assert "b_add" in names
    assert text_of(peer.call("b_add", a=1, b=2)) == "3"


def test_tools_that_come_later_notify_the_client(peers: Any) -> None:
    peer = peers()
    peer.start()
    peer.notice("notifications/tools/list_changed")  # without a request: it connects by itself
    names = [tool["name"] for tool in peer.ask(request(1, "tools/list"))["result"]["tools"]]
    assert "b_add" in names


@pytest.mark.parametrize("end", ["input", signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_no_child_outlives_it(peers: Any, end: Any) -> None:
    peer = peers(hostile("stubborn" if end == signal.SIGINT else "never"))
    peer.start()
    child = child_of(peer)
    children = _children(peer.pid)
    assert child in children
    assert len(children) == 2
    if end == "input":
        peer.close_input()
    else:
        os.kill(peer.pid, end)
    peer.wait()
    # After SIGKILL nobody ends them: a good server ends with its input.
    gone = [child] if end == signal.SIGKILL else children
    eventually("the end of the children", lambda: not any(is_alive(each) for each in gone))
    for each in children:
        if is_alive(each):
            os.kill(each, signal.SIGKILL)
    assert "Traceback" not in peer.stderr
    assert "never retrieved" not in peer.stderr
    assert "destroyed" not in peer.stderr


def _children(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_the_configuration_may_name_unlisted_mounted_tools(peers: Any) -> None:
    peer = peers(config="[tools.b_add]\nenabled = false\n[toolsets.b]\ntimeout = 5\n")
    peer.start()
    names = [tool["name"] for tool in peer.ask(request(1, "tools/list"))["result"]["tools"]]
    assert "b_add" not in names
    assert "b_echo" in names
    assert "no such tool" not in peer.stderr


def test_a_dead_server_is_reported_on_stderr_and_to_the_model(peers: Any) -> None:
    peer = peers(hostile("crash"))
    peer.start()
    peer.ask(request(1, "tools/list"))
    answer = peer.call("o_anything")
    assert failed(answer)
    assert "no key was given" in text_of(answer)
    assert "mounted o" in peer.stderr


def test_mounting_a_command_imports_neither_client_nor_asyncio_before_it_is_needed(tmp_path: Path) -> None:
    code = """
    import sys, json
    from longshore import Server
    app = Server("gate")
    app.mount(["true"], prefix="x")
    print(json.dumps(sorted(sys.modules)))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=tmp_path,
        check=True,
    )
    loaded = set(json.loads(done.stdout))
    assert not loaded & {"asyncio", "longshore.client.client", "longshore.mounting.supervisor", "subprocess"}


HTTP = """
    import sys
    from longshore import Server
    app = Server("gate")
    app.mount([sys.executable, {behind!r}], prefix="b")
    if {other!r}:
        app.mount({other!r}, prefix="o")
"""


@pytest.mark.parametrize("workers", ["1", "2"])
def test_over_http_each_process_has_its_own_and_ends_it(workers: str) -> None:
    with start(HTTP.format(behind=str(BEHIND), other=None), "--workers", workers) as server:

        async def main() -> set[int]:
            pids: set[int] = set()

            async def found() -> bool:
                async with Client(f"http://127.0.0.1:{server.port}/mcp") as client:
                    pids.add((await client.call_tool("b_counts", returns=dict))["pid"])
                return len(pids) == int(workers)

            await until_async("an answer of every process", found)
            return pids

        pids = run(main)
        assert server.stop(signal.SIGTERM) in (0, 128 + signal.SIGTERM)
        eventually("the end of the children", lambda: not any(is_alive(pid) for pid in pids))


@pytest.mark.parametrize("workers", ["1", "2"])
def test_over_http_a_child_that_will_not_end_is_killed_with_a_plain_line(workers: str) -> None:
    """It heeds neither the end of its input nor SIGTERM, and a call is under way there. A trace fails `start`."""
    with start(HTTP.format(behind=str(BEHIND), other=hostile("stubborn")), "--workers", workers) as server:

        async def main() -> None:
            async with Client(f"http://127.0.0.1:{server.port}/mcp") as client:

                async def works() -> bool:
                    return (await client.call_tool("o_go", check=False)).text == "went"

                await until_async("the server", works)

        run(main)
        workers_of = [server.pid] if workers == "1" else [server.pid, *_children(server.pid)]
        children = [child for pid in workers_of for child in _children(pid)]
        assert server.stop(signal.SIGTERM) in (0, 128 + signal.SIGTERM)
        eventually("the end of the children", lambda: not any(is_alive(pid) for pid in children))


SERVED_OVER_HTTP = """
    import sys
    sys.path.insert(0, {folder!r})
    from mounted_server import make_server
    app = make_server()
    if __name__ == "__main__":
        app.run(http=True, port={port})
"""


@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_a_server_over_http_that_goes_and_comes_back(era: str, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    script = tmp_path / "served.py"
    script.write_text(textwrap.dedent(SERVED_OVER_HTTP.format(folder=str(BEHIND.parent), port=port)))

    def serve() -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, str(script)], cwd=tmp_path, stderr=subprocess.DEVNULL)

    gate = gate_to(f"http://127.0.0.1:{port}/mcp", era)
    process = serve()
    try:
        async with through(gate) as client:

            async def works() -> bool:
                return (await client.call_tool("b_add", {"a": 1, "b": 2}, check=False)).text == "3"

            await until_async("the server", works)
            process.kill()
            process.wait()
            lost = await client.call_tool("b_counts", check=False)
            assert lost.is_error
            assert "mounted server 'b'" in lost.text
            process = serve()
            await until_async("its return", works)
    finally:
        process.kill()
        process.wait()
