"""What the client scripts of this folder share: connect, call, time it, and print what was found as JSON.

    python longshore_client.py calls --era modern --calls 1000 memory
    python mcp_client.py cycles --calls 20 -- python server.py

Standard library only, because each client runs in an environment of its own. A wrong answer ends the run.
"""

import argparse
import asyncio
import json
import os
import statistics
import sys
import time
import uuid
from contextlib import suppress
from pathlib import Path

MEMORY = "memory"
MARK = "BENCH_MARK"  # in the environment of every server that is started here, so that one left behind can be found


def main(connect, read):
    """`connect(target, era)` is an async context manager that gives an `add(a, b)` to await, whose result is a + b.

    The target is "memory", a URL, or a list: the command of a server on stdio. `read` gives a result's text and
    structured content; the time that checking them takes is not counted.
    """
    options = _options()
    os.environ[MARK] = uuid.uuid4().hex
    target = options.target[0] if options.target[0].startswith((MEMORY, "http://")) else options.target
    run = {"calls": _calls, "cycles": _cycles}[options.mode]
    print(json.dumps(asyncio.run(run(connect, read, target, options))))


def environment():
    """What a server on stdio gets, whoever starts it."""
    return {key: os.environ[key] for key in ("PATH", "HOME", "LANG", MARK) if key in os.environ}


def _options():
    parser = argparse.ArgumentParser()
    parser.add_argument("mode", choices=("calls", "cycles"))
    parser.add_argument("--era", choices=("auto", "modern", "legacy"), default="auto")
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--warmup", type=int, default=100)
    parser.add_argument("--together", type=int, default=1, help="how many calls are in flight at a time")
    parser.add_argument("target", nargs="+")
    return parser.parse_args()


# -- calls


async def _calls(connect, read, target, options):
    async with connect(target, options.era) as add:
        await _load(add, read, options.warmup, options.together)
        processor, began = time.process_time(), time.perf_counter()
        times = await _load(add, read, options.calls, options.together)
        took, processor = time.perf_counter() - began, time.process_time() - processor
    return {
        "per_second": len(times) / took,
        "p50_us": statistics.median(times) * 1e6,
        "cpu_us": processor / len(times) * 1e6,
    }


async def _load(add, read, count, together):
    """So many calls, each timed, by so many tasks that take one after another."""
    numbers, times = iter(range(count)), []

    async def work():
        for number in numbers:
            began = time.perf_counter()
            result = await add(number, 7)
            times.append(time.perf_counter() - began)
            _check(number, *read(result))

    if together == 1:
        await work()
    else:
        await asyncio.gather(*(work() for _ in range(together)))
    return times


def _check(number, text, structured):
    wanted = number + 7
    # Before 2026-07-28 structured content is an object, so a number is wrapped in one.
    if text != str(wanted) or structured not in (wanted, {"result": wanted}):
        sys.exit(f"{number} + 7 was answered with {text!r} and {structured!r}")


# -- cycles


async def _cycles(connect, read, target, options):
    """Open, call once, close, again and again; and what is there afterwards that was not there before."""
    for number in range(options.warmup):
        await _cycle(connect, read, target, options.era, number)
    before = _held()
    began = time.perf_counter()
    for number in range(options.calls):
        await _cycle(connect, read, target, options.era, number)
    took = time.perf_counter() - began
    after = _held()
    return {
        "per_second": options.calls / took,
        "tasks": len(asyncio.all_tasks()) - 1,
        **{key: [before[key], after[key]] for key in before},
    }


async def _cycle(connect, read, target, era, number):
    async with connect(target, era) as add:
        _check(number, *read(await add(number, 7)))


def _held():
    return {
        "processes": len(_children() | _marked()),
        "threads": _count("/proc/self/task"),
        "descriptors": _count("/proc/self/fd"),
        "resident_mb": int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6,
    }


def _count(folder):
    return len(os.listdir(folder))


def _children():
    """All children, the ended ones that nobody waited for among them."""
    return {int(pid) for each in Path("/proc/self/task").glob("*/children") for pid in each.read_text().split()}


def _marked():
    """Servers of this run, wherever they went: one that left our group and lost its parent still has its mark."""
    mark = f"{MARK}={os.environ[MARK]}".encode()
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if mark in (folder / "environ").read_bytes().split(b"\0"):
                found.add(int(folder.name))
    return found - {os.getpid()}
