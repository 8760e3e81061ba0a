"""Buckets, by a clock that the test sets: how many calls at once, how soon the next, and what is kept of whom."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longshore.server.engine import MOST_BUCKETS, Rates, rate_failure


class Clock:
    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def taken(rates: Rates, times: int, caller: str = "ann", tool: str = "add") -> int:
    """How many of so many calls go ahead."""
    return sum(rates.take(caller, tool) == 0.0 for _ in range(times))


STARTS = [0.0, 1.1, 12_345.678, 1e6 + 1 / 3, 1e9 + 0.1]
"""Times at which a machine may have come up: sums of fractions are off by a little, and by more the later it is."""


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize(
    ("rate", "burst"), [(1, 1), (3, 7), (7, 3), (100, 1000), (1000, 10), (99, 1001), (10_000, 5000), (20_000, 100_000)]
)
def test_so_many_go_at_once_and_not_one_more(rate: int, burst: int, start: float) -> None:
    rates = Rates(rate, burst, Clock(start))
    assert taken(rates, burst - 1) == burst - 1
    assert rates.take("ann", "add") == 0.0
    wait = rates.take("ann", "add")
    assert wait == pytest.approx(1 / rate, rel=0.1)


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize(("rate", "burst"), [(1, 1), (4, 8), (100, 1000), (1000, 10)])
def test_a_place_is_free_again_after_its_share_of_a_second(rate: int, burst: int, start: float) -> None:
    clock = Clock(start)
    rates = Rates(rate, burst, clock)
    assert taken(rates, burst + 5) == burst
    for _ in range(3 * burst):
        clock.now += 0.5 / rate
        assert taken(rates, 1) == 0
        clock.now += 0.5 / rate
        assert taken(rates, 2) == 1


def test_a_caller_that_waits_as_long_as_asked_may_call() -> None:
    clock = Clock(1000.1)
    rates = Rates(7, 3, clock)
    for _ in range(50):
        while not (wait := rates.take("ann", "add")):
            pass
        clock.now += wait
        assert rates.take("ann", "add") == 0.0


def test_a_refused_call_is_not_counted() -> None:
    clock = Clock()
    rates = Rates(10, 2, clock)
    assert taken(rates, 2) == 2
    assert [round(rates.take("ann", "add"), 6) for _ in range(100)] == [0.1] * 100
    clock.now += 0.1
    assert taken(rates, 2) == 1


def test_an_idle_caller_gets_one_whole_burst_again() -> None:
    clock = Clock()
    rates = Rates(10, 5, clock)
    assert taken(rates, 9) == 5
    clock.now += 0.2
    assert taken(rates, 9) == 2
    for away in (0.5, 1.0, 1e6):
        clock.now += away
        assert taken(rates, 9) == 5


def test_each_caller_has_a_bucket_for_each_tool() -> None:
    rates = Rates(1, 3, Clock())
    assert taken(rates, 9, "ann", "add") == 3
    assert taken(rates, 9, "ann", "mul") == 3
    assert taken(rates, 9, "bob", "add") == 3
    assert taken(rates, 9, "annadd", "") == 3
    assert taken(rates, 1, "ann", "add") == 0


def test_a_burst_of_nothing_is_one_at_a_time() -> None:
    clock = Clock()
    rates = Rates(2, 0, clock)
    assert taken(rates, 3) == 1
    clock.now += 0.5
    assert taken(rates, 3) == 1


def test_a_clock_that_goes_back_delays_a_caller_by_a_burst_at_most() -> None:
    clock = Clock(100.0)
    rates = Rates(10, 10, clock)
    assert taken(rates, 20) == 10
    clock.now = 99.0
    assert taken(rates, 1) == 0
    clock.now = 101.0
    assert taken(rates, 20) == 10


@given(
    st.integers(1, 1000),
    st.integers(1, 50),
    st.lists(st.floats(0, 0.5, allow_nan=False), min_size=1, max_size=200),
)
def test_however_calls_come_no_more_go_ahead_than_the_burst_and_the_rate_allow(
    rate: int, burst: int, pauses: list[float]
) -> None:
    clock = Clock(5.0)
    rates = Rates(rate, burst, clock)
    ahead = 0
    for pause in pauses:
        clock.now += pause
        ahead += taken(rates, 3)
        assert ahead <= burst + (clock.now - 5.0) * rate + 0.1


# -- memory


def test_callers_that_stay_away_are_forgotten() -> None:
    clock = Clock()
    rates = Rates(100, 10, clock)
    for wave in range(5):
        for n in range(MOST_BUCKETS):
            assert rates.take(f"caller {wave} {n}", "add") == 0.0
        clock.now += 1.0
    assert len(rates._full_at) <= MOST_BUCKETS


def test_a_bucket_that_is_not_full_is_not_dropped() -> None:
    clock = Clock()
    rates = Rates(100, 10, clock)
    assert taken(rates, 20, "greedy") == 10
    for n in range(MOST_BUCKETS + 10):
        rates.take(f"caller {n}", "add")
    assert rates.take("greedy", "add") > 0
    clock.now += 0.05
    for n in range(MOST_BUCKETS + 10):
        rates.take(f"other {n}", "add")
    assert taken(rates, 20, "greedy") == 5
    assert len(rates._full_at) <= 2 * MOST_BUCKETS


# -- what is said


@pytest.mark.parametrize(("wait", "said"), [(0.001, "0.1"), (0.25, "0.2"), (0.96, "1.0"), (12.34, "12.3")])
def test_a_refused_caller_is_told_how_long_to_wait(wait: float, said: str) -> None:
    failure = rate_failure("add", wait)
    assert failure.kind == "rate"
    assert failure.text == f"add was not run: it was called too often (the limit is http.rate); try again in {said} s"
