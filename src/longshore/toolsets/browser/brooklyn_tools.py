"""Tools under Brooklyn's names, with its parameters. They are unlisted, and answer with a JSON object as text."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from time import monotonic
from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Meta, Struct

from longshore.errors import ToolError, ToolTimeout
from longshore.protocol.content import Image, ResourceLink, Text
from longshore.registry.token_budget import DEFAULT_TOKENS, LEAST_TOKENS, MOST_TOKENS, count_tokens, fit_ends
from longshore.registry.toolset import tool
from longshore.server.context import Context
from longshore.toolsets.browser import actions
from longshore.toolsets.browser.actions import ElementTarget
from longshore.toolsets.browser.answers import origin_of
from longshore.toolsets.browser.browsers import Browsers, Used
from longshore.toolsets.browser.events import PageError, clean
from longshore.toolsets.browser.options import BrowserOptions
from longshore.toolsets.browser.origins import check_url
from longshore.toolsets.browser.tab import Arrival, Tab

CALL_SECONDS: Final = 150.0
EFFECT_SECONDS: Final = 15.0
"""What an action may take beyond `timeout`, which is for its element to appear."""
RETRY_SECONDS: Final = 0.1
"""Between two looks at an element."""
MOST_URL: Final = 2_000
"""Characters of an address in an answer. A page can make its own as long as it likes."""
THUMBNAIL_PIXELS: Final = 320
"""The width of a thumbnail."""

BrowserId = Annotated[str | None, "Optional. ID of the browser. If omitted or unknown, target decides"]
Strategy = Annotated[
    Literal["latest", "current", "byId"],
    "Optional. Which browser to use if browserId is omitted or unknown; byId: none but that of browserId",
]
Timeout = Annotated[
    float,
    Meta(ge=100, le=30_000, description="Optional. Timeout in milliseconds (100-30000)"),
]
Selector = Annotated[str, "CSS selector of the element"]
Json: TypeAlias = "str | float | bool | list[Json] | dict[str, Json] | None"
_WAITS: Final[dict[str, Literal["load", "dom", "idle"]]] = {
    "load": "load",
    "domcontentloaded": "dom",
    "networkidle": "idle",
}
_STATES: Final = {
    "attached": "document.querySelector({0}) !== null",
    "detached": "document.querySelector({0}) === null",
    "hidden": "!document.querySelector({0})?.checkVisibility({{visibilityProperty: true}})",
}


class Viewport(Struct, frozen=True, forbid_unknown_fields=True):
    """The size of a page in pixels."""

    width: Annotated[int, Meta(ge=100, le=4000)] = 1280
    height: Annotated[int, Meta(ge=100, le=4000)] = 720


class BrooklynTools:
    """The tools of `BrowserTools` under Brooklyn's names."""

    options: BrowserOptions
    _browsers: Browsers

    # -- lifecycle

    @tool(category="browser-lifecycle", effects="write", timeout=CALL_SECONDS, open_world=True, listed=False)
    async def launch_browser(
        self,
        ctx: Context,
        browserType: Annotated[
            Literal["chromium", "firefox", "webkit"], "Optional. Browser engine to launch; only chromium is there"
        ] = "chromium",
        headless: Annotated[bool, "Optional. false: with a window"] = True,
        viewport: Annotated[Viewport | None, "Optional. Browser viewport dimensions, 1280 x 720 unless given"] = None,
        extraHttpHeaders: Annotated[dict[str, str] | None, "Optional. Not supported here: leave it out"] = None,
    ) -> str:
        """Launch a browser and return its browserId."""
        if browserType != "chromium":
            raise ToolError(f"{browserType} is not there yet: only chromium is; leave browserType out")
        if extraHttpHeaders:
            raise ToolError("extraHttpHeaders can't be set here; leave it out")
        size = viewport or Viewport()
        id, notices = await self._browsers.open(
            ctx.principal.name, headless=headless, width=size.width, height=size.height
        )
        metadata = {"browserType": browserType, "headless": headless, "viewport": size}
        return _object(id, notices, {"metadata": metadata})

    @tool(category="browser-lifecycle", effects="destroy", timeout=CALL_SECONDS, listed=False)
    async def close_browser(self, ctx: Context, browserId: BrowserId = None, target: Strategy = "latest") -> str:
        """Close a browser with its pages."""
        owner = ctx.principal.name
        id, notes = await self._browsers.find(owner, browserId, target)
        await self._browsers.close(owner, id)
        return _object(id, notes, {})

    @tool(category="browser-lifecycle", effects="read", timeout=CALL_SECONDS, listed=False)
    async def list_active_browsers(self, ctx: Context) -> str:
        """List the caller's open browsers, with the page that each shows."""
        owner = ctx.principal.name
        await self._browsers.wait_for_starts(owner)
        browsers = list[dict[str, Any]]()
        for id, browser in self._browsers.all(owner).items():
            shown = browser.current
            page = {} if shown is None else {"url": clean(shown.url, 200), "title": clean(shown.title, 80)}
            page = {name: browser.secrets.mask(text) for name, text in page.items()}
            browsers.append({"browserId": id, "tabs": len(browser.tabs), **page})
        fields = {"count": len(browsers), "browsers": browsers}
        return _object(self._browsers.current(owner), [], fields, ["browsers"] if browsers else [])

    # -- navigation

    @tool(category="navigation", effects="write", timeout=CALL_SECONDS, open_world=True, listed=False)
    async def navigate_to_url(
        self,
        ctx: Context,
        url: Annotated[str, "Address to load"],
        waitUntil: Annotated[Literal["load", "domcontentloaded", "networkidle"], "Optional. What to wait for"] = "load",
        browserId: BrowserId = None,
        target: Strategy = "latest",
        timeout: Timeout = 5000,
    ) -> str:
        """Navigate the browser to a URL and wait for the page to load."""
        checked = check_url(url, self._browsers.rules)
        async with self._use_for_brooklyn(ctx, browserId, target) as used:
            going = used.tab.navigate(checked, _WAITS[waitUntil], timeout / 1000)
            return _arrived(used, await self._browsers.navigate(used.tab, going))

    @tool(category="navigation", effects="write", timeout=CALL_SECONDS, open_world=True, listed=False)
    async def go_back(
        self, ctx: Context, browserId: BrowserId = None, target: Strategy = "latest", timeout: Timeout = 5000
    ) -> str:
        """Go back to the previous page in the browser's history."""
        async with self._use_for_brooklyn(ctx, browserId, target) as used:
            return _arrived(used, await used.tab.back("load", timeout / 1000))

    # -- interaction

    @tool(category="interaction", effects="write", timeout=CALL_SECONDS, open_world=True, listed=False)
    async def click_element(
        self,
        ctx: Context,
        selector: Selector,
        waitForClickable: Annotated[bool, "Optional. Has no effect: it is always waited for"] = True,
        browserId: BrowserId = None,
        target: Strategy = "latest",
        timeout: Timeout = 5000,
    ) -> str:
        """Click an element and wait for what the click starts."""
        async with self._use_for_brooklyn(ctx, browserId, target) as used:
            return await _act(used, selector, timeout / 1000, actions.Click(target=ElementTarget(selector=selector)))

    @tool(category="interaction", effects="write", timeout=CALL_SECONDS, open_world=True, listed=False)
    async def fill_text(
        self,
        ctx: Context,
        selector: Selector,
        text: Annotated[str, "Text to enter"],
        clearFirst: Annotated[bool, "Optional. false: after what is there"] = True,
        browserId: BrowserId = None,
        target: Strategy = "latest",
        timeout: Timeout = 5000,
    ) -> str:
        """Fill a form field with text, in place of what is in it unless clearFirst is false."""
        where = ElementTarget(selector=selector)
        steps: list[actions.Step] = [actions.Fill(fields=[actions.Field(target=where, value=text)])]
        if not clearFirst:
            steps = [actions.Press(keys=["Control+End"], target=where), actions.Type(text=text, target=where)]
        async with self._use_for_brooklyn(ctx, browserId, target) as used:
            return await _act(used, selector, timeout / 1000, *steps)

    @tool(category="interaction", effects="read", timeout=CALL_SECONDS, listed=False)
    async def wait_for_element(
        self,
        ctx: Context,
        selector: Selector,
        state: Annotated[
            Literal["attached", "detached", "visible", "hidden"], "Optional. State to wait for"
        ] = "visible",
        browserId: BrowserId = None,
        target: Strategy = "latest",
        timeout: Timeout = 30_000,
    ) -> str:
        """Wait until an element is visible, hidden, attached to the page or detached from it."""
        async with self._use_for_brooklyn(ctx, browserId, target) as used:
            if state == "visible":
                return await _act(used, selector, timeout / 1000)
            expression = _STATES[state].format(msgspec.json.encode(selector).decode())
            if not await _becomes_true(used.tab, expression, timeout / 1000):
                raise ToolError(f"{clean(selector, 80)} was not {state} within {timeout:g} ms")
            return _answer(used, {"state": state})

    @tool(category="interaction", effects="read", timeout=CALL_SECONDS, listed=False)
    async def get_text_content(
        self,
        ctx: Context,
        selector: Selector,
        browserId: BrowserId = None,
        target: Strategy = "latest",
        timeout: Timeout = 5000,
    ) -> str:
        """Extract the visible text of an element using a CSS selector."""
        async with self._use_for_brooklyn(ctx, browserId, target) as used:
            read = await used.tab.read("text", selector, seconds=timeout / 1000)
            return _answer(used, {"text": fit_ends(read.text, DEFAULT_TOKENS)}, ["text"])

    @tool(
        category="interaction",
        effects="destroy",
        timeout=CALL_SECONDS,
        open_world=True,
        errors={"switched off": "read the page with get_html"},
        listed=False,
    )
    async def execute_script(
        self,
        ctx: Context,
        script: Annotated[str, "JavaScript: an expression, statements with return, or a function"],
        args: Annotated[list[Any] | None, "Optional. Arguments for the script, which then has to be a function"] = None,
        awaitPromise: Annotated[bool, "Optional. Has no effect: promises are always awaited"] = True,
        browserId: BrowserId = None,
        target: Strategy = "latest",
        timeout: Timeout = 30_000,
    ) -> str:
        """Run JavaScript in the page and return its value."""
        if not self.options.evaluate:
            raise ToolError("scripts are switched off here (toolsets.browser.evaluate)")
        called = script if args is None else f"({script.strip().rstrip(';')})(...{msgspec.json.encode(args).decode()})"
        async with self._use_for_brooklyn(ctx, browserId, target) as used:
            value = await used.tab.evaluate(called, seconds=timeout / 1000)
            return _answer(used, {"result": _fit_value(value)}, ["result"])

    # -- content

    @tool(category="content-capture", effects="read", timeout=CALL_SECONDS, listed=False, aliases=["get_page_content"])
    async def get_html(
        self,
        ctx: Context,
        selector: Annotated[str | None, "Optional. CSS selector of a part; the whole page unless given"] = None,
        includeStyles: Annotated[bool, "Optional. Has no effect: styles and scripts are left out"] = False,
        prettify: Annotated[bool, "Optional. Has no effect: the page's own lines are kept"] = False,
        maxTokens: Annotated[
            int, Meta(ge=LEAST_TOKENS, le=MOST_TOKENS, description="Optional. Most tokens of the HTML (100-25000)")
        ] = DEFAULT_TOKENS,
        clientModel: Annotated[str | None, "Optional. Has no effect: maxTokens is the same for all"] = None,
        browserId: BrowserId = None,
        target: Strategy = "latest",
        timeout: Timeout = 5000,
    ) -> str:
        """Get the HTML of the page or of one element, cut to a token budget."""
        async with self._use_for_brooklyn(ctx, browserId, target) as used:
            read = await used.tab.read("html", selector, seconds=timeout / 1000)
            html = fit_ends(read.text, maxTokens)
            fields = {"url": clean(used.tab.url, MOST_URL), "html": html, "totalCharacters": read.total_chars}
            return _answer(used, fields, ["url", "html"])

    @tool(category="content-capture", effects="read", artifacts=True, timeout=CALL_SECONDS, listed=False)
    async def take_screenshot(
        self,
        ctx: Context,
        fullPage: Annotated[bool, "Optional. true: the whole page, not only what the window shows"] = False,
        selector: Annotated[str | None, "Optional. CSS selector of the element to capture"] = None,
        type: Annotated[Literal["png", "jpeg"], "Optional. Image format"] = "png",
        quality: Annotated[int, Meta(ge=1, le=100, description="Optional. JPEG quality (1-100, ignored for PNG)")] = 90,
        returnFormat: Annotated[
            Literal["file", "url", "base64_thumbnail"],
            "Optional. file and url: a link; base64_thumbnail: also a small image",
        ] = "file",
        outputPath: Annotated[str | None, "Optional. Not supported here: the answer links the file"] = None,
        tag: Annotated[str | None, "Optional. Beginning of the file's name"] = None,
        teamId: Annotated[str | None, "Optional. Has no effect: files belong to the caller"] = None,
        sessionId: Annotated[str | None, "Optional. Has no effect"] = None,
        instanceId: Annotated[str | None, "Optional. Has no effect"] = None,
        browserId: BrowserId = None,
        target: Strategy = "latest",
        timeout: Timeout = 5000,
    ) -> list[Text | Image | ResourceLink]:
        """Capture a screenshot and store it as a file, to which the answer links."""
        if outputPath is not None:
            raise ToolError("outputPath can't be chosen here; leave it out, the answer links the file")
        part, seconds = None if selector is None else ElementTarget(selector=selector), timeout / 1000
        async with self._use_for_brooklyn(ctx, browserId, target) as used:
            shot = await used.tab.screenshot(type, quality, None, fullPage, part, seconds)
            small = None
            if returnFormat == "base64_thumbnail":
                small = await used.tab.screenshot(type, quality, THUMBNAIL_PIXELS, fullPage, part, seconds)
            name = f"{f'{tag[:40]}-' if tag else ''}{used.id}-{used.tab.id}.{type}"
            link = await asyncio.to_thread(ctx.save_artifact, name, shot.data, shot.mime, origin_of(used.tab.url))
        fields = {"uri": link.uri, "name": link.name, "mimeType": shot.mime, "size": len(shot.data)}
        said = Text(_answer(used, {**fields, "width": shot.width, "height": shot.height}, note=shot.note))
        return [said, link] if small is None else [said, Image(small.data, small.mime), link]

    @asynccontextmanager
    async def _use_for_brooklyn(self, ctx: Context, id: str | None, target: Strategy) -> AsyncGenerator[Used]:
        """The browser and tab of a call. A ToolTimeout raised meanwhile names the parameter of the Brooklyn tool."""
        async with self._browsers.use(ctx.principal.name, id, target, None) as used:
            try:
                yield used
            except ToolTimeout as late:
                raise late.by("timeout") from None


async def _act(used: Used, selector: str, seconds: float, *steps: actions.Step) -> str:
    """Wait until an element is visible, then act on it. Raises ToolError for any step that fails."""
    appears = actions.Wait(target=ElementTarget(selector=selector), seconds=seconds)
    outcome = await used.tab.act(appears, *steps, seconds=seconds + EFFECT_SECONDS)
    if outcome.failed is not None:
        raise PageError(outcome.failed)
    place = {"url": clean(used.tab.url, MOST_URL), "title": used.tab.title}
    fields = {**place, "changes": outcome.diff, "events": outcome.events}
    return _answer(used, fields, fields)


async def _becomes_true(tab: Tab, expression: str, seconds: float) -> bool:
    """Whether an expression of this module becomes true in time."""
    until = monotonic() + seconds
    while await tab.evaluate(expression) != "true":
        if monotonic() >= until:
            return False
        await asyncio.sleep(RETRY_SECONDS)
    return True


def _arrived(used: Used, arrival: Arrival) -> str:
    place = {"url": clean(arrival.url, MOST_URL), "title": arrival.title}
    fields = {**place, "status": arrival.status, "events": arrival.events}
    return _answer(used, fields, [*place, "events"], arrival.note)


def _answer(used: Used, fields: dict[str, Any], from_page: Iterable[str] = (), note: str = "") -> str:
    notes = [*used.notes, note] if note else used.notes
    shown = {name: _change_texts(value, used.tab.prepare_answer) for name, value in fields.items()}
    return _object(used.id, notes, shown, from_page)


def _change_texts(value: Json, change: Callable[[str], str]) -> Json:
    """A JSON value with each text in it changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_change_texts(each, change) for each in value]
    if isinstance(value, dict):
        return {key: _change_texts(each, change) for key, each in value.items()}
    return value


def _object(id: str | None, notes: Iterable[str], fields: dict[str, Any], from_page: Iterable[str] = ()) -> str:
    """The answer. The page can't write beyond the JSON texts that `untrusted` names."""
    made: dict[str, Any] = {"success": True, "browserId": id, **fields}
    if untrusted := list(from_page):
        made["untrusted"] = untrusted
    if notice := "; ".join(notes):
        made["notice"] = notice
    return msgspec.json.encode(made).decode()


def _fit_value(text: str) -> Any:
    """The value of a script; if it is too long, its text, cut; as text if JSON has no value for it."""
    if count_tokens(text) > DEFAULT_TOKENS:
        return fit_ends(text, DEFAULT_TOKENS)
    if text == "undefined":
        return None
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
