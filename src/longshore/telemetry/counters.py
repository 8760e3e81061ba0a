"""Counters and histograms of requests, for Prometheus. They are counted when somebody asks, and every few moments."""

from __future__ import annotations

from _thread import allocate_lock
from bisect import bisect_left
from collections import Counter
from typing import Any, Final, final

from longshore.telemetry.events import RequestInfo, tokens
from longshore.telemetry.recorder import Recorder
from longshore.telemetry.records import LimitReached, Record, Refused
from longshore.telemetry.ring import Event, Ring

BUCKETS: Final = (0.0001, 0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Seconds. An inline tool takes less than the first, a page in the browser a second or two, a build a minute."""
MOST_LABELS: Final = 1000
"""Different values of one label. Names come from the catalog, which mounted servers may change; more are `other`."""

_EVENTS: Final = 5000
"""Read at once."""

Labels = tuple[tuple[str, str], ...]
Sample = tuple[str, Labels]
"""The name of a metric, and its labels."""


@final
class Counters:
    """The counts of one process since its start."""

    def __init__(self, recorder: Recorder, ring: Ring) -> None:
        self.dropped = 0
        """Events that were overwritten before they were counted."""
        self._recorder, self._ring = recorder, ring
        self._cursor = ring.last
        self._counts: Counter[Sample] = Counter()
        self._seen: dict[str, set[str]] = {}
        self._lock = allocate_lock()

    def take(self) -> dict[Sample, float]:
        """All samples, now."""
        self.count()
        with self._lock:
            return dict(self._counts)

    def count(self) -> None:
        """Count what is new. May be called by any thread."""
        with self._lock:
            while True:
                batch = self._ring.since(self._cursor, _EVENTS)
                self._cursor, self.dropped = batch.cursor, self.dropped + batch.dropped
                for event in batch.events:
                    self._count_event(event)
                if len(batch.events) < _EVENTS:
                    return

    def _count_event(self, event: Event) -> None:
        match event:
            case (_, 0, began, ended, _, _, _, tool, _, answer, is_error):
                outcome = "failed" if is_error is True else "ok"
                self._count_end("tools/call", tool, (ended - began, ended - began), outcome, answer)
            case (_, 4, RequestInfo(method=method, tool=tool), received, began, ended, outcome, answer, _):
                self._count_end(method, tool, (ended - received, ended - began if began else None), outcome, answer)
            case (_, 5, record):
                self._count_record(record)
            case _:
                pass

    def _count_end(
        self, method: str, tool: str, seconds: tuple[float, float | None], outcome: str, answer: Any
    ) -> None:
        whole, inside = seconds
        self._counts["longshore_requests_total", (("method", method), ("outcome", outcome))] += 1
        self._observe("longshore_request_seconds", ("method", method), whole)
        if tool:
            label = ("tool", self._bounded("tool", tool))
            if inside is not None:
                self._observe("longshore_tool_seconds", label, inside)
            characters = answer if isinstance(answer, int) else answer[1]
            self._counts["longshore_answer_tokens_total", (label,)] += tokens(characters)

    def _observe(self, name: str, label: tuple[str, str], seconds: float) -> None:
        at = bisect_left(BUCKETS, seconds)
        bound = f"{BUCKETS[at]:g}" if at < len(BUCKETS) else "+Inf"
        counts: Any = self._counts  # sums are fractions
        counts[f"{name}_bucket", (label, ("le", bound))] += 1
        counts[f"{name}_sum", (label,)] += max(seconds, 0.0)
        counts[f"{name}_count", (label,)] += 1

    def _count_record(self, record: Record) -> None:
        if isinstance(record, Refused):
            labels: Labels = (("why", self._bounded("why", record.why)), ("status", str(record.status or "")))
            self._counts["longshore_refusals_total", labels] += 1
        elif isinstance(record, LimitReached):
            self._counts["longshore_limits_reached_total", (("limit", record.limit),)] += 1

    def _bounded(self, label: str, value: str) -> str:
        seen = self._seen.setdefault(label, set())
        if value not in seen:
            if len(seen) >= MOST_LABELS:
                return "other"
            seen.add(value)
        return value

    # -- as a sink: counts before the ring overwrites anything, also where nobody asks

    def write(self, events: list[Event], offset: float) -> None:  # noqa: ARG002
        self.count()

    def close(self) -> None:
        pass
