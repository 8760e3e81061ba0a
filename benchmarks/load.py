"""Runs pipeload against a contestant, and contestants against each other in turns."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from benchmarks.claim import Claim
from benchmarks.contestants import Contestant
from benchmarks.environment import BENCH, PIPELOAD

TIMEOUT = 120  # seconds for one run of pipeload; the longest takes about ten

Sample = dict[str, Any]


class LoadFailed(Exception):
    """A run that gave no figure; the message is what pipeload and the server said."""


@dataclass(frozen=True)
class Session:
    """How the whole run goes: what was asked for on the command line."""

    quick: bool = False
    polite: bool = False

    def pick(self, full: int, quick: int) -> int:
        return quick if self.quick else full


@dataclass
class Samples:
    """What each contestant did, round by round, and what went wrong."""

    by_name: dict[str, list[Sample]] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)

    def values(self, contestant: Contestant, key: str, scale: float = 1.0) -> list[float]:
        return [sample[key] * scale for sample in self.by_name.get(contestant.name, [])]


def one_core() -> list[str]:
    """Generator and server take turns on one core: what is left is the software's own cost."""
    core = str(_cores()[0])
    return ["--generator-cpu", core, "--server-cpu", core]


def two_cores() -> list[str]:
    """Generator and server side by side."""
    cores = _cores()
    return ["--generator-cpu", str(cores[0]), "--server-cpu", str(cores[1 % len(cores)])]


def _cores() -> list[int]:
    return sorted(os.sched_getaffinity(0))


def run(session: Session, contestant: Contestant, mode: str, options: Sequence[str]) -> Sample:
    """One run of pipeload against a fresh process of the contestant."""
    argv = [str(PIPELOAD), "--mode", mode, "--timeout", str(TIMEOUT), *options]
    if session.polite:
        argv.append("--polite")
    if contestant.primer:
        argv += ["--primer", contestant.primer]
    if contestant.tool:
        argv += ["--tool", contestant.tool]
    # The user's environment could slow a server down (PYTHONDONTWRITEBYTECODE) or configure it (LONGSHORE_*).
    environment = {key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ}
    environment |= {"LANG": "C.UTF-8", **contestant.environment}
    done = subprocess.run(
        [*argv, "--", *contestant.command], cwd=BENCH, env=environment, capture_output=True, text=True
    )
    if done.returncode != 0:
        raise LoadFailed(_last_lines(done.stderr) or f"pipeload ended with {done.returncode}")
    sample: Sample = json.loads(done.stdout)
    sample["stderr"] = _last_lines(done.stderr) if sample["bad"] else ""
    return sample


def compete(
    session: Session,
    contestants: Sequence[Contestant],
    rounds: int,
    mode: str,
    options: Callable[[Contestant], Sequence[str]],
) -> Samples:
    """Measure all contestants in turns, round by round, so that a busy minute of the machine hits them alike.

    One that fails is reported and left out of the rounds that follow.
    """
    samples = Samples()
    alive = list(contestants)
    for number in range(1, rounds + 1):
        for contestant in tuple(alive):
            progress(f"{mode} {number}/{rounds}  {contestant.name}")
            try:
                sample = run(session, contestant, mode, options(contestant))
            except LoadFailed as failure:
                samples.errors.append(f"{contestant.name}: {failure}")
                alive.remove(contestant)
                continue
            if sample["bad"]:
                samples.errors.append(f"{contestant.name}: {sample['bad']} bad answers: {sample['stderr']}")
            samples.by_name.setdefault(contestant.name, []).append(sample)
    progress("")
    return samples


def measure_in_turns(claim: Claim, rounds: int, contestants: Mapping[str, Callable[[], float]]) -> None:
    """Fill in the figures, in turns. The first round is left out where there are several: it fills caches."""
    values: dict[str, list[float]] = {name: [] for name in contestants}
    warm_up = 1 if rounds > 1 else 0
    for number in range(rounds + warm_up):
        progress(f"{claim.name} {number}/{rounds}")
        for name, sample in contestants.items():
            values[name].append(sample())
    progress("")
    for name, measured in values.items():
        claim.add(name, measured[warm_up:])


@contextmanager
def precedence(session: Session) -> Generator[None]:
    """Go before what else the machine does, with all processes that are started meanwhile."""
    before = os.getpriority(os.PRIO_PROCESS, 0)
    if not session.polite and os.geteuid() == 0:
        os.setpriority(os.PRIO_PROCESS, 0, -20)
    try:
        yield
    finally:
        os.setpriority(os.PRIO_PROCESS, 0, before)


def _last_lines(text: str, count: int = 4) -> str:
    return "\n".join(text.strip().splitlines()[-count:])


def progress(text: str) -> None:
    """A line that overwrites itself; nothing where nobody watches."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
