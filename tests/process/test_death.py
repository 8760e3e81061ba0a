"""A stop signal and a dead parent each end the process soon, with everything that it started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from waiting import PATIENCE, eventually, is_alive

from .conftest import Workshop
from .peer import LONGSHORE, Peer, call, request, text_of

SOON = 60.0
"""Seconds to wait for an end that nothing holds up: what is in flight would hold it for 60. benchmarks/shutdown.py
measures how soon it is."""

MORTAL = """
    import asyncio, os, subprocess, sys, threading, time
    from longshore import Server
    app = Server("mortal")

    kept = []

    @app.tool
    def start_children() -> list[int]:
        read, write = os.pipe()
        for kind in ("child", "daemon"):
            kept.append(subprocess.Popen([sys.executable, "child.py", kind, str(write)], pass_fds=[write]))
        said = b""
        while len(said.split()) < 2 or said[-1:] != b" ":
            said += os.read(read, 100)
        return [int(pid) for pid in said.split()]

    @app.tool
    def start_thread() -> str:
        threading.Thread(target=time.sleep, args=(600,), daemon=False).start()
        return "started"

    @app.tool
    def sleep() -> str:
        time.sleep(600)

    @app.tool
    async def swallow() -> str:
        while True:
            try:
                await asyncio.sleep(600)
            except asyncio.CancelledError:
                pass

    @app.tool
    async def hang() -> str:
        await asyncio.Event().wait()

    @app.tool(run="inline")
    def running() -> int:
        return app.engine.executor.running

    if __name__ == "__main__":
        app.run()
"""

STUBBORN_CHILD = """
    import os, signal, sys, time
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    if sys.argv[1] == "daemon":
        if os.fork():
            os._exit(0)
        os.setsid()
        if os.fork():
            os._exit(0)
    os.write(int(sys.argv[2]), b"%d " % os.getpid())
    time.sleep(600)
"""


@pytest.fixture(autouse=True)
def child(workshop: Workshop) -> None:
    workshop.write(STUBBORN_CHILD, "child.py")


def burden(peer: Peer) -> list[int]:
    """All that may hold a process, and 64 calls in flight. Gives the pids of what it started."""
    peer.start()
    peer.send(request("list", "tools/list"))
    peer.answer("list")
    pids = [int(pid) for pid in peer.call("start_children")["result"]["structuredContent"]["result"]]
    peer.call("start_thread")
    kinds = ("sleep", "swallow", "hang")
    peer.send(*(call(n, kinds[n % 3]) for n in range(64)))
    eventually("64 calls in flight", lambda: text_of(peer.call("running")) == "64")
    assert all(is_alive(pid) for pid in pids)
    return pids


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP], ids=lambda s: s.name)
@pytest.mark.parametrize("how", ["serve", "run"])
def test_a_signal_ends_the_process_and_all_descendants(workshop: Workshop, signum: signal.Signals, how: str) -> None:
    path = str(workshop.write(MORTAL))
    peer = workshop.spawn(*([*LONGSHORE, "serve", path] if how == "serve" else [sys.executable, path]))
    pids = burden(peer)
    os.kill(peer.pid, signum)
    peer.wait(SOON)
    assert peer.process.returncode == 128 + signum
    assert [pid for pid in pids if is_alive(pid)] == []
    assert "Traceback" not in peer.stderr


def test_end_of_input_ends_the_process_and_all_descendants(workshop: Workshop) -> None:
    peer = workshop.serve(MORTAL, "--eof-grace", "0.1")
    pids = burden(peer)
    peer.close_input()
    peer.wait(SOON)
    assert peer.process.returncode == 0
    assert {frame["id"] for frame in peer.seen} >= set(range(64))
    assert [pid for pid in pids if is_alive(pid)] == []


# -- the parent

MIDDLE = """
import subprocess, sys, threading, time
spawned = []
def spawn():
    spawned.append(subprocess.Popen(sys.argv[2:]))
if sys.argv[1] == "thread":
    thread = threading.Thread(target=spawn)
    thread.start()
    thread.join()
else:
    spawn()
open("pid.part", "w").write(str(spawned[0].pid))
import os; os.rename("pid.part", "pid")
time.sleep(600)
"""


def spawn_below(workshop: Workshop, source: str | None, by: str = "main") -> tuple[Peer, int]:
    """A server whose parent is not us, on pipes that we hold: no end of input will come."""
    target = [] if source is None else [str(workshop.write(source))]
    peer = workshop.spawn(sys.executable, "-W", "ignore", "-c", MIDDLE, by, *LONGSHORE, "serve", *target)
    pid = workshop.folder / "pid"
    eventually("the server's pid", pid.exists)
    return peer, int(pid.read_text())


def kill_parent(peer: Peer, server: int) -> None:
    """Kill the parent, and see the server end too."""
    os.kill(peer.pid, signal.SIGKILL)
    eventually("the server ends", lambda: not is_alive(server))


def test_the_parents_death_ends_the_process_and_all_descendants(workshop: Workshop) -> None:
    peer, server = spawn_below(workshop, MORTAL)
    pids = burden(peer)
    kill_parent(peer, server)
    assert [pid for pid in pids if is_alive(pid)] == []


@pytest.mark.parametrize("after", ["nothing", "initialize", "list", "call"])
def test_the_parents_death_is_noticed_at_every_stage(workshop: Workshop, after: str) -> None:
    peer, server = spawn_below(workshop, None)
    if after != "nothing":
        peer.start()
    if after == "list":
        peer.ask(request(1, "tools/list"))
    if after == "call":
        peer.call("hello")
    time_to_settle(server)
    kill_parent(peer, server)


def test_the_end_of_the_thread_that_started_us_is_not_the_parents(workshop: Workshop) -> None:
    peer, server = spawn_below(workshop, None, by="thread")
    peer.start()
    peer.ask(request(1, "tools/list"))
    time_to_settle(server)
    assert peer.ask(request(2, "ping"))["result"] == {}
    kill_parent(peer, server)


def time_to_settle(server: int) -> None:
    """The server handles SIGRTMIN once it listens for its parent's death."""

    def handles() -> bool:
        lines = Path(f"/proc/{server}/status").read_text().splitlines()
        caught = next(int(line.split()[1], 16) for line in lines if line.startswith("SigCgt"))
        return bool(caught >> (signal.SIGRTMIN - 1) & 1)

    eventually("the server watches its parent", handles)


def test_a_client_that_is_killed_during_a_call_leaves_no_server_behind(workshop: Workshop) -> None:
    """The ordinary crash: client, pipes and all are gone at once."""
    client = """
    import subprocess, sys, time
    server = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    for line in open("asked.jsonl", "rb"):
        server.stdin.write(line)
    server.stdin.flush()
    server.stdout.readline()
    open("pid.part", "w").write(str(server.pid))
    import os; os.rename("pid.part", "pid")
    time.sleep(600)
    """
    from .peer import encode, initialize

    path = workshop.write(MORTAL)
    (workshop.folder / "asked.jsonl").write_bytes(encode(initialize(), *(call(n, "sleep") for n in range(64))))
    argv = [sys.executable, str(workshop.write(client, "client.py")), *LONGSHORE, "serve", str(path)]
    peer = workshop.spawn(*argv)
    pid = workshop.folder / "pid"
    eventually("the server's pid", pid.exists)
    kill_parent(peer, int(pid.read_text()))


# -- where a signal may find us

INLINE = """
    import time
    from longshore import Server
    app = Server("inline")

    @app.tool(run="inline")
    def big(size: int) -> str:
        return "x" * size

    @app.tool(run="inline")
    def sleep() -> str:
        open("sleeping", "w").close()
        time.sleep(600)

    @app.tool(run="inline")
    def swallow() -> str:
        open("sleeping", "w").close()
        while True:
            try:
                time.sleep(600)
            except BaseException:
                pass

    @app.tool
    async def wake() -> str:
        return "awake"
"""


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT], ids=lambda s: s.name)
@pytest.mark.parametrize("phase", ["cold", "blocking", "loop"])
def test_a_signal_ends_an_idle_server(workshop: Workshop, signum: signal.Signals, phase: str) -> None:
    peer = workshop.serve(INLINE)
    if phase == "cold":
        time_to_install(peer)
    else:
        peer.start()
    if phase == "loop":
        peer.call("wake")
    os.kill(peer.pid, signum)
    peer.wait(SOON)
    assert peer.process.returncode == 128 + signum
    assert peer.stderr == ""


def time_to_install(peer: Peer) -> None:
    def handles() -> bool:
        lines = Path(f"/proc/{peer.pid}/status").read_text().splitlines()
        caught = next(int(line.split()[1], 16) for line in lines if line.startswith("SigCgt"))
        return bool(caught >> (signal.SIGHUP - 1) & 1)

    eventually("the server takes the signals", handles)


@pytest.mark.parametrize("tool", ["sleep", "swallow"])
@pytest.mark.parametrize("phase", ["blocking", "loop"])
def test_a_signal_ends_a_server_whose_main_thread_is_in_a_tool(workshop: Workshop, tool: str, phase: str) -> None:
    peer = workshop.serve(INLINE)
    peer.start()
    if phase == "loop":
        peer.call("wake")
    peer.send(call(1, tool))
    eventually("the tool runs", (workshop.folder / "sleeping").exists)
    os.kill(peer.pid, signal.SIGTERM)
    peer.wait(SOON)
    assert peer.process.returncode == 128 + signal.SIGTERM


@pytest.mark.parametrize("phase", ["blocking", "loop"])
def test_a_signal_ends_a_server_whose_peer_does_not_read(workshop: Workshop, phase: str) -> None:
    peer = workshop.serve(INLINE)
    peer.start()
    if phase == "loop":
        peer.call("wake")
    peer.send(*(call(n, "big", size=4_000_000) for n in range(4)))
    eventually("it waits for us", lambda: waits_to_write(peer))
    os.kill(peer.pid, signal.SIGTERM)
    assert peer.process.wait(SOON) == 128 + signal.SIGTERM  # nobody reads: that is the point


def waits_to_write(peer: Peer) -> bool:
    """Asleep, with the pipe to us full."""
    import fcntl
    import struct
    import termios

    assert peer.process.stdout is not None
    waiting = struct.unpack("i", fcntl.ioctl(peer.process.stdout, termios.FIONREAD, b"\0" * 4))[0]
    return waiting >= 1 << 16 and Path(f"/proc/{peer.pid}/stat").read_bytes().rpartition(b")")[2].split()[0] == b"S"


def test_a_second_interrupt_ends_at_once(workshop: Workshop) -> None:
    """The first waits for a toolset that will not close; the second does not."""
    peer = workshop.serve(
        """
        import asyncio, os, time
        from longshore import Limits, Server, Toolset, tool
        app = Server("slow to end", limits=Limits(stop_seconds=600))

        class Slow(Toolset):
            async def start(self): ...
            async def stop(self):
                open("stopping", "w").close()
                await asyncio.sleep(600)

            @tool
            def use(self) -> str:
                return "used"

        app.add_toolset(Slow())
        """
    )
    peer.start()
    assert text_of(peer.call("use")) == "used"
    os.kill(peer.pid, signal.SIGINT)
    eventually("it is ending", (workshop.folder / "stopping").exists)
    assert peer.process.poll() is None
    os.kill(peer.pid, signal.SIGINT)
    peer.wait(SOON)
    assert peer.process.returncode == 128 + signal.SIGINT


# -- a peer that is gone


@pytest.mark.parametrize("tool", ["inline", "thread", "async"])
def test_a_closed_stdout_ends_the_process(workshop: Workshop, tool: str) -> None:
    peer = workshop.serve(
        """
        from longshore import Server
        app = Server("echo")
        @app.tool(run="inline")
        def inline(): ...
        @app.tool
        def thread(): ...
        @app.tool(name="async")
        async def later(): ...
        """
    )
    peer.start()
    assert peer.process.stdout is not None
    peer.process.stdout.close()
    peer.send(call(1, tool))
    peer.wait(SOON)
    assert peer.process.returncode == 0
    assert "Traceback" not in peer.stderr


def test_a_closed_stdout_ends_the_process_with_calls_in_flight(workshop: Workshop) -> None:
    peer = workshop.serve(MORTAL)
    pids = burden(peer)
    assert peer.process.stdout is not None
    peer.process.stdout.close()
    peer.send(request("last", "ping"))
    peer.wait(SOON)
    assert [pid for pid in pids if is_alive(pid)] == []


def test_a_socket_can_be_the_peer(workshop: Workshop) -> None:
    """Node starts its children on sockets, not pipes. A reset by the peer is an end, not a trace."""
    import socket

    ours, theirs = socket.socketpair()
    peer = workshop.serve(INLINE, stdin=theirs.fileno(), stdout=theirs.fileno())
    theirs.close()
    with ours:
        from .peer import encode, initialize

        ours.settimeout(PATIENCE)
        ours.sendall(encode(initialize(), call(1, "wake")))
        said = b""
        while said.count(b"\n") < 2:
            said += ours.recv(1 << 16)
        ours.sendall(encode(call(2, "big", size=3_000_000)))
        ours.recv(1)
    assert peer.wait() in (0, 128 + signal.SIGTERM)
    assert "Traceback" not in peer.stderr


def test_ctrl_c_in_a_shell_pipeline_leaves_nothing(workshop: Workshop) -> None:
    """The terminal signals the whole group: server and children alike."""
    path = workshop.write(MORTAL)
    with subprocess.Popen(
        [*LONGSHORE, "serve", str(path)],
        cwd=workshop.folder,
        env=workshop.env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as server:
        from .peer import encode, initialize

        assert server.stdin is not None and server.stdout is not None and server.stderr is not None
        server.stdin.write(encode(initialize(), call(1, "sleep")))
        server.stdin.flush()
        server.stdout.readline()
        os.killpg(server.pid, signal.SIGINT)
        assert server.wait(PATIENCE) == 128 + signal.SIGINT
        assert b"Traceback" not in server.stderr.read()
