"""The walk from the best matches, and preferences."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longshore.toolsets.context.ranking import link_weights, page_rank, preference, seed_shares

EDGES = st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9), st.floats(0.1, 5.0)), max_size=30)
SCORES = st.dictionaries(st.integers(1, 9), st.floats(0.1, 50.0), min_size=1)


@given(SCORES, EDGES)
def test_the_walk_is_somewhere(scores: dict[int, float], edges: list[tuple[int, int, float]]) -> None:
    ranks = page_rank(seed_shares(scores), link_weights(edges))
    assert sum(ranks.values()) == pytest.approx(1.0)
    assert all(rank >= 0 for rank in ranks.values())


@given(SCORES)
def test_without_links_the_order_stays(scores: dict[int, float]) -> None:
    ranks = page_rank(seed_shares(scores), {})
    order = sorted(scores, key=lambda node: (scores[node], node))
    assert [ranks[node] for node in order] == sorted(ranks.values())


def test_what_good_matches_have_in_common_ranks_high() -> None:
    ranks = page_rank(seed_shares({1: 3.0, 2: 3.0, 3: 1.0}), link_weights([(1, 7, 1.0), (2, 7, 1.0), (3, 8, 1.0)]))
    assert ranks[7] > ranks[3] > ranks[8]


def test_a_heavier_link_gets_more_of_the_walk() -> None:
    ranks = page_rank({1: 1.0}, link_weights([(1, 2, 3.0), (1, 3, 1.0)]))
    assert ranks[2] == pytest.approx(3 * ranks[3])


def test_links_that_weigh_little_together_get_little_of_the_walk() -> None:
    light, usual, heavy = (page_rank({1: 1.0}, link_weights([(1, 2, weight)])) for weight in (0.1, 1.0, 7.0))
    assert usual == heavy and usual[2] > 0.3
    assert light[2] < 0.1


def test_the_walk_begins_at_the_best_few() -> None:
    assert seed_shares({1: 2.0, 2: 1.0}) == pytest.approx({1: 8 / 9, 2: 1 / 9})


def test_no_scores_have_no_shares() -> None:
    assert seed_shares({}) == {}
    assert seed_shares({1: 0.0}) == {}


def test_preferences_are_mild() -> None:
    day = 86_400_000_000
    assert preference("symbol", 0.5, False, 0, 10**6 * day) == 1.0
    assert preference("fact", 0.5, False, 0, 0) == pytest.approx(1.1)
    assert preference("fact", 0.5, False, 0, 30 * day) == pytest.approx(1.05)
    assert preference("fact", 0.5, False, 5, 0) == pytest.approx(1.1)  # another clock
    assert preference("symbol", 1.0, True, 0, 0) == pytest.approx(1.375)
    assert preference("symbol", 0.0, False, 0, 0) == 0.75
