"""What an action starts is waited for."""

from __future__ import annotations

import asyncio
import time

import pytest
from tests.toolsets.browser.browsing import Site, browse
from tests.toolsets.browser.page import fill

from longshore.toolsets.browser.actions import Click, Target, Wait
from longshore.toolsets.browser.browser import Browser
from longshore.toolsets.browser.settling import POLLS, Activity, Watch, settle

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
            outcome = await tab.act(Click(target=Target(selector="#f")))
            assert f"fetched {n}" in outcome.diff
        assert "chain" in (await tab.act(Click(target=Target(selector="#c")))).diff

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
        assert effect in (await tab.act(Click(target=Target(selector=button)))).diff
        assert [each.status for each in tab.log.network if each.url == site.url(path)] == [200]

    browse(PAGES, work)


def test_a_static_click_reports_its_effect() -> None:
    async def work(browser: Browser, site: Site) -> None:
        tab = await browser.new_tab(site.url())
        outcome = await tab.act(Click(target=Target(text="A")))
        assert "static 1" in outcome.diff
        assert outcome.url is None
        assert outcome.events == []

    browse(PAGES, work)


def test_a_link_is_followed_before_the_answer() -> None:
    async def work(browser: Browser, site: Site) -> None:
        site.delays["/next"] = 0.2
        tab = await browser.new_tab(site.url())
        outcome = await tab.act(Click(target=Target(text="go")))
        assert outcome.url == site.url("/next")
        assert outcome.title == "next"
        assert outcome.page is not None

    browse(PAGES, work)


def test_a_request_that_never_ends_is_not_waited_for() -> None:
    async def work(browser: Browser, site: Site) -> None:
        site.hanging.add("/hang")
        tab = await browser.new_tab(site.url())
        outcome = await tab.act(Click(target=Target(selector="#h")))
        assert "hangs" in outcome.diff

    browse(PAGES, work)


STILL = "<title>still</title><label>Name <input></label><button>A</button><a href=/next>go</a>"


@pytest.mark.parametrize("headers", ["content-security-policy: sandbox\r\n", ""])
def test_a_document_without_scripts_is_not_waited_for_in_vain(headers: str) -> None:
    """Its own, or those of a frame in it."""

    async def work(browser: Browser, site: Site) -> None:
        site.headers["/still"] = f"content-type: text/html\r\n{headers}"
        tab = await browser.new_tab(site.url("/still"))
        events: list[list[str]] = []
        for step in (
            Click(target=Target(text="A")),
            fill("Ada", label="Name"),
            Wait(text="Name"),
            Click(target=Target(text="go")),
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


def _request(activity: Activity, id: str, url: str = "http://x/", kind: str = "Fetch") -> None:
    params = {"requestId": id, "type": kind, "request": {"url": url, "method": "GET"}}
    activity.take("s", "Network.requestWillBeSent", params)


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
        watch = Watch()
        watch.loading_started("main")

        async def quiet() -> None:
            return None

        assert not await settle(watch, quiet, 0.05)
        assert not await watch.wait_idle(time.monotonic())
        watch.loading_ended("main")
        assert await settle(watch, quiet, 5)

    asyncio.run(run())
