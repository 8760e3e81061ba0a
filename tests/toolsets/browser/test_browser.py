"""Browsers: tabs, popups, isolation, and recovery from kills."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import Any

import pytest
from tests.toolsets.browser.browsing import Site, browse

from longshore.errors import ToolError
from longshore.toolsets.browser.actions import Click, ElementTarget
from longshore.toolsets.browser.browser import Attachment, Browser
from longshore.toolsets.browser.downloads import clean_name
from longshore.toolsets.browser.page import Page
from longshore.toolsets.browser.tab import Tab

PAGES = {
    "/": "<title>one</title><button id=b onclick=\"window.open('/two')\">open</button>"
    "<a target=_blank href='/two'>link</a>",
    "/two": "<title>two</title><button id=c onclick='close()'>close</button>",
}


def test_tabs_have_ids_and_a_popup_becomes_one() -> None:
    async def work(browser: Browser, site: Site) -> None:
        tab = await browser.new_tab(site.url())
        outcome = await tab.act(Click(target=ElementTarget(text="open")))
        assert outcome.events == [f"opened tab t2 ({site.url('/two')})"]
        outcome = await tab.act(Click(target=ElementTarget(text="link")))
        assert outcome.events == [f"opened tab t3 ({site.url('/two')})"]
        assert list(browser.tabs) == ["t1", "t2", "t3"]
        assert await browser.tab("t2").evaluate("document.title") == '"two"'
        await browser.close_tab("t2")
        await browser.close_tab("t3")
        assert list(browser.tabs) == ["t1"]
        with pytest.raises(ToolError, match="the tabs are: t1"):
            browser.tab("t3")
        assert browser.tab().id == "t1"

    browse(PAGES, work)


def test_two_browsers_share_no_cookies_and_tabs_have_a_limit() -> None:
    async def work(browser: Browser, site: Site) -> None:
        tab = await browser.new_tab(site.url())
        await tab.evaluate("document.cookie = 'a=1'")
        assert tab.page is not None
        second = Browser(Attachment(tab.page.connection), most_tabs=1)
        await second.open()
        other = await second.new_tab(site.url())
        assert await other.evaluate("document.cookie") == '""'
        with pytest.raises(ToolError, match="at most 1 tabs"):
            await second.new_tab()

    browse(PAGES, work)


async def _crash(tab: Tab) -> None:
    assert tab.page is not None
    page = tab.page
    call = page.connection.send("Page.crash", {}, page.session)
    await asyncio.wait_for(page.ended, 10)
    call.cancel()


def test_a_crashed_renderer_is_replaced_at_its_last_url() -> None:
    async def work(browser: Browser, site: Site) -> None:
        other = await browser.new_tab(site.url())
        tab = await browser.new_tab(site.url("/two"))
        for _ in range(3):
            await _crash(tab)
            assert await other.evaluate("1") == "1"
            assert await tab.evaluate("document.title") == '"two"'
            assert any("crashed" in event for event in tab.log.notices.take())
        assert list(browser.tabs) == ["t1", "t2"]

    browse(PAGES, work)


def test_a_call_during_a_crash_says_so() -> None:
    async def work(browser: Browser, site: Site) -> None:
        tab = await browser.new_tab(site.url())
        call = asyncio.create_task(tab.evaluate("new Promise(() => 0)"))
        await asyncio.wait({call}, timeout=0.2)
        await _crash(tab)
        with pytest.raises(ToolError, match="crashed or was killed"):
            await call

    browse(PAGES, work)


def test_a_killed_browser_is_started_again_with_the_same_tabs() -> None:
    async def work(browser: Browser, site: Site) -> None:
        first = await browser.new_tab(site.url())
        second = await browser.new_tab(site.url("/two"))
        for _ in range(2):
            os.kill(browser.engine.pid, signal.SIGKILL)  # type: ignore[attr-defined]
            assert first.page is not None
            await asyncio.wait_for(asyncio.shield(first.page.ended), 10)
            titles = await asyncio.gather(first.evaluate("document.title"), second.evaluate("document.title"))
            assert titles == ['"one"', '"two"']
            assert any("browser ended" in event for event in first.log.notices.take())

    browse(PAGES, work)


@pytest.mark.parametrize("failures", [1, 2])
def test_a_page_that_does_not_answer_at_first_is_opened_again(monkeypatch: pytest.MonkeyPatch, failures: int) -> None:
    attach, calls = Page.attach, 0

    async def late(*arguments: Any, **options: Any) -> Page:
        nonlocal calls
        calls += 1
        if calls <= failures:
            raise TimeoutError
        return await attach(*arguments, **options)

    async def work(browser: Browser, site: Site) -> None:
        monkeypatch.setattr(Page, "attach", late)
        if failures == 1:
            assert await (await browser.new_tab(site.url())).evaluate("document.title") == '"one"'
            return
        with pytest.raises(ToolError, match="the browser opened no tab within 10 s; try again"):
            await browser.new_tab(site.url())
        assert not browser.tabs

    browse(PAGES, work)


def test_a_popup_has_its_title_before_it_is_used() -> None:
    async def work(browser: Browser, site: Site) -> None:
        tab = await browser.new_tab(site.url())
        await tab.act(Click(target=ElementTarget(text="open")))
        assert browser.tabs["t2"].title == "two"

    browse(PAGES, work)


@pytest.mark.parametrize(
    ("suggested", "name"),
    [
        ("../../etc/passwd", "passwd"),
        ("a\\b\\c.txt", "c.txt"),
        (".bashrc", "bashrc"),
        ("", "download"),
        ("..", "download"),
        ("x" * 300 + ".pdf", "x" * 116 + ".pdf"),
        ("a\u202eb\n.txt", "ab .txt"),
    ],
)
def test_names_of_downloads_are_clean(suggested: str, name: str) -> None:
    assert clean_name(suggested) == name


@pytest.mark.parametrize("length", [18, 19, 20, 118, 119, 120, 130, 5000])
def test_a_long_extension_is_cut_and_leaves_the_name(length: int) -> None:
    name = clean_name(f"a.{'x' * length}")
    assert name == f"a.{'x' * min(length, 19)}"
    assert clean_name(f"{'a' * length}.{'x' * length}").startswith("a" * min(length, 100))
