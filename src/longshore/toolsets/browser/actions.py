"""The steps of an agent in a page: click, fill, press, hover, drag, scroll, select, wait, upload, answer a dialog."""

from __future__ import annotations

import asyncio
import time
from typing import Any, Final, Literal, final

from msgspec import Struct

from longshore.errors import ToolError
from longshore.toolsets.browser.connection import CdpError, Params
from longshore.toolsets.browser.evaluation import holds
from longshore.toolsets.browser.events import PageError, clean, unlabelled
from longshore.toolsets.browser.frames import Frame
from longshore.toolsets.browser.keys import modifier_bits, press_events, type_events
from longshore.toolsets.browser.page import Dialogs, Page
from longshore.toolsets.browser.script import Candidate, Located, OptionFound, SliderValue, quote
from longshore.toolsets.browser.settling import ActivityWatch

READY_SECONDS: Final = 2.0
"""How long an element may take to be visible, enabled, still and uncovered."""
NOT_ENDED: Final = "the expression has not ended"
RETRY_SECONDS: Final = 0.1
"""Between two looks at an element or a condition."""
CHOOSER_SECONDS: Final = 3.0
"""How long a page may take to open its file dialog after a click."""
MOST_SLIDES: Final = 1_000
"""Keys that move a slider at once."""
HOVER_SECONDS: Final = 0.25
"""Menus and hints open when the pointer has rested so long."""
MOST_MOVES: Final = 3
"""How often the pointer follows an element that moves under it."""
OPTIONS_SECONDS: Final = 1.0
"""How long an open list may take to show its options."""
FILTERED_SECONDS: Final = 0.4
"""How long a list with options may take to show the one that was asked for."""
ASKED_SECONDS: Final = 0.6
"""So long after the last key a page may ask its server for suggestions: it waits for more keys first."""
SUGGESTED_SECONDS: Final = 4.0
"""How long the suggestions may take in all."""
FRAME_SECONDS: Final = 2.0
"""How long a frame beside the main one may take to answer."""
MOST_TYPED: Final = 5_000
"""Characters that are typed key by key. A longer text is inserted at once."""

Button = Literal["left", "right", "middle"]
_BUTTON_BITS: Final = {"left": 1, "right": 2, "middle": 4}
Value = str | float | bool


class ElementTarget(Struct, frozen=True, kw_only=True):
    """An element: by ref, CSS selector, text (with a role, if given), or the label of a form field."""

    ref: str | None = None
    selector: str | None = None
    text: str | None = None
    role: str | None = None
    label: str | None = None

    def query(self) -> dict[str, str]:
        """The target as the page script takes it."""
        fields = {"ref": self.ref, "selector": self.selector, "text": self.text, "label": self.label}
        given = {name: value for name, value in fields.items() if value is not None}
        if len(given) != 1:
            raise ToolError("an element is given by exactly one of ref, selector, text and label")
        return {**given, **({"role": self.role} if self.role and self.text is not None else {})}


class Point(Struct, frozen=True):
    """A point of the window, in CSS pixels."""

    x: float
    y: float


class Click(Struct, frozen=True, kw_only=True):
    target: ElementTarget | Point
    button: Button = "left"
    count: int = 1
    modifiers: list[str] = []


class Field(Struct, frozen=True, kw_only=True):
    target: ElementTarget
    value: Value


class Fill(Struct, frozen=True, kw_only=True):
    fields: list[Field]
    submit: bool = False


class Type(Struct, frozen=True, kw_only=True):
    """Type a text key by key, into an element or where the focus is."""

    text: str
    target: ElementTarget | None = None


class Press(Struct, frozen=True, kw_only=True):
    keys: list[str]
    target: ElementTarget | None = None


class Hover(Struct, frozen=True, kw_only=True):
    target: ElementTarget | Point


class Drag(Struct, frozen=True, kw_only=True):
    target: ElementTarget | Point
    to: ElementTarget | Point


class Scroll(Struct, frozen=True, kw_only=True):
    """Scroll an element into view, or by pixels, at an element or in the window."""

    target: ElementTarget | None = None
    x: float = 0
    y: float = 0


class Select(Struct, frozen=True, kw_only=True):
    target: ElementTarget
    values: list[str]


class Wait(Struct, frozen=True, kw_only=True):
    """Wait until all of these conditions hold. `seconds` is the most to wait, or alone the time to wait."""

    text: str | None = None
    text_gone: str | None = None
    target: ElementTarget | None = None
    url: str | None = None
    expression: str | None = None
    idle: bool = False
    seconds: float = 10.0


class Upload(Struct, frozen=True, kw_only=True):
    """Give files to a field, to the button that asks for them, or to the file dialog that is open.

    The caller has checked the paths.
    """

    paths: list[str]
    target: ElementTarget | None = None


class AnswerDialog(Struct, frozen=True, kw_only=True):
    """How to answer the next dialog that no earlier step answers."""

    accept: bool = True
    text: str | None = None


Step = Click | Fill | Type | Press | Hover | Drag | Scroll | Select | Wait | Upload | AnswerDialog


class Element(Struct, frozen=True):
    """An element that was found."""

    frame: Frame
    ref: str
    role: str
    name: str
    tag: str
    type: str
    secret: bool
    multiple: bool
    found_again: bool

    def __str__(self) -> str:
        again = " (found again after it was replaced)" if self.found_again else ""
        name = f' "{clean(self.name, 80)}"' if self.name else ""
        return f"{self.role or self.tag}{name} {self.ref}{again}"


@final
class Actions:
    """Performs steps in a page. Each returns what it did, in a sentence."""

    def __init__(self, page: Page, dialogs: Dialogs) -> None:
        self._page, self._dialogs = page, dialogs
        self._frames = page.frames
        self.frame: Frame = page.frames.main
        """The frame of the last step's element."""

    async def perform(self, step: Step) -> str:
        match step:
            case Click():
                return await self._click(step)
            case Fill():
                return await self._fill(step)
            case Type():
                return await self._type(step)
            case Press():
                return await self._press(step)
            case Hover():
                x, y, what = await self._point(step.target, "hover")
                await self._page.input([_mouse("mouseMoved", x, y)])
                await asyncio.sleep(HOVER_SECONDS)
                return f"Hovered over {what}"
            case Drag():
                return await self._drag(step)
            case Scroll():
                return await self._scroll(step)
            case Select():
                return await self._select(step)
            case Wait():
                return await self._wait(step)
            case Upload():
                return await self._upload(step)
            case AnswerDialog():
                n = self._dialogs.arm(step.accept, step.text)
                which = "The next dialog" if n == 1 else f"Dialog {n} from now"
                return f"{which} will be {'accepted' if step.accept else 'dismissed'}"

    # -- elements

    async def find(self, target: ElementTarget) -> Element:
        """The element of a target: in the frame of its ref, in the main frame, or in the only other one that has it."""
        query = target.query()
        if target.ref is not None:
            return self._found(await self._locate(self._frames.of_ref(target.ref), query), query)
        main = await self._locate(self._frames.main, query)
        if not main[1].missing:
            return self._found(main, query)
        others = [frame for frame in self._frames if frame.parent is not None]
        located = await asyncio.gather(*(self._locate_in_time(frame, query) for frame in others))
        found = [each for each in located if each is not None and not each[1].missing]
        if len(found) > 1:
            candidates = [each for _, reply in found for each in reply.candidates or [_candidate(reply)]]
            raise PageError(f"{quote(query)}: is in {len(found)} frames{_listed(candidates)}")
        return self._found(found[0] if found else main, query)

    async def _locate_in_time(self, frame: Frame, query: dict[str, str]) -> tuple[Frame, Located] | None:
        """The element in a frame beside the main one; None if the frame does not answer."""
        try:
            async with asyncio.timeout(FRAME_SECONDS):
                return await self._locate(frame, query)
        except (CdpError, TimeoutError):
            return None

    async def _locate(self, frame: Frame, query: dict[str, str]) -> tuple[Frame, Located]:
        return frame, await self._frames.use(frame, lambda script: script.locate(query))

    def _found(self, found: tuple[Frame, Located], query: dict[str, str]) -> Element:
        frame, reply = found
        if reply.problem:
            kind = PageError if reply.candidates else ToolError
            raise kind(f"{quote(query)}: {reply.problem}{_listed(reply.candidates)}")
        self.frame = frame
        return _element(frame, reply)

    async def object_id(self, element: Element) -> str:
        """The element itself, as an object of our own world."""
        return await self._frames.use(element.frame, lambda script: script.element(element.ref))

    async def _point(self, target: ElementTarget | Point, action: str) -> tuple[float, float, str]:
        """A point of the window to act at, and the element there."""
        if isinstance(target, Point):
            what, view = f"the point {target.x:g},{target.y:g}", await self._view()
            width, height = view["clientWidth"], view["clientHeight"]
            if not (0 <= target.x < width and 0 <= target.y < height):
                raise ToolError(f"{what} is outside the window, which is {width:g} x {height:g}; scroll, or give a ref")
            return target.x, target.y, what
        element = await self.find(target)
        x, y = await self._ready(element, action)
        return x, y, str(element)

    async def _ready(self, element: Element, action: str) -> tuple[float, float]:
        """Wait until an element can take an action, and return its point in the window."""
        frame, until = element.frame, time.monotonic() + READY_SECONDS
        if frame.parent is not None:
            await self._frames.scroll_into_view(frame)
        while True:
            box = await self._frames.use(frame, lambda script: script.prepare(element.ref, action))
            if not box.problem:
                break
            if not box.retry or time.monotonic() >= until:
                raise PageError(f"{element} {box.problem}")
            await asyncio.sleep(RETRY_SECONDS)
        if frame.parent is None:
            return box.x, box.y
        left, top = await self._frames.offset(frame)
        x, y = left + box.x, top + box.y
        covered = await self._frames.use(self._frames.main, lambda script: script.covers_frame(x, y))
        if covered and action != "none":
            raise PageError(f"{element} {covered}")
        return x, y

    async def _view(self) -> dict[str, Any]:
        """The size of the window, and where it is on the page."""
        view: dict[str, Any] = (await self._page.call("Page.getLayoutMetrics"))["cssVisualViewport"]
        return view

    # -- mouse

    async def _click(self, step: Click) -> str:
        if not 1 <= step.count <= 3:
            raise ToolError(f"count={step.count}: a click is 1 to 3 times")
        bits = modifier_bits(step.modifiers)
        x, y, what = await self._move_to(step.target, bits)
        events: list[tuple[str, Params]] = []
        for n in range(1, step.count + 1):
            events.append(_mouse("mousePressed", x, y, step.button, n, bits))
            events.append(_mouse("mouseReleased", x, y, step.button, n, bits))
        await self._page.input(events)
        verb = {1: "Clicked", 2: "Double-clicked", 3: "Triple-clicked"}[step.count]
        with_button = "" if step.button == "left" else f" with the {step.button} button"
        return f"{verb} {what}{with_button}"

    async def _move_to(self, target: ElementTarget | Point, modifiers: int) -> tuple[float, float, str]:
        """Move the pointer to the point of a click, and return that point and the element there."""
        if isinstance(target, Point):
            x, y, what = await self._point(target, "click")
            await self._page.input([_mouse("mouseMoved", x, y, modifiers=modifiers)])
            return x, y, what
        element = await self.find(target)
        moves, until = 0, time.monotonic() + READY_SECONDS
        while True:
            x, y = await self._ready(element, "click")
            await self._page.input([_mouse("mouseMoved", x, y, modifiers=modifiers)])
            moves += 1
            if element.frame.parent is None:
                has_arrived = moves == MOST_MOVES or await self._is_at(element, x, y)
            else:
                # A frame that is new in its process gets no input at first.
                moved = await self._frames.use(element.frame, lambda script: script.has_pointer())
                has_arrived = moved or time.monotonic() >= until
            if has_arrived:
                return x, y, str(element)

    async def _is_at(self, element: Element, x: float, y: float) -> bool:
        """Whether an element of the main frame is at a point: a menu that the pointer left may have closed above it."""
        return await self._frames.use(element.frame, lambda script: script.is_at(element.ref, x, y))

    async def _drag(self, step: Drag) -> str:
        x, y, what = await self._point(step.target, "hover")
        to_x, to_y, where = await self._point(step.to, "none")
        x, y, what = await self._point(step.target, "hover")  # the second call may have scrolled the first element
        await self._page.input([_mouse("mouseMoved", x, y), _mouse("mousePressed", x, y, "left", 1)])
        try:
            # A native drag takes over after the first moves, so these are awaited one by one.
            for part in (0.1, 0.5, 0.9, 1.0, 1.0):
                event = _mouse("mouseMoved", x + (to_x - x) * part, y + (to_y - y) * part, "left")
                await self._page.input([event])
        finally:
            release = _mouse("mouseReleased", to_x, to_y, "left", 1)
            await asyncio.wait_for(self._page.input([release]), FRAME_SECONDS)
        return f"Dragged {what} to {where}"

    async def _scroll(self, step: Scroll) -> str:
        if step.target is not None:
            element = await self.find(step.target)
            x, y = await self._ready(element, "none")
            if not step.x and not step.y:
                return f"Scrolled to {element}"
        else:
            view = await self._view()
            x, y = view["clientWidth"] / 2, view["clientHeight"] / 2
            if not step.x and not step.y:
                step = Scroll(y=view["clientHeight"] * 0.8)
        wheel = _mouse("mouseWheel", x, y)
        wheel[1].update(deltaX=step.x, deltaY=step.y)
        await self._page.input([wheel])
        return f"Scrolled by {step.x:g},{step.y:g} pixels"

    # -- forms and keys

    async def _fill(self, step: Fill) -> str:
        if not step.fields:
            raise ToolError("fields is empty; give at least one with a value")
        filled = await self._fill_at_once(step.fields)
        for field in step.fields[len(filled) :]:
            try:
                element = await self.find(field.target)
                await self._fill_one(element, field.value)
            except ToolError as problem:
                raise _after(filled, problem) from None
            filled.append(element)
        many = f"{len(filled)} fields" if len(filled) > 1 else str(filled[0])
        try:
            return f"Filled {many}{await self._submit(filled[-1]) if step.submit else ''}"
        except ToolError as problem:
            raise _after(filled, problem) from None

    async def _fill_at_once(self, fields: list[Field]) -> list[Element]:
        """The first fields that one call fills, in the main frame.

        Raises PageError for a box that did not change when it was clicked.
        """
        given = [{"target": field.target.query(), "value": field.value} for field in fields]
        main = self._frames.main
        found = await self._frames.use(main, lambda script: script.fill(given))
        filled = [_element(main, each) for each in found if not each.problem]
        for element, field in zip(filled, fields, strict=False):
            self._keep_secret(element, _entered(field.value))
        if len(filled) < len(found):
            raise _after(filled, PageError(f"{_element(main, found[-1])} {found[-1].problem}"))
        return filled

    async def _submit(self, field: Element) -> str:
        """Submit the form of a field, as a person would: by Enter, or by the form's button. Returns what was done."""
        self.frame = field.frame
        how = await self._frames.use(field.frame, lambda script: script.submit(field.ref))
        if how.ref:
            await self._click(Click(target=ElementTarget(ref=how.ref)))
        elif how.enter:
            await self._focus(field)
            await self._page.input(press_events("Enter"))
        if how.invalid:
            return f' and tried to submit, but "{clean(how.invalid, 60)}" is not valid'
        return " and submitted" if how.submits else " and pressed Enter"

    async def _fill_one(self, element: Element, value: Value) -> None:
        text = _entered(value)
        self._keep_secret(element, text)
        reply = await self._frames.use(element.frame, lambda script: script.set_value(element.ref, value))
        if reply.problem == "type":
            await self._fill_combobox(element, text)
            return
        if reply.problem == "choose":
            await self._choose_option(element, text)
            return
        if reply.problem == "slide":
            await self._slide(element, text)
            return
        if reply.problem == "file":
            raise PageError(f"{element} takes files; give them with browser_files")
        if reply.problem:
            options = ", ".join(f'"{clean(each, 60)}"' for each in reply.options[:20])
            raise PageError(f"{element}: {reply.problem}{f'; it has {options}' if options else ''}")
        is_text = element.tag in ("input", "textarea") and element.type in ("", "text", "search", "tel", "textarea")
        if is_text and text and not reply.shown:
            await self._replace_text(element, text)  # the page reverted it: it may require real key events

    def _keep_secret(self, element: Element, text: str) -> None:
        """Keep the value of a password field secret: a form may send it in its address."""
        if element.secret:
            self._page.log.secrets.add(text)

    async def _fill_combobox(self, element: Element, text: str) -> None:
        """Type into a field with suggestions, and choose the one that equals the text."""
        watch = self._page.activity.watch()
        try:
            await self._replace_text(element, text)
            if text and element.type != "search" and (ref := await self._suggestion(element, text, watch)):
                await self._click(Click(target=ElementTarget(ref=ref)))
        finally:
            self._page.activity.unwatch(watch)

    async def _suggestion(self, element: Element, text: str, watch: ActivityWatch) -> str:
        """The ref of the option that a page suggests for a text; waits while the page asks its server."""
        started = time.monotonic()
        while True:
            seen = watch.started
            found = await self._option(element, text)
            waited = time.monotonic() - started
            if found.ref or not found.suggested or waited > SUGGESTED_SECONDS:
                return found.ref
            if watch.is_busy:
                await watch.wait_idle(started + SUGGESTED_SECONDS)
            elif watch.started == seen and waited > ASKED_SECONDS:
                return ""

    async def _choose_option(self, element: Element, text: str) -> None:
        """Open the list of a field that is no form element, and click an option."""
        await self._click(Click(target=ElementTarget(ref=element.ref)))
        found = await self._option(element, text)
        if not found.ref:
            if found.open:
                await self._page.input(press_events("Escape"))
            options = ", ".join(f'"{clean(each, 60)}"' for each in found.options)
            raise PageError(f'{element}: has no option "{clean(text, 60)}"{f"; it has {options}" if options else ""}')
        await self._click(Click(target=ElementTarget(ref=found.ref)))

    async def _option(self, element: Element, name: str) -> OptionFound:
        """An option of the list that a field has opened; waits while the list loads."""
        started = time.monotonic()
        while True:
            found = await self._frames.use(element.frame, lambda script: script.option(element.ref, name))
            most = FILTERED_SECONDS if found.options else OPTIONS_SECONDS if found.open else RETRY_SECONDS
            if found.ref or time.monotonic() - started > most:
                return found
            await asyncio.sleep(RETRY_SECONDS / 2)

    async def _slide(self, element: Element, text: str) -> None:
        """Move a slider that is no form element to a value, by the arrow keys."""

        async def value() -> SliderValue:
            return await self._frames.use(element.frame, lambda script: script.slider(element.ref))

        was = await value()
        try:
            wanted = float(text)
        except ValueError:
            raise PageError(f"{element} takes a number") from None
        if not was.min <= wanted <= was.max:
            raise PageError(f"{element} takes {was.min:g} to {was.max:g}")
        await self._focus(element)
        while was.now != wanted:
            key = press_events("ArrowUp" if wanted > was.now else "ArrowDown")
            await self._page.input(key)
            now = await value()
            step = abs(now.now - was.now)
            left = abs(wanted - now.now)
            if not step or left >= abs(wanted - was.now):
                raise PageError(f"{element} stays at {now.now:g}; drag it, or press keys")
            await self._page.input(key * min(int(left / step), MOST_SLIDES))
            was = await value()

    async def _replace_text(self, element: Element, text: str) -> None:
        await self._focus(element)
        await self._page.input(press_events("ControlOrMeta+A"))
        await self._page.input(press_events("Delete") if not text else _typing(text))

    async def _type(self, step: Type) -> str:
        where = ""
        if step.target is not None:
            element = await self.find(step.target)
            self._keep_secret(element, step.text)
            await self._focus(element)
            where = f" into {element}"
        await self._page.input(_typing(step.text))
        return f"Typed {len(step.text):,} characters{where}"

    async def _press(self, step: Press) -> str:
        events = [event for key in step.keys for event in press_events(key)]
        where = ""
        if step.target is not None:
            element = await self.find(step.target)
            await self._focus(element)
            where = f" in {element}"
        await self._page.input(events)
        return f"Pressed {' '.join(step.keys)}{where}"

    async def _focus(self, element: Element) -> None:
        await self._frames.use(element.frame, lambda script: script.focus(element.ref))

    async def _select(self, step: Select) -> str:
        element = await self.find(step.target)
        value: Any = step.values[0] if len(step.values) == 1 else step.values
        reply = await self._frames.use(element.frame, lambda script: script.set_value(element.ref, value))
        if reply.problem in ("choose", "type"):
            for each in step.values:
                await self._choose_option(element, each)
        elif reply.problem:
            options = ", ".join(f'"{clean(each, 60)}"' for each in reply.options[:20])
            raise PageError(f"{element}: {reply.problem}{f'; it has {options}' if options else ''}")
        return f"Selected {', '.join(step.values)} in {element}"

    # -- waiting

    async def _wait(self, step: Wait) -> str:
        until = time.monotonic() + step.seconds
        conditions = [step.text, step.text_gone, step.target, step.url, step.expression]
        if not step.idle and all(each is None for each in conditions):
            await asyncio.sleep(step.seconds)
            return f"Waited {step.seconds:g} s"
        reason = ""
        while (missing := await self._missing(step, until)) is not None:
            if not reason or missing != NOT_ENDED:
                reason = missing  # The last snapshot may run out of time: the result of the one before says more.
            if time.monotonic() >= until:
                raise ToolError(f"waited {step.seconds:g} s, and {reason}; look at the page with a snapshot")
            await asyncio.sleep(RETRY_SECONDS)
        if step.idle:
            watch = self._page.activity.watch(since=0)
            try:
                while True:
                    seen = watch.started
                    await asyncio.sleep(0.5)
                    if not watch.is_busy and watch.started == seen:
                        break
                    if time.monotonic() >= until:
                        raise ToolError(f"waited {step.seconds:g} s, and requests still run: {watch.running()[:3]}")
            finally:
                self._page.activity.unwatch(watch)
        return "It is there" if step.text or step.target else "The wait is over"

    async def _missing(self, step: Wait, until: float) -> str | None:
        """The conditions that do not hold yet, in words."""
        if step.url is not None and step.url not in self._frames.main.url:
            return f"the address is {clean(self._page.log.mask(self._frames.main.url))}"
        if step.text is not None and not await self._check({"text": step.text}):
            return f'"{clean(step.text)}" is not there'
        if step.text_gone is not None and await self._check({"text": step.text_gone}):
            return f'"{clean(step.text_gone)}" is still there'
        if step.target is not None:
            query = step.target.query()
            if not await self._check({k: v for k, v in query.items() if k in ("ref", "selector", "text")}):
                return f"{quote(query)} is not there"
        if step.expression is not None:
            try:
                if not await holds(self._page, step.expression, max(RETRY_SECONDS, until - time.monotonic())):
                    return "the expression is not true"
            except (CdpError, TimeoutError):
                return NOT_ENDED  # or the document is being replaced
        return None

    async def _check(self, query: dict[str, str]) -> bool:
        """Whether a condition holds in any frame."""
        frames = [self._frames.of_ref(query["ref"])] if "ref" in query else list(self._frames)
        for frame in frames:
            try:
                async with asyncio.timeout(FRAME_SECONDS if frame.parent else None):
                    if await self._frames.use(frame, lambda script: script.check(**query)):
                        return True
            except (CdpError, TimeoutError):
                continue  # the document is just being replaced
        return False

    # -- files

    async def _upload(self, step: Upload) -> str:
        names = f"{len(step.paths)} file{'' if len(step.paths) == 1 else 's'}"
        if step.target is None:
            if not self._page.choosers:
                raise ToolError(
                    "no file dialog is open; give the ref of the file field or of the button that opens one"
                )
            return await self._choose(step.paths, names)
        element = await self.find(step.target)
        if element.tag == "input" and element.type == "file":
            _check_count(step.paths, element.multiple)
            object_id = await self.object_id(element)
            files = {"files": step.paths, "objectId": object_id}
            await self._page.call("DOM.setFileInputFiles", files, element.frame.session)
            return f"Gave {names} to {element}"
        self._page.choosers.clear()
        x, y = await self._ready(element, "click")
        events = [_mouse("mouseMoved", x, y)]
        events += [_mouse(kind, x, y, "left", 1) for kind in ("mousePressed", "mouseReleased")]
        await self._page.input(events)
        until = time.monotonic() + CHOOSER_SECONDS
        while not self._page.choosers:
            if time.monotonic() >= until:
                raise PageError(f"{element} opened no file dialog; give the ref of the file field itself")
            await asyncio.sleep(RETRY_SECONDS / 4)
        return await self._choose(step.paths, names)

    async def _choose(self, paths: list[str], names: str) -> str:
        chooser = self._page.choosers.pop()
        _check_count(paths, chooser.several)
        await self._page.call("DOM.setFileInputFiles", {"files": paths, "backendNodeId": chooser.node}, chooser.session)
        return f"Gave {names} to the file dialog"


def _element(frame: Frame, reply: Located) -> Element:
    return Element(
        frame, reply.ref, reply.role, reply.name, reply.tag, reply.type, reply.secret, reply.multiple, reply.found_again
    )


def _candidate(reply: Located) -> Candidate:
    return Candidate(reply.ref, reply.role, reply.name)


def _after(filled: list[Element], problem: ToolError) -> ToolError:
    """An error that names the fields that were filled before it."""
    names = [f'"{clean(each.name, 60)}"' if each.name else each.ref for each in filled]
    return PageError(f"{unlabelled(problem)} (filled before it: {', '.join(names)})") if names else problem


def _listed(candidates: list[Candidate]) -> str:
    """The elements that could replace a target, as the end of an error."""
    names = [f'{each.role} "{clean(each.name, 60)}" {each.ref}' for each in candidates[:5]]
    return f"; there is {', '.join(names)}" if names else "; take a snapshot or find it by text"


def _check_count(paths: list[str], several: bool) -> None:
    """Raises ToolError for more files than a field takes."""
    if len(paths) > 1 and not several:
        raise ToolError(f"this field takes one file, not {len(paths)}")


def _entered(value: Value) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _typing(text: str) -> list[tuple[str, Params]]:
    return type_events(text) if len(text) <= MOST_TYPED else [("Input.insertText", {"text": text})]


def _mouse(
    kind: str, x: float, y: float, button: str = "none", count: int = 0, modifiers: int = 0
) -> tuple[str, Params]:
    held = _BUTTON_BITS.get(button, 0) if kind != "mouseReleased" else 0
    return "Input.dispatchMouseEvent", {
        "type": kind,
        "x": x,
        "y": y,
        "button": button,
        "buttons": held,
        "clickCount": count,
        "modifiers": modifiers,
    }
