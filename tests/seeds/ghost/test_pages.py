"""The page on the ContextGraph document: what no test shows has its reason."""

from __future__ import annotations

from pathlib import Path

from spec.ghost import GHOST_LEFT_OUT

PAGE = Path(__file__).parents[3] / "docs" / "seeds.md"


def test_every_statement_without_a_test_has_its_reason_on_the_page() -> None:
    """S-125, S-139, S-141, S-155, S-156."""
    page = PAGE.read_text(encoding="utf-8")
    for id in GHOST_LEFT_OUT:
        assert f"| {id} |" in page, id
