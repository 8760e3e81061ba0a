"""How long a query of the context graph takes, against SQLite's FTS5 on the same texts.

Both run in this process and are asked the same questions in turns (`context_corpus`): ours for ten hits with their
texts, ranked along the calls; FTS5 for the ten best row numbers by its own rank, any word being enough. Beyond the
functions that the standard library has, mixtures of their lines are added, with as many calls a function.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from benchmarks.claim import Claim, Target
from benchmarks.command import main
from benchmarks.context_corpus import (
    Search,
    fill_store,
    full_text,
    longshore,
    more_functions,
    read_functions,
    resolve_calls,
)
from benchmarks.load import Session, precedence, progress

OURS, FTS5 = "longshore", "FTS5, any word"
SIZES = ((10_000, 2.0), (100_000, 3.0))
"""How many nodes, and how much longer than FTS5 ours may take."""
ROUNDS = 3


def measure(session: Session) -> list[Claim]:
    with precedence(session):
        return [claim for size, limit in SIZES for claim in _measure(session, size, limit)]


def _measure(session: Session, size: int, limit: float) -> list[Claim]:
    wanted = size if not session.quick else size // 20
    functions = more_functions(read_functions(min(wanted, 10_000)), wanted)
    queries = [function.sentence for function in functions if function.sentence][: session.pick(full=300, quick=50)]
    with TemporaryDirectory() as folder:
        progress(f"writing {wanted:,} nodes")
        began = perf_counter()
        store, numbers = fill_store(str(Path(folder, "context.db")), functions)
        seconds = perf_counter() - began
        edges = store.status().edges / wanted
        # Without as many edges a node the larger graph would cost the walk along them nothing.
        library = resolve_calls([function for function in functions if not function.copy])
        expected = sum(map(len, library)) / len(library)
        assert abs(edges - expected) <= 0.1 * expected, f"{edges:.2f} edges a node, and not {expected:.2f}"
        any_word, _ = full_text(str(Path(folder, "fts.db")), functions)
        searches = {OURS: longshore(store, numbers), FTS5: any_word}
        times = _ask_in_turns(searches, queries)
        store.close()
    title = f"A query of {wanted:,} nodes, {len(queries)} queries"
    slowest = Claim(f"context_query_{size}", f"{title}: p95 of each of {ROUNDS} rounds", "ms")
    middle = Claim(f"context_query_p50_{size}", f"{title}: p50", "ms", base=FTS5)
    for name, rounds in times.items():
        slowest.add(name, [statistics.quantiles(values, n=20)[-1] for values in rounds])
        middle.add(name, [statistics.median(values) for values in rounds])
    slowest.targets = [Target(OURS, limit, against=FTS5)]
    slowest.notes.append(
        f"{edges:.2f} edges a node; nodes and edges were written at {wanted / seconds:,.0f} nodes a second."
    )
    return [slowest, middle]


def _ask_in_turns(searches: dict[str, Search], queries: Sequence[str]) -> dict[str, list[list[float]]]:
    """Milliseconds of each query by contestant and round. A round before them fills the caches."""
    times = {name: list[list[float]]() for name in searches}
    for number in range(ROUNDS + 1):
        progress(f"queries, round {number} of {ROUNDS}")
        taken = {name: list[float]() for name in searches}
        for query in queries:
            for name, search in searches.items():
                began = perf_counter()
                search(query)
                taken[name].append(1000 * (perf_counter() - began))
        for name in searches:
            if number:
                times[name].append(taken[name])
    progress("")
    return times


if __name__ == "__main__":
    sys.exit(main([measure]))
