"""Reading names and descriptions: their words, numbers, and the constraints that a description repeats."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final, NamedTuple

from longshore.schema.kinds import is_array, is_object
from longshore.schema.lint.parameters import ToolParameter, find_parts
from longshore.schema.lint.tool_list import Json
from longshore.schema.phrase import cut, quote

READ: Final = 20_000
"""Characters of one text that are read. No model reads more as a description."""
LABEL_CHARS: Final = 60
"""A description that is longer than its name by more than this does not merely repeat it."""
UNBOUNDED: Final = 2**31 - 1
"""Bounds from here on are those of machine numbers, written by generators."""
DROPPED: Final = {
    "minimum": "at least {}",
    "exclusiveMinimum": "more than {}",
    "maximum": "at most {}",
    "exclusiveMaximum": "less than {}",
    "multipleOf": "a multiple of {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "pattern": "matching {}",
    "format": "as {}",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "default": "default {}",
}
"""Constraints that a client may drop → how a description says them."""

_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_NUMBER: Final = re.compile(r"\d+(?:\.\d+)?")
_GROUPED: Final = re.compile(r"(?<=\d)[,_'\u2009\u202f](?=\d{3}(?!\d))")
_SPELLED: Final = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_SCALES: Final = (1, 60, 1_000, 1_024, 3_600, 60_000, 86_400, 1_000_000, 1 << 20, 1_000_000_000, 1 << 30, 0.01)
"""A bound in milliseconds or bytes may be said in seconds, minutes, MiB or percent."""
_PLACES: Final = 9
"""Decimal places that count: 0.07 is 7.000000000000001 percent."""
_EMPTY: Final = re.compile(
    "an?|the|of|for|to|value|parameter|argument|input|option|field|string|number|integer|boolean|object|array|optional"
    "|required|this"
)
"""Words that add nothing to a name."""
_SAYS_DEFAULT: Final = re.compile(r"default|omit|left out|otherwise|unless|unset|without|not (?:set|given)", re.I)
_SAYS_PATTERN: Final = re.compile(
    r"pattern|regex|match|form|such as|e\.g\.|example|like|letter|digit|character|hex|case|start|prefix|separated", re.I
)
_SAYS_FORMAT: Final = {
    "date-time": "date|time|iso",
    "date": "date|day|yyyy",
    "uri": "ur[il]|link|address|http",
    "uri-reference": "ur[il]|link|path",
    "email": "mail",
    "uuid": "id",
    "hostname": "host|domain",
    "ipv4": "ip|address",
    "ipv6": "ip|address",
    "regex": "reg|pattern|expression",
    "byte": "base64|bytes",
    "binary": "base64|bytes|file",
}
_MACHINE_FORMATS: Final = frozenset(("int32", "int64", "uint32", "uint64", "float", "double"))


def split_name(name: str) -> list[str]:
    """`browserId`, `browser_id` and `browser-id` are the words browser and id."""
    return [word.lower() for word in _WORD.findall(name[:READ])]


def find_words(text: str) -> list[str]:
    """The words of a sentence in lower case."""
    return re.findall(r"[a-z]+", text[:READ].lower())


def restates(name: str, text: str) -> bool:
    """Whether a description only repeats the name: "Browser ID" for `browserId`."""
    if not text.strip() or len(text) > LABEL_CHARS + len(name):
        return False
    if not text.isascii():  # perhaps another language
        return text.strip() == name
    said = {_stem(word) for word in find_words(text) if not _EMPTY.fullmatch(word)}
    return said <= {_stem(word) for word in split_name(name)}


def _stem(word: str) -> str:
    return word.removesuffix("s") if len(word) > 3 else word


# -- constraints


class _Said(NamedTuple):
    """The descriptions of a parameter and of its tool."""

    own: str
    tool: str

    def has(self, text: str) -> bool:
        return text.lower() in self.own.lower() or text.lower() in self.tool

    def has_number(self, value: float) -> bool:
        return _says_number(self.own, value) or _says_number(self.tool, value)


def find_unsaid(parameter: ToolParameter, text: str, root: Json) -> dict[str, Any]:
    """The constraints of a parameter that neither its description nor the tool's description `text` says."""
    said = _Said(f"{parameter.name[:READ]}\n{_descriptions(parameter.parts)}", text[:READ].lower())
    parts = [*parameter.parts, *(part for each in _items(parameter.parts) for part in find_parts(each, root))]
    found = {key: part[key] for part in reversed(parts) for key in DROPPED if key in part}
    return {key: value for key, value in found.items() if not _is_said(key, value, said)}


def phrase(unsaid: dict[str, Any]) -> str:
    """The words to add to a description: "at least 1, at most 100, default 20"."""
    words = {
        key: DROPPED[key].format(cut(value) if isinstance(value := unsaid[key], str) else quote(value))
        for key in DROPPED
        if key in unsaid
    }
    for least, most in (("minLength", "maxLength"), ("minItems", "maxItems")):
        if least in unsaid and unsaid[least] == unsaid.get(most):
            words[least] = words[least].replace("at least", "exactly")
            del words[most]
    return ", ".join(words.values())


def _items(parts: Iterable[Json]) -> list[Json]:
    return [part["items"] for part in parts if is_object(part.get("items"))]


def _descriptions(parts: Iterable[Json]) -> str:
    found = (part.get("description") for part in [*parts, *_items(parts)])
    return "\n".join(text[:READ] for text in found if isinstance(text, str))


def _is_said(key: str, value: Any, said: _Said) -> bool:
    """Whether the text says this constraint. An invalid value is another rule's affair."""
    match key:
        case "default":
            return _is_empty(value) or _says_default(value, said)
        case "pattern":
            return not isinstance(value, str) or said.has(value) or _SAYS_PATTERN.search(said.own) is not None
        case "format":
            return not isinstance(value, str) or value in _MACHINE_FORMATS or _says_format(value, said)
        case _:
            return not _is_number(value) or _is_obvious(key, value) or said.has_number(value)


def _is_empty(value: Any) -> bool:
    """Whether a default is what a model expects of a parameter that it leaves out."""
    return value is None or value is False or value in ("", 0) or ((is_object(value) or is_array(value)) and not value)


def _is_obvious(key: str, value: float) -> bool:
    least = (0,) if key == "exclusiveMinimum" else (0, 1) if key.startswith("min") else ()
    return abs(value) >= UNBOUNDED or value in least


def _says_default(value: Any, said: _Said) -> bool:
    if _SAYS_DEFAULT.search(said.own):
        return True
    return said.has_number(value) if _is_number(value) else isinstance(value, str) and said.has(value)


def _says_format(value: str, said: _Said) -> bool:
    words = _SAYS_FORMAT.get(value)
    return said.has(value) or (words is not None and re.search(words, said.own, re.I) is not None)


def _is_number(value: Any) -> bool:
    """A JSON number; a boolean is none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


@lru_cache(16)  # every parameter asks for the numbers of its tool's description
def _find_numbers(text: str) -> frozenset[float]:
    """The numbers in a text, in digits or in words."""
    digits = {float(found) for found in _NUMBER.findall(_GROUPED.sub("", text[:READ]))}
    return frozenset(digits) | {float(_SPELLED.index(word)) for word in find_words(text) if word in _SPELLED}


def _says_number(text: str, value: float) -> bool:
    """Whether a text says this number, in any unit."""
    said = _find_numbers(text)
    try:
        return any(round(abs(value) / scale, _PLACES) in said for scale in _SCALES)
    except OverflowError:  # an integer that no text says either
        return False
