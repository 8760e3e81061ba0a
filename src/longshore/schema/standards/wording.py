"""What a text says: the words of a name, the numbers in a sentence, and whether a description begins with an action."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

from longshore.schema.standards.vocabulary import (
    ADVERBS,
    AFTER_NOUNS,
    EMPTY,
    NO_VERBS,
    NOUN_ENDINGS,
    NOUNS_TOO,
    OBJECTS,
    THINGS,
    VAGUE,
    VERBS,
)

READ: Final = 20_000
"""Characters of one text that are looked at. What stands behind them no model reads as a description."""

LABEL_CHARS: Final = 60
"""Beside the name itself, of a description that may be no more than the name. Longer ones say something."""

_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_TAG: Final = re.compile(r"\A(?:\[[^\]]{1,40}\]|\([^)]{1,40}\))[\s:]*(?=\S)")
"""“[DEPRECATED]” or “(beta)” before the sentence."""
_NUMBER: Final = re.compile(r"\d+(?:\.\d+)?")
_GROUPED: Final = re.compile(r"(?<=\d)[,_'\u2009\u202f](?=\d{3}(?!\d))")
_SPELLED: Final = {
    word: float(value)
    for value, word in enumerate(
        ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
    )
}
_SCALES: Final = (1, 60, 1_000, 1_024, 3_600, 60_000, 86_400, 1_000_000, 1 << 20, 1_000_000_000, 1 << 30, 0.01)
"""A bound in milliseconds or bytes is said as well in seconds, minutes, MiB or percent."""
_PLACES: Final = 9
"""Of a number in another unit: 0.07 is 7.000000000000001 percent."""


def split_name(name: str) -> list[str]:
    """`browserId`, `browser_id` and `browser-id` are the words browser and id."""
    return [word.lower() for word in _WORD.findall(name[:READ])]


def says(text: str, *phrases: str) -> bool:
    """Whether a text has one of these, in large or small letters. They are given in small ones."""
    lowered = text[:READ].lower()
    return any(phrase in lowered for phrase in phrases)


def find_words(text: str) -> list[str]:
    """The words of a sentence in small letters, without what surrounds them."""
    return re.findall(r"[a-z]+", text[:READ].lower())


@lru_cache(16)  # every parameter asks for those of its tool's description
def find_numbers(text: str) -> frozenset[float]:
    """The numbers that a text says, in digits or in words."""
    digits = {float(found) for found in _NUMBER.findall(_GROUPED.sub("", text[:READ]))}
    return frozenset(digits) | {_SPELLED[word] for word in find_words(text) if word in _SPELLED}


def says_number(text: str, value: float) -> bool:
    """Whether a text says this number, in whatever unit."""
    said = find_numbers(text)
    try:
        return any(round(abs(value) / scale, _PLACES) in said for scale in _SCALES)
    except OverflowError:  # an integer that no text says either
        return False


def restates(name: str, text: str) -> bool:
    """Whether a description is only the name again: "Browser ID" for `browserId`."""
    if not text.strip() or len(text) > LABEL_CHARS + len(name):
        return False
    if not text.isascii():  # another language, of whose words nothing is known
        return text.strip() == name
    said = {_stem(word) for word in find_words(text)} - EMPTY
    return said <= {_stem(word) for word in split_name(name)}


def _stem(word: str) -> str:
    return word.removesuffix("s") if len(word) > 3 else word


def find_fault_of_action(text: str) -> str:
    """Why a description does not begin with an action, or nothing. Of what is not in Latin letters nothing is said."""
    text = _TAG.sub("", text[:READ].strip(), count=1)
    opening = re.match(r"[\W_]*([A-Za-z][A-Za-z'-]*)(.*)", text, re.DOTALL)
    if opening is None or (not text.isascii() and not text.lstrip("\"'`*_#( ")[:1].isascii()):
        return ""
    sentence = re.split(r"(?<=[.!?;:])\s|\n", opening[0], maxsplit=1)[0]
    words = find_words(sentence)
    if vague := VAGUE.intersection(words):
        return f"{min(vague)!r} says nothing"
    return _judge(opening[1][:_LONGEST], words)


def _judge(first: str, words: list[str]) -> str:
    verb = first.lower()
    if verb in ADVERBS or (verb.endswith("ly") and verb not in VERBS):
        return _judge(words[1], words[1:]) if len(words) > 1 else f"{first!r} is no action"
    base = next((part for part in verb.split("-") if part in VERBS), verb)
    if bare := _third_person(base):
        return f"{first!r} tells about the tool; {bare.capitalize()!r} says what to do"
    if (base in NOUNS_TOO or base not in VERBS) and _is_label(words):
        return f"{' '.join(words)!r} names a thing"
    return "" if base in VERBS or _may_be_verb(first, words) else f"{first!r} is no action"


def _may_be_verb(first: str, words: list[str]) -> bool:
    """Whether a word that we don't know could be a verb: it has no noun's form, nor what follows only a noun."""
    word, after = first.lower(), words[1] if len(words) > 1 else ""
    if word in NO_VERBS or after in AFTER_NOUNS:
        return False
    is_noun = word.endswith(NOUN_ENDINGS) or (first.isupper() and len(first) > 1)
    return after in OBJECTS or not is_noun


def _third_person(word: str) -> str:
    """The verb of "Returns", "Fetches" and "Queries"."""
    if word in VERBS:
        return ""
    tries = (word.removesuffix("s"), word.removesuffix("es"), f"{word.removesuffix('ies')}y")
    return next((each for each in tries if word.endswith("s") and each in VERBS), "")


def _is_label(words: list[str]) -> bool:
    """Whether a text is what a thing is called: "Search functionality", "Text extraction"."""
    if not 2 <= len(words) <= _LABEL or OBJECTS.intersection(words):
        return False
    return words[-1] in THINGS or words[-1].endswith(("tion", "ment", "ity"))


def is_number(value: Any) -> bool:
    """A JSON number; booleans are none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


_LONGEST: Final = 40
"""Characters of a word that are shown. No English verb has as many."""

_LABEL: Final = 4
"""Words of the longest phrase that is taken for a label. Sentences are longer."""
