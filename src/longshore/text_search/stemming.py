"""Word stems of English: a small relative of Porter's algorithm, for lower-case words of ASCII letters."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

_SHORTEST: Final = 3
"""Shorter words have no ending."""

_VOWEL: Final = re.compile(r"[aeiou]|(?<=[^aeiou])y")
_SYLLABLE: Final = re.compile(r"(?:[aeiou]|(?<=[^aeiou])y)+(?:[^aeiouy]|(?<=[aeiou])y|^y)")
"""A vowel group that a consonant follows; their count is the measure of a stem."""
_CONSONANT_VOWEL_CONSONANT: Final = re.compile(r"[^aeiou][aeiouy][^aeiouwxy]$")

_DOUBLE_ENDINGS: Final = (
    ("ational", "ate"),
    ("ization", "ize"),
    ("isation", "ize"),
    ("fulness", "ful"),
    ("ousness", "ous"),
    ("iveness", "ive"),
    ("biliti", "ble"),
    ("tional", "tion"),
    ("entli", "ent"),
    ("ousli", "ous"),
    ("ation", "ate"),
    ("alism", "al"),
    ("aliti", "al"),
    ("iviti", "ive"),
    ("ator", "ate"),
    ("izer", "ize"),
    ("alli", "al"),
    ("enci", "ence"),
    ("anci", "ance"),
    ("abli", "able"),
    ("eli", "e"),
)
_LONG_ENDINGS: Final = (
    ("icate", "ic"),
    ("ative", ""),
    ("alize", "al"),
    ("iciti", "ic"),
    ("ical", "ic"),
    ("ness", ""),
    ("ful", ""),
)
_SHORT_ENDINGS: Final = (
    *("ement", "ment", "ance", "ence", "able", "ible", "ant", "ent", "ism", "ate", "iti", "ous", "ive", "ize"),
    *("al", "er", "ic"),
)

_FORMS: Final = """
    become: became
    begin: began begun
    break: broke broken
    bring: brought
    build: built
    buy: bought
    catch: caught
    choose: chose chosen
    come: came
    deal: dealt
    dig: dug
    draw: drew drawn
    dream: dreamt
    drink: drank drunk
    drive: drove driven
    eat: ate eaten
    fall: fell fallen
    feel: felt
    fight: fought
    find: found
    fly: flew flown
    forget: forgot forgotten
    freeze: froze frozen
    get: got gotten
    give: gave given
    go: goes went gone
    grow: grew grown
    hang: hung
    hear: heard
    hide: hid hidden
    hold: held
    keep: kept
    know: knew known
    learn: learnt
    lend: lent
    lose: lost
    make: made
    mean: meant
    meet: met
    pay: paid
    ride: rode ridden
    ring: rang
    run: ran
    say: said
    seek: sought
    sell: sold
    send: sent
    shake: shook shaken
    shine: shone
    sing: sang sung
    sink: sank sunk
    sit: sat
    sleep: slept
    speak: spoke spoken
    spend: spent
    stand: stood
    steal: stole stolen
    stick: stuck
    swear: swore sworn
    swim: swam swum
    take: took taken
    teach: taught
    tear: tore torn
    tell: told
    think: thought
    throw: threw thrown
    understand: understood
    wake: woke woken
    wear: wore worn
    win: won
    write: wrote written
"""
_IRREGULAR: Final = {
    form: verb
    for verb, _, forms in (line.strip().partition(": ") for line in _FORMS.splitlines())
    for form in forms.split()
}
"""Verbs whose past has no ending. Forms that are other words as well, such as `left` and `bit`, are themselves."""


def _by_last_letters(endings: Iterable[tuple[str, str]]) -> dict[str, list[tuple[str, str]]]:
    """Endings by their last two letters, in order: most words have none of them, and one lookup shows it."""
    found = dict[str, list[tuple[str, str]]]()
    for ending, shorter in endings:
        found.setdefault(ending[-2:], []).append((ending, shorter))
    return found


_DOUBLE_BY_LAST: Final = _by_last_letters(_DOUBLE_ENDINGS)
_LONG_BY_LAST: Final = _by_last_letters(_LONG_ENDINGS)
_SHORT_BY_LAST: Final = _by_last_letters((ending, "") for ending in _SHORT_ENDINGS)


def stem(word: str) -> str:
    """The stem of a word, so that `rotates`, `rotated`, `rotating` and `rotation` are one term."""
    if len(word) < _SHORTEST:
        return word
    word = _IRREGULAR.get(word) or _without_past(_without_plural(word))
    if word.endswith("y") and word[-2] not in "aeiou":
        word = word[:-1] + "i"
    word = _shortened(_shortened(word, _DOUBLE_BY_LAST), _LONG_BY_LAST)
    return _without_final_e(_without_short_ending(word))


def _shortened(word: str, endings: Mapping[str, Sequence[tuple[str, str]]]) -> str:
    for ending, shorter in endings.get(word[-2:], ()):
        if word.endswith(ending):
            part = word[: -len(ending)]
            return part + shorter if _measure(part) > 0 else word
    return word


def _measure(part: str) -> int:
    return len(_SYLLABLE.findall(part))


def _without_plural(word: str) -> str:
    if word.endswith("sses") or (word.endswith("ies") and len(word) > _SHORTEST + 1):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


def _without_past(word: str) -> str:
    """The word without `ed` or `ing`, corrected: `hopping` is hop, `hoping` hope, `rotating` rotate."""
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    for ending in ("ed", "ing"):
        part = word[: -len(ending)]
        if word.endswith(ending) and _VOWEL.search(part):
            if part.endswith(("at", "bl", "iz")):
                return part + "e"
            if len(part) > 1 and part[-1] == part[-2] and part[-1] not in "aeioulsz":
                return part[:-1]
            if _measure(part) == 1 and _CONSONANT_VOWEL_CONSONANT.search(part):
                return part + "e"
            return part
    return word


def _without_short_ending(word: str) -> str:
    for ending, _ in _SHORT_BY_LAST.get(word[-2:], ()):
        if word.endswith(ending):
            part = word[: -len(ending)]
            return part if _measure(part) > 1 else word
    part = word[:-3]
    return part if word.endswith(("sion", "tion")) and _measure(part) > 1 else word


def _without_final_e(word: str) -> str:
    if word.endswith("e"):
        part = word[:-1]
        measure = _measure(part)
        if measure > 1 or (measure == 1 and not _CONSONANT_VOWEL_CONSONANT.search(part)):
            return part
    return word[:-1] if word.endswith("ll") and _measure(word[:-1]) > 1 else word
