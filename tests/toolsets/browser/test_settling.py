"""What an action starts is waited for."""

from __future__ import annotations

import asyncio
import time

import pytest
from tests.toolsets.browser.browsing import Site, browse
from tests.toolsets.browser.page import fill

from longshore.toolsets.browser.actions import Click, ElementTarget, Wait
from longshore.toolsets.browser.browser import Browser
from longshore.toolsets.browser.settling import POLLS, Activity, ActivityWatch, settle

PAGE = """<title>s</title><button id=a onclick="o.textContent='static '+(++n)">A</button>
<button id=f onclick="fetch('/slow').then(r=>r.text()).then(t=>{o.textContent=t+(++n)})">F</button>
<button id=c onclick="fetch('/slow').then(()=>fetch('/slow')).then(()=>{o.textContent='chain'})">C</button>
<button id=h onclick="fetch('/hang');o.textContent='hangs'">H</button>
<button id=p onclick="i.onload=()=>{o.textContent='seen'};i.src='/picture'">P</button><img id=i>
<button id=w onclick="new Worker('/outer').onmessage=(e)=>{o.textContent=e.data}">W</button>
<a id=l href="/next">go</a><p id=o>-</p><script>let n=0</script>"""
PAGES = {
    "/": PAGE,
    "/slow": "fetched ",
    "/picture": "<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'/>",
    "/outer": "new Worker('/inner').onmessage = (e) => postMessage('a worker ' + e.data)",
    "/inner": "fetch('/slow').then((r) => r.text()).then(postMessage)",
    "/next": "<title>next</title><p>arrived</p>",
}


def test_the_effect_of_a_slow_fetch_is_in_the_same_answer() -> None:
    async def work(browser: Browser, site: Site) -> None:
        site.delays["/slow"] = 0.3
        tab = await browser.new_tab(site.url())
        for n in range(1, 6):
            outcome = await tab.act(Click(target=ElementTarget(selector="#f")))
            assert f"fetched {n}" in outcome.diff
        assert "chain" in (await tab.act(Click(target=ElementTarget(selector="#c")))).diff

    browse(PAGES, work)


@pytest.mark.parametrize(
    ("button", "path", "effect"), [("#p", "/picture", "seen"), ("#w", "/slow", "a worker fetched")]
)
def test_the_effect_of_a_picture_and_of_a_workers_worker_is_in_the_same_answer(
    button: str, path: str, effect: str
) -> None:
    async def work(browser: Browser, site: Site) -> None:
        site.headers["/picture"] = "content-type: image/svg+xml\r\n"
        site.headers["/outer"] = site.headers["/inner"] = "content-type: text/javascript\r\n"
        site.delays[path] = 0.3
        tab = await browser.new_tab(site.url())
        assert effect in (await tab.act(Click(target=ElementTarget(selector=button)))).diff
        assert [each.status for each in tab.log.network if each.url == site.url(path)] == [200]

    browse(PAGES, work)


def test_a_static_click_reports_its_effect() -> None:
    async def work(browser: Browser, site: Site) -> None:
        tab = await browser.new_tab(site.url())
        outcome = await tab.act(Click(target=ElementTarget(text="A")))
        assert "static 1" in outcome.diff
        assert outcome.url is None
        assert outcome.events == []

    browse(PAGES, work)


def test_a_link_is_followed_before_the_answer() -> None:
    async def work(browser: Browser, site: Site) -> None:
        site.delays["/next"] = 0.2
        tab = await browser.new_tab(site.url())
        outcome = await tab.act(Click(target=ElementTarget(text="go")))
        assert outcome.url == site.url("/next")
        assert outcome.title == "next"
        assert outcome.page is not None

    browse(PAGES, work)


def test_a_request_that_never_ends_is_not_waited_for() -> None:
    async def work(browser: Browser, site: Site) -> None:
        site.hanging.add("/hang")
        tab = await browser.new_tab(site.url())
        outcome = await tab.act(Click(target=ElementTarget(selector="#h")))
        assert "hangs" in outcome.diff

    browse(PAGES, work)


LEAVING = """<title>leaving</title>
<button onclick="fetch('/quick', {method: 'POST'}).then(r => { if (r.ok) location.href = '/next' })">Log in</button>
<a href=/next onclick="fetch('/hang')">Next</a>
<button onclick="fetch('/hang'); location.reload()">Again</button>
<button onclick="i.contentWindow.fetch('/hang'); location.href = '/next'">Leave</button><iframe id=i src=/next></iframe>
<button onclick="new Worker('/hanging'); setTimeout(() => { location.href = '/next' }, 50)">Work</button>"""


@pytest.mark.parametrize(
    ("button", "path", "status"),
    [
        ("Log in", "/quick", 200),
        ("Next", "/hang", 0),
        ("Again", "/hang", 0),
        ("Leave", "/hang", 0),
        ("Work", "/hang", 0),
    ],
)
def test_the_requests_of_a_document_end_with_it(button: str, path: str, status: int) -> None:
    async def work(browser: Browser, site: Site) -> None:
        site.headers["/hanging"] = "content-type: text/javascript\r\n"
        site.hanging.add("/hang")
        tab = await browser.new_tab(site.url("/leaving"))
        outcome = await tab.act(Click(target=ElementTarget(text=button)))
        assert outcome.page is not None and outcome.events == []
        sent = [each for each in tab.log.network if each.url == site.url(path)]
        assert [(each.status, each.seconds is None) for each in sent] == [(status, False)]
        assert bool(sent[0].problem) is not bool(status)

    browse({**PAGES, "/leaving": LEAVING, "/quick": "{}", "/hanging": "fetch('/hang')"}, work)


def test_the_requests_of_a_page_that_is_gone_have_ended() -> None:
    async def work(browser: Browser, site: Site) -> None:
        site.hanging.add("/hang")
        tab = await browser.new_tab(site.url())
        await tab.evaluate("void fetch('/hang')")
        assert tab.page is not None and tab.log.running()
        tab.page.give_up("a test")
        assert not tab.log.running()

    browse(PAGES, work)


MOVING = """<title>moving</title><iframe name=part src=/next></iframe>
<a target=part href="http://localhost:PORT/next?moved">Move</a>
<button onclick="window.worker = new Worker('/working')">Work</button>"""


@pytest.mark.parametrize(("button", "path"), [("Move", "/next?moved"), ("Work", "/working")])
def test_what_goes_on_in_another_process_ends_there(button: str, path: str) -> None:
    async def work(browser: Browser, site: Site) -> None:
        site.headers["/working"] = "content-type: text/javascript\r\n"
        tab = await browser.new_tab(site.url("/moving"))
        assert (await tab.act(Click(target=ElementTarget(text=button)))).events == []
        moved = next(each for each in tab.log.network if each.url.endswith(path))
        assert moved.status == 200 and moved.seconds is not None
        body = (await tab.body(moved.number)).data.decode()
        assert body == {**PAGES, "/working": "onmessage = null"}[path.partition("?")[0]]

    browse({**PAGES, "/moving": MOVING, "/working": "onmessage = null"}, work)


POLLING = """<title>polling</title><button onclick="load()">Load</button><p id=o></p><script>
async function poll() { for (;;) await fetch('/poll?' + Math.random()) }
async function load() { o.textContent = await (await fetch('/slow')).text() }
poll()</script>"""


def test_the_polls_of_a_page_from_before_an_action_are_not_waited_for_but_its_own_fetch_is() -> None:
    async def work(browser: Browser, site: Site) -> None:
        site.delays.update({"/poll": 0.2, "/slow": 0.3})
        tab = await browser.new_tab(site.url("/polling"))
        outcome = await tab.act(Click(target=ElementTarget(text="Load")))
        assert "fetched" in outcome.diff and outcome.events == []

    browse({**PAGES, "/polling": POLLING, "/poll": "nothing new"}, work)


STILL = "<title>still</title><label>Name <input></label><button>A</button><a href=/next>go</a>"


@pytest.mark.parametrize("headers", ["content-security-policy: sandbox\r\n", ""])
def test_a_document_without_scripts_is_not_waited_for_in_vain(headers: str) -> None:
    """Its own, or those of a frame in it."""

    async def work(browser: Browser, site: Site) -> None:
        site.headers["/still"] = f"content-type: text/html\r\n{headers}"
        tab = await browser.new_tab(site.url("/still"))
        events: list[list[str]] = []
        for step in (
            Click(target=ElementTarget(text="A")),
            fill("Ada", label="Name"),
            Wait(text="Name"),
            Click(target=ElementTarget(text="go")),
        ):
            outcome = await tab.act(step)
            events.append(outcome.events)
        assert [] in events  # a wait in vain is reported at each step; on an overloaded machine a step may be slow
        assert outcome.page is not None and [line.text for line in outcome.page][-1] == "> arrived"
        assert list(tab.log.console) == []

    browse(
        {
            **PAGES,
            "/still": STILL
            if headers
            else f"<iframe sandbox=allow-top-navigation srcdoc='{STILL.replace('<a', '<a target=_top')}'>",
        },
        work,
    )


def _request(activity: Activity, id: str, url: str = "http://x/", kind: str = "Fetch", line: int = 1) -> None:
    initiator = {"stack": {"callFrames": [{"scriptId": "9", "lineNumber": line, "columnNumber": 1}]}}
    params = {"requestId": id, "type": kind, "request": {"url": url, "method": "GET"}, "initiator": initiator}
    activity.take("s", "Network.requestWillBeSent", params)


def _end(activity: Activity, id: str, event: str = "loadingFinished", **details: bool) -> None:
    activity.take("s", f"Network.{event}", {"requestId": id, **details})


def test_only_requests_since_the_action_count() -> None:
    async def run() -> None:
        activity = Activity("main")
        _request(activity, "before")
        watch = activity.watch()
        assert not watch.is_busy
        _request(activity, "font", kind="Font")
        assert not watch.is_busy
        _request(activity, "style", kind="Stylesheet")
        assert watch.is_busy
        activity.take("s", "Network.loadingFailed", {"requestId": "style"})
        assert not watch.is_busy
        _request(activity, "after")
        assert watch.is_busy
        activity.take("s", "Network.loadingFinished", {"requestId": "after"})
        assert not watch.is_busy

    asyncio.run(run())


def test_what_a_page_polls_by_itself_is_not_waited_for() -> None:
    async def run() -> None:
        activity = Activity("main")
        activity._last_action -= 10
        for n in range(POLLS):
            _request(activity, f"poll{n}", "http://x/poll?n=1")
        watch = activity.watch()
        _request(activity, "poll", "http://x/poll?n=2")
        assert not watch.is_busy
        _request(activity, "other", "http://x/other")
        assert watch.is_busy

    asyncio.run(run())


def test_a_request_that_continues_one_from_before_is_not_waited_for() -> None:
    async def run() -> None:
        activity = Activity("main")
        _request(activity, "poll1")
        watch = activity.watch()
        _end(activity, "poll1", "responseReceived")
        _request(activity, "poll2")
        _end(activity, "poll1")
        _end(activity, "poll2")
        _request(activity, "poll3")
        assert not watch.is_busy and watch.started == 0
        _request(activity, "at the same time")
        assert watch.is_busy
        _end(activity, "at the same time")
        _end(activity, "poll3", "loadingFailed", canceled=True)
        _request(activity, "instead")
        assert watch.is_busy
        assert activity.watch().started == 0

    asyncio.run(run())


def test_a_request_of_another_place_in_a_script_or_after_a_quiet_page_continues_none() -> None:
    async def run() -> None:
        activity = Activity("main")
        _request(activity, "poll")
        watch = activity.watch()
        _end(activity, "poll")
        _request(activity, "elsewhere", line=2)
        assert watch.is_busy
        activity = Activity("main")
        _request(activity, "first")
        _end(activity, "first")
        activity._requests["first"].answered = time.monotonic() - 0.05
        watch = activity.watch()
        _request(activity, "again")
        assert watch.is_busy

    asyncio.run(run())


def test_a_wait_for_the_end_of_requests_also_waits_for_those_that_continue_others() -> None:
    async def run() -> None:
        activity = Activity("main")
        _request(activity, "page 1")
        watch = activity.watch(since=0)
        _end(activity, "page 1")
        _request(activity, "page 2")
        assert watch.is_busy

    asyncio.run(run())


def test_the_requests_of_a_worker_end_with_it() -> None:
    async def run() -> None:
        activity = Activity("main")
        watch = activity.watch()
        _request(activity, "picture", kind="Image")
        assert watch.is_busy
        activity.session_ended("another")
        assert watch.is_busy
        activity.session_ended("s")
        assert not watch.is_busy

    asyncio.run(run())


def test_settling_ends_at_its_limit() -> None:
    async def run() -> None:
        watch = ActivityWatch(0)
        watch.loading_started("main")

        async def quiet() -> None:
            return None

        assert not await settle(watch, quiet, 0.05)
        assert not await watch.wait_idle(time.monotonic())
        watch.loading_ended("main")
        assert await settle(watch, quiet, 5)

    asyncio.run(run())
