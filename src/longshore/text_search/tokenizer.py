"""Texts as terms: words, the parts of identifiers, stems, and pairs of characters where no spaces divide words.

Stored texts and queries are tokenized alike, on every database; a change here needs a new `VERSION`, which makes stores
index their texts again.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final
from unicodedata import normalize

from longshore.text_search.stemming import stem

VERSION: Final = 3
"""The version of these rules."""
TERM_CHARACTERS: Final = 64
"""Longer words are cut: they occur in no query, and base64 would fill the index."""
_REMEMBERED_WORDS: Final = 1 << 16
"""Words whose terms are remembered; most words of a project are among them."""

_UNSPACED: Final = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
    "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"  # kana, ideographs, Hangul
    "\U00020000-\U0003ffff"
)
_INDIC: Final = "\u0900-\u0963\u0966-\u0dff"
"""Scripts of India and Sri Lanka: their vowel signs are no letters for `\\w`."""
_ASCII_WORD: Final = re.compile(r"[A-Za-z0-9_]+(?:\.[A-Za-z0-9_]+)*")
_WORD: Final = re.compile(rf"[{_UNSPACED}]+|(?:[^\W{_UNSPACED}]|[{_INDIC}])+(?:\.(?:[^\W{_UNSPACED}]|[{_INDIC}])+)*")
_UNSPACED_RUN: Final = re.compile(f"[{_UNSPACED}]+")
_ACCENTS: Final = re.compile("[\u0300-\u036f]")
_LETTERS: Final = str.maketrans(
    {"ß": "ss", "ẞ": "SS", "ø": "o", "Ø": "O", "æ": "ae", "Æ": "AE", "œ": "oe", "Œ": "OE", "ł": "l", "Ł": "L"}
    | {"đ": "d", "Đ": "D", "ð": "d", "Ð": "D", "þ": "th", "Þ": "TH", "ħ": "h", "Ħ": "H", "ı": "i", "ŋ": "n", "Ŋ": "N"}
)
"""Letters that Unicode does not take apart, and who types without accents writes so."""
_PART: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\dA-Za-z_]+|[A-Z]")
"""A part of an identifier: `parseHTTPResponse2` is parse, HTTP, Response and 2."""
_OTHER_PART: Final = re.compile(r"[^\W\d_]+|[0-9]+")
"""The same of a word with other letters: these are no end of a part."""

STOP_WORDS: Final = frozenset(
    """a about above after again against all also am an and any are aren as at be because been before being below
    between both but by can cannot could couldn d did didn do does doesn doing don down during each few for from
    further had hadn has hasn have haven having he her here hers herself him himself his how i if in into is isn it
    its itself just ll m me more most my myself no nor not now of off on once only or other our ours ourselves out
    over own re s same shall she should shouldn so some such t than that the their theirs them themselves then there
    these they this those through to too under until up upon us ve very was wasn we were weren what when where which
    while who whom whose why will with won would wouldn you your yours yourself yourselves""".split()  # noqa: SIM905  a text is easier to read
)


def to_words(text: str) -> list[str]:
    """The words of a text as written, identifiers whole. Compatible characters are made one; accents are dropped."""
    if text.isascii():
        return _ASCII_WORD.findall(text)
    plain = _ACCENTS.sub("", normalize("NFKD", text))
    return _WORD.findall(normalize("NFKC", plain).translate(_LETTERS))


def to_terms(text: str) -> list[str]:
    """The terms of a text, repeated ones too, without stop words unless there is nothing else."""
    return terms_of_words(to_words(text))


def to_all_terms(text: str) -> list[str]:
    """The terms of a text with its stop words, for names: some consist of little else."""
    return [term for word in to_words(text) for term in terms_of_word(word)]


def terms_of_words(words: list[str]) -> list[str]:
    """The terms of these words, without stop words unless there is nothing else."""
    found = [term for word in words if word.lower() not in STOP_WORDS for term in terms_of_word(word)]
    return found or [term for word in words for term in terms_of_word(word)]


@lru_cache(_REMEMBERED_WORDS)
def terms_of_word(word: str) -> tuple[str, ...]:
    """The terms of one word: its stem, or for an identifier the whole and the stems of its parts."""
    if _UNSPACED_RUN.fullmatch(word):
        return _pairs(word)
    parts = (_PART if word.isascii() else _OTHER_PART).findall(word)
    whole = word.casefold()[:TERM_CHARACTERS]
    if len(parts) <= 1:
        return (_stem(whole.strip("_.")),) if parts else ((whole,) if whole.strip("_.") else ())
    # A part of one character means little, and the whole has it.
    return (whole, *(_stem(part.casefold()[:TERM_CHARACTERS]) for part in parts if len(part) > 1))


def _stem(word: str) -> str:
    return stem(word) if word.isascii() else word


def _pairs(run: str) -> tuple[str, ...]:
    """Each pair of neighbouring characters, or the one that there is."""
    return tuple(run[at : at + 2] for at in range(len(run) - 1)) or (run,)
