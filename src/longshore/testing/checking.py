"""Holding a server to what was recorded: its client's side is played, and what comes is compared.

Ids of the server's own, cursors and states that the client only hands back may be others than they were; the client's
side is played with the new ones. What came is looked for by its id or its method, so that requests under way at the
same time may be answered in any order. What belongs to one request, its progress and its answer, keeps its order.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, final

from longshore.app import Server
from longshore.client.channel import CLIENT_LIMITS, About, Channel
from longshore.client.targets import Way, find
from longshore.errors import ClientError, LongshoreError
from longshore.protocol.envelope import PREFIX
from longshore.protocol.headers import NAME_BEARING
from longshore.protocol.revisions import MODERN, REVISIONS
from longshore.schema.evolution.canonical import differences, same
from longshore.schema.kinds import is_array, is_object
from longshore.testing.connecting import in_memory
from longshore.testing.exchanges import PROGRESS, progress_token
from longshore.testing.patterns import ANY, LITERAL, Kept, has_inner_hole, matches, read_inner, read_json
from longshore.testing.transcript import Line, find_fault, is_id, read_transcript
from longshore.wire.codec import BROKEN, encode
from longshore.wire.messages import Id

_GARBAGE: Final = "no message"
"""In the place of something that is none: the key to why. A recording has a remark there, so it is not compared."""
_HANDED_BACK: Final = {"nextCursor": "cursor", "requestState": "requestState", "elicitationId": "elicitationId"}
"""What a server gives out -> under which key a client hands it back."""
_LISTED: Final = 5
"""Messages that an error shows."""
_SHOWN: Final = 500
"""Characters of each: most have fewer, and five of the longest are still read."""
SECONDS: Final = 10.0
"""Until an answer is late. A bound, not an expectation: a server on a busy machine must not fail for that."""


def check(
    target: Any,
    path: str | os.PathLike[str],
    *,
    volatile: Iterable[str] = (),
    given: Mapping[str, Any] | None = None,
    timeout: float = SECONDS,
) -> None:
    """Play the client's side of a transcript to a server, and raise AssertionError where it answers otherwise.

    `volatile` are names of keys whose values are not compared, wherever they stand; a value that is `"…"` in the file
    is not compared either. `given` has what was left out of the client's side when it was recorded, by its key.
    `timeout` is how long each answer may take. `target` is whatever a `Client` takes.
    """
    _refuse_to_block(target)
    # On a thread of its own, for where a loop is running already.
    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, acheck(target, path, volatile=volatile, given=given, timeout=timeout)).result()


async def acheck(
    target: Any,
    path: str | os.PathLike[str],
    *,
    volatile: Iterable[str] = (),
    given: Mapping[str, Any] | None = None,
    timeout: float = SECONDS,
) -> None:
    """`check`, for tests that are async."""
    if isinstance(volatile, str):
        raise TypeError(f"volatile={volatile!r}: it takes a list of names; write volatile=[{volatile!r}]")
    lines = read_transcript(path)
    make = find(in_memory(target), Way(limits=CLIENT_LIMITS)).channels[0]
    player = _Player(make(), os.fspath(path), frozenset(volatile), dict(given or {}), timeout)
    try:
        async with asyncio.timeout(timeout):
            await player.channel.open()
        for line in lines:
            if line.client:
                player.say(line)
            else:
                await player.expect(line)
        player.expect_no_more()
    finally:
        await player.channel.close()


def _refuse_to_block(target: Any) -> None:
    """Raise RuntimeError where waiting here would never end: the server lives on the loop that would stand still."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return
    if isinstance(target, Server) and target.engine.executor.loop is loop:
        raise RuntimeError(f"{target.name} lives on the event loop that this would block; write await acheck(…)")


@final
class _Player:
    """The client's side."""

    def __init__(
        self, channel: Channel, where: str, volatile: frozenset[str], given: dict[str, Any], seconds: float
    ) -> None:
        self.channel = channel
        self._where, self._volatile, self._given, self._seconds = where, volatile, given, seconds
        self._came: list[dict[str, Any]] = []
        self._news = asyncio.Event()
        self._lost: ClientError | None = None
        self._kept: Kept = {}
        self._asked: dict[Any, str] = {}
        self._tokens: dict[Any, Any] = {}
        """Progress token -> the request that it belongs to."""
        self._answered: set[Any] = set()
        self._ids: dict[Any, Any] = {}
        """Id of a question of the server's as it was recorded -> as it is now."""
        self._handed: dict[str, str] = {}
        channel.hear, channel.fail, channel.lose = self._hear, self._fail, self._lose
        channel.note = lambda _: None

    # -- the channel's side

    def _hear(self, frame: bytes) -> None:
        if not frame.strip():
            return
        try:
            message = read_json(frame)
        except BROKEN as problem:
            message = {_GARBAGE: str(problem), "it was": repr(frame[:_SHOWN])}
        messages: list[Any] = message if is_array(message) else [message]
        messages = [_usable(each) for each in messages]
        self._answered |= {each["id"] for each in messages if "method" not in each and is_id(each.get("id"))}
        self._came.extend(messages)
        self._news.set()

    def _fail(self, id: Id, problem: ClientError) -> None:
        if id not in self._answered:
            self._came.append({"id": id, "failed": problem.what})
            self._news.set()

    def _lose(self, problem: ClientError) -> None:
        self._lost = problem
        self._news.set()

    # -- what the client says

    def say(self, line: Line) -> None:
        message: dict[str, Any] = self._renew(line.pattern, "", line)
        if line.method is None:
            if line.id not in self._ids:
                raise LongshoreError(f"{self._where}:{line.number}: the client answers {line.id!r}, which nobody asked")
            message["id"] = self._ids[line.id]
        elif line.id is not None:
            self._asked[line.id] = line.method
            self._tokens[progress_token(line.message)] = line.id
        params = message.get("params")
        if line.method != "server/discover":  # which finds out whether there is anything to announce
            self._announce(params)
        if line.method == "notifications/cancelled" and is_object(params):
            self.channel.cancel(params.get("requestId"), encode(message))  # type: ignore[arg-type]
        else:
            self.channel.send(encode(message), self._about(line, params))

    def _about(self, line: Line, params: Any) -> About:
        key = NAME_BEARING.get(line.method or "")
        name = str(params.get(key)) if key is not None and is_object(params) else None
        return About(line.method or "response", line.id if line.method is not None else None, name)

    def _announce(self, params: Any) -> None:
        """Over HTTP the headers of a modern request repeat its revision."""
        meta = params.get("_meta") if is_object(params) else None
        version = meta.get(PREFIX + "protocolVersion") if is_object(meta) else None
        if isinstance(version, str) and version in REVISIONS:
            self.channel.speak(REVISIONS[version])

    def _renew(self, value: Any, key: str, line: Line) -> Any:
        """What the client said then, with what it has been handed since."""
        if is_object(value):
            return {name.removeprefix(LITERAL): self._renew(each, name, line) for name, each in value.items()}
        if is_array(value):
            return [self._renew(each, key, line) for each in value]
        return self._renew_text(value, key, line) if isinstance(value, str) else value

    def _renew_text(self, text: str, key: str, line: Line) -> Any:
        if text.startswith(ANY):
            if text[1:] in self._kept:
                return self._kept[text[1:]]
            if key in self._given:
                return self._given[key]
            where = f"{self._where}:{line.number}"
            raise LongshoreError(f"{where}: {key!r} was left out when it was recorded; give it by given={{…}}")
        if has_inner_hole(text):
            return encode(self._renew(read_inner(text), key, line)).decode()
        text = text.removeprefix(LITERAL)
        return self._handed.get(text, text) if key in _HANDED_BACK.values() else text

    # -- what the server says

    async def expect(self, line: Line) -> None:
        came = await self._counterpart(line)
        expected = self._blank(line.pattern)
        if line.method is not None and line.id is not None:
            self._ids[line.id] = came.get("id")
            expected, came = {**expected, "id": None}, {**came, "id": None}
        self._learn(line.message, came)
        if not matches(expected, self._blank(came), self._kept):
            raise AssertionError(self._differ(line, expected, self._blank(came)))
        self._settle(line, came)

    async def _counterpart(self, line: Line) -> dict[str, Any]:
        """What came in the place of a recorded line."""
        loop = asyncio.get_running_loop()
        end = loop.time() + self._seconds
        while True:
            found = self._find(line)
            if found is not None:
                return self._take(line, found)
            if self._lost is not None:
                raise AssertionError(self._missing(line, f"the connection was lost: {self._lost}"))
            self._news.clear()
            try:
                async with asyncio.timeout_at(end):
                    await self._news.wait()
            except TimeoutError:
                raise AssertionError(self._missing(line, f"it did not come within {self._seconds:g} s")) from None

    def _find(self, line: Line) -> int | None:
        """An answer is known by its id. Anything else must be just what was recorded: another such may still come."""
        expected = {**self._blank(line.pattern), "id": None}
        for index, each in enumerate(self._came):
            if line.method is None:
                if "method" not in each and same(each.get("id"), line.id):
                    return index
            elif matches(expected, {**self._blank(each), "id": None}, dict(self._kept)):
                return index
        return None

    def _take(self, line: Line, index: int) -> dict[str, Any]:
        """What came there. Of the same request nothing else may have come before."""
        request = self._request(self._came[index])
        earlier = [each for each in self._came[:index] if self._request(each) == request]
        if request is not None and earlier and not line.anywhere:
            raise AssertionError(self._missing(line, "something else of the same request came before"))
        return self._came.pop(index)

    def _request(self, message: dict[str, Any]) -> Any:
        """The request that a message belongs to, where it says so."""
        if "method" not in message:
            return message.get("id")
        params = message.get("params")
        token = params.get("progressToken") if message["method"] == PROGRESS and is_object(params) else None
        return self._tokens.get(token) if is_id(token) else None

    def _learn(self, recorded: Any, came: Any) -> None:
        """Remember what is now in the place of what the server handed out then."""
        if is_object(recorded) and is_object(came):
            for key, value in recorded.items():
                now = came.get(key)
                if key in _HANDED_BACK and isinstance(value, str) and isinstance(now, str):
                    self._handed[value] = now
                else:
                    self._learn(value, now)
        elif is_array(recorded) and is_array(came):
            for one, other in zip(recorded, came, strict=False):
                self._learn(one, other)

    def _blank(self, value: Any) -> Any:
        """Without what is not compared."""
        if is_object(value):
            return {
                key: ANY if key in self._volatile or key in _HANDED_BACK else self._blank(each)
                for key, each in value.items()
            }
        return [self._blank(each) for each in value] if is_array(value) else value

    def _settle(self, line: Line, came: dict[str, Any]) -> None:
        """The two sides have agreed on a revision."""
        result = came.get("result")
        if line.method is None and is_object(result):
            asked = self._asked.get(line.id)
            version = result.get("protocolVersion")
            if asked == "initialize" and isinstance(version, str) and version in REVISIONS:
                self.channel.speak(REVISIONS[version])
            elif asked == "server/discover":
                self.channel.speak(REVISIONS[MODERN[-1]])

    def expect_no_more(self) -> None:
        more = [each for each in self._came if _GARBAGE not in each]
        if more:
            raise AssertionError(f"{self._where}: the server said more than was recorded:\n{_shown(more)}")

    # -- in words

    def _missing(self, line: Line, why: str) -> str:
        text = f"{self._where}:{line.number}: the server did not say this: {why}\n{_shown([line.message])}"
        return f"{text}\nit said:\n{_shown(self._came)}" if self._came else text

    def _differ(self, line: Line, expected: Any, came: Any) -> str:
        asked = self._asked.get(line.id) if line.method is None else line.method
        lines = differences(expected, came, "recorded", "came")
        return f"{self._where}:{line.number}: {asked} is not answered as it was\n" + "\n".join(lines)


def _usable(message: Any) -> dict[str, Any]:
    fault = find_fault(message)
    return message if fault is None else {_GARBAGE: fault, "it was": repr(message)[:_SHOWN]}


def _shown(messages: list[dict[str, Any]]) -> str:
    return "\n".join(f"  {encode(each).decode()[:_SHOWN]}" for each in messages[:_LISTED])
