"""Whether checking against a stranger's schema is sure to end soon.

A validator follows references each time that it meets them. Definitions of a few kilobytes that name each other twice
over are 2^40 steps, and one that comes back to itself by two ways through the same place of a value doubles with every
level of that value. No validator gives up by itself, so such schemas must not reach one. A pattern with look-around or
a back reference gives up after milliseconds, which are hours where it is matched against each part of a large message.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any, Final, final

import msgspec

from longshore.protocol.subschemas import subschemas
from longshore.schema.kinds import is_object
from longshore.schema.pointer import look_up

if TYPE_CHECKING:
    from longshore.schema.validate import Validator

STEPS = 20_000
"""Subschemas that a schema may come to when its references are written out, once round for each that is recursive."""

WHAT: Final = (
    "one value could keep the check against this schema busy for ever: its references double, or a pattern with "
    "look-around or a back reference is matched against any number of items or keys"
)
FIX: Final = 'write fewer $refs and such patterns without them, or waive={"E13": "why it is harmless"}'

Step = tuple[str, str]
"""Where in a value a subschema looks: at a named member, or at any of an object's or an array's."""

_ANY_MEMBER: Step = ("object", "*")
_ANY_ITEM: Step = ("array", "*")
_STEPS = {
    **dict.fromkeys(("patternProperties", "additionalProperties", "unevaluatedProperties"), _ANY_MEMBER),
    **dict.fromkeys(("items", "prefixItems", "additionalItems", "unevaluatedItems", "contains"), _ANY_ITEM),
}
_ASIDE = frozenset(("$defs", "definitions", "propertyNames", "contentSchema"))
"""Not applied to the value, or to nothing that could be nested."""
_REST = frozenset(("unevaluatedProperties", "unevaluatedItems"))
_LEADING = (b'"$', b'"id"', b'"unevaluated')
_OFTEN = frozenset((*_STEPS, "propertyNames", "$defs", "definitions"))
_BACKTRACKING = re.compile(rb"\(\?(?:<?[=!]|>)|\\\\(?:[1-9]|k<)")
"""What every pattern that needs backtracking has, as JSON writes it."""
_ELSEWHERE = re.compile(rb'"\$ref":"(?!#/(?:\$defs|definitions)/)')
_AGAIN = 3
"""Times that what stands beside one of these is checked: for itself, and to see what it leaves over. Measured: 2.7."""


def is_heavy(schema: dict[str, Any], *, doubtful: bool = True) -> bool:
    """Whether it might take for ever. `doubtful` is the answer where that can't be told."""
    if _is_plain(schema):
        return False
    walk = _Walk(schema)
    try:
        if _backtracks_often(schema, often=_ELSEWHERE.search(msgspec.json.encode(schema)) is not None):
            return True
        walk.begin("#")
        for target in list(walk.targets):  # each may be a way back to itself
            walk.begin(target)
    except _Untold:
        return doubtful
    except (_Heavy, RecursionError):
        return True
    return False


def compile_light(schema: Any, *, doubtful: bool = True) -> Validator | None:
    """Ready to check values; None where it can't be, or where that might never end and no signal could end it."""
    from longshore.schema.validate import SchemaProblem, compile, measure

    try:
        measure(schema)  # first: the larger it is, the longer it takes to see whether it is heavy
        return None if is_heavy(schema, doubtful=doubtful) else compile(schema)
    except SchemaProblem:
        return None


def _is_plain(schema: dict[str, Any]) -> bool:
    """Whether nothing in it leads to another part, or has a part checked again. True of most, and told at once."""
    try:
        text = msgspec.json.encode(schema)
    except Exception:
        return False
    return len(text) < STEPS and not any(word in text for word in _LEADING) and not _BACKTRACKING.search(text)


def _backtracks_often(schema: Any, *, often: bool) -> bool:
    """Whether a pattern that needs backtracking is matched against as many texts as a message can hold.

    Where a reference leads is not looked up: what stands in `$defs` counts as used by items, and everything where a
    reference leads elsewhere.
    """
    if not is_object(schema):
        return False
    written: list[Any] = [schema["pattern"]] if often and "pattern" in schema else []
    if is_object(named := schema.get("patternProperties")):
        written += named
    return any(map(_backtracks, written)) or any(
        _backtracks_often(inner, often=often or keyword in _OFTEN)
        for keyword, value in schema.items()
        for inner in subschemas(keyword, value)
    )


def _backtracks(pattern: Any) -> bool:
    from longshore.schema.validate import compile_linear

    found = isinstance(pattern, str) and _BACKTRACKING.search(msgspec.json.encode(pattern))
    return bool(found) and compile_linear(pattern) is None


class _Heavy(Exception):
    pass


class _Untold(Exception):
    pass


@final
class _Walk:
    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root
        self._left = STEPS
        self.targets: dict[str, None] = {}
        self._from = ""
        self._back: list[Step] = []
        self._find = cache(self._look_up)  # a name may be long, and come thousands of times

    def begin(self, target: str) -> None:
        """Write the schema out from here, and see by how many ways it comes back."""
        self._from, self._back = target, []
        self._visit(self._find(target), None, (target,))

    def _visit(self, schema: Any, step: Step | None, trail: tuple[str, ...], cost: int = 1) -> None:
        """`step` is the first that leads away from where we began; `trail` are the references on the way."""
        if not is_object(schema):
            return
        self._left -= cost
        if self._left < 0:
            raise _Heavy
        beside = cost if _REST.isdisjoint(schema) else cost * _AGAIN
        for keyword, value in schema.items():
            if keyword in ("$dynamicRef", "$recursiveRef") or (keyword in ("$id", "id") and schema is not self._root):
                raise _Untold  # where they lead to is not written here
            if keyword == "$ref":
                self._follow(value, step, trail, beside)
            elif keyword == "properties" and is_object(value):
                for name, inner in value.items():
                    self._visit(inner, step or ("object", name), trail, cost)
            elif keyword not in _ASIDE:
                for inner in subschemas(keyword, value):
                    self._visit(inner, step or _STEPS.get(keyword), trail, beside)

    def _follow(self, target: Any, step: Step | None, trail: tuple[str, ...], cost: int) -> None:
        if not isinstance(target, str):
            return
        if target == self._from:
            if step is None or any(_meet(step, other) for other in self._back):
                raise _Heavy
            self._back.append(step)
        elif target not in trail:
            self.targets[target] = None
            self._visit(self._find(target), step, (*trail, target), cost)

    def _look_up(self, target: str) -> Any:
        found = look_up(self._root, target)
        if found is None:
            raise _Untold
        return found


def _meet(one: Step, other: Step) -> bool:
    """Whether both may look at the same part of a value."""
    return one[0] == other[0] and (one[1] == other[1] or "*" in (one[1], other[1]))
