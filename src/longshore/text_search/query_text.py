"""A query as typed: its words, each with its terms, and its quoted phrases. No character of it is an operator."""

from __future__ import annotations

import re
from typing import Final
from unicodedata import normalize

from msgspec import Struct

from longshore.text_search.tokenizer import STOP_WORDS, terms_of_word, to_words

QUERY_CHARACTERS: Final = 20_000
"""The rest of a longer query is not read."""
QUERY_WORDS: Final = 1_000
"""Different words that are looked up."""
_PHRASE: Final = re.compile(r'"([^"\n]{2,200})"|“([^”\n]{2,200})”')


class QueryText(Struct, frozen=True):
    """The words and phrases of a query."""

    words: dict[str, tuple[str, ...]]
    """Different words as written, with their terms; stop words only if there is nothing else."""
    phrases: tuple[str, ...]
    """Quoted phrases of two or more words, as `plain` makes them. Their words are among the words."""
    is_cut: bool = False
    """The query is longer than is read."""

    @property
    def terms(self) -> list[str]:
        """All terms, each once."""
        return list(dict.fromkeys(term for terms in self.words.values() for term in terms))


def parse(text: str) -> QueryText:
    """Read a query."""
    whole, text = len(text), text[:QUERY_CHARACTERS]
    words = list(dict.fromkeys(to_words(text)))
    found = words[:QUERY_WORDS]
    meaningful = [word for word in found if word.lower() not in STOP_WORDS] or found
    quoted = [plain(first or second) for first, second in _PHRASE.findall(text)]
    phrases = dict.fromkeys(phrase for phrase in quoted if len(to_words(phrase)) > 1)
    terms_by_word = {word: terms for word in meaningful if (terms := terms_of_word(word))}
    return QueryText(terms_by_word, tuple(phrases), whole > len(text) or len(words) > len(found))


def plain(text: str) -> str:
    """A text in the form in which phrases are searched: lower case, one space between words."""
    return " ".join(normalize("NFKC", text).casefold().split())
