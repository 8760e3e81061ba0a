"""Constraints that a client may drop, and whether a description says them as well."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from longshore.schema.kinds import is_array, is_object
from longshore.schema.phrase import cut, quote
from longshore.schema.standards.parameter import Parameter, find_parts
from longshore.schema.standards.subject import Json
from longshore.schema.standards.wording import READ, is_number, says, says_number, split_name

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
"""Keyword → how a description says it."""

UNBOUNDED: Final = 2**31 - 1
"""Bounds from here on are those of a machine's numbers, which generators write and nobody means."""

_FORMAT_WORDS: Final = {
    "date-time": "date time timestamp iso rfc",
    "date": "date day yyyy",
    "time": "time",
    "duration": "duration iso",
    "uri": "url uri link address https",
    "uri-reference": "url uri link path",
    "email": "mail email",
    "uuid": "uuid guid id",
    "hostname": "host hostname domain",
    "ipv4": "ip ipv4 address",
    "ipv6": "ip ipv6 address",
    "regex": "regex regexp regular pattern expression",
    "json-pointer": "pointer",
    "byte": "base64 bytes encoded",
    "binary": "base64 bytes binary file",
}
_OF_MACHINES: Final = frozenset(("int32", "int64", "uint32", "uint64", "float", "double"))
_SAYS_DEFAULT: Final = (
    *("default", "omit", "left out", "otherwise", "unless", "unset", "absent", "without"),
    *("not set", "not given", "not provided", "not specified"),
)
_SAYS_PATTERN: Final = (
    *("pattern", "regex", "match", "format", "form ", "such as", "e.g.", "example", "like", "letter", "digit"),
    *("character", "hex", "alphanumeric", "case", "start", "begin", "prefix", "suffix", "separated", "iso", "yyyy"),
)


class Said(NamedTuple):
    """What a parameter says of itself, and its tool. Words such as "otherwise" count only where they are about it."""

    own: str
    tool: str

    def has(self, text: str) -> bool:
        return text.lower() in self.own.lower() or text.lower() in self.tool

    def has_number(self, value: float) -> bool:
        return says_number(self.own, value) or says_number(self.tool, value)


def find_unsaid(parameter: Parameter, text: str, root: Json) -> dict[str, Any]:
    """The constraints of a parameter that would be lost with its schema: neither its own words nor `text` say them."""
    said = Said(f"{parameter.name[:READ]}\n{_read(parameter.parts)}", text[:READ].lower())
    held = [*parameter.parts, *(part for each in _items(parameter.parts) for part in find_parts(each, root))]
    found = {key: part[key] for part in reversed(held) for key in DROPPED if key in part}
    return {key: value for key, value in found.items() if not _is_said(key, value, said)}


def phrase(unsaid: dict[str, Any]) -> str:
    """What a description would have to say: "at least 1, at most 100, default 20"."""
    words = {key: DROPPED[key].format(_show(unsaid[key])) for key in DROPPED if key in unsaid}
    for least, most in (("minLength", "maxLength"), ("minItems", "maxItems")):
        if least in unsaid and unsaid[least] == unsaid.get(most):
            words[least] = words[least].replace("at least", "exactly")
            del words[most]
    return ", ".join(words.values())


def _items(parts: Iterable[Json]) -> list[Json]:
    return [part["items"] for part in parts if is_object(part.get("items"))]


def _read(parts: Iterable[Json]) -> str:
    found = (part.get("description") for part in [*parts, *_items(parts)])
    return "\n".join(text[:READ] for text in found if isinstance(text, str))


def _show(value: Any) -> str:
    if isinstance(value, str):
        return cut(value)
    return quote(value)


def _is_said(key: str, value: Any, said: Said) -> bool:
    match key:
        case "default":
            return _is_empty(value) or _says_default(value, said)
        case "pattern":
            return not isinstance(value, str) or said.has(value) or says(said.own, *_SAYS_PATTERN)
        case "format":
            return not isinstance(value, str) or value in _OF_MACHINES or _says_format(value, said)
        case _:
            return not is_number(value) or _goes_without_saying(key, value) or said.has_number(value)


def _is_empty(value: Any) -> bool:
    """What everybody expects of what is left out: nothing, no, none."""
    return value is None or value is False or value in ("", 0) or ((is_object(value) or is_array(value)) and not value)


def _goes_without_saying(key: str, value: float) -> bool:
    least = (0,) if key == "exclusiveMinimum" else (0, 1) if key.startswith("min") else ()
    return abs(value) >= UNBOUNDED or value in least


def _says_default(value: Any, said: Said) -> bool:
    if says(said.own, *_SAYS_DEFAULT):
        return True
    return said.has_number(value) if is_number(value) else isinstance(value, str) and said.has(value)


def _says_format(value: str, said: Said) -> bool:
    wanted = _FORMAT_WORDS.get(value, value.lower()).split()
    return said.has(value) or not set(wanted).isdisjoint(split_name(said.own))
