"""The page about the rules."""

from __future__ import annotations

from pathlib import Path

from longshore.schema.lint.page import render

PAGE = Path(__file__).parents[3] / "docs/lint-rules.md"


def test_the_page_is_what_the_rules_say() -> None:
    """Write it with `.venv/bin/python -m longshore.schema.lint.page > docs/lint-rules.md`."""
    assert PAGE.read_text(encoding="utf-8") == render() + "\n"
