"""References to definitions, written out."""

from __future__ import annotations

from typing import Any, Final, final

from longshore.schema.kinds import is_object
from longshore.schema.pointer import look_up
from longshore.schema.rewriting.dialects import is_old
from longshore.schema.rewriting.everywhere import ANNOTATIONS, Schema, TooMuch, Walk, less, schemas_in

MOST_INLINED: Final = 2_000
"""Schemas that one may come to when it is written out. Definitions that name each other twice over double each time."""

MOST_FOLLOWED: Final = 100_000
"""References that are followed to find out which definitions hold themselves: 300 that all lead to each other."""

_PLACES: Final = ("$defs", "definitions")
_INSIDE: Final = tuple(f"#/{place}/" for place in _PLACES)
_NAMING: Final = frozenset(("$id", "id", "$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveRef"))
"""Inside of a schema these give its parts other names, which would be given twice over, or lead who knows where."""


def inlined(schema: Any) -> Any:
    """Each reference to a definition replaced by it, but where it holds itself. Left as it is if it grew too big."""
    if not is_object(schema):
        return schema
    definitions = _definitions(schema)
    if any(_leads_elsewhere(each, schema, definitions) for each in schemas_in(schema)):
        return schema
    try:
        return _Inliner(definitions, old=is_old(schema)).write_out(schema)
    except TooMuch:
        return schema


def resolve(schema: Any, root: Schema) -> Any:
    """What a schema refers to, if it is a mere reference to a definition of the root; else the schema."""
    if not is_object(schema) or not isinstance(ref := schema.get("$ref"), str):
        return schema
    found = look_up(root, ref) if ref.startswith(_INSIDE) and schema.keys() <= ANNOTATIONS | {"$ref"} else None
    return schema if found is None else found


def _definitions(root: Schema) -> dict[str, Any]:
    """Reference → what it leads to."""
    return {ref: root[place][name] for place in _PLACES for ref, name in _names(root, place).items()}


def _names(root: Schema, place: str) -> dict[str, str]:
    """Reference → the definition's name there."""
    named = root.get(place)
    if not is_object(named):
        return {}
    return {f"#/{place}/{str(name).replace('~', '~0').replace('/', '~1')}": name for name in named}


def _leads_elsewhere(schema: Schema, root: Schema, definitions: dict[str, Any]) -> bool:
    """It names its parts, or refers to something, in a way that would not hold any more when it is written out."""
    names = _NAMING.intersection(schema)
    if names and (schema is not root or names - {"$id", "id"}):
        return True
    ref = schema.get("$ref", "#")
    inside = ref == "#" or (isinstance(ref, str) and ref.startswith("#/") and ref.split("/")[1] not in _PLACES)
    return not inside and (not isinstance(ref, str) or ref not in definitions)


@final
class _Inliner:
    def __init__(self, definitions: dict[str, Any], *, old: bool) -> None:
        self._definitions = definitions
        self._old = old
        self._recursive = _find_recursive(definitions)
        self._walk = Walk(self._replace, MOST_INLINED)
        self._kept: set[str] = set()

    def write_out(self, root: Schema) -> Schema:
        body: Schema = self._walk.visit(self._opened(root))
        written = self._write_kept()
        for place in _PLACES:
            if kept := {name: written[ref] for ref, name in _names(root, place).items() if ref in written}:
                body[place] = kept
        return body

    def _opened(self, root: Schema) -> Schema:
        """A root needs a type of its own, so a reference there is always written out."""
        schema = less(root, *_PLACES)
        for _ in self._definitions:
            ref = schema.get("$ref")
            if isinstance(ref, str) and ref in self._definitions:
                schema = self._joined(self._definitions[ref], less(schema, "$ref"))
        return {"$schema": root["$schema"], **schema} if "$schema" in root else schema  # the words are still its own

    def _write_kept(self) -> dict[str, Any]:
        """The definitions that are still referred to. Those among them that are written out may refer to more."""
        written: dict[str, Any] = {}
        while waiting := [ref for ref in sorted(self._kept) if ref in self._definitions and ref not in written]:
            for ref in waiting:
                written[ref] = self._walk.visit(self._definitions[ref])
        return written

    def _replace(self, schema: Schema) -> Schema:
        """One step: what stands there then is looked at again, for it may be a reference too."""
        for step in range(len(self._definitions) + 1):
            if step > 1:
                self._walk.spend()  # many references to a long row of them would take for ever
            ref = schema.get("$ref")
            if not isinstance(ref, str):
                return schema
            if ref not in self._definitions or ref in self._recursive:
                self._kept.add(ref)
                return schema
            schema = self._joined(self._definitions[ref], less(schema, "$ref"))
        return schema

    def _joined(self, target: Any, beside: Schema) -> Schema:
        """A definition together with what stood beside the reference to it, which older dialects don't look at."""
        if not is_object(target):
            target = {"not": {}} if target is False else {}
        if self._old:
            beside = {keyword: value for keyword, value in beside.items() if keyword in ANNOTATIONS}
        if beside.keys() <= ANNOTATIONS:
            return {**target, **beside}
        others = beside.get("allOf")
        return {**beside, "allOf": [target, *(others if isinstance(others, list) else ())]}


def _find_recursive(definitions: dict[str, Any]) -> set[str]:
    """The definitions that come back to themselves."""
    leads = {ref: _leads(inner) for ref, inner in definitions.items()}
    left = MOST_FOLLOWED
    recursive: set[str] = set()
    for ref in leads:
        reached = _reached(ref, leads)
        left -= len(reached)
        if left < 0:
            raise TooMuch
        if ref in reached:
            recursive.add(ref)
    return recursive


def _leads(schema: Any) -> set[str]:
    return {ref for each in schemas_in(schema) if isinstance(ref := each.get("$ref"), str)}


def _reached(start: str, leads: dict[str, set[str]]) -> set[str]:
    found: set[str] = set()
    waiting = [*leads[start]]
    while waiting:
        ref = waiting.pop()
        if ref not in found:
            found.add(ref)
            waiting.extend(leads.get(ref, ()))
    return found
