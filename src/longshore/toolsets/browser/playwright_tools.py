"""Playwright MCP's names, with its parameters. They are unlisted, and answer as our tools do.

The functions are aliases: each turns Playwright's arguments into those of the tool that has it as an alias. Parameters
without effect are accepted, so that calls need no change.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct

from longshore.errors import ToolError
from longshore.registry.token_budget import DEFAULT_TOKENS
from longshore.registry.toolset import tool
from longshore.schema.annotations import Alias
from longshore.server.context import Context
from longshore.toolsets.browser import actions
from longshore.toolsets.browser.browsers import Browsers, Strategy
from longshore.toolsets.browser.steps import is_ref, read_target

CALL_SECONDS: Final = 150.0
ACT_SECONDS: Final = 15.0
WAIT_SECONDS: Final = 10.0
MOST_WAIT_SECONDS: Final = 30

Where = Annotated[str | None, "ref of the element, or a CSS selector"]
Ref = Annotated[str | None, "the former name of target"]
Element = Annotated[str | None, "has no effect: a description for people"]
Filename = Annotated[str | None, "has no effect: the answer has it"]
Arguments = dict[str, Any]

_PATTERN: Final = frozenset("\\*+|^$()[]{}")
"""Characters of a pattern that are rare in an address."""


class PlaywrightField(Struct, frozen=True, forbid_unknown_fields=True):
    """A form field of `browser_fill_form`."""

    value: str
    name: str | None = None
    type: Literal["textbox", "checkbox", "radio", "combobox", "slider"] = "textbox"
    target: str | None = None
    ref: str | None = None
    element: str | None = None


class PlaywrightTools:
    """The tools of Playwright MCP that are no aliases of those of `BrowserTools`."""

    _browsers: Browsers

    async def _act(
        self,
        ctx: Context,
        steps: tuple[actions.Step, ...],
        where: tuple[str | None, Strategy | None, str | None],
        seconds: float,
        max_tokens: int,
    ) -> str:
        """Do the steps and show what changed."""
        raise NotImplementedError

    @tool(category="interaction", effects="write", timeout=CALL_SECONDS, open_world=True, listed=False)
    async def browser_type(
        self,
        ctx: Context,
        target: Annotated[str, Alias("ref"), "ref of the field, or a CSS selector"],
        text: Annotated[str, "what to enter"],
        submit: Annotated[bool, "optional; then press Enter"] = False,
        slowly: Annotated[bool, "optional; key by key, after what is in the field"] = False,
        element: Element = None,
    ) -> str:
        """Enter a text in a field, in place of what is in it, and show what changed."""
        where = read_target(target)
        entered: actions.Step = actions.Fill(fields=[actions.Field(target=where, value=text)])
        if slowly:
            entered = actions.Type(text=text, target=where)
        enter = (actions.Press(keys=["Enter"], target=where),) if submit else ()
        return await self._act(ctx, (entered, *enter), (None, None, None), ACT_SECONDS, DEFAULT_TOKENS)

    @tool(category="interaction", effects="write", timeout=CALL_SECONDS, open_world=True, listed=False)
    async def browser_select_option(
        self,
        ctx: Context,
        target: Annotated[str, Alias("ref"), "ref of the list, or a CSS selector"],
        values: Annotated[list[str], Meta(min_length=1, description="the options, by their text or value")],
        element: Element = None,
    ) -> str:
        """Select options of a list, and show what changed."""
        step = actions.Select(target=read_target(target), values=values)
        return await self._act(ctx, (step,), (None, None, None), ACT_SECONDS, DEFAULT_TOKENS)

    @tool(category="interaction", effects="write", timeout=CALL_SECONDS, open_world=True, listed=False)
    async def browser_drag(
        self,
        ctx: Context,
        startTarget: Annotated[str, Alias("startRef"), "ref of what to drag, or a CSS selector"],
        endTarget: Annotated[str, Alias("endRef"), "ref of where to drop it, or a CSS selector"],
        startElement: Element = None,
        endElement: Element = None,
    ) -> str:
        """Drag one element to another, and show what changed."""
        step = actions.Drag(target=read_target(startTarget), to=read_target(endTarget))
        return await self._act(ctx, (step,), (None, None, None), ACT_SECONDS, DEFAULT_TOKENS)

    @tool(category="browser-lifecycle", effects="write", timeout=CALL_SECONDS, listed=False)
    async def browser_resize(
        self,
        ctx: Context,
        width: Annotated[int, Meta(ge=100, le=4000, description="pixels (100-4000)")],
        height: Annotated[int, Meta(ge=100, le=4000, description="pixels (100-4000)")],
    ) -> str:
        """Change the size of a browser's pages."""
        async with self._browsers.use(ctx.principal.name, None, None, None) as used:
            await used.browser.resize(width, height)
            return used.say(f"the pages of {used.id} are {width} x {height} pixels")


def press_key(key: Annotated[str, "a key such as ArrowLeft, a character, or keys such as Control+A"]) -> Arguments:
    """Press a key, and show what changed."""
    return {"steps": [{"action": "press", "value": "Space" if key == " " else key}]}


def hover(target: Where = None, ref: Ref = None, element: Element = None) -> Arguments:
    """Move the mouse over an element, and show what changed."""
    return {"steps": [{"action": "hover", **_place(target or ref)}]}


def handle_dialog(
    accept: Annotated[bool, "false: dismiss it"], promptText: Annotated[str | None, "the answer to a prompt"] = None
) -> Arguments:
    """Say how to answer the next dialog. Without this call before it opens, a dialog is dismissed at once."""
    return {"steps": [{"action": "dialog", "value": (promptText or "accept") if accept else "dismiss"}]}


def fill_form(fields: Annotated[list[PlaywrightField], "each by target, or by its name as its label"]) -> Arguments:
    """Fill form fields, and show what changed."""
    return {"fields": [_field(each) for each in fields]}


def take_screenshot(
    target: Where = None,
    ref: Ref = None,
    element: Element = None,
    type: Annotated[Literal["png", "jpeg", "webp"], "image format"] = "png",
    filename: Filename = None,
    fullPage: Annotated[bool | None, "the whole page"] = None,
    scale: Annotated[Literal["css", "device"], "has no effect: css"] = "css",
) -> Arguments:
    """Take a picture of the page or of an element."""
    place = {} if target is None and ref is None else _place(target or ref)
    return {"format": type, "full_page": fullPage, **place}


def navigate_back() -> Arguments:
    """Go back to the previous page."""
    return {"action": "back"}


def console_messages(
    level: Annotated[Literal["error", "warning", "info", "debug"], "and worse"] = "info",
    all: Annotated[bool, "has no effect: those before the last navigation are there, too"] = False,
    filename: Filename = None,
) -> Arguments:
    """Show console messages and uncaught errors."""
    return {"level": level}


def network_requests(
    static: Annotated[bool, "has no effect: all kinds of requests are listed"] = False,
    filter: Annotated[str | None, "part of the address; no pattern"] = None,
    filename: Filename = None,
) -> Arguments:
    """List the page's requests."""
    if filter is not None and not _PATTERN.isdisjoint(filter):
        raise ToolError("filter is a part of the address here, not a pattern; such as /api/")
    return {"filter": filter}


def network_request(
    index: Annotated[int, "the request's number in the list"],
    part: Annotated[
        Literal["request-headers", "response-headers", "response-body"] | None,
        "only this part; each of the headers brings those of both",
    ] = None,
    filename: Filename = None,
) -> Arguments:
    """Show one of the page's requests."""
    shown = {"request-headers": "headers", "response-headers": "headers", "response-body": "body"}
    return {"id": index, "part": None if part is None else shown[part]}


def file_upload(paths: Annotated[list[str] | None, "the files, within the server's folders"] = None) -> Arguments:
    """Give files to the file dialog that the last click opened."""
    if paths is None:
        raise ToolError("a file dialog needs no cancelling here: go on without it, or give paths")
    return {"paths": paths}


def wait_for(
    time: Annotated[float | None, Meta(gt=0, le=MOST_WAIT_SECONDS, description="seconds, at most 30")] = None,
    text: Annotated[str | None, "until the page has it"] = None,
    textGone: Annotated[str | None, "until it has not"] = None,
) -> Arguments:
    """Wait for a text, or until a text is gone, or for a time. With both, the time is added to the limit."""
    if time is None and text is None and textGone is None:
        raise ToolError("give a time, a text or a textGone")
    limit = (time or 0) + (0 if text is None and textGone is None else WAIT_SECONDS)
    return {"text": text, "text_gone": textGone, "timeout_ms": round(limit * 1000)}


def click(
    target: str,
    element: Element = None,
    ref: Ref = None,
    doubleClick: bool | None = None,
    button: str | None = None,
    modifiers: list[str] | None = None,
) -> Arguments:
    """Refuse Playwright's arguments of `browser_click`, in which an element is a `target`."""
    fix = f'ref: "{target}"' if is_ref(target) else "ref or selector"
    raise ToolError(f"target is which browser to use: latest, current or byId; give the element as {fix}")


def _place(given: str | None) -> dict[str, str]:
    """The argument that identifies the element."""
    if given is None:
        raise ToolError("give the element as target: its ref, or a CSS selector")
    return {"ref" if is_ref(given) else "selector": given}


def _field(each: PlaywrightField) -> Arguments:
    given = each.target or each.ref
    if given is None and each.name is None:
        raise ToolError("give each field a target or a name")
    place = {"label": each.name} if given is None else _place(given)
    checks = each.type in ("checkbox", "radio")
    return {**place, "value": each.value.lower() == "true" if checks else each.value}
