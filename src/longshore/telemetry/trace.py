"""W3C trace context: read from a request's `_meta`, and passed on with the requests that its handler makes.

Without spans of our own, what came is passed on as it is. With them, each request is a span of the caller's trace, and
what is passed on names that span.
"""

from __future__ import annotations

import os
import re
from contextvars import ContextVar, Token
from typing import Any, Final

import msgspec
from msgspec import UNSET

from longshore.telemetry.records import TraceContext

KEYS: Final = ("traceparent", "tracestate", "baggage")
STATE_CHARACTERS: Final = 512
"""Of `tracestate`: what the specification asks everyone to carry on. A longer one is dropped."""
BAGGAGE_CHARACTERS: Final = 8192
"""Of `baggage`, likewise."""

_PARENT: Final = re.compile(r"(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_VALUE: Final = re.compile(r"[\x20-\x7e]*")
_read_text = msgspec.json.Decoder(str).decode

_current: ContextVar[TraceContext | None] = ContextVar("longshore_trace", default=None)


def read(meta: Any, *, spans: bool) -> TraceContext | None:
    """The trace context of a request with this envelope. With `spans` the request is a span, if need be of a new trace.

    Context that is malformed is ignored, as the specification demands.
    """
    caller = None if meta is UNSET else parse(_text(meta.trace_parent), _text(meta.trace_state), _text(meta.baggage))
    if not spans:
        return caller
    span = os.urandom(8).hex()
    if caller is None:
        return TraceContext(os.urandom(16).hex(), span)
    return msgspec.structs.replace(caller, span_id=span, parent_id=caller.span_id)


def parse(parent: str, state: str = "", baggage: str = "") -> TraceContext | None:
    """The context that these headers carry. None: there is none, or it is malformed."""
    found = _PARENT.fullmatch(parent)
    if found is None or (found[1] == "00" and found[5]):
        return None
    return TraceContext(
        found[2],
        found[3],
        flags=found[4],
        state=state if len(state) <= STATE_CHARACTERS and _VALUE.fullmatch(state) else "",
        baggage=baggage if len(baggage) <= BAGGAGE_CHARACTERS and _VALUE.fullmatch(baggage) else "",
    )


def to_meta(trace: TraceContext) -> dict[str, str]:
    """The keys of `_meta` that pass a trace on."""
    given = (f"00-{trace.trace_id}-{trace.span_id}-{trace.flags}", trace.state, trace.baggage)
    return {key: value for key, value in zip(KEYS, given, strict=True) if value}


def activate(trace: TraceContext | None) -> Token[TraceContext | None]:
    """Make a trace that of the requests which this task or thread makes from now on."""
    return _current.set(trace)


def deactivate(token: Token[TraceContext | None]) -> None:
    """Undo `activate`."""
    _current.reset(token)


def current() -> TraceContext | None:
    """The trace that requests made here are to carry on."""
    return _current.get()


def _text(raw: Any) -> str:
    try:
        return "" if raw is UNSET else _read_text(raw)
    except msgspec.DecodeError:
        return ""
