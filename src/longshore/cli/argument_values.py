"""Reading a text of the command line as a value of a tool's JSON schema."""

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
"""References that are followed, one after another: a longer chain is a cycle."""
_MOST_OPTIONS = 200
"""Alternatives of a union that are considered: a person chooses from fewer."""
_JOINED = ("anyOf", "oneOf", "allOf")
_WHOLE = re.compile(r"[+-]?[0-9]{1,4000}")
"""`int()` takes at most 4,300 digits."""
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
"""A JSON number, also as `.5` and `5.`; not what `float()` takes besides: `1_000`, `１`, `nan`."""
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
    """The schema merged with what its `$ref` names inside the root; empty if that can't be resolved."""
    beside: dict[str, Any] = {}
    for _ in range(_STEPS):
        if not is_object(schema):
            return beside
        ref: Any = schema.get("$ref")
        if not isinstance(ref, str):
            return schema if not beside else _merge(schema, beside) or {}
        beside = _merge({key: value for key, value in schema.items() if key != "$ref"}, beside) or {}
        schema = resolve(root, ref)
    return {}


def options(schema: Any, root: dict[str, Any]) -> list[dict[str, Any]]:
    """The alternatives of a schema: each part of its unions, merged with the keywords beside them."""
    left = _MOST_OPTIONS  # a schema may refer to itself

    def spread(schema: Any) -> list[dict[str, Any]]:
        nonlocal left
        if left <= 0:
            return []
        left -= 1
        whole = part(schema, root)
        found = [{key: value for key, value in whole.items() if key not in _JOINED}]
        for each in _array(whole, "allOf"):
            found = _combine(found, spread(each))
        for key in ("anyOf", "oneOf"):
            found = _combine(found, [one for each in _array(whole, key) for one in spread(each)])
        return found

    return spread(schema) or [{}]


def _combine(found: list[dict[str, Any]], others: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each of one list merged with each of the other, where they don't exclude each other."""
    pairs = islice(((one, other) for one in found for other in others), _MOST_OPTIONS)
    return [met for one, other in pairs if (met := _merge(one, other)) is not None] if others else found


def _array(schema: dict[str, Any], key: str) -> list[Any]:
    found: Any = schema.get(key)
    return found[:_MOST_OPTIONS] if is_array(found) else []


def _merge(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any] | None:
    """A schema for what fits both, as far as reading a text needs it; None if their types exclude each other."""
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
    """The JSON types that a value may have; empty for any."""
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
    """The values that a schema lists by `enum` or `const`."""
    if "const" in option:
        return [option["const"]]
    listed: Any = option.get("enum")
    return listed if is_array(listed) else []


def keys_of(schema: Any, root: dict[str, Any]) -> list[str]:
    """The names of an object's properties."""
    found: list[str] = []
    for option in options(schema, root):
        properties: Any = option.get("properties")
        found += [str(key) for key in properties] if is_object(properties) else []
    return list(dict.fromkeys(found))


def child(schema: Any, root: dict[str, Any], key: str) -> Any:
    """The schema of an object's property; empty if any value is allowed, None if there can be no such property."""
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
    """Match by the validator, whose patterns take linear time: the schema comes from a server."""
    from longshore.schema.validate import SchemaProblem, compile

    try:
        return not compile({"pattern": pattern}).errors(key)
    except SchemaProblem:
        return True  # the server decides


def _may_be_object(option: dict[str, Any]) -> bool:
    return not _kinds_of(option) or "object" in _kinds_of(option)


def take_text(text: str, schema: Any, root: dict[str, Any]) -> Any:
    """Read a text as a value of this schema. Raises ValueError, which says what is expected."""
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
        return text  # not one of the listed values; the validator says which there are
    if "array" in wanted and text[:1] != "[":
        return [_take_item(text, schema, root)]
    raise ValueError(f"expected {expected(schema, root)}, got {quote(text)}{_fix(wanted)}")


def _take_item(text: str, schema: Any, root: dict[str, Any]) -> Any:
    """Read one item of an array."""
    for option in options(schema, root):
        if "array" in _kinds_of(option) or "items" in option:
            return take_text(text, option.get("items"), root)
    return _guess(text)


def _fix(wanted: set[str]) -> str:
    if "array" in wanted:
        return "; write a JSON array, or the key once for each item"
    return "; write it as JSON" if "object" in wanted else ""


def expected(schema: Any, root: dict[str, Any]) -> str:
    """Describe in a few words what a schema accepts. The schema may be malformed."""
    try:
        return either([describe(option) for option in options(schema, root)])
    except Exception:
        return "another value"


_NOT: Any = object()


def _guess(text: str) -> Any:
    """Read JSON if the text is some, else the text itself."""
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
