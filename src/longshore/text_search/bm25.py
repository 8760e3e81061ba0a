"""BM25: how well texts match words, any of which may be missing; and an index in memory.

A document has fields (a name, a text) with weights. For each term, the frequencies of the fields are added up, each
multiplied by its weight and divided by the length of its text relative to the average; the sum is then saturated. With
one field that is plain BM25, with several BM25F.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from heapq import nsmallest
from math import log
from typing import Final, Generic, TypeVar, final

from longshore.text_search.tokenizer import to_all_terms, to_terms

K1: Final = 1.2
"""How soon further occurrences of a term stop counting. The common value, as in SQLite's FTS5."""
B: Final = 0.75
"""How much the length of a text counts."""
NAME_WEIGHT: Final = 3.0
"""How much more a word counts in a name."""

Id = TypeVar("Id", bound=Hashable)


def rarity(documents: int, having: int) -> float:
    """The weight of a term that `having` of the documents have; never negative."""
    return log(1.0 + (max(documents, having) - having + 0.5) / (having + 0.5))


def saturated(frequency: float) -> float:
    """A weighted frequency as a share of K1 + 1."""
    return frequency * (K1 + 1.0) / (frequency + K1)


def length_factors(average: float) -> tuple[float, float]:
    """Two numbers a and b: a text of n terms divides its frequencies by a + b * n."""
    return 1.0 - B, B / max(average, 1.0)


@final
class MemoryIndex(Generic[Id]):
    """Documents of a name and a text, for search in one process."""

    def __init__(self) -> None:
        self._names = dict[str, dict[Id, int]]()
        self._texts = dict[str, dict[Id, int]]()
        self._lengths = dict[Id, int]()
        self._terms = dict[Id, tuple[frozenset[str], frozenset[str]]]()

    def add(self, id_: Id, name: str, text: str = "") -> None:
        """Add a document, or replace the one with this id."""
        self.remove(id_)
        in_name, in_text = Counter(to_all_terms(name)), Counter(to_terms(text))
        for found, fields in ((in_name, self._names), (in_text, self._texts)):
            for term, count in found.items():
                fields.setdefault(term, {})[id_] = count
        self._lengths[id_] = in_text.total()
        self._terms[id_] = frozenset(in_name), frozenset(in_text)

    def remove(self, id_: Id) -> None:
        """Remove a document, if there is one."""
        for terms, fields in zip(self._terms.pop(id_, ()), (self._names, self._texts), strict=False):
            for term in terms:
                del fields[term][id_]
                if not fields[term]:
                    del fields[term]
        self._lengths.pop(id_, None)

    def search(self, query: str, limit: int = 10) -> list[tuple[Id, float]]:
        """The best documents with any of the query's words, and their scores. Of equal ones the older is first."""
        scores = self._score(dict.fromkeys(to_terms(query)))
        order = {id_: place for place, id_ in enumerate(self._lengths)}
        return nsmallest(limit, scores.items(), key=lambda found: (-found[1], order[found[0]]))

    def _score(self, terms: Iterable[str]) -> dict[Id, float]:
        scores = dict[Id, float]()
        count = len(self._lengths)
        short, long = length_factors(sum(self._lengths.values()) / max(count, 1))
        for term in terms:
            frequencies = {id_: NAME_WEIGHT * n for id_, n in self._names.get(term, {}).items()}
            for id_, n in self._texts.get(term, {}).items():
                frequencies[id_] = frequencies.get(id_, 0.0) + n / (short + long * self._lengths[id_])
            worth = rarity(count, len(frequencies))
            for id_, frequency in frequencies.items():
                scores[id_] = scores.get(id_, 0.0) + worth * saturated(frequency)
        return scores
