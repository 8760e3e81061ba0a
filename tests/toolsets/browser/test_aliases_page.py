"""The page docs/browser-aliases.md, which lists what can be called beside the listed tools."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from .test_tools import app

PAGE = Path(__file__).parents[3] / "docs" / "browser-aliases.md"


def parameters(schema: dict[str, Any]) -> str:
    """As the page shows them: `a*` is required, `b=1` has a default."""
    shown = list[str]()
    for name, given in schema["properties"].items():
        default = given.get("default")
        mark = "*" if name in schema.get("required", ()) else "" if default is None else f"={_text(default)}"
        shown.append(f"`{name}{mark}`")
    return ", ".join(shown) or "none"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:g}" if type(value) is float else json.dumps(value)


def test_the_page_has_each_name_with_its_parameters() -> None:
    declared = dict[str, str]()
    for tool in app().engine.tools.values():
        if not tool.listed:
            declared[tool.name] = parameters(tool.describe()["inputSchema"])
        for alias in tool.aliases:
            migration = tool.alias_migrations.get(alias)
            found = tool.describe() if migration is None else migration.describe()
            declared[alias] = parameters(found["inputSchema"])
    rows = re.findall(r"^\| `(\w+)` \| ([^|]*) \|", PAGE.read_text(), re.MULTILINE)
    assert dict(rows) == declared and len(rows) == len(declared)
