"""Comparing the former and the present offers of a server: every difference, and whether it breaks callers.

A surface is the dict that `longshore schema snapshot` and `assert_surface` keep in a file: the four lists, sorted, and
the instructions. The same server has the same surface whatever the order of declaration.

Only some changes of a schema are known to be harmless: other annotations, and changes that refuse no value which was
valid (for parameters) or allow none which was not (for results). Every other change is reported, for a person to judge.
One assumption: where a schema says nothing about additional properties, callers sent none. A new optional parameter
there is harmless, though strictly any value was valid under its name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import unified_diff
from operator import itemgetter
from typing import Any, Final

import msgspec
from msgspec import UNSET, Struct

from longshore.limits import DEFAULT_LIMITS
from longshore.schema.kinds import as_array, as_object, is_array, is_object
from longshore.schema.rewrite import inlined, modernised
from longshore.schema.walk import ANNOTATIONS, DEFINITIONS, Schema, resolve, rewrite, without
from longshore.wire.codec import too_deep

Surface = dict[str, Any]

KEYS: Final = {"tools": "name", "resources": "uri", "templates": "uriTemplate", "prompts": "name"}
"""Part of a surface → the member that identifies an entry."""
MOST_LINES: Final = 500
"""Lines of each side that are compared, from the first difference on. The time grows with their square: 30 ms."""
_PROMISES: Final = {"readOnlyHint": True, "idempotentHint": True, "destructiveHint": False}
"""Hint → the value that promises something. Clients decide by them whether to ask the user and what to repeat."""


def pretty(value: Any) -> str:
    """JSON in canonical form: sorted and indented, so that files and differences are the same everywhere."""
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False)


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal. To Python, `True` is 1."""
    return pretty(one) == pretty(other)


# -- surfaces


class NotASurface(ValueError):
    """The text is not a surface. The message continues a file's name: `can't be read: …`."""


def make_surface(parts: Mapping[str, Iterable[dict[str, Any]]], instructions: str | None) -> Surface:
    """The surface of a server's lists."""
    found: Surface = {}
    for part, key in KEYS.items():
        keyed = [(str(record.get(key, "")), _with_sorted_required(record)) for record in parts.get(part, ())]
        found[part] = [record for _, record in sorted(keyed, key=itemgetter(0))]
    return {**found, "instructions": instructions}


def _with_sorted_required(value: Any) -> Any:
    """The value with every `required` sorted: its order has no meaning."""
    if is_array(value):
        return [_with_sorted_required(each) for each in value]
    if not is_object(value):
        return value
    found = {key: _with_sorted_required(each) for key, each in value.items()}
    required: Any = found.get("required")
    if is_array(required) and all(isinstance(each, str) for each in required):
        found["required"] = sorted(required)
    return found


def read_lists(value: Any) -> dict[str, Any] | None:
    """The lists in a JSON value, as they came: a surface, an answer to `tools/list`, `longshore list --json` or an
    array of tools. It has the parts, and `name` and `instructions` where the value has them; None: it has no list."""
    if is_array(value):
        return {"tools": value}
    if not is_object(value):
        return None
    whole: dict[str, Any] = value["result"] if is_object(value.get("result")) else value
    about = as_object(whole.get("server"))  # in `longshore list --json`
    merged = {"templates": whole.get("resourceTemplates"), **about, **whole}
    found = {part: merged[part] for part in KEYS if is_array(merged.get(part))}
    if not found:
        return None
    found |= {"instructions": merged["instructions"]} if "instructions" in merged else {}
    return found | ({"name": about["name"]} if "name" in about else {})


def read_offers(value: Any) -> Surface | None:
    """The surface of the lists in a JSON value. It has only the parts that the value has; None: no list."""
    lists = read_lists(value)
    if lists is None:
        return None
    records = {part: [each for each in lists[part] if is_object(each)] for part in KEYS if part in lists}
    whole = make_surface(records, lists.get("instructions"))
    return {key: each for key, each in whole.items() if key in lists}


def read_surface_file(text: bytes) -> Surface:
    """The surface in a file. Raises NotASurface."""
    if too_deep(text, DEFAULT_LIMITS.depth):
        raise NotASurface(f"can't be read: nesting is deeper than {DEFAULT_LIMITS.depth} levels")
    try:
        found = msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as problem:
        raise NotASurface(f"can't be read: {problem}") from None
    if not is_surface(found):
        raise NotASurface(f"is no surface of a server: that has the lists {', '.join(KEYS)}")
    surface: Surface = found
    return surface


def is_surface(value: Any) -> bool:
    """Whether a value has all the lists of a surface."""
    return is_object(value) and all(is_array(value.get(part)) for part in KEYS)


def write_surface_file(surface: Surface) -> bytes:
    """The content of the file."""
    return (pretty(surface) + "\n").encode()


def count(surface: Surface) -> str:
    """The number of entries in each part: `tools: 3, prompts: 1`."""
    return ", ".join(f"{part}: {len(surface[part])}" for part in KEYS if surface[part]) or "nothing"


def differences(old: Any, new: Any, before: str, now: str, around: int = 3) -> list[str]:
    """A unified diff of two JSON values. Of very long ones it begins at the first difference and is cut."""
    sides = [pretty(old).splitlines(), pretty(new).splitlines()]
    longest, start = max(map(len, sides)), 0
    if longest > MOST_LINES:
        unequal = (index for index, (one, other) in enumerate(zip(*sides, strict=False)) if one != other)
        start = max(0, next(unequal, min(map(len, sides))) - around)
    one, other = (side[start : start + MOST_LINES] for side in sides)
    found = list(unified_diff(one, other, before, now, lineterm="", n=around))
    left = longest - start - MOST_LINES
    return [*found, f"… and {left:,} lines that were not compared"] if left > 0 else found


# -- changes


class SurfaceChange(Struct, frozen=True):
    """One entry that differs."""

    title: str
    broken: list[str]
    """Why calls made for the old entry fail."""
    safe: list[str]
    """Differences that such calls survive."""
    diff: list[str] = []

    @property
    def breaks(self) -> bool:
        return bool(self.broken)


class Renamed(Struct, frozen=True):
    """Former names that a server still accepts. They are known only of a server loaded in Python."""

    tools: Mapping[str, str] = {}
    """Earlier name → name."""
    parameters: Mapping[str, Mapping[str, str]] = {}
    """Tool → earlier name of a parameter → name."""
    inputs: Mapping[str, Any] = {}
    """Earlier name of a tool → the input schema that it still has, if that is its own."""


NOTHING: Final = Renamed()


def compare(old: Surface, new: Surface, renamed: Renamed = NOTHING) -> list[SurfaceChange]:
    """Every difference, entry by entry. A part missing from one side is not compared."""
    parts = [part for part in KEYS if part in old and part in new]
    found = [change for part in parts for change in _compare_part(part, old[part], new[part], renamed)]
    before, after = old.get("instructions"), new.get("instructions")
    if "instructions" in old and "instructions" in new and before != after:
        found.append(
            SurfaceChange("instructions", [], ["they changed"], differences(before, after, "before", "now", 2))
        )
    return found


def _compare_part(part: str, old: list[Any], new: list[Any], renamed: Renamed) -> Iterator[SurfaceChange]:
    before, after = _by_key(part, old), _by_key(part, new)
    for key in sorted(before.keys() | after.keys()):
        title = f"{part.removesuffix('s')} {key}"
        successor = renamed.tools.get(key, "") if part == "tools" else ""
        if key in after and key not in before:
            yield SurfaceChange(title, [], ["it is new"])
        elif key in after and not same(before[key], after[key]):
            yield _compare_entry(part, title, before[key], after[key], renamed.parameters.get(key, {}))
        elif key not in after and successor in after:
            entry, now = {**before[key], "name": successor}, after[successor]
            renames: Mapping[str, str] = renamed.parameters.get(successor, {})
            if key in renamed.inputs:
                now, renames = {**now, "inputSchema": renamed.inputs[key]}, dict[str, str]()
            found = _compare_entry(part, title, entry, now, renames)
            safe = [f"it is now {successor}, and can be called by its old name, too", *found.safe]
            yield SurfaceChange(title, found.broken, safe, found.diff)
        elif key not in after:
            yield SurfaceChange(title, ["it was removed"], [])


def _by_key(part: str, entries: list[Any]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for entry in entries:
        record = as_object(entry)
        key = str(record.get(KEYS[part], "?"))
        while key in found:
            key += " (again)"
        found[key] = record
    return found


def _compare_entry(
    part: str, title: str, old: dict[str, Any], new: dict[str, Any], renames: Mapping[str, str]
) -> SurfaceChange:
    broken: list[str] = []
    safe: list[str] = []
    for key in sorted(old.keys() | new.keys()):
        before, after = old.get(key), new.get(key)
        if same(before, after):
            continue
        match part, key:
            case "tools", "inputSchema":
                before, renamed = _with_new_names(before, renames)
                safe += renamed
                broken += incompatibilities(before, after)
            case "tools", "outputSchema":
                if after is None:
                    broken.append("it promises no structured result any more")
                elif before is not None:
                    broken += incompatibilities(before, after, result=True)
            case "prompts", "arguments":
                broken += incompatibilities(_as_schema(before), _as_schema(after))
            case _, "annotations":
                broken += _compare_hints(before, after)
            case _, "execution":
                broken += _compare_tasks(before, after)
            case _, "mimeType":
                broken.append(f"its media type was {before} and is {after}")
            case _:
                safe.append(f"its {key} changed")
    if not broken and not safe:
        safe.append("what callers may send and get is the same or more")
    return SurfaceChange(title, broken, safe, differences(old, new, "before", "now", 2))


def _with_new_names(schema: Any, renames: Mapping[str, str]) -> tuple[Any, list[str]]:
    """The old input schema with the new names of renamed parameters, and a sentence about each."""
    properties = as_object(schema).get("properties")
    if not is_object(properties):
        return schema, []
    known = {old: new for old, new in renames.items() if old in properties and new not in properties}
    required: Any = schema.get("required")
    found = {**schema, "properties": {known.get(name, name): each for name, each in properties.items()}}
    if is_array(required):
        found["required"] = [known.get(name, name) for name in required if isinstance(name, str)]
    return found, [f"parameter {old!r} is now {new!r}, and is taken by its old name, too" for old, new in known.items()]


def _compare_hints(old: Any, new: Any) -> list[str]:
    before, after = as_object(old), as_object(new)
    if after.get("readOnlyHint") is True:
        return []  # implies the other two promises
    return [
        f"it does not promise {hint}: {str(value).lower()} any more"
        for hint, value in _PROMISES.items()
        if before.get(hint) is value and after.get(hint) is not value
    ]


def _compare_tasks(old: Any, new: Any) -> list[str]:
    """The reasons why calls made as before, plain or as a task, are refused."""
    before, after = (as_object(each).get("taskSupport", "forbidden") for each in (old, new))
    works = before == after or (after == "optional" and before in ("forbidden", "required"))
    return [] if works else [f"as a task it was {before} and is {after}"]


def _as_schema(arguments: Any) -> Schema:
    """The arguments of a prompt as the schema of an object of strings."""
    named = [each for each in as_array(arguments) if is_object(each)]
    return {
        "type": "object",
        "properties": {str(each.get("name")): {"type": "string"} for each in named},
        "required": [str(each.get("name")) for each in named if each.get("required") is True],
        "additionalProperties": False,
    }


def verdict(changes: Sequence[SurfaceChange]) -> str:
    """One sentence: how many changes break callers."""
    breaking = sum(each.breaks for each in changes)
    if not changes:
        return "nothing has changed"
    return f"{breaking} of {len(changes)} changes break callers" if breaking else "no change breaks callers"


def worst_first(changes: Sequence[SurfaceChange]) -> list[SurfaceChange]:
    return sorted(changes, key=lambda change: not change.breaks)


# -- schemas

MOST_CHARACTERS: Final = 2_000_000
"""Characters read while two schemas are compared: nested alternatives multiply. A third of a second."""
_ALONE: Final = frozenset(
    (
        *("type", "enum", "const", "pattern", "format", "multipleOf", "uniqueItems"),
        *("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"),
        *("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"),
    )
)
"""Keywords whose meaning does not depend on others: without one, a schema accepts more."""
_CURRENT: Final = "https://json-schema.org/draft/2020-12/schema"
_INVOLVED: Final = re.compile(
    r'"(?:unevaluated\w+|\$id|\$anchor|\$dynamic\w+|\$recursive\w+)":|"\$ref": (?!"#/\$defs/[^/"]+")'
)


class _TooInvolved(Exception):
    """The schemas can't be compared automatically."""


def incompatibilities(old: Any, new: Any, *, result: bool = False) -> list[str]:
    """The reasons why callers may break.

    The new input refuses their arguments, or with `result`, they get unknown members. A result may have additional
    members.
    """
    before, after = (inlined(rewrite(modernised(each), _strip)) for each in (old, new))
    if same(before, after):
        return []
    try:
        if not _INVOLVED.search(pretty([before, after])):
            given, taken = (after, before) if result else (before, after)
            return list(_Comparison(given, taken, result).fit(given, taken, ""))
    except (TypeError, AttributeError, RecursionError, _TooInvolved):
        pass  # a keyword's value is not the object or list that it should be, or nested too deeply
    return [f"{'the result' if result else 'the whole'} is too involved to compare"]


def _close(schema: Schema) -> Schema:
    """Closed, if it says nothing about additional properties: callers sent none, and one that was removed is lost."""
    return {"additionalProperties": False, **schema} if "properties" in schema else schema


def _open(schema: Schema) -> Schema:
    """Open for additional members, which a result may have."""
    return without(schema, "additionalProperties") if schema.get("additionalProperties") is False else schema


def _strip(schema: Schema) -> Schema:
    """The schema without annotations, and without `$schema` where it names the default draft."""
    found = without(schema, *ANNOTATIONS)
    return without(found, "$schema") if found.get("$schema") == _CURRENT else found


class _Comparison:
    """Finds reasons why a value that is valid by `given` may be invalid by `taken`.

    For parameters `given` is the old schema and `taken` the new one; for results it is the other way round.
    """

    def __init__(self, given: Any, taken: Any, result: bool) -> None:
        self._given, self._taken, self._result = given, taken, result
        self._alike = same(*({"$defs": each.get("$defs")} if is_object(each) else {} for each in (given, taken)))
        """Whether a reference means the same on both sides."""
        self._assumed: set[str] = set()
        """Pairs of references compared so far. Inside of themselves they are assumed to fit: values are finite."""
        self._spent = 0

    def fit(self, given: Any, taken: Any, at: str) -> Iterator[str]:
        if given is False or taken is True or taken == {} or self._same(given, taken):
            return
        if not is_object(given) or not is_object(taken):
            yield self._differ("it", given, taken, at)
        elif "$ref" in given or "$ref" in taken:
            pair = pretty([given, taken])
            if pair not in self._assumed:
                self._assumed.add(pair)
                yield from self.fit(_follow(given, self._given), _follow(taken, self._taken), at)
        elif "anyOf" in given or "anyOf" in taken:
            sides = (given, rewrite(taken, _open)) if self._result else (rewrite(given, _close), rewrite(taken, _close))
            if not _is_covered(*sides):
                yield self._differ("anyOf", given.get("anyOf", UNSET), taken.get("anyOf", UNSET), at)
        elif {"const", "enum"}.isdisjoint(given) or not _is_covered(given, taken):
            yield from self._fit_keywords(given, taken, at)
            yield from self._fit_members(given, taken, at)

    def _fit_keywords(self, given: Schema, taken: Schema, at: str) -> Iterator[str]:
        aside = {"properties", "required", "additionalProperties", *DEFINITIONS}
        for key in sorted((given.keys() | taken.keys()) - aside):
            one, other = given.get(key, UNSET), taken.get(key, UNSET)
            if key == "items" and self._same(given.get("prefixItems"), taken.get("prefixItems")):
                yield from self.fit(given.get(key, True), taken.get(key, True), f"{at}[]")
            elif not (key in given and key in taken and self._same(one, other)) and not _is_looser(key, one, other):
                yield self._differ(key, one, other, at)

    def _fit_members(self, given: Schema, taken: Schema, at: str) -> Iterator[str]:
        result = self._result
        before, after = given.get("properties", {}), taken.get("properties", {})
        others, further = given.get("additionalProperties", True), taken.get("additionalProperties", True)
        invited = "patternProperties" in given or (others is not False and (result or "additionalProperties" in given))
        wanted = set(taken.get("required", ())) - set(given.get("required", ()))
        for name in sorted(wanted):
            missing = "is required now" if name in before else "is new and required"
            yield f"{self._name(_below(at, name))} {'is not always there any more' if result else missing}"
        for name in sorted(before.keys() | after.keys()):
            where = _below(at, name)
            if name in before and name in after:
                yield from self.fit(before[name], after[name], where)
            elif name in before and not result:
                yield f"{self._name(where)} was removed"
            elif name in before and further is not False:
                yield from self.fit(before[name], further, where)
            elif name in after and name not in wanted and (invited or name in given.get("required", ())):
                yield f"{self._name(where)} {'was removed' if result else 'is new, and anything was taken there'}"
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
        return f"{self._name(at)}: {key} was {_shown(old)} and is {_shown(new)}"

    def _name(self, at: str) -> str:
        if self._result:
            return f"{at!r} of the result" if at else "the result"
        return f"parameter {at!r}" if at else "the whole"


def _follow(schema: Schema, root: Any) -> Any:
    """The schema that a `$ref` stands for. Raises _TooInvolved if it has siblings or leads to another `$ref`."""
    if "$ref" not in schema:
        return schema
    found = resolve(root, schema["$ref"])
    if schema.keys() - {"$ref", "$defs"} or found is None or (is_object(found) and "$ref" in found):
        raise _TooInvolved
    return found


def _is_looser(key: str, one: Any, other: Any) -> bool:
    """Whether a changed or removed keyword refuses nothing that it accepted before."""
    return key in _ALONE and _is_covered({} if one is UNSET else {key: one}, {} if other is UNSET else {key: other})


def _is_covered(given: Schema, taken: Schema) -> bool:
    """Whether all values of `given` are certainly valid by `taken`."""
    import jsonschema_rs

    if '"$ref"' in pretty([given, taken]):
        return False
    try:
        part, whole = (jsonschema_rs.canonicalize(each, offline=True) for each in (given, taken))
        return whole.covers(part) == jsonschema_rs.canonical.Containment.YES
    except ValueError:  # not a schema, or none that the library can compare
        return False


def _shown(value: Any) -> str:
    text = "not set" if value is UNSET else " ".join(pretty(value).split())
    return text if len(text) <= 100 else text[:100] + "…"


def _below(at: str, name: str) -> str:
    return f"{at}.{name}" if at else name
