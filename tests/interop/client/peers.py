"""Servers of others, each as it comes: how it is started, and what is left when it has ended."""

from __future__ import annotations

import os
import platform
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from services import skip
from waiting import PATIENCE, eventually

HERE = Path(__file__).parent
SERVERS = HERE / "servers"
INSTALLED = HERE.parent.parent.parent / ".interop"
NODE = INSTALLED / "node" / "node_modules"
FASTMCP = INSTALLED / "fastmcp" / "bin" / "python"
MACHINES = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}
SCRIPTS = {"playwright": "@playwright/mcp/cli.js"}


def command(peer: str, *arguments: str) -> list[str]:
    """How to start one: `official`, `fast`, `everything`, `filesystem`, `memory`, `playwright`."""
    if peer == "official":
        return [sys.executable, str(SERVERS / "official.py"), *arguments]
    if peer == "fast":
        return [_need(FASTMCP), str(SERVERS / "fast.py"), *arguments]
    script = NODE / SCRIPTS.get(peer, f"@modelcontextprotocol/server-{peer}/dist/index.js")
    return [_node(), "--require", str(SERVERS / "loopback.cjs"), _need(script), *arguments]


def claude_code() -> str:
    """The program of Claude Code."""
    machine = MACHINES.get(platform.machine().lower(), "unknown")
    return _need(NODE / "@anthropic-ai" / f"claude-code-linux-{machine}" / "claude")


def codex() -> list[str]:
    """The command of Codex: its own program, without the script of node that looks for it."""
    machine = MACHINES.get(platform.machine().lower(), "unknown")
    found = sorted((NODE / "@openai" / f"codex-linux-{machine}" / "vendor").glob("*/bin/codex"))
    return [_need(found[0] if found else NODE / "@openai" / f"codex-linux-{machine}")]


def gemini() -> list[str]:
    """The command of Gemini CLI."""
    return [_node(), _need(NODE / "@google" / "gemini-cli" / "bundle" / "gemini.js")]


def _node() -> str:
    machine = MACHINES.get(platform.machine().lower(), "unknown")
    return _need(NODE / f"node-linux-{machine}" / "bin" / "node")


def _need(path: Path) -> str:
    if not path.exists():
        where = path.relative_to(INSTALLED.parent)
        skip(f"{where} is missing; run `sh scripts/interop` (`make test` does) to test against the servers of others")
    return str(path)


class Peer:
    """A server that listens on a port of the loopback. It can be killed, and started again on the same port."""

    def __init__(self, peer: str, kind: str, folder: Path) -> None:
        self.peer, self.kind = peer, kind
        self.port = 0
        self._log = folder / "log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/{'sse' if self.kind == 'sse' else 'mcp'}"

    def start(self) -> None:
        self._log.write_bytes(b"")
        if self.peer == "everything":
            argv, env = command(self.peer, self.kind), {**os.environ, "PORT": str(self.port)}
        else:
            argv, env = command(self.peer, self.kind, str(self.port)), None
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                argv, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        told = eventually(f"{self.peer} listens", self._told)
        self.port = int(told[1])

    def _told(self) -> re.Match[str] | None:
        log = self._log.read_text()
        assert self._process is not None
        assert self._process.poll() is None, f"{self.peer} ended:\n{log[-2000:]}"
        return re.search(r"^listening on (\d+)$", log, re.MULTILINE)

    def kill(self) -> None:
        """At once, as when it crashes."""
        process, self._process = self._process, None
        if process is not None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(PATIENCE)


@contextmanager
def serving(peer: str, kind: str) -> Iterator[Peer]:
    """A server over HTTP while the block lasts: `http` or `sse`, `streamableHttp` for the everything server."""
    with TemporaryDirectory() as folder:
        server = Peer(peer, kind, Path(folder))
        try:
            server.start()
            yield server
        finally:
            server.kill()


@contextmanager
def leaving_nothing() -> Iterator[None]:
    """No process, descriptor or thread of ours is left after the block that was not there before."""
    before = children(), _descriptors(), threading.active_count()
    yield
    left = children() - before[0]
    assert not left, f"processes left: {left}"
    assert len(_descriptors()) <= len(before[1]), f"descriptors left: {_descriptors() - before[1]}"
    assert threading.active_count() <= before[2], f"threads left: {threading.enumerate()}"


def children() -> set[str]:
    """The numbers of our processes."""
    found: set[str] = set()
    for task in Path("/proc/self/task").iterdir():
        try:
            found.update((task / "children").read_text().split())
        except FileNotFoundError:
            pass  # a thread that has just ended
    return found


def _descriptors() -> set[str]:
    return {f"{fd}: {os.readlink(f'/proc/self/fd/{fd}')}" for fd in os.listdir("/proc/self/fd") if _is_open(fd)}


def _is_open(fd: str) -> bool:
    return Path(f"/proc/self/fd/{fd}").is_symlink()
