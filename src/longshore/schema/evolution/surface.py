"""What a server offers its callers, as one value: the same for the same server, whatever the order of declaration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import itemgetter
from typing import Any, Final

import msgspec

from longshore.limits import DEFAULT_LIMITS
from longshore.schema.evolution.canonical import pretty
from longshore.schema.kinds import is_array, is_object
from longshore.wire.depth import too_deep

Surface = dict[str, Any]

KEYS: Final = {"tools": "name", "resources": "uri", "templates": "uriTemplate", "prompts": "name"}
"""The parts, and what callers know an entry by."""


class NoSurface(ValueError):
    """A text that is no surface of a server. What is wrong is said as of a file: `it can't be read: …`."""


def make_surface(parts: Mapping[str, Iterable[dict[str, Any]]], instructions: str | None) -> Surface:
    """The surface of what a server lists, in an order that is always the same."""
    found: Surface = {}
    for part, key in KEYS.items():
        keyed = [(str(record.get(key, "")), _settled(record)) for record in parts.get(part, ())]
        found[part] = [record for _, record in sorted(keyed, key=itemgetter(0))]
    found["instructions"] = instructions
    return found


def read_offers(value: Any) -> Surface | None:
    """What any list of a server's tells: a surface, an answer to `tools/list`, an array of tools; None for others.

    It has only the parts that the list tells of.
    """
    if is_array(value):
        return _partial({"tools": value})
    if not is_object(value):
        return None
    whole: dict[str, Any] = value["result"] if is_object(value.get("result")) else value
    server = whole.get("server")  # as `longshore list --json` has it
    parts = {"templates": whole.get("resourceTemplates"), **(server if is_object(server) else {}), **whole}
    return _partial(parts) if any(is_array(parts.get(part)) for part in KEYS) else None


def _partial(parts: dict[str, Any]) -> Surface:
    records = {part: [each for each in parts[part] if is_object(each)] for part in KEYS if is_array(parts.get(part))}
    whole = make_surface(records, parts.get("instructions"))
    return {key: each for key, each in whole.items() if key in records or (key == "instructions" and key in parts)}


def is_surface(value: Any) -> bool:
    """Whether a value has all the parts of one."""
    return is_object(value) and all(is_array(value.get(part)) for part in KEYS)


def read_surface_file(text: bytes) -> Surface:
    """What a file holds. Raises NoSurface."""
    if too_deep(text, DEFAULT_LIMITS.depth):
        raise NoSurface(f"can't be read: nesting is deeper than {DEFAULT_LIMITS.depth} levels")
    try:
        found = msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as problem:
        raise NoSurface(f"can't be read: {problem}") from None
    if not is_surface(found):
        raise NoSurface(f"is no surface of a server: that has the lists {', '.join(KEYS)}")
    surface: Surface = found
    return surface


def write_surface_file(surface: Surface) -> bytes:
    """The bytes of the file that keeps it."""
    return (pretty(surface) + "\n").encode()


def count(surface: Surface) -> str:
    """How much of what it holds."""
    return ", ".join(f"{part}: {len(surface[part])}" for part in KEYS if surface[part]) or "nothing"


def _settled(value: Any) -> Any:
    """A value in which what has no order is sorted."""
    if is_object(value):
        return {key: _sorted(each) if key == "required" else _settled(each) for key, each in value.items()}
    return [_settled(each) for each in value] if is_array(value) else value


def _sorted(required: Any) -> Any:
    if is_array(required) and all(isinstance(name, str) for name in required):
        return sorted(required)
    return _settled(required)
