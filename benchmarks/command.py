"""The command line that all benchmarks share."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

from benchmarks.claim import Claim
from benchmarks.contestants import FLOOR
from benchmarks.environment import SetupFailed, prepare
from benchmarks.load import LoadFailed, Session, run
from benchmarks.report import print_claim, print_summary, print_surroundings, save, surroundings

Measure = Callable[[Session], list[Claim]]


def main(measures: Sequence[Measure], keep: bool = False) -> int:
    """Measure, print, and with `keep` save. A missed target is no error; a bad answer or a crash is."""
    session = _session()
    try:
        prepare()
        scheduling = str(run(session, FLOOR, "cold", [])["scheduling"])
    except (SetupFailed, LoadFailed) as failure:
        print(f"benchmarks: {failure}", file=sys.stderr)
        return 1
    facts = surroundings(scheduling)
    print_surroundings(facts)
    claims: list[Claim] = []
    try:
        for measure in measures:
            for claim in measure(session):
                print_claim(claim)
                sys.stdout.flush()
                claims.append(claim)
    except KeyboardInterrupt:
        print("\nbenchmarks: interrupted", file=sys.stderr)
        return 130
    print_summary(claims)
    if keep:
        print(f"written to {save(facts, claims, session.quick)}")
    return 1 if any(claim.errors for claim in claims) else 0


def _session() -> Session:
    parser = argparse.ArgumentParser(
        description="Longshore's figures, with the peers' and the floor's in the same run."
    )
    parser.add_argument("--quick", action="store_true", help="fewer rounds and calls: to see that it works")
    parser.add_argument("--polite", action="store_true", help="take no precedence over what else runs on this machine")
    options = parser.parse_args()
    return Session(quick=options.quick, polite=options.polite)
