"""What it costs to import a client, in a fresh interpreter: the line that a user writes to be able to connect.

Half of ours is asyncio, which nobody who connects can do without; it is measured alone, too.
"""

from __future__ import annotations

import subprocess
import sys

from benchmarks.claim import Claim, Target
from benchmarks.client_run import surroundings
from benchmarks.command import main
from benchmarks.environment import BENCH, python
from benchmarks.http_server import cores, placed
from benchmarks.load import Session, progress

OURS, MCP, FASTMCP, ASYNCIO = "longshore.client", "mcp", "fastmcp", "asyncio alone"
LINES = {
    ASYNCIO: ("longshore", "import asyncio"),
    OURS: ("longshore", "from longshore.client import Client"),
    MCP: ("mcp", "from mcp import Client"),
    FASTMCP: ("fastmcp", "from fastmcp import Client"),
}
TIMED = "import time; began = time.perf_counter(); {}; print((time.perf_counter() - began) * 1e3)"


def measure(session: Session) -> list[Claim]:
    rounds = session.pick(full=21, quick=5)
    claim = Claim(
        "client_import",
        f"Importing a client, median of {rounds} fresh interpreters",
        "ms",
        base=MCP,
        targets=[Target(OURS, 0.15, against=MCP)],
    )
    times: dict[str, list[float]] = {name: [] for name in LINES}
    for number in range(rounds + 1):
        for name, (venv, line) in LINES.items():
            progress(f"import {number}/{rounds}  {name}")
            took = _import(session, venv, line, claim)
            # The first compiles bytecode and fills the page cache.
            times[name] += [took] if number and took is not None else []
    progress("")
    for name, values in times.items():
        claim.add(name, values)
    return [claim]


def _import(session: Session, venv: str, line: str, claim: Claim) -> float | None:
    command = [*placed(session, cores()[0]), str(python(venv)), "-c", TIMED.format(line)]
    done = subprocess.run(command, cwd=BENCH, env=surroundings(), capture_output=True, text=True)
    if done.returncode:
        claim.errors.append(f"{line}: {done.stderr.strip().splitlines()[-1:]}")
        return None
    return float(done.stdout)


if __name__ == "__main__":
    sys.exit(main([measure]))
