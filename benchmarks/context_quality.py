"""How well the context graph finds what is asked for, against SQLite's FTS5, grep and server-memory on the same texts.

Recall at n is the share of queries whose function is among the first n answers (`context_corpus` has the method). Ours
gets each function as one node and the calls as edges, and answers through the store's own `query`. Nothing of the
ranking was chosen on this corpus: BM25's constants are the usual ones, those of the walk come from measurements on
dialogues. The mean over 20 random halves of the modules shows how much a corpus matters. Dialogues are measured
by `context_dialogues`.

Facts that change are asked for at all of their times: the answer must have the value of that time and no other one,
and none where there is none. Half of them have names; the others have dates of their own, and some have ended or were
retracted.
"""

from __future__ import annotations

import random
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.claim import Claim, Target
from benchmarks.command import main
from benchmarks.context_corpus import (
    SEED,
    Function,
    Search,
    counting,
    fill_store,
    full_text,
    longshore,
    read_functions,
)
from benchmarks.context_peer import measure_peer
from benchmarks.load import Session, progress
from longshore.toolsets.context.packing import pack
from longshore.toolsets.context.records import Moment, NewItem, NewSource, Query, Targets
from longshore.toolsets.context.store import Store, open_store

OURS, OR, AND, GREP = "longshore", "FTS5, any word", "FTS5, all words", "grep, words counted"
SPLITS = 20
DEPTHS = (1, 5, 10)
DAY = 86_400_000_000
NOTHING = ""
"""The value of a fact at a time when it has none."""
Asked = tuple[str, list[str], list[tuple[Moment, str]]]
"""A question, all values of its fact, and the right one at each of its moments."""
Places = dict[int, int]
"""By query: at which place its function was found, from 1 on; 0 if it was not."""


def measure(session: Session) -> list[Claim]:
    with TemporaryDirectory() as folder:
        functions = read_functions(session.pick(full=10_000, quick=1_500))
        store, numbers = fill_store(str(Path(folder, "context.db")), functions)
        any_word, all_words = full_text(str(Path(folder, "fts.db")), functions)
        contestants = {
            OURS: longshore(store, numbers),
            OR: any_word,
            AND: all_words,
            GREP: counting(functions),
        }
        queries = [number for number, function in enumerate(functions) if function.sentence]
        found = {name: find_all(name, search, functions, queries) for name, search in contestants.items()}
        claims = [*_recall(found, len(functions)), _splits(found, functions)]
        others = {OURS: contestants[OURS], OR: any_word}
        claims += measure_peer(session, Path(folder), functions, str(Path(folder, "context.db")), others)
        store.close()
        return [*claims, *_changing_facts(session, Path(folder, "facts.db"))]


def find_all(name: str, search: Search, functions: Sequence[Function], queries: Sequence[int]) -> Places:
    """Where a contestant finds the function of each query."""
    places = Places()
    for count, number in enumerate(queries):
        if count % 100 == 0:
            progress(f"{name}: {count:,} of {len(queries):,} queries")
        answers = search(functions[number].sentence)
        places[number] = answers.index(number) + 1 if number in answers else 0
    progress("")
    return places


def recall(places: Places, depth: int) -> float:
    return sum(0 < place <= depth for place in places.values()) / max(1, len(places))


def _recall(found: dict[str, Places], functions: int) -> list[Claim]:
    queries = len(found[OURS])
    claims = list[Claim]()
    for depth in DEPTHS:
        title = f"Recall at {depth}: {queries:,} docstring sentences to {functions:,} functions"
        claim = Claim(f"context_recall_{depth}", title, "share", base=OR)
        for name, places in found.items():
            claim.add(name, [recall(places, depth)])
        claims.append(claim)
    claims[-1].targets = [Target(OURS, 1.2, against=OR, at_most=False)]
    rank = Claim("context_reciprocal_rank", "The same: mean reciprocal rank within 10", "share", base=OR)
    for name, places in found.items():
        rank.add(name, [statistics.fmean(1 / place if place else 0.0 for place in places.values())])
    return [*claims, rank]


def _splits(found: dict[str, Places], functions: Sequence[Function]) -> Claim:
    """Recall at 10 over the queries of random halves of the modules; the texts to search stay all of them."""
    modules = sorted({function.path for function in functions})
    chance = random.Random(SEED)
    means = {name: list[float]() for name in found}
    for _ in range(SPLITS):
        half = set(chance.sample(modules, len(modules) // 2))
        for name, places in found.items():
            means[name].append(recall({n: p for n, p in places.items() if functions[n].path in half}, 10))
    claim = Claim("context_recall_splits", f"Recall at 10, mean over {SPLITS} random halves of the modules", "share")
    claim.base = OR
    for name, values in means.items():
        claim.add(name, [statistics.fmean(values)])
    ratios = [ours / other for ours, other in zip(means[OURS], means[OR], strict=True) if other]
    claim.notes.append(f"longshore / {OR} in the halves: {min(ratios):.2f} to {max(ratios):.2f}.")
    return claim


def _changing_facts(session: Session, path: Path) -> list[Claim]:
    """Facts that change, asked for now and at each of their times."""
    store, chance = open_store(str(path)), random.Random(SEED)
    count = session.pick(full=300, quick=30)
    named, changes = _facts_with_names(store, count, chance)
    unnamed = _facts_without_names(store, count, chance)
    asked = exact = stale = 0
    for text, values, moments in (*named, *unnamed):
        for moment, value in moments:
            answer = pack(store.query(Query(text=text, moment=moment))).text
            others = [other for other in values if other != value and f"{other}." in answer]
            asked += 1
            exact += not others and (value == NOTHING or f"{value}." in answer)
            stale += bool(others)
    store.close()
    changes += sum(len(values) for _, values, _ in unnamed)
    shown = Claim("context_facts", f"{2 * count} facts, {changes:,} changes: exact answers now and at each time", "%")
    shown.add(OURS, [100 * exact / asked])
    shown.targets = [Target(OURS, 100, at_most=False)]
    old = Claim("context_stale", f"The same {asked:,} answers: with a value of another time", "answers")
    old.add(OURS, [stale])
    old.targets = [Target(OURS, 0)]
    return [shown, old]


def _facts_with_names(store: Store, count: int, chance: random.Random) -> tuple[list[Asked], int]:
    """Facts with up to 20 values one after the other, each true until the next was said; and how many changes."""
    source = NewSource(actor="bench")
    histories = dict[str, list[tuple[int, str]]]()
    rows = dict[str, int]()
    for number in range(count):
        name = f"setting {number}"
        [added] = store.add(
            [NewItem(kind="fact", name=name, text=f"The port of setting {number} is v{number}x0.")], source
        )
        rows[name] = added.observation or 0
        histories[name] = [(_known_at(store, added.node), f"v{number}x0")]
    order = [name for name in histories for _ in range(chance.randrange(20))]
    chance.shuffle(order)
    for name in order:
        number, value = int(name.split()[1]), f"v{name.split()[1]}x{len(histories[name])}"
        rows[name] = store.supersede(rows[name], f"The port of setting {number} is {value}.", source)
        histories[name].append((_known_at(store, store.find(name)[0].id), value))
    asked = list[Asked]()
    for name, history in histories.items():
        moments = [(Moment(), history[-1][1]), *((Moment(valid_at=at), value) for at, value in history)]
        asked.append((f"port of {name}", [value for _, value in history], moments))
    return asked, len(order)


def _facts_without_names(store: Store, count: int, chance: random.Random) -> list[Asked]:
    """Facts with up to five values and dates of their own, past and to come; some have ended, some were retracted."""
    source, now = NewSource(actor="bench"), time.time_ns() // 1000
    asked = list[Asked]()
    for number in range(count):
        values = [f"w{number}x{place}" for place in range(chance.randint(1, 5))]
        dates = sorted(now + days * DAY for days in chance.sample(range(-2_000, 400), len(values) + 1))
        texts = [f"The limit of service {number} is {value}." for value in values]
        [added] = store.add([NewItem(text=texts[0], valid_from=dates[0])], source)
        row = added.observation or 0
        for text, begins in zip(texts[1:], dates[1:], strict=False):
            row = store.supersede(row, text, source, valid_from=begins)
        end = chance.choice(("stays", "ends", "retracted"))
        if end == "ends":
            store.end_observation(row, source, valid_to=dates[-1])
        elif end == "retracted":
            store.retract(Targets(observations=(row,)), source)
        true = [*values[:-1], NOTHING if end == "retracted" else values[-1]]
        after = NOTHING if end != "stays" else values[-1]
        at_dates = [(dates[0] - 1, NOTHING), *zip(dates, (*true, after), strict=True)]
        current = at_dates[sum(date <= now for date in dates)][1]
        moments = [(Moment(valid_at=at), value) for at, value in at_dates]
        asked.append((f"limit of service {number}", values, [(Moment(), current), *moments]))
    return asked


def _known_at(store: Store, node: int) -> int:
    [observation] = store.observations(node)
    return observation.recorded_at


if __name__ == "__main__":
    sys.exit(main([measure]))
