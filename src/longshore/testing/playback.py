"""The two sides of a transcript: `replay` is the server's, for code that needs one; `check` the client's, for a server.

In a replay the client sends the recorded messages in the recorded order. In a check responses are found by their id and
other messages by their content, so concurrent requests may be answered in any order. Ids of the other side, cursors and
request states may differ from the recorded ones.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, final

import msgspec
from msgspec import field

from longshore.app import Server
from longshore.client.channel import Channel, ChannelEvents, ChannelFactory, FrameInfo, TransportOptions
from longshore.client.targets import Target, find
from longshore.errors import ClientError, ConnectionLost, LongshoreError
from longshore.protocol.http_headers import NAME_BEARING
from longshore.protocol.peer import PREFIX, SUBSCRIPTION_ID
from longshore.protocol.revisions import MODERN, REVISIONS
from longshore.schema.diff import differences, same
from longshore.schema.kinds import as_object, is_array, is_object
from longshore.testing.transcript import (
    ANY,
    LITERAL,
    Bindings,
    TranscriptLine,
    matches,
    read_json,
    read_transcript,
    take,
)
from longshore.wire.codec import BROKEN, METHOD_NOT_FOUND, encode, error
from longshore.wire.messages import Id

_CANCELLED: Final = "notifications/cancelled"
_DISCOVER: Final = "server/discover"

# -- the server's side

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
        self._ids: dict[str, Any] = {}
        """Recorded ids and progress tokens of requests, by their repr -> those of this connection."""
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
            self._ids[repr(line.id)] = message.get("id")
            self._ids[repr(_meta(line.message).get("progressToken"))] = _meta(message).get("progressToken")
            self._answer()
        elif message.get("method") == _DISCOVER and line is not None and line.method == "initialize":
            self._deliver(error(message["id"], METHOD_NOT_FOUND, "the server that was recorded uses a handshake"))
        else:
            self._refuse(line, message)

    def _answer(self) -> None:
        """Send the lines up to the client's next one, with the ids and tokens of this connection."""
        while self._left and not self._left[0].client:
            line = self._left.popleft()
            message = dict(line.message)
            if line.method is None:
                message["id"] = self._ids.get(repr(line.id), line.id)
            elif "params" in message:
                params, meta = dict(as_object(message.get("params"))), dict(_meta(message))
                for holder, key in ((params, "progressToken"), (meta, SUBSCRIPTION_ID)):
                    if key in holder:
                        holder[key] = self._ids.get(repr(holder[key]), holder[key])
                message["params"] = {**params, "_meta": meta} if meta else params
            self._deliver(encode(message))

    def _deliver(self, frame: bytes) -> None:
        assert self._loop is not None
        self._loop.call_soon(lambda: self.events.on_frame(frame) if self._loop is not None else None)

    def _refuse(self, line: TranscriptLine | None, message: dict[str, Any]) -> None:
        params = as_object(message.get("params"))
        about = params.get("name") or params.get("uri")
        what = f"{message.get('method', 'this answer')}{f' {about}' if about else ''} was not recorded here; "
        if line is None:
            what += "the recording is at its end"
        else:
            lines = differences(_gist(line.pattern), _gist(message), "recorded", "came")
            what += f"line {line.number} is next:\n" + "\n".join(lines)
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
    method, params = message["method"], dict(as_object(message.get("params")))
    if method in _COMPARED:
        return {"method": method, "params": {key: params[key] for key in _COMPARED[method] if key in params}}
    meta = {key: each for key, each in _meta(message).items() if not key.startswith(PREFIX)}
    params["_meta"] = {key: each for key, each in meta.items() if key not in _NOT_COMPARED}
    return {"method": method, "params": params}


def _meta(message: dict[str, Any]) -> dict[str, Any]:
    return as_object(as_object(message.get("params")).get("_meta"))


# -- the client's side

SECONDS: Final = 10.0
"""Default time limit of an answer."""
_MALFORMED: Final = "no message"
"""The key of the reason, in the place of a malformed message. A recording has a comment there."""
_HANDED_BACK: Final = {"nextCursor": "cursor", "requestState": "requestState", "elicitationId": "elicitationId"}
"""Keys of values that a server gives out -> keys under which a client sends them back."""
_RECORDED: Final = f"{ANY}recorded "
"""Begins the token of a value that the server chose: it is bound to the value of now, and sent back as that."""
_LISTED: Final = 5
"""Messages that an error shows, and characters of each."""
_SHOWN: Final = 500


def check(
    target: Any,
    path: str | os.PathLike[str],
    *,
    volatile: Iterable[str] = (),
    given: Mapping[str, Any] | None = None,
    timeout: float = SECONDS,
) -> None:
    """Send the client's side of a transcript to a server; raise AssertionError if it answers otherwise.

    `volatile` are keys whose values are not compared, wherever they stand. `given` has values for what was left out of
    the client's side when it was recorded, by key. `timeout` is the time limit of each answer. `target` is what
    `Client` takes.
    """
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        loop = None
    if loop is not None and isinstance(target, Server) and target.engine.executor.loop is loop:
        raise RuntimeError(f"{target.name} runs on the event loop that this would block; write await acheck(…)")
    with ThreadPoolExecutor(1) as pool:  # a loop may be running on this thread
        pool.submit(asyncio.run, acheck(target, path, volatile=volatile, given=given, timeout=timeout)).result()


async def acheck(
    target: Any,
    path: str | os.PathLike[str],
    *,
    volatile: Iterable[str] = (),
    given: Mapping[str, Any] | None = None,
    timeout: float = SECONDS,
) -> None:
    """`check` for async tests."""
    if isinstance(volatile, str):
        raise TypeError(f"volatile={volatile!r}: it takes a list of names; write volatile=[{volatile!r}]")
    lines = read_transcript(path)
    make = find(target, TransportOptions()).channels[0]
    player = _Player(make, os.fspath(path), frozenset(volatile), dict(given or {}), timeout)
    try:
        async with asyncio.timeout(timeout):
            await player.channel.open()
        for line in lines:
            if line.client:
                player.send(line)
            else:
                await player.expect(line)
        player.expect_no_more()
    finally:
        await player.channel.close()


@final
class _Player:
    """Plays the client's side."""

    def __init__(
        self, make_channel: ChannelFactory, where: str, volatile: frozenset[str], given: dict[str, Any], seconds: float
    ) -> None:
        self._where, self._volatile, self._given, self._seconds = where, volatile, given, seconds
        self._received: list[dict[str, Any]] = []
        self._changed = asyncio.Event()
        self._lost: ClientError | None = None
        self._bindings: Bindings = {}
        self._methods: dict[str, str] = {}
        """Id of a request, by its repr -> its method."""
        self.channel = make_channel(self)

    # -- the channel's callbacks

    def on_frame(self, frame: bytes) -> None:
        if not frame.strip():
            return
        try:
            message = read_json(frame)
        except BROKEN as problem:
            message = {_MALFORMED: str(problem), "it was": repr(frame[:_SHOWN])}
        messages: list[Any] = message if is_array(message) else [message]
        for each in messages:
            self._received.append(each if is_object(each) else {_MALFORMED: "no object", "it was": repr(each)[:_SHOWN]})
        self._changed.set()

    def on_failure(self, id: Id, problem: ClientError) -> None:
        self._received.append({"id": id, "failed": problem.what})
        self._changed.set()

    def on_lost(self, problem: ClientError) -> None:
        self._lost = problem.at(self.channel.label, self.channel.stderr_tail())
        self._changed.set()

    def on_login(self, started: bool) -> None:
        pass

    def note(self, text: str) -> None:
        pass

    # -- the client's messages

    def send(self, line: TranscriptLine) -> None:
        message: dict[str, Any] = self._renew(line.pattern, "", line)
        id, params = None, message.get("params")
        if line.method is None:
            token = f"{_RECORDED}{line.id!r}"
            if token[1:] not in self._bindings:
                what = f"the client answers {line.id!r}, which the server did not ask"
                raise LongshoreError(f"{self._where}:{line.number}: {what}")
            message["id"] = self._bindings[token[1:]]
        elif line.id is not None:
            id, self._methods[repr(line.id)] = line.id, line.method
        if line.method != _DISCOVER:  # which finds out the revisions; other modern requests name theirs
            self._speak(_meta(message).get(PREFIX + "protocolVersion"))
        if line.method == _CANCELLED and is_object(params):
            self.channel.cancel(params.get("requestId"), encode(message))  # type: ignore[arg-type]
            return
        key = NAME_BEARING.get(line.method or "")
        name = str(params.get(key)) if key is not None and is_object(params) else None
        self.channel.send(encode(message), FrameInfo(line.method or "response", id, name))

    def _speak(self, version: Any) -> None:
        """Over HTTP the headers of a request repeat its revision."""
        if isinstance(version, str) and version in REVISIONS:
            self.channel.speak(REVISIONS[version])

    def _renew(self, value: Any, key: str, line: TranscriptLine) -> Any:
        """A recorded value of the client with the bindings, cursors and states of now."""
        if is_object(value):
            return {name.removeprefix(LITERAL): self._renew(each, name, line) for name, each in value.items()}
        if is_array(value):
            return [self._renew(each, key, line) for each in value]
        if not isinstance(value, str):
            return value
        if not value.startswith(ANY):
            text = value.removeprefix(LITERAL)
            was_given_out = key in _HANDED_BACK.values()
            return self._bindings.get(f"{_RECORDED}{text!r}"[1:], text) if was_given_out else text
        if value[1:] in self._bindings:
            return self._bindings[value[1:]]
        if key in self._given:
            return self._given[key]
        where = f"{self._where}:{line.number}"
        raise LongshoreError(f"{where}: {key!r} was left out when it was recorded; give it by given={{…}}")

    # -- the server's messages

    async def expect(self, line: TranscriptLine) -> None:
        """Wait for the message of a line, and compare them."""
        expected, end = self._loosen(line.pattern), asyncio.get_running_loop().time() + self._seconds
        if line.method is not None:
            if line.id is not None:
                expected["id"] = self._unbound(line.id)
            while not take(expected, self._received, self._bindings):
                await self._wait(line, end)
            return
        while not (found := [each for each in self._received if _answers(each, line.id)]):
            await self._wait(line, end)
        received = found[0]
        self._received.remove(received)
        method = self._methods.get(repr(line.id))
        if not matches(expected, received, self._bindings):
            lines = differences(self._blank(line.pattern), self._blank(received), "recorded", "came")
            what = f"{self._where}:{line.number}: {method} is not answered as it was"
            raise AssertionError("\n".join([what, *lines]))
        if method in ("initialize", _DISCOVER) and "result" in received:
            self._speak(MODERN[-1] if method == _DISCOVER else as_object(received.get("result")).get("protocolVersion"))

    def _loosen(self, value: Any) -> Any:
        """The pattern with tokens for everything that may differ."""
        if is_array(value):
            return [self._loosen(each) for each in value]
        if not is_object(value):
            return value
        made: dict[str, Any] = {}
        for key, each in value.items():
            if key in self._volatile:
                made[key] = ANY
            elif key in _HANDED_BACK and isinstance(each, str) and not each.startswith(ANY):
                made[key] = self._unbound(each.removeprefix(LITERAL))
            else:
                made[key] = self._loosen(each)
        return made

    def _blank(self, value: Any) -> Any:
        """The value with `"…"` for everything that is not compared, to show differences."""
        if is_object(value):
            hidden = self._volatile | _HANDED_BACK.keys()
            return {key: ANY if key in hidden else self._blank(each) for key, each in value.items()}
        return [self._blank(each) for each in value] if is_array(value) else value

    def _unbound(self, value: Any) -> str:
        """The token of a value that the server chooses. It may choose anew if it did so before."""
        token = f"{_RECORDED}{value!r}"
        self._bindings.pop(token[1:], None)
        return token

    async def _wait(self, line: TranscriptLine, end: float) -> None:
        """Wait until something comes. Raises AssertionError if nothing does."""
        if self._lost is not None:
            raise AssertionError(self._missing(line, f"the connection was lost: {self._lost}"))
        self._changed.clear()
        try:
            async with asyncio.timeout_at(end):
                await self._changed.wait()
        except TimeoutError:
            raise AssertionError(self._missing(line, f"it did not come within {self._seconds:g} s")) from None

    def expect_no_more(self) -> None:
        more = [each for each in self._received if _MALFORMED not in each and "failed" not in each]
        if more:
            raise AssertionError(f"{self._where}: the server said more than was recorded:\n{_shown(more)}")

    def _missing(self, line: TranscriptLine, why: str) -> str:
        text = f"{self._where}:{line.number}: the server did not say this: {why}\n{_shown([line.message])}"
        return f"{text}\nit said:\n{_shown(self._received)}" if self._received else text


def _answers(message: dict[str, Any], id: Any) -> bool:
    return "method" not in message and _MALFORMED not in message and same(message.get("id"), id)


def _shown(messages: list[dict[str, Any]]) -> str:
    return "\n".join(f"  {encode(each).decode()[:_SHOWN]}" for each in messages[:_LISTED])
