"""One exchange with a server on stdio: it is started, given lines and the end of input, and what it writes is kept."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from selectors import EVENT_READ, DefaultSelector
from time import monotonic, sleep
from typing import Any, Final

import msgspec
from msgspec import Struct

from longshore.errors import TargetError
from longshore.limits import DEFAULT_LIMITS
from longshore.schema.kinds import as_array, as_object
from longshore.wire.codec import BROKEN, too_deep

SECONDS: Final = 90.0
"""For a server to answer a few lines and end: more than the 60 that our calls in flight have after the end of input."""
MOST_BYTES: Final = 16 << 20
"""Of a server's stdout: a hundred times the longest list of tools that clients take."""
STDERR_BYTES: Final = 2_000
"""Of a server's stderr in a message, the last ones."""
_DRAIN_SECONDS: Final = 0.3
"""Time to read on after the server has ended: a process that it leaves behind may hold the pipe open for ever."""
_TERM_SECONDS: Final = 2.0
_POLL_SECONDS: Final = 0.02
_READ_BYTES: Final = 64 << 10

Json = dict[str, Any]


class Exchange(Struct, frozen=True):
    """What a server wrote on stdout for some lines and the end of input, and how it ended."""

    frames: list[Json]
    """The lines that are messages of JSON-RPC."""
    others: list[bytes]
    exit_code: int

    def answer(self, id: Any) -> Json:
        """The answer to a request; empty if there is none. The ids true and 1.0 are not 1."""
        answers = (each for each in self.frames if "id" in each and "method" not in each)
        none: Json = {}
        return next((each for each in answers if each["id"] == id and type(each["id"]) is type(id)), none)

    def result(self, id: Any) -> Json:
        return as_object(self.answer(id).get("result"))

    def error(self, id: Any) -> Json:
        return as_object(self.answer(id).get("error"))

    def tools(self, id: Any) -> list[Json]:
        return [as_object(each) for each in as_array(self.result(id).get("tools"))]


def request(id: int, method: str, **params: Any) -> Json:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def exchange(argv: Sequence[str], *messages: Json | bytes) -> Exchange:
    """Start a server, write these lines and end its input. Raises TargetError if nothing can be learnt so.

    The server leads a process group, which is ended with it. Only what leaves the group on purpose lives on.
    """
    given = b"".join((each if isinstance(each, bytes) else msgspec.json.encode(each)) + b"\n" for each in messages)
    pipe = subprocess.PIPE
    try:
        process = subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True, bufsize=0)
    except (OSError, ValueError) as problem:
        raise TargetError(f"{argv[0]}: {getattr(problem, 'strerror', None) or problem}") from None
    with process:
        try:
            output, errors = _converse(process, argv[0], given)
        finally:
            _end_group(process)
    lines = [(line, decode(line)) for line in bytes(output).splitlines()]
    found = Exchange(
        [frame for _, frame in lines if frame.get("jsonrpc") == "2.0"],
        [line for line, frame in lines if frame.get("jsonrpc") != "2.0"],
        process.returncode,
    )
    if not found.frames:
        said = errors.decode(errors="replace").strip()
        raise TargetError(f"{argv[0]} ended with {found.exit_code} and answered nothing; it said: {said or 'nothing'}")
    return found


def decode(text: bytes | str) -> Json:
    """A JSON object; empty if it is none, or nests deeper than a message may."""
    try:
        data = text.encode() if isinstance(text, str) else text
        return {} if too_deep(data, DEFAULT_LIMITS.depth) else as_object(msgspec.json.decode(data))
    except BROKEN:
        return {}


def _converse(process: subprocess.Popen[bytes], name: str, given: bytes) -> tuple[bytearray, bytearray]:
    """Write the input of a process, and read its stdout and the end of its stderr until it has ended."""
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    with suppress(BrokenPipeError):
        process.stdin.write(given)  # a few lines, which fit into the pipe: this never waits
    process.stdin.close()
    output, errors = bytearray(), bytearray()
    deadline, end = monotonic() + SECONDS, None
    with DefaultSelector() as selector:
        selector.register(process.stdout, EVENT_READ, output)
        selector.register(process.stderr, EVENT_READ, errors)
        while end is None or (selector.get_map() and monotonic() < end):
            for key, _ in selector.select(_POLL_SECONDS):
                chunk = os.read(key.fd, _READ_BYTES)
                key.data.extend(chunk)
                if not chunk:
                    selector.unregister(key.fileobj)
            if len(output) > MOST_BYTES:
                raise TargetError(f"{name} wrote more than {MOST_BYTES:,} bytes on stdout")
            del errors[:-STDERR_BYTES]
            if end is None and _has_ended(process):
                end = monotonic() + _DRAIN_SECONDS
            elif end is None and monotonic() > deadline:
                raise TargetError(f"{name} did not end within {SECONDS:g} s of the end of its input")
    return output, errors


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Whether a process has ended. It is not reaped, so that its group keeps its number."""
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """End a process, and whatever it leaves behind in its group; it is reaped later."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGTERM)
        deadline = monotonic() + _TERM_SECONDS
        while not _has_ended(process) and monotonic() < deadline:
            sleep(_POLL_SECONDS)
        os.killpg(process.pid, signal.SIGKILL)
