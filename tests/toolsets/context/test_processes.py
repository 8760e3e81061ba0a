"""Several threads and processes on one store, and processes that are killed while they write."""

from __future__ import annotations

import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from counts import count
from longshore.toolsets.context.place import is_address
from longshore.toolsets.context.records import NewLink, Query
from longshore.toolsets.context.store import Store

from .child import is_purged
from .graphs import ME, fact, opened

CHILD = Path(__file__).parent / "child.py"


def start(place: str, who: str, first: int = 0, number: int = 200) -> subprocess.Popen[bytes]:
    argv = [sys.executable, "-W", "error", CHILD, place, who, str(first), str(number)]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, bufsize=0)


def check_added(store: Store, who: str, numbers: list[int]) -> None:
    """Each number has one node with one observation and one link, and all of it can be found."""
    for number in numbers:
        [node] = store.find(f"{who} {number}")
        details = store.details(node.id)
        assert details is not None
        [observation] = details.observations
        assert observation.text in (f"value {number} of {who}", f"changed {number} of {who}")
        [edge] = details.edges
        assert details.neighbours[edge.to_node].name == "hub"


def test_a_hundred_concurrent_additions_are_all_kept(place: str) -> None:
    with opened(place) as store, ThreadPoolExecutor(100) as threads:

        def add(number: int) -> str:
            return store.add([fact(f"item {number}", f"text {number}", links=(NewLink(to="hub"),))], ME)[0].outcome

        assert list(threads.map(add, range(100))) == ["created"] * 100
        assert set(threads.map(add, range(100))) == {"unchanged"}
        status = store.status()
        assert (status.nodes, status.observations, status.edges) == (101, 100, 100)
        assert store.check() == []


def test_reading_goes_on_while_others_write(place: str) -> None:
    with opened(place) as store, ThreadPoolExecutor(8) as threads:
        adding = [threads.submit(store.add, [fact(f"item {n}", "apple")], ME) for n in range(100)]
        found = [len(threads.submit(store.query, Query(text="apple", limit=200)).result().hits) for _ in range(50)]
        for each in adding:
            each.result()
        assert found == sorted(found)  # a later look never sees less
        assert len(store.query(Query(text="apple", limit=200)).hits) == 100


def test_four_processes_write_at_once(place: str) -> None:
    """They begin with no tables, and make them at the same time."""
    children = {who: start(place, who) for who in ("ann", "ben", "cy", "di")}
    written = {who: child.communicate(timeout=150)[0] for who, child in children.items()}
    assert [child.returncode for child in children.values()] == [0] * 4
    with opened(place) as store:
        for who, lines in written.items():
            numbers = [int(line) for line in lines.split()]
            assert len(numbers) == sum(not is_purged(place, n) for n in range(200))
            check_added(store, who, numbers)
        times = [event.at for event in store.events(limit=100_000)]
        assert times == sorted(times)
        changes = {(event.at, event.actor) for event in store.events(limit=100_000)}
        assert len(changes) == len({at for at, _ in changes})  # no time is that of two changes
        assert store.check() == []


def test_nothing_acknowledged_is_lost_when_processes_are_killed(place: str) -> None:
    """Each of them begins where the one before was killed, so what it adds first may be there already."""
    chance = random.Random(17)
    acknowledged: list[int] = []
    first = 0
    for _ in range(count(10 if is_address(place) else 50)):  # what a killed client leaves is up to the server
        child = start(place, "eve", first, 1_000_000)
        assert child.stdout is not None
        wanted = chance.randrange(1, 12)
        seen = [int(child.stdout.readline()) for _ in range(wanted)]
        child.kill()
        seen += [int(line) for line in child.stdout.read().split(b"\n")[:-1]]
        child.stdout.close()
        child.wait(60)
        acknowledged += seen
        first = acknowledged[-1]  # one that was added is added again
    with opened(place) as store:
        assert store.check() == []
        check_added(store, "eve", sorted(set(acknowledged)))
        status = store.status()
        # At most one unacknowledged item of each process is there, too: its node, with the hub.
        assert status.nodes - len(set(acknowledged)) <= 2
        assert status.observations <= status.nodes
