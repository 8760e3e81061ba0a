"""`docs/dependencies.md` has a line for each dependency, and none for what is none."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def rows(heading: str) -> set[str]:
    """The packages in the first column of the table below a heading."""
    page = (ROOT / "docs/dependencies.md").read_text()
    part = page.split(heading, 1)[1].split("\n## ", 1)[0]
    cells = [line.split("|")[1] for line in part.splitlines() if line.startswith("| ")]
    return {name.strip() for cell in cells[1:] for name in cell.split(",")}


def names(requirements: list[str]) -> set[str]:
    found = (re.match(r"[A-Za-z0-9-]+", line) for line in requirements if not line.startswith(("#", "-")))
    return {match[0] for match in found if match}


def test_every_dependency_has_its_line() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    described = names(project["dependencies"]) | {f"`longshore[{name}]`" for name in extras} | {"extra"}
    assert rows("# Dependencies") == described


def test_every_tool_of_development_has_its_line() -> None:
    lines = [
        line
        for path in ("serve.in", "dev.in", "fuzz.in", "site.in")
        for line in (ROOT / "requirements" / path).read_text().splitlines()
    ]
    assert rows("## For development only") == names(lines)
