"""One typed record for each event, with names, sizes and durations; never arguments or results."""

from __future__ import annotations

from typing import Literal, get_args

from msgspec import Struct

from longshore.config.sections import LogLevel

Outcome = Literal["ok", "error", "failed", "cancelled", "timeout", "refused", "asked"]
Level = LogLevel
LEVELS: tuple[Level, ...] = get_args(Level)
"""From the least severe."""


class RequestReceived(Struct, frozen=True, tag="request_received"):
    """A request came in."""

    method: str
    id: int | str
    at: float


class RequestCompleted(Struct, frozen=True, tag="request_completed"):
    """A request was answered, or dropped without an answer."""

    method: str
    id: int | str
    seconds: float
    outcome: Outcome
    at: float


class ToolInvoked(Struct, frozen=True, tag="tool_invoked"):
    """A tool's handler is about to run."""

    tool: str
    id: int | str
    at: float


class ToolCompleted(Struct, frozen=True, tag="tool_completed"):
    """A tool's call has ended."""

    tool: str
    id: int | str
    seconds: float
    outcome: Outcome
    at: float


class ArgumentsMended(Struct, frozen=True, tag="arguments_mended"):
    """A call used an old name, or its arguments were repaired to fit the tool's declaration."""

    tool: str
    id: int | str
    notes: tuple[str, ...]
    at: float


class Problem(Struct, frozen=True, tag="problem"):
    """Something that the operator should see, with its trace if it has one."""

    level: Level
    text: str
    at: float
    trace: str = ""


Record = RequestReceived | RequestCompleted | ToolInvoked | ToolCompleted | ArgumentsMended | Problem


def level_of(record: Record) -> Level:
    """The level of a record: debug for requests, info and notice for results."""
    match record:
        case Problem(level=level):
            return level
        case ToolCompleted(outcome=outcome) | RequestCompleted(outcome=outcome):
            return "info" if outcome in ("ok", "asked", "cancelled") else "notice"
        case _:
            return "debug"
