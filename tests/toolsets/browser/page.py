"""One browser for the tests of a module, with small pages that are set without a server."""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import pytest

from longshore.errors import ToolError
from longshore.toolsets.browser.actions import ElementTarget, Field, Fill, Step, Value
from longshore.toolsets.browser.browser import Browser, BrowserEngine
from longshore.toolsets.browser.launch import LaunchOptions, launch
from longshore.toolsets.browser.script import PageScript
from longshore.toolsets.browser.snapshot import SnapshotLine, fold_behind
from longshore.toolsets.browser.tab import Outcome, PageSnapshot, Tab

WAIT_SECONDS = 60.0
_REF = re.compile(r"(?<![\w.#])((?:t\d+)?(?:f\d+)?e\d+)(?=[ ]|$)")

T = TypeVar("T")


class TestPage:
    """A tab, used from tests that are plain functions."""

    __test__ = False

    def __init__(self, runner: asyncio.Runner, tab: Tab) -> None:
        self._runner, self.tab = runner, tab

    def run(self, work: Awaitable[T]) -> T:
        async def bounded() -> T:
            return await asyncio.wait_for(work, WAIT_SECONDS)

        return self._runner.run(bounded())

    def set(self, html: str) -> None:
        """Show a page: the HTML of a body, in a new document."""

        async def load() -> None:
            await self.tab.navigate("about:blank")
            page = self.tab.page
            assert page is not None
            content = {"frameId": page.frames.main.id, "html": f"<!doctype html><title>page</title>{html}"}
            await page.call("Page.setDocumentContent", content)

        self.run(load())

    def script(self) -> PageScript:
        page = self.tab.page
        assert page is not None
        return self.run(page.frames.script(page.frames.main))

    def snapshot(self, **options: Any) -> PageSnapshot:
        """The page's lines, all of which an answer shows."""

        async def answer() -> PageSnapshot:
            made = await self.tab.snapshot(**options)
            self.tab.prepare_answer("\n".join(line.text for line in made.lines))
            return made

        return self.run(answer())

    def lines(self, html: str | None = None, **options: Any) -> list[str]:
        """The lines of a page as a model sees them, with the refs counted from e1."""
        if html is not None:
            self.set(html)
        return shown(fold_behind(self.snapshot(**options).lines))

    def ref(self, text: str) -> str:
        """The ref of the line that ends like this."""
        found = [line.ref for line in self.snapshot().lines if line.text.endswith(text)]
        assert len(found) == 1, (text, self.lines())
        assert found[0] is not None
        return found[0]

    def act(self, *steps: Step) -> Outcome:
        return self.run(self.tab.act(*steps))

    def refusal(self, *steps: Step) -> str:
        with pytest.raises(ToolError) as caught:
            self.act(*steps)
        return str(caught.value)

    def evaluate(self, script: str) -> str:
        return self.run(self.tab.evaluate(script))


def fill(value: Value, **target: str) -> Fill:
    return Fill(fields=[Field(target=ElementTarget(**target), value=value)])


def shown(lines: list[SnapshotLine]) -> list[str]:
    """The lines, indented, with the refs counted from e1."""
    refs: dict[str, str] = {}
    return [
        _REF.sub(lambda match: refs.setdefault(match[1], f"e{len(refs) + 1}"), f"{' ' * line.depth}{line.text}")
        for line in lines
    ]


@contextmanager
def open_page() -> Iterator[TestPage]:
    """A browser with one tab."""

    async def start() -> BrowserEngine:
        return await launch(LaunchOptions())

    async def open_browser(folder: str) -> tuple[Browser, Tab]:
        browser = Browser(await start(), start, downloads=folder, viewport=(1000, 700))
        await browser.open()
        return browser, await browser.new_tab()

    with asyncio.Runner() as runner, tempfile.TemporaryDirectory() as folder:
        browser, tab = runner.run(open_browser(folder))
        try:
            yield TestPage(runner, tab)
        finally:
            runner.run(browser.close())
