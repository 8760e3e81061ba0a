"""One typed record for each event, with names, sizes and durations; never arguments or results unless asked for."""

from __future__ import annotations

from typing import Literal, get_args

from msgspec import Struct

from longshore.config.sections import LogLevel

Outcome = Literal["ok", "error", "failed", "cancelled", "timeout", "refused", "asked"]
Level = LogLevel
LEVELS: tuple[Level, ...] = get_args(Level)
"""From the least severe."""

CHARACTERS_A_TOKEN = 4
"""A token, wherever a figure counts them, is four characters of the JSON text."""


class TraceContext(Struct, frozen=True, omit_defaults=True):
    """The W3C trace context of a request: the span that it is itself, or the caller's where spans are not exported."""

    trace_id: str
    span_id: str
    parent_id: str = ""
    """The caller's span; empty: the request begins the trace, or has no span of its own."""
    flags: str = "01"
    state: str = ""
    baggage: str = ""


class _OfRequest(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What every record of a request holds."""

    id: int | str = ""
    method: str = ""
    """`unknown` for a method that does not exist: it is a text of the peer's."""
    tool: str = ""
    """The tool; empty for one that does not exist, and for other methods."""
    transport: str = ""
    session: str = ""
    """A name made for the records; the id of an HTTP session is a secret. Empty where a request is its own session."""
    principal: str = ""
    dialect: str = ""
    """`mcp`, or the dialect that the peer is spoken to in."""
    revision: str = ""
    """Of the protocol. Empty before it is known."""
    parent: int | str | None = None
    """The call that made this one, where a call makes others."""
    trace_context: TraceContext | None = None
    at: float


class RequestReceived(_OfRequest, frozen=True, kw_only=True, tag="request_received"):
    """A request came in."""

    bytes: int = 0
    arguments: str = ""
    """The arguments of a tool call, or the parameters; only with `telemetry.values`."""


class RequestCompleted(_OfRequest, frozen=True, kw_only=True, tag="request_completed"):
    """A request was answered, or dropped without an answer."""

    seconds: float
    """From its arrival, so with the time that it waited for a place."""
    outcome: Outcome
    bytes: int = 0
    """Of the answer; 0: there is none."""
    tokens: int = 0
    """Of the answer: four characters of its JSON text each."""
    result: str = ""
    """The answer; only with `telemetry.values`."""


class ToolInvoked(_OfRequest, frozen=True, kw_only=True, tag="tool_invoked"):
    """A tool's handler is about to run."""


class ToolCompleted(_OfRequest, frozen=True, kw_only=True, tag="tool_completed"):
    """A tool's call has ended."""

    seconds: float
    outcome: Outcome


class Refused(_OfRequest, frozen=True, kw_only=True, tag="refused"):
    """A request was refused, and why. Over HTTP that may be before it was read: `method` is that of HTTP then."""

    why: str
    status: int = 0
    """Of HTTP, where the request was refused by HTTP itself."""


class LimitReached(_OfRequest, frozen=True, kw_only=True, tag="limit_reached"):
    """A request met a limit."""

    limit: str
    """The limit's key in the configuration, or what ran out."""
    status: int = 0


class SessionOpened(Struct, frozen=True, kw_only=True, omit_defaults=True, tag="session_opened"):
    """A peer has made a handshake."""

    session: str = ""
    transport: str = ""
    principal: str = ""
    dialect: str = ""
    revision: str = ""
    client: str = ""
    """The name and version that the client gives itself."""
    at: float


class SessionClosed(Struct, frozen=True, kw_only=True, omit_defaults=True, tag="session_closed"):
    """A session has ended, in the process that opened it."""

    session: str = ""
    transport: str = ""
    principal: str = ""
    dialect: str = ""
    seconds: float
    at: float


ProcessKind = Literal["browser", "command", "worker"]


class ProcessStarted(Struct, frozen=True, kw_only=True, omit_defaults=True, tag="process_started"):
    """A process was started: a browser, a command or a worker."""

    kind: ProcessKind
    pid: int
    principal: str = ""
    at: float


class ProcessEnded(Struct, frozen=True, kw_only=True, omit_defaults=True, tag="process_ended"):
    """Such a process has ended."""

    kind: ProcessKind
    pid: int
    principal: str = ""
    seconds: float
    code: int | None = None
    """The exit code, if it is known; negative: the signal that ended it."""
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


OfRequest = RequestReceived | RequestCompleted | ToolInvoked | ToolCompleted | Refused | LimitReached
Record = OfRequest | SessionOpened | SessionClosed | ProcessStarted | ProcessEnded | ArgumentsMended | Problem


def level_of(record: Record) -> Level:
    """The level of a record: debug for requests, info and notice for results and what is rare."""
    match record:
        case Problem(level=level):
            return level
        case ToolCompleted(outcome=outcome) | RequestCompleted(outcome=outcome):
            return "info" if outcome in ("ok", "asked", "cancelled") else "notice"
        case SessionOpened() | SessionClosed() | ProcessStarted() | ProcessEnded():
            return "info"
        case Refused() | LimitReached():
            return "notice"
        case _:
            return "debug"
