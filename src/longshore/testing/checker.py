"""Checking a server against a transcript: the client's side is sent, and what comes is compared.

Responses are found by their id, other messages by their content, so concurrent requests may be answered in any order.
Ids of the server's own, cursors and request states may differ from the recorded ones.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, final

from longshore.app import Server
from longshore.client.channel import CLIENT_LIMITS, ChannelFactory, FrameInfo
from longshore.client.targets import TransportOptions, find
from longshore.errors import ClientError, LongshoreError
from longshore.protocol.http_headers import NAME_BEARING
from longshore.protocol.peer import PREFIX
from longshore.protocol.revisions import MODERN, REVISIONS
from longshore.schema.diff import differences, same
from longshore.schema.kinds import is_array, is_object
from longshore.testing.in_memory import in_memory
from longshore.testing.transcript import (
    ANY,
    LITERAL,
    Bindings,
    TranscriptLine,
    find_fault,
    matches,
    read_json,
    read_transcript,
)
from longshore.wire.codec import BROKEN, encode
from longshore.wire.messages import Id

_MALFORMED: Final = "no message"
"""The key of the reason, in the place of a malformed message. A recording has a comment there."""
_HANDED_BACK: Final = {"nextCursor": "cursor", "requestState": "requestState", "elicitationId": "elicitationId"}
"""Keys of values that a server gives out -> keys under which a client sends them back."""
_LISTED: Final = 5
"""Messages that an error shows, and characters of each."""
_SHOWN: Final = 500
SECONDS: Final = 10.0
"""Default time limit of an answer."""


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
    _refuse_to_block(target)
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
    make = find(in_memory(target), TransportOptions(limits=CLIENT_LIMITS)).channels[0]
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


def _refuse_to_block(target: Any) -> None:
    """Raise RuntimeError if the server runs on the event loop that waiting here would block."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return
    if isinstance(target, Server) and target.engine.executor.loop is loop:
        raise RuntimeError(f"{target.name} runs on the event loop that this would block; write await acheck(…)")


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
        self._methods: dict[Any, str] = {}
        """Id of a request -> its method."""
        self._ids: dict[Any, Any] = {}
        """Recorded id of a server's request -> its id now."""
        self._handed: dict[str, str] = {}
        """Recorded cursor or state -> the one of now."""
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
            fault = find_fault(each)
            self._received.append(each if fault is None else {_MALFORMED: fault, "it was": repr(each)[:_SHOWN]})
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
        if line.method is None:
            if line.id not in self._ids:
                what = f"the client answers {line.id!r}, which the server did not ask"
                raise LongshoreError(f"{self._where}:{line.number}: {what}")
            message["id"] = self._ids[line.id]
        elif line.id is not None:
            self._methods[line.id] = line.method
        params = message.get("params")
        if line.method != "server/discover":  # which finds out the revisions
            self._announce(params)
        if line.method == "notifications/cancelled" and is_object(params):
            self.channel.cancel(params.get("requestId"), encode(message))  # type: ignore[arg-type]
        else:
            self.channel.send(encode(message), _about(line, params))

    def _announce(self, params: Any) -> None:
        """Over HTTP the headers of a modern request repeat its revision."""
        meta = params.get("_meta") if is_object(params) else None
        version = meta.get(PREFIX + "protocolVersion") if is_object(meta) else None
        if isinstance(version, str) and version in REVISIONS:
            self.channel.speak(REVISIONS[version])

    def _renew(self, value: Any, key: str, line: TranscriptLine) -> Any:
        """A recorded value with the bindings, cursors and states of now."""
        if is_object(value):
            return {name.removeprefix(LITERAL): self._renew(each, name, line) for name, each in value.items()}
        if is_array(value):
            return [self._renew(each, key, line) for each in value]
        return self._renew_text(value, key, line) if isinstance(value, str) else value

    def _renew_text(self, text: str, key: str, line: TranscriptLine) -> Any:
        if text.startswith(ANY):
            if text[1:] in self._bindings:
                return self._bindings[text[1:]]
            if key in self._given:
                return self._given[key]
            where = f"{self._where}:{line.number}"
            raise LongshoreError(f"{where}: {key!r} was left out when it was recorded; give it by given={{…}}")
        text = text.removeprefix(LITERAL)
        return self._handed.get(text, text) if key in _HANDED_BACK.values() else text

    # -- the server's messages

    async def expect(self, line: TranscriptLine) -> None:
        received = await self._counterpart(line)
        expected = self._blank(line.pattern)
        if line.method is not None and line.id is not None:
            self._ids[line.id] = received.get("id")
            expected, received = {**expected, "id": None}, {**received, "id": None}
        self._learn(line.message, received)
        if not matches(expected, self._blank(received), self._bindings):
            method = self._methods.get(line.id) if line.method is None else line.method
            lines = differences(expected, self._blank(received), "recorded", "came")
            what = f"{method} is not answered as it was"
            raise AssertionError(f"{self._where}:{line.number}: {what}\n" + "\n".join(lines))
        self._adopt_revision(line, received)

    async def _counterpart(self, line: TranscriptLine) -> dict[str, Any]:
        """The received message that corresponds to a recorded one."""
        end = asyncio.get_running_loop().time() + self._seconds
        while True:
            found = self._find(line)
            if found is not None:
                return self._received.pop(found)
            if self._lost is not None:
                raise AssertionError(self._missing(line, f"the connection was lost: {self._lost}"))
            self._changed.clear()
            try:
                async with asyncio.timeout_at(end):
                    await self._changed.wait()
            except TimeoutError:
                raise AssertionError(self._missing(line, f"it did not come within {self._seconds:g} s")) from None

    def _find(self, line: TranscriptLine) -> int | None:
        expected = {**self._blank(line.pattern), "id": None}
        for index, each in enumerate(self._received):
            if line.method is None:
                if "method" not in each and same(each.get("id"), line.id):
                    return index
            elif matches(expected, {**self._blank(each), "id": None}, dict(self._bindings)):
                return index
        return None

    def _learn(self, recorded: Any, received: Any) -> None:
        """Remember the cursors and states that replace the recorded ones."""
        if is_object(recorded) and is_object(received):
            for key, value in recorded.items():
                now = received.get(key)
                if key in _HANDED_BACK and isinstance(value, str) and isinstance(now, str):
                    self._handed[value] = now
                else:
                    self._learn(value, now)
        elif is_array(recorded) and is_array(received):
            for one, other in zip(recorded, received, strict=False):
                self._learn(one, other)

    def _blank(self, value: Any) -> Any:
        """The value with `"…"` for everything that is not compared."""
        if is_object(value):
            return {
                key: ANY if key in self._volatile or key in _HANDED_BACK else self._blank(each)
                for key, each in value.items()
            }
        return [self._blank(each) for each in value] if is_array(value) else value

    def _adopt_revision(self, line: TranscriptLine, received: dict[str, Any]) -> None:
        result = received.get("result")
        if line.method is None and is_object(result):
            method, version = self._methods.get(line.id), result.get("protocolVersion")
            if method == "initialize" and isinstance(version, str) and version in REVISIONS:
                self.channel.speak(REVISIONS[version])
            elif method == "server/discover":
                self.channel.speak(REVISIONS[MODERN[-1]])

    def expect_no_more(self) -> None:
        more = [each for each in self._received if _MALFORMED not in each and "failed" not in each]
        if more:
            raise AssertionError(f"{self._where}: the server said more than was recorded:\n{_shown(more)}")

    def _missing(self, line: TranscriptLine, why: str) -> str:
        text = f"{self._where}:{line.number}: the server did not say this: {why}\n{_shown([line.message])}"
        return f"{text}\nit said:\n{_shown(self._received)}" if self._received else text


def _about(line: TranscriptLine, params: Any) -> FrameInfo:
    key = NAME_BEARING.get(line.method or "")
    name = str(params.get(key)) if key is not None and is_object(params) else None
    return FrameInfo(line.method or "response", line.id if line.method is not None else None, name)


def _shown(messages: list[dict[str, Any]]) -> str:
    return "\n".join(f"  {encode(each).decode()[:_SHOWN]}" for each in messages[:_LISTED])
