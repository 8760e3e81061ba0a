"""The site that `make site` builds: strictly, with links that lead somewhere, and a search that works from disk."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest
from scripts.site_markdown import on_page_markdown

from longshore.toolsets.browser.executable import BrowserUnavailable, find_browser, install_line
from services import skip
from toolsets.browser.page import open_page
from waiting import eventually

ROOT = Path(__file__).parents[2]
BUILD_SECONDS = 150.0
"""Five seconds' work of one core, while six workers share two."""
FETCHED = {"script": "src", "link": "href", "img": "src", "iframe": "src"}


class Links(HTMLParser):
    """The ids of a document, its links, and what a browser fetches to show it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.ids |= {values[name] for name in ("id", "name") if values.get(name)}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag in FETCHED and values.get(FETCHED[tag]):
            self.fetched.append(values[FETCHED[tag]])


@cache
def read(page: Path) -> Links:
    return Links(page.read_text(encoding="utf-8"))


def leads_somewhere(page: Path, link: str) -> bool:
    path, _, fragment = unquote(link).partition("#")
    target = page.parent / path if path else page
    return target.is_file() and (not fragment or target.suffix != ".html" or fragment in read(target).ids)


def broken(site: Path) -> list[str]:
    """Links to what is not there, and whatever would be fetched from elsewhere. 404.html is for web servers."""
    found: list[str] = []
    for page in sorted(set(site.rglob("*.html")) - {site / "404.html"}):
        links = [link for link in read(page).links if "://" not in link and not link.startswith("mailto:")]
        every = [*links, *read(page).fetched]
        found += [f"{page.relative_to(site)}: {link}" for link in every if not leads_somewhere(page, link)]
    return found


def build(folder: Path) -> Path:
    """The site in this folder. Strictly: a warning of mkdocs fails."""
    if not (ROOT / ".site" / "installed").exists():
        skip("the builder of the documentation is not installed; run `sh scripts/site --setup`")
    done = subprocess.run(
        ["sh", "scripts/site", str(folder)],
        cwd=ROOT,
        env={"VENV": sys.prefix, "PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=BUILD_SECONDS,
        umask=0o022,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return folder


@pytest.fixture
def folder() -> Iterator[Path]:
    """One that the user of the browser can read, which root's temporary folders of pytest are not."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.mark.timeout(2 * BUILD_SECONDS)
def test_it_is_built_and_searched_from_disk(folder: Path) -> None:
    """One test, so that one worker builds it once."""
    site = build(folder / "site")
    assert broken(site) == []
    pages = {path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")}
    made = {path.relative_to(site) for path in site.rglob("*.html")}
    assert {path.with_name("index.html") if path.stem == "README" else path for path in pages} <= made
    try:
        find_browser()
    except BrowserUnavailable:
        skip(f"there is no Chromium; install it ({install_line()}) to run this test")
    with open_page() as page:
        page.run(page.tab.navigate(f"{(site / 'index.html').as_uri()}?q=openat2"))
        found = (
            "Array.from(document.querySelectorAll('.md-search-result__link'), each => each.getAttribute('href')).join()"
        )
        eventually("the search answers", lambda: "files.html" in (page.run(page.tab.evaluate(found)) or ""))


def test_what_is_missing_or_fetched_from_elsewhere_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<h1 id="top">A</h1><a href="#top">1</a><a href="#end">2</a><a href="b.html">3</a><a href="https://example.com">4</a>'
        '<script src="https://example.com/x.js"></script>'
    )
    assert broken(tmp_path) == ["a.html: #end", "a.html: b.html", "a.html: https://example.com/x.js"]


class File:
    src_uri = "adr/0001.md"


class Page:
    file = File()


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ("[figures](../figures.md#all)", "[figures](../figures.md#all)"),
        ("[saved](../../benchmarks/results) runs", "saved `benchmarks/results` runs"),
        ("[examples/a.py](../../examples/a.py)", "`examples/a.py`"),
        ("[`examples/a.py`](../../examples/a.py#L1)", "`examples/a.py`"),
        ("| `str \\| None` | a \\| b |", "| `str | None` | a \\| b |"),
        ("`str \\| None`", "`str \\| None`"),
    ],
)
def test_the_text_of_a_page_is_adapted(given: str, made: str) -> None:
    assert on_page_markdown(given, page=Page()) == made
