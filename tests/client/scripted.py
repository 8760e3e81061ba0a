"""Servers that a test scripts, and a runner that fails a test which leaves anything behind.

server = script(tmp_path, "for m in calls(): reply(m, DONE)")     # a command line
run(test)                                                          # `await test()`, bounded

After each test this process has the children, threads and descriptors that it had before, and asyncio had no complaint.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
import textwrap
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from longshore.client import Client
from waiting import PATIENCE, eventually

SERVERS = Path(__file__).parent / "servers"
SOON = 30.0
"""Seconds for what is expected to happen at once. Never asserted, only waited for."""


def script(folder: Path, code: str, name: str = "odd") -> list[str]:
    """A command that runs `servers/plain.py` with this behind it."""
    path = folder / f"{name}.py"
    path.write_text((SERVERS / "plain.py").read_text() + textwrap.dedent(code))
    return [sys.executable, "-SEu", str(path)]


def connect_to(folder: Path, code: str, **options: Any) -> Client:
    """A client of a scripted server of the handshake era, unless the options say otherwise."""
    return Client(script(folder, code), **{"era": "legacy", "timeout": 10.0, **options})


def run(test: Callable[[], Awaitable[Any]], seconds: float = PATIENCE, loop: Callable[[], Any] | None = None) -> None:
    """Run it on a loop of its own, and see that it leaves nothing."""
    complaints: list[str] = []

    async def bounded() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(str(context)))
        async with asyncio.timeout(seconds):
            await test()
        for _ in range(5):
            await asyncio.sleep(0)
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left, f"tasks were left: {left}"

    with nothing_left(), asyncio.Runner(loop_factory=loop) as runner:
        runner.run(bounded())
    assert not complaints, "\n".join(complaints)


@contextmanager
def nothing_left() -> Iterator[None]:
    before = descriptors(), threads(), children()
    yield
    gc.collect()
    # What an earlier test has left to end by itself may do so meanwhile.
    eventually("no descriptor is left", lambda: descriptors() <= before[0], SOON)
    eventually("no thread is left", lambda: threads() <= before[1], SOON)
    eventually("no child is left, not even a zombie", lambda: children() <= before[2], SOON)


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def threads() -> int:
    return threading.active_count()


def children() -> set[int]:
    """The processes that this one is the parent of, zombies as well."""
    found: set[int] = set()
    for task in Path("/proc/self/task").iterdir():
        try:
            found.update(int(pid) for pid in (task / "children").read_text().split())
        except FileNotFoundError:
            pass  # a thread that has just ended
    return found


async def until(what: str, check: Callable[[], Any], patience: float = PATIENCE) -> Any:
    """Ask until the answer is true, and let everything else go on meanwhile."""
    async with asyncio.timeout(patience):
        while not (found := check()):
            await asyncio.sleep(0.005)
        return found


def heard(path: Path) -> list[Any]:
    """The lines of JSON that a script wrote to a file."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
