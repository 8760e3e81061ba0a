"""A server that answers as a transcript says.

Requests are matched by method and parameters, in any order, whatever their ids; each recorded request is answered once
a connection. A request that was not recorded fails.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from typing import Any, Final, final

import msgspec
from msgspec import Struct, field

from longshore.client.channel import Channel, ChannelEvents, FrameInfo
from longshore.client.targets import Target
from longshore.errors import ClientError, ConnectionLost, LongshoreError
from longshore.protocol.peer import PREFIX, SUBSCRIPTION_ID
from longshore.schema.diff import differences
from longshore.schema.kinds import is_object
from longshore.testing.transcript import ANY, TranscriptLine, matches, read_transcript
from longshore.wire.codec import METHOD_NOT_FOUND, encode, error
from longshore.wire.messages import Id

LISTEN: Final = "subscriptions/listen"
PROGRESS: Final = "notifications/progress"
CANCELLED: Final = "notifications/cancelled"
_LISTED: Final = 12
"""Recorded requests that an error lists."""
_NOT_COMPARED: Final = ("progressToken", "traceparent", "tracestate", "baggage")
_COMPARED: Final = {"initialize": ("protocolVersion",), "server/discover": ()}
"""Only these parameters are compared: the client's name and capabilities may change from test to test."""


class RecordedExchange(Struct):
    """A message of the client, and what the server sent after it. A client's line among these answers a question."""

    line: TranscriptLine | None
    steps: list[TranscriptLine] = field(default_factory=list[TranscriptLine])
    ends: bool = False
    """Whether the request was answered or cancelled."""

    @property
    def is_request(self) -> bool:
        return self.line is not None and self.line.id is not None


class Replay(Target, frozen=True):
    """The target that `replay` returns."""

    exchanges: list[RecordedExchange] = field(default_factory=list[RecordedExchange])
    problems: list[str] = field(default_factory=list[str])
    """Requests that were not recorded: code under test may have swallowed the exceptions."""
    used: set[int] = field(default_factory=set[int])

    def unused(self) -> list[str]:
        """Recorded requests that no client has made."""
        lines = [each.line for each in self.exchanges if each.is_request and each.line is not None]
        return [f"line {line.number}: {line.method}" for line in lines if line.number not in self.used]


def replay(path: str | os.PathLike[str]) -> Replay:
    """A target for `Client(…)`: a server that answers as a transcript says. Raises LongshoreError."""
    where = os.fspath(path)
    found = Replay(
        where, (lambda events: ReplayChannel(found, events),), exchanges=_read_exchanges(read_transcript(where), where)
    )
    return found


def _read_exchanges(lines: list[TranscriptLine], where: str) -> list[RecordedExchange]:
    """A response and progress belong to their request, everything else to the client's last message."""
    last = RecordedExchange(None)
    found = [last]
    waiting: dict[Any, RecordedExchange] = {}
    asked: dict[Any, RecordedExchange] = {}
    for line in lines:
        if line.client and line.method is not None:
            last = RecordedExchange(line)
            found.append(last)
            if line.id is not None:
                waiting[line.id] = last
                last.ends = line.method == LISTEN
            elif line.method == CANCELLED:
                waiting.get(_member(line.message, "params").get("requestId"), last).ends = True
        elif line.client:
            if line.id not in asked:
                raise LongshoreError(
                    f"{where}:{line.number}: the client answers {line.id!r}, which the server never asked"
                )
            last = asked.pop(line.id)
            last.steps.append(line)
        elif line.method is None:
            own = waiting.pop(line.id, None)
            if own is not None:  # a subscription is answered when it ends, because of a later message
                own.ends = True
                (last if own.line is not None and own.line.method == LISTEN else own).steps.append(line)
        else:
            home = _progress_owner(line, waiting) or last
            home.steps.append(line)
            if line.id is not None:
                asked[line.id] = home
    return found


def _progress_owner(line: TranscriptLine, waiting: dict[Any, RecordedExchange]) -> RecordedExchange | None:
    token = _member(line.message, "params").get("progressToken") if line.method == PROGRESS else None
    owners = (each for each in waiting.values() if each.line is not None and progress_token(each.line.message) == token)
    return None if token is None else next(owners, None)


def progress_token(message: dict[str, Any]) -> Any:
    """The token of a request's progress notifications."""
    return _member(_member(message, "params"), "_meta").get("progressToken")


def _member(value: dict[str, Any], key: str) -> dict[str, Any]:
    found = value.get(key)
    return found if is_object(found) else {}


def _gist(message: dict[str, Any]) -> dict[str, Any]:
    """Method and parameters, without what differs between connections."""
    method, params = message.get("method"), dict(_member(message, "params"))
    if method in _COMPARED:
        return {"method": method, "params": {key: params[key] for key in _COMPARED[method] if key in params}}
    meta: dict[str, Any] = params.pop("_meta", None) or {}
    meta = {key: each for key, each in meta.items() if not key.startswith(PREFIX) and key not in _NOT_COMPARED}
    return {"method": method, "params": {**params, "_meta": meta} if meta else params}


class _Running(Struct):
    """An exchange under way."""

    steps: deque[TranscriptLine]
    id: Id | None = None


@final
class ReplayChannel(Channel):
    """Answers what the client sends."""

    def __init__(self, replay: Replay, events: ChannelEvents) -> None:
        super().__init__(events)
        self.label = replay.name
        self._replay = replay
        self._left = replay.exchanges[1:]
        self._ids: dict[Any, Any] = {}
        """Recorded request id -> id on this connection."""
        self._tokens: dict[Any, Any] = {}
        """Recorded progress token -> token on this connection."""
        self._asking: dict[Any, tuple[_Running, TranscriptLine]] = {}
        """Exchanges that wait for an answer of the client, and the recorded one, by the id of the question."""
        self._running: dict[Any, _Running] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    async def open(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._continue(_Running(deque(self._replay.exchanges[0].steps)))

    async def close(self) -> None:
        self._loop = None

    def send(self, frame: bytes, info: FrameInfo) -> None:
        if self._loop is None:
            if info.id is not None:
                self.events.on_failure(info.id, ConnectionLost("the connection is closed", self.label, unsent=True))
            return
        message: dict[str, Any] = msgspec.json.decode(frame)
        if "method" not in message:
            self._take_answer(message)
        elif message["method"] == CANCELLED:
            cancelled = self._running.pop(message["params"].get("requestId"), None)
            if cancelled is not None:
                cancelled.steps.clear()
        elif not self._begin(message) and "id" in message:
            self._refuse(message)

    def _take_answer(self, message: dict[str, Any]) -> None:
        running, recorded = self._asking.pop(message.get("id"), (None, None))
        if running is None or recorded is None:
            return
        if matches({**recorded.pattern, "id": ANY}, message, {}):
            self._continue(running)
        else:
            lines = differences({**recorded.pattern, "id": message["id"]}, message, "recorded", "came")
            what = f"the client answers a question otherwise than line {recorded.number}:\n" + "\n".join(lines)
            self._fail(running.id, what)

    def _begin(self, message: dict[str, Any]) -> bool:
        """Start the first unused exchange that matches; whether there is one."""
        gist = _gist(message)
        for index, exchange in enumerate(self._left):
            line = exchange.line
            assert line is not None
            if exchange.is_request == ("id" in message) and matches(_gist(line.pattern), gist, {}):
                del self._left[index]
                self._replay.used.add(line.number)
                self._ids[line.id] = message.get("id")
                self._tokens[progress_token(line.message)] = progress_token(message)
                running = _Running(deque(exchange.steps), message.get("id"))
                self._running[running.id] = running
                self._continue(running)
                if exchange.is_request and not exchange.ends:
                    self._fail(running.id, f"line {line.number} was never answered when it was recorded")
                return True
        return False

    def _continue(self, running: _Running) -> None:
        """Send what is next, up to a question whose answer was recorded."""
        while running.steps:
            step = running.steps.popleft()
            if step.client:
                self._asking[step.id] = running, step
                return
            self._send(encode(self._translate(step)))

    def _send(self, frame: bytes) -> None:
        assert self._loop is not None
        self._loop.call_soon(self._deliver, frame)  # the answer of a server never comes inside `send`

    def _deliver(self, frame: bytes) -> None:
        if self._loop is not None:
            self.events.on_frame(frame)

    def _translate(self, line: TranscriptLine) -> dict[str, Any]:
        """The message with the ids and tokens of this connection."""
        message = dict(line.message)
        if line.method is None:
            return {**message, "id": self._ids.get(line.id, line.id)}
        params = message.get("params")
        if is_object(params):
            message["params"] = params = dict(params)
            if line.method == PROGRESS:
                params["progressToken"] = self._tokens.get(params.get("progressToken"))
            meta = params.get("_meta")
            if is_object(meta) and meta.get(SUBSCRIPTION_ID) in self._ids:
                params["_meta"] = {**meta, SUBSCRIPTION_ID: self._ids[meta[SUBSCRIPTION_ID]]}
        return message

    def _refuse(self, message: dict[str, Any]) -> None:
        methods = {each.line.method for each in self._replay.exchanges if each.line is not None}
        if message["method"] == "server/discover" and "initialize" in methods and "server/discover" not in methods:
            self._send(error(message["id"], METHOD_NOT_FOUND, "the server that was recorded uses a handshake"))
            return
        names = [_name(each.line.message) for each in self._left if each.is_request and each.line is not None]
        more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
        left = f"{', '.join(names[:_LISTED]) or 'none'}{more}"
        what = f"{_name(message)} was not recorded with these parameters; recorded and not yet made: {left}"
        self._fail(message["id"], what)

    def _fail(self, id: Id | None, what: str) -> None:
        self._replay.problems.append(what)
        if id is not None:
            self.events.on_failure(id, ClientError(what, self.label))


def _name(message: dict[str, Any]) -> str:
    params = _member(message, "params")
    about = params.get("name") or params.get("uri")
    return f"{message['method']} {about}" if about else str(message["method"])
