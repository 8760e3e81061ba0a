"""Candidates of a query: the nodes with its words, by BM25 over the postings; words similar to an unknown one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from typing import Final

from msgspec import Struct

from longshore.text_search.bm25 import NAME_WEIGHT, length_factors, rarity, saturated
from longshore.toolsets.context.database import Transaction, batches, marks
from longshore.toolsets.context.records import Microseconds, Moment
from longshore.toolsets.context.rows import holds, is_past

TERMS: Final = 64
"""Terms of one query that are searched for: the rarest. More don't change the best hits, and each costs a read."""
ALIKE: Final = 0.7
"""How alike a known word must be to take an unknown one's place, from 0 to 1."""
_LIKE_ROWS: Final = 300
"""Known words that are compared with an unknown one."""
_LIKE_WORDS: Final = 3


class KnownTerm(Struct, frozen=True):
    """A term that occurs in a text."""

    id: int
    text: str
    word: str
    texts: int
    weight: float = 1.0


class Totals(Struct, frozen=True):
    """Counts of the whole store."""

    nodes: int
    average: float
    """Length of a text, in terms."""


def read_totals(transaction: Transaction) -> Totals:
    row = transaction.row("SELECT nodes, texts, terms FROM totals WHERE id = 1")
    nodes, texts, terms = row or (0, 0, 0)
    return Totals(nodes, terms / texts if texts else 1.0)


def look_up(transaction: Transaction, terms: Iterable[str], *, past: bool) -> dict[str, KnownTerm]:
    """The terms that occur in a current text; with `past`, also those of closed texts."""
    having = "" if past else " AND texts > 0"
    found = dict[str, KnownTerm]()
    for batch in batches(terms):
        sql = f"SELECT id, text, word, texts FROM term WHERE text IN ({marks(batch)}){having}"
        found.update((row[1], KnownTerm(*row)) for row in transaction.rows(sql, batch))
    return found


def score(
    transaction: Transaction, terms: Iterable[KnownTerm], totals: Totals, moment: Moment, now: Microseconds
) -> dict[int, float]:
    """The nodes that have any of the terms at a moment, with their scores.

    The frequency of a term in a node is that of its best observation, plus that of its name. The sums are made in one
    order, so that equal stores give equal scores, to the last digit.
    """
    rarest = sorted(terms, key=lambda term: (term.texts, term.text))[:TERMS]
    short, long = length_factors(totals.average)
    excluded = set[int]() if is_past(moment) else _not_now(transaction, now)
    scores = dict[int, float]()
    for term in rarest:
        frequencies, names = dict[int, float](), dict[int, float]()
        for node, observation, count, length in _postings(transaction, term.id, moment, now):
            if not observation:
                names[node] = NAME_WEIGHT * count
            elif observation not in excluded:
                relative = count / (short + long * length)
                if relative > frequencies.get(node, 0.0):
                    frequencies[node] = relative
        for node, frequency in names.items():
            frequencies[node] = frequencies.get(node, 0.0) + frequency
        worth = term.weight * rarity(totals.nodes, len(frequencies))
        for node, frequency in frequencies.items():
            scores[node] = scores.get(node, 0.0) + worth * saturated(frequency)
    return scores


def nodes_with_all(transaction: Transaction, terms: Iterable[KnownTerm], moment: Moment, now: Microseconds) -> set[int]:
    """The nodes that contain each of the terms in a text or name, at a moment."""
    found: set[int] | None = None
    for term in sorted(terms, key=lambda term: term.texts):
        having = {row[0] for row in _postings(transaction, term.id, moment, now)}
        found = having if found is None else found & having
        if not found:
            break
    return found or set()


def _postings(
    transaction: Transaction, term: int, moment: Moment, now: Microseconds
) -> list[tuple[int, int, int, int]]:
    columns = "posting.node, posting.observation, posting.frequency, posting.length"
    if not is_past(moment):
        return transaction.rows(f"SELECT {columns} FROM posting WHERE term = ? AND is_current = 1", (term,))
    condition, values = holds("observation", moment, now)
    sql = (
        f"SELECT {columns} FROM posting LEFT JOIN observation ON observation.id = posting.observation"
        f" WHERE posting.term = ? AND posting.is_current IN (0, 1) AND (posting.observation = 0 OR ({condition}))"
    )
    return transaction.rows(sql, (term, *values))


def _not_now(transaction: Transaction, now: Microseconds) -> set[int]:
    """Current observations that are not true yet or not true any more. A database index covers those with dates."""
    sql = (
        "SELECT id FROM observation WHERE superseded_at IS NULL AND (valid_to IS NOT NULL OR valid_from > recorded_at)"
        " AND (valid_from > ? OR valid_to <= ?)"
    )
    return {row[0] for row in transaction.rows(sql, (now, now))}


def count_at_other_times(
    transaction: Transaction, terms: Sequence[KnownTerm], moment: Moment, now: Microseconds
) -> int:
    """Count the texts that don't hold at the moment and have any of the terms. A text with several rows counts once."""
    condition, values = holds("observation", moment, now)
    sql = (
        "SELECT count(DISTINCT posting.observation) FROM posting"
        " JOIN observation ON observation.id = posting.observation"
        f" WHERE posting.term IN ({marks(terms[:TERMS])}) AND posting.is_current IN (0, 1)"
        f" AND COALESCE(closed_as, '') <> 'recorded again' AND NOT COALESCE({condition}, FALSE)"
    )
    row = transaction.row(sql, (*(term.id for term in terms[:TERMS]), *values)) if terms else None
    return int(row[0]) if row else 0


def best_observations(
    transaction: Transaction, nodes: Sequence[int], terms: Sequence[KnownTerm], totals: Totals, *, past: bool
) -> dict[int, float]:
    """By observation of these nodes: its own score for the terms."""
    short, long = length_factors(totals.average)
    worth = {term.id: term.weight * rarity(totals.nodes, term.texts) for term in terms}
    scores = dict[int, float]()
    current = "IN (0, 1)" if past else "= 1"
    for batch in batches(nodes):
        sql = (
            f"SELECT term, observation, frequency, length FROM posting WHERE term IN ({marks(terms)})"
            f" AND is_current {current} AND node IN ({marks(batch)}) AND observation <> 0"
            " ORDER BY observation, term"
        )
        for term, observation, frequency, length in transaction.rows(sql, (*worth, *batch)):
            value = worth[term] * saturated(frequency / (short + long * length))
            scores[observation] = scores.get(observation, 0.0) + value
    return scores


def words_like(transaction: Transaction, word: str) -> list[KnownTerm]:
    """Known words with a similar spelling, the most similar first. Reads all terms."""
    word = word.casefold()
    grams = sorted({word[at : at + 3] for at in range(len(word) - 2)} if len(word) > 3 else {word[:2]})[:20]
    grams = [gram for gram in grams if not set(gram) & set("%_\\")]
    if not grams:
        return []
    hits = " + ".join("CASE WHEN text LIKE ? THEN 1 ELSE 0 END" for _ in grams)
    sql = (
        f"SELECT id, text, word, texts FROM (SELECT id, text, word, texts, {hits} AS hits FROM term"
        " WHERE texts > 0 AND length(text) BETWEEN ? AND ?) AS near WHERE hits > 0"
        " ORDER BY hits DESC, texts DESC, text LIMIT ?"
    )
    values = (*(f"%{gram}%" for gram in grams), len(word) - 4, len(word) + 2, _LIKE_ROWS)
    near = [KnownTerm(*row) for row in transaction.rows(sql, values)]
    alike = [(max(_alike(word, term.text), _alike(word, term.word)), term) for term in near]
    alike.sort(key=lambda pair: (-pair[0], -pair[1].texts, pair[1].text))
    best = [KnownTerm(term.id, term.text, term.word, term.texts, weight) for weight, term in alike if weight >= ALIKE]
    return best[:_LIKE_WORDS]


def _alike(word: str, other: str) -> float:
    matcher = SequenceMatcher(None, word, other, autojunk=False)
    return matcher.ratio() if matcher.quick_ratio() >= ALIKE else 0.0
