"""Loading pages: by URL, through the history, and again; and the results in words."""

from __future__ import annotations

import asyncio
import time
from typing import Final, Literal

from msgspec import Struct

from longshore.errors import ToolError, ToolTimeout
from longshore.toolsets.browser.connection import CdpError
from longshore.toolsets.browser.events import clean, without_user
from longshore.toolsets.browser.page import Page, drop
from longshore.toolsets.browser.proxy import CONNECTION_REFUSED, NO_ANSWER, NO_HOST, NO_ROUTE
from longshore.toolsets.browser.settling import SETTLE_SECONDS

WaitFor = Literal["load", "dom", "idle", "none"]
_EVENTS: Final[dict[WaitFor, str]] = {"load": "load", "dom": "DOMContentLoaded", "idle": "networkIdle"}
SAME_DOCUMENT_SECONDS: Final = 0.3
"""A step in the history within one document is reported at once. Longer, and a document is loading."""
MOST_OVERTAKEN: Final = 20
"""Documents that a page may replace by others before they have loaded, as in a chain of redirects by scripts."""
STATUS_SECONDS: Final = 0.3
"""The status comes from another process than the load event, for a small page sometimes after it."""
_ERROR_PAGE: Final = "chrome-error:"
_NOT_ACTIVE: Final = "Not attached to an active page"
"""Chromium's answer while it puts the page of the navigation before in place: on a busy machine, its error page."""
MOST_NAMED: Final = 3
"""Requests that are named of those that a page still waits for."""
_DELAYING_LOAD: Final = frozenset({"Document", "Stylesheet", "Script", "Image", "Media", "Font"})
"""Kinds of requests that delay a page's load event."""
_PROBLEMS: Final = {
    "net::ERR_CONNECTION_REFUSED": CONNECTION_REFUSED,
    "net::ERR_NAME_NOT_RESOLVED": NO_HOST,
    "net::ERR_CONNECTION_TIMED_OUT": NO_ANSWER,
    "net::ERR_CONNECTION_RESET": "the server closed the connection",
    "net::ERR_EMPTY_RESPONSE": "the server closed the connection without an answer",
    "net::ERR_ADDRESS_UNREACHABLE": NO_ROUTE,
    "net::ERR_INTERNET_DISCONNECTED": "there is no network",
    "net::ERR_TOO_MANY_REDIRECTS": "it redirects without end",
    "net::ERR_CERT_AUTHORITY_INVALID": "its certificate is not from a known authority",
    "net::ERR_CERT_DATE_INVALID": "its certificate has expired",
    "net::ERR_CERT_COMMON_NAME_INVALID": "its certificate is for another host",
    "net::ERR_SSL_PROTOCOL_ERROR": "it does not speak HTTPS; try http://",
    "net::ERR_INVALID_AUTH_CREDENTIALS": "it asks for a user and a password, which can't be given here",
    "net::ERR_UNSAFE_REDIRECT": "it redirects to an address that pages may not open",
    "net::ERR_UNSAFE_PORT": "browsers refuse this port",
    "net::ERR_BLOCKED_BY_CLIENT": "the rules of this browser don't allow it",
    "net::ERR_TUNNEL_CONNECTION_FAILED": "the rules of this browser don't allow it, or the host can't be reached",
    "net::ERR_PROXY_CONNECTION_FAILED": "the proxy of this browser does not answer",
    "net::ERR_INVALID_URL": "it is no URL",
}


class Restless(ToolError):
    """The page replaces its document without end."""

    def __init__(self, doing: str) -> None:
        super().__init__(
            f"{doing} failed: the page loads other documents all the time; try again, or navigate elsewhere"
        )


class LoadFailed(ToolError):
    """There is no page at a URL: its server can't be reached, or its answer is invalid."""


class Loaded(Struct, frozen=True):
    """The result of a navigation."""

    status: int
    """The HTTP status; 0 if there was no request, as for about:blank."""
    note: str = ""
    """Further information for the caller: an error status, an unfinished load, a download."""
    download: bool = False


async def load(page: Page, url: str, wait: WaitFor, until: float) -> Loaded:
    """Load a URL. `until` is a time of the monotonic clock. Raises ToolError if there is no page."""
    before = page.frames.main.loader
    sent = asyncio.ensure_future(page.call("Page.navigate", {"url": url}))
    if wait == "none":
        done, _ = await asyncio.wait({sent}, timeout=0.05)
        if not done:
            drop(sent)
            return Loaded(0, "not waited for")
    try:
        async with asyncio.timeout(max(0.05, until - time.monotonic())):
            answer = await sent
    except TimeoutError:
        drop(page.connection.send("Page.stopLoading", {}, page.session))
        raise ToolTimeout(f"{shown(url)}: the server has not answered in time", "timeout_ms") from None
    if answer.get("isDownload"):
        return Loaded(0, "this URL is a download, not a page", download=True)
    if problem := answer.get("errorText"):
        if problem == "net::ERR_ABORTED":
            return Loaded(
                0, "no page came (an empty answer, a download, or it was broken off); the tab shows what it did before"
            )
        latest = time.monotonic() + STATUS_SECONDS
        while page.frames.main.loader == before and time.monotonic() < latest:
            await _changed(page, latest)  # the browser shows its error page, and answers no other call until then
        page.log.omit(str(answer.get("loaderId")))
        raise _failure(url, problem)
    loader = answer.get("loaderId")
    if loader is None:
        return Loaded(0, "same page, other place")
    return await _wait(page, loader, wait, until, before)


async def reload(page: Page, wait: WaitFor, until: float) -> Loaded:
    """Load the page again."""
    while True:
        before = page.frames.main.loader
        try:
            await page.call("Page.reload", {})
        except CdpError as refused:
            if _NOT_ACTIVE not in refused.message or time.monotonic() >= until:
                raise
            await _changed(page, min(until, time.monotonic() + SAME_DOCUMENT_SECONDS))
        else:
            return await _wait_other(page, before, page.frames.main.url, wait, until)


async def step(page: Page, by: int, wait: WaitFor, until: float) -> Loaded:
    """Go back (-1) or forward (1)."""
    history = await page.call("Page.getNavigationHistory")
    index = int(history["currentIndex"]) + by
    if not 0 <= index < len(history["entries"]):
        raise ToolError(f"there is no page to go {'back' if by < 0 else 'forward'} to")
    before, url = page.frames.main.loader, page.frames.main.url
    page.changed.clear()
    await page.call("Page.navigateToHistoryEntry", {"entryId": history["entries"][index]["id"]})
    return await _wait_other(page, before, url, wait, until)


async def _wait_other(page: Page, before: str, url: str, wait: WaitFor, until: float) -> Loaded:
    """Wait for a document other than `before`, or a move within it, then for its load."""
    if wait == "none":
        return Loaded(0, "not waited for")
    watch = page.activity.watch()
    main = page.frames.main
    moved_at: float | None = None
    try:
        while main.loader == before:
            now = time.monotonic()
            if main.url != url and moved_at is None:
                moved_at = now
            if moved_at is not None and now - moved_at >= SAME_DOCUMENT_SECONDS:
                return Loaded(0, "same page, other place")
            if now >= until:
                raise ToolTimeout(
                    f"{shown(page.log.mask(main.url))}: the server has not answered in time", "timeout_ms"
                )
            await _changed(page, min(until, now + SAME_DOCUMENT_SECONDS))
    finally:
        page.activity.unwatch(watch)
    return await _wait(page, main.loader, wait, until, before)


async def _wait(page: Page, loader: str, wait: WaitFor, until: float, before: str) -> Loaded:
    """Wait for a document's event.

    A page that still loads at the deadline is usable, and the note says so. From DOMContentLoaded on, the wait for the
    load event is as long as that for an action's effects: one unanswered request delays the event. `before` is the
    document that is being left. Raises Restless.
    """
    note, overtaken = "", 0
    last, is_usable = until, False
    while wait != "none" and _EVENTS[wait] not in page.lifecycle.get(loader, ()):
        newest = page.frames.main.loader
        if newest not in (loader, before) and newest in page.lifecycle:
            loader, overtaken = newest, overtaken + 1  # the page replaced its document by itself
            if overtaken > MOST_OVERTAKEN:
                raise Restless("the navigation")
            last, is_usable = until, False
        if wait == "load" and not is_usable and _EVENTS["dom"] in page.lifecycle.get(loader, ()):
            last, is_usable = min(until, time.monotonic() + SETTLE_SECONDS), True
        if time.monotonic() >= last:
            note = _unfinished(page, loader, wait)
            break
        await _changed(page, min(last, time.monotonic() + 1.0))
    if wait != "none" and page.frames.main.url.startswith("http"):
        latest = min(until, time.monotonic() + STATUS_SECONDS)
        while loader not in page.statuses and time.monotonic() < latest:
            await _changed(page, latest)
    if page.frames.main.url.startswith(_ERROR_PAGE):  # a step in the history or a reload reports no error
        failed = next((each for each in reversed(list(page.log.network)) if each.kind == "Document"), None)
        page.log.omit(loader if failed is None else failed.request_id)
        raise _failure(failed.url, failed.problem) if failed else LoadFailed("the page can't be loaded")
    status, text = page.statuses.get(loader, (0, ""))
    if status >= 400:
        page.log.omit(loader)
        note = f"HTTP status {status}{f' {text}' if text else ''}{f'; {note}' if note else ''}"
    return Loaded(status, note)


def _failure(url: str, problem: str) -> LoadFailed:
    return LoadFailed(f"{shown(url)}: {_PROBLEMS.get(problem, f'the browser says {clean(problem, 100)}')}")


def _unfinished(page: Page, loader: str, wait: WaitFor) -> str:
    """The activity of a document at the deadline, in words."""
    if wait == "idle":
        return "the page still has requests running"
    first = next((each.number for each in page.log.network if each.request_id == loader), 0)
    loading = [
        f"{each.method} {clean(each.url, 100)}"
        for each in page.log.running()
        if each.number >= first and each.kind in _DELAYING_LOAD
    ]
    more = f" and {len(loading) - MOST_NAMED} more" if len(loading) > MOST_NAMED else ""
    return f"still loads: {', '.join(loading[:MOST_NAMED])}{more}" if loading else "the page still loads"


async def _changed(page: Page, until: float) -> None:
    page.changed.clear()
    try:
        async with asyncio.timeout(max(0.0, until - time.monotonic())):
            await page.changed.wait()
    except TimeoutError:
        pass


def shown(url: str) -> str:
    """A URL for a message."""
    return clean(without_user(url), 200)
