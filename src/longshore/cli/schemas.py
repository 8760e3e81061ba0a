"""What a tool's input schema says of one argument: which kinds of value it takes, and what a text means there."""

from __future__ import annotations

import re
from itertools import islice
from math import isfinite
from typing import Any

import msgspec

from longshore.schema.kinds import is_array, is_object
from longshore.schema.phrase import describe, either, quote
from longshore.schema.walk import resolve

_STEPS = 16
"""References that are followed. A schema that needs more goes round."""
_MOST_OPTIONS = 200
"""Parts of a union that are looked at: more are no choice for a person."""
_JOINED = ("anyOf", "oneOf", "allOf")
_WHOLE = re.compile(r"[+-]?[0-9]{1,4000}")
"""Python reads no longer ones."""
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
"""Not what Python takes for one beside: `1_000`, `１`, `nan`."""
_YES = frozenset(("true", "yes", "on", "y", "1"))
_NO = frozenset(("false", "no", "off", "n", "0"))
_KIND_OF: dict[type[Any], str] = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    dict: "object",
    list: "array",
    type(None): "null",
}


def part(schema: Any, root: dict[str, Any]) -> dict[str, Any]:
    """The schema itself, with what it refers to in another place of the same one; empty if that leads nowhere."""
    beside: dict[str, Any] = {}
    for _ in range(_STEPS):
        if not is_object(schema):
            return beside
        ref: Any = schema.get("$ref")
        if not isinstance(ref, str):
            return schema if not beside else _meet(schema, beside) or {}
        beside = _meet({key: value for key, value in schema.items() if key != "$ref"}, beside) or {}
        schema = resolve(root, ref)
    return {}


def options(schema: Any, root: dict[str, Any]) -> list[dict[str, Any]]:
    """The plain schemas of which a value fits one: those of a union, each with all that stands beside it."""
    return _Spreading(root).spread(schema) or [{}]


class _Spreading:
    """Takes unions apart and puts intersections together. A schema may hold itself: bounded."""

    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root
        self._left = _MOST_OPTIONS

    def spread(self, schema: Any) -> list[dict[str, Any]]:
        if self._left <= 0:
            return []
        self._left -= 1
        whole = part(schema, self._root)
        found = [{key: value for key, value in whole.items() if key not in _JOINED}]
        for each in _array(whole, "allOf"):
            found = self._cross(found, self.spread(each))
        for key in ("anyOf", "oneOf"):
            found = self._cross(found, [one for each in _array(whole, key) for one in self.spread(each)])
        return found

    def _cross(self, found: list[dict[str, Any]], others: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Every one of these with every one of those, as far as they agree."""
        if not others:
            return found  # there is nothing, or more than we look at
        pairs = islice(((one, other) for one in found for other in others), _MOST_OPTIONS)
        return [met for one, other in pairs if (met := _meet(one, other)) is not None]


def _array(schema: dict[str, Any], key: str) -> list[Any]:
    found: Any = schema.get(key)
    return found[:_MOST_OPTIONS] if is_array(found) else []


def _meet(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any] | None:
    """One schema for what fits both, as far as we need to know; None where their types exclude each other."""
    made = {**one, **other}
    for key in one.keys() & other.keys():
        ours, theirs = one[key], other[key]
        if ours == theirs:
            continue
        if key == "type":
            types = _types(ours) & _types(theirs)
            if not types:
                return None
            made[key] = sorted(types - {"integer"} if "number" in types else types)
        elif key in ("properties", "patternProperties") and is_object(ours) and is_object(theirs):
            made[key] = {
                **ours,
                **{name: {"allOf": [ours[name], each]} if name in ours else each for name, each in theirs.items()},
            }
        elif key in ("items", "additionalProperties"):
            made[key] = False if ours is False or theirs is False else {"allOf": [ours, theirs]}
        elif key == "enum" and is_array(ours) and is_array(theirs):
            made[key] = min(ours, theirs, key=len)
    return made


def _types(named: Any) -> set[str]:
    types = {named} if isinstance(named, str) else {str(each) for each in named} if is_array(named) else set[str]()
    return types | {"integer"} if "number" in types else types


def kinds(schema: Any, root: dict[str, Any]) -> set[str]:
    """The JSON types that a value may have; empty: any."""
    found: set[str] = set()
    for option in options(schema, root):
        of_it = _kinds_of(option)
        if not of_it:
            return set()
        found |= of_it
    return found


def _kinds_of(option: dict[str, Any]) -> set[str]:
    named: Any = option.get("type")
    if isinstance(named, str):
        return {named}
    if is_array(named):
        return {str(each) for each in named}
    values = choices(option)
    if values:
        return {_KIND_OF.get(value.__class__, "object") for value in values}
    return {"object"} if "properties" in option else {"array"} if "items" in option else set()


def choices(option: dict[str, Any]) -> list[Any]:
    """The values of which it takes one, if it lists them."""
    if "const" in option:
        return [option["const"]]
    listed: Any = option.get("enum")
    return listed if is_array(listed) else []


def keys_of(schema: Any, root: dict[str, Any]) -> list[str]:
    """The names of an object's parts."""
    found: list[str] = []
    for option in options(schema, root):
        properties: Any = option.get("properties")
        found += [str(key) for key in properties] if is_object(properties) else []
    return list(dict.fromkeys(found))


def child(schema: Any, root: dict[str, Any], key: str) -> Any:
    """The schema of an object's part; an empty one where any is allowed; None where there is no such part."""
    found: list[Any] = []
    for option in options(schema, root):
        for one in _children(option, key):
            if one not in found:
                found.append(one)
    return None if not found else found[0] if len(found) == 1 else {"anyOf": found}


def _children(option: dict[str, Any], key: str) -> list[dict[str, Any]]:
    properties: Any = option.get("properties")
    if is_object(properties) and key in properties:
        return [properties[key] if is_object(properties[key]) else {}]
    patterns: Any = option.get("patternProperties")
    known = list(patterns.items())[:_MOST_OPTIONS] if is_object(patterns) else []
    matching = [each for pattern, each in known if _matches(pattern, key)]
    if matching:
        return [each if is_object(each) else {} for each in matching]
    allowed: Any = option.get("additionalProperties", not properties and not patterns and _may_be_object(option))
    if allowed is False:
        return []
    return [allowed if is_object(allowed) else {}]


def _matches(pattern: str, key: str) -> bool:
    """By a validator whose patterns take no longer than the text: this one is a stranger's."""
    from longshore.schema.validate import SchemaProblem, compile

    try:
        return not compile({"pattern": pattern}).errors(key)
    except SchemaProblem:
        return True  # nobody can tell, and the server will judge


def _may_be_object(option: dict[str, Any]) -> bool:
    return not _kinds_of(option) or "object" in _kinds_of(option)


def take_text(text: str, schema: Any, root: dict[str, Any]) -> Any:
    """What a text on a command line means as a value of this schema. Raises ValueError, which says what is expected."""
    for value in (value for option in options(schema, root) for value in choices(option)):
        if value == text or (not isinstance(value, str) and text == msgspec.json.encode(value).decode()):
            return value
    wanted = kinds(schema, root)
    if any("string" in _kinds_of(option) and not choices(option) for option in options(schema, root)):
        return text  # also one that looks like a number
    if not wanted:
        return _guess(text)
    for kind in ("integer", "number", "boolean", "null", "array", "object"):
        if kind in wanted:
            found = _READ[kind](text)
            if found is not _NOT:
                return found
    if "string" in wanted:
        return text  # none of those that it lists
    if "array" in wanted and text[:1] != "[":
        return [_take_item(text, schema, root)]
    raise ValueError(f"expected {told(schema, root)}, got {quote(text)}{_fix(wanted)}")


def _take_item(text: str, schema: Any, root: dict[str, Any]) -> Any:
    """A list that is given item by item."""
    for option in options(schema, root):
        if "array" in _kinds_of(option) or "items" in option:
            return take_text(text, option.get("items"), root)
    return _guess(text)


def _fix(wanted: set[str]) -> str:
    if "array" in wanted:
        return "; write a JSON array, or the key once for each item"
    return "; write it as JSON" if "object" in wanted else ""


def told(schema: Any, root: dict[str, Any]) -> str:
    """What a schema asks for, in a few words. It is a stranger's, so it may be no proper one."""
    try:
        return either([describe(option) for option in options(schema, root)])
    except Exception:
        return "another value"


_NOT: Any = object()


def _guess(text: str) -> Any:
    """Where any value goes: JSON if it is some, else the text."""
    found = _json(text)
    return text if found is _NOT else found


def _json(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return _NOT


def _integer(text: str) -> Any:
    return int(text) if _WHOLE.fullmatch(text.strip()) else _NOT


def _number(text: str) -> Any:
    whole = _integer(text)
    if whole is not _NOT or not _DECIMAL.fullmatch(text.strip()):
        return whole
    found = float(text)
    return found if isfinite(found) else _NOT


def _boolean(text: str) -> Any:
    word = text.strip().lower()
    return True if word in _YES else False if word in _NO else _NOT


def _of(kind: type[Any]) -> Any:
    def read(text: str) -> Any:
        found = _json(text)
        return found if type(found) is kind else _NOT

    return read


_READ: dict[str, Any] = {
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "null": _of(type(None)),
    "array": _of(list),
    "object": _of(dict),
}
