"""The keys for people: the JSON Schema, the table in the docs, and the values that `longshore config show` prints.

`docs/longshore.schema.json` and the table in `docs/configuration.md` are this module's output; tests compare them.
"""

from __future__ import annotations

import ast
import re
import sys
from functools import cache
from itertools import pairwise
from typing import Any, cast

from msgspec import Struct, json

from longshore.config.keys import HIDDEN, Key, Section, sections, show
from longshore.config.sections import ENV_MARK, Config, Origin, dotted, origin

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_SECRET_NAME = re.compile(r"password|secret|token|key", re.IGNORECASE)
"""Names of options that may be secrets. A toolset does not declare which are, so some are hidden for nothing."""

_PASSWORD = re.compile(r"(://[^/?#@:\s]*:)\S*(?=@)|([?&](?:password|secret|token|key)=)[^&#\s]*", re.IGNORECASE)
"""In a URL: between user and host, to the last @ since a password may hold one unescaped; or in the query."""


def schema() -> dict[str, Any]:
    """The JSON Schema, draft 2020-12."""
    return {
        "$schema": DIALECT,
        "title": "longshore.toml",
        "description": "The configuration of Longshore, for a project or for a user.",
        "type": "object",
        "additionalProperties": False,
        "properties": {section.name: _section_schema(section) for section in sections().values()},
    }


def schema_text() -> str:
    """The schema as it is checked in."""
    return json.format(json.encode(schema()), indent=2).decode() + "\n"


def _section_schema(section: Section) -> dict[str, Any]:
    words = docs(section.record)
    properties: dict[str, Any] = {}
    for key in section.keys.values():
        default = {"default": key.default} if _has_default(key) else {}
        properties[key.name] = {"description": words[key.name], **key.schema(), **default}
    table = {
        "type": "object",
        "description": _summary(section),
        "additionalProperties": False,
        "properties": properties,
    }
    if not section.named:
        return table
    # The user chooses the names; `sources` checks the same two rules.
    names = {"minLength": 1, "pattern": f"^[^{ENV_MARK}]"}
    return {"type": "object", "propertyNames": names, "additionalProperties": table}


def _has_default(key: Key) -> bool:
    return key.default is not None and key.kind != "table"


def _summary(section: Section) -> str:
    # Limits describes a Python record; its first sentence is what holds for the file too.
    return (section.record.__doc__ or "").split(". ")[0].rstrip(".") + "."


@cache
def docs(record: type[Struct]) -> dict[str, str]:
    """The string below each field, read from the source because Python drops it."""
    with open(str(sys.modules[record.__module__].__file__), encoding="utf-8") as source:
        tree = ast.parse(source.read())
    body = next(node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == record.__name__)
    found: dict[str, str] = {}
    for field, below in pairwise(body):
        match field, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                found[name] = " ".join(text.split())
            case _:
                pass
    return found


def markdown() -> str:
    """Every key as a Markdown table for each section."""
    text: list[str] = []
    for section in sections().values():
        words = docs(section.record)
        title = f"{section.name}.NAME" if section.named else section.name
        text += [f"### `[{title}]`", "", _summary(section), ""]
        text += ["| key | takes | default | what it does |", "|---|---|---|---|"]
        for key in section.keys.values():
            default = ", ".join(key.default) or "none" if key.kind == "list" and key.default is not None else ""
            default = default or (show(key.default) if _has_default(key) else "unset")
            text.append(f"| `{key.name}` | {key.expected} | {default} | {words[key.name]} |")
        example = section.variable(next(iter(section.keys)), "NAME")
        text += ["", f"As a variable: `{example}`, and so on.", ""]
    return "\n".join(text)


# Values


class ConfigValue(Struct, frozen=True):
    """One key. A value of None means unset, HIDDEN that there is one."""

    path: tuple[str, ...]
    value: Any
    origin: Origin

    @property
    def key(self) -> str:
        return dotted(self.path)


def list_values(config: Config) -> list[ConfigValue]:
    """Every key of the fixed sections, and those of the named tables that are set."""
    found: dict[tuple[str, ...], Any] = {}
    for section in sections().values():
        value: Any = getattr(config, section.name)
        tables: dict[str, Any] = value if section.named else {"": value}
        for name, table in tables.items():
            for key in section.keys.values():
                path = (section.name, name, key.name) if section.named else (section.name, key.name)
                value = getattr(table, key.name)
                if key.kind == "table":
                    found |= {(*path, option): each for option, each in _redact(value).items()}
                elif value is not None or not section.named:
                    found[path] = HIDDEN if key.secret and value is not None else _redact(value)
    return [ConfigValue(path, value, origin(config, dotted(path))) for path, value in found.items()]


def _redact(value: Any) -> Any:
    """The value without the passwords of its URLs and without the options that are named like secrets."""
    match value:
        case str():
            return _PASSWORD.sub(lambda found: (found[1] or found[2]) + HIDDEN, value)
        case list():
            items: list[Any] = value  # pyright: ignore[reportUnknownVariableType]
            return [_redact(item) for item in items]
        case dict():
            pairs = cast("dict[str, Any]", value).items()
            return {name: HIDDEN if _SECRET_NAME.search(name) else _redact(item) for name, item in pairs}
        case _:
            return value


def tree(listed: list[ConfigValue]) -> dict[str, Any]:
    """The values as `longshore.toml` nests them, without unset keys."""
    root: dict[str, Any] = {}
    for each in listed:
        if each.value is None:
            continue
        node = root
        for part in each.path[:-1]:
            node = node.setdefault(part, {})
        node[each.path[-1]] = each.value
    return root
