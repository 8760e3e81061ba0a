"""Short descriptions of tools, for the discovery toolset and the command line."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from longshore.registry.tool import Entry
from longshore.schema.kinds import is_object

SUMMARY_CHARACTERS = 160
GENERAL = "general"


class ToolLine(Struct):
    """One tool in a list."""

    name: str
    category: str
    summary: str


def first_sentence(text: str) -> str:
    """The first sentence of a description, cut to one line."""
    line = " ".join(text.split("\n\n")[0].split())
    end = line.find(". ")
    line = line[: end + 1] if end >= 0 else line
    return line if len(line) <= SUMMARY_CHARACTERS else line[: SUMMARY_CHARACTERS - 1] + "…"


def category_of(entry: Entry) -> str:
    """The declared category, else the toolset's name."""
    return entry.category or (entry.toolset.name if entry.toolset is not None else GENERAL)


def tool_line(entry: Entry) -> ToolLine:
    return ToolLine(entry.name, category_of(entry), first_sentence(entry.describe().get("description", "")))


def count_categories(entries: Iterable[Entry]) -> str:
    """The categories with the number of their tools: `browser (12), discovery (4)`."""
    counts: dict[str, int] = {}
    for entry in entries:
        counts[category_of(entry)] = counts.get(category_of(entry), 0) + 1
    return ", ".join(f"{name} ({count})" for name, count in counts.items())


def find(entries: Iterable[Entry], category: str | None, search: str | None) -> list[ToolLine]:
    """The tools of a category whose names, tags, description or help hold every word of the search."""
    words = (search or "").lower().split()
    found: list[ToolLine] = []
    for entry in entries:
        if category is not None and category_of(entry) != category:
            continue
        said = (entry.describe().get("description", ""), entry.help or "")
        text = " ".join([entry.name, *entry.aliases, *entry.tags, *said]).lower()
        if all(word in text for word in words):
            found.append(tool_line(entry))
    return found


def explain(entry: Entry, called: str = "") -> str:
    """Everything about one tool, as text: description, arguments, result, errors.

    The long help is only here: every client reads `tools/list` whole. `called` may be an alias with its own parameters.
    """
    from inspect import cleandoc  # takes 14 ms

    described = entry.describe()
    if called in entry.aliases and entry.toolset is not None and entry.toolset.lazy is not None:
        entry.toolset.lazy.load_now()  # only the code knows the parameters of an alias
    if called in entry.alias_migrations:
        return _explain_alias(entry, called, described | entry.alias_migrations[called].describe())
    parts = [f"{entry.name}: {described.get('description', 'no description')}"]
    if entry.help:
        parts += ["", cleandoc(entry.help), ""]
    if entry.category or entry.toolset is not None:
        parts.append(f"Category: {category_of(entry)}")
    if entry.aliases:
        parts.append(f"Earlier names: {', '.join(entry.aliases)}")
    parts += _contract(entry, described)
    if entry.examples:
        parts += ["Examples:", *(f"  {_json(example)}" for example in entry.examples)]
    return "\n".join(parts)


def _explain_alias(entry: Entry, alias: str, described: dict[str, Any]) -> str:
    """An alias with its own parameters. Help and examples are left out: they are about the tool's."""
    first = f"{alias}: {described['description'] or 'no description'}"
    return "\n".join([first, f"It is now {entry.name}.", *_contract(entry, described)])


def _contract(entry: Entry, described: dict[str, Any]) -> list[str]:
    """Lines on the arguments, the result, the effects and the errors."""
    arguments = argument_lines(described.get("inputSchema", {}))
    parts = ["Takes:" if arguments else "Takes no arguments."]
    parts += [f"  {name} ({kind}){': ' if text else ''}{text}" for name, kind, text in arguments]
    if "outputSchema" in described:
        parts.append(f"Gives: {kind_of(described['outputSchema'], described['outputSchema'])}")
    if entry.effects is not None:
        parts.append(f"Effects: {entry.effects}{', idempotent' if entry.idempotent else ''}")
    if entry.errors:
        parts += ["Errors:", *(f"  {name}: {text}" for name, text in entry.errors.items())]
    return parts


def argument_lines(schema: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Each argument: its name, its kind with `required` or its default, and its description."""
    required = schema.get("required", [])
    lines: list[tuple[str, str, str]] = []
    for name, given in schema.get("properties", {}).items():
        part: dict[str, Any] = given if is_object(given) else {}
        default = f"default {_json(part['default'])}" if "default" in part else "optional"
        need = "required" if name in required else default
        lines.append((name, f"{kind_of(part, schema)}, {need}", part.get("description", "")))
    return lines


def kind_of(schema: Any, root: dict[str, Any], within: tuple[str, ...] = ()) -> str:
    """A schema in a few words. `root` holds its definitions, `within` the references that led to it."""
    match schema:
        case {"enum": values}:
            return "one of " + ", ".join(_json(value) for value in values)
        case {"const": value}:
            return f"one of {_json(value)}"
        case {"$ref": str(ref)} if ref in within:
            return ref.rpartition("/")[2]  # a recursive schema: only its name
        case {"$ref": str(ref)}:
            from longshore.schema.walk import resolve

            return kind_of(resolve(root, ref), root, (*within, ref))
        case {"anyOf": parts} | {"oneOf": parts}:
            return " or ".join(kind_of(part, root, within) for part in parts)
        case {"type": [*kinds]}:
            return " or ".join(str(kind) for kind in kinds)
        case {"type": "array"}:
            return f"list of {kind_of(schema.get('items', {}), root, within)}"
        case {"type": "object", "properties": fields} if fields:
            return "object with " + ", ".join(fields)
        case {"type": kind}:
            return str(kind)
        case _:
            return "any value"


def _json(value: Any) -> str:
    from longshore.schema.output import encode

    return encode(value).decode()
