"""A transcript as what a server does: for each thing that the client says, what it says then.

An answer and the progress of a request belong to that request. Everything else that the server said (notices, log
messages, questions of its own) belongs to whatever the client had said last, for a transcript does not tell why. An
answer that no request waited for is nobody's: no client could use it, and by its id it might be another's now.
"""

from __future__ import annotations

from typing import Any, Final, final

from msgspec import Struct

from longshore.errors import LongshoreError
from longshore.protocol.envelope import PREFIX
from longshore.schema.kinds import is_object
from longshore.testing.transcript import Line

LISTEN: Final = "subscriptions/listen"
PROGRESS: Final = "notifications/progress"
_NOT_COMPARED: Final = ("progressToken", "traceparent", "tracestate", "baggage")
_COMPARED: Final[dict[Any, tuple[str, ...]]] = {
    "initialize": ("protocolVersion",),
    "server/discover": (),
    "notifications/cancelled": ("requestId",),
}
"""Of these, only so much is compared: who the client is and what it can do may change from test to test."""


class Await(Struct, frozen=True):
    """The client's answer to a question of the server's is to come next."""

    answer: Line


Step = Line | Await


@final
class Exchange:
    """One thing that the client said, and what followed."""

    def __init__(self, line: Line | None) -> None:
        self.line = line
        """None: nothing. The server spoke first."""
        self.expected: Any = None if line is None else gist(line.pattern)
        """What a client must say to have this exchange, with its holes."""
        self.steps: list[Step] = []
        self.answered = False
        self.given_up = False

    @property
    def method(self) -> str:
        return "" if self.line is None or self.line.method is None else self.line.method

    @property
    def id(self) -> Any:
        return None if self.line is None else self.line.id

    @property
    def token(self) -> Any:
        return None if self.line is None else progress_token(self.line.message)


def progress_token(message: dict[str, Any]) -> Any:
    """The token under which a request hears of its progress."""
    meta = _member(_member(message, "params"), "_meta")
    return meta.get("progressToken")


def _member(value: dict[str, Any], key: str) -> dict[str, Any]:
    found = value.get(key)
    return found if is_object(found) else {}


def gist(message: dict[str, Any]) -> dict[str, Any]:
    """What a request is about, without what differs from one connection to the next."""
    method = message.get("method")
    params = dict(_member(message, "params"))
    if method in _COMPARED:
        return {"method": method, "params": {key: params[key] for key in _COMPARED[method] if key in params}}
    meta = {
        key: value
        for key, value in _member(params, "_meta").items()
        if not key.startswith(PREFIX) and key not in _NOT_COMPARED
    }
    params.pop("_meta", None)
    if meta:
        params["_meta"] = meta
    return {"method": method, "params": params}


def make_exchanges(lines: list[Line], where: str) -> list[Exchange]:
    """All exchanges, in the order in which they began. The first one has no line. Raises LongshoreError."""
    last = Exchange(None)
    found = [last]
    waiting: dict[Any, Exchange] = {}
    asked: dict[Any, Exchange] = {}
    for line in lines:
        if line.client and line.method is None:
            last = _take_answer(line, asked, where)
        elif line.client:
            last = Exchange(line)
            found.append(last)
            if line.id is not None:
                waiting[line.id] = last
            elif line.method == "notifications/cancelled":
                _give_up(line, waiting)
        elif line.method is None:
            _answer(line, waiting, last)
        else:
            home = _home(line, waiting, last)
            home.steps.append(line)
            if line.id is not None:
                asked[line.id] = home
    return found


def _take_answer(line: Line, asked: dict[Any, Exchange], where: str) -> Exchange:
    home = asked.pop(line.id, None)
    if home is None:
        raise LongshoreError(f"{where}:{line.number}: the client answers {line.id!r}, which the server never asked")
    home.steps.append(Await(line))
    return home


def _give_up(line: Line, waiting: dict[Any, Exchange]) -> None:
    given_up = waiting.get(_member(line.message, "params").get("requestId"))
    if given_up is not None:
        given_up.given_up = True


def _answer(line: Line, waiting: dict[Any, Exchange], last: Exchange) -> None:
    id = line.id
    if id is None and line.message.get("error") is not None and len(waiting) == 1:
        [id] = waiting  # so does a client understand a complaint without an id
    own = waiting.pop(id, None)
    if own is None:
        return
    own.answered = True
    # A subscription is answered when it ends, because of something else.
    (last if own.method == LISTEN else own).steps.append(line)


def _home(line: Line, waiting: dict[Any, Exchange], last: Exchange) -> Exchange:
    if line.method == PROGRESS:
        token = _member(line.message, "params").get("progressToken")
        for exchange in waiting.values():
            if token is not None and exchange.token == token:
                return exchange
    return last
