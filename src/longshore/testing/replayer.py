"""A server that answers as one did when it was recorded.

Requests may come in another order than they did then, at the same time, and under other ids. Each exchange that was
recorded is had once for each connection. What was not recorded fails with what was.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from difflib import SequenceMatcher
from typing import Any, Final, final

import msgspec
from msgspec import Struct, field

from longshore.client.channel import About, Channel
from longshore.client.targets import Target
from longshore.errors import ClientError, ConnectionLost
from longshore.protocol.envelope import SUBSCRIPTION_ID
from longshore.schema.evolution.canonical import differences, pretty
from longshore.schema.kinds import is_object
from longshore.testing.exchanges import LISTEN, Exchange, gist, make_exchanges, progress_token
from longshore.testing.patterns import matches
from longshore.testing.transcript import Line, read_transcript
from longshore.wire.codec import METHOD_NOT_FOUND, encode, error
from longshore.wire.messages import Id

_LISTED: Final = 12
"""Requests that an error lists."""
_LOOKED_AT: Final = 200
"""Requests among which it looks for the nearest."""
_COMPARED: Final = 2000
"""Characters of each that it compares: likeness shows by then, and 200 comparisons take no time that is noticed."""


class Replay(Target, frozen=True):
    """What `replay` gives: a target, which remembers what went wrong and what was not asked for."""

    exchanges: list[Exchange] = field(default_factory=list[Exchange])
    problems: list[str] = field(default_factory=list[str])
    """Requests that were not recorded, each with what was. Code under test may have swallowed the exception."""
    used: set[int] = field(default_factory=set[int])

    def unused(self) -> list[str]:
        """Requests that were recorded and that no client has made."""
        return [
            f"line {exchange.line.number}: {exchange.method}"
            for exchange in self.exchanges
            if exchange.line is not None and exchange.line.id is not None and exchange.line.number not in self.used
        ]


def replay(path: str | os.PathLike[str]) -> Replay:
    """A target for `Client(…)`: a server that answers as recorded in a transcript. Raises LongshoreError."""
    where = os.fspath(path)
    found = Replay(where, (lambda: ReplayChannel(found),), exchanges=make_exchanges(read_transcript(where), where))
    return found


class _Running(Struct):
    """An exchange under way: what is still to be said."""

    exchange: Exchange
    steps: deque[Any]
    id: Id | None
    token: Any


@final
class ReplayChannel(Channel):
    """Matches what the client says with what was recorded, and says what followed."""

    def __init__(self, replay: Replay) -> None:
        super().__init__()
        self.where = replay.name
        self._exchanges, self._problems, self._used = replay.exchanges, replay.problems, replay.used
        self._left = replay.exchanges[1:]
        self._running: dict[Id, _Running] = {}
        self._listens: dict[Any, Id] = {}
        """Id of each subscription as it was recorded -> as it is now."""
        self._questions: dict[Any, tuple[_Running, Line]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    async def open(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._go_on(_Running(self._exchanges[0], deque(self._exchanges[0].steps), None, None))

    async def close(self) -> None:
        self._loop = None

    # -- what the client says

    def send(self, frame: bytes, about: About) -> None:
        if self._loop is None:
            if about.id is not None:
                self.fail(about.id, ConnectionLost("the connection is closed", self.where, unsent=True))
            return
        message: dict[str, Any] = msgspec.json.decode(frame)
        method = message.get("method")
        if method is None:
            self._take_answer(message)
        elif method == "notifications/cancelled":
            self._give_up(message)
        elif not self._take(message) and "id" in message:
            self._refuse(message)

    def _give_up(self, message: dict[str, Any]) -> None:
        """The client does not wait any more. What was recorded of that has the id of then."""
        running = self._running.pop(message["params"]["requestId"], None)
        if running is not None:
            running.steps.clear()
            running.id = None
            self._take({**message, "params": {"requestId": running.exchange.id}})

    def _take(self, message: dict[str, Any]) -> bool:
        """Begin the exchange that this is the beginning of."""
        said = gist(message)
        for index, exchange in enumerate(self._left):
            if (exchange.id is None) == ("id" not in message) and matches(exchange.expected, said, {}):
                del self._left[index]
                self._begin(exchange, message)
                return True
        return False

    def _begin(self, exchange: Exchange, message: dict[str, Any]) -> None:
        assert exchange.line is not None
        self._used.add(exchange.line.number)
        id = message.get("id")
        running = _Running(exchange, deque(exchange.steps), id, progress_token(message))
        if id is not None:
            self._running[id] = running
            if exchange.method == LISTEN:
                self._listens[exchange.id] = id
        self._go_on(running)

    def _take_answer(self, message: dict[str, Any]) -> None:
        running, expected = self._questions.pop(message.get("id"), (None, None))
        if running is None or expected is None:
            return
        outcome = {key: message[key] for key in ("result", "error") if key in message}
        recorded = {key: expected.pattern[key] for key in ("result", "error") if key in expected.pattern}
        if matches(recorded, outcome, {}):
            self._go_on(running)
        else:
            what = f"the client answers a question of the server's in another way than line {expected.number}"
            self._fail(running.id, f"{what}:\n{_differences(recorded, outcome)}")

    # -- what the server says

    def _go_on(self, running: _Running) -> None:
        """Say what is next, up to a question to the client."""
        while running.steps:
            step = running.steps.popleft()
            if not isinstance(step, Line):
                return  # _take_answer goes on
            if step.id is not None and step.method is not None:
                self._ask(running, step)
            self._say(encode(self._translate(step, running)))
        if running.id is not None and not running.exchange.answered:
            self._leave_unanswered(running)

    def _ask(self, running: _Running, question: Line) -> None:
        """A question of the server's. If its answer was recorded, nothing more is said before that has come."""
        for step in running.steps:
            if not isinstance(step, Line) and step.answer.id == question.id:
                self._questions[question.id] = (running, step.answer)

    def _leave_unanswered(self, running: _Running) -> None:
        if running.exchange.method != LISTEN and not running.exchange.given_up:
            assert running.exchange.line is not None
            self._fail(running.id, f"line {running.exchange.line.number} was never answered when it was recorded")

    def _translate(self, line: Line, running: _Running) -> dict[str, Any]:
        """What was said, with the ids and tokens of this connection."""
        message = dict(line.message)
        if line.method is None:
            listen = self._listens.pop(line.id, None)
            message["id"] = running.id if listen is None else listen
            return message
        params = message.get("params")
        if is_object(params):
            message["params"] = params = dict(params)
            if params.get("progressToken") == running.exchange.token is not None:
                params["progressToken"] = running.token
            meta = params.get("_meta")
            if is_object(meta) and meta.get(SUBSCRIPTION_ID) in self._listens:
                params["_meta"] = {**meta, SUBSCRIPTION_ID: self._listens[meta[SUBSCRIPTION_ID]]}
        return message

    def _say(self, frame: bytes) -> None:
        """A turn of the loop later, as any server's answer comes."""
        assert self._loop is not None
        self._loop.call_soon(self._hand_over, frame)

    def _hand_over(self, frame: bytes) -> None:
        if self._loop is not None:
            self.hear(frame)

    # -- what was not recorded

    def _refuse(self, message: dict[str, Any]) -> None:
        method, id = message["method"], message["id"]
        if method == "server/discover" and not self._recorded(method) and self._recorded("initialize"):
            # Asked for an era that it did not have: a server of the other one says just this.
            self._say(error(id, METHOD_NOT_FOUND, "the server that was recorded shook hands"))
            return
        self._fail(id, self._explain(message))

    def _recorded(self, method: str) -> bool:
        return any(exchange.method == method for exchange in self._exchanges)

    def _fail(self, id: Id | None, what: str) -> None:
        self._problems.append(what)
        if id is not None:
            self.fail(id, ClientError(what, self.where))

    def _explain(self, message: dict[str, Any]) -> str:
        said = gist(message)
        same = [each for each in self._exchanges if each.id is not None and each.method == said["method"]]
        again = [each for each in same if matches(each.expected, said, {})]
        if again:
            lines = ", ".join(str(each.line.number) for each in again if each.line is not None)
            return f"{_name(said)} was recorded {len(again)} × (line {lines}), and came once more"
        if same:
            nearest = max(same[:_LOOKED_AT], key=lambda each: _likeness(each.expected, said))
            assert nearest.line is not None
            return (
                f"{_name(said)} was never recorded like this; the nearest is line {nearest.line.number}:\n"
                + _differences(nearest.expected, said)
            )
        names = [_name(each.expected) for each in self._exchanges if each.id is not None]
        more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
        return f"{_name(said)} was never recorded; these were: {', '.join(names[:_LISTED]) or 'none'}{more}"


def _name(said: dict[str, Any]) -> str:
    about = said["params"].get("name") or said["params"].get("uri")
    return f"{said['method']} {about}" if about else str(said["method"])


def _likeness(one: Any, other: Any) -> float:
    return SequenceMatcher(None, pretty(one)[:_COMPARED], pretty(other)[:_COMPARED]).quick_ratio()


def _differences(recorded: Any, came: Any) -> str:
    return "\n".join(f"  {line}" for line in differences(recorded, came, "recorded", "came"))
