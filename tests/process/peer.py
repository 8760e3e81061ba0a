"""The client's end of a server process: frames over its pipes, every wait bounded."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from waiting import PATIENCE

MODERN = "2026-07-28"
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
}
PYTHON = [sys.executable]
LONGSHORE = [sys.executable, "-m", "longshore"]


def request(id: int | str, method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def call(id: int | str, tool: str, **arguments: Any) -> dict[str, Any]:
    return request(id, "tools/call", name=tool, arguments=arguments)


def modern(message: dict[str, Any]) -> dict[str, Any]:
    """The same request with the envelope of the stateless era."""
    return {**message, "params": {**message["params"], "_meta": ENVELOPE}}


def notification(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def initialize(version: str = "2025-11-25", **capabilities: Any) -> dict[str, Any]:
    info = {"name": "test", "version": "1"}
    return request("init", "initialize", protocolVersion=version, capabilities=capabilities, clientInfo=info)


def encode(*messages: Any) -> bytes:
    return b"".join(m + b"\n" if isinstance(m, bytes) else json.dumps(m).encode() + b"\n" for m in messages)


def text_of(answer: dict[str, Any]) -> str:
    """The text of a tool's answer."""
    return "".join(block["text"] for block in answer["result"]["content"])


def failed(answer: dict[str, Any]) -> bool:
    return answer["result"].get("isError", False)


def resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Peer:
    """A running server process. Answers may come in any order: `answer(id)` keeps the others for later."""

    def __init__(
        self,
        argv: Sequence[str],
        cwd: Path,
        env: dict[str, str],
        *,
        stdin: int = subprocess.PIPE,
        stdout: int = subprocess.PIPE,
        stderr: Path | None = None,
    ) -> None:
        self._errors = stderr or cwd / "stderr.txt"
        with self._errors.open("ab") as errors:
            self.process = subprocess.Popen(argv, cwd=cwd, env=env, stdin=stdin, stdout=stdout, stderr=errors)
        self._rest = b""
        self._frames: list[dict[str, Any]] = []
        self.seen: list[dict[str, Any]] = []
        """Every frame that came, in order."""

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def stderr(self) -> str:
        return self._errors.read_text(errors="replace")

    # -- sending

    def send(self, *messages: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(encode(*messages))
        self.process.stdin.flush()

    def close_input(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    def start(self, version: str = "2025-11-25", **capabilities: Any) -> dict[str, Any]:
        """Shake hands."""
        self.send(initialize(version, **capabilities))
        answer = self.answer("init")
        self.send(notification("notifications/initialized"))
        return answer

    def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        self.send(message)
        return self.answer(message["id"])

    def call(self, tool: str, id: int | str = "call", **arguments: Any) -> dict[str, Any]:
        return self.ask(call(id, tool, **arguments))

    # -- receiving

    def receive(self, want: Callable[[dict[str, Any]], bool], what: str) -> dict[str, Any]:
        """The first frame that `want` picks; the others wait for whoever asks next."""
        end = time.monotonic() + PATIENCE
        while True:
            for index, frame in enumerate(self._frames):
                if want(frame):
                    return self._frames.pop(index)
            if not self._read(end - time.monotonic()):
                raise AssertionError(f"{what} did not come; instead {self._frames[:5]}\n{self.stderr[-2000:]}")

    def answer(self, id: int | str) -> dict[str, Any]:
        return self.receive(lambda frame: frame.get("id") == id and "method" not in frame, f"an answer to {id!r}")

    def notice(self, method: str) -> dict[str, Any]:
        return self.receive(lambda frame: frame.get("method") == method, method)

    def read_all(self) -> list[dict[str, Any]]:
        """Everything up to the end of the stream that nobody has taken yet."""
        end = time.monotonic() + PATIENCE
        while self._read(end - time.monotonic()):
            pass
        assert time.monotonic() < end, "the stream did not end"
        frames, self._frames = self._frames, []
        return frames

    def _read(self, patience: float) -> bool:
        """False: the stream has ended or nothing came."""
        assert self.process.stdout is not None
        fd = self.process.stdout.fileno()
        if patience <= 0 or not select.select([fd], [], [], patience)[0]:
            return False
        chunk = os.read(fd, 1 << 20)
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            frame = json.loads(line)  # anything that is not JSON on this stream is a fault
            self._frames.append(frame)
            self.seen.append(frame)
        if not chunk:
            assert not self._rest, f"an unfinished line: {self._rest[:200]!r}"
        return bool(chunk)

    # -- ending

    def wait(self, patience: float = PATIENCE) -> int:
        """The exit code. Reads on meanwhile, so that no full pipe holds the server."""
        end = time.monotonic() + patience
        while self.process.poll() is None:
            if time.monotonic() > end:
                raise AssertionError(f"the server still runs after {patience:g} s\n{self.stderr[-2000:]}")
            if self.process.stdout is None or self.process.stdout.closed or not self._read(0.005):
                time.sleep(0.002)
        return self.process.returncode

    def kill(self) -> None:
        if self.process.poll() is None:
            os.kill(self.pid, signal.SIGKILL)
            self.process.wait(PATIENCE)
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                try:
                    stream.close()
                except BrokenPipeError:
                    pass
