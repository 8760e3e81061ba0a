"""How fast the context graph ingests the running Python's standard library, and how fast it sees that nothing changed.

Directories of tests are left out, as in `context_corpus`. Each round ingests a copy into a new store: symbols with
their source, imports and calls, without secrets, indexed and committed. The second pass is over the same tree, the
third after one function was added to one of its files.
"""

from __future__ import annotations

import shutil
import sys
import sysconfig
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from benchmarks.claim import Claim, Target
from benchmarks.command import main
from benchmarks.context_corpus import LEFT_OUT
from benchmarks.load import Session, precedence, progress

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from longshore.sandbox.confined import ConfinedFiles
from longshore.sandbox.roots import configured_roots
from longshore.toolsets.context.ingest import IngestReport, ingest
from longshore.toolsets.context.store import Store, open_store

OURS = "longshore"
LEAST_RATE = 1_000


def measure(session: Session) -> list[Claim]:
    rounds = session.pick(full=5, quick=1)
    rate = Claim("context_ingest", f"Ingest of the standard library, {rounds} new stores", "functions a second")
    again = Claim("context_ingest_again", "A second pass over it, nothing changed", "ms")
    one = Claim("context_ingest_one", "A pass after one function was added", "ms")
    figures: tuple[list[float], list[float], list[float]] = ([], [], [])
    with precedence(session), TemporaryDirectory() as folder:
        library = Path(folder, "library")
        shutil.copytree(sysconfig.get_paths()["stdlib"], library, ignore=shutil.ignore_patterns(*LEFT_OUT))
        for number in range(rounds):
            progress(f"ingest, round {number + 1} of {rounds}")
            report = _measure_round(library, str(Path(folder, f"{number}.db")), figures)
    progress("")
    for claim, values in zip((rate, again, one), figures, strict=True):
        claim.add(OURS, values)
    rate.targets = [Target(OURS, LEAST_RATE, at_most=False)]
    rate.notes.append(f"{report.functions:,} functions in {report.added:,} files, {report.parts:,} nodes.")
    return [rate, again, one]


def _measure_round(library: Path, place: str, figures: tuple[list[float], list[float], list[float]]) -> IngestReport:
    store = open_store(place)
    try:
        first, seconds = _timed(store, library)
        figures[0].append(first.functions / seconds)
        second, seconds = _timed(store, library)
        assert second.unchanged == first.added, second
        figures[1].append(1000 * seconds)
        with open(library / "textwrap.py", "a", encoding="utf-8") as file:
            file.write(f"\n\ndef added_in_round_{len(figures[1])}():\n    return dedent('')\n")
        third, seconds = _timed(store, library)
        assert third.changed == 1, third
        figures[2].append(1000 * seconds)
        return first
    finally:
        store.close()


def _timed(store: Store, library: Path) -> tuple[IngestReport, float]:
    files = ConfinedFiles(configured_roots([str(library)]))
    began = perf_counter()
    report = ingest(store, files)
    return report, perf_counter() - began


if __name__ == "__main__":
    sys.exit(main([measure]))
