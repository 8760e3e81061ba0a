"""Runs the client scripts of clients/, each in its own environment, and clients against each other in turns."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.environment import BENCH, HERE, python
from benchmarks.http_server import cores, placed
from benchmarks.load import LoadFailed, Sample, Session, progress

TIMEOUT = 900  # seconds for one run; a thousand cycles take about two minutes
IN_MEMORY = ("memory",)


@dataclass(frozen=True)
class Caller:
    """A client in one era. `target` is what it calls: "memory", a URL or the command of a server."""

    name: str
    client: str
    target: tuple[str, ...] = IN_MEMORY
    era: str = "auto"
    tools: str = "async"  # how the tool runs, where the client has the server in its own process
    free: bool = False  # placed by the kernel, as a user's would be, and not on one core
    slow: bool = False  # ten times slower than the others or more: it gets fewer calls


def run(session: Session, caller: Caller, *options: str) -> Sample:
    """One run in a fresh process, on one core unless it is free. What it starts itself is placed as it is."""
    script = HERE / "clients" / f"{caller.client}_client.py"
    command = [str(python(caller.client)), str(script), *options, "--era", caller.era, "--", *caller.target]
    try:
        done = subprocess.run(
            [*([] if caller.free else placed(session, cores()[0])), *command],
            cwd=BENCH,
            env=surroundings() | {"TOOLS": caller.tools},
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
        )
    except subprocess.TimeoutExpired:
        raise LoadFailed(f"it did not end within {TIMEOUT} s") from None
    if done.returncode != 0:
        raise LoadFailed("\n".join(done.stderr.strip().splitlines()[-4:]) or f"it ended with {done.returncode}")
    sample: Sample = json.loads(done.stdout.splitlines()[-1])
    return sample


def surroundings() -> dict[str, str]:
    """The user's environment could slow a process down or configure it: see load.run."""
    return {key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ} | {"LANG": "C.UTF-8"}


def compete(
    session: Session, callers: Sequence[Caller], rounds: int, options: Callable[[Caller], Sequence[str]]
) -> tuple[dict[str, list[Sample]], list[str]]:
    """What each did, round by round, and what went wrong. One that fails is left out of the rounds that follow."""
    samples: dict[str, list[Sample]] = {caller.name: [] for caller in callers}
    errors: list[str] = []
    alive = list(callers)
    for number in range(1, rounds + 1):
        for caller in tuple(alive):
            progress(f"clients {number}/{rounds}  {caller.name}")
            try:
                samples[caller.name].append(run(session, caller, *options(caller)))
            except LoadFailed as failure:
                errors.append(f"{caller.name}: {failure}")
                alive.remove(caller)
    progress("")
    return samples, errors


def values(samples: dict[str, list[Sample]], name: str, key: str) -> list[float]:
    return [sample[key] for sample in samples[name]]
