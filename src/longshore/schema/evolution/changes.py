"""What differs between two surfaces, and whether callers of the old one can live with the new one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from longshore.schema.evolution.canonical import differences, same
from longshore.schema.evolution.narrowing import narrowed
from longshore.schema.evolution.surface import KEYS, Surface
from longshore.schema.kinds import is_array, is_object

_PROMISES: Final = {"readOnlyHint": True, "idempotentHint": True, "destructiveHint": False}
"""Hints by which clients decide whom to ask and what to repeat, and the value that promises something."""
_ONE: Final = {"tools": "tool", "resources": "resource", "templates": "template", "prompts": "prompt"}


class Change(Struct, frozen=True):
    """One entry that is not what it was."""

    title: str
    broken: list[str]
    """Why callers of the old one fail."""
    safe: list[str]
    """What they won't notice, or can live with."""
    diff: list[str]

    @property
    def breaks(self) -> bool:
        return bool(self.broken)


class Renamed(Struct, frozen=True):
    """What a server understands besides what it lists. Only of one of ours in Python is it known."""

    tools: Mapping[str, str] = {}
    """Earlier name → today's."""
    parameters: Mapping[str, Mapping[str, str]] = {}
    """The same of a tool's parameters."""


NOTHING: Final = Renamed()


def compare(old: Surface, new: Surface, renamed: Renamed = NOTHING) -> list[Change]:
    """Every difference, entry by entry. A part that one of them does not tell of is not compared."""
    parts = [part for part in KEYS if part in old and part in new]
    found = [change for part in parts for change in _compare_part(part, old[part], new[part], renamed)]
    return found + (_compare_instructions(old, new) if "instructions" in old and "instructions" in new else [])


def _compare_part(part: str, old: list[Any], new: list[Any], renamed: Renamed) -> Iterator[Change]:
    before, after = _by_key(part, old), _by_key(part, new)
    for key in sorted(before.keys() | after.keys()):
        title = f"{_ONE[part]} {key}"
        successor = renamed.tools.get(key, "") if part == "tools" else ""
        if key not in after and successor in after:
            yield _compare_renamed(title, before[key], after[successor], successor, renamed)
        elif key not in after:
            yield Change(title, ["it is gone"], [], [])
        elif key not in before:
            yield Change(title, [], ["it is new"], [])
        elif not same(before[key], after[key]):
            yield _compare_entry(part, title, before[key], after[key], renamed.parameters.get(key, {}))


def _compare_renamed(title: str, old: dict[str, Any], new: dict[str, Any], name: str, renamed: Renamed) -> Change:
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
) -> Change:
    broken: list[str] = []
    safe: list[str] = []
    for key in sorted(old.keys() | new.keys()):
        before, after = old.get(key), new.get(key)
        if same(before, after):
            continue
        if part == "tools" and key == "inputSchema":
            before, told = _with_new_names(before, renames)
            safe += told
            broken += narrowed(before, after)
        elif part == "tools" and key == "outputSchema":
            broken += _compare_output(before, after)
        elif part == "prompts" and key == "arguments":
            broken += narrowed(_as_schema(before), _as_schema(after))
        elif key == "annotations":
            broken += _compare_hints(before, after)
        elif key == "execution":
            broken += _compare_tasks(before, after)
        elif key == "mimeType":
            broken.append(f"its media type was {before} and is {after}")
        else:
            safe.append(f"its {key} is another")
    if not broken and not safe:
        safe.append("what callers may send and get is the same or more")
    return Change(title, broken, safe, differences(old, new, "before", "now", 2))


def _with_new_names(schema: Any, renames: Mapping[str, str]) -> tuple[Any, list[str]]:
    """The old input by the new names of parameters whose old ones are still taken, and what is told of that."""
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
    """Results are read by callers, so here more is what breaks: each new result must be one of the old ones."""
    if old is None:
        return []
    if new is None:
        return ["it promises no structured result any more"]
    return narrowed(old, new, result=True)


def _compare_hints(old: Any, new: Any) -> list[str]:
    before, after = old if is_object(old) else {}, new if is_object(new) else {}
    if after.get("readOnlyHint") is True:
        return []  # what changes nothing destroys nothing, and may be repeated: the others say nothing beside it
    return [
        f"it does not promise {hint}: {str(value).lower()} any more"
        for hint, value in _PROMISES.items()
        if before.get(hint) is value and after.get(hint) is not value
    ]


def _compare_tasks(old: Any, new: Any) -> list[str]:
    """Whether it still runs as it was called: by a plain call, or as a task."""
    before, after = (each.get("taskSupport", "forbidden") if is_object(each) else "forbidden" for each in (old, new))
    kept = before == after or (after == "optional" and before in ("forbidden", "required"))
    return [] if kept else [f"as a task it was {before} and is {after}"]


def _as_schema(arguments: Any) -> dict[str, Any]:
    """The arguments of a prompt as the schema of an object: texts, some of them required."""
    named = [each for each in arguments if is_object(each)] if is_array(arguments) else []
    return {
        "type": "object",
        "properties": {str(each.get("name")): {"type": "string"} for each in named},
        "required": [str(each.get("name")) for each in named if each.get("required") is True],
        "additionalProperties": False,
    }


def _compare_instructions(old: Surface, new: Surface) -> list[Change]:
    before, after = old.get("instructions"), new.get("instructions")
    if before == after:
        return []
    return [Change("instructions", [], ["they are others"], differences(before, after, "before", "now", 2))]


def verdict(changes: Sequence[Change]) -> str:
    """How many there are, and how many of them break callers."""
    breaking = sum(each.breaks for each in changes)
    if not changes:
        return "nothing has changed"
    return f"{breaking} of {len(changes)} changes break callers" if breaking else "no change breaks callers"


def worst_first(changes: Sequence[Change]) -> list[Change]:
    return sorted(changes, key=lambda change: not change.breaks)
