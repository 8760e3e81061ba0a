"""A server that answers as a transcript says, to a client that sends the recorded messages in the recorded order."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from typing import Any, Final, final

import msgspec
from msgspec import field

from longshore.client.channel import Channel, ChannelEvents, FrameInfo
from longshore.client.targets import Target
from longshore.errors import ClientError, ConnectionLost
from longshore.protocol.peer import PREFIX, SUBSCRIPTION_ID
from longshore.schema.diff import differences
from longshore.schema.kinds import is_object
from longshore.testing.transcript import ANY, TranscriptLine, matches, read_transcript
from longshore.wire.codec import METHOD_NOT_FOUND, encode, error

_CANCELLED: Final = "notifications/cancelled"
_DISCOVER: Final = "server/discover"
_NOT_COMPARED: Final = ("progressToken", "traceparent", "tracestate", "baggage")
_COMPARED: Final = {"initialize": ("protocolVersion",), _DISCOVER: ()}
"""Only these parameters are compared: the client's name and capabilities may change from test to test."""


class Replay(Target, frozen=True):
    """The target that `replay` returns."""

    lines: list[TranscriptLine] = field(default_factory=list[TranscriptLine])
    problems: list[str] = field(default_factory=list[str])
    """Messages that differ from the recording: code under test may have swallowed the exceptions."""
    used: set[int] = field(default_factory=set[int])

    def unused(self) -> list[str]:
        """Recorded requests that no client has made."""
        requests = [line for line in self.lines if line.client and line.method is not None and line.id is not None]
        return [f"line {line.number}: {line.method}" for line in requests if line.number not in self.used]


def replay(path: str | os.PathLike[str]) -> Replay:
    """A target for `Client(…)`: a server that answers as a transcript says. Raises LongshoreError."""
    where = os.fspath(path)
    found = Replay(where, (lambda events: ReplayChannel(found, events),), lines=read_transcript(where))
    return found


@final
class ReplayChannel(Channel):
    """Compares each message of the client with the next recorded one, and sends what the server sent after it."""

    def __init__(self, replay: Replay, events: ChannelEvents) -> None:
        super().__init__(events)
        self.label = replay.name
        self._replay = replay
        # Cancelling depends on time, so it is neither expected nor compared.
        self._left = deque(line for line in replay.lines if not (line.client and line.method == _CANCELLED))
        self._ids: dict[Any, Any] = {}
        """Recorded ids and progress tokens of requests -> those of this connection."""
        self._loop: asyncio.AbstractEventLoop | None = None

    async def open(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._answer()

    async def close(self) -> None:
        self._loop = None

    def send(self, frame: bytes, info: FrameInfo) -> None:
        if self._loop is None:
            if info.id is not None:
                self.events.on_failure(info.id, ConnectionLost("the connection is closed", self.label, unsent=True))
            return
        message: dict[str, Any] = msgspec.json.decode(frame)
        if message.get("method") == _CANCELLED:
            return
        line = self._left[0] if self._left else None
        if line is not None and _is_recorded(line, message):
            self._left.popleft()
            self._replay.used.add(line.number)
            self._map(line.id, message.get("id"))
            self._map(_token(line.message), _token(message))
            self._answer()
        elif message.get("method") == _DISCOVER and line is not None and line.method == "initialize":
            self._deliver(error(message["id"], METHOD_NOT_FOUND, "the server that was recorded uses a handshake"))
        else:
            self._refuse(line, message)

    def _map(self, recorded: Any, now: Any) -> None:
        if recorded is not None:
            self._ids[recorded] = now

    def _answer(self) -> None:
        """Send the lines up to the client's next one."""
        while self._left and not self._left[0].client:
            self._deliver(encode(self._translate(self._left.popleft())))

    def _deliver(self, frame: bytes) -> None:
        assert self._loop is not None
        self._loop.call_soon(lambda: self.events.on_frame(frame) if self._loop is not None else None)

    def _translate(self, line: TranscriptLine) -> dict[str, Any]:
        """The message with the ids and tokens of this connection."""
        message = dict(line.message)
        if line.method is None:
            return {**message, "id": self._ids.get(line.id, line.id)}
        params = message.get("params")
        if is_object(params):
            meta = params.get("_meta")
            message["params"] = params = dict(params)
            if params.get("progressToken") in self._ids:
                params["progressToken"] = self._ids[params["progressToken"]]
            if is_object(meta) and meta.get(SUBSCRIPTION_ID) in self._ids:
                params["_meta"] = {**meta, SUBSCRIPTION_ID: self._ids[meta[SUBSCRIPTION_ID]]}
        return message

    def _refuse(self, line: TranscriptLine | None, message: dict[str, Any]) -> None:
        what = f"{_name(message)} was not recorded here; the recording is at its end"
        if line is not None:
            lines = differences(_gist(line.pattern), _gist(message), "recorded", "came")
            what = f"{_name(message)} was not recorded here; line {line.number} is next:\n" + "\n".join(lines)
        self._replay.problems.append(what)
        if "method" in message and "id" in message:
            self.events.on_failure(message["id"], ClientError(what, self.label))
        elif "method" not in message:
            self.events.on_lost(ClientError(what, self.label))


def _is_recorded(line: TranscriptLine, message: dict[str, Any]) -> bool:
    if line.method is None:
        return matches({**line.pattern, "id": ANY}, message, {})
    return (line.id is None) == ("id" not in message) and matches(_gist(line.pattern), _gist(message), {})


def _gist(message: dict[str, Any]) -> dict[str, Any]:
    """Method and parameters without what differs between connections; of a response, what it says."""
    if "method" not in message:
        return {key: value for key, value in message.items() if key not in ("id", "jsonrpc")}
    method, params = message["method"], dict(_member(message, "params"))
    if method in _COMPARED:
        return {"method": method, "params": {key: params[key] for key in _COMPARED[method] if key in params}}
    meta: dict[str, Any] = params.pop("_meta", None) or {}
    meta = {key: each for key, each in meta.items() if not key.startswith(PREFIX) and key not in _NOT_COMPARED}
    return {"method": method, "params": {**params, "_meta": meta} if meta else params}


def _token(message: dict[str, Any]) -> Any:
    return _member(_member(message, "params"), "_meta").get("progressToken")


def _member(value: dict[str, Any], key: str) -> dict[str, Any]:
    found = value.get(key)
    return found if is_object(found) else {}


def _name(message: dict[str, Any]) -> str:
    params = _member(message, "params")
    about = params.get("name") or params.get("uri")
    method = message.get("method", "this answer")
    return f"{method} {about}" if about else str(method)
