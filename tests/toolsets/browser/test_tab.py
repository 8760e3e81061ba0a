"""Tabs: navigation, evaluation, screenshots, logs, hostile pages."""

from __future__ import annotations

import asyncio
import socket
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from tests.toolsets.browser.browsing import Site, browse

from longshore.errors import ToolError
from longshore.toolsets.browser.actions import AnswerDialog, Click, ElementTarget, Field, Fill, Wait
from longshore.toolsets.browser.browser import Browser
from longshore.toolsets.browser.tab import COMPARED_IN_PART

PAGES = {
    "/": "<title>one</title><h1>First</h1><a href='/two'>two</a>",
    "/two": "<title>two</title><h1>Second</h1><a href='#part'>part</a><p id=part>x</p>",
    "/broken": "<h1>Broken</h1>",
    "/logs": "<script>console.log('hello', {a: 1}); console.error('bad'); fetch('/none')</script><p>x",
    "/file": "a,b",
    "/tall": "<body style='margin:0'><div style='height:5000px;background:linear-gradient(red,blue)'></div>",
    "/loop": "<button id=b onclick='for(;;);'>loop</button><p>still</p>",
    "/dialogs": "<button id=b onclick='for(;;)alert(1)'>loop</button>",
    "/ask": "<button id=b onclick='o.textContent=confirm(\"Sure?\")'>ask</button>"
    "<button id=p onclick='o.textContent=prompt(\"Name?\")'>prompt</button><p id=o>-</p>",
}


def test_a_page_is_loaded_with_its_status_and_title() -> None:
    async def work(browser: Browser, site: Site) -> None:
        site.statuses["/broken"] = "500 Oh No"
        tab = await browser.new_tab()
        for wait in ("load", "dom", "idle"):
            arrival = await tab.navigate(site.url(), wait=wait)
            assert (arrival.url, arrival.title, arrival.status, arrival.note) == (site.url(), "one", 200, "")
        arrival = await tab.navigate(site.url("/broken"))
        assert arrival.status == 500
        assert "HTTP status 500 Oh No" in arrival.note
        assert (await tab.navigate(site.url("/absent"))).status == 404
        await tab.navigate(site.url("/two"), wait="none")

    browse(PAGES, work)


def test_history_and_reload() -> None:
    async def work(browser: Browser, site: Site) -> None:
        tab = await browser.new_tab(site.url())
        await tab.navigate(site.url("/two"))
        await tab.navigate(site.url("/two#part"))
        assert (await tab.back()).url == site.url("/two")
        assert (await tab.back()).title == "one"
        assert (await tab.forward()).title == "two"
        assert (await tab.reload()).url == site.url("/two")
        with pytest.raises(ToolError, match="forward"):
            await browser.tab("t1").forward()
            await browser.tab("t1").forward()

    browse(PAGES, work)


def test_a_page_that_cannot_be_loaded_says_why() -> None:
    async def work(browser: Browser, site: Site) -> None:
        tab = await browser.new_tab()
        with closing(socket.socket()) as unused:
            unused.bind(("127.0.0.1", 0))
            with pytest.raises(ToolError, match="the connection was refused"):
                await tab.navigate(f"http://127.0.0.1:{unused.getsockname()[1]}")
        with pytest.raises(ToolError, match=r"refused|port"):
            await tab.navigate("http://127.0.0.1:1")
        site.hanging.add("/hang")
        with pytest.raises(ToolError, match=r"not answered in time|took longer"):
            await tab.navigate(site.url("/hang"), seconds=1)
        assert (await tab.navigate(site.url())).title == "one"

    browse(PAGES, work)


def test_a_url_that_is_a_download_is_saved() -> None:
    async def work(browser: Browser, site: Site) -> None:
        name = "content-type: text/csv\r\ncontent-disposition: attachment; filename=../../ev\u0131l.csv\r\n"
        site.headers["/file"] = name.replace("\u0131", "i")
        tab = await browser.new_tab(site.url())
        for _ in range(2):
            arrival = await tab.navigate(site.url("/file"))
            assert "download" in arrival.note
            assert any("evil.csv (3 bytes)" in event for event in arrival.events), arrival.events
        first, second = browser.downloads.all()
        assert Path(first.path).read_text() == "a,b"
        assert Path(first.path).parent == Path(browser.downloads.folder or "")
        assert first.path != second.path

    browse(PAGES, work)


def test_scripts_are_evaluated_in_the_page() -> None:
    async def work(browser: Browser, site: Site) -> None:
        tab = await browser.new_tab(site.url())
        run = partial(tab.evaluate, seconds=5)
        assert await run("1 + 1") == "2"
        assert await run("document.title") == '"one"'
        assert await run("({a: [1, null, 'x'], b: undefined})") == '{"a":[1,null,"x"]}'
        assert await run("{a: 1}") == '{"a":1}'
        assert await run("() => [1, 2]") == "[1,2]"
        assert await run("await Promise.resolve(7)") == "7"
        assert await run("const q = 3; return q") == "3"
        assert await run("undefined") == "undefined"
        assert await run("NaN") == "NaN"
        assert await run("const w = {}; w.self = w; w") == '{"self":"[seen before]"}'
        for lines, script in enumerate(
            ("nope.x", "1;\nnope.x", "const w = 2\n\nreturn nope.x", "() => {\n\n\nnope.x}"), 1
        ):
            with pytest.raises(ToolError, match=f"line {lines}: ReferenceError: nope"):
                await run(script)
        with pytest.raises(ToolError, match="SyntaxError"):
            await run("1 +")
        with pytest.raises(ToolError, match=r"longer than 1|failed"):
            await tab.evaluate("new Promise(() => 0)", seconds=1)
        with pytest.raises(ToolError):
            await tab.evaluate("for(;;);", seconds=1)
        assert await run("2") == "2"

    browse(PAGES, work)


def test_screenshots_have_the_asked_for_size() -> None:
    async def work(browser: Browser, site: Site) -> None:
        tab = await browser.new_tab(site.url("/tall"))
        shot = await tab.screenshot("png")
        assert _png_size(shot.data) == (shot.width, shot.height) == (1000, 700)
        shot = await tab.screenshot("png", max_width=500)
        assert _png_size(shot.data) == (500, 350)
        shot = await tab.screenshot("png", full_page=True, max_width=250)
        assert _png_size(shot.data) == (shot.width, shot.height)
        assert shot.height == 1250
        await tab.navigate(site.url())
        shot = await tab.screenshot("png", target=ElementTarget(selector="h1"))
        assert shot.height < 100
        assert (await tab.screenshot()).data[8:12] == b"WEBP"
        assert (await tab.screenshot("jpeg", quality=30)).data[:2] == b"\xff\xd8"

    browse(PAGES, work)


def _png_size(data: bytes) -> tuple[int, int]:
    return int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")


def test_console_and_network_are_logged_with_cursors() -> None:
    async def work(browser: Browser, site: Site) -> None:
        tab = await browser.new_tab()
        arrival = await tab.navigate(site.url("/logs"), wait="idle")
        assert "console error: bad" in arrival.events
        assert any("/none: 404" in event for event in arrival.events)
        page = tab.log.console.since(0)
        assert [(e.level, e.text) for e in page.entries][:2] == [("info", "hello {a: 1}"), ("error", "bad")]
        assert tab.log.console.since(page.cursor).entries == []
        exchange = next(e for e in tab.log.network if e.url.endswith("/none"))
        assert (exchange.method, exchange.status, exchange.kind) == ("GET", 404, "Fetch")
        assert (await tab.body(exchange.number)).data == b"nothing here"
        with pytest.raises(ToolError, match="no request 999"):
            await tab.body(999)

    browse(PAGES, work)


def test_the_answer_to_the_next_dialog_is_not_for_another_page() -> None:
    async def work(browser: Browser, site: Site) -> None:
        tab = await browser.new_tab(site.url())
        await tab.act(AnswerDialog(accept=True))
        await tab.navigate(site.url("/ask"))
        outcome = await tab.act(Click(target=ElementTarget(selector="#b")))
        assert any('confirm "Sure?" dismissed' in event for event in outcome.events)

    browse(PAGES, work)


DRAWING = """<svg xmlns="http://www.w3.org/2000/svg"><text y="9">Shape</text><a href="/tall"><text y="29">Go</text>\
</a></svg>"""
PDF = "%PDF-1.1\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj 2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj \
3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]>>endobj\ntrailer<</Root 1 0 R>>"


def test_documents_that_are_no_html_are_used_or_named() -> None:
    async def work(browser: Browser, site: Site) -> None:
        site.headers = {"/svg": "content-type: image/svg+xml\r\n", "/pdf": "content-type: application/pdf\r\n"}
        tab = await browser.new_tab(site.url("/svg"))
        with pytest.raises(ToolError, match='label "x": is not on the page'):
            await tab.act(Fill(fields=[Field(target=ElementTarget(label="x"), value="y")]))
        await tab.act(Wait(text="Shape"))
        assert (await tab.act(Click(target=ElementTarget(text="Go")))).url == site.url("/tall")
        said = "(a PDF, whose text can't be read here; browser_screenshot shows it)"
        assert [line.text for line in (await tab.navigate(site.url("/pdf"))).page] == [said]
        assert (await tab.read()).text == said

    browse({**PAGES, "/svg": DRAWING, "/pdf": PDF}, work)


def test_dialogs_are_dismissed_unless_a_step_says_otherwise() -> None:
    async def work(browser: Browser, site: Site) -> None:
        tab = await browser.new_tab(site.url("/ask"))
        ask = Click(target=ElementTarget(selector="#b"))
        outcome = await tab.act(ask)
        assert any('confirm "Sure?" dismissed' in event for event in outcome.events)
        assert await tab.evaluate("o.textContent") == '"false"'
        outcome = await tab.act(AnswerDialog(accept=True), ask)
        assert 'confirm "Sure?" accepted' in outcome.events
        assert await tab.evaluate("o.textContent") == '"true"'
        await tab.act(AnswerDialog(text="Ada"), Click(target=ElementTarget(selector="#p")))
        assert await tab.evaluate("o.textContent") == '"Ada"'
        await tab.act(ask)
        assert await tab.evaluate("o.textContent") == '"false"'

    browse(PAGES, work)


def test_each_dialog_step_answers_one_dialog_in_order() -> None:
    async def work(browser: Browser, site: Site) -> None:
        tab = await browser.new_tab(site.url("/asks"))
        steps = AnswerDialog(), AnswerDialog(accept=False), AnswerDialog(text="Ada")
        outcome = await tab.act(*steps, Click(target=ElementTarget(text="Ask")))
        assert outcome.line.startswith(
            "The next dialog will be accepted; Dialog 2 from now will be dismissed; Dialog 3 from now will be accepted;"
        )
        assert await tab.evaluate("o.textContent") == '"true false Ada null"'

    asks = "[confirm('a'), confirm('b'), prompt('c'), prompt('d')].map(String).join(' ')"
    browse({"/asks": f'<button onclick="o.textContent = {asks}">Ask</button><p id=o>'}, work)


def test_what_is_not_compared_of_a_long_page_is_said() -> None:
    async def work(browser: Browser, site: Site) -> None:
        tab = await browser.new_tab(site.url("/long"))
        outcome = await tab.act(Click(target=ElementTarget(text="Change")))
        assert outcome.diff == f"nothing changed in the part that was compared\n[{COMPARED_IN_PART}]"
        assert await tab.changes() == outcome.diff
        outcome = await tab.act(Click(target=ElementTarget(text="Rename")))
        assert outcome.diff.endswith(f"button,focused Renamed\n[{COMPARED_IN_PART}]")

    change = "<button onclick='end.textContent = 1; this.blur()'>Change</button>"
    rename = "<button onclick='this.textContent += \"d\"'>Rename</button>"
    browse({"/long": f"{change}{rename}{'<p>x' * 20_000}<p id=end>end"}, work)


def test_a_frame_of_another_process_has_its_address() -> None:
    async def work(browser: Browser, site: Site) -> None:
        tab = await browser.new_tab(site.url("/outside"))
        assert f"[frame f2 {site.url('/two', host='localhost')}]" in (await tab.read()).text
        found = await tab.find(text="Second")
        assert [match.path for match in found.matches] == [[f"frame f2 {site.url('/two', host='localhost')}"]]

    browse({**PAGES, "/outside": "<iframe src=http://localhost:PORT/two></iframe>"}, work)


@pytest.mark.parametrize("path", ["/loop"])
def test_a_page_that_never_rests_is_an_error_in_time_and_usable_again(path: str) -> None:
    async def work(browser: Browser, site: Site) -> None:
        other = await browser.new_tab(site.url())
        tab = await browser.new_tab(site.url(path))
        with pytest.raises(ToolError, match="does not answer"):
            await tab.act(Click(target=ElementTarget(selector="#b")), seconds=2)
        assert await other.evaluate("document.title") == '"one"'
        assert await tab.evaluate("1") == "1"
        assert (await tab.navigate(site.url())).title == "one"

    browse(PAGES, work)


def test_a_cancelled_call_leaves_nothing_waiting() -> None:
    async def work(browser: Browser, site: Site) -> None:
        site.hanging.add("/hang")
        tab = await browser.new_tab(site.url())
        before = asyncio.all_tasks()
        call = asyncio.create_task(tab.navigate(site.url("/hang")))
        await asyncio.wait({call}, timeout=0.3)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        left = {task for task in asyncio.all_tasks() - before if "answer" not in repr(task.get_coro())}
        assert not left
        assert (await tab.navigate(site.url("/two"))).title == "two"

    browse(PAGES, work)
