"""Whether checking values against an untrusted schema ends in bounded time.

A validator follows a reference each time it meets it. A few kilobytes of definitions that refer to each other twice are
2^40 steps, and a definition that refers back to itself by two ways through the same part of a value doubles the work at
each level of that value. No validator stops by itself, so such schemas must not reach one. A pattern with look-around
or a back reference gives up after milliseconds, which become hours if it is matched against each part of a large
message.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any, Final, final

import msgspec

from longshore.schema.kinds import is_object
from longshore.schema.walk import MAX_NODES, resolve, subschemas

if TYPE_CHECKING:
    from longshore.schema.validate import Validator

UNBOUNDED: Final = (
    "one value could keep the check against this schema busy for ever: its references double, or a pattern with "
    "look-around or a back reference is matched against any number of items or keys"
)
FIX: Final = 'write fewer $refs and such patterns without them, or waive={"E13": "why it is harmless"}'

Step = tuple[str, str]
"""The part of a value that a subschema applies to: a named member, or any member of an object or an array."""

_ANY_MEMBER: Step = ("object", "*")
_ANY_ITEM: Step = ("array", "*")
_STEPS = {
    **dict.fromkeys(("patternProperties", "additionalProperties", "unevaluatedProperties"), _ANY_MEMBER),
    **dict.fromkeys(("items", "prefixItems", "additionalItems", "unevaluatedItems", "contains"), _ANY_ITEM),
}
_ASIDE = frozenset(("$defs", "definitions", "propertyNames", "contentSchema"))
"""Not applied to the value, or to nothing that could be nested."""
_UNEVALUATED = frozenset(("unevaluatedProperties", "unevaluatedItems"))
_OFTEN = frozenset((*_STEPS, "propertyNames", "$defs", "definitions"))
_BACKTRACKING = re.compile(rb"\(\?(?:<?[=!]|>)|\\\\(?:[1-9]|k<)")
"""Syntax that every pattern with backtracking contains, as JSON writes it."""
_COSTLY = (b'ef":', b'"unevaluated', b"(?", rb"\\")
"""Parts of the keywords and patterns without which a check takes no longer than its schema and the value."""
_ELSEWHERE = re.compile(rb'"\$ref":"(?!#/(?:\$defs|definitions)/)')
_AGAIN = 3
"""Times that the keywords beside `unevaluated…` are checked: once for themselves, and again for what they leave over.
Measured: 2.7."""


def is_unbounded(schema: dict[str, Any], *, if_unknown: bool = True) -> bool:
    """Whether a check might run forever. `if_unknown` is the answer for references that can't be followed here."""
    try:
        text = msgspec.json.encode(schema)
        if text.count(b"{") < MAX_NODES and not any(part in text for part in _COSTLY):
            return False  # most schemas; encoding one is ten times as fast as writing it out
        expansion = _Expansion(schema)
        if _backtracks_often(schema, often=_ELSEWHERE.search(text) is not None):
            return True
        expansion.expand("#")
        for target in list(expansion.targets):  # each may refer back to itself
            expansion.expand(target)
    except _Unknown:
        return if_unknown
    except (_Unbounded, RecursionError):
        return True
    return False


def compile_bounded(schema: Any, *, if_unknown: bool = True) -> Validator | None:
    """A validator; None for a schema that can't be compiled, or whose checks might run forever."""
    from longshore.schema.validate import SchemaProblem, compile, measure

    try:
        measure(schema)  # first, because the next step takes longer for a larger schema
        return None if is_unbounded(schema, if_unknown=if_unknown) else compile(schema)
    except SchemaProblem:
        return None


def _backtracks_often(schema: Any, *, often: bool) -> bool:
    """Whether a pattern with backtracking is matched against as many texts as a message can hold.

    References are not followed: everything in `$defs` counts as used by items, and the whole schema where a reference
    leads anywhere else.
    """
    if not is_object(schema):
        return False
    written: list[Any] = [schema["pattern"]] if often and "pattern" in schema else []
    if is_object(named := schema.get("patternProperties")):
        written += named
    return any(map(_backtracks, written)) or any(
        _backtracks_often(inner, often=often or keyword in _OFTEN) for keyword, _, inner in subschemas(schema)
    )


def _backtracks(pattern: Any) -> bool:
    from longshore.schema.validate import compile_linear

    found = isinstance(pattern, str) and _BACKTRACKING.search(msgspec.json.encode(pattern))
    return bool(found) and compile_linear(pattern) is None


class _Unbounded(Exception):
    pass


class _Unknown(Exception):
    pass


@final
class _Expansion:
    """A schema with its references written out, within a budget of nodes."""

    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root
        self._left = MAX_NODES
        self.targets: dict[str, None] = {}
        self._start = ""
        self._returns: list[Step] = []
        self._find = cache(self._resolve)  # a long name may be looked up thousands of times

    def expand(self, target: str) -> None:
        """Write the schema out from a target, and count the ways by which it refers back to that target."""
        self._start, self._returns = target, []
        self._visit(self._find(target), None, (target,))

    def _visit(self, schema: Any, step: Step | None, trail: tuple[str, ...], cost: int = 1) -> None:
        """`step` is the first step away from the value at the start; `trail` are the references up to here."""
        if not is_object(schema):
            return
        self._left -= cost
        if self._left < 0:
            raise _Unbounded
        if {"$dynamicRef", "$recursiveRef"} & schema.keys() or (
            schema is not self._root and {"$id", "id"} & schema.keys()
        ):
            raise _Unknown  # its target is not in this schema, or its names are relative to another address
        beside = cost if _UNEVALUATED.isdisjoint(schema) else cost * _AGAIN
        if "$ref" in schema:
            self._follow(schema["$ref"], step, trail, beside)
        for keyword, name, inner in subschemas(schema):
            if keyword == "properties":
                self._visit(inner, step or ("object", str(name)), trail, cost)
            elif keyword not in _ASIDE:
                self._visit(inner, step or _STEPS.get(keyword), trail, beside)

    def _follow(self, target: Any, step: Step | None, trail: tuple[str, ...], cost: int) -> None:
        if not isinstance(target, str):
            return
        if target == self._start:
            if step is None or any(_overlap(step, other) for other in self._returns):
                raise _Unbounded
            self._returns.append(step)
        elif target not in trail:
            self.targets[target] = None
            self._visit(self._find(target), step, (*trail, target), cost)

    def _resolve(self, target: str) -> Any:
        found = resolve(self._root, target)
        if found is None:
            raise _Unknown
        return found


def _overlap(one: Step, other: Step) -> bool:
    """Whether both may apply to the same part of a value."""
    return one[0] == other[0] and (one[1] == other[1] or "*" in (one[1], other[1]))
