"""Why callers of one JSON Schema may break on another.

Only some changes are known to be harmless: other annotations, and changes that refuse no value which was valid (for
parameters) or allow none which was not (for results). Every other change is reported, for a person to judge.

One assumption: where a schema says nothing about additional properties, callers sent none. A new optional parameter
there is harmless, though strictly any value was valid under its name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from msgspec import UNSET

from longshore.schema.kinds import is_array, is_object
from longshore.schema.walk import ANNOTATIONS, Schema, rewrite, without

MOST_CHARACTERS: Final = 2_000_000
"""Characters read while two schemas are compared: nested alternatives multiply. A third of a second."""
_LEAST: Final = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
_MOST: Final = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")
_COUNTS: Final = ("minLength", "minItems", "minProperties")
_ALONE: Final = frozenset((*_LEAST, *_MOST, "type", "enum", "const", "pattern", "format", "multipleOf", "uniqueItems"))
"""Keywords that mean the same whatever stands beside them: without one, a schema accepts more."""
_MEMBERS: Final = ("properties", "required", "additionalProperties")
_DEFINITIONS: Final = ("$defs", "definitions")
_CURRENT: Final = "https://json-schema.org/draft/2020-12/schema"
_DRAFTS: Final = (_CURRENT, "http://json-schema.org/draft-07/schema#", "http://json-schema.org/draft-07/schema")
_BY_DRAFT: Final = re.compile(
    r'"(?:items": \[|(?:additionalItems|prefixItems|dependen\w+|minContains|maxContains|unevaluated\w+|\$ref|\$id)":)'
)
"""Keywords whose meaning depends on the draft. Without them all drafts accept the same values."""
_INVOLVED: Final = re.compile(
    r'"(?:unevaluated\w+|\$id|\$anchor|\$dynamic\w+|\$recursive\w+)":|"\$ref": (?!"#/(?:\$defs|definitions)/[^/"]+")'
)


class _TooInvolved(Exception):
    """The schemas can't be compared here; a person must."""


def pretty(value: Any) -> str:
    """JSON in canonical form: sorted and indented, so that files and differences are the same everywhere."""
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False)


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal. To Python, `True` is 1."""
    return pretty(one) == pretty(other)


def incompatibilities(old: Any, new: Any, *, result: bool = False) -> list[str]:
    """Why callers may break: the new input refuses what they sent, or with `result`, they get what they don't know.

    A result may have additional members.
    """
    before, after = _by_one_draft(rewrite(old, _strip), rewrite(new, _strip))
    if same(before, after):
        return []
    try:
        if not _INVOLVED.search(pretty([before, after])):
            given, taken = (after, before) if result else (before, after)
            return list(_Comparison(given, taken, result).fit(given, taken, ""))
    except (TypeError, AttributeError, RecursionError, _TooInvolved):
        pass  # something is not the object or list that it should be, or is nested without end
    return [f"{_name('', result)} is too involved to compare"]


def _strip(schema: Schema) -> Schema:
    """The schema without annotations, and without `$schema` where it names the default draft."""
    found = without(schema, *ANNOTATIONS)
    return without(found, "$schema") if found.get("$schema") == _CURRENT else found


def _by_one_draft(*schemas: Any) -> list[Any]:
    """The schemas without `$schema` where the draft makes no difference: SDKs change it, tools don't."""
    if any(_BY_DRAFT.search(pretty(each)) for each in schemas):
        return [*schemas]
    return [
        {key: value for key, value in each.items() if key != "$schema" or value not in _DRAFTS}
        if is_object(each)
        else each
        for each in schemas
    ]


class _Comparison:
    """Why a value that is valid by `given` may be invalid by `taken`.

    For parameters `given` is the old schema and `taken` the new one; for results it is the other way round.
    """

    def __init__(self, given: Any, taken: Any, result: bool) -> None:
        self._given, self._taken, self._result = _definitions(given), _definitions(taken), result
        self._alike = same(self._given, self._taken)
        self._assumed: set[str] = set()
        """Pairs of references compared so far. Inside of themselves they are assumed to fit: values are finite."""
        self._spent = 0

    def fit(self, given: Any, taken: Any, at: str) -> Iterator[str]:
        if given is False or taken is True or taken == {} or self._same(given, taken):
            return
        if not is_object(given) or not is_object(taken):
            yield self._differ("it", given, taken, at)
        elif "$ref" in given or "$ref" in taken:
            yield from self._fit_references(given, taken, at)
        elif _is_union(given) or _is_union(taken) or _names_types(given, taken):
            forms, known = _forms(given), _forms(taken)
            if not all(any(self._fits(form, each, at) for each in known) for form in forms):
                key = "anyOf" if "anyOf" in given or "anyOf" in taken else "type"
                yield self._differ(key, given.get(key, UNSET), taken.get(key, UNSET), at)
        elif not self._all_taken(given, taken):
            yield from self._fit_keywords(given, taken, at)

    def _fits(self, given: Any, taken: Any, at: str) -> bool:
        """Whether there is no reason against it. Assumptions made for an alternative that does not fit are undone."""
        assumed = set(self._assumed)
        if next(self.fit(given, taken, at), None) is None:
            return True
        self._assumed = assumed
        return False

    def _fit_references(self, given: dict[str, Any], taken: dict[str, Any], at: str) -> Iterator[str]:
        pair = pretty([given, taken])
        if pair in self._assumed:
            return
        self._assumed.add(pair)
        yield from self.fit(_follow(given, self._given), _follow(taken, self._taken), at)

    def _all_taken(self, given: dict[str, Any], taken: dict[str, Any]) -> bool:
        """Whether `given` allows a few values only, and all of them are valid by `taken`."""
        from longshore.schema.validate import SchemaProblem, compile

        values = [given["const"]] if "const" in given else given.get("enum")
        if not is_array(values) or '"$ref"' in pretty(taken):
            return False
        try:
            valid = compile(taken).is_valid
        except SchemaProblem:
            return False
        return all(valid(value) for value in values)

    def _fit_keywords(self, given: dict[str, Any], taken: dict[str, Any], at: str) -> Iterator[str]:
        for key in sorted((given.keys() | taken.keys()) - {*_MEMBERS, *_DEFINITIONS}):
            one, other = given.get(key, UNSET), taken.get(key, UNSET)
            if key == "items" and self._same(given.get("prefixItems"), taken.get("prefixItems")):
                yield from self.fit(given.get(key, True), taken.get(key, True), f"{at}[]")
            elif not (key in given and key in taken and self._same(one, other)) and not _is_looser(key, one, other):
                yield self._differ(key, one, other, at)
        yield from self._fit_members(given, taken, at)

    def _fit_members(self, given: dict[str, Any], taken: dict[str, Any], at: str) -> Iterator[str]:
        result = self._result
        before, after = given.get("properties", {}), taken.get("properties", {})
        others, further = given.get("additionalProperties", True), taken.get("additionalProperties", True)
        invited = "patternProperties" in given or (others is not False and (result or "additionalProperties" in given))
        wanted = set(taken.get("required", ())) - set(given.get("required", ()))
        for name in sorted(wanted):
            yield f"{_name(_below(at, name), result)} {_missing(name in before, result)}"
        for name in sorted(before.keys() | after.keys()):
            where = _below(at, name)
            if name in before and name in after:
                yield from self.fit(before[name], after[name], where)
            elif name in before and not result:
                yield f"{_name(where, result)} was removed"
            elif name in before and further is not False:
                yield from self.fit(before[name], further, where)
            elif name in after and name not in wanted and (invited or name in given.get("required", ())):
                yield f"{_name(where, result)} {'was removed' if result else 'is new, and anything was taken there'}"
        if not (result and further is False):
            yield from self.fit(others, further, f"{at}.*")

    def _same(self, one: Any, other: Any) -> bool:
        """Whether two schemas mean the same: equal text, and equal definitions behind its references."""
        text = pretty(one)
        self._spent += len(text)
        if self._spent > MOST_CHARACTERS:
            raise _TooInvolved
        return text == pretty(other) and (self._alike or '"$ref"' not in text)

    def _differ(self, key: str, given: Any, taken: Any, at: str) -> str:
        old, new = (taken, given) if self._result else (given, taken)
        return f"{_name(at, self._result)}: {key} was {_shown(old)} and is {_shown(new)}"


def _definitions(schema: Any) -> dict[str, Any]:
    found: dict[str, Any] = schema if is_object(schema) else {}
    return {key: found[key] for key in _DEFINITIONS if key in found}


def _follow(schema: dict[str, Any], definitions: dict[str, Any]) -> Any:
    """The schema that a `$ref` stands for. Raises _TooInvolved if it has siblings or leads to another `$ref`."""
    if "$ref" not in schema:
        return schema
    _, where, name = str(schema["$ref"]).split("/", 2)
    found = definitions.get(where, {}).get(name.replace("~1", "/").replace("~0", "~"))
    if schema.keys() - {"$ref", *_DEFINITIONS} or found is None or (is_object(found) and "$ref" in found):
        raise _TooInvolved
    return found


def _is_union(schema: dict[str, Any]) -> bool:
    return schema.keys() - set(_DEFINITIONS) == {"anyOf"}


def _names_types(given: dict[str, Any], taken: dict[str, Any]) -> bool:
    """Whether one of them has a list of types, and the other a different one."""
    one, other = given.get("type"), taken.get("type")
    return (is_array(one) or is_array(other)) and not same(one, other)


def _forms(schema: dict[str, Any]) -> list[Any]:
    """The alternatives of a schema: those of `anyOf`, or one for each type."""
    if _is_union(schema):
        return [form for each in schema["anyOf"] for form in (_forms(each) if is_object(each) else [each])]
    kinds = schema.get("type")
    return [{**schema, "type": kind} for kind in kinds] if is_array(kinds) else [schema]


def _is_looser(key: str, one: Any, other: Any) -> bool:
    """Whether a changed or removed keyword refuses nothing that it accepted."""
    if other is UNSET:
        return key in _ALONE
    if key in ("type", "enum"):
        values = {pretty(each) for each in (other if is_array(other) else [other])}
        values |= {'"integer"'} if key == "type" and '"number"' in values else set()
        return one is not UNSET and {pretty(each) for each in (one if is_array(one) else [one])} <= values
    if key == "uniqueItems":
        return other is False
    if one is UNSET and key in _COUNTS:
        one = 0
    if type(one) not in (int, float) or type(other) not in (int, float):
        return False
    if key == "multipleOf" and type(one) is type(other) is int:
        return other > 0 and one % other == 0
    return bool(other <= one) if key in _LEAST else key in _MOST and bool(other >= one)


def _missing(known: bool, result: bool) -> str:
    if result:
        return "is not always there any more"
    return "is required now" if known else "is new and required"


def _shown(value: Any) -> str:
    text = "not set" if value is UNSET else " ".join(pretty(value).split())
    return text if len(text) <= 100 else text[:100] + "…"


def _below(at: str, name: str) -> str:
    return f"{at}.{name}" if at else name


def _name(at: str, result: bool) -> str:
    return (f"{at!r} of the result" if at else "the result") if result else f"parameter {at!r}" if at else "the whole"
