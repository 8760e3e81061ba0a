"""The command line that all benchmarks share."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence

from benchmarks.claim import Claim
from benchmarks.contestants import FLOOR
from benchmarks.environment import ROOT, SetupFailed, prepare
from benchmarks.load import LoadFailed, Session, run
from benchmarks.report import print_claim, print_summary, print_surroundings, save, surroundings

Measure = Callable[[Session], list[Claim]]


def main(measures: Sequence[Measure], *, complete: bool = False) -> int:
    """Measure and print; a complete run can be saved. A missed target is no error; a bad answer or a crash is."""
    options = _options(complete)
    session = Session(quick=options.quick, polite=options.polite)
    try:
        prepare()
        scheduling = str(run(session, FLOOR, "cold", [])["scheduling"])
    except (SetupFailed, LoadFailed) as failure:
        print(f"benchmarks: {failure}", file=sys.stderr)
        return 1
    began = time.monotonic()
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
    facts["minutes"] = round((time.monotonic() - began) / 60, 1)
    print_summary(claims, facts["minutes"])
    if complete and options.save:
        print(f"saved as {save(facts, claims, session.quick).relative_to(ROOT)}")
    return 1 if any(claim.errors for claim in claims) else 0


def _options(complete: bool) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Longshore's figures, with the peers' and the floor's in the same run."
    )
    parser.add_argument("--quick", action="store_true", help="fewer rounds and calls: to see that it works")
    parser.add_argument("--polite", action="store_true", help="take no precedence over what else runs on this machine")
    if complete:
        parser.add_argument("--save", action="store_true", help="write the figures to a file in benchmarks/results/")
    return parser.parse_args()
