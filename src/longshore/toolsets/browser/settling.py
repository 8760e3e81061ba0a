"""Waiting for the effects of an action: a navigation, its requests, then a DOM that no longer changes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final, final

from msgspec import Struct

SETTLE_SECONDS: Final = 5.0
"""The longest wait after an action."""
REQUEST_SECONDS: Final = 3.0
"""A request that takes longer is taken for a long poll, and not waited for."""
PICTURE_SECONDS: Final = 0.5
"""A picture that takes longer changes nothing but itself, or counts visits, and is not waited for."""
QUIET_MS: Final = 60
"""The DOM is quiet when it has not changed for so long: about four frames."""
FILLED_QUIET_MS: Final = 30
"""The same after filling, which starts no navigation: what a field shows of its own comes with the next frame."""
QUIET_LIMIT_MS: Final = 800
"""The longest wait for a quiet DOM: a clock or an animation never is."""
REQUESTED_SECONDS: Final = 0.5
"""A requested navigation starts within milliseconds. After this time it counts as prevented."""
POLL_PAUSE_SECONDS: Final = 1.0
"""A request that starts so long after the last action is the page's own doing."""
POLLS: Final = 2
"""So often on its own, and a URL is one that the page polls: it says nothing about an action."""
MOST_POLLED: Final = 200
"""URLs of which polls are counted."""
CONTINUES_SECONDS: Final = 0.1
"""A request that one place in a script sends so soon after its last one was answered continues it, as a poll does.

After a longer pause, the page has been quiet between the two.
"""
MOST_REQUESTS: Final = 500
"""Requests that we follow. A page can start them without end."""
WAITED_FOR: Final = {
    **dict.fromkeys(("Document", "XHR", "Fetch", "Script", "Stylesheet"), REQUEST_SECONDS),
    "Image": PICTURE_SECONDS,
}
"""The time to wait for a request of each type. There is no wait for other types."""


@final
class ActivityWatch:
    """The activity since an action began, and the part of it in progress."""

    def __init__(self, since: float) -> None:
        self.since = since
        """A time of the monotonic clock. Requests that continue one from before are not counted."""
        self.started = 0
        """How many requests and navigations began. It only grows."""
        self.new_document = False
        """Whether the main frame got another document."""
        self._requests: dict[str, tuple[float, str]] = {}
        self._requested: dict[str, float] = {}
        self._loading: set[str] = set()
        self._changed = asyncio.Event()

    def running(self) -> list[str]:
        """The activity in progress, in words; including requests that take too long."""
        names = [name for _, name in self._requests.values()]
        return [*names, *("the page loads" for _ in list(self._loading)[:1])]

    @property
    def is_busy(self) -> bool:
        return bool(self._loading) or self._next_expiry() is not None

    async def wait_idle(self, until: float) -> bool:
        """Wait until nothing is in progress. False if something still is at the time `until` of the monotonic clock."""
        while self.is_busy:
            now = time.monotonic()
            if now >= until:
                return False
            self._changed.clear()
            expiry = self._next_expiry()
            try:
                async with asyncio.timeout(min(until, expiry if expiry is not None else until) - now):
                    await self._changed.wait()
            except TimeoutError:
                pass
        return True

    def _next_expiry(self) -> float | None:
        """The time when the first activity stops to count, None if none counts."""
        now = time.monotonic()
        ends = [end for end, _ in self._requests.values()]
        ends += [start + REQUESTED_SECONDS for start in self._requested.values()]
        return min((end for end in ends if end > now), default=None)

    # -- called by Activity

    def request_started(self, id: str, name: str, seconds: float) -> None:
        """Count a request, at most for so long."""
        if id not in self._requests:
            self.started += 1
        self._requests[id] = time.monotonic() + seconds, name
        self._changed.set()

    def request_ended(self, id: str) -> None:
        if self._requests.pop(id, None) is not None:
            self._changed.set()

    def navigation_requested(self, frame: str) -> None:
        self.started += 1
        self._requested[frame] = time.monotonic()
        self._changed.set()

    def loading_started(self, frame: str) -> None:
        self._requested.pop(frame, None)
        if frame not in self._loading:
            self.started += 1
            self._loading.add(frame)
        self._changed.set()

    def loading_ended(self, frame: str) -> None:
        self._requested.pop(frame, None)
        self._loading.discard(frame)
        self._changed.set()


class TrackedRequest(Struct):
    """A request in progress, or one that another may continue."""

    sender: tuple[str, str]
    """Its URL, and the place in a script that sent it."""
    loader: str
    """The id of the document that sent it."""
    session: str
    began: float
    """When the first of the requests that it continues began, or itself."""
    answered: float | None = None
    """When the last of its answer came. None if no request may continue it."""
    is_continued: bool = False
    has_ended: bool = False


@final
class Activity:
    """Follows the events of a page and updates the watches of running actions."""

    def __init__(self, main_frame: str) -> None:
        self._main_frame = main_frame
        self._watches: list[ActivityWatch] = []
        self._last_action = time.monotonic()
        self._polls: dict[tuple[str, str], int] = {}
        self._requests: dict[str, TrackedRequest] = {}
        """By id, which stays when a frame's document, or a worker's script, goes on in another session."""

    def watch(self, since: float | None = None) -> ActivityWatch:
        """Begin to watch activity that begins from now on, or that continues such activity.

        Pass it to `unwatch` at the end.
        """
        now = time.monotonic()
        for request in self._requests.values():
            # The previous action waited at least so long, and nothing continued it.
            if request.answered is not None and now - request.answered > FILLED_QUIET_MS / 1000:
                request.answered = None
        watch = ActivityWatch(now if since is None else since)
        self._watches.append(watch)
        return watch

    def unwatch(self, watch: ActivityWatch) -> None:
        if watch in self._watches:
            self._watches.remove(watch)
        self._last_action = time.monotonic()

    def take(self, session: str, method: str, params: dict[str, Any]) -> None:
        """An event of the page."""
        if method.startswith("Network."):
            self._take_network(session, method, params)
        elif method.startswith("Page.frame"):
            self._take_frame(method, params)
        elif method == "Page.navigatedWithinDocument":
            self.loading_ended(params["frameId"])

    def _take_network(self, session: str, method: str, params: dict[str, Any]) -> None:
        match method:
            case "Network.requestWillBeSent":
                self._request(session, params)
            case "Network.loadingFinished" | "Network.loadingFailed":
                self._answered(session, params)
                self._ended(params["requestId"])
            case "Network.responseReceived":
                self._answered(session, params)
                if params.get("response", {}).get("mimeType") == "text/event-stream":
                    self._ended(params["requestId"])
            case _:
                pass

    def _take_frame(self, method: str, params: dict[str, Any]) -> None:
        match method:
            case "Page.frameRequestedNavigation" if params.get("disposition") == "currentTab":
                self._navigation(params["frameId"], params.get("reason"))
            case "Page.frameScheduledNavigation" if params.get("delay", 0) <= REQUESTED_SECONDS:
                self._navigation(params["frameId"], params.get("reason"))
            case "Page.frameStartedLoading":
                for watch in self._watches:
                    watch.loading_started(params["frameId"])
            case "Page.frameStoppedLoading" | "Page.frameClearedScheduledNavigation":
                self.loading_ended(params["frameId"])
            case "Page.frameDetached" if params.get("reason") != "swap":
                self.loading_ended(params["frameId"])
            case "Page.frameNavigated" if params.get("frame", {}).get("id") == self._main_frame:
                for watch in self._watches:
                    watch.new_document = True
            case _:
                pass

    def loading_ended(self, frame: str) -> None:
        for watch in self._watches:
            watch.loading_ended(frame)

    def session_ended(self, session: str) -> None:
        """A worker or a frame has ended, and its requests with it."""
        for id in [id for id, request in self._requests.items() if request.session == session]:
            self._ended(id)

    def document_ended(self, loader: str) -> None:
        """A document was replaced or removed, and its requests with it: the browser reports none of these."""
        for id in [id for id, request in self._requests.items() if request.loader == loader]:
            self._ended(id)

    def _navigation(self, frame: str, reason: Any) -> None:
        if reason != "initialFrameNavigation":
            for watch in self._watches:
                watch.navigation_requested(frame)

    def _request(self, session: str, params: dict[str, Any]) -> None:
        seconds = WAITED_FOR.get(str(params.get("type")))
        if seconds is None:
            return
        request = params.get("request", {})
        name = f"{request.get('method', 'GET')} {str(request.get('url', '')).split('?')[0][:200]}"
        sender = name, _place(params)
        began = self._follow(session, params, sender)
        if not self._watches:
            self._count_poll(sender)
        elif self._polls.get(sender, 0) < POLLS:
            for watch in self._watches:
                if began >= watch.since:
                    watch.request_started(params["requestId"], name, seconds)

    def _follow(self, session: str, params: dict[str, Any], sender: tuple[str, str]) -> float:
        """Follow a request. Returns the start of the first request that it continues."""
        id, now = params["requestId"], time.monotonic()
        if id in self._requests:  # a redirect
            return self._requests[id].began
        before = next((each for each in self._requests.values() if _may_continue(each, sender, now)), None)
        if before is not None:
            before.is_continued = True
        if len(self._requests) >= MOST_REQUESTS:
            self._requests = {id: each for id, each in self._requests.items() if not each.has_ended}
        while len(self._requests) >= MOST_REQUESTS:
            self._requests.pop(next(iter(self._requests)))
        began = now if before is None else before.began
        self._requests[id] = TrackedRequest(sender, str(params.get("loaderId", "")), session, began)
        return began

    def _answered(self, session: str, params: dict[str, Any]) -> None:
        request = self._requests.get(params["requestId"])
        if request is not None:
            request.session = session
            # A request sent after the page has cancelled another one does not continue that.
            request.answered = None if params.get("canceled") else time.monotonic()

    def _ended(self, id: str) -> None:
        if id in self._requests:
            self._requests[id].has_ended = True
        for watch in self._watches:
            watch.request_ended(id)

    def _count_poll(self, sender: tuple[str, str]) -> None:
        if time.monotonic() - self._last_action < POLL_PAUSE_SECONDS:
            return
        while len(self._polls) >= MOST_POLLED and sender not in self._polls:
            self._polls.pop(next(iter(self._polls)))
        self._polls[sender] = self._polls.get(sender, 0) + 1


def _place(params: dict[str, Any]) -> str:
    """The place in a script that sends a request; empty if no script does."""
    frames = params.get("initiator", {}).get("stack", {}).get("callFrames", ())
    return ":".join(str(frames[0].get(name)) for name in ("scriptId", "lineNumber", "columnNumber")) if frames else ""


def _may_continue(before: TrackedRequest, sender: tuple[str, str], now: float) -> bool:
    """Whether a request that is sent now continues that one."""
    return (
        before.sender == sender
        and before.answered is not None
        and not before.is_continued
        and now - before.answered < CONTINUES_SECONDS
    )


async def settle(watch: ActivityWatch, quiet: Callable[[], Awaitable[None]], seconds: float = SETTLE_SECONDS) -> bool:
    """Wait for the effects of an action. False if some are still in progress after that many seconds.

    `quiet` waits for a quiet DOM. Its round trip through the page also guarantees that the requests sent by the page's
    event handlers are known: their events come before its answer.
    """
    until = time.monotonic() + seconds
    while True:
        seen = watch.started
        try:
            async with asyncio.timeout(max(0.05, until - time.monotonic())):
                await quiet()
        except TimeoutError:
            return False
        if not watch.is_busy and watch.started == seen:
            return True
        if not await watch.wait_idle(until) or time.monotonic() >= until:
            return False
