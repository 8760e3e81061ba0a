"""What was used: calls, failures, tokens and durations by tool, and calls and tokens by session. A sink of the ring."""

from __future__ import annotations

from _thread import allocate_lock
from collections import OrderedDict, deque
from time import time
from typing import Any, Final, final

from msgspec import Struct

from longshore.telemetry.events import RequestInfo, Size, tokens
from longshore.telemetry.ring import Event

LATEST: Final = 512
"""Durations of a tool of which the percentiles are made: the latest calls tell how it is now."""
MOST_TOOLS: Final = 1000
MOST_SESSIONS: Final = 1000
"""The sessions that were used last. Older ones are forgotten, and so are their counts."""
_FAILED: Final = ("error", "failed", "timeout", "refused")


class ToolUsage(Struct):
    """The calls of one tool."""

    calls: int = 0
    failures: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    max_ms: float = 0.0
    last: float = 0.0


class SessionUsage(Struct):
    """The requests of one session."""

    session: str
    principal: str
    transport: str
    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    last: float = 0.0


@final
class Usage:
    """The counts since the server's start."""

    def __init__(self) -> None:
        self.since = time()
        self._tools: dict[str, ToolUsage] = {}
        self._durations: dict[str, deque[float]] = {}
        self._sessions: OrderedDict[str, SessionUsage] = OrderedDict()
        self._lock = allocate_lock()

    # -- as a sink, on the feeder's thread

    def write(self, events: list[Event], offset: float) -> None:
        with self._lock:
            for event in events:
                match event:
                    case (_, 0, began, ended, source, _, _, tool, size, answer, is_error):
                        self._count(tool, source, size, ended - began, answer, is_error is True, ended + offset)
                    case (
                        _,
                        4,
                        RequestInfo(source=source, tool=tool, size=size),
                        received,
                        _,
                        ended,
                        outcome,
                        answer,
                        _,
                    ):
                        failed = outcome in _FAILED
                        self._count(tool, source, size, ended - received, answer, failed, ended + offset)
                    case _:
                        pass

    def close(self) -> None:
        pass

    def _count(self, tool: str, source: Any, size: int, seconds: float, answer: Size, failed: bool, at: float) -> None:
        out = tokens(answer if isinstance(answer, int) else answer[1])
        if source.session:
            session = self._session(source)
            session.calls += 1
            session.tokens_in += tokens(size)
            session.tokens_out += out
            session.last = at
        found = self._tools.get(tool)
        if found is None:
            if not tool or len(self._tools) >= MOST_TOOLS:
                return
            found = self._tools[tool] = ToolUsage()
            self._durations[tool] = deque(maxlen=LATEST)
        found.calls += 1
        found.failures += failed
        found.tokens_in += tokens(size)
        found.tokens_out += out
        found.max_ms = max(found.max_ms, seconds * 1000)
        found.last = at
        self._durations[tool].append(seconds)

    def _session(self, source: Any) -> SessionUsage:
        found = self._sessions.get(source.session)
        if found is None:
            found = self._sessions[source.session] = SessionUsage(source.session, source.principal, source.transport)
            if len(self._sessions) > MOST_SESSIONS:
                self._sessions.popitem(last=False)
        else:
            self._sessions.move_to_end(source.session)
        return found

    # -- for readers

    def session(self, label: str) -> SessionUsage | None:
        """The counts of one session."""
        with self._lock:
            return self._sessions.get(label)

    def describe(self) -> dict[str, Any]:
        """All counts, the tools with the most tokens first."""
        with self._lock:
            tools = [(name, each, sorted(self._durations[name])) for name, each in self._tools.items()]
            sessions = [_fields(each) for each in reversed(self._sessions.values())]
        tools.sort(key=lambda each: -(each[1].tokens_in + each[1].tokens_out))
        listed = [
            {"name": name, **_fields(each), "p50_ms": _at(times, 0.5), "p95_ms": _at(times, 0.95)}
            for name, each, times in tools
        ]
        return {"since": self.since, "tools": listed, "sessions": sessions}


def _fields(record: Struct) -> dict[str, Any]:
    return {name: getattr(record, name) for name in record.__struct_fields__}


def _at(times: list[float], share: float) -> float:
    """A percentile in milliseconds."""
    return times[min(len(times) - 1, int(len(times) * share))] * 1000 if times else 0.0
