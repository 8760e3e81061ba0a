"""Whether callers can live with another schema than they knew.

Only a few changes are known to be harmless: other words, and what refuses no value that was fine (of parameters) or
allows none that was not (of results). Every other change counts as one that breaks, and a person looks at it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from longshore.schema.kinds import is_array, is_object
from longshore.testing.canonical import pretty, same

_WORDS: Final = frozenset(("title", "description", "default", "examples", "deprecated", "$comment"))
"""Keywords that only say something: no value is refused because of them."""
_OF_NAMES: Final = frozenset(("properties", "patternProperties", "$defs", "definitions"))
_OF_SCHEMAS: Final = frozenset(("anyOf", "oneOf", "allOf", "prefixItems", "items", "additionalProperties", "not"))
_LEAST: Final = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
_MOST: Final = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")
_ALONE: Final = frozenset((*_LEAST, *_MOST, "type", "enum", "const", "pattern", "format", "multipleOf", "uniqueItems"))
"""Keywords that mean the same whatever stands beside them, so that one less takes more."""
_MEMBERS: Final = ("properties", "required", "additionalProperties")
_INVOLVED: Final = re.compile(
    r'"(?:unevaluated\w+|\$id|\$anchor|\$dynamic\w+|\$recursive\w+)":|"\$ref": (?!"#/(?:\$defs|definitions)/[^/"]+")'
)


def narrowed(old: Any, new: Any, *, result: bool = False) -> list[str]:
    """Why callers may break: what they sent may be refused, or with `result`, what they get may be unknown to them.

    A result may have more members than it had.
    """
    before, after = _strip(old), _strip(new)
    if same(before, after):
        return []
    try:
        if not _INVOLVED.search(pretty([before, after])):
            return list(_fit(after, before, "", True) if result else _fit(before, after, "", False))
    except (TypeError, AttributeError):
        pass  # what should be an object or a list there is none
    return [f"{_name('', result)} is too involved to compare"]


def _strip(schema: Any) -> Any:
    """The schema without words."""
    if is_array(schema):
        return [_strip(each) for each in schema]
    if not is_object(schema):
        return schema
    found = {key: value for key, value in schema.items() if key not in _WORDS}
    for key, value in found.items():
        if key in _OF_SCHEMAS:
            found[key] = _strip(value)
        elif key in _OF_NAMES and is_object(value):
            found[key] = {name: _strip(each) for name, each in value.items()}
    return found


def _fit(given: Any, taken: Any, at: str, result: bool) -> Iterator[str]:
    """Why a value of one schema may not be one of the other: what was sent of what is taken now, or what comes now of
    what was known."""
    if given is False or taken is True or taken == {} or same(given, taken):
        return
    if not is_object(given) or not is_object(taken):
        yield _differ("it", given, taken, at, result)
        return
    if given.keys() == {"anyOf"} or taken.keys() == {"anyOf"}:
        forms, known = given.get("anyOf", [given]), taken.get("anyOf", [taken])
        if not all(any(not list(_fit(form, each, at, result)) for each in known) for form in forms):
            yield _differ("anyOf", given.get("anyOf"), taken.get("anyOf"), at, result)
        return
    for key in sorted((given.keys() | taken.keys()) - set(_MEMBERS)):
        one, other = given.get(key), taken.get(key)
        if key == "items" and same(given.get("prefixItems"), taken.get("prefixItems")):
            yield from _fit(given.get(key, True), taken.get(key, True), f"{at}[]", result)
        elif not same(one, other) and not _is_looser(key, one, other, key in taken):
            yield _differ(key, one, other, at, result)
    yield from _fit_members(given, taken, at, result)


def _fit_members(given: dict[str, Any], taken: dict[str, Any], at: str, result: bool) -> Iterator[str]:
    before, after = given.get("properties", {}), taken.get("properties", {})
    others, further = given.get("additionalProperties", True), taken.get("additionalProperties", True)
    wanted = set(taken.get("required", ())) - set(given.get("required", ()))
    for name in sorted(wanted):
        how = (
            "is not always there any more" if result else "is required now" if name in before else "is new and required"
        )
        yield f"{_name(_below(at, name), result)} {how}"
    for name in sorted(before.keys() | after.keys()):
        if name in before and name in after:
            yield from _fit(before[name], after[name], _below(at, name), result)
        elif name in before and not result:
            yield f"{_name(_below(at, name), result)} is gone"
        elif name in before and further is not False:
            yield from _fit(before[name], further, _below(at, name), result)
        elif name in after and name not in wanted and (others is not False or "patternProperties" in given):
            yield f"{_name(_below(at, name), result)} {'is gone' if result else 'is new, and anything was taken there'}"
    if not (result and further is False):
        yield from _fit(others, further, f"{at}.*", result)


def _is_looser(key: str, one: Any, other: Any, there: bool) -> bool:
    """Whether a keyword that says something else, or nothing any more, refuses no more than it did."""
    if not there:
        return key in _ALONE
    if key in ("type", "enum"):
        values = {pretty(each) for each in (other if is_array(other) else [other])}
        values |= {'"integer"'} if key == "type" and '"number"' in values else set()
        return one is not None and {pretty(each) for each in (one if is_array(one) else [one])} <= values
    if type(one) not in (int, float) or type(other) not in (int, float):
        return False
    return bool(other <= one) if key in _LEAST else key in _MOST and bool(other >= one)


def _differ(key: str, given: Any, taken: Any, at: str, result: bool) -> str:
    old, new = (taken, given) if result else (given, taken)
    return f"{_name(at, result)}: {key} was {_shown(old)} and is {_shown(new)}"


def _shown(value: Any) -> str:
    text = "not set" if value is None else " ".join(pretty(value).split())
    return text if len(text) <= 100 else text[:100] + "…"


def _below(at: str, name: str) -> str:
    return f"{at}.{name}" if at else name


def _name(at: str, result: bool) -> str:
    return (f"{at!r} of the result" if at else "the result") if result else f"parameter {at!r}" if at else "the whole"
