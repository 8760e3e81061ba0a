"""Search among tools by what they do, in plain words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final, final

from longshore.registry.tool import Entry
from longshore.schema.kinds import as_object, is_object
from longshore.text_search.bm25 import MemoryIndex
from longshore.text_search.synonyms import is_question, name_kinds, read_request
from longshore.text_search.tokenizer import to_terms
from longshore.toolsets.discovery.survey import category_of, first_sentence

_NAME_SHARE: Final = 2.0
"""How much more a tool counts if the query has said all of its name."""
_READING_SHARE: Final = 1.0
"""How much more a tool that only reads counts if the query is a question."""
_READING_WORDS: Final = frozenset(
    to_terms("get list read search find show view query describe explain fetch check count status info tree history")
)
"""Words in the names of tools that only read."""
_NESTED_LEVELS: Final = 3
"""Levels of parameters within parameters whose names and descriptions are searched."""
_SEPARATORS: Final = re.compile(r"[_.\-]+")


@final
class ToolSearch:
    """An index of some tools, made once."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._index = MemoryIndex[str]()
        self._entries = {entry.name: entry for entry in entries}
        prefixes = _common_beginnings(self._entries)
        self._name_terms = dict[str, frozenset[str]]()
        self._reading = set[str]()
        """The tools that only read."""
        for name, entry in self._entries.items():
            described = entry.describe()
            description, title = described.get("description") or "", described.get("title") or ""
            heading = first_sentence(description)
            rest = [description, category_of(entry), *entry.tags, *entry.aliases, *_parameters(described)]
            self._index.add(name, spell(name), " ".join(rest), f"{title} {heading}")
            own = _SEPARATORS.split(name, maxsplit=1)[-1] if _beginning(name) in prefixes else name
            self._name_terms[name] = frozenset(to_terms(spell(own)))
            if as_object(described.get("annotations")).get("readOnlyHint", self._name_terms[name] & _READING_WORDS):
                self._reading.add(name)

    def search(self, query: str, limit: int) -> list[Entry]:
        """The tools that fit best, the best first."""
        queried = read_request(spell(name_kinds(query)))
        scores = self._index.search_alternatives(queried)
        weights = _strongest(queried)
        preferred = self._reading if is_question(query) else frozenset[str]()
        ranked = {
            name: score * (1 + _NAME_SHARE * self._share(name, weights)) * (1 + _READING_SHARE * (name in preferred))
            for name, score in scores.items()
        }
        return [self._entries[name] for name, _ in self._index.best(ranked, limit)]

    def _share(self, name: str, weights: Mapping[str, float]) -> float:
        """How much of a name the query says."""
        terms = self._name_terms[name]
        return sum(weights.get(term, 0.0) for term in terms) / max(1, len(terms))


def spell(text: str) -> str:
    """A text with its identifiers as words: `browser_take-screenshot` is three."""
    return _SEPARATORS.sub(" ", text)


def _strongest(queried: Iterable[Mapping[str, float]]) -> dict[str, float]:
    found = dict[str, float]()
    for terms in queried:
        for term, weight in terms.items():
            found[term] = max(weight, found.get(term, 0.0))
    return found


def _beginning(name: str) -> str:
    return _SEPARATORS.split(name, maxsplit=1)[0]


def _common_beginnings(names: Iterable[str]) -> frozenset[str]:
    """First words that several names have: prefixes of toolsets and mounted servers, or common verbs."""
    counts = Counter(map(_beginning, names))
    return frozenset(word for word, count in counts.items() if count > 1)


def _parameters(described: Mapping[str, Any]) -> list[str]:
    return list(_texts(as_object(described.get("inputSchema")), _NESTED_LEVELS))


def _texts(schema: Mapping[str, Any], levels: int) -> Iterable[str]:
    """The names and descriptions of parameters."""
    for name, part in as_object(schema.get("properties")).items():
        yield spell(name)
        if is_object(part):
            yield str(part.get("description", ""))
            if levels > 1:
                yield from _texts(part, levels - 1)
                if is_object(items := part.get("items")):
                    yield from _texts(items, levels - 1)
