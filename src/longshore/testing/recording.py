"""Recording a connection to a transcript.

The file is written in one step when the connection is closed: a test that is killed leaves the old recording as it was.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, final

from msgspec.structs import replace

from longshore.client.channel import CLIENT_LIMITS, Channel, ChannelEvents, ChannelFactory, FrameInfo, TransportOptions
from longshore.client.targets import Target, find
from longshore.errors import ClientError, ConnectError
from longshore.files import write_atomic
from longshore.limits import Limits
from longshore.protocol.revisions import Revision
from longshore.schema.kinds import is_array, is_object
from longshore.testing.transcript import ANY, MOST_BYTES, read_json, write_literal
from longshore.wire.codec import BROKEN, encode
from longshore.wire.messages import Id

SECRETS: Final = (
    "authorization", "cookie", "credentials", "passphrase", "password", "secret", "token", "apikey", "privatekey"
)  # fmt: skip
"""Endings of keys whose values are left out of a recording. Case, `-` and `_` make no difference."""
_NO_SECRETS: Final = frozenset(("progresstoken", "pagetoken", "nextpagetoken"))
_SCHEMAS: Final = ("inputSchema", "outputSchema", "requestedSchema", "inputRequests")
"""Below these a key is the name of a parameter or a question."""
_RESPONSES: Final = "inputResponses"
"""Its keys are names of questions; the answers are below."""
_SHORTEST: Final = 6
"""Characters of a secret that is looked for in other texts: `true` is in many."""
_REDACTED: Final = "\ue001"
"""Stands for a secret until the line is written."""
_SHOWN: Final = 200
"""Characters of a malformed message, in a comment."""


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
    """A target for `Client(…)` that records its messages to a file.

    Headers and times are not recorded. Values of keys that end in one of SECRETS or of the names in `redact` are
    written as `"…"`, and so is every later text that holds one of them; `redact=None` leaves out nothing.
    """
    found = find(target, TransportOptions(env, cwd, headers, auth, limits))
    recording = Recording(os.path.realpath(path), Redaction(redact))

    def recorded(make: ChannelFactory) -> ChannelFactory:
        return lambda events: RecordingChannel(make, events, recording)

    # Without a key the client remembers nothing of the server: each recording begins with a full negotiation.
    return replace(found, channels=tuple(recorded(make) for make in found.channels), key="")


@final
class Redaction:
    """Replaces the values of secret keys, and every later text that holds such a value."""

    def __init__(self, names: Iterable[str] | None = ()) -> None:
        """`names` beside SECRETS; None leaves out nothing."""
        if isinstance(names, str):
            raise TypeError(f"redact={names!r}: it takes a list of names; write redact=[{names!r}]")
        given = () if names is None else (*SECRETS, *names)
        self._names = tuple(_plain(name) for name in given if _plain(name))
        self._values: set[str] = set()
        self._states: dict[str, str] = {}

    def clean(self, message: Any) -> Any:
        """The message without its secrets. A result often repeats its values as a text that comes before them."""
        if not self._names:
            return message
        self._map(message, self._remember, secret=False)
        return self._map(message, self._replace, secret=False)

    def _map(self, value: Any, change: Callable[[Any, bool], Any], *, secret: bool) -> Any:
        """The value with each text and number changed. Below a secret key, all are secret."""
        if is_array(value):
            return [self._map(each, change, secret=secret) for each in value]
        if not is_object(value):
            return value if value is None or isinstance(value, bool) else change(value, secret)
        made: dict[str, Any] = {}
        for key, each in value.items():
            if key == _RESPONSES and is_object(each):
                made[key] = {name: self._map(answer, change, secret=secret) for name, answer in each.items()}
            elif key == "requestState" and isinstance(each, str):  # it may hold what the user answered
                made[key] = self._states.setdefault(each, f"state-{len(self._states) + 1}")
            else:
                made[key] = each if key in _SCHEMAS else self._map(each, change, secret=secret or self._is_secret(key))
        return made

    def _is_secret(self, key: str) -> bool:
        plain = _plain(key)
        return plain not in _NO_SECRETS and plain.endswith(self._names)

    def _remember(self, value: Any, secret: bool) -> None:
        text = str(value)
        if secret and len(text) >= _SHORTEST:
            self._values |= {text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]}

    def _replace(self, value: Any, secret: bool) -> Any:
        return _REDACTED if secret or any(known in str(value) for known in self._values) else value


def _plain(name: str) -> str:
    return re.sub(r"[-_ ]", "", name).lower()


@final
class Recording:
    """The lines so far."""

    def __init__(self, path: str, redaction: Redaction) -> None:
        self._path, self._redaction = path, redaction
        self._lines: list[str] = []
        self._size = 0
        self._kept = 0
        """Lines of the connections before this one."""
        self._open = False
        self.agreed = False
        """Whether the two sides agreed on a revision."""

    def begin(self) -> None:
        """Start a connection. Raises ConnectError."""
        folder = os.path.dirname(self._path)
        if not os.path.isdir(folder):
            raise ConnectError(f"there is no folder {folder} to record to; make it first")
        if self._open:
            raise ConnectError(f"one connection at a time is recorded to {self._path}; call record(…) for each client")
        if self.too_long:
            raise ConnectError(self.too_long)
        self._open, self.agreed, self._kept = True, False, len(self._lines)
        if self._lines:
            self._append("# connected again")

    @property
    def too_long(self) -> str:
        """The error text if the recording is too long; else empty."""
        most = f"{MOST_BYTES:,} bytes"
        return f"the recording is longer than {most}; record less" if self._size > MOST_BYTES else ""

    def add(self, mark: str, frame: bytes) -> None:
        """Append the messages of a frame; a malformed one as a comment."""
        try:
            message = read_json(frame)
        except BROKEN as problem:
            said = frame[:_SHOWN].decode("utf-8", "replace")
            self._append(f"# {mark} no message ({' '.join(str(problem).split())}): {said!r}")
            return
        messages: list[Any] = message if is_array(message) else [message]
        for each in messages:
            text = write_literal(encode(self._redaction.clean(each)).decode()).replace(f'"{_REDACTED}"', f'"{ANY}"')
            self._append(f"{mark} {text}" if is_object(each) else f"# {mark} no message: {text[:_SHOWN]}")

    def _append(self, line: str) -> None:
        self._size += len(line.encode()) + 1
        if not self.too_long:
            self._lines.append(line)

    def end(self) -> None:
        """Write the file. A connection without an agreed revision is dropped: the client tries another channel then."""
        self._open = False
        if not self.agreed:
            del self._lines[self._kept :]
        elif self._lines and not self.too_long:
            write_atomic(self._path, ("\n".join(self._lines) + "\n").encode())


@final
class RecordingChannel(Channel):
    """Passes everything on to another channel and back, and records it."""

    def __init__(self, make_inner: ChannelFactory, events: ChannelEvents, recording: Recording) -> None:
        super().__init__(events)
        self.on_failure, self.on_lost = events.on_failure, events.on_lost
        self.on_login, self.note = events.on_login, events.note
        self._inner = inner = make_inner(self)
        self.shared, self.handshake_only = inner.shared, inner.handshake_only
        self._recording = recording
        self._begun = False

    # These change when the server is reached.

    @property
    def label(self) -> str:  # type: ignore[override]  # pyright: ignore[reportIncompatibleVariableOverride]
        return self._inner.label

    @property
    def congested(self) -> bool:  # type: ignore[override]  # pyright: ignore[reportIncompatibleVariableOverride]
        return self._inner.congested

    @property
    def ended(self) -> bool:
        return self._inner.ended

    async def open(self) -> None:
        self._recording.begin()
        self._begun = True
        await self._inner.open()

    def on_frame(self, frame: bytes) -> None:
        if frame.strip():
            self._add("<", frame)
        self.events.on_frame(frame)

    def send(self, frame: bytes, info: FrameInfo) -> None:
        self._add(">", frame)
        self._inner.send(frame, info)

    def cancel(self, id: Id, frame: bytes) -> None:
        self._add(">", frame)  # over HTTP the stream is closed instead, which means the same
        self._inner.cancel(id, frame)

    def _add(self, mark: str, frame: bytes) -> None:
        was_too_long = self._recording.too_long
        self._recording.add(mark, frame)
        if self._recording.too_long and not was_too_long:
            self.events.on_lost(ClientError(self._recording.too_long, self.label))

    async def ready(self) -> None:
        await self._inner.ready()

    def stderr_tail(self) -> str:
        return self._inner.stderr_tail()

    def speak(self, revision: Revision) -> None:
        self._recording.agreed = True
        self._inner.speak(revision)

    async def close(self) -> None:
        try:
            await self._inner.close()
        finally:
            if self._begun:
                self._begun = False
                self._recording.end()
