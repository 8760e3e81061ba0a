"""Cold start of the built-in server with 40 tools that are declared from an index, against four that are imported.

The forty are generated: five toolsets of eight, with libraries behind them that take long to import. Imported at the
start, as a contrast, they cost several times as much.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from benchmarks.claim import Claim, Target
from benchmarks.client_run import surroundings
from benchmarks.command import main
from benchmarks.environment import BENCH, HERE, python
from benchmarks.http_server import cores, placed
from benchmarks.load import Session, progress

TOOLSETS, TOOLS = 5, 8
FOUR, FORTY, EAGER = "4 tools, imported", "40 tools, from an index", "40 tools, imported"
SERVER = str(HERE / "servers" / "longshore_indexed.py")
COUNTS = {FOUR: 4, FORTY: TOOLSETS * TOOLS, EAGER: TOOLSETS * TOOLS}

MODULE = '''
import asyncio, concurrent.futures, email.message, http.client, sqlite3, ssl, xml.dom.minidom
from typing import Annotated, Literal
from msgspec import Meta, Struct
from longshore import Toolset, tool

class Row{number}(Struct):
    """One row of a collection."""
    id: int
    text: str
    score: float

class Generated(Toolset):
    """Collection {number}."""
    name = "discovery_{number}"
    def __init__(self, app) -> None: ...
'''
METHOD = '''
    @tool(effects="read", title="Search {name}", category="discovery", examples=[{{"query": "x", "order": "best"}}])
    def search_{name}(
        self,
        query: Annotated[str, Meta(max_length=1000, description="what to look for, in plain words")],
        limit: Annotated[int, Meta(ge=1, le=100, description="how many rows to return, 1 to 100")] = 10,
        order: Annotated[Literal["best", "newest", "oldest"], "which rows come first"] = "best",
    ) -> list[Row{number}]:
        """Search collection {name} and return the rows that match best, with their scores."""
        return []
'''
REQUESTS = [
    {
        "method": "initialize",
        "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "b", "version": "1"}},
    },
    {"method": "tools/list"},
]


def measure(session: Session) -> list[Claim]:
    rounds = session.pick(full=21, quick=5)
    answered, listed = claims(rounds)
    with TemporaryDirectory() as folder:
        generate(Path(folder))
        _python(session, "write", folder)
        argv = {FOUR: ["imported"], FORTY: ["index", folder], EAGER: ["import", folder]}
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in argv}
        for number in range(rounds + 1):
            for name, arguments in argv.items():
                progress(f"start {number}/{rounds}  {name}")
                times[name].append(_start(session, COUNTS[name], *arguments))
    progress("")
    for name, pairs in times.items():
        # The first start compiles bytecode and fills the page cache.
        answered.add(name, [pair[0] for pair in pairs[1:]])
        listed.add(name, [pair[1] for pair in pairs[1:]])
    return [answered, listed]


def claims(rounds: int) -> list[Claim]:
    how = f"median of {rounds} spawns"
    target = Target(FORTY, 1.15, against=FOUR)
    return [
        Claim("lazy_start", f"Built-in server: spawn to initialize answered, {how}", "ms", FOUR, targets=[target]),
        Claim("lazy_start_list", "The same to tools/list answered, same runs", "ms", FOUR, targets=[target]),
    ]


def generate(folder: Path) -> None:
    """Write the modules of the toolsets."""
    for number in range(TOOLSETS):
        methods = [METHOD.format(number=number, name=f"{number}_{each}") for each in range(TOOLS)]
        (folder / f"generated_{number}.py").write_text(MODULE.format(number=number) + "".join(methods))


def _command(session: Session, *arguments: str) -> list[str]:
    return [*placed(session, cores()[-1]), str(python("longshore")), SERVER, *arguments]


def _python(session: Session, *arguments: str) -> None:
    subprocess.run(_command(session, *arguments), cwd=BENCH, env=surroundings(), check=True)


def _start(session: Session, count: int, *arguments: str) -> tuple[float, float]:
    """Milliseconds from spawn to the answers of `initialize` and of `tools/list`, which is sent when that has come."""
    began, times = perf_counter(), list[float]()
    with subprocess.Popen(
        _command(session, *arguments), cwd=BENCH, env=surroundings(), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        line = b""
        for number, request in enumerate(REQUESTS):
            process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, **request}).encode() + b"\n")
            process.stdin.flush()
            line = process.stdout.readline()
            times.append((perf_counter() - began) * 1e3)
        process.stdin.close()
    found = len(json.loads(line)["result"]["tools"])
    assert found == count, f"{found} tools instead of {count}"
    return times[0], times[1]


if __name__ == "__main__":
    sys.exit(main([measure]))
