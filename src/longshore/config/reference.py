"""The keys for people: the JSON Schema, the table in the docs, and the values that `longshore config show` prints.

`toolsets` are those of a server; their options are keys too.

`docs/longshore.schema.json` and the table in `docs/configuration.md` are this module's output; tests compare them.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from typing import Any, TypeAlias, cast

from msgspec import Struct, json
from msgspec.structs import asdict

from longshore.config.keys import HIDDEN, SECRET_NAME, Section, sections, show, toolset_section
from longshore.config.load import ConfiguredToolset
from longshore.config.sections import ENV_MARK, Config, Origin, dotted, origin, variable_of
from longshore.config.sources import Path, nest
from longshore.config.tools import toolset_config
from longshore.registry.options import RESERVED

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_PASSWORD = re.compile(r"(://[^/?#@:\s]*:)\S*(?=@)|([?&](?:password|secret|token|key)=)[^&#\s]*", re.IGNORECASE)
"""In a URL: between user and host, to the last @ since a password may hold one unescaped; or in the query."""


Toolsets: TypeAlias = Mapping[str, ConfiguredToolset]
NO_TOOLSETS: Toolsets = {}


def schema(toolsets: Toolsets = NO_TOOLSETS) -> dict[str, Any]:
    """The JSON Schema, draft 2020-12."""
    names = {"minLength": 1, "pattern": f"^[^{ENV_MARK}]"}  # of the tables that users name
    properties = {section.name: _table_schema(section) for section in sections().values()}
    for name in [name for name, section in sections().items() if section.named]:
        properties[name] = {"type": "object", "propertyNames": names, "additionalProperties": properties[name]}
    # A toolset that the server does not have may have any options; `sources` reports it.
    properties["toolsets"]["additionalProperties"]["additionalProperties"] = True
    known = {section.path[-1]: _table_schema(section) for section in _tables(toolsets)}
    properties["toolsets"] |= {"properties": known} if known else {}
    return {
        "$schema": DIALECT,
        "title": "longshore.toml",
        "description": "The configuration of Longshore, for a project or for a user.",
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
    }


def schema_text(toolsets: Toolsets = NO_TOOLSETS) -> str:
    """The schema as it is checked in."""
    return json.format(json.encode(schema(toolsets)), indent=2).decode() + "\n"


def _tables(toolsets: Toolsets) -> list[Section]:
    """The table of each toolset that has options."""
    types = {name: toolset.options_type for name, toolset in toolsets.items()}
    return [toolset_section(name, options) for name, options in types.items() if options is not None]


def _table_schema(section: Section) -> dict[str, Any]:
    words = _words(section)
    properties: dict[str, Any] = {}
    for key in section.keys.values():
        default = {} if key.default is None else {"default": key.default}
        properties[key.name] = {"description": words.get(key.name, ""), **key.schema(), **default}
    return {
        "type": "object",
        "description": _summary(section),
        "additionalProperties": False,
        "properties": properties,
    }


def _summary(section: Section) -> str:
    # Limits describes a Python record; its first sentence is what holds for the file too.
    return (section.record.__doc__ or "").split(". ")[0].rstrip(".") + "."


def _words(section: Section) -> dict[str, str]:
    """The purpose of each key. The table of a toolset has the keys of every toolset too."""
    return {**docs(sections()[section.name].record), **docs(section.record)}


@cache
def docs(record: type[Struct]) -> dict[str, str]:
    """The string below each field, read from the source because Python drops it."""
    file = getattr(sys.modules.get(record.__module__), "__file__", None)
    if file is None:
        return {}
    with open(file, encoding="utf-8") as source:
        tree = ast.parse(source.read())
    bodies = (node.body for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.name == record.__name__)
    found: dict[str, str] = {}
    for field, below in pairwise(next(bodies, ())):
        match field, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                found[name] = " ".join(text.split())
            case _:
                pass
    return found


def markdown(toolsets: Toolsets = NO_TOOLSETS) -> str:
    """Every key as a Markdown table for each section, and for each toolset that has options."""
    text: list[str] = []
    for section in (*sections().values(), *_tables(toolsets)):
        words = _words(section)
        title = dotted(section.path) + (".NAME" if section.named else "")
        text += [f"### `[{title}]`", "", _summary(section), ""]
        text += ["| key | takes | default | what it does |", "|---|---|---|---|"]
        for key in section.keys.values():
            default = "unset" if key.default is None else show(key.default)
            if key.kind in ("list", "folders") and key.default is not None:
                default = ", ".join(key.default) or "none"
            text.append(f"| `{key.name}` | {key.expected} | {default} | {words.get(key.name, '')} |")
        example = variable_of((*section.path, *(["NAME"] if section.named else []), next(iter(section.keys))))
        text += ["", f"As a variable: `{example}`, and so on.", ""]
    return "\n".join(text)


# Values


class ConfigValue(Struct, frozen=True):
    """One key. A value of None means unset, HIDDEN that there is one."""

    path: Path
    value: Any
    origin: Origin

    @property
    def key(self) -> str:
        return dotted(self.path)


def list_values(config: Config, toolsets: Toolsets = NO_TOOLSETS) -> list[ConfigValue]:
    """Every key of the fixed sections, every option of the toolsets, and what else is set in named tables."""
    found: dict[Path, Any] = {}
    known = {section.path[-1]: section for section in _tables(toolsets)}
    for section in sections().values():
        value: Any = getattr(config, section.name)
        for name, table in value.items() if section.named else [("", value)]:
            path = (section.name, name) if section.named else section.path
            values = asdict(table)
            values |= values.pop("options", {})
            listed = _list_table(known.get(name, section), path, values)
            found |= {path: each for path, each in listed if not section.named or dotted(path) in config.origins}
    for name, section in known.items():
        options = {key.name: key.default for key in section.keys.values() if key.name not in RESERVED}
        found |= _list_table(section, section.path, options | toolset_config(config, name).options)
    return [ConfigValue(path, value, origin(config, dotted(path))) for path, value in found.items()]


def _list_table(section: Section, path: Path, values: dict[str, Any]) -> Iterator[tuple[Path, Any]]:
    for name, value in _redact({name: value for name, value in values.items() if name not in section.keys}).items():
        yield (*path, name), value
    for key in section.keys.values():
        value = values.get(key.name)
        if key.kind == "table":
            yield from (((*path, key.name, entry), each) for entry, each in _redact(value or {}).items())
        elif key.name in values:
            yield (*path, key.name), HIDDEN if key.secret and value is not None else _redact(value)


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
            return {name: HIDDEN if SECRET_NAME.search(name) else _redact(item) for name, item in pairs}
        case _:
            return value


def tree(listed: list[ConfigValue]) -> dict[str, Any]:
    """The values as `longshore.toml` nests them, without unset keys."""
    return nest((each.path, each.value) for each in listed if each.value is not None)
