"""What the recorder costs a call: when nobody listens, and when it keeps events in its ring.

The engine as it is, against the same source in which every `recorder.on` reads `False`: the compiler then leaves the
checks out. And the engine with a ring, which is full, against the one without. They run in this process, in turns, and
are measured in processor time: no transport and no neighbour hides the difference.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import re
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from time import process_time_ns
from types import ModuleType
from typing import Any

from benchmarks.claim import Claim, Target
from benchmarks.command import main
from benchmarks.load import Session

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

CHECK = re.compile(r"\b(?:self\.)?recorder\.on\b")
MODULES = ("longshore.server.executor", "longshore.server.engine")  # in the order of their imports
AS_IS, WITHOUT, HEARD = "nobody listens", "without the checks", "a listener that keeps nothing"
RING, NO_RING = "with a ring", "without a ring"
RING_SIZE = 10_000
"""As `telemetry.ring` has it."""
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}},
}
CALLS = {
    tool: json.dumps(
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": {"a": 1, "b": 2}}}
    ).encode()
    for tool in ("inline", "later")
}


def without_checks() -> Any:
    """The Engine of the same source without the checks."""
    kept = {name: import_module(name) for name in MODULES}
    for name in MODULES:
        source = Path(str(kept[name].__file__)).read_text()
        if not CHECK.search(source):
            raise SystemExit(f"benchmarks.recorder: {name} has no {CHECK.pattern} any more")
        module = ModuleType(name)
        module.__file__ = kept[name].__file__
        sys.modules[name] = module  # so that dispatch finds the changed executor
        exec(compile(CHECK.sub("False", source), str(module.__file__), "exec"), vars(module))
    engine = vars(sys.modules[MODULES[-1]])["Engine"]
    sys.modules.update(kept)
    return engine


def make(engine_type: Any = None) -> Any:
    """A server with an inline and an async tool, on this engine."""
    runtime = import_module("longshore.runtime")
    app = import_module("longshore.app").Server("bench", version="1")

    @app.tool(run="inline")
    def inline(a: int, b: int) -> int:
        return a + b

    @app.tool
    async def later(a: int, b: int) -> int:
        return a + b

    usual = runtime.Engine
    runtime.Engine = engine_type or usual
    try:
        assert app.engine is not None
    finally:
        runtime.Engine = usual
    return app


def time_inline(app: Any, calls: int) -> float:
    """µs of the processor a call, from a frame to its answer."""
    link = import_module("longshore.server.link").Link()
    handle, frame = app.engine.handle, CALLS["inline"]
    handle(json.dumps(INITIALIZE).encode(), link)
    for _ in range(100):
        assert b'"result":3' in handle(frame, link)
    began = process_time_ns()
    for _ in range(calls):
        handle(frame, link)
    return (process_time_ns() - began) / calls / 1000


def time_async(app: Any, calls: int) -> float:
    """µs a call of a coroutine, through a Task each."""

    async def run() -> float:
        answers: asyncio.Queue[bytes] = asyncio.Queue()
        base: Any = import_module("longshore.server.link").Link
        link = type("Peer", (base,), {"send": lambda _, frame: answers.put_nowait(frame)})()
        app.engine.executor.adopt_loop(asyncio.get_running_loop())
        app.engine.handle(json.dumps(INITIALIZE).encode(), link)
        for _ in range(100):
            app.engine.handle(CALLS["later"], link)
            assert b'"result":3' in await answers.get()
        began = process_time_ns()
        for _ in range(calls):
            app.engine.handle(CALLS["later"], link)
            await answers.get()
        return (process_time_ns() - began) / calls / 1000

    return asyncio.run(run())


def measure(session: Session) -> list[Claim]:
    affinity = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(affinity)})
    try:
        return [
            _claim(session, "recorder_inline", "an inline tool", time_inline, session.pick(full=20_000, quick=4_000)),
            _claim(session, "recorder_async", "an async tool", time_async, session.pick(full=8_000, quick=2_000)),
            _ring_claim(session, "ring_inline", "an inline tool", time_inline, session.pick(full=20_000, quick=4_000)),
            _ring_claim(session, "ring_async", "an async tool", time_async, session.pick(full=8_000, quick=2_000)),
        ]
    finally:
        os.sched_setaffinity(0, affinity)


def _claim(session: Session, name: str, what: str, time: Callable[[Any, int], float], calls: int) -> Claim:
    rounds = session.pick(full=15, quick=5)
    stripped = without_checks()
    contestants: dict[str, Any] = {AS_IS: None, WITHOUT: stripped, HEARD: None}
    values: dict[str, list[float]] = {each: [] for each in contestants}
    for _ in range(rounds):
        for each, engine_type in contestants.items():
            app = make(engine_type)
            if each == HEARD:
                app.listen(lambda record: None)
            gc.collect()
            values[each].append(time(app, calls))
    cost = "the checks' cost"
    claim = Claim(
        name,
        f"The recorder, {what}: processor time a call, median of {rounds} rounds of {calls:,}",
        "µs",
        base=WITHOUT,
        targets=[Target(cost, 1.0)],
    )
    for each, figures in values.items():
        claim.add(each, figures)
    claim.add(cost, [with_ - without for with_, without in zip(values[AS_IS], values[WITHOUT], strict=True)])
    return claim


def _ring_claim(session: Session, name: str, what: str, time: Callable[[Any, int], float], calls: int) -> Claim:
    rounds = session.pick(full=15, quick=5)
    values: dict[str, list[float]] = {NO_RING: [], RING: []}
    for _ in range(rounds):
        for each, figures in values.items():
            app = make()
            if each == RING:
                app.recorder.open_ring(RING_SIZE)
                for _ in range(RING_SIZE):  # a server's ring is full after its first minutes
                    app.recorder.put((next(app.recorder.numbers), 5, None))
            time(app, RING_SIZE)  # the first calls replace what filled it
            gc.collect()
            figures.append(time(app, calls))
    claim = Claim(
        name,
        f"The ring of events, {what}: processor time a call, median of {rounds} rounds of {calls:,}",
        "µs",
        base=NO_RING,
        targets=[Target(RING, 1.15, against=NO_RING)],
    )
    for each, figures in values.items():
        claim.add(each, figures)
    return claim


if __name__ == "__main__":
    sys.exit(main([measure]))
