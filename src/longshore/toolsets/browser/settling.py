"""Waiting for what an action started: a navigation, its requests, then a DOM that no longer changes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final, final

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
"""A requested navigation starts within milliseconds. One that has not by now was prevented."""
POLL_PAUSE_SECONDS: Final = 1.0
"""A request that starts so long after the last action is the page's own doing."""
POLLS: Final = 2
"""So often on its own, and a URL is one that the page polls: it says nothing about an action."""
MOST_POLLED: Final = 200
"""URLs of which polls are counted."""
WAITED_FOR: Final = {
    **dict.fromkeys(("Document", "XHR", "Fetch", "Script", "Stylesheet"), REQUEST_SECONDS),
    "Image": PICTURE_SECONDS,
}
"""How long a request of each type is waited for. Those of others are not."""


@final
class Watch:
    """What began since an action, and what of it still runs."""

    def __init__(self) -> None:
        self.started = 0
        """How many requests and navigations began. It only grows."""
        self.new_document = False
        """Whether the main frame got another document."""
        self._requests: dict[tuple[str, str], tuple[float, str]] = {}
        self._requested: dict[str, float] = {}
        self._loading: set[str] = set()
        self._changed = asyncio.Event()

    def running(self) -> list[str]:
        """What still runs, in words; requests that take too long included."""
        names = [name for _, name in self._requests.values()]
        return [*names, *("the page loads" for _ in list(self._loading)[:1])]

    @property
    def is_busy(self) -> bool:
        return bool(self._loading) or self._next_expiry() is not None

    async def wait_idle(self, until: float) -> bool:
        """Wait until nothing runs. False if that was not so at the time `until` of the monotonic clock."""
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
        """When the first thing that still counts no longer does, None if nothing counts."""
        now = time.monotonic()
        ends = [end for end, _ in self._requests.values()]
        ends += [start + REQUESTED_SECONDS for start in self._requested.values()]
        return min((end for end in ends if end > now), default=None)

    # -- called by Activity

    def request_started(self, key: tuple[str, str], name: str, seconds: float) -> None:
        """A request, which is waited for so long."""
        if key not in self._requests:
            self.started += 1
        self._requests[key] = time.monotonic() + seconds, name
        self._changed.set()

    def request_ended(self, key: tuple[str, str]) -> None:
        if self._requests.pop(key, None) is not None:
            self._changed.set()

    def session_ended(self, session: str) -> None:
        for key in [key for key in self._requests if key[0] == session]:
            self.request_ended(key)

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


@final
class Activity:
    """Follows the events of a page and tells the watches of running actions."""

    def __init__(self, main_frame: str) -> None:
        self._main_frame = main_frame
        self._watches: list[Watch] = []
        self._last_action = time.monotonic()
        self._polls: dict[str, int] = {}

    def watch(self) -> Watch:
        """Begin to watch. Give it back to `unwatch`."""
        watch = Watch()
        self._watches.append(watch)
        return watch

    def unwatch(self, watch: Watch) -> None:
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
                self._ended(session, params)
            case "Network.responseReceived" if params.get("response", {}).get("mimeType") == "text/event-stream":
                self._ended(session, params)
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
        for watch in self._watches:
            watch.session_ended(session)

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
        if not self._watches:
            self._count_poll(name)
        elif self._polls.get(name, 0) < POLLS:
            for watch in self._watches:
                watch.request_started((session, params["requestId"]), name, seconds)

    def _ended(self, session: str, params: dict[str, Any]) -> None:
        for watch in self._watches:
            watch.request_ended((session, params["requestId"]))

    def _count_poll(self, name: str) -> None:
        if time.monotonic() - self._last_action < POLL_PAUSE_SECONDS:
            return
        while len(self._polls) >= MOST_POLLED and name not in self._polls:
            self._polls.pop(next(iter(self._polls)))
        self._polls[name] = self._polls.get(name, 0) + 1


async def settle(watch: Watch, quiet: Callable[[], Awaitable[None]], seconds: float = SETTLE_SECONDS) -> bool:
    """Wait for what an action started. False if something of it still runs after so many seconds.

    `quiet` waits for a quiet DOM. Its round trip through the page also guarantees that we have seen the requests that
    the page's event handlers sent: their events come before its answer.
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
