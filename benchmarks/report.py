"""Prints claims as tables, and says on what machine and with which versions they were measured."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.claim import Claim, Target
from benchmarks.environment import HERE, ROOT, installed

RESULTS = HERE / "results"
NAME_WIDTH = 35


def surroundings(scheduling: str) -> dict[str, Any]:
    return {
        "date": f"{datetime.now(UTC):%Y-%m-%d %H:%M}",
        "machine": f"{_processor()}, {len(os.sched_getaffinity(0))} cores",
        "python": platform.python_version(),
        "versions": {
            "longshore": _commit(),
            "msgspec": installed("longshore", "msgspec"),
            "mcp": installed("mcp", "mcp"),
            "fastmcp": installed("fastmcp", "fastmcp"),
            "uvicorn": installed("longshore", "uvicorn"),
        },
        "scheduling": scheduling,
        "load": [round(load, 2) for load in os.getloadavg()],
    }


def print_surroundings(facts: dict[str, Any]) -> None:
    versions = ", ".join(f"{name} {version}" for name, version in facts["versions"].items())
    print(f"machine     {facts['machine']}")
    print(f"versions    CPython {facts['python']}, {versions}")
    print(f"scheduling  {facts['scheduling']}; load average {facts['load'][0]}")


def print_claim(claim: Claim) -> None:
    print(f"\n{claim.title}")
    header = f"  {'':{NAME_WIDTH}} {claim.unit:>11}  {'(range)':<21} {'ratio':<29} {'target':<10}"
    print(header.rstrip())
    for name, figure in claim.figures.items():
        spread = f"({_number(figure.low)}–{_number(figure.high)})" if len(figure.values) > 1 else ""
        row = f"  {name:{NAME_WIDTH}} {_number(figure.median):>11}  {spread:<21} "
        verdicts = [_verdict(claim, target) for target in claim.targets if target.of == name]
        verdicts = verdicts or [_ratio_to_base(claim, name)]
        print((row + verdicts[0]).rstrip())
        for verdict in verdicts[1:]:
            print(" " * len(row) + verdict)
    for name in dict.fromkeys(target.of for target in claim.targets):
        if name not in claim.figures:
            print(f"  {name:{NAME_WIDTH}} {'no figure':>11}")
    if claim.settings:
        print(f"  Not at its default: {', '.join(f'{key} = {value}' for key, value in claim.settings.items())}.")
    for note in claim.notes:
        print(f"  {note}")
    for error in claim.errors:
        print("  ERROR " + error.replace("\n", "\n        "))


def _verdict(claim: Claim, target: Target) -> str:
    verdict = claim.judge(target)
    if verdict is None:
        return f"no figure of {target.against}"
    ratio = f"{verdict.measured:.3g} × {target.against}" if target.against else ""
    bound = f"{'≤' if target.at_most else '≥'} {target.limit:g}"
    return f"{ratio:<29} {bound:<10} {'ok' if verdict.met else 'MISSED'}"


def _ratio_to_base(claim: Claim, name: str) -> str:
    ratio = claim.ratio(name, claim.base)
    return "" if ratio is None or name == claim.base else f"{ratio:.3g} × {claim.base}"


def print_summary(claims: Sequence[Claim], minutes: float) -> None:
    verdicts = [claim.judge(target) for claim in claims for target in claim.targets]
    met = sum(1 for verdict in verdicts if verdict and verdict.met)
    missed = sum(1 for verdict in verdicts if verdict and not verdict.met)
    errors = sum(len(claim.errors) for claim in claims)
    unknown = verdicts.count(None)
    print(f"\n{met} targets met, {missed} MISSED, {unknown} without a figure, {errors} errors; {minutes:g} minutes")


def save(facts: dict[str, Any], claims: Iterable[Claim], quick: bool) -> Path:
    """Write one run to a file of its own, with a line for each claim."""
    fields = {**facts, "quick": quick}
    lines = [f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}," for key, value in fields.items()]
    rows = ",\n".join(json.dumps(claim.as_json(), ensure_ascii=False) for claim in claims)
    path = RESULTS / f"{re.sub('[^0-9]', '', facts['date'])}-{facts['versions']['longshore']}.json"
    RESULTS.mkdir(exist_ok=True)
    path.write_text("\n".join(["{", *lines, '"claims": [', rows, "]}"]) + "\n")
    return path


def _number(value: float) -> str:
    """Three digits that matter, thousands apart."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _commit() -> str:
    git = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    done = subprocess.run(git, capture_output=True, text=True)
    return done.stdout.strip() or "(no commit)"
