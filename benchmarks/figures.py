"""Writes the measured figures into docs/promises.md and docs/figures.md: `python -m benchmarks.figures`.

The rows are in promises.md and figures.md beside this file, the figures in the runs saved in results/. A figure is the
worst of all full runs, and is marked where it misses its target.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.environment import HERE, ROOT

PAGES = {ROOT / "docs" / name: HERE / name for name in ("promises.md", "figures.md")}
"""Each page, and the rows of its table."""
BEGIN = "<!-- figures: written by `python -m benchmarks.figures`, checked by tests/figures -->"
END = "<!-- end of figures -->"
FIGURE = re.compile(r"\{([^{}]+)\}((?: ×)?(?: (?!and )[\w`]+(?:,\d+)*)*)")  # and the words that belong to it
RATES = ("calls/s", "a second")  # units in which less is worse

Saved = dict[str, Any]


def saved_runs() -> list[Saved]:
    """The full runs; quick ones only if there is no full one."""
    runs: list[Saved] = [json.loads(path.read_text()) for path in sorted((HERE / "results").glob("*.json"))]
    return [run for run in runs if not run["quick"]] or runs


def section(page: Path, runs: Sequence[Saved]) -> str:
    """The text between the markers of a page."""
    rows = PAGES[page].read_text().partition("-->")[2].strip().splitlines()
    return "\n".join([_preface(page, runs), "", *(fill(row, runs) for row in rows)])


def _preface(page: Path, runs: Sequence[Saved]) -> str:
    saved = os.path.relpath(HERE / "results", page.parent)
    count = "1 run" if len(runs) == 1 else f"{len(runs)} runs"
    command = (
        "a short `make bench` (fewer rounds, sessions and calls than the rows name)"
        if runs[0]["quick"]
        else "`make bench`"
    )
    machines = "; ".join(sorted({f"{run['machine']}, CPython {run['python']}" for run in runs}))
    load = max(run["load"][0] for run in runs)
    mcp, fastmcp = (" or ".join(sorted({run["versions"][peer] for run in runs})) for peer in ("mcp", "fastmcp"))
    return (
        f"Each figure is the worst of {count} of {command} ([saved]({saved})), on {machines}, with a load "
        f"average of up to {load:.1f} at the start. The peers "
        f"`mcp` {mcp} and `fastmcp` {fastmcp} and a hand-written floor are measured in the same runs. Ratios travel "
        "between machines, times do not."
    )


def fill(row: str, runs: Sequence[Saved]) -> str:
    """The row with its figures, and with the settings that were changed to measure them."""
    settings: dict[str, str] = {}

    def figure(found: re.Match[str]) -> str:
        name, _, names = found.group(1).partition(": ")
        of, _, against = names.partition(" / ")
        claims = [_claim(run, name) for run in runs]
        for claim in claims:
            settings.update(claim["settings"])
        worst, miss = _worst(claims, of, against)
        return worst + found.group(2) + miss

    filled = FIGURE.sub(figure, row)
    changed = ", ".join(f"`{key} = {value}`" for key, value in settings.items())
    return f"{filled.removesuffix(' |')}. Not at its default: {changed} |" if changed else filled


def _claim(run: Saved, name: str) -> Saved:
    for claim in run["claims"]:
        if claim["name"] == name and not claim["errors"]:
            return dict(claim)
    raise SystemExit(f"benchmarks.figures: the run of {run['date']} has no {name} without errors")


def _worst(claims: Sequence[Saved], of: str, against: str) -> tuple[str, str]:
    """The figure, and what there is to say if it misses its target."""
    every = [target for claim in claims for target in claim["targets"]]
    targets = [each for each in every if of in ("", each["of"]) and against in ("", each["against"])]
    if not targets:
        worse = min if claims[0]["unit"] in RATES else max
        return _number(worse(_ratio(claim["figures"], of, against) for claim in claims)), ""
    bounds = {(target["bound"], target["limit"]) for target in targets}
    if len(bounds) > 1 or any(target["measured"] is None for target in targets):
        raise SystemExit(f"benchmarks.figures: {claims[0]['name']}: not one figure each, with one target: {targets}")
    ((bound, limit),) = bounds
    worst = _number((max if bound == "at most" else min)(target["measured"] for target in targets))
    return worst, "" if all(target["met"] for target in targets) else f" (misses its target of {limit:g})"


def _ratio(figures: Saved, of: str, against: str) -> float:
    return float(figures[of]["median"]) / (figures[against]["median"] if against else 1.0)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def main() -> None:
    for page in PAGES:
        before, _, rest = page.read_text().partition(BEGIN)
        page.write_text(f"{before}{BEGIN}\n{section(page, saved_runs())}\n{END}{rest.partition(END)[2]}")


if __name__ == "__main__":
    main()
