"""Search in memory, and the scores that all searches share."""

from __future__ import annotations

from math import inf

from hypothesis import given
from hypothesis import strategies as st

from longshore.text_search.bm25 import K1, MemoryIndex, rarity, saturated

WORDS = st.lists(st.sampled_from(["alpha", "beta", "gamma", "delta"]), max_size=6).map(" ".join)


def index_of(*documents: tuple[str, str]) -> MemoryIndex[str]:
    index = MemoryIndex[str]()
    for name, text in documents:
        index.add(name, name, text)
    return index


def found(index: MemoryIndex[str], query: str) -> list[str]:
    return [name for name, _ in index.search(query)]


def test_any_word_is_enough_and_rare_ones_count_more() -> None:
    index = index_of(
        ("fs_read", "Read a file"), ("fs_write", "Write a file"), ("term_run", "Run a command in a terminal")
    )
    assert found(index, "please read the log file") == ["fs_read", "fs_write"]
    assert found(index, "terminals") == ["term_run"]
    assert found(index, "nothing of it") == []


def test_a_word_counts_more_in_the_name() -> None:
    index = index_of(("page", "opens a browser"), ("browser", "opens a page"))
    assert found(index, "browser") == ["browser", "page"]


def test_a_word_counts_more_in_a_short_text() -> None:
    index = index_of(("a", "apple " + "pear " * 50), ("b", "apple pear"))
    assert found(index, "apple") == ["b", "a"]


def test_a_replaced_document_is_found_by_its_new_words_only() -> None:
    index = index_of(("a", "old"))
    index.add("a", "a", "new")
    assert found(index, "old") == []
    assert found(index, "new") == ["a"]
    index.remove("a")
    index.remove("a")
    assert found(index, "new") == []


@given(st.dictionaries(st.integers(0, 9), WORDS), WORDS)
def test_what_is_found_has_a_word_of_the_query(documents: dict[int, str], query: str) -> None:
    index = MemoryIndex[int]()
    for id_, text in documents.items():
        index.add(id_, "", text)
    hits = index.search(query, limit=100)
    assert {id_ for id_, _ in hits} == {
        id_ for id_, text in documents.items() if set(text.split()) & set(query.split())
    }
    assert [score for _, score in hits] == sorted((score for _, score in hits), reverse=True)
    for id_ in documents:
        index.remove(id_)
    assert index.search(query) == []


def test_scores_have_bounds() -> None:
    assert rarity(10, 10) > 0
    assert rarity(0, 5) > 0
    assert rarity(1000, 1) > rarity(1000, 10)
    assert saturated(0.0) == 0.0
    assert saturated(1.0) == 1.0
    assert saturated(1e12) <= K1 + 1 < inf
