"""Workers: several processes on one port, looked after by one that outlives none of them for long."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from posting import Session, ask_modern, call, modern, post_modern

from .serverproc import ServerProcess, eventually, is_alive, launch, start
from .servers import SOURCE

SOON = 60.0


def text(message: dict) -> str:
    return message["result"]["content"][0]["text"]


def pids(server: ServerProcess) -> set[int]:
    """The processes that answer, asked until each of them has."""
    found: set[int] = set()
    eventually("an answer of each worker", lambda: found.add(answering(server)) or found >= set(server.workers))
    return found


def answering(server: ServerProcess) -> int:
    return int(text(ask_modern(server, call("pid")).messages[-1]))


def test_each_worker_serves() -> None:
    with start(SOURCE, "--workers", "3") as server:
        assert "(Ctrl-C ends it, 3 workers)" in server.stderr
        assert len(server.workers) == 3
        assert pids(server) == set(server.workers)
        assert server.pid not in pids(server)


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT], ids=lambda s: s.name)
def test_a_signal_to_the_supervisor_ends_them_all(signum: int) -> None:
    with start(SOURCE, "--workers", "2", "--grace", "60") as server:
        workers = server.workers
        answer = post_modern(server, modern(call("wait", {"file": "go"})))
        eventually("the call", (server.folder / "go.begun").exists)
        server.kill(signum)
        eventually("an idle worker's end", lambda: len([pid for pid in workers if is_alive(pid)]) == 1)
        (server.folder / "go").touch()
        assert text(answer.finish().messages[-1]) == "waited"
        assert server.wait(SOON) == 128 + signum
        assert [pid for pid in workers if is_alive(pid)] == []
        assert len(server.stderr.splitlines()) == 4, "the greeting alone"


def test_a_signal_to_all_at_once_gives_the_same_grace() -> None:
    """As systemd does it: the supervisor's word comes second, and must not cut anything short."""
    with start(SOURCE, "--workers", "2", "--grace", "60") as server:
        workers = server.workers
        answer = post_modern(server, modern(call("wait", {"file": "go"})))
        eventually("the call", (server.folder / "go.begun").exists)
        for pid in (*workers, server.pid):
            os.kill(pid, signal.SIGTERM)
        eventually("an idle worker's end", lambda: len([pid for pid in workers if is_alive(pid)]) == 1)
        (server.folder / "go").touch()
        assert text(answer.finish().messages[-1]) == "waited"
        assert server.wait(SOON) == 128 + signal.SIGTERM


def test_a_second_signal_ends_them_all_at_once() -> None:
    with start(SOURCE, "--workers", "2", "--grace", "600") as server:
        workers = server.workers
        post_modern(server, modern(call("wait", {"file": "go"})))
        eventually("the call", (server.folder / "go.begun").exists)
        server.kill(signal.SIGINT)
        eventually("an idle worker's end", lambda: len([pid for pid in workers if is_alive(pid)]) == 1)
        server.kill(signal.SIGINT)
        assert server.wait(SOON) == 128 + signal.SIGINT
        assert [pid for pid in workers if is_alive(pid)] == []


def test_workers_do_not_outlive_a_supervisor_that_is_killed() -> None:
    with start(SOURCE, "--workers", "2") as server:
        workers = server.workers
        child = int(text(ask_modern(server, call("start_child")).messages[-1]))
        server.kill(signal.SIGKILL)
        server.process.wait(SOON)
        eventually("the end of all", lambda: not any(map(is_alive, (*workers, child))))


def test_a_worker_that_is_killed_is_replaced() -> None:
    with start(SOURCE, "--workers", "2") as server:
        child = int(text(ask_modern(server, call("start_child")).messages[-1]))
        before = server.workers
        for pid in before:
            os.kill(pid, signal.SIGKILL)
        eventually("two others", lambda: len(set(server.workers) - set(before)) == 2)
        eventually("they serve", lambda: serves(server))
        assert pids(server) == set(server.workers)
        eventually("the end of what a dead worker left behind", lambda: not is_alive(child))
        for pid in before:
            assert f"worker {pid} was ended by SIGKILL; it is replaced" in server.stderr


def serves(server: ServerProcess) -> bool:
    return ask_modern(server, call("add", {"a": 1, "b": 2})).status == 200


def test_workers_that_end_at_once_are_given_up(tmp_path: Path) -> None:
    doomed = SOURCE + "\nif '_LONGSHORE_WORKER' in os.environ: os._exit(7)\n"
    server = launch(tmp_path, doomed, "--workers", "2")
    try:
        assert server.wait() == 1
        assert "5 times in a row workers ended within 5 s, the last of them ended with code 7" in server.stderr
        assert "Traceback" not in server.stderr
    finally:
        server.close()


def test_one_bad_moment_is_not_hopeless_however_many_it_ends() -> None:
    with start(SOURCE, "--workers", "5") as server:
        before = server.workers
        assert len(before) == 5
        for pid in before:
            os.kill(pid, signal.SIGKILL)
        eventually("five others", lambda: len(set(server.workers) - set(before)) == 5)
        eventually("they serve", lambda: serves(server))
        assert pids(server) == set(server.workers)


def test_a_mistake_that_only_a_worker_finds_ends_it(tmp_path: Path) -> None:
    server = launch(tmp_path, SOURCE, "--workers", "2", "--store", "mysql://x")
    try:
        assert server.wait() == 2
        assert "no store is called 'mysql'" in server.stderr
    finally:
        server.close()


def test_the_token_is_seen_by_nobody_else() -> None:
    with start(None, "--workers", "2", "--toolsets", "discovery") as server:
        for pid in (server.pid, *server.workers):
            for file in ("cmdline", "environ"):
                assert server.token.encode() not in Path(f"/proc/{pid}/{file}").read_bytes()
        token = ("Authorization", f"Bearer {server.token}")
        for _ in range(10):
            assert post_modern(server, modern(call("hello")), token).finish().status == 200
            assert post_modern(server, modern(call("hello"))).finish().status == 401


def test_a_session_is_served_by_any_worker_and_after_a_restart(tmp_path: Path) -> None:
    with start(SOURCE, "--workers", "2", folder=tmp_path) as server:
        port = server.port
        session = Session(server).open()
        seen: set[int] = set()
        eventually("an answer of each", lambda: seen.add(int(session.call("pid"))) or seen == set(server.workers))
    flags = ("--workers", "2", "--port", str(port))
    with start(SOURCE, *flags, folder=tmp_path) as server:
        session = Session(server).open()
        kept = session.id
        assert session.call("add", a=1, b=2) == "3"
    with start(SOURCE, *flags, folder=tmp_path) as server:
        session.server = server
        assert session.id == kept and session.call("add", a=1, b=2) == "3"
    (store,) = (tmp_path / "state/longshore/http").glob("*.sqlite3")
    assert store.name == f"127.0.0.1-{port}.sqlite3"
    assert store.parent.stat().st_mode & 0o777 == 0o700
    assert list((tmp_path / "tmp").iterdir()) == []


def test_a_server_of_its_own_may_have_workers(tmp_path: Path) -> None:
    odd = '\napp.tool(name="3d")(lambda path: path)'
    (tmp_path / "own.py").write_text(SOURCE + odd + "\napp.run(http=True, port=0)\n")
    env = {"LONGSHORE_HTTP_WORKERS": "2"}
    with start(None, folder=tmp_path, argv=(sys.executable, "own.py"), env=env) as server:
        assert pids(server) == set(server.workers)
        server.kill()
        assert server.wait(SOON) == 128 + signal.SIGTERM
        assert server.stderr.count("the tool '3d'") == 1, "what is wrong with a tool is told once, not by each of them"


def test_a_worker_that_is_ready_when_it_is_no_longer_wanted_says_nothing() -> None:
    late = """
if "_LONGSHORE_WORKER" in os.environ and os.path.exists("slow"):
    open("begun", "w").close()
    while os.path.exists("slow"):
        time.sleep(0.01)
"""
    with start(SOURCE + late, "--workers", "2", "--grace", "60") as server:
        (server.folder / "slow").touch()
        os.kill(server.workers[0], signal.SIGKILL)
        eventually("another one", (server.folder / "begun").exists)
        server.kill()
        eventually("the other's end", lambda: len(server.workers) == 1)
        (server.folder / "slow").unlink()
        assert server.wait(SOON) == 128 + signal.SIGTERM
        assert "Traceback" not in server.stderr


def test_a_supervisor_that_has_ended_leaves_the_handler_of_ended_children_as_it_was() -> None:
    code = """
import signal
from longshore.transports.http_server.supervisor import Supervisor
def handler(*_): ...
signal.signal(signal.SIGCHLD, handler)
supervisor = Supervisor(0, None, None, lambda: None)
supervisor.stop()
supervisor.run(1.0)
assert signal.getsignal(signal.SIGCHLD) is handler
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=SOON)


def test_a_worker_that_has_left_and_does_not_exit_is_ended() -> None:
    """A thread of its own may hold it; its line has closed, so there is nothing more to hear of it."""
    stuck = """
if "_LONGSHORE_WORKER" in os.environ and not os.path.exists("left"):
    open("left", "w").close()
    os.close(int(os.environ["_LONGSHORE_WORKER"]))
    threading.Thread(target=time.sleep, args=(600,)).start()
    sys.exit(7)
"""
    with start(SOURCE + stuck, "--workers", "2") as server:
        assert "was ended by SIGKILL; it is replaced" in server.stderr
        assert pids(server) == set(server.workers)
