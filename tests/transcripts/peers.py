"""The two ways to play a transcript: to an engine in this process, and to a server process over its pipes."""

from __future__ import annotations

import asyncio
import os
import runpy
import subprocess
import sys
from pathlib import Path
from select import select
from typing import Any

from memory_link import Memory

from .script import SENTINEL, Checker, Expect, Quiet, Script, Send, fill

FIXTURES = Path(__file__).with_name("fixtures.py")
SECONDS = 60.0


def play_in_memory(script: Script) -> None:
    app: Any = runpy.run_path(str(FIXTURES))[script.server]
    asyncio.run(_play(script, app))


async def _play(script: Script, app: Any) -> None:
    checker, peer = Checker(script), Memory(app.engine)

    async def get() -> str:
        return (await asyncio.wait_for(peer.get(), SECONDS)).decode()

    for step in script.steps:
        match step:
            case Send(line, _):
                peer.put(fill(line, checker.kept).encode())
            case Expect(values, _):
                checker.check(step, [await get() for _ in values])
            case Quiet():
                peer.put(SENTINEL.encode())
                checker.check_quiet(step, await get())
    assert peer.pending() == 0
    executor = app.engine.executor
    peer.close()
    assert not executor.live and executor.running == 0
    assert all(not hasattr(row, "entry") for row in peer.session.rows.values())


def play_on_stdio(script: Script, home: Path) -> None:
    """The server process must also end by itself, with nothing left to say, when its input does."""
    checker = Checker(script)
    with Process([f"{FIXTURES}:{script.server}"], home) as peer:
        for step in script.steps:
            match step:
                case Send(line, _):
                    peer.put(fill(line, checker.kept).encode())
                case Expect(values, _):
                    checker.check(step, [peer.get().decode() for _ in values])
                case Quiet():
                    peer.put(SENTINEL.encode())
                    checker.check_quiet(step, peer.get().decode())


class Process:
    """A `longshore serve` process: lines in, lines out, every wait bounded."""

    def __init__(self, arguments: list[str], home: Path) -> None:
        self.stderr = (home / "stderr.txt").open("w+b")
        environ = {key: os.environ[key] for key in ("PATH", "PYTHONPATH") if key in os.environ} | {"HOME": str(home)}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "longshore", "serve", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.stderr,
            cwd=home,
            env=environ,
            bufsize=0,
        )
        assert self.process.stdin is not None and self.process.stdout is not None
        self._in, self._out = self.process.stdin.fileno(), self.process.stdout.fileno()
        self._buffer = bytearray()

    @property
    def pid(self) -> int:
        return self.process.pid

    def put(self, line: bytes) -> None:
        self.put_raw(line + b"\n")

    def put_raw(self, data: bytes) -> None:
        """Write, reading meanwhile what comes: a peer that only writes would wait for one that only writes."""
        view = memoryview(data)
        os.set_blocking(self._in, False)
        while view:
            readable, writable, _ = select([self._out], [self._in], [], SECONDS)
            assert readable or writable, "the server neither reads nor writes"
            if readable:
                self._read()
            if writable:
                view = view[os.write(self._in, view[: 1 << 16]) :]

    def get(self, seconds: float = SECONDS) -> bytes:
        """The next line of the server."""
        while (cut := self._buffer.find(b"\n")) < 0:
            readable, _, _ = select([self._out], [], [], seconds)
            assert readable, f"no line within {seconds} s; stderr: {self.errors()}"
            assert self._read(), f"the server is gone; stderr: {self.errors()}"
        line = bytes(self._buffer[:cut])
        del self._buffer[: cut + 1]
        return line

    def errors(self) -> str:
        self.stderr.flush()
        return Path(self.stderr.name).read_text()

    def _read(self) -> bool:
        data = os.read(self._out, 1 << 16)
        self._buffer += data
        return bool(data)

    def __enter__(self) -> Process:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        assert self.process.stdin is not None and self.process.stdout is not None
        try:
            self.process.stdin.close()
            if kind is None:
                while self._wait_readable() and self._read():
                    pass
                assert self.process.wait(SECONDS) == 0, self.errors()
                assert b"\n" not in self._buffer, bytes(self._buffer)
        finally:
            self.process.kill()
            self.process.wait(SECONDS)
            self.process.stdout.close()
            self.stderr.close()

    def _wait_readable(self) -> bool:
        readable, _, _ = select([self._out], [], [], SECONDS)
        assert readable, "the server does not end at the end of its input"
        return True
