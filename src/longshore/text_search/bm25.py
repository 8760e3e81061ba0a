"""BM25: the score of texts for words, any of which may be missing; and an index in memory.

A document has fields (a name, a text) with weights. For each term, the frequencies of the fields are added up, each
multiplied by its weight and divided by the length of its text relative to the average; the sum is then saturated. With
one field that is plain BM25, with several BM25F.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
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
HEADING_WEIGHT: Final = 1.5
"""How much more in a heading, which says in a sentence what the text is about."""

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
    """Documents of a name, a text and maybe a heading, for search in one process."""

    def __init__(self) -> None:
        self._names = dict[str, dict[Id, int]]()
        self._headings = dict[str, dict[Id, int]]()
        self._texts = dict[str, dict[Id, int]]()
        self._lengths = dict[Id, int]()
        self._terms = dict[Id, tuple[frozenset[str], ...]]()

    def add(self, id_: Id, name: str, text: str = "", heading: str = "") -> None:
        """Add a document, or replace the one with this id."""
        self.remove(id_)
        in_text = Counter(to_terms(text))
        counts = (Counter(to_all_terms(name)), Counter(to_terms(heading)), in_text)
        for found, fields in zip(counts, self._fields, strict=True):
            for term, count in found.items():
                fields.setdefault(term, {})[id_] = count
        self._lengths[id_] = in_text.total()
        self._terms[id_] = tuple(frozenset(found) for found in counts)

    @property
    def _fields(self) -> tuple[dict[str, dict[Id, int]], ...]:
        return self._names, self._headings, self._texts

    def remove(self, id_: Id) -> None:
        """Remove a document, if there is one."""
        for terms, fields in zip(self._terms.pop(id_, ()), self._fields, strict=False):
            for term in terms:
                del fields[term][id_]
                if not fields[term]:
                    del fields[term]
        self._lengths.pop(id_, None)

    def search(self, query: str, limit: int = 10) -> list[tuple[Id, float]]:
        """The best documents with any of the query's words, and their scores. Of equal ones the older is first."""
        scores = dict[Id, float]()
        for term in dict.fromkeys(to_terms(query)):
            frequencies = self._frequencies(term)
            worth = rarity(len(self._lengths), len(frequencies))
            for id_, frequency in frequencies.items():
                scores[id_] = scores.get(id_, 0.0) + worth * saturated(frequency)
        return self.best(scores, limit)

    def search_alternatives(self, queried: Iterable[Mapping[str, float]]) -> dict[Id, float]:
        """The scores of documents for several things, each with alternative terms.

        Each term has a weight. A thing counts once, by its term with the best score; and a document with more of the
        things, by their worth, ranks before one that has one of them more often.
        """
        scores, shares, total = dict[Id, float](), dict[Id, float](), 0.0
        for terms in queried:
            found = {term: frequencies for term in terms if (frequencies := self._frequencies(term))}
            if not found:
                continue
            worth = self._worth(terms, found)
            total += worth
            best = dict[Id, tuple[float, float]]()
            for term, frequencies in found.items():
                # A common word is not worth more for being a synonym of a rare one.
                value = terms[term] * min(worth, rarity(len(self._lengths), len(frequencies)))
                for id_, frequency in frequencies.items():
                    score = (value * saturated(frequency), value)
                    best[id_] = max(best.get(id_, score), score)
            for id_, (reached, share) in best.items():
                scores[id_] = scores.get(id_, 0.0) + reached
                shares[id_] = shares.get(id_, 0.0) + share
        return {id_: score * shares[id_] / total for id_, score in scores.items()}

    def best(self, scores: Mapping[Id, float], limit: int) -> list[tuple[Id, float]]:
        """The best of some documents. Of equal ones the older is first."""
        order = {id_: place for place, id_ in enumerate(self._lengths)}
        return nsmallest(limit, scores.items(), key=lambda found: (-found[1], order[found[0]]))

    def _frequencies(self, term: str) -> dict[Id, float]:
        """The weighted frequency of a term in each document that has it."""
        count = len(self._lengths)
        short, long = length_factors(sum(self._lengths.values()) / max(count, 1))
        found = {id_: NAME_WEIGHT * n for id_, n in self._names.get(term, {}).items()}
        for id_, n in self._headings.get(term, {}).items():
            found[id_] = found.get(id_, 0.0) + HEADING_WEIGHT * n
        for id_, n in self._texts.get(term, {}).items():
            found[id_] = found.get(id_, 0.0) + n / (short + long * self._lengths[id_])
        return found

    def _worth(self, terms: Mapping[str, float], found: Mapping[str, Mapping[Id, float]]) -> float:
        """The rarity of a thing: by its own word where documents have that, else by all of its terms."""
        own = max(terms, key=lambda term: terms[term])
        having = found[own] if own in found else {id_ for each in found.values() for id_ in each}
        return rarity(len(self._lengths), len(having))
