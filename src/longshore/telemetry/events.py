"""Events: what the recorder keeps of a call while it runs, and the records that are made of it when somebody reads.

An event is a tuple: its number in the ring, its kind, and the fields of that kind. A call that is answered at once is
one event, of which four records are made.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

from msgspec import Struct, structs

from longshore.telemetry.records import (
    CHARACTERS_A_TOKEN,
    LimitReached,
    Outcome,
    Record,
    Refused,
    RequestCompleted,
    RequestReceived,
    ToolCompleted,
    ToolInvoked,
    TraceContext,
)

CALL: Final = 0
"""began, ended, source, Revision, id, tool, bytes, `Size` of the answer, `isError`: a call that was answered at once"""
RECEIVED: Final = 1
"""RequestInfo, when it came, arguments"""
INVOKED: Final = 2
"""RequestInfo, when its handler was begun"""
BEGAN: Final = 3
"""RequestInfo, when it came, arguments, when its handler was begun: a call that had to wait for nothing"""
COMPLETED: Final = 4
"""RequestInfo, when it came, when it began (0: never), when it ended, outcome, `Size` of the answer, the answer"""
RECORD: Final = 5
"""A record that was made already: those that are rare."""

Size: TypeAlias = "int | tuple[int, int]"
"""Of an answer: its bytes, and its characters if there are not as many."""

SHOWN_CHARACTERS: Final = 8 << 10
"""Of arguments and of a result, where they are asked for."""


class Source(Struct, frozen=True, gc=False):
    """Where requests come from; made once for each session or connection, so that an event need only refer to it."""

    transport: str
    session: str
    principal: str
    dialect: str
    parent: int | str | None = None

    def inner(self, parent: int | str) -> Source:
        """The source of calls that another call makes: its link's `describe` returns this."""
        return structs.replace(self, parent=parent)


class RequestInfo(Struct, frozen=True, gc=False):
    """What every event of a request holds, of those that are not answered at once."""

    source: Source
    id: int | str
    method: str
    tool: str
    revision: str = ""
    trace: TraceContext | None = None
    size: int = 0
    """Of the request, in bytes."""


def expand(event: tuple[Any, ...], offset: float) -> list[Record]:
    """The records of an event. `offset` is what the wall clock is ahead of the monotonic one."""
    match event:
        case (_, 0, began, ended, source, revision, id, tool, size, answer, is_error):
            info = RequestInfo(source, id, "tools/call", tool, revision.name, None, size)
            outcome: Outcome = "failed" if is_error is True else "ok"
            return [
                _received(info, began, offset, b""),
                ToolInvoked(**_fields(info), at=began + offset),
                *_ended(info, (began, began, ended), offset, outcome, answer, b""),
            ]
        case (_, 1, info, at, arguments):
            return [_received(info, at, offset, arguments)]
        case (_, 2, info, at):
            return [ToolInvoked(**_fields(info), at=at + offset)]
        case (_, 3, info, at, arguments, began):
            return [_received(info, at, offset, arguments), ToolInvoked(**_fields(info), at=began + offset)]
        case (_, 4, info, received, began, ended, outcome, answer, result):
            return _ended(info, (received, began, ended), offset, outcome, answer, result)
        case (_, _, record):
            return [record]
        case _:
            raise AssertionError(f"no event of kind {event[1]}")


def _received(info: RequestInfo, at: float, offset: float, arguments: bytes) -> RequestReceived:
    return RequestReceived(**_fields(info), at=at + offset, bytes=info.size, arguments=_text(arguments))


def _ended(
    info: RequestInfo, times: tuple[float, float, float], offset: float, outcome: Outcome, answer: Size, result: bytes
) -> list[Record]:
    received, began, ended = times
    size, characters = (answer, answer) if isinstance(answer, int) else answer
    fields: dict[str, Any] = {**_fields(info), "at": ended + offset, "outcome": outcome}
    done = RequestCompleted(
        **fields, seconds=ended - received, bytes=size, tokens=tokens(characters), result=_text(result)
    )
    return [ToolCompleted(**fields, seconds=ended - began), done] if info.tool and began else [done]


def _fields(info: RequestInfo) -> dict[str, Any]:
    source = info.source
    return {
        "id": info.id,
        "method": info.method,
        "tool": info.tool,
        "transport": source.transport,
        "session": source.session,
        "principal": source.principal,
        "dialect": source.dialect,
        "revision": info.revision,
        "parent": source.parent,
        "trace_context": info.trace,
    }


LIMITS: Final = {
    "busy": "limits.running",
    "rate": "http.rate",
    "too_large": "limits.frame_bytes",
    "timeout": "server.timeout",
    "quota": "quota",
}
"""What is met in a refusal of this kind; others are no limits."""
_STATUSES: Final = {413: "http.upload", 429: "limits.handshakes"}


def refusal(info: RequestInfo, why: str, status: int, at: float) -> Refused | LimitReached:
    """The record of a refused request: what was wrong with it, or which limit it met."""
    limit = LIMITS.get(why) or _STATUSES.get(status)
    fields: dict[str, Any] = {**_fields(info), "at": at, "status": status}
    return Refused(**fields, why=why) if limit is None else LimitReached(**fields, limit=limit)


def tokens(characters: int) -> int:
    """The tokens of a text of so many characters."""
    return -(-characters // CHARACTERS_A_TOKEN)


def _text(value: bytes) -> str:
    """Arguments or a result, without secrets."""
    if not value:
        return ""
    from longshore.telemetry.redactor import redact_json

    return redact_json(value, SHOWN_CHARACTERS)
