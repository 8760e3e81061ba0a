"""The links of README.md and docs/ lead to files and headings that exist, and docs/README.md names every page."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from urllib.parse import unquote

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^()\s]+)\)")
HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)
ELSEWHERE = ("http://", "https://", "mailto:")


def prose(page: Path) -> str:
    return FENCE.sub("", page.read_text(encoding="utf-8"))


@cache
def anchors(page: Path) -> frozenset[str]:
    """The fragments of a page's headings, as GitHub makes them: a second heading of one name gets -1."""
    found: dict[str, int] = {}
    names = set(re.findall(r'<a (?:id|name)="([^"]+)"', page.read_text(encoding="utf-8")))
    for heading in HEADING.findall(prose(page)):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
        names.add(f"{slug}-{found[slug]}" if slug in found else slug)
        found[slug] = found.get(slug, 0) + 1
    return frozenset(names)


def broken(page: Path) -> list[str]:
    text = re.sub(r"`[^`\n]*`", "", prose(page))
    return [link for link in LINK.findall(text) if not link.startswith(ELSEWHERE) and not leads_somewhere(page, link)]


def leads_somewhere(page: Path, link: str) -> bool:
    path, _, fragment = unquote(link).partition("#")
    target = page.parent / path if path else page
    return target.exists() and (not fragment or fragment in anchors(target))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_lead_to_files_and_headings_that_exist(page: Path) -> None:
    assert broken(page) == []


def test_a_link_to_a_file_or_heading_that_is_not_there_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A `b` c\n\n## A\n\n## A\n\n[1](none.md) [2](#a-b-c) [3](#a-1) [4](page.md#d) [5](#a-2)\n")
    assert broken(page) == ["none.md", "page.md#d", "#a-2"]


def test_the_index_names_every_page() -> None:
    linked = {link.partition("#")[0] for link in LINK.findall((DOCS / "README.md").read_text(encoding="utf-8"))}
    pages = {page.name for page in DOCS.glob("*.md")} - {"README.md"}
    assert pages - linked == set()
