"""Comparing what a server offered with what it offers now: every difference, and whether it breaks callers.

A surface is the dict that `longshore schema snapshot` and `assert_surface` keep in a file: the four lists, sorted, and
the instructions. The same server has the same surface whatever the order of declaration.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import unified_diff
from itertools import takewhile
from operator import itemgetter
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from longshore.limits import DEFAULT_LIMITS
from longshore.schema.compatibility import incompatibilities, pretty, same
from longshore.schema.kinds import is_array, is_object
from longshore.wire.codec import too_deep

Surface = dict[str, Any]

KEYS: Final = {"tools": "name", "resources": "uri", "templates": "uriTemplate", "prompts": "name"}
"""Part of a surface → the member that identifies an entry."""
MOST_LINES: Final = 500
"""Lines of each side that are compared, from the first difference on. The time grows with their square: 30 ms."""
_SINGULAR: Final = {"tools": "tool", "resources": "resource", "templates": "template", "prompts": "prompt"}
_PROMISES: Final = {"readOnlyHint": True, "idempotentHint": True, "destructiveHint": False}
"""Hint → the value that promises something. Clients decide by them whether to ask the user and what to repeat."""


# -- surfaces


class NotASurface(ValueError):
    """The text is not a surface. The message continues a file's name: `can't be read: …`."""


def make_surface(parts: Mapping[str, Iterable[dict[str, Any]]], instructions: str | None) -> Surface:
    """The surface of what a server lists."""
    found: Surface = {}
    for part, key in KEYS.items():
        keyed = [(str(record.get(key, "")), _with_sorted_required(record)) for record in parts.get(part, ())]
        found[part] = [record for _, record in sorted(keyed, key=itemgetter(0))]
    found["instructions"] = instructions
    return found


def read_lists(value: Any) -> dict[str, Any] | None:
    """The lists in a JSON value, as they came: a surface, an answer to `tools/list`, `longshore list --json` or an
    array of tools. It has the parts, and `name` and `instructions` where the value has them; None: it has no list."""
    if is_array(value):
        return {"tools": value}
    if not is_object(value):
        return None
    whole: dict[str, Any] = value["result"] if is_object(value.get("result")) else value
    server: Any = whole.get("server")  # in `longshore list --json`
    about: dict[str, Any] = server if is_object(server) else {}
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
    """How many entries each part has: `tools: 3, prompts: 1`."""
    return ", ".join(f"{part}: {len(surface[part])}" for part in KEYS if surface[part]) or "nothing"


def _with_sorted_required(value: Any) -> Any:
    """The value with every `required` sorted: its order has no meaning."""
    if is_object(value):
        return {
            key: sorted(each) if key == "required" and _is_strings(each) else _with_sorted_required(each)
            for key, each in value.items()
        }
    return [_with_sorted_required(each) for each in value] if is_array(value) else value


def _is_strings(value: Any) -> bool:
    return is_array(value) and all(isinstance(each, str) for each in value)


def differences(old: Any, new: Any, before: str, now: str, around: int = 3) -> list[str]:
    """A unified diff of two JSON values. Of very long ones it begins at the first difference and is cut."""
    sides = [pretty(old).splitlines(), pretty(new).splitlines()]
    longest = max(map(len, sides))
    start = max(0, _count_common(*sides) - around) if longest > MOST_LINES else 0
    one, other = (side[start : start + MOST_LINES] for side in sides)
    more = [f"… and {longest - start - MOST_LINES:,} lines that were not compared"]
    found = list(unified_diff(one, other, before, now, lineterm="", n=around))
    return found + more if longest - start > MOST_LINES else found


def _count_common(one: list[str], other: list[str]) -> int:
    """The number of lines before the first difference."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


# -- changes


class SurfaceChange(Struct, frozen=True):
    """One entry that differs."""

    title: str
    broken: list[str]
    """Why calls made for the old entry fail."""
    safe: list[str]
    """Differences that such calls survive."""
    diff: list[str]

    @property
    def breaks(self) -> bool:
        return bool(self.broken)


class Renamed(Struct, frozen=True):
    """Earlier names that a server still accepts. Only a server loaded in Python says so."""

    tools: Mapping[str, str] = {}
    """Earlier name → name."""
    parameters: Mapping[str, Mapping[str, str]] = {}
    """Tool → earlier name of a parameter → name."""


NOTHING: Final = Renamed()


def compare(old: Surface, new: Surface, renamed: Renamed = NOTHING) -> list[SurfaceChange]:
    """Every difference, entry by entry. A part that one of them lacks is not compared."""
    parts = [part for part in KEYS if part in old and part in new]
    found = [change for part in parts for change in _compare_part(part, old[part], new[part], renamed)]
    return found + (_compare_instructions(old, new) if "instructions" in old and "instructions" in new else [])


def _compare_part(part: str, old: list[Any], new: list[Any], renamed: Renamed) -> Iterator[SurfaceChange]:
    before, after = _by_key(part, old), _by_key(part, new)
    for key in sorted(before.keys() | after.keys()):
        title = f"{_SINGULAR[part]} {key}"
        successor = renamed.tools.get(key, "") if part == "tools" else ""
        if key not in after and successor in after:
            yield _compare_renamed(title, before[key], after[successor], successor, renamed)
        elif key not in after:
            yield SurfaceChange(title, ["it was removed"], [], [])
        elif key not in before:
            yield SurfaceChange(title, [], ["it is new"], [])
        elif not same(before[key], after[key]):
            yield _compare_entry(part, title, before[key], after[key], renamed.parameters.get(key, {}))


def _compare_renamed(
    title: str, old: dict[str, Any], new: dict[str, Any], name: str, renamed: Renamed
) -> SurfaceChange:
    found = _compare_entry("tools", title, {**old, "name": name}, new, renamed.parameters.get(name, {}))
    return replace(found, safe=[f"it is now {name}, and can be called by its old name, too", *found.safe])


def _by_key(part: str, entries: list[Any]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for entry in entries:
        record: dict[str, Any] = entry if is_object(entry) else {}
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
        if part == "tools" and key == "inputSchema":
            before, renamed = _with_new_names(before, renames)
            safe += renamed
            broken += incompatibilities(before, after)
        elif part == "tools" and key == "outputSchema":
            broken += _compare_output(before, after)
        elif part == "prompts" and key == "arguments":
            broken += incompatibilities(_as_schema(before), _as_schema(after))
        elif key == "annotations":
            broken += _compare_hints(before, after)
        elif key == "execution":
            broken += _compare_tasks(before, after)
        elif key == "mimeType":
            broken.append(f"its media type was {before} and is {after}")
        else:
            safe.append(f"its {key} changed")
    if not broken and not safe:
        safe.append("what callers may send and get is the same or more")
    return SurfaceChange(title, broken, safe, differences(old, new, "before", "now", 2))


def _with_new_names(schema: Any, renames: Mapping[str, str]) -> tuple[Any, list[str]]:
    """The old input schema with the new names of renamed parameters, and a sentence about each."""
    properties: Any = schema.get("properties") if is_object(schema) else None
    if not is_object(properties):
        return schema, []
    known = {old: new for old, new in renames.items() if old in properties and new not in properties}
    required: Any = schema.get("required")
    found = {**schema, "properties": {known.get(name, name): each for name, each in properties.items()}}
    if is_array(required):
        found["required"] = [known.get(name, name) for name in required if isinstance(name, str)]
    return found, [f"parameter {old!r} is now {new!r}, and is taken by its old name, too" for old, new in known.items()]


def _compare_output(old: Any, new: Any) -> list[str]:
    """Why callers can't read the new results: each must also be valid by the old schema."""
    if old is None:
        return []
    if new is None:
        return ["it promises no structured result any more"]
    return incompatibilities(old, new, result=True)


def _compare_hints(old: Any, new: Any) -> list[str]:
    before, after = old if is_object(old) else {}, new if is_object(new) else {}
    if after.get("readOnlyHint") is True:
        return []  # implies the other two promises
    return [
        f"it does not promise {hint}: {str(value).lower()} any more"
        for hint, value in _PROMISES.items()
        if before.get(hint) is value and after.get(hint) is not value
    ]


def _compare_tasks(old: Any, new: Any) -> list[str]:
    """Why calls made as before, plain or as a task, are refused."""
    before, after = (each.get("taskSupport", "forbidden") if is_object(each) else "forbidden" for each in (old, new))
    works = before == after or (after == "optional" and before in ("forbidden", "required"))
    return [] if works else [f"as a task it was {before} and is {after}"]


def _as_schema(arguments: Any) -> dict[str, Any]:
    """The arguments of a prompt as the schema of an object of strings."""
    named = [each for each in arguments if is_object(each)] if is_array(arguments) else []
    return {
        "type": "object",
        "properties": {str(each.get("name")): {"type": "string"} for each in named},
        "required": [str(each.get("name")) for each in named if each.get("required") is True],
        "additionalProperties": False,
    }


def _compare_instructions(old: Surface, new: Surface) -> list[SurfaceChange]:
    before, after = old.get("instructions"), new.get("instructions")
    if before == after:
        return []
    return [SurfaceChange("instructions", [], ["they changed"], differences(before, after, "before", "now", 2))]


def verdict(changes: Sequence[SurfaceChange]) -> str:
    """One sentence: how many changes break callers."""
    breaking = sum(each.breaks for each in changes)
    if not changes:
        return "nothing has changed"
    return f"{breaking} of {len(changes)} changes break callers" if breaking else "no change breaks callers"


def worst_first(changes: Sequence[SurfaceChange]) -> list[SurfaceChange]:
    return sorted(changes, key=lambda change: not change.breaks)
