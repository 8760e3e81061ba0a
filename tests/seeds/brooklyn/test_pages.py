"""The pages on Brooklyn's documents: the commands, the note on the former form, and a reason for what no test shows."""

from __future__ import annotations

from pathlib import Path

from longshore.dialects.brooklyn import DOCUMENT_TOOLS
from spec.brooklyn import BROOKLYN_LEFT_OUT

from .document import text_of

DOCS = Path(__file__).parents[3] / "docs"


def section() -> str:
    """The section on Brooklyn."""
    page = (DOCS / "seeds.md").read_text(encoding="utf-8")
    return page.partition("\n## Brooklyn\n")[2].partition("\n## ")[0]


def test_every_statement_without_a_test_has_its_reason_on_the_page() -> None:
    """S-1, S-28, S-85, S-111, S-121; and the part of S-106 that is not there yet."""
    for id in (*BROOKLYN_LEFT_OUT, "S-106"):
        assert f"| {id} |" in section(), id


def test_the_former_form_is_a_note_for_debugging() -> None:
    """S-27."""
    [note] = [part for part in section().split("\n### ") if part.startswith("The former form")]
    assert "before 1.4.34" in note and "brooklyn check protocol -- COMMAND" in note


def test_the_page_has_the_lines_of_the_documents() -> None:
    """S-20, S-111."""
    lines = [line for name in ("manual_test.sh", "claude_code.sh") for line in text_of(name).splitlines()]
    shown = [line for line in lines if line.startswith(("echo", "claude mcp add"))]
    assert len(shown) == 2
    assert all(f"$ {line}\n" in section() for line in shown)


def test_each_tool_of_the_list_is_on_the_page_of_the_other_names() -> None:
    page = (DOCS / "browser-aliases.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in page for name in DOCUMENT_TOOLS)
