"""Where clients stumble over a tool: each function gives the places."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from longshore.schema.kinds import is_object
from longshore.schema.standards.habit import Find
from longshore.schema.standards.parameter import TYPES, types_of
from longshore.schema.standards.subject import Subject

CURSOR_NAME: Final = 60
"""Characters of the server's and the tool's name together."""
CLAUDE_NAME: Final = 128
"""Characters of a name that Anthropic's API takes."""
_KEY: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}\Z")
_OPENAI_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")


def rootless(subject: Subject) -> Iterable[str]:
    return () if subject.input.get("type") == "object" else ("inputSchema",)


def output_is_odd(subject: Subject) -> Iterable[str]:
    odd = "outputSchema" in subject.tool and (subject.output or {}).get("type") != "object"
    return ("outputSchema",) if odd else ()


def odd_properties(subject: Subject) -> Iterable[str]:
    """Those of the roots alone: what is inside of them no client looks at."""
    for key, schema in (("inputSchema", subject.input), ("outputSchema", subject.output or {})):
        found = schema.get("properties")
        yield from (f"{key}.properties.{name}" for name, each in _items(found) if not is_object(each))


def _items(value: Any) -> list[tuple[str, Any]]:
    return list(value.items()) if is_object(value) else []


def at_root(*keywords: str) -> Find:
    return lambda subject: (f"inputSchema.{keyword}" for keyword in keywords if keyword in subject.input)


def odd_keys(subject: Subject) -> Iterable[str]:
    return (f"inputSchema.properties.{key}" for key in subject.properties if not _KEY.match(key))


def has_odd_type(schema: Any) -> bool:
    return any(each not in TYPES for each in types_of(schema))


def odd_types(subject: Subject) -> Iterable[str]:
    return (node.path for node in subject.inputs() if has_odd_type(node.schema))


def itemless(subject: Subject) -> Iterable[str]:
    return (node.path for node in subject.inputs() if "array" in types_of(node.schema) and "items" not in node.schema)


def without_properties(subject: Subject) -> Iterable[str]:
    root = subject.input
    return ("inputSchema",) if root.get("type") == "object" and "properties" not in root else ()


def too_long_for_cursor(subject: Subject) -> Iterable[str]:
    return ("name",) if len(subject.surface.name) + len(subject.name) > CURSOR_NAME else ()


def refused_name(subject: Subject) -> Iterable[str]:
    return () if _OPENAI_NAME.match(subject.name) else ("name",)


def long_in_claude(subject: Subject) -> Iterable[str]:
    whole = len(f"mcp__{subject.surface.name}__{subject.name}")
    return ("name",) if whole > CLAUDE_NAME else ()


def wordless(subject: Subject) -> Iterable[str]:
    return () if subject.description else ("description",)


def broken(rule: str, *places: str) -> Find:
    """Where a rule is broken: for what is looked at in the same way here as there."""

    def find(subject: Subject) -> Iterable[str]:
        from longshore.schema.standards.linting import find_rule

        found = find_rule(rule)
        faults = found.check(subject) if found is not None and found.check is not None else ()
        return (fault.path for fault in faults if fault.path.startswith(places))

    return find
