"""The ring: cursors, what was overwritten, and being woken; and what may wait for it."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from longshore.telemetry.recorder import Recorder
from longshore.telemetry.records import Problem
from longshore.telemetry.ring import Batch

SIZE = 100


def filled(count: int, size: int = SIZE) -> Recorder:
    recorder = Recorder()
    recorder.open_ring(size)
    put(recorder, count)
    return recorder


def put(recorder: Recorder, count: int) -> None:
    for number in range(count):
        recorder.put((next(recorder.numbers), 5, number))


def read(recorder: Recorder, cursor: int, most: int | None = None) -> Batch:
    assert recorder.ring is not None
    return recorder.ring.since(cursor, most)


def values(batch: Batch) -> list[Any]:
    return [event[2] for event in batch.events]


def test_a_reader_gets_each_event_once() -> None:
    recorder = filled(3)
    first = read(recorder, 0)
    assert (values(first), first.dropped) == ([0, 1, 2], 0)
    assert read(recorder, first.cursor) == ([], first.cursor, 0)
    put(recorder, 2)
    assert values(read(recorder, first.cursor)) == [0, 1]


def test_a_batch_has_at_most_as_many_as_wanted() -> None:
    recorder = filled(5)
    batch = read(recorder, 0, 2)
    assert values(batch) == [0, 1]
    assert values(read(recorder, batch.cursor, 2)) == [2, 3]


@pytest.mark.parametrize(("count", "dropped"), [(SIZE - 1, 0), (SIZE, 0), (SIZE + 1, 1)])
def test_what_is_overwritten_before_it_is_read_is_counted(count: int, dropped: int) -> None:
    batch = read(filled(count), 0)
    assert batch.dropped == dropped
    assert values(batch) == list(range(dropped, count))
    assert batch.cursor == count


def test_an_event_that_another_thread_has_numbered_and_not_appended_is_waited_for() -> None:
    recorder = filled(2)
    late = next(recorder.numbers)
    put(recorder, 1)
    assert values(read(recorder, 0)) == [0, 1]
    assert read(recorder, 2) == ([], 2, 0)
    recorder.put((late, 5, "late"))
    batch = read(recorder, 2)
    assert (values(batch), batch.dropped) == (["late", 0], 0)


def test_a_waiter_is_woken_once() -> None:
    recorder = filled(1)
    ring, woken = recorder.ring, list[int]()
    assert ring is not None
    ring.notify(lambda: woken.append(1))
    put(recorder, 3)
    assert woken == [1]
    other = lambda: woken.append(2)  # noqa: E731
    ring.notify(other)
    ring.forget(other)
    put(recorder, 1)
    assert woken == [1]


def test_many_threads_lose_nothing() -> None:
    recorder = filled(0, size=100_000)

    def work(name: int) -> None:
        for number in range(2000):
            recorder.put((next(recorder.numbers), 5, (name, number)))

    threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    cursor, found, dropped = 0, list[Any](), 0
    while len(found) < 8000:
        batch = read(recorder, cursor, 500)
        cursor, found, dropped = batch.cursor, found + values(batch), dropped + batch.dropped
    for thread in threads:
        thread.join()
    assert dropped == 0
    assert sorted(found) == [(name, number) for name in range(4) for number in range(2000)]


def test_a_problem_is_in_the_ring_and_goes_to_the_fallback() -> None:
    recorder, said = filled(0), list[Any]()
    recorder.fallback = lambda: said.append  # type: ignore[assignment,return-value]
    recorder.problem("warning", "password=hunter2-horse9 was given")
    (event,) = read(recorder, 0).events
    assert isinstance(event[2], Problem)
    assert said == [event[2]]
    assert "hunter2" not in event[2].text
