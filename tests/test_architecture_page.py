"""docs/architecture.md names modules that exist, and docs/glossary.md stays short."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "longshore"


def test_every_module_named_in_the_architecture_exists() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    named = set(re.findall(r"`((?:\w+/)*\w+\.py)`", text))
    folders = (SOURCE, SOURCE / "transports" / "http")
    assert len(named) > 20
    assert [name for name in sorted(named) if not any((folder / name).exists() for folder in folders)] == []


def test_every_package_stands_in_the_architecture() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    packages = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    assert [name for name in sorted(packages) if f"`{name}" not in text] == []


def test_the_glossary_has_at_most_25_terms() -> None:
    rows = re.findall(r"^\| (?!term|-)", (ROOT / "docs" / "glossary.md").read_text(), re.MULTILINE)
    assert 10 < len(rows) <= 25
