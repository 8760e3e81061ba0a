"""A server on stdio as `longshore doctor` watches it: what it writes, how it ends, and what it leaves behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from selectors import EVENT_READ, DefaultSelector
from time import monotonic, sleep
from typing import Any, Final, Self, final

import msgspec

from longshore.cli.exchange import MOST_BYTES, Json, decode
from longshore.errors import TargetError

Clock = Callable[[], float]

STDERR_BYTES: Final = 8_000
_READ_BYTES: Final = 64 << 10
_POLL_SECONDS: Final = 0.01
_DRAIN_SECONDS: Final = 0.3
"""Time to read on after it has ended: a process that it leaves behind may hold the pipe open for ever."""
_EXEC_SECONDS: Final = 0.5
"""For all processes that are in the midst of their exec, and for those without any variable."""
_MARK: Final = "MCP_DOCTOR_MARK"
"""A variable in its environment, by which processes are found that it started and that left its process group."""


class TooMuchOutput(TargetError):
    """A server wrote more than any answer needs."""


@final
class ServerProcess:
    """A started server. Use it as `with ServerProcess(…) as server`: it and what it started are ended at the end.

    Raises TargetError if it can't be started.
    """

    def __init__(
        self, argv: Sequence[str], env: Mapping[str, str] | None, cwd: str | None, clock: Clock = monotonic
    ) -> None:
        self.clock = clock
        self.started_at = clock()
        self._mark = f"{_MARK}={os.urandom(8).hex()}"
        name, _, value = self._mark.partition("=")
        try:
            self._process = subprocess.Popen(
                list(argv),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**os.environ, **(env or {}), name: value},
                cwd=cwd,
                start_new_session=True,
                bufsize=0,
            )
        except (OSError, ValueError) as problem:
            raise TargetError(f"{argv[0]}: {getattr(problem, 'strerror', None) or problem}") from None
        self.pid = self._process.pid
        self.frames: list[Json] = []
        """Messages of JSON-RPC, in their order."""
        self.stray: list[bytes] = []
        """Lines on stdout that are none."""
        self._rest = bytearray()
        self._read = 0
        self._stderr = bytearray()
        self._selector = DefaultSelector()
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._selector.register(self._process.stdout, EVENT_READ, self._take)
        self._selector.register(self._process.stderr, EVENT_READ, self._take_stderr)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._selector.close()
        for pid in (*self.left_behind(), self.pid):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()
        self._process.wait()

    # -- messages

    def send(self, *messages: Json | bytes) -> None:
        """Write lines. A server that has closed its input gets none."""
        assert self._process.stdin is not None
        data = b"".join((each if isinstance(each, bytes) else msgspec.json.encode(each)) + b"\n" for each in messages)
        with suppress(BrokenPipeError):
            self._process.stdin.write(data)  # a few lines, which fit into the pipe: this never waits

    def end_input(self) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()

    def signal(self, number: int) -> None:
        """Send a signal to the server alone, as clients do."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def wait(self, condition: Callable[[], Any], seconds: float) -> Any:
        """Read until the condition is true, or the server has ended and all that it wrote is read. Its value, then."""
        deadline, end = self.clock() + seconds, None
        while not (found := condition()):
            now = self.clock()
            if end is None and self.has_ended:
                end = now + _DRAIN_SECONDS
            if now > (deadline if end is None else end) or not self._pump():
                break
        return found or condition()

    def drain(self) -> None:
        """Read what it wrote last."""
        self.wait(lambda: False, _DRAIN_SECONDS)

    def answer(self, id: Any) -> Json:
        """The answer to a request; empty while there is none."""
        none: Json = {}
        found = (each for each in self.answers if each.get("id") == id and type(each["id"]) is type(id))
        return next(found, none)

    @property
    def answers(self) -> list[Json]:
        return [each for each in self.frames if "method" not in each]

    @property
    def stderr(self) -> str:
        return bytes(self._stderr).decode("utf-8", "replace").strip()

    def _pump(self) -> bool:
        """Read what there is. Whether there may be more."""
        for key, _ in self._selector.select(_POLL_SECONDS):
            chunk = os.read(key.fd, _READ_BYTES)
            key.data(chunk)
            if not chunk:
                self._selector.unregister(key.fileobj)
        return bool(self._selector.get_map()) or not self.has_ended

    def _take(self, chunk: bytes) -> None:
        self._read += len(chunk)
        if self._read > MOST_BYTES:
            raise TooMuchOutput(f"it wrote more than {MOST_BYTES:,} bytes on stdout")
        self._rest += chunk
        *lines, rest = bytes(self._rest).split(b"\n")
        self._rest = bytearray(rest)
        if not chunk and rest:  # the last line has no end
            lines.append(rest)
            self._rest.clear()
        for line in filter(bytes.strip, lines):
            frame = decode(line)
            if frame.get("jsonrpc") == "2.0":
                self.frames.append(frame)
            else:
                self.stray.append(line)

    def _take_stderr(self, chunk: bytes) -> None:
        self._stderr += chunk
        del self._stderr[:-STDERR_BYTES]

    # -- its end

    @property
    def has_ended(self) -> bool:
        """It is not reaped, so that its group keeps its number."""
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def how_it_ended(self) -> str:
        state = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if state is None:
            return "it runs on"
        if state.si_code == os.CLD_EXITED:
            return f"it ended with exit code {state.si_status}"
        return f"it was ended by {signal.Signals(state.si_status).name}"

    def left_behind(self) -> list[int]:
        """Processes that it started, directly or not, and that run still. Only Linux says which."""
        if sys.platform != "linux":
            return []
        mark, deadline = self._mark.encode(), monotonic() + _EXEC_SECONDS
        return [
            pid
            for pid in map(int, filter(str.isdigit, os.listdir("/proc")))
            if pid != self.pid and _has(pid, mark, deadline)
        ]

    def command_of(self, pid: int) -> str:
        """The command line of a process; empty if it has ended."""
        return _read_proc(pid, "cmdline").replace(b"\0", b" ").decode("utf-8", "replace").strip()


def _has(pid: int, mark: bytes, deadline: float) -> bool:
    """Whether a process has a variable. In the midst of its exec it has none yet."""
    while not (found := _read_proc(pid, "environ")) and _has_program(pid) and monotonic() < deadline:
        sleep(_POLL_SECONDS)
    return mark in found.split(b"\0")


def _has_program(pid: int) -> bool:
    """A thread of the kernel and a process that has ended have none."""
    try:
        return bool(os.readlink(f"/proc/{pid}/exe"))
    except OSError:
        return False


def _read_proc(pid: int, name: str) -> bytes:
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            return file.read()
    except OSError:
        return b""
