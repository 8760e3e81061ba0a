"""docs/promises.md and docs/figures.md quote the saved runs: the worst figure of all, and each miss."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from benchmarks import figures
from benchmarks.claim import Claim, Target
from benchmarks.figures import BEGIN, END, PAGES, fill, saved_runs, section


def run(*claims: Claim) -> dict[str, Any]:
    return {"date": "2026-01-02 03:04", "claims": [claim.as_json() for claim in claims]}


def start(ours: float, floor: float = 10.0, **fields: Any) -> Claim:
    claim = Claim("start", "Start", "ms", targets=[Target("ours", 1.5, against="floor")], **fields)
    claim.add("ours", [ours])
    claim.add("floor", [floor])
    return claim


def rate(ours: float) -> Claim:
    claim = Claim("rate", "Rate", "calls/s", targets=[Target("ours", 100, at_most=False)])
    claim.add("ours", [ours])
    claim.add("theirs", [10.0])
    return claim


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_table_of_figures_is_that_of_the_saved_runs(page: Path) -> None:
    quoted = page.read_text().partition(BEGIN)[2].partition(END)[0].strip()
    assert quoted == section(page, saved_runs()), "run: python -m benchmarks.figures"


def test_a_quick_run_is_quoted_only_while_there_is_no_full_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "HERE", tmp_path)
    results = tmp_path / "results"
    results.mkdir()
    (results / "1.json").write_text('{"quick": true}')
    assert saved_runs() == [{"quick": True}]
    (results / "2.json").write_text('{"quick": false}')
    assert saved_runs() == [{"quick": False}]


def test_a_figure_is_the_worst_of_the_runs() -> None:
    runs = [run(start(11), rate(300)), run(start(14), rate(200)), run(start(12), rate(400))]
    assert fill("| {start} × | {rate} a second |", runs) == "| 1.4 × | 200 a second |"


def test_a_figure_without_a_target_is_the_worst_one_too() -> None:
    runs = [run(start(11), rate(300)), run(start(14), rate(200))]
    assert fill("| {start: floor} | {start: floor / ours} | {rate: ours / theirs} |", runs) == "| 10 | 0.909 | 20 |"


def test_a_figure_that_misses_its_target_in_one_run_says_so() -> None:
    runs = [run(start(15), rate(100)), run(start(15.1), rate(99.9))]
    assert fill("| {start} |", runs[:1]) == "| 1.5 |"
    assert fill("| {rate: ours}, alone |", runs) == "| 99.9 (misses its target of 100), alone |"
    row = "| {start: ours / floor} × mcp after 1,000 calls; alone |"
    assert fill(row, runs) == "| 1.51 × mcp after 1,000 calls (misses its target of 1.5); alone |"


def test_settings_that_are_not_the_defaults_are_named_in_the_row() -> None:
    runs = [run(start(11, settings={"http.rate": "0", "limits.listens": "10000"}))]
    assert fill("| {start} × |", runs) == "| 1.1 ×. Not at its default: `http.rate = 0`, `limits.listens = 10000` |"


@pytest.mark.parametrize("claims", [(), (start(11, errors=["2 bad answers"]),)])
def test_a_run_that_failed_is_not_left_out(claims: tuple[Claim, ...]) -> None:
    with pytest.raises(SystemExit, match="the run of 2026-01-02 03:04 has no start without errors"):
        fill("| {start} |", [run(start(11)), run(*claims)])


def test_the_text_of_an_error_is_not_saved() -> None:
    assert "/home" not in str(start(11, errors=["/home/ann/server.py failed"]).as_json())
