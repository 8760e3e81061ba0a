"""A page that the server is attached to: its sessions, its frames, its dialogs, and its events."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Coroutine
from functools import partial
from typing import Any, Final, final

from msgspec import Struct

from longshore.addresses import parse_ip
from longshore.toolsets.browser.connection import TOO_LONG, CdpConnection, CdpError, ConnectionClosed, Params
from longshore.toolsets.browser.events import TabLog, clean
from longshore.toolsets.browser.frames import Frames
from longshore.toolsets.browser.origins import METADATA_PATTERNS, OriginRules, origin_of_url
from longshore.toolsets.browser.settling import Activity

ATTACH_SECONDS: Final = 5.0
"""A page answers at once when it is attached. A page that does not is discarded or hangs."""
ANSWER_SECONDS: Final = 0.7
"""A page that does not answer a question without work for so long is taken for stuck."""
CLOSING_SECONDS: Final = 2.0
"""The time for a closed page to end."""
MOST_BODY_BYTES: Final = 10 << 20
MOST_BODIES_BYTES: Final = 50 << 20
"""The response bodies that the browser keeps for us: of one request, and in all."""

FOLLOW_REQUESTS: Final[tuple[str, Params]] = (
    "Network.enable",
    {"maxTotalBufferSize": MOST_BODIES_BYTES, "maxResourceBufferSize": MOST_BODY_BYTES},
)
KEEP_FROM_METADATA: Final[tuple[str, Params]] = (
    "Fetch.enable",
    {"patterns": [{"urlPattern": each} for each in METADATA_PATTERNS]},
)

MOST_MESSAGES: Final = 5_000
"""Console messages of a page during one call. More would keep us from all other pages."""
MOST_DIALOGS: Final = 20
"""Dialogs that a page may open during one call. A script that opens more is ended."""
SHOWN_DIALOGS: Final = 3
"""Dialogs of one call that are reported with their text. The others are counted."""
CLOSED: Final = "it was closed"
BLOCKED: Final = "a dialog blocked it"
POPUPS: Final = "it opened popups without end"
RESTLESS: Final = "it loaded other documents all the time"
FLOOD: Final = "it wrote more to its console than can be read"
"""Reasons why a page has ended, which the caller acts on. After the last four, another page can still be loaded."""


class FileChooser(Struct, frozen=True):
    """A file dialog that a page opened, which is not shown on the screen."""

    session: str
    node: int
    several: bool


@final
class Dialogs:
    """The answers to dialogs: dismissed, unless a step has set another answer for the next ones."""

    def __init__(self) -> None:
        self._answers: deque[tuple[bool, str | None]] = deque(maxlen=MOST_DIALOGS)
        self._opened = 0

    @property
    def is_one_too_many(self) -> bool:
        """Whether the last dialog was the first one above the limit of one call."""
        return self._opened == MOST_DIALOGS + 1

    def call_begins(self) -> None:
        """Count from here on."""
        self._opened = 0

    def arm(self, accept: bool, text: str | None = None) -> int:
        """Set the answer of the next dialog without one. Returns how many have one now."""
        self._answers.append((accept, text))
        return len(self._answers)

    def disarm(self) -> None:
        """Dismiss dialogs again: the answers were for another page's."""
        self._answers.clear()

    def answer(self, kind: str, message: str) -> tuple[Params, str]:
        """The parameters of the answer, and its notice."""
        self._opened += 1
        shown = f'{kind} "{clean(message)}"' if self._opened <= SHOWN_DIALOGS else "another dialog was"
        if kind == "beforeunload":
            return {"accept": True}, "the page asked whether to leave it: left"
        accept, text = self._answers.popleft() if self._answers else (None, None)
        if accept:
            typed = {} if text is None else {"promptText": text}
            return {"accept": True, **typed}, f"{shown} accepted{'' if text is None else ' with a text'}"
        if kind == "alert":
            return {"accept": False}, f"{shown} closed"
        hint = (
            ""
            if accept is False or self._opened > SHOWN_DIALOGS
            else "; to accept it, put a dialog step for each dialog before the step that opens them"
        )
        return {"accept": False}, f"{shown} dismissed{hint}"


@final
class Page:
    """An attached page. It ends when the page is closed, its renderer crashes, or the browser ends."""

    def __init__(
        self,
        connection: CdpConnection,
        target_id: str,
        session: str,
        log: TabLog,
        dialogs: Dialogs,
        is_users: bool,
        has_proxy: bool,
    ) -> None:
        self.connection, self.target_id, self.session = connection, target_id, session
        self.log, self._dialogs, self._is_users, self._has_proxy = log, dialogs, is_users, has_proxy
        self.frames = Frames(connection, target_id, session, log.refs)
        self.activity = Activity(target_id)
        self.is_stuck = False
        """Whether it did not answer the last time."""
        self._messages = 0
        self._disabled: set[str] = set()
        """Sessions whose scripts were stopped."""
        self.choosers: list[FileChooser] = []
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        """Done with the reason when the page has ended."""
        self.lifecycle: dict[str, set[str]] = {}
        """The events of the main frame's documents, by loader: DOMContentLoaded, load, networkIdle."""
        self.statuses: dict[str, tuple[int, str]] = {}
        """Status and text of the answers that brought the main frame's documents, by loader."""
        self.changed = asyncio.Event()
        """Set at each event of the main frame. Waiting coroutines clear it first."""
        self._stops = {session: connection.listen(session, partial(self._take, session))}
        self._tasks: set[asyncio.Task[None]] = set()
        self._closing = asyncio.get_running_loop().create_task(self._watch_connection())

    @classmethod
    async def attach(
        cls,
        connection: CdpConnection,
        target_id: str,
        log: TabLog,
        dialogs: Dialogs,
        session: str | None = None,
        *,
        is_users: bool = False,
        has_proxy: bool = True,
    ) -> Page:
        """Attach to a target, or use the session of a target that the browser attached and paused.

        `is_users`: a user of the browser opened it, so the server never closes it. `has_proxy`: whether our proxy
        enforces the rules of origins. Without it, the page itself is kept from metadata services. Raises CdpError,
        ConnectionClosed or TimeoutError.
        """
        if session is None:
            attached = await connection.call(
                "Target.attachToTarget", {"targetId": target_id, "flatten": True}, seconds=ATTACH_SECONDS
            )
            session = str(attached["sessionId"])
        page = cls(connection, target_id, session, log, dialogs, is_users, has_proxy)
        try:
            await page._enable(page.session)
        except BaseException:
            page.end("it could not be used")
            drop(connection.send("Target.detachFromTarget", {"sessionId": page.session}))
            raise
        return page

    def end(self, reason: str) -> None:
        """Stop following the page."""
        if not self.ended.done():
            self.ended.set_result(reason)
        for session, stop in self._stops.items():
            stop()
            self.log.session_ended(session)
        self._stops.clear()
        self._closing.cancel()
        for task in self._tasks:
            task.cancel()
        self.changed.set()

    def give_up(self, reason: str) -> None:
        """Close a page that can't be used any more, and its scripts."""
        self.end(reason)
        drop(self.connection.send("Runtime.terminateExecution", {}, self.session))
        self.close()

    def close(self) -> None:
        """Close the page, or detach from one that a user opened."""
        if self._is_users:
            drop(self.connection.send("Target.detachFromTarget", {"sessionId": self.session}))
        else:
            drop(self.connection.send("Target.closeTarget", {"targetId": self.target_id}))

    async def call(self, method: str, params: Params | None = None, session: str | None = None) -> Params:
        """A call to the page's own session, or to another of its sessions."""
        return await self.connection.send(method, params, session or self.session)

    async def input(self, events: list[tuple[str, Params]]) -> None:
        """Send input events without waiting between them, then await their answers.

        They go to the main session also for frames of other processes: the browser finds the frame under a point and
        the focused frame by itself, and the coordinates are then the same for all.
        """
        futures = [self.connection.send(method, params, self.session) for method, params in events]
        await asyncio.gather(*futures)

    async def answers(self, seconds: float = ANSWER_SECONDS) -> bool:
        """Whether the page's main thread answers."""
        try:
            await self.connection.call("Runtime.evaluate", {"expression": "1"}, self.session, seconds)
        except (TimeoutError, CdpError, ConnectionClosed):
            return False
        return True

    async def wait_if_closing(self) -> None:
        """Wait for the end of a page that has closed itself, or was closed by the one that opened it."""
        try:
            asked = {"expression": "window.closed", "returnByValue": True}
            reply = await self.connection.call("Runtime.evaluate", asked, self.session, ANSWER_SECONDS)
        except (TimeoutError, CdpError, ConnectionClosed):
            return
        if reply.get("result", {}).get("value") is True:
            await asyncio.wait({self.ended}, timeout=CLOSING_SECONDS)

    async def stop_scripts(self) -> bool:
        """End a script that blocks the page. Returns whether the page answers now."""
        for frame_session in {frame.session for frame in self.frames}:
            drop(self.connection.send("Runtime.terminateExecution", {}, frame_session))
        return await self.answers(1.5)

    # -- sessions

    async def _enable(self, session: str) -> None:
        """Ask for the events of a session, all in one write."""
        calls: list[tuple[str, Params]] = [
            ("Page.enable", {}),
            ("Page.setLifecycleEventsEnabled", {"enabled": True}),
            ("Runtime.enable", {}),
            ("Log.enable", {}),
            ("Page.getFrameTree", {}),
        ]
        if session == self.session:
            calls += [
                ("Inspector.enable", {}),
                ("Emulation.setFocusEmulationEnabled", {"enabled": True}),
                ("Page.setInterceptFileChooserDialog", {"enabled": True}),
            ]
        calls += self._following()
        futures = [self.connection.send(method, params, session) for method, params in calls]
        async with asyncio.timeout(ATTACH_SECONDS):
            answers = await asyncio.gather(*futures)
        tree = next(answer["frameTree"] for answer in answers if "frameTree" in answer)
        self.frames.take_tree(session, tree)

    def _following(self) -> list[tuple[str, Params]]:
        """The calls that report the requests of a frame or worker and of those that it starts, and resume it."""
        children = {
            "autoAttach": True,
            # Its first requests are seen too. A user's popups would wait as well, even those not attached to.
            "waitForDebuggerOnStart": self._has_proxy,
            "flatten": True,
            "filter": [{"type": "iframe"}, {"type": "worker"}],
        }
        keeping = [] if self._has_proxy else [KEEP_FROM_METADATA]
        return [
            FOLLOW_REQUESTS,
            ("Target.setAutoAttach", children),
            *keeping,
            ("Runtime.runIfWaitingForDebugger", {}),
        ]

    async def _enable_frame(self, session: str) -> None:
        try:
            await self._enable(session)
        except (CdpError, ConnectionClosed, TimeoutError):
            pass  # a frame that was removed, or that hangs; the page continues without it

    async def _watch_connection(self) -> None:
        await self.connection.wait_closed()
        self.end("the browser ended")

    # -- events

    def call_begins(self) -> None:
        """Count dialogs and console messages from here on."""
        self._dialogs.call_begins()
        if self._messages < MOST_MESSAGES:
            self._messages = 0

    def _take(self, session: str, method: str, params: Params) -> None:
        if method == TOO_LONG:
            self.give_up(FLOOD)
            return
        if method == "Runtime.consoleAPICalled" and self._is_flood(session):
            return
        self._documents_ended(self.frames.take(session, method, params))
        self.activity.take(session, method, params)
        self.log.take(session, method, params)
        if session == self.session:
            self._take_main(method, params)
        match method:
            case "Target.attachedToTarget":
                self._child_attached(params)
            case "Target.detachedFromTarget":
                self._child_detached(params)
            case "Page.javascriptDialogOpening":
                self._answer_dialog(session, params)
            case "Fetch.requestPaused":
                self._check_request(session, params)
            case "Network.responseReceived" if not self._has_proxy:
                self._check_response(params["response"])
            case "Page.fileChooserOpened":
                several = params.get("mode") == "selectMultiple"
                if "backendNodeId" in params:
                    self.choosers[:] = [FileChooser(session, int(params["backendNodeId"]), several)]
                self.changed.set()
            case _:
                pass

    def _check_request(self, session: str, params: Params) -> None:
        """Block a request that names a metadata service."""
        asked = {"requestId": params["requestId"]}
        origin = origin_of_url(str(params["request"]["url"]))
        if origin is not None and OriginRules().origin_problem(origin):
            drop(self.connection.send("Fetch.failRequest", {**asked, "errorReason": "BlockedByClient"}, session))
        else:
            drop(self.connection.send("Fetch.continueRequest", asked, session))

    def _check_response(self, response: Params) -> None:
        """Close a page that has reached a metadata service by another name."""
        origin = origin_of_url(str(response.get("url", "")))
        address = parse_ip(str(response.get("remoteIPAddress", "")).strip("[]"))
        problem = origin and address and OriginRules().address_problem(origin, address)
        if problem:
            self.log.notices.add(f"{problem}; the page was left")
            drop(self.connection.send("Page.navigate", {"url": "about:blank"}, self.session))

    def _is_flood(self, session: str) -> bool:
        """Count a console message, and stop the scripts of a page that writes too many."""
        self._messages += 1
        if self._messages == MOST_MESSAGES:
            self.log.notices.add(
                f"more than {MOST_MESSAGES:,} console messages: the page's scripts are stopped until it is loaded again"
            )
            self._disable_scripts(session)
        return self._messages > MOST_MESSAGES

    def _disable_scripts(self, session: str) -> None:
        """End the running script, and disable all further scripts of the page."""
        self._disabled.add(session)
        drop(self.connection.send("Emulation.setScriptExecutionDisabled", {"value": True}, session))
        drop(self.connection.send("Runtime.terminateExecution", {}, session))

    def enable_scripts(self) -> None:
        """Enable the scripts of the next document."""
        for session in self._disabled:
            drop(self.connection.send("Emulation.setScriptExecutionDisabled", {"value": False}, session))
        self._disabled.clear()

    def _answer_dialog(self, session: str, params: Params) -> None:
        """Answer a dialog at once: it blocks the page."""
        answer, notice = self._dialogs.answer(str(params.get("type")), str(params.get("message", "")))
        self.log.notices.add(notice)
        if self._dialogs.is_one_too_many:
            # A loop ends after hundreds more dialogs, which are closed meanwhile.
            drop(self.connection.send("Runtime.terminateExecution", {}, session))
            self.log.notices.add(f"more than {MOST_DIALOGS} dialogs: the script that opens them was ended")
        self._start(self._close_dialog(session, answer))

    async def _close_dialog(self, session: str, answer: Params) -> None:
        try:
            await self.connection.send("Page.handleJavaScriptDialog", answer, session)
        except ConnectionClosed:
            pass
        except CdpError:
            # The dialog has gone by itself; or it opened while another document was taking over. Then Chromium refuses
            # the answer, and both documents wait for each other.
            if not self.ended.done() and not await self.answers():
                self.give_up(BLOCKED)

    def _take_main(self, method: str, params: Params) -> None:
        match method:
            case "Page.lifecycleEvent" if params.get("frameId") == self.target_id:
                self._lifecycle(params["loaderId"]).add(str(params["name"]))
            case "Page.frameNavigated" if params["frame"]["id"] == self.target_id:
                self._dialogs.disarm()
                if params.get("type") == "BackForwardCacheRestore":
                    self._lifecycle(params["frame"]["loaderId"]).update(("DOMContentLoaded", "load", "networkIdle"))
                self.choosers.clear()
                self._messages = 0
                self.enable_scripts()
            case "Network.responseReceived" if params.get("type") == "Document":
                if params.get("frameId") == self.target_id:
                    reply = params.get("response", {})
                    self.statuses[params["loaderId"]] = (
                        int(reply.get("status", 0)),
                        clean(reply.get("statusText", ""), 60),
                    )
                    _keep_newest(self.statuses)
            case "Inspector.targetCrashed":
                self.end("its process crashed or was killed")
            case "Inspector.detached":
                self.end(CLOSED if params.get("reason") == "target_closed" else "its process ended")
            case _:
                return
        self.changed.set()

    def _lifecycle(self, loader: str) -> set[str]:
        events = self.lifecycle.setdefault(loader, set())
        _keep_newest(self.lifecycle)
        return events

    def _child_attached(self, params: Params) -> None:
        session, info = str(params["sessionId"]), params["targetInfo"]
        self._stops[session] = self.connection.listen(session, partial(self._take, session))
        if info.get("type") == "iframe":
            self._documents_ended(self.frames.moved(info["targetId"], session, info.get("parentFrameId")))
            self._start(self._enable_frame(session))
        else:  # a worker
            for method, asked in self._following():
                drop(self.connection.send(method, asked, session))

    def _documents_ended(self, loaders: list[str]) -> None:
        for loader in loaders:
            self.activity.document_ended(loader)
            self.log.document_ended(loader)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        """Work that is cancelled with the page."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _child_detached(self, params: Params) -> None:
        stop = self._stops.pop(str(params.get("sessionId")), None)
        if stop is not None:
            stop()
            self.activity.session_ended(str(params["sessionId"]))
            self.log.session_ended(str(params["sessionId"]))
        for frame in self.frames:
            if frame.session == params.get("sessionId"):
                self.activity.loading_ended(frame.id)
                frame.script = None


def drop(future: asyncio.Future[Any]) -> None:
    """Ignore an answer or error."""
    future.add_done_callback(lambda done: done.cancelled() or done.exception())


def _keep_newest(records: dict[str, Any], most: int = 20) -> None:
    while len(records) > most:
        records.pop(next(iter(records)))
