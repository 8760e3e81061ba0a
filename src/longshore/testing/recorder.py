"""Recording what a connection says.

Nothing is written until the connection is closed, and then the whole file at once: a test that is killed leaves the
old recording as it was, and two that record to one file at the same time leave one of theirs, not a mixture.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, final

from msgspec.structs import replace

from longshore.client.channel import CLIENT_LIMITS, About, Channel
from longshore.client.targets import Target, Way, find
from longshore.errors import ClientError, ConnectError
from longshore.files import write_atomic
from longshore.limits import Limits
from longshore.protocol.revisions import Revision
from longshore.schema.kinds import is_array, is_object
from longshore.testing.connecting import in_memory
from longshore.testing.passing import PassingChannel
from longshore.testing.patterns import ANY, read_json, write_literally
from longshore.testing.redaction import HOLE, Redaction
from longshore.testing.transcript import MOST_BYTES, find_fault, is_id
from longshore.wire.codec import BROKEN, encode
from longshore.wire.messages import Id

_SHOWN: Final = 200
"""Characters of what is no message, in a remark: enough to know who printed it. The rest is nobody's to repeat."""


def record(
    target: Any,
    path: str | os.PathLike[str],
    *,
    redact: Iterable[str] | None = (),
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    headers: Mapping[str, str] | None = None,
    auth: Any = None,
    limits: Limits = CLIENT_LIMITS,
) -> Target:
    """A target for `Client(…)` that is the given one, and writes what both sides say to a file at the end.

    Only messages are written, no headers, no times. Values of keys that sound secret are left out, and those of the
    keys that `redact` names, whatever their case; a value that was left out once is left out of all texts that follow.
    `redact=None` leaves out none.
    """
    found = find(in_memory(target), Way(env, cwd, headers, auth, limits))
    recording = Recording(os.path.realpath(path), Redaction(redact))

    def recorded(make: Callable[[], Channel]) -> Callable[[], Channel]:
        return lambda: RecordingChannel(make(), recording)

    # Without a key nothing is remembered of the server, so each recording begins as if it were the first.
    return replace(found, channels=tuple(recorded(make) for make in found.channels), key="")


@final
class Recording:
    """The lines so far."""

    def __init__(self, path: str, redaction: Redaction) -> None:
        self._path, self._redaction = path, redaction
        self._lines: list[str] = []
        self._size = 0
        self._start = 0, 0
        """Lines and bytes when the connection was begun."""
        self._open = False
        self._agreed = False

    def begin(self) -> None:
        """Another connection is made. Raises ConnectError."""
        folder = os.path.dirname(self._path)
        if not os.path.isdir(folder):
            raise ConnectError(f"there is no folder {folder} to record to; make it first")
        if self._open:
            raise ConnectError(f"one connection at a time is recorded to {self._path}; call record(…) for each client")
        if self.too_long:
            raise ConnectError(self.problem)
        self._open, self._agreed = True, False
        self._start = len(self._lines), self._size
        if self._lines:
            self.remark("connected again")

    def agree(self) -> None:
        self._agreed = True

    @property
    def too_long(self) -> bool:
        return self._size > MOST_BYTES

    @property
    def problem(self) -> str:
        return f"the recording is longer than {MOST_BYTES:,} bytes; record less"

    def frame(self, mark: str, frame: bytes) -> list[Any]:
        """Add what was said. Gives the messages."""
        try:
            message = read_json(frame)
        except BROKEN as problem:
            shown = frame[:_SHOWN].decode("utf-8", "replace")
            self.remark(f"{mark} that is no message ({problem}): {shown!r}")
            return []
        messages: list[Any] = message if is_array(message) else [message]
        for each in messages:
            text = encode(self._redaction.clean(each)).decode()
            text = write_literally(text).replace(f'"{HOLE}"', f'"{ANY}"')
            fault = find_fault(each)
            if fault is None:
                self._add(f"{mark} {text}")
            else:
                self.remark(f"{mark} that is no message ({fault}): {text[:_SHOWN]}")
        return messages

    def remark(self, text: str) -> None:
        cleaned: str = self._redaction.clean(text)
        self._add("# " + " ".join(cleaned.replace(HOLE, "something that holds a secret").split()))

    def _add(self, line: str) -> None:
        self._size += len(line.encode()) + 1
        if self.too_long:
            self._lines.clear()
        else:
            self._lines.append(line)

    def end(self) -> None:
        """Write it. A connection on which nothing was agreed was a wrong way, and is nobody's to repeat."""
        self._open = False
        if self._agreed and self._lines:
            write_atomic(self._path, ("\n".join(self._lines) + "\n").encode())
        elif not self._agreed and not self.too_long:
            lines, self._size = self._start
            del self._lines[lines:]


@final
class RecordingChannel(PassingChannel):
    """Looks on."""

    def __init__(self, inner: Channel, recording: Recording) -> None:
        super().__init__(inner)
        self._recording = recording
        self._begun = False
        self._waiting: set[Id] = set()
        """Requests that have no answer yet."""

    async def open(self) -> None:
        self._recording.begin()
        self._begun = True
        await super().open()

    def heard(self, frame: bytes) -> None:
        if frame.strip():
            answers = [each for each in self._keep("<", frame) if is_object(each) and "method" not in each]
            self._waiting.difference_update(each["id"] for each in answers if is_id(each.get("id")))
        super().heard(frame)

    def failed(self, id: Id, problem: ClientError) -> None:
        if id in self._waiting:
            self._recording.remark(f"the request {id!r} failed: {problem.what}")
        super().failed(id, problem)

    def lost(self, problem: ClientError) -> None:
        self._recording.remark(f"the connection was lost: {problem.what}")
        super().lost(problem)

    def send(self, frame: bytes, about: About) -> None:
        self._keep(">", frame)
        if about.id is not None:
            self._waiting.add(about.id)
        super().send(frame, about)

    def cancel(self, id: Id, frame: bytes) -> None:
        self._keep(">", frame)  # over HTTP it is a stream that closes; it means the same
        super().cancel(id, frame)

    def _keep(self, mark: str, frame: bytes) -> list[Any]:
        recording = self._recording
        was_too_long = recording.too_long
        messages = recording.frame(mark, frame)
        if recording.too_long and not was_too_long:
            self.lose(ClientError(recording.problem, self.where))
        return messages

    def speak(self, revision: Revision) -> None:
        self._recording.agree()
        super().speak(revision)

    async def close(self) -> None:
        try:
            await super().close()
        finally:
            if self._begun:
                self._begun = False
                self._recording.end()
