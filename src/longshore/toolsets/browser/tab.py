"""A tab: it loads pages, reads them and acts in them. Its id stays when a page that crashed is replaced."""

from __future__ import annotations

import asyncio
import re
import time
from base64 import b64decode
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, nullcontext
from typing import Any, Final, Literal, Protocol, TypeVar, final

from msgspec import Struct
from msgspec.structs import replace

from longshore.errors import ToolError, ToolTimeout
from longshore.toolsets.browser import navigation
from longshore.toolsets.browser.actions import FRAME_SECONDS, Actions, Element, ElementTarget, Fill, Step, Wait
from longshore.toolsets.browser.connection import CdpError, ConnectionClosed
from longshore.toolsets.browser.downloads import Downloads
from longshore.toolsets.browser.evaluation import ScriptElement, evaluate
from longshore.toolsets.browser.events import PageError, RefNumbers, TabLog, clean, labelled, unlabelled
from longshore.toolsets.browser.frames import Frame
from longshore.toolsets.browser.masking import Secrets
from longshore.toolsets.browser.navigation import Loaded, Restless, WaitFor
from longshore.toolsets.browser.page import BLOCKED, CLOSED, FLOOD, POPUPS, RESTLESS, Dialogs, Page, drop
from longshore.toolsets.browser.screenshots import Box, Format, Screenshot, capture
from longshore.toolsets.browser.script import REF, PageScript
from longshore.toolsets.browser.settling import (
    FILLED_QUIET_MS,
    QUIET_LIMIT_MS,
    QUIET_MS,
    SETTLE_SECONDS,
    ActivityWatch,
    settle,
)
from longshore.toolsets.browser.snapshot import SnapshotLine, compose, diff, fold_repeated

ACT_SECONDS: Final = 15.0
READ_SECONDS: Final = 10.0
NAVIGATE_SECONDS: Final = 30.0
LOOK_SECONDS: Final = 2.0
"""Of the time of a navigation, what is left to look at a page that still loads."""
RESTORE_SECONDS: Final = 10.0
"""How long the last URL of a replaced page may take to load."""
DIFF_TOKENS: Final = 400
TRUNCATED: Final = "the page has more nodes than are looked at; give a scope"
COMPARED_IN_PART: Final = (
    "only a part was compared: the page has more nodes than are looked at; give browser_snapshot a scope"
)
MOST_MARKS: Final = 100
"""Refs that are written in a picture. More would cover it."""
MOST_SHOWN_FRAMES: Final = 50
"""Frames of one document whose content is in a snapshot. More are advertisements, or an attack."""

_REF: Final = re.compile(rf"\b{REF}\b")

T = TypeVar("T")


class Outcome(Struct, frozen=True):
    """The result of steps."""

    line: str
    """One sentence."""
    events: list[str]
    """Dialogs, new tabs, downloads, console errors, failed requests, and what could not be waited for."""
    url: str | None = None
    title: str | None = None
    """Both only if they changed."""
    diff: str = ""
    """The changes of the page, or of the compared part. Empty also if there is another document."""
    page: list[SnapshotLine] | None = None
    """The lines of another document. Parts that are as on the page before are one line each."""
    failed: str | None = None
    """Why a step failed, after others were done."""
    closed: bool = False
    """Whether the page was closed, by itself or by a user."""


class Arrival(Struct, frozen=True):
    """The result of a navigation."""

    url: str
    title: str
    status: int
    note: str
    events: list[str]
    page: list[SnapshotLine]
    """The page's lines, none if it was not waited for. Parts that are as on the page before are one line each."""
    lines: list[SnapshotLine]
    """All of the page's lines."""


class PageSnapshot(Struct, frozen=True):
    """A page's lines, those of its frames among them."""

    lines: list[SnapshotLine]
    url: str
    title: str
    truncated: bool


NOTHING: Final = PageSnapshot([], "", "", False)


class Match(Struct, frozen=True):
    """An element or text that was found."""

    text: str
    ref: str | None
    path: list[str]


class Found(Struct, frozen=True):
    """The matches on a page."""

    matches: list[Match]
    total: int
    truncated: bool
    """Whether the page has more nodes than were looked at."""


class Reading(Struct, frozen=True):
    """The text of a page."""

    text: str
    total_chars: int


class Body(Struct, frozen=True):
    """The body of an answer."""

    data: bytes
    is_text: bool


class Host(Protocol):
    """The browser that a tab is in."""

    @property
    def downloads(self) -> Downloads: ...
    @property
    def secrets(self) -> Secrets: ...
    async def open_page(self, tab: Tab) -> Page:
        """A new page for a tab, in a new browser if need be."""
        ...

    async def wait_popups(self, opener: Tab) -> None:
        """Wait until pages that this one opened are tabs, and until those that were closed are gone."""
        ...

    def shares_window(self, tab: Tab) -> bool:
        """Whether another tab can hide this one."""
        ...

    def replaces(self, tab: Tab) -> bool:
        """Whether a tab whose page has ended gets a new one."""
        ...


@final
class Tab:
    """A tab. Its methods raise ToolError with the fix, and take no longer than their `seconds`."""

    def __init__(self, id: str, host: Host, url: str = "about:blank", opener: Tab | None = None) -> None:
        self.id, self._host, self.opener = id, host, opener
        self.log = TabLog(host.secrets, RefNumbers(id))
        self.dialogs = Dialogs()
        self.title = ""
        self.refused_popups = 0
        """During this call."""
        self.seen_url = url
        """Is loaded again when the page must be replaced."""
        self.page: Page | None = None
        self.closed = False
        self._acting = asyncio.Lock()
        self._opening = asyncio.Lock()
        self._last = NOTHING

    @property
    def url(self) -> str:
        """The URL of the page, for answers; if the page has ended, its last known URL."""
        page = self.page
        url = self.seen_url if page is None or page.ended.done() else page.frames.main.url or self.seen_url
        return self.log.mask(url)

    # -- navigation

    async def navigate(self, url: str, wait: WaitFor = "load", seconds: float = NAVIGATE_SECONDS) -> Arrival:
        """Load a URL."""
        until = time.monotonic() + seconds

        async def load() -> Arrival:
            latest = _loaded_by(until, until - time.monotonic())
            return await self._navigate(
                lambda page: navigation.load(page, url, wait, latest), wait, seconds, restore=False, until=until
            )

        try:
            return await load()
        except PageBlocked:
            return await load()  # in another page
        except Restless:
            # A document that replaces itself all the time can overtake the requested one; not in another page.
            if self.page is None or not self._host.replaces(self):
                raise
            self.page.give_up(RESTLESS)
            return await load()

    async def back(self, wait: WaitFor = "load", seconds: float = NAVIGATE_SECONDS) -> Arrival:
        latest = _loaded_by(time.monotonic() + seconds, seconds)
        return await self._navigate(lambda page: navigation.step(page, -1, wait, latest), wait, seconds)

    async def forward(self, wait: WaitFor = "load", seconds: float = NAVIGATE_SECONDS) -> Arrival:
        latest = _loaded_by(time.monotonic() + seconds, seconds)
        return await self._navigate(lambda page: navigation.step(page, 1, wait, latest), wait, seconds)

    async def reload(self, wait: WaitFor = "load", seconds: float = NAVIGATE_SECONDS) -> Arrival:
        latest = _loaded_by(time.monotonic() + seconds, seconds)
        return await self._navigate(lambda page: navigation.reload(page, wait, latest), wait, seconds)

    async def _navigate(
        self,
        go: Callable[[Page], Awaitable[Loaded]],
        wait: WaitFor,
        seconds: float,
        restore: bool = True,
        until: float | None = None,
    ) -> Arrival:
        async def work(page: Page) -> Arrival:
            first = self._host.downloads.count + 1
            page.enable_scripts()
            loaded = await go(page)
            if loaded.download:
                await self._host.downloads.wait(first, SETTLE_SECONDS, begins=True)
            before, lines = self._last.lines, list[SnapshotLine]()
            if wait == "none":
                await self.look(page)
            else:
                made = self._note(await self._snapshot(page))
                lines = made.lines
                if made.truncated:
                    self.log.notices.add(TRUNCATED)
            events = self.log.notices.take()
            shown = fold_repeated(lines, before)
            return Arrival(self.url, self.title, loaded.status, loaded.note, events, shown, lines)

        until = until or time.monotonic() + seconds
        async with self._turn(until):
            return await self._run(work, seconds, "the navigation", restore, until)

    # -- looking

    async def snapshot(
        self,
        mode: Literal["full", "interactive"] = "full",
        target: ElementTarget | None = None,
        depth: int | None = None,
        links: bool = False,
        seconds: float = READ_SECONDS,
        boxes: bool = False,
    ) -> PageSnapshot:
        """The page's lines, with refs; with `boxes` also where each element is in the window."""

        async def work(page: Page) -> PageSnapshot:
            made = await self._snapshot(page, mode, target, depth, links, boxes)
            return self._note(made) if mode == "full" and target is None and depth is None and not boxes else made

        return await self._run(work, seconds, "the snapshot")

    async def changes(self, max_tokens: int = DIFF_TOKENS, seconds: float = READ_SECONDS) -> str:
        """The changes since the last full snapshot or action."""
        before = self._last
        after = await self.snapshot(seconds=seconds)
        return _changes(before, after, max_tokens)

    async def find(
        self,
        text: str | None = None,
        regex: str | None = None,
        role: str | None = None,
        limit: int = 10,
        seconds: float = READ_SECONDS,
        near: str | None = None,
    ) -> Found:
        """Find elements and texts in all frames; those near a text come first, from the frames that have it."""

        async def work(page: Page) -> Found:
            frames = list(page.frames)
            asked = (
                self._in_frame(page, frame, lambda s: s.find(text=text, regex=regex, role=role, near=near, limit=limit))
                for frame in frames
            )
            matches: list[Match] = []
            total, truncated = 0, False
            for frame, found in zip(frames, await asyncio.gather(*asked), strict=True):
                if found is not None:
                    total += found.total
                    truncated = truncated or found.truncated
                    path = (
                        [] if frame.parent is None else [f"frame {frame.prefix} {clean(self.log.mask(frame.url), 60)}"]
                    )
                    matches += [Match(each.text, each.ref, path + each.path) for each in found.matches]
            return Found(matches[:limit], total, truncated)

        return await self._run(work, seconds, "the search")

    async def read(
        self,
        format: Literal["markdown", "text", "html", "table"] = "markdown",
        selector: str | None = None,
        ref: str | None = None,
        limit_chars: int = 1_000_000,
        seconds: float = READ_SECONDS,
    ) -> Reading:
        """The text of the page or of a part of it, and below it that of the frames in it."""

        async def read_frame(page: Page, frame: Frame, target: ElementTarget | None) -> Reading:
            selector, ref = (None, None) if target is None else (target.selector, target.ref)
            found = await self._in_frame(
                page, frame, lambda s: s.read(format=format, selector=selector, ref=ref, limit_chars=limit_chars)
            )
            if found is None:
                return Reading("(it does not answer)", 0)
            parts, total = [found.text], found.total_chars
            children = await self._shown_children(page, frame, target)
            for child in children[:MOST_SHOWN_FRAMES]:
                inner = await read_frame(page, child, None)
                parts.append(f"[frame {child.prefix} {clean(self.log.mask(child.url))}]\n\n{inner.text}")
                total += inner.total_chars
            if len(children) > MOST_SHOWN_FRAMES:
                parts.append(f"[{len(children) - MOST_SHOWN_FRAMES} frames left out]")
            return Reading("\n\n".join(part for part in parts if part)[:limit_chars], total)

        async def work(page: Page) -> Reading:
            frame = page.frames.main if ref is None else page.frames.of_ref(ref)
            return await read_frame(page, frame, ElementTarget(selector=selector, ref=ref) if selector or ref else None)

        return await self._run(work, seconds, "reading")

    async def evaluate(
        self, script: str, ref: str | None = None, seconds: float = READ_SECONDS, args: Sequence[Any] = ()
    ) -> str:
        """The value of a script in the page's own world, as JSON text. A function gets the element of `ref` and `args`.

        With a ref it runs in the frame of that element.
        """

        async def work(page: Page) -> str:
            element = None
            if ref is not None:
                actions = Actions(page, self.dialogs)
                element = await self._own_world(page, actions, await actions.find(ElementTarget(ref=ref)))
            return await evaluate(page, script, element, seconds, args)

        return await self._run(work, seconds, "the script")

    async def screenshot(
        self,
        format: Format = "webp",
        quality: int | None = None,
        max_width: int | None = None,
        full_page: bool = False,
        target: ElementTarget | None = None,
        seconds: float = READ_SECONDS,
        marks: bool = False,
    ) -> Screenshot:
        """A picture of the window, of the whole page, or of an element; with `marks` the refs are beside controls."""

        async def work(page: Page) -> Screenshot:
            self._bring_to_front(page)
            part = None if target is None else await self._box(page, target)
            if not marks:
                return await capture(page, format, quality, max_width, full_page, part)
            script = await page.frames.script(page.frames.main)
            refs = await script.mark(MOST_MARKS)
            try:
                made = await capture(page, format, quality, max_width, full_page, part)
            finally:
                await script.unmark()
            return replace(made, marks=refs)

        return await self._run(work, seconds, "the screenshot")

    def prepare_answer(self, text: str) -> str:
        """A text of the page for an answer, with dots for passwords. The page records which refs are in it."""
        masked, page = self.log.secrets.mask(text), self.page
        if page is not None and not page.ended.done():
            refs: dict[str, list[str]] = {}
            for match in _REF.finditer(masked):
                refs.setdefault(match[1], []).append(match[0])
            for frame in page.frames:
                if frame.prefix in refs and frame.script is not None:
                    drop(frame.script.show(refs[frame.prefix]))
        return masked

    async def body(self, number: int, seconds: float = READ_SECONDS) -> Body:
        """The body of the answer to a request of the network log."""
        exchange = self.log.exchange(number)
        if exchange is None:
            raise ToolError(f"there is no request {number} in the network log of {self.id}; list it for the numbers")

        async def work(page: Page) -> Body:
            try:
                reply = await page.call("Network.getResponseBody", {"requestId": exchange.request_id}, exchange.session)
            except CdpError:
                raise ToolError(f"request {number} has no body, or the browser no longer has it") from None
            text = str(reply.get("body", ""))
            return Body(b64decode(text), False) if reply.get("base64Encoded") else Body(text.encode(), True)

        return await self._run(work, seconds, "the request for the body")

    # -- acting

    async def act(self, *steps: Step, seconds: float = ACT_SECONDS) -> Outcome:
        """Perform steps. It stops at the first that fails, and raises its ToolError if nothing was done before.

        Other calls act meanwhile only if all of these steps wait.
        """
        done: list[str] = []

        async def work(page: Page) -> Outcome:
            return await self._act(page, steps, done)

        until = time.monotonic() + seconds
        only_waits = all(isinstance(step, Wait) for step in steps)
        try:
            async with nullcontext() if only_waits else self._turn(until):
                return await self._run(work, seconds, "the step", until=until)
        except PageClosed as problem:
            if not done:
                raise
            self.closed = True
            return Outcome(f"{'; '.join(done)}; then {problem}", self.log.notices.take(), closed=True)
        except ToolError as problem:
            if not done:
                raise
            raise PageError(f"done before: {'; '.join(done)}; then {unlabelled(problem)}") from None

    @asynccontextmanager
    async def _turn(self, until: float) -> AsyncGenerator[None]:
        """Exclude actions of other calls in the tab. Raises ToolError if one acted until then."""
        try:
            async with asyncio.timeout(max(0.0, until - time.monotonic())):
                await self._acting.acquire()
        except TimeoutError:
            raise ToolError(f"another call acts in {self.id}; try again when it has answered") from None
        try:
            yield
        finally:
            self._acting.release()

    async def _act(self, page: Page, steps: tuple[Step, ...], done: list[str]) -> Outcome:
        self._bring_to_front(page)
        before = await self._snapshot(page)
        actions, first, failed = Actions(page, self.dialogs), self._host.downloads.count + 1, None
        new_document = False
        for step in steps:
            watch = page.activity.watch()
            try:
                line = await actions.perform(step)
                done.append(line)
                filled = isinstance(step, Fill) and not step.submit
                await self._settle(page, watch, actions.frame, FILLED_QUIET_MS if filled else QUIET_MS)
            except ToolError as problem:
                if not done:
                    raise
                failed = unlabelled(problem)
                break
            finally:
                new_document = new_document or watch.new_document
                page.activity.unwatch(watch)
        await self._report_downloads(first, SETTLE_SECONDS)
        await self._host.wait_popups(self)
        after, _ = await asyncio.gather(self._snapshot(page), page.wait_if_closing())
        self._note(after)
        if page.choosers:
            self.log.notices.add("the page asks for files: give them with an upload")
        return Outcome(
            "; ".join(done),
            self.log.notices.take(),
            self.log.mask(after.url) if after.url != before.url else None,
            after.title if after.title != before.title else None,
            "" if new_document else _changes(before, after, DIFF_TOKENS),
            fold_repeated(after.lines, before.lines) if new_document else None,
            failed,
        )

    async def _settle(self, page: Page, watch: ActivityWatch, frame: Frame, quiet_ms: int) -> None:
        frames = [page.frames.main] if frame is page.frames.main else [page.frames.main, frame]

        async def quiet() -> None:
            await asyncio.gather(*(self._quiet(page, each, quiet_ms) for each in frames))

        is_quiet = await settle(watch, quiet)
        running = ", ".join(clean(name, 100) for name in watch.running()[:3])
        if running or not is_quiet:
            self.log.notices.add(f"not waited for any longer: {running or 'the page is busy'}")

    async def _quiet(self, page: Page, frame: Frame, quiet_ms: int) -> None:
        if frame.id not in page.frames:
            return
        try:
            script = await page.frames.script(frame)
            await script.quiet(quiet_ms, QUIET_LIMIT_MS)
        except CdpError:
            frame.script = None  # the document is being replaced: the watch waits for the next one
            await asyncio.sleep(quiet_ms / 1000)

    async def _report_downloads(self, first: int, seconds: float) -> None:
        if self._host.downloads.count >= first:
            await self._host.downloads.wait(first, seconds)

    # -- pages

    async def _run(
        self,
        work: Callable[[Page], Coroutine[Any, Any, T]],
        seconds: float,
        doing: str,
        restore: bool = True,
        until: float | None = None,
    ) -> T:
        """Run a function with the page, at most for `seconds`, and not longer than the page exists.

        `until` is the end of these seconds, if some of them have passed.
        """
        if self.closed:
            raise ToolError(f"tab {self.id} is closed; open another")
        until = until or time.monotonic() + seconds
        page = await self._ready(restore, seconds)
        self.refused_popups, document = 0, page.frames.main.loader
        page.call_begins()
        task = asyncio.get_running_loop().create_task(work(page))
        try:
            left = max(0.1, until - time.monotonic())
            ending: set[asyncio.Future[Any]] = {task, page.ended}
            await asyncio.wait(ending, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            if page.ended.done():
                raise self._gone(page)
            raise await self._late(page, doing, seconds)
        except ConnectionClosed:
            page.end("the browser ended")
            raise self._gone(page) from None
        except TimeoutError:
            raise await self._late(page, doing, seconds) from None
        except CdpError as problem:
            if page.ended.done():
                raise self._gone(page) from None
            if page.frames.main.loader != document:
                raise Restless(doing) from None
            raise ToolError(f"{doing} failed: {clean(problem.message)}; take a snapshot and try again") from None
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait({task}, timeout=FRAME_SECONDS)
            drop(task)

    def _gone(self, page: Page) -> ToolError:
        reason = page.ended.result()
        if reason == CLOSED:
            return PageClosed(f"tab {self.id} was closed")
        replaced = f"the next call opens {clean(self.log.mask(self.seen_url))} again"
        then = replaced if self._host.replaces(self) else "browser_tabs lists what is open"
        problem = f"the page of {self.id} is gone: {reason}; {then}"
        return PageBlocked(problem) if reason in (BLOCKED, POPUPS, RESTLESS, FLOOD) else ToolError(problem)

    async def _late(self, page: Page, doing: str, seconds: float) -> ToolError:
        """The reason for a timeout."""
        answers = await page.answers()
        if not answers and page.ended.done():
            return self._gone(page)
        events = "; ".join(self.log.notices.take()[:5])
        after = f" ({events})" if events else ""
        label = labelled if events else str
        if answers:
            late = f"{doing} took longer than {seconds:g} s{after}"
            return ToolTimeout(late, "timeout_ms", label(" or a smaller step"))
        page.is_stuck = True
        busy = f"the page of {self.id} is busy and does not answer within {seconds:g} s{after}"
        return ToolTimeout(label(f"{busy}; the next call ends the script that runs in it, or navigate elsewhere"))

    async def _ready(self, restore: bool, seconds: float) -> Page:
        """The page, replaced if it has ended or hangs."""
        async with self._opening:
            page = self.page
            if page is not None and not page.ended.done():
                if not page.is_stuck or await page.answers():
                    page.is_stuck = False
                    return page
                if await page.stop_scripts():
                    page.is_stuck = False
                    self.log.notices.add("a script that ran without end was ended")
                    return page
                page.end("it was stuck")
                page.close()
            if page is not None and not self._host.replaces(self):
                raise self._gone(page)
            was = page
            page = self.page = await self._host.open_page(self)
            if was is not None:
                await self._restore(page, was, restore, seconds)
            return page

    async def _restore(self, page: Page, was: Page, restore: bool, seconds: float) -> None:
        """Load the last URL in the page that replaces another."""
        self._last = NOTHING
        if not restore or self.seen_url == "about:blank":
            self.log.notices.add(f"the page before was gone: {was.ended.result()}")
            return
        until = time.monotonic() + min(seconds, RESTORE_SECONDS)
        try:
            loaded = asyncio.ensure_future(navigation.load(page, self.seen_url, "load", until))
            ending: set[asyncio.Future[Any]] = {loaded, page.ended}
            await asyncio.wait(ending, return_when=asyncio.FIRST_COMPLETED)
            problem = None if loaded.done() and not loaded.exception() else "it could not be loaded again"
            if not loaded.done():
                loaded.cancel()
        except (CdpError, ConnectionClosed) as error:
            problem = str(error)
        what = problem or "it was loaded again, and what was typed in it is lost"
        self.log.notices.add(f"the page was gone ({was.ended.result()}): {what}")

    def _bring_to_front(self, page: Page) -> None:
        """A hidden tab draws no frames."""
        if self._host.shares_window(self):
            drop(page.connection.send("Page.bringToFront", {}, page.session))

    def _note(self, made: PageSnapshot) -> PageSnapshot:
        """Store the snapshot of the whole page."""
        self.seen_url, self.title, self._last = made.url, made.title, made
        return made

    async def look(self, page: Page) -> None:
        """Store URL and title."""
        self.title = clean(await page.frames.use(page.frames.main, PageScript.title))
        self.seen_url = page.frames.main.url

    # -- frames

    async def _snapshot(
        self,
        page: Page,
        mode: Literal["full", "interactive"] = "full",
        target: ElementTarget | None = None,
        depth: int | None = None,
        links: bool = False,
        boxes: bool = False,
    ) -> PageSnapshot:
        frame = page.frames.main
        query = None if target is None else target.query()
        if target is not None and target.ref is not None:
            frame = page.frames.of_ref(target.ref)
        given: dict[str, Any] = {"mode": mode, "depth": depth, "links": links, "boxes": boxes}
        reply = await page.frames.read(frame, lambda s: s.snapshot(target=query, **given))
        lines, truncated = await self._with_children(page, frame, reply, given)
        return PageSnapshot(lines, page.frames.main.url or reply.url, reply.title, truncated)

    async def _with_children(
        self, page: Page, frame: Frame, reply: Any, given: dict[str, Any]
    ) -> tuple[list[SnapshotLine], bool]:
        """A frame's lines with those of the frames in it, which are all read at once."""
        children: dict[str, list[SnapshotLine]] = {}
        truncated = bool(reply.truncated)

        async def look(ref: str) -> None:
            nonlocal truncated
            child = await self._child(page, frame, ref)
            if child is None:
                return
            inner = await self._in_frame(page, child, lambda s: s.snapshot(**given))
            if inner is not None:
                children[ref], cut = await self._with_children(page, child, inner, given)
                truncated = truncated or cut

        refs = [line.ref for line in reply.lines if line.frame and line.ref is not None]
        if refs:
            await asyncio.gather(*map(look, refs[:MOST_SHOWN_FRAMES]))
        if left := refs[MOST_SHOWN_FRAMES:]:
            children[left[0]] = [
                SnapshotLine(0, f"({len(left)} frames from here on are not looked into; give one as scope)")
            ]
        return (compose(reply.lines, children) if children else list(reply.lines)), truncated

    async def _shown_children(self, page: Page, frame: Frame, target: ElementTarget | None) -> list[Frame]:
        """The visible frames in a frame, or in a part of it, in their order."""
        if all(each.parent != frame.id for each in page.frames):
            return []
        query = None if target is None else target.query()
        found = await self._in_frame(page, frame, lambda s: s.snapshot(target=query))
        lines: list[SnapshotLine] = [] if found is None else found.lines
        shown = [await self._child(page, frame, line.ref) for line in lines if line.frame and line.ref]
        return [child for child in shown if child is not None]

    async def _child(self, page: Page, frame: Frame, ref: str) -> Frame | None:
        """The frame that an iframe element shows."""
        try:
            object_id = await page.frames.use(frame, lambda s: s.element(ref))
            reply = await page.call("DOM.describeNode", {"objectId": object_id}, frame.session)
        except CdpError:
            return None
        return page.frames.get(str(reply.get("node", {}).get("frameId", "")))

    async def _in_frame(self, page: Page, frame: Frame, work: Callable[[Any], Awaitable[T]]) -> T | None:
        """The result in a frame; None if a frame beside the main one does not answer."""
        if frame.parent is None:
            return await page.frames.use(frame, work)
        try:
            async with asyncio.timeout(FRAME_SECONDS):
                return await page.frames.use(frame, work)
        except (CdpError, TimeoutError):
            return None

    async def _own_world(self, page: Page, actions: Actions, element: Element) -> ScriptElement:
        """The element as an object of the world that the scripts of its frame run in."""
        session = element.frame.session
        ours = await actions.object_id(element)
        node = (await page.call("DOM.describeNode", {"objectId": ours}, session))["node"]["backendNodeId"]
        resolved = await page.call("DOM.resolveNode", {"backendNodeId": node}, session)
        context = page.frames.context(element.frame)
        if context is None:
            raise ToolError(f"no script can run in the frame of {element.ref}; read it with browser_read")
        return ScriptElement(session, context, str(resolved["object"]["objectId"]))

    async def _box(self, page: Page, target: ElementTarget) -> Box:
        element = await Actions(page, self.dialogs).find(target)
        box = await page.frames.use(element.frame, lambda s: s.box({"ref": element.ref}))
        x, y = box.x, box.y
        if element.frame.parent is not None:
            left, top = await page.frames.offset(element.frame)
            view = (await page.call("Page.getLayoutMetrics"))["cssVisualViewport"]
            x, y = x + left + view["pageX"], y + top + view["pageY"]
        return Box(x, y, box.width, box.height)


def _changes(before: PageSnapshot, after: PageSnapshot, max_tokens: int) -> str:
    """The difference of two snapshots. It says if they show only a part of the page."""
    truncated = before.truncated or after.truncated
    changes = diff(before.lines, after.lines, max_tokens, truncated)
    return (
        f"{changes or 'nothing changed in the part that was compared'}\n[{COMPARED_IN_PART}]" if truncated else changes
    )


def _loaded_by(until: float, seconds: float) -> float:
    """The deadline for loading a page. It leaves time in the call for reading the page."""
    return until - min(LOOK_SECONDS, seconds / 5)


class PageBlocked(ToolError):
    """The page was closed because of its behaviour: another can be loaded."""


class PageClosed(ToolError):
    """The page was closed, by itself or by a user."""
