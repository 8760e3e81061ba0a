"""The browser tools: open, navigate, look, act and capture."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable
from contextlib import AbstractAsyncContextManager
from time import monotonic
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit

from longshore.errors import ToolError, ToolTimeout
from longshore.protocol.content import Image, ResourceLink, Text
from longshore.registry.token_budget import DEFAULT_TOKENS, MOST_TOKENS, fit_ends, fit_lines
from longshore.registry.toolset import Toolset, tool
from longshore.registry.views import View
from longshore.sandbox.confined import ConfinedFiles
from longshore.sandbox.roots import Roots
from longshore.schema.annotations import Hidden
from longshore.server.context import Context
from longshore.telemetry.recorder import reporter_of
from longshore.toolsets.browser import actions
from longshore.toolsets.browser import options as browser_options
from longshore.toolsets.browser import playwright_tools as playwright
from longshore.toolsets.browser.actions import ElementTarget, Point
from longshore.toolsets.browser.answers import (
    LEAST_ANSWER,
    Shown,
    fence,
    origin_of,
    room_for_page,
    show_arrival,
    show_events,
    show_outcome,
)
from longshore.toolsets.browser.brooklyn_tools import BrooklynTools
from longshore.toolsets.browser.browsers import HEIGHT, WIDTH, Browsers, Strategy, Used
from longshore.toolsets.browser.downloads import clean_name
from longshore.toolsets.browser.events import MOST_ENTRIES, NetworkExchange, clean, without_user
from longshore.toolsets.browser.live_view import view_of
from longshore.toolsets.browser.masking import Secrets
from longshore.toolsets.browser.options import BrowserOptions
from longshore.toolsets.browser.origins import check_url
from longshore.toolsets.browser.parameters import (
    ActStep,
    BrowserId,
    Button,
    FieldValue,
    Flag,
    HiddenBrowserId,
    HiddenTabId,
    HiddenTarget,
    HiddenTimeout,
    LoadedPage,
    Modifier,
    Ref,
    Selector,
    TabId,
    Timeout,
    Tokens,
    WaitUntil,
)
from longshore.toolsets.browser.parameters import (
    Target as BrowserTarget,
)
from longshore.toolsets.browser.screenshots import MOST_PIXELS
from longshore.toolsets.browser.snapshot import fold_behind, render
from longshore.toolsets.browser.steps import MOST_STEPS, make_step, read_target
from longshore.toolsets.browser.tab import TRUNCATED, Arrival, Outcome, Tab
from longshore.toolsets.browser.uploads import copy_uploads

NAVIGATE_SECONDS: Final = 30.0
WAIT_SECONDS: Final = 10.0
READ_SECONDS: Final = 10.0
CLOSE_SECONDS: Final = 10.0
ACT_SECONDS: Final = 15.0
STEPS_SECONDS: Final = 60.0
MOST_MS: Final = 120_000
CALL_SECONDS: Final = 150.0
"""The limit of a call, independent of `server.timeout`: each has a shorter one of its own, with a better error."""
_LEVELS: Final = ("error", "warning", "info", "debug")

_WAIVED: Final = {
    "B52": "the schema says which parameters are optional, and words for it cost a model tokens in every list",
    "B56": "bounds would cost a model 12 tokens a number in every list, and the errors say them",
    "W25": "the answers say the bounds of max_tokens",
    "B54": "most calls mean the only browser; target is taken everywhere, and listed once",
}
_ERRORS: Final = {
    "is not on the page": "take a ref that browser_snapshot or browser_find shows",
    "is covered": "close what covers it, such as a dialog or banner",
}
_PLACE: Final = "Also takes browserId, target, tab_id and timeout_ms"
_BUDGET: Final = f"max_tokens, the most tokens of the answer ({LEAST_ANSWER} to {MOST_TOKENS})"
_HELP: Final = f"{_PLACE}, and {_BUDGET}."
Answer = list[Text | Image | ResourceLink]


class BrowserTools(BrooklynTools, playwright.PlaywrightTools, Toolset):
    """A browser."""

    name = "browser"
    Options = BrowserOptions
    stateful = True
    uses_folders = True
    stop_seconds = 6.0
    available = browser_options.available

    def __init__(self, options: BrowserOptions, server: Any = None) -> None:
        self.options = options
        self._browsers = Browsers(options, reporter_of(server), server)

    async def stop(self) -> None:
        await self._browsers.close_all()

    def views(self) -> list[View]:
        found = self._browsers.everything()
        return [view_of(owner, id, browser) for owner, id, browser in found]

    # -- lifecycle

    @tool(
        category="browser-lifecycle",
        effects="write",
        timeout=CALL_SECONDS,
        waive=_WAIVED,
        open_world=True,
        examples=[{"headless": False, "url": "http://127.0.0.1:3000"}],
        help="Also takes timeout_ms.",
    )
    async def browser_open(
        self,
        ctx: Context,
        browserType: Annotated[Literal["chromium", "firefox", "webkit"] | None, "chromium only so far"] = None,
        headless: Annotated[Flag, "false: with a window"] = None,
        connect: Annotated[str | None, "auto, or the address of a running browser"] = None,
        url: Annotated[str | None, "first page"] = None,
        width: Annotated[int | None, "of the page, if not 1280"] = None,
        height: Annotated[int | None, "if not 800"] = None,
        browserId: HiddenBrowserId = None,  # noqa: ARG002  (these three: a new browser has its own)
        target: HiddenTarget = None,  # noqa: ARG002
        tab_id: HiddenTabId = None,  # noqa: ARG002
        timeout_ms: HiddenTimeout = None,
    ) -> str:
        """Open another browser. The first use of any tool opens one."""
        if browserType not in (None, "chromium"):
            raise ToolError(f"{browserType} is not there yet: only chromium is; leave browserType out")
        owner = ctx.principal.name
        for given, name in ((width, "width"), (height, "height")):
            if given is not None and not 100 <= given <= 4000:
                raise ToolError(f"{name}={given}: give 100 to 4000 pixels")
        checked = None if url is None else check_url(url, self._browsers.rules)
        begun = monotonic()
        id, notices = await self._open(owner, connect, headless, width, height, timeout_ms)
        if checked is not None:
            seconds = _seconds(timeout_ms, NAVIGATE_SECONDS) - (0 if timeout_ms is None else monotonic() - begun)
            try:
                async with self._browsers.use(owner, id, None, None) as used:
                    used.notes.extend(notices)
                    return await self._load(used, used.tab.navigate(checked, "load", seconds), DEFAULT_TOKENS)
            except ToolError as problem:
                raise ToolError(f"{id} is open; {problem}") from None
        if connect is not None:
            return await self._list(owner, DEFAULT_TOKENS)
        return "\n".join([*notices, f"{id} is open"])

    @tool(
        category="browser-lifecycle",
        effects="destroy",
        timeout=CALL_SECONDS,
        waive=_WAIVED,
        help="Also takes target, timeout_ms, and tab_id, with which only that tab is closed.",
    )
    async def browser_close(
        self,
        ctx: Context,
        browserId: BrowserId = None,
        all: Annotated[Flag, "all of yours"] = None,
        target: HiddenTarget = None,
        tab_id: HiddenTabId = None,
        timeout_ms: HiddenTimeout = None,
    ) -> str:
        """Close a browser with its tabs."""
        seconds = _seconds(timeout_ms, CLOSE_SECONDS)
        owner = ctx.principal.name
        if all:
            if browserId is not None or tab_id is not None:
                raise ToolError("give either all, or a browserId or tab_id")
            await self._browsers.find(owner, None, None)
            open_ones = list(self._browsers.all(owner))
            return "\n".join(await asyncio.gather(*(self._close(owner, each, seconds) for each in open_ones)))
        id, notes = await self._browsers.find(owner, browserId, target)
        if tab_id is not None:
            return await self.browser_tabs(ctx, "close", tab_id, browserId=browserId, target=target)
        return "\n".join([*notes, await self._close(owner, id, seconds)])

    @tool(
        category="browser-lifecycle",
        effects="write",
        timeout=CALL_SECONDS,
        waive=_WAIVED,
        examples=[{"action": "new", "url": "https://example.com"}, {"action": "close", "tab_id": "t2"}],
        help=f"Also takes timeout_ms, and {_BUDGET}.",
    )
    async def browser_tabs(
        self,
        ctx: Context,
        action: Annotated[Literal["list", "new", "select", "close"] | None, "list unless given"] = None,
        tab_id: TabId = None,
        url: Annotated[str | None, "of a new tab"] = None,
        browserId: BrowserId = None,
        target: BrowserTarget = None,
        timeout_ms: HiddenTimeout = None,
        max_tokens: Tokens = DEFAULT_TOKENS,
    ) -> str:
        """List browsers and tabs, or open, select or close a tab."""
        owner, seconds = ctx.principal.name, _seconds(timeout_ms, NAVIGATE_SECONDS)
        if action in (None, "list"):
            return await self._list(owner, max_tokens)
        if action == "close":
            if tab_id is None:
                raise ToolError("give the tab_id of the tab to close")
            async with self._use(ctx, browserId, target, tab_id) as used:
                closed = await used.browser.close_tab(tab_id)
                return used.say(f"{used.place} {'is closed' if closed else 'is left open: it is a page of the user'}")
        if action == "select":
            async with self._use(ctx, browserId, target, tab_id) as used:
                return used.say(f"{used.place} is the current tab")
        checked = None if url is None else check_url(url, self._browsers.rules)
        async with self._browsers.use(owner, browserId, target, None, new_tab=True) as used:
            if checked is None:
                return used.say(f"{used.place} is open")
            return await self._load(used, used.tab.navigate(checked, "load", seconds), max_tokens)

    # -- navigation

    @tool(
        category="navigation",
        effects="write",
        timeout=CALL_SECONDS,
        waive=_WAIVED,
        open_world=True,
        examples=[{"url": "https://example.com"}, {"action": "back"}],
        aliases={"browser_navigate_back": playwright.navigate_back},
        help="snapshot says what of the page is shown: none, auto (an outline if it is long) or full (from "
        f"its beginning). Also takes target, and {_BUDGET}.",
    )
    async def browser_navigate(
        self,
        ctx: Context,
        url: Annotated[str | None, "page to load"] = None,
        action: Annotated[Literal["back", "forward", "reload"] | None, "instead"] = None,
        wait: Annotated[WaitUntil | None, "load unless given"] = None,
        snapshot: Annotated[Shown | None, "auto unless given"] = None,
        browserId: BrowserId = None,
        target: HiddenTarget = None,
        tab_id: TabId = None,
        timeout_ms: Timeout = None,
        max_tokens: Tokens = DEFAULT_TOKENS,
    ) -> str:
        """Load a page and show it, whole or in outline if it is long."""
        if (url is None) == (action is None):
            raise ToolError("give either a url or an action")
        checked = None if url is None else check_url(url, self._browsers.rules)
        seconds = _seconds(timeout_ms, NAVIGATE_SECONDS)
        async with self._use(ctx, browserId, target, tab_id) as used:
            tab, until = used.tab, wait or "load"
            if checked is not None:
                going = tab.navigate(checked, until, seconds)
            else:
                going = {"back": tab.back, "forward": tab.forward}.get(action or "", tab.reload)(until, seconds)
            return await self._load(used, going, max_tokens, snapshot or "auto")

    @tool(
        category="navigation",
        effects="write",
        timeout=CALL_SECONDS,
        waive=_WAIVED,
        examples=[{"text": "Saved"}, {"text_gone": "Loading", "timeout_ms": 20_000}],
        aliases={"browser_wait_for": playwright.wait_for},
        help=_HELP,
    )
    async def browser_wait(
        self,
        ctx: Context,
        text: Annotated[str | None, "until the page has it"] = None,
        text_gone: Annotated[str | None, "until it has not"] = None,
        ref: Annotated[str | None, "until it is visible"] = None,
        selector: Annotated[str | None, "until one is"] = None,
        url: Annotated[str | None, "until the address has this part"] = None,
        expression: Annotated[str | None, "until this script is true"] = None,
        idle: Annotated[Flag, "until no request runs"] = None,
        timeout_ms: Timeout = None,
        browserId: HiddenBrowserId = None,
        target: HiddenTarget = None,
        tab_id: HiddenTabId = None,
        max_tokens: Tokens = DEFAULT_TOKENS,
    ) -> str:
        """Wait for something on the page and show what changed. Actions wait for their own effects."""
        seconds = _seconds(timeout_ms, WAIT_SECONDS)
        if timeout_ms is None and not idle and not any((text, text_gone, ref, selector, url, expression)):
            raise ToolError(
                "give what to wait for: text, text_gone, ref, selector, url, expression or idle; or a timeout_ms"
            )
        where = None if ref is None and selector is None else ElementTarget(ref=ref, selector=selector)
        if expression is not None and not self.options.evaluate:
            raise ToolError("scripts are switched off here (toolsets.browser.evaluate); wait for a text or selector")
        step = actions.Wait(
            text=text,
            text_gone=text_gone,
            target=where,
            url=url,
            expression=expression,
            idle=bool(idle),
            seconds=seconds,
        )
        return await self._act(ctx, (step,), (browserId, target, tab_id), seconds + 5, max_tokens)

    # -- content

    @tool(
        category="content-capture",
        effects="read",
        timeout=CALL_SECONDS,
        waive=_WAIVED,
        examples=[{"mode": "interactive"}, {"scope": "main", "links": True}],
        help=f"Also takes boxes, which adds @x,y,width,height of each element in its window or frame. {_HELP}",
    )
    async def browser_snapshot(
        self,
        ctx: Context,
        mode: Annotated[
            Literal["full", "diff", "interactive"] | None, "diff: since the last look; interactive: controls only"
        ] = None,
        scope: Annotated[str | None, "ref or CSS selector of a part"] = None,
        depth: Annotated[int | None, "levels"] = None,
        links: Annotated[Flag, "show addresses"] = None,
        cursor: Annotated[int | None, "of the last page"] = None,
        boxes: Annotated[Flag, Hidden()] = None,
        max_tokens: Tokens = DEFAULT_TOKENS,
        browserId: HiddenBrowserId = None,
        target: HiddenTarget = None,
        tab_id: HiddenTabId = None,
        timeout_ms: HiddenTimeout = None,
    ) -> str:
        """Show the page: roles, names, values, and refs (e12) for the other tools."""
        seconds = _seconds(timeout_ms, READ_SECONDS)
        room = room_for_page(max_tokens)
        async with self._use(ctx, browserId, target, tab_id) as used:
            if mode == "diff":
                text = await used.tab.changes(room, seconds) or "nothing changed since the last look"
            else:
                part = None if scope is None else read_target(scope)
                made = await used.tab.snapshot(mode or "full", part, depth, bool(links), seconds, bool(boxes))
                text = render(fold_behind(made.lines), room, max(0, cursor or 0)).text
                if made.truncated:
                    text += f"\n[{TRUNCATED}]"
            return _answer(used, text or _nothing(cursor, mode, scope), max_tokens)

    @tool(
        category="content-capture",
        effects="read",
        timeout=CALL_SECONDS,
        waive=_WAIVED,
        examples=[{"text": "add to cart", "role": "button"}],
        help=f"Also takes near, a text: what is closest to it comes first. {_HELP}",
    )
    async def browser_find(
        self,
        ctx: Context,
        text: Annotated[str | None, "part of a name or text"] = None,
        regex: Annotated[str | None, "instead"] = None,
        role: Annotated[str | None, "such as button"] = None,
        limit: Annotated[int | None, "if not 10"] = None,
        near: Annotated[str | None, Hidden()] = None,
        max_tokens: Tokens = DEFAULT_TOKENS,
        browserId: HiddenBrowserId = None,
        target: HiddenTarget = None,
        tab_id: HiddenTabId = None,
        timeout_ms: HiddenTimeout = None,
    ) -> str:
        """Find elements on the page: their lines with refs, and what they are in."""
        if text is None and regex is None and role is None:
            raise ToolError("give a text, a regex or a role")
        most = 10 if limit is None else max(1, min(limit, 100))
        async with self._use(ctx, browserId, target, tab_id) as used:
            found = await used.tab.find(text, regex, role, most, _seconds(timeout_ms, READ_SECONDS), near)
            lines = [f"{match.text}{' in ' + ' > '.join(match.path) if match.path else ''}" for match in found.matches]
            shown = fit_lines(lines, room_for_page(max_tokens)).text or "nothing found; browser_snapshot shows the page"
            left = found.total - len(found.matches)
            more = f"\n[{left} more: give a larger limit]" if left else ""
            return _answer(used, shown + more + (f"\n[{TRUNCATED}]" if found.truncated else ""), max_tokens)

    @tool(category="content-capture", effects="read", timeout=CALL_SECONDS, waive=_WAIVED, help=_HELP)
    async def browser_read(
        self,
        ctx: Context,
        format: Annotated[Literal["markdown", "text", "html", "table"] | None, "markdown unless given"] = None,
        selector: Annotated[str | None, "CSS, or ref, of a part"] = None,
        cursor: Annotated[int | None, "of the last page"] = None,
        max_tokens: Tokens = DEFAULT_TOKENS,
        browserId: HiddenBrowserId = None,
        target: HiddenTarget = None,
        tab_id: HiddenTabId = None,
        timeout_ms: HiddenTimeout = None,
    ) -> str:
        """Read the page's text."""
        async with self._use(ctx, browserId, target, tab_id) as used:
            part = ElementTarget() if selector is None else read_target(selector)
            read = await used.tab.read(
                format or "markdown", part.selector, part.ref, seconds=_seconds(timeout_ms, READ_SECONDS)
            )
            lines = read.text.split("\n")
            start = max(0, cursor or 0)
            page = fit_lines(
                lines[start:],
                room_for_page(max_tokens),
                lambda end: f"{len(lines) - end:,} of {len(lines):,} lines left out: cursor={end}, or a selector",
                start,
            )
            empty = "the page has no text" if start == 0 else "nothing from this cursor on"
            return _answer(used, page.text or empty, max_tokens)

    @tool(
        category="content-capture",
        effects="read",
        artifacts=True,
        timeout=CALL_SECONDS,
        waive=_WAIVED,
        examples=[{"full_page": True, "max_width": 800}],
        aliases={"browser_take_screenshot": playwright.take_screenshot},
        help="Also takes quality (1 to 100), max_bytes, above which a picture is only linked, and marks, "
        f"which writes the refs of the controls of the main frame beside them. {_PLACE}.",
    )
    async def browser_screenshot(
        self,
        ctx: Context,
        ref: Annotated[str | None, "of one element"] = None,
        selector: Selector = None,
        full_page: Annotated[Flag, "the whole page"] = None,
        format: Annotated[Literal["webp", "png", "jpeg"] | None, "webp unless given"] = None,
        quality: Annotated[int | None, Hidden()] = None,
        max_width: Annotated[int | None, "pixels"] = None,
        inline: Annotated[Flag, "false: only a link"] = None,
        max_bytes: Annotated[int | None, Hidden()] = None,
        marks: Annotated[Flag, Hidden()] = None,
        browserId: HiddenBrowserId = None,
        target: HiddenTarget = None,
        tab_id: HiddenTabId = None,
        timeout_ms: HiddenTimeout = None,
    ) -> Answer:
        """Take a picture of the page."""
        if quality is not None and not 1 <= quality <= 100:
            raise ToolError(f"quality={quality}: give 1 to 100")
        if max_width is not None and not 1 <= max_width <= MOST_PIXELS:
            raise ToolError(f"max_width={max_width}: give 1 to {MOST_PIXELS} pixels")
        part = None if ref is None and selector is None else ElementTarget(ref=ref, selector=selector)
        async with self._use(ctx, browserId, target, tab_id) as used:
            seconds = _seconds(timeout_ms, READ_SECONDS)
            shot = await used.tab.screenshot(
                format or "webp", quality, max_width, bool(full_page), part, seconds, bool(marks)
            )
            name = f"{used.id}-{used.tab.id}.{format or 'webp'}"
            link = await asyncio.to_thread(ctx.save_artifact, name, shot.data, shot.mime, origin_of(used.tab.url))
        said = used.say(f"{used.place}: {shot.width} x {shot.height} pixels{f'; {shot.note}' if shot.note else ''}")
        if marks:
            said += f"; marked: {used.tab.prepare_answer(' '.join(shot.marks)) or 'nothing'}"
        most_bytes = self.options.max_image_size if max_bytes is None else min(max_bytes, self.options.max_image_size)
        if inline is False or len(shot.data) > most_bytes:
            return [Text(said), link]
        return [Text(said), Image(shot.data, shot.mime), link]

    @tool(
        category="content-capture",
        effects="read",
        timeout=CALL_SECONDS,
        waive=_WAIVED,
        aliases={"browser_console_messages": playwright.console_messages},
        help=f"Also takes stack, which adds the calls that led to each message. {_HELP}",
    )
    async def browser_console(
        self,
        ctx: Context,
        level: Annotated[Literal["error", "warning", "info", "debug"] | None, "and worse; info unless given"] = None,
        since: Annotated[int | None, "number of the last one seen"] = None,
        limit: Annotated[int | None, "most messages, if not 50"] = None,
        stack: Annotated[Flag, Hidden()] = None,
        max_tokens: Tokens = DEFAULT_TOKENS,
        browserId: HiddenBrowserId = None,
        target: HiddenTarget = None,
        tab_id: HiddenTabId = None,
        timeout_ms: HiddenTimeout = None,
    ) -> str:
        """Show console messages and uncaught errors."""
        _seconds(timeout_ms, READ_SECONDS)
        if limit is not None and not 1 <= limit <= MOST_ENTRIES:
            raise ToolError(f"limit={limit}: give 1 to {MOST_ENTRIES}")
        levels = _LEVELS[: _LEVELS.index(level or "info") + 1]
        async with self._use(ctx, browserId, target, tab_id) as used:
            found = used.tab.log.console.since(since or 0)
            lines = {
                each.number: f"{each.number} {each.level} {each.text} ({each.where})"
                + (f"\n{each.stack}" if stack and each.stack else "")
                for each in found.entries
                if each.level in levels
            }
            most = limit or 50
            first = max(0, len(lines) - most) if since is None else 0
            shown = _fit_log("browser_console", lines, found.dropped, room_for_page(max_tokens), first, most)
            return _answer(used, shown or "no messages", max_tokens)

    @tool(
        category="content-capture",
        effects="read",
        artifacts=True,
        timeout=CALL_SECONDS,
        waive=_WAIVED,
        examples=[{"failed": True}, {"id": 12}],
        aliases={
            "browser_network_requests": playwright.network_requests,
            "browser_network_request": playwright.network_request,
        },
        help="Also takes type, such as fetch or script, and status, such as 404; with an id part, headers or "
        f"body, and save, which links the body as a file. {_HELP}",
    )
    async def browser_network(
        self,
        ctx: Context,
        filter: Annotated[str | None, "part of the address"] = None,
        failed: Annotated[Flag, "only failed ones"] = None,
        since: Annotated[int | None, "number of the last one seen"] = None,
        id: Annotated[int | None, "one request with headers and body"] = None,
        type: Annotated[str | None, Hidden()] = None,
        status: Annotated[int | None, Hidden()] = None,
        part: Annotated[Literal["headers", "body"] | None, Hidden()] = None,
        save: Annotated[Flag, Hidden()] = None,
        max_tokens: Tokens = DEFAULT_TOKENS,
        browserId: HiddenBrowserId = None,
        target: HiddenTarget = None,
        tab_id: HiddenTabId = None,
        timeout_ms: HiddenTimeout = None,
    ) -> Answer:
        """List the page's requests, or show one."""
        seconds = _seconds(timeout_ms, READ_SECONDS)
        if id is None and (part is not None or save):
            raise ToolError("part and save are for one request: give its id")
        async with self._use(ctx, browserId, target, tab_id) as used:
            if id is not None:
                if save:
                    return await _save_body(ctx, used, id, seconds)
                shown = await _show_exchange(used.tab, id, part, room_for_page(max_tokens), seconds)
                return [Text(_answer(used, shown, max_tokens))]
            found = used.tab.log.network.since(since or 0)
            lines = {
                each.number: _exchange_line(each)
                for each in found.entries
                if (filter is None or filter in each.url)
                and (not failed or each.failed)
                and (type is None or type.lower() == each.kind.lower())
                and status in (None, each.status)
            }
            shown = _fit_log("browser_network", lines, found.dropped, room_for_page(max_tokens))
            return [Text(_answer(used, shown or "no requests", max_tokens))]

    # -- interaction

    @tool(
        category="interaction",
        effects="write",
        timeout=CALL_SECONDS,
        waive=_WAIVED,
        open_world=True,
        errors=_ERRORS,
        examples=[{"ref": "e12"}, {"text": "Log in"}],
        migrations=[playwright.click],
        help=f"Also takes modifiers, such as Shift. {_HELP}",
    )
    async def browser_click(
        self,
        ctx: Context,
        ref: Ref = None,
        selector: Selector = None,
        text: Annotated[str | None, "what it says"] = None,
        x: Annotated[float | None, "pixels, with y"] = None,
        y: Annotated[float | None, "pixels"] = None,
        button: Annotated[Button | None, "left unless given"] = None,
        count: Annotated[int | None, "2: double click"] = None,
        modifiers: Annotated[list[Modifier] | None, Hidden()] = None,
        max_tokens: Tokens = DEFAULT_TOKENS,
        browserId: HiddenBrowserId = None,
        target: HiddenTarget = None,
        tab_id: HiddenTabId = None,
        timeout_ms: HiddenTimeout = None,
    ) -> str:
        """Click, and show what changed."""
        if (x is None) != (y is None):
            raise ToolError("give both x and y")
        where = ElementTarget(ref=ref, selector=selector, text=text) if x is None or y is None else Point(x, y)
        step = actions.Click(target=where, button=button or "left", count=count or 1, modifiers=[*(modifiers or [])])
        return await self._act(ctx, (step,), (browserId, target, tab_id), _seconds(timeout_ms, ACT_SECONDS), max_tokens)

    @tool(
        category="interaction",
        effects="write",
        timeout=CALL_SECONDS,
        waive=_WAIVED,
        open_world=True,
        errors=_ERRORS,
        examples=[
            {
                "fields": [{"label": "Email", "value": "ada@example.org"}, {"label": "I agree", "value": True}],
                "submit": True,
            }
        ],
        aliases={"browser_fill_form": playwright.fill_form},
        help=_HELP,
    )
    async def browser_fill(
        self,
        ctx: Context,
        fields: Annotated[list[FieldValue], "each by label, ref or selector; true and false for checkboxes"],
        submit: Annotated[Flag, "then submit the form"] = None,
        max_tokens: Tokens = DEFAULT_TOKENS,
        browserId: HiddenBrowserId = None,
        target: HiddenTarget = None,
        tab_id: HiddenTabId = None,
        timeout_ms: HiddenTimeout = None,
    ) -> str:
        """Fill form fields, and show what changed. Labels need no snapshot before."""
        step = actions.Fill(
            fields=[
                actions.Field(
                    target=ElementTarget(label=each.label, ref=each.ref, selector=each.selector), value=each.value
                )
                for each in fields
            ],
            submit=bool(submit),
        )
        return await self._act(ctx, (step,), (browserId, target, tab_id), _seconds(timeout_ms, ACT_SECONDS), max_tokens)

    @tool(
        category="interaction",
        effects="write",
        timeout=CALL_SECONDS,
        waive=_WAIVED,
        open_world=True,
        errors=_ERRORS,
        examples=[{"steps": [{"action": "dialog", "value": "accept"}, {"action": "click", "text": "Delete"}]}],
        aliases={
            "browser_press_key": playwright.press_key,
            "browser_hover": playwright.hover,
            "browser_handle_dialog": playwright.handle_dialog,
        },
        help=_HELP,
    )
    async def browser_act(
        self,
        ctx: Context,
        steps: Annotated[
            list[ActStep],
            "press: value is keys such as Control+A; scroll: ref, or value in pixels; drag: to is a ref; "
            "wait: text, or value in ms; dialog: value accept, dismiss or a text, before the step that opens it",
        ],
        max_tokens: Tokens = DEFAULT_TOKENS,
        browserId: HiddenBrowserId = None,
        target: HiddenTarget = None,
        tab_id: HiddenTabId = None,
        timeout_ms: HiddenTimeout = None,
    ) -> str:
        """Do several steps, and show what changed in all. It stops at the first that fails."""
        if not 1 <= len(steps) <= MOST_STEPS:
            raise ToolError(f"{len(steps)} steps; give 1 to {MOST_STEPS}")
        made = tuple(make_step(step) for step in steps)
        return await self._act(ctx, made, (browserId, target, tab_id), _seconds(timeout_ms, STEPS_SECONDS), max_tokens)

    @tool(
        category="interaction",
        effects="write",
        artifacts=True,
        timeout=CALL_SECONDS,
        waive=_WAIVED,
        aliases={"browser_file_upload": playwright.file_upload},
        help=f"Also takes wait, which waits for the first download and for those that run. {_HELP}",
    )
    async def browser_files(
        self,
        ctx: Context,
        paths: Annotated[list[str] | None, "files to upload"] = None,
        ref: Annotated[str | None, "the field or button for them"] = None,
        selector: Selector = None,
        wait: Annotated[Flag, Hidden()] = None,
        max_tokens: Tokens = DEFAULT_TOKENS,
        browserId: HiddenBrowserId = None,
        target: HiddenTarget = None,
        tab_id: HiddenTabId = None,
        timeout_ms: HiddenTimeout = None,
    ) -> Answer:
        """Upload files, or without paths list the downloads with links."""
        seconds = _seconds(timeout_ms, ACT_SECONDS)
        async with self._use(ctx, browserId, target, tab_id) as used:
            if paths is None:
                if wait:
                    await used.browser.downloads.wait(1, seconds, begins=True)
                return await self._show_downloads(ctx, used, max_tokens)
            folder = self._browsers.upload_folder(used.browser)
            confined = ConfinedFiles(Roots(tuple(await ctx.folders())))
            given = await asyncio.to_thread(copy_uploads, confined, paths, folder)
            part = None if ref is None and selector is None else ElementTarget(ref=ref, selector=selector)
            outcome = await used.tab.act(actions.Upload(paths=given, target=part), seconds=seconds)
            return [Text(_show(used, outcome, max_tokens))]

    @tool(
        category="interaction",
        effects="destroy",
        timeout=CALL_SECONDS,
        waive=_WAIVED,
        open_world=True,
        errors={"switched off": "read the page with browser_read"},
        examples=[{"script": "document.querySelectorAll('img').length"}, {"script": "e => e.innerHTML", "ref": "e12"}],
        help=f"Also takes args, the arguments of a function, after the element. {_HELP}",
    )
    async def browser_evaluate(
        self,
        ctx: Context,
        script: Annotated[str, "expression, or function that gets the element"],
        ref: Ref = None,
        args: Annotated[list[Any] | None, Hidden()] = None,
        max_tokens: Tokens = DEFAULT_TOKENS,
        browserId: HiddenBrowserId = None,
        target: HiddenTarget = None,
        tab_id: HiddenTabId = None,
        timeout_ms: HiddenTimeout = None,
    ) -> str:
        """Run JavaScript in the page."""
        if not self.options.evaluate:
            raise ToolError("scripts are switched off here (toolsets.browser.evaluate)")
        async with self._use(ctx, browserId, target, tab_id) as used:
            value = await used.tab.evaluate(script, ref, _seconds(timeout_ms, READ_SECONDS), args or ())
            return _answer(used, value, max_tokens)

    @tool(category="navigation", effects="write", open_world=True, listed=False)
    async def browser(
        self,
        ctx: Context,
        url: Annotated[str, "page to load"],
        wait_for_load: Annotated[bool, "wait until it has loaded"] = True,
    ) -> LoadedPage:
        """Load a page and read its text."""
        ctx.check_allowed("browser_navigate")
        checked = check_url(url, self._browsers.rules)
        async with self._use(ctx, None, None, None) as used:
            seconds = min(ctx.remaining, MOST_MS / 1000)
            going = used.tab.navigate(checked, "load" if wait_for_load else "dom", seconds)
            try:
                arrival = await self._browsers.navigate(used.tab, going)
                read = await used.tab.read("markdown", seconds=ctx.remaining)
            except ToolTimeout as late:
                raise late.by("toolsets.browser.timeout") from None
            parts = [*used.notes, *([arrival.note] if arrival.note else []), read.text]
            content = used.fence(fit_ends("\n".join(parts), room_for_page(DEFAULT_TOKENS)))
            url, title = (used.tab.prepare_answer(each) for each in (clean(arrival.url, 500), arrival.title))
            return LoadedPage(arrival.status, title, url, content, ["title", "content"])

    # -- parts of a call

    async def _close(self, owner: str, id: str, seconds: float) -> str:
        """Close a browser, and return the message."""
        attached = self._browsers.all(owner)[id].is_attached
        try:
            async with asyncio.timeout(seconds):
                await self._browsers.close(owner, id)  # it continues after the time limit
        except TimeoutError:
            return f"{id} is being closed"
        return f"{id} is left: its browser stays open, only tabs of ours were closed" if attached else f"{id} is closed"

    async def _open(
        self,
        owner: str,
        connect: str | None,
        headless: bool | None,
        width: int | None,
        height: int | None,
        timeout_ms: int | None,
    ) -> tuple[str, list[str]]:
        """Start a browser, or attach to one. Returns its id and notices for the caller."""
        if connect is not None and headless is not None:
            raise ToolError("a browser that already runs has a window or has none; leave headless out with connect")
        seconds = None if timeout_ms is None else _seconds(timeout_ms, NAVIGATE_SECONDS)
        try:
            async with asyncio.timeout(seconds):
                if connect is None:
                    return await self._browsers.open(owner, headless=headless, width=width, height=height)
                size = None if width is None and height is None else (width or WIDTH, height or HEIGHT)
                return await self._browsers.attach(owner, connect, size), []
        except TimeoutError:
            raise ToolError(f"the browser was not there within {timeout_ms} ms; try a longer timeout_ms") from None

    async def _load(self, used: Used, going: Awaitable[Arrival], max_tokens: int, shown: Shown = "auto") -> str:
        """Await a navigation, and show the page."""
        arrival = await self._browsers.navigate(used.tab, going)
        return used.fence(show_arrival(arrival, used.notes, room_for_page(max_tokens), shown))

    def _use(
        self, ctx: Context, id: str | None, strategy: Strategy | None, tab_id: str | None
    ) -> AbstractAsyncContextManager[Used]:
        return self._browsers.use(ctx.principal.name, id, strategy, tab_id)

    async def _act(
        self,
        ctx: Context,
        steps: tuple[actions.Step, ...],
        where: tuple[str | None, Strategy | None, str | None],
        seconds: float,
        max_tokens: int,
    ) -> str:
        async with self._use(ctx, *where) as used:
            return _show(used, await used.tab.act(*steps, seconds=seconds), max_tokens)

    async def _list(self, owner: str, max_tokens: int) -> str:
        await self._browsers.wait_for_starts(owner)
        lines = list[str]()
        current = self._browsers.current(owner)
        for id, browser in self._browsers.all(owner).items():
            if browser.has_ended:
                lines.append(f"{id}: the browser that it was attached to has ended")
                continue
            attached = ", attached" if browser.is_attached else ""
            lines.append(f"{id}{' (current)' if id == current else ''}: {len(browser.tabs)} tabs{attached}")
            for tab in browser.tabs.values():
                lines.append(_tab_line(tab.id, tab is browser.current, tab.url, tab.title, browser.secrets))
            pages = await browser.user_pages()
            if pages:
                lines.append("  pages of its user, attached to when their id is given as tab_id:")
                lines += [_tab_line(page.id, False, page.url, page.title, browser.secrets) for page in pages]
        if not lines:
            return "no browser is open; browser_navigate opens one"
        return fence("browsers", "titles and addresses", fit_lines(lines, room_for_page(max_tokens)).text)

    async def _show_downloads(self, ctx: Context, used: Used, max_tokens: int) -> Answer:
        if not used.browser.downloads.followed:
            raise ToolError("the downloads of this browser are its user's: they are where its settings say")
        answer: Answer = []
        lines = list[str]()
        for download in used.browser.downloads.all():
            lines.append(download.line())
            if download.state == "finished":
                if download.artifact is None:
                    data = await asyncio.to_thread(_read, download.path)
                    download.artifact = await asyncio.to_thread(ctx.save_artifact, download.name, data)
                answer.append(download.artifact)
        shown = fit_lines(lines, room_for_page(max_tokens), lambda end: f"{len(lines) - end} more").text
        return [Text(used.fence(used.say(shown or "no downloads"))), *answer]


def _answer(used: Used, text: str, max_tokens: int) -> str:
    """The result of reading a page, after the notices since the last answer."""
    happened = [*used.notes, *show_events(used.tab.log.notices.take())]
    return used.fence(fit_ends("\n".join([*happened, text]), room_for_page(max_tokens)))


def _fit_log(
    tool: str, lines: dict[int, str], dropped: int, max_tokens: int, first: int = 0, most: int = MOST_ENTRIES
) -> str:
    """At most so many lines of a log, given by their numbers, with a note on omitted lines and how to get them."""
    numbers = list(lines)[first : first + most]

    def rest(end: int) -> str:
        return f"{len(lines) - first - end} more: {tool} since={numbers[end - 1]}"

    above = [f"[{dropped} older ones are no longer kept]"] if dropped else []
    above += [f"[{first} before these: {tool} since=0, or limit={len(lines)}]"] if first else []
    page = fit_lines([lines[each] for each in numbers], max_tokens, rest, heading="\n".join(above))
    is_cut = page.complete and first + len(numbers) < len(lines)
    return f"{page.text}\n[… {rest(page.end)}]" if is_cut else page.text


def _nothing(cursor: int | None, mode: str | None, scope: str | None) -> str:
    """The reason why a snapshot has no lines."""
    if cursor:
        return "nothing from this cursor on"
    part = "the page" if scope is None else "this part"
    return f"{part} has no controls" if mode == "interactive" else f"{part} is empty"


def _show(used: Used, outcome: Outcome, max_tokens: int) -> str:
    if used.tab.closed:
        current = used.browser.current
        used.notes.append(f"the current tab is {current.id}" if current else "no tab is left; the next call opens one")
    return used.fence(show_outcome(outcome, used.notes, room_for_page(max_tokens)))


def _seconds(timeout_ms: int | None, default: float) -> float:
    if timeout_ms is None:
        return default
    if not 1 <= timeout_ms <= MOST_MS:
        raise ToolError(f"timeout_ms={timeout_ms}: give 1 to {MOST_MS}")
    return timeout_ms / 1000


def _tab_line(id: str, is_current: bool, url: str, title: str, secrets: Secrets) -> str:
    shown = f"{clean(without_user(url), 200)} {clean(title, 80)!r}"
    return f"  {id}{' (current)' if is_current else ''} {secrets.mask(shown)}"


def _exchange_line(each: NetworkExchange) -> str:
    result = each.problem or str(each.status or ("running" if each.seconds is None else "ended"))
    took = "" if each.seconds is None else f" {each.seconds * 1000:.0f} ms"
    return f"{each.number} {each.method} {clean(each.url, 200)} {each.kind} {result}{took}"


async def _save_body(ctx: Context, used: Used, number: int, seconds: float) -> Answer:
    """The body of the answer to a request, as an artifact."""
    body = await used.tab.body(number, seconds)
    exchange = used.tab.log.exchange(number)
    path = "" if exchange is None else urlsplit(exchange.url).path
    name, mime = clean_name(path.rstrip("/")), "" if exchange is None else exchange.mime
    link = await asyncio.to_thread(ctx.save_artifact, name, body.data, mime or None, origin_of(used.tab.url))
    return [Text(used.say(f"{used.place}: the body of request {number}, {len(body.data):,} bytes")), link]


async def _show_exchange(
    tab: Tab, number: int, part: Literal["headers", "body"] | None, max_tokens: int, seconds: float
) -> str:
    exchange = tab.log.exchange(number)
    if part == "headers" and exchange is not None:
        return fit_ends("\n".join([_exchange_line(exchange), exchange.sent, "", exchange.received]), max_tokens)
    try:
        body = await tab.body(number, seconds)
        text = body.data.decode(errors="replace") if body.is_text else f"{len(body.data):,} bytes that are no text"
    except ToolError as problem:
        if exchange is None:
            raise
        text = str(problem)
    parts = (
        []
        if exchange is None or part == "body"
        else [_exchange_line(exchange), exchange.sent, "", exchange.received, ""]
    )
    return fit_ends("\n".join([*parts, text]), max_tokens)


def _read(path: str) -> bytes:
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:  # in a folder of the browser's user
        return file.read()
