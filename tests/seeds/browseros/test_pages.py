"""The pages on BrowserOS's document: what it links to is here, and what no test shows has its reason."""

from __future__ import annotations

import re
from pathlib import Path

from spec.browseros import BROWSEROS_LEFT_OUT

DOCS = Path(__file__).parents[3] / "docs"


def test_the_companion_pages_of_the_document_are_here() -> None:
    """S-84."""
    page = (DOCS / "seeds.md").read_text(encoding="utf-8")
    for companion in ("tool-usage-indicator.md", "mcp-http-transport.md", "mcp-server.md"):
        [line] = [line for line in page.splitlines() if f"`{companion}`" in line]
        links = re.findall(r"\]\(([\w-]+\.md)\)", line)
        assert links, companion
        assert all((DOCS / link).is_file() for link in links)


def test_every_statement_without_a_test_has_its_reason_on_the_page() -> None:
    """S-32, S-58, S-70."""
    page = (DOCS / "seeds.md").read_text(encoding="utf-8")
    for id in BROWSEROS_LEFT_OUT:
        assert f"| {id} |" in page, id
