"""The JSON Schema and the reference table of `longshore.toml`, from the Structs and the words below their fields.

`docs/longshore.schema.json` and the table in `docs/configuration.md` are this module's output; tests keep them so.
"""

from __future__ import annotations

import ast
import sys
from itertools import pairwise
from typing import Any

from msgspec import Struct, json

from longshore.config.environ import variable
from longshore.config.keys import Key, Section, sections
from longshore.config.kinds import Free, Several, show
from longshore.config.names import ENV_MARK

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema() -> dict[str, Any]:
    """The JSON Schema, draft 2020-12."""
    return {
        "$schema": DIALECT,
        "title": "longshore.toml",
        "description": "The configuration of Longshore, for a project or for a user.",
        "type": "object",
        "additionalProperties": False,
        "properties": {section.name: _section(section) for section in sections().values()},
    }


def schema_text() -> str:
    """The schema as it is checked in."""
    return json.format(json.encode(schema()), indent=2).decode() + "\n"


def _section(section: Section) -> dict[str, Any]:
    words = docs(section.record)
    table = {
        "type": "object",
        "description": _summary(section),
        "additionalProperties": False,
        "properties": {key.name: _key(key, words[key.name]) for key in section.keys.values()},
    }
    if not section.named:
        return table
    # The names are the user's; the two rules are those that `walk` holds them to.
    names = {"minLength": 1, "pattern": f"^[^{ENV_MARK}]"}
    return {"type": "object", "propertyNames": names, "additionalProperties": table}


def _key(key: Key, words: str) -> dict[str, Any]:
    default = {"default": key.default} if _has_default(key) else {}
    return {"description": words, **key.kind.schema(), **default}


def _has_default(key: Key) -> bool:
    return key.default is not None and not isinstance(key.kind, Free)


def _summary(section: Section) -> str:
    # Limits describes a Python record; its first sentence is what holds for the file too.
    return (section.record.__doc__ or "").split(". ")[0].rstrip(".") + "."


def docs(record: type[Struct]) -> dict[str, str]:
    """The string below each field. Python drops them, so they are read from the source."""
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
    return "\n\n".join(_markdown(section) for section in sections().values()) + "\n"


def _markdown(section: Section) -> str:
    words = docs(section.record)
    rows = [_row(key, words[key.name]) for key in section.keys.values()]
    title = f"{section.name}.NAME" if section.named else section.name
    head = f"### `[{title}]`\n\n{_summary(section)}\n\n| key | takes | default | what it does |\n|---|---|---|---|\n"
    example = variable(section, next(iter(section.keys)), "NAME")
    return head + "\n".join(rows) + f"\n\nAs a variable: `{example}`, and so on."


def _row(key: Key, words: str) -> str:
    return f"| `{key.name}` | {key.kind.expected} | {_default(key)} | {words} |"


def _default(key: Key) -> str:
    if not _has_default(key):
        return "unset"
    return ", ".join(key.default) or "none" if isinstance(key.kind, Several) else show(key.default)
