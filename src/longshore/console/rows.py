"""Telemetry events as the rows of the console's timeline: one for each event, so one for a call answered at once."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, structs

from longshore.telemetry.events import RequestInfo, Size, tokens
from longshore.telemetry.records import (
    ArgumentsMended,
    LimitReached,
    Problem,
    ProcessEnded,
    ProcessStarted,
    Record,
    Refused,
    SessionClosed,
    SessionOpened,
)
from longshore.telemetry.ring import Event


class Row(Struct, omit_defaults=True):
    """One event. `n` is its number, `kind` the name of its record, `time` in seconds since 1970."""

    n: int
    time: float
    kind: str
    method: str = ""
    tool: str = ""
    id: int | str = ""
    session: str = ""
    principal: str = ""
    transport: str = ""
    dialect: str = ""
    revision: str = ""
    bytes_in: int = 0
    bytes_out: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    seconds: float | None = None
    outcome: str = ""
    parent: int | str | None = None
    level: str = ""
    message: str = ""


def to_row(event: Event, offset: float) -> Row:
    """The row of an event. `offset` is what the wall clock is ahead of the monotonic one."""
    match event:
        case (n, 0, began, ended, source, revision, id, tool, size, answer, is_error):
            info = RequestInfo(source, id, "tools/call", tool, revision.name, None, size)
            outcome = "failed" if is_error is True else "ok"
            return _completed(n, info, began, ended + offset, ended - began, outcome, answer)
        case (n, 1 | 3, info, at, *_):
            return Row(n, at + offset, "request_received", **_fields(info))
        case (n, 2, info, at):
            return Row(n, at + offset, "tool_invoked", **_fields(info))
        case (n, 4, info, received, began, ended, outcome, answer, _):
            return _completed(n, info, began, ended + offset, ended - received, outcome, answer)
        case (n, _, record):
            return of_record(n, record)
        case _:
            raise AssertionError(f"no event of kind {event[1]}")


def _completed(n: int, info: RequestInfo, began: float, at: float, seconds: float, outcome: str, answer: Size) -> Row:
    size, characters = (answer, answer) if isinstance(answer, int) else answer
    kind = "tool_completed" if info.tool and began else "request_completed"
    row = Row(n, at, kind, **_fields(info))
    row.bytes_out, row.tokens_out, row.seconds, row.outcome = size, tokens(characters), seconds, outcome
    return row


def _fields(info: RequestInfo) -> dict[str, Any]:
    source = info.source
    return {
        "method": info.method,
        "tool": info.tool,
        "id": info.id,
        "session": source.session,
        "principal": source.principal,
        "transport": source.transport,
        "dialect": source.dialect,
        "revision": info.revision,
        "bytes_in": info.size,
        "tokens_in": tokens(info.size),
        "parent": source.parent,
    }


_SAME = frozenset(Row.__struct_fields__) - {"n", "time", "kind", "bytes_in", "bytes_out"}


def of_record(n: int, record: Record) -> Row:
    """The row of a record."""
    given = structs.asdict(record)
    same = {name: value for name, value in given.items() if name in _SAME}
    row = Row(n, record.at, record.__struct_config__.tag, **same)  # type: ignore[arg-type]
    if "bytes" in given:
        is_answer = row.kind == "request_completed"
        row.bytes_out, row.bytes_in = (given["bytes"], 0) if is_answer else (0, given["bytes"])
        row.tokens_in = tokens(row.bytes_in)
        row.tokens_out = given.get("tokens", 0)
    row.message = _message(record)
    return row


def _message(record: Record) -> str:
    match record:
        case Problem(text=text, trace=trace):
            return f"{text}\n{trace}" if trace else text
        case Refused(why=why, status=status):
            return f"{why} ({status})" if status else why
        case LimitReached(limit=limit):
            return f"limit {limit}"
        case SessionOpened(client=client):
            return client
        case ProcessStarted(kind=kind, pid=pid):
            return f"{kind} {pid}"
        case ProcessEnded(kind=kind, pid=pid, code=code):
            return f"{kind} {pid}" if code is None else f"{kind} {pid}: exit code {code}"
        case ArgumentsMended(notes=notes):
            return "; ".join(notes)
        case SessionClosed():
            return ""
        case _:
            return ""
