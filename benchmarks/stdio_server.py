"""A server process on stdio that is asked one request at a time, in raw JSON lines: the same client for everybody."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import Any, Self

from benchmarks.load import LoadFailed

BUFFER = 1 << 20  # bytes; the longest answers have a million
STOP_SECONDS = 10
CHARACTERS_PER_TOKEN = 4
INITIALIZE = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}


@dataclass(frozen=True)
class Answer:
    result: dict[str, Any]
    milliseconds: float

    @property
    def text(self) -> str:
        """The texts of a tool's result."""
        return "\n".join(part["text"] for part in self.result["content"] if part["type"] == "text")

    @property
    def tokens(self) -> float:
        """Of the whole result: four characters of its JSON text are one."""
        return count_tokens(self.result)


def count_tokens(value: Any) -> float:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":"))) / CHARACTERS_PER_TOKEN


class StdioServer:
    """A server that runs, and is initialized, for as long as the `with` lasts."""

    def __init__(
        self, command: Sequence[str], *, folder: Path, home: Path, variables: Mapping[str, str] | None = None
    ) -> None:
        self.command, self._folder = command, folder
        # The user's environment and settings could slow a server down or configure it: see load.run.
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8", **(variables or {})}
        self._number = 0

    def __enter__(self) -> Self:
        self._said = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            self.command,
            cwd=self._folder,
            env=self.environment,
            bufsize=BUFFER,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
        )
        try:
            self.ask("initialize", **INITIALIZE)
            self._send({"method": "notifications/initialized"})
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, value: object, trace: TracebackType | None) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.close()
            self._process.wait(STOP_SECONDS)
        except (OSError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._said.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    def call(self, name: str, **arguments: Any) -> Answer:
        """Call a tool. Raises LoadFailed if it fails."""
        answer = self.ask("tools/call", name=name, arguments=arguments)
        if answer.result.get("isError"):
            raise LoadFailed(f"{name}: {answer.text[:500]}")
        return answer

    def call_at_once(self, name: str, calls: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """The results of calls of a tool that are sent one after the other, before any answer is read."""
        first = self._number + 1
        for arguments in calls:
            self._number += 1
            params = {"name": name, "arguments": arguments}
            self._send({"id": self._number, "method": "tools/call", "params": params})
        answers = dict[int, dict[str, Any]]()
        while len(answers) < len(calls):
            message = self._read(name)
            if "method" not in message and message.get("id", 0) >= first:
                answers[message["id"]] = message.get("result", {"isError": True})
        return [answers[number] for number in range(first, self._number + 1)]

    def ask(self, method: str, **params: Any) -> Answer:
        """Milliseconds are those from the request's first byte to the answer's last."""
        self._number += 1
        began = perf_counter()
        self._send({"id": self._number, "method": method, "params": params})
        while True:
            message = self._read(method)
            milliseconds = (perf_counter() - began) * 1e3
            if message.get("id") != self._number or "method" in message:
                continue  # a notification, or a request of the server's
            if "result" not in message:
                raise LoadFailed(f"{method}: {message}")
            return Answer(message["result"], milliseconds)

    def _read(self, method: str) -> dict[str, Any]:
        assert self._process.stdout is not None
        if line := self._process.stdout.readline():
            message: dict[str, Any] = json.loads(line)
            return message
        self._said.seek(0)
        raise LoadFailed(f"{method}: the server ended; it said:\n{self._said.read().decode(errors='replace')[-500:]}")

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self._process.stdin.flush()
