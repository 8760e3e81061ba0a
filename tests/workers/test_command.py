"""The same with `longshore serve` as it is: workers of one command, and two commands on one Redis."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from posting import ask_modern, call
from services import RedisServer, free_port
from serving import Connection, Exchange, Pairs

from .processes import PATIENCE, SCRIPT, STATE_KEY, Process, at, do, opened, progress, until, wait_messages
from .test_reaching import listen, numbers
from .test_resuming import steps

ADDRESS = re.compile(r"serves MCP at http://127\.0\.0\.1:(\d+)/mcp")


class Command(Process):
    """A `longshore serve --http` of ours."""

    def __init__(self, folder: Path, *options: str) -> None:
        folder.mkdir(exist_ok=True)
        (folder / "longshore.toml").write_text("[limits]\nstream_after_seconds = 0.05\n")
        argv = [sys.executable, "-W", "error", "-m", "longshore", "serve", f"{SCRIPT}:app", "--http", *options]
        environment = {**os.environ, "LONGSHORE_HTTP_STATE_KEY": STATE_KEY, "XDG_STATE_HOME": str(folder)}
        log = folder / "command.log"
        with log.open("wb") as stderr:
            self._command = subprocess.Popen(
                argv, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr
            )
        super().__init__(self._command.pid, 0, log)

    def wait_ready(self) -> Command:
        found = until(lambda: ADDRESS.search(self.log.read_text()) or not self.alive, "the address")
        assert isinstance(found, re.Match), self.log.read_text()
        self.port = int(found[1])
        return self

    def wait_ended(self) -> None:
        super().wait_ended()
        self._command.wait(PATIENCE)


@contextmanager
def running(*commands: Command) -> Iterator[None]:
    try:
        for command in commands:
            command.wait_ready()
        yield
    finally:
        for command in commands:
            command.close_connections()
            command.begin_to_stop()
        for command in commands:
            command.wait_ended()


class Worker:
    """One worker of a command, reached over connections that it has accepted."""

    def __init__(self, command: Command, pid: int) -> None:
        self.command, self.pid, self.port = command, pid, command.port
        self.free: list[Connection] = []

    def send(self, method: str, path: str = "/mcp", headers: Pairs = (), body: bytes | None = None) -> Exchange:
        """A request on a connection that nothing else is sent on."""
        until(self._enough, "another connection to this worker")
        return self.free.pop().send(method, path, headers, body)

    def _enough(self) -> bool:
        if not self.free:
            sort_out(self.command, {self.pid: self})
        return bool(self.free)

    def do(self, tool: str, /, **arguments: Any) -> Any:
        return do(self, tool, arguments)


def sort_out(command: Command, workers: dict[int, Worker]) -> None:
    """Make some connections at once, and see whose they are."""
    made = [command.connect() for _ in range(8)]
    message = call("process", {}, 1)
    for connection in made:
        answer = ask_modern(connection, message)  # type: ignore[arg-type]
        pid = int(answer.messages[0]["result"]["content"][0]["text"])
        workers.setdefault(pid, Worker(command, pid)).free.append(connection)


def two_workers(command: Command) -> list[Worker]:
    workers: dict[int, Worker] = {}

    def found() -> bool:
        sort_out(command, workers)
        return len(workers) == 2

    until(found, "both workers")
    return list(workers.values())


def share_everything(a: Any, b: Any) -> Any:
    """What a session needs of two processes; gives the session."""
    session = opened(a)
    assert at(session, b).call("process") == str(b.pid)
    assert session.ask("resources/subscribe", {"uri": "note://all"})["result"] == {}
    stream = at(session, a).get().wait(lambda it: it.events)
    heard = [listen(process) for process in (a, b)]
    b.do("touch", uri="note://all/1")
    assert numbers(wait_messages(stream, 1)) == [1]
    moved = at(session, b).get(stream.events[-1].id).begin()
    a.do("touch", uri="note://all/2")
    assert numbers(wait_messages(moved, 1)) == [2]
    a.do("grow")
    for each in (moved, *heard):
        each.wait(lambda it: "notifications/tools/list_changed" in str(it.messages))
    name = f"walk {session.id}"
    walk = progress(at(session, a), "walk", 1, name=name, to=2)
    a.do("allow", name=name)
    wait_messages(walk, 1)
    walk.drop()
    resumed = at(session, b).get(walk.events[0].id)
    wait_messages(resumed, 1)
    a.do("allow", name=name, steps=2)
    assert steps(resumed.finish().messages) == [1, 2, f"{name} walked 2"]
    return session


def test_workers_of_one_command(tmp_path: Path) -> None:
    options = ("--workers", "2", "--port", str(free_port()), "--grace", "0.2")
    command = Command(tmp_path / "site", *options)
    with running(command):
        a, b = two_workers(command)
        session = share_everything(a, b)
        os.kill(a.pid, 9)
        assert at(session, b).call("echo", text="goes on") == "goes on"
        c, d = two_workers(command)  # another one was started
        assert b.pid in (c.pid, d.pid) and a.pid not in (c.pid, d.pid)
        for worker in (c, d):
            assert at(session, worker).call("process") == str(worker.pid)  # type: ignore[arg-type]
    again = Command(tmp_path / "site", *options)
    with running(again):
        a, b = two_workers(again)
        for worker in (a, b):
            assert at(session, worker).call("process") == str(worker.pid)  # type: ignore[arg-type]


def test_two_commands_on_one_redis(tmp_path: Path, redis_server: RedisServer) -> None:
    url = redis_server.url.removesuffix("0") + "999"
    commands = [
        Command(tmp_path / name, "--store", url, "--port", "0", "--grace", "0.2") for name in ("first", "second")
    ]
    with running(*commands):
        session = share_everything(*commands)
        commands[0].stop()
        assert at(session, commands[1]).call("echo", text="goes on") == "goes on"
