"""The twenty steps of the benchmark of code mode."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from benchmarks.browser_agents import CHROMIUM
from benchmarks.code_mode import BY_TOOLS, IN_FULL, OURS, Contestant, Record, work_in
from benchmarks.code_mode_task import CODE, CODE_BY_TOOLS, FULL, PEER, PEERS, SITE_ADDRESS
from benchmarks.order_page import find_faults, make_order_project
from tests.services import skip

CODE_FORM = ("--catalog", "code")
CONTESTANTS = {
    OURS: Contestant(CODE, CODE_FORM),
    BY_TOOLS: Contestant(CODE_BY_TOOLS, CODE_FORM),
    IN_FULL: Contestant(FULL),
}


@pytest.mark.parametrize("name", CONTESTANTS)
def test_all_steps_are_taken_and_leave_a_mended_page(tmp_path: Path, name: str) -> None:
    if not os.access(CHROMIUM, os.X_OK):
        skip(f"there is no {CHROMIUM}")
    record = work_in(Path(os.path.realpath(tmp_path)), CONTESTANTS[name], Path(sys.executable))
    assert record.faults == []
    waited = len(record.seen) - 1 - len(CONTESTANTS[name].turns)
    assert waited in (0, 1)  # for the server of the page, where that has started slowly
    assert sum(record.seen) < sum(record.tokens)


def test_a_project_that_nobody_mended_has_every_fault(tmp_path: Path) -> None:
    make_order_project(tmp_path)
    faults = find_faults(tmp_path)
    assert [fault.split(":")[0] for fault in faults] == [
        "the tests fail",
        "web/order.js is not as fixed",
        "other orders than one were taken",
        "the change is not noted",
        "the work is not committed",
    ]


def test_each_tool_that_is_looked_up_was_found_before() -> None:
    """The scripts know no name that no answer has shown."""
    for turns in (CODE, CODE_BY_TOOLS, PEER, PEERS):
        *searches, lookup = (turn for turn in turns if turn.tool not in ("run_code", "execute"))
        found = {name for search in searches for name in search.shows}
        assert {*(lookup.arguments.get("names") or lookup.arguments["tools"])} <= found


def test_twenty_steps_are_twenty_calls_in_full_form() -> None:
    assert len(FULL) == 20
    assert [turn.arguments["url"] for turn in FULL if "url" in turn.arguments] == [SITE_ADDRESS]


def test_the_list_counts_once_or_with_every_request_to_the_model() -> None:
    record = Record(seen=[100.0, 10.0, 20.0])
    assert record.with_list_at_each_turn() == 130 + 200
