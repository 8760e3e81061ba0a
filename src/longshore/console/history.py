"""Older records than those that a page has seen: from the history's file where there is one, else from the ring."""

from __future__ import annotations

import asyncio
import os
from typing import Any, Final

from longshore.console.rows import Row, of_record, to_row
from longshore.telemetry.history import search_history
from longshore.telemetry.recorder import Recorder
from longshore.transports.http.gate import Denied

MOST: Final = 500
COMPLETED: Final = ("tool_completed", "request_completed")


async def read_older(
    recorder: Recorder, path: str | None, *, before: str, tool: str, outcome: str, limit: str
) -> dict[str, Any]:
    """Completed calls before a number, the latest first."""
    try:
        most, last = min(int(limit or "100"), MOST), int(before or "0")
    except ValueError:
        raise Denied(400, "before and limit are numbers") from None
    if most < 1:
        raise Denied(400, f"limit: give 1 to {MOST}")
    if path is None:
        return {"from": "ring", "records": _of_ring(recorder, last, tool, outcome, most)}
    place = os.path.abspath(os.path.expanduser(path))
    if not os.path.exists(place):
        return {"from": "history", "records": []}
    found = await asyncio.to_thread(search_history, place, before=last, tool=tool, outcome=outcome, most=most)
    return {"from": "history", "records": [of_record(number, record) for number, record in found]}


def _of_ring(recorder: Recorder, before: int, tool: str, outcome: str, most: int) -> list[Row]:
    ring = recorder.ring
    if ring is None:
        return []
    rows: list[Row] = []
    offset = recorder.offset
    for event in reversed(ring.since(0).events):
        if event[1] not in (0, 4) or (before and event[0] >= before):
            continue
        row = to_row(event, offset)
        if (not tool or row.tool == tool) and (not outcome or row.outcome == outcome):
            rows.append(row)
            if len(rows) == most:
                break
    return rows
