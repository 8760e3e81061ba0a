"""The Python side of the script in a page: one isolated world of each frame, answers as records."""

from __future__ import annotations

import asyncio
from functools import cache
from importlib.resources import files
from typing import Any, Final, TypeVar, final

import msgspec
from msgspec import Struct

from longshore.errors import ToolError
from longshore.toolsets.browser.connection import CdpConnection, CdpError
from longshore.toolsets.browser.events import RefNumbers, clean

WORLD: Final = "longshore"
REF: Final = r"((t\d+)?(?:f\d+)?)e\d+"
"""A ref as a pattern: its frame and its tab are groups. Those of the first tab, and of a main frame, are left out."""
MOST_NESTED: Final = 5
"""Closed shadow roots within each other that are looked into."""
MOST_TITLE: Final = 400
"""Characters of a page's title. A page can give itself one of megabytes."""
_CALL: Final = "function(name, args) { return this.call(name, args); }"
_ELEMENT: Final = "function(ref) { return this.element(ref); }"
_HOSTS: Final = "function() { return this.hosts(); }"
_SHOW: Final = "function(refs) { this.show(refs); }"
_REVEAL: Final = "function(...roots) { this.reveal(...roots); }"

_REPEATABLE: Final = frozenset(("snapshot", "find", "read", "locate", "option", "check", "box"))
"""Calls that are made again when the page turns out to have closed shadow roots."""

_TITLE: Final = f"function() {{ return document.title.slice(0, {MOST_TITLE}); }}"

T = TypeVar("T")


class SnapshotLine(Struct, frozen=True, omit_defaults=True):
    """A line of a snapshot. `frame` marks an iframe, whose own lines belong below it.

    `behind` marks visible parts that can't be used, such as the page behind a dialog.
    """

    depth: int
    text: str
    ref: str | None = None
    frame: bool = False
    behind: bool = False


class Lines(Struct, frozen=True):
    lines: list[SnapshotLine]
    title: str
    url: str
    nodes: int = 0
    truncated: bool = False
    problem: str = ""


class FoundLine(Struct, frozen=True):
    text: str
    path: list[str]
    ref: str | None = None


class FoundLines(Struct, frozen=True):
    matches: list[FoundLine]
    total: int
    truncated: bool = False
    problem: str = ""


class PageText(Struct, frozen=True):
    text: str
    total_chars: int
    problem: str = ""


class Candidate(Struct, frozen=True):
    ref: str
    role: str
    name: str


class Located(Struct, frozen=True):
    """An element, or the problem and similar elements."""

    ref: str = ""
    role: str = ""
    name: str = ""
    tag: str = ""
    type: str = ""
    secret: bool = False
    """Whether it is a field whose value is not shown."""
    multiple: bool = False
    """Whether it is a field that takes several files, or options."""
    found_again: bool = False
    problem: str = ""
    candidates: list[Candidate] = []
    missing: bool = False
    """There is none at all. The candidates are then what else there is."""


class Prepared(Struct, frozen=True):
    """The point of an element, in the frame's own viewport, or the reason why it can't be acted on now."""

    x: float = 0
    y: float = 0
    width: float = 0
    height: float = 0
    problem: str = ""
    retry: bool = False


class ValueSet(Struct, frozen=True):
    done: bool = False
    shown: str = ""
    problem: str = ""
    options: list[str] = []


class OptionFound(Struct, frozen=True):
    """The option with a name in an open list, or the names of all options."""

    ref: str
    options: list[str]
    open: bool
    suggested: bool = False
    """Whether the page suggests options while a text is typed."""


class Submission(Struct, frozen=True):
    """How a form is submitted. Without a button and `enter`, it was submitted already."""

    ref: str = ""
    """Of the button that submits."""
    enter: bool = False
    """Whether Enter in the field does."""
    submits: bool = True
    """Whether the browser then submits a form. Else only the page may do something."""
    invalid: str = ""
    """The name of a field whose value keeps the browser from submitting."""


class SliderValue(Struct, frozen=True):
    """The value of a slider that is no form element."""

    now: float
    min: float
    max: float


class PageBox(Struct, frozen=True):
    x: float
    y: float
    width: float
    height: float
    problem: str = ""


class Holds(Struct, frozen=True):
    holds: bool
    problem: str = ""


@final
class PageScript:
    """The script in one document of a frame."""

    def __init__(
        self, connection: CdpConnection, session: str, object_id: str, context_id: int, refs: RefNumbers
    ) -> None:
        self._connection, self._session, self._refs = connection, session, refs
        self._object_id, self._context_id = object_id, context_id

    @classmethod
    async def install(
        cls, connection: CdpConnection, session: str, frame_id: str, prefix: str, refs: RefNumbers | None = None
    ) -> PageScript:
        """Load the script into a frame's current document. Raises CdpError if it is being replaced."""
        refs = refs or RefNumbers()
        world = await connection.call("Page.createIsolatedWorld", {"frameId": frame_id, "worldName": WORLD}, session)
        made = await connection.call(
            "Runtime.callFunctionOn",
            {
                "functionDeclaration": f"function(prefix, last) {{ return ({source()})(prefix, last); }}",
                "executionContextId": world["executionContextId"],
                "arguments": [{"value": prefix}, {"value": refs.last}],
            },
            session,
        )
        _check(made)
        return cls(connection, session, made["result"]["objectId"], world["executionContextId"], refs)

    async def snapshot(
        self,
        *,
        mode: str = "full",
        target: dict[str, str] | None = None,
        depth: int | None = None,
        links: bool = False,
        boxes: bool = False,
        limit: int | None = None,
    ) -> Lines:
        """The document's lines."""
        given = {"mode": mode, "target": target, "depth": depth, "links": links, "boxes": boxes}
        made = await self._call(Lines, "snapshot", given if limit is None else given | {"limit": limit})
        return _without_problem(made, target or {})

    async def find(
        self, *, text: str | None, regex: str | None, role: str | None, near: str | None = None, limit: int
    ) -> FoundLines:
        given = {"text": text, "regex": regex, "role": role, "near": near, "limit": limit}
        return _without_problem(await self._call(FoundLines, "find", given), {"regex": regex or ""})

    async def read(
        self, *, format: str = "markdown", selector: str | None = None, ref: str | None = None, limit_chars: int
    ) -> PageText:
        given = {"format": format, "selector": selector, "ref": ref, "limit_chars": limit_chars}
        part = {"ref": ref} if ref else {"selector": selector or ""}
        return _without_problem(await self._call(PageText, "read", given), part)

    async def mark(self, most: int) -> list[str]:
        """Show the refs of at most so many controls beside them. Returns these refs."""
        return (await self._call(dict[str, list[str]], "mark", {"most": most}))["refs"]

    async def unmark(self) -> None:
        """Remove the refs that `mark` has added."""
        await self._call(dict[str, str], "unmark")

    async def locate(self, target: dict[str, str]) -> Located:
        return await self._call(Located, "locate", target)

    async def prepare(self, ref: str, action: str) -> Prepared:
        return await self._call(Prepared, "prepare", ref, {"action": action})

    async def is_at(self, ref: str, x: float, y: float) -> bool:
        """Whether a point of the frame's own viewport is on an element."""
        return (await self._call(dict[str, bool], "is_at", ref, x, y))["still"]

    async def has_pointer(self) -> bool:
        """Whether the pointer has moved in the frame since an element was prepared."""
        return (await self._call(dict[str, bool], "has_pointer"))["moved"]

    async def covers_frame(self, x: float, y: float) -> str:
        """The elements that cover the frames at a point, in words; empty if none does."""
        return (await self._call(dict[str, str], "covers_frame", x, y))["problem"]

    async def set_value(self, ref: str, value: Any) -> ValueSet:
        return await self._call(ValueSet, "set_value", ref, value)

    async def option(self, ref: str, name: str) -> OptionFound:
        """The option of this name in the list that a field has opened."""
        return await self._call(OptionFound, "option", ref, name)

    async def slider(self, ref: str) -> SliderValue:
        return await self._call(SliderValue, "slider", ref)

    async def fill(self, fields: list[dict[str, Any]]) -> list[Located]:
        """Fill fields, each of `target` and `value`, in turn. Returns those that were filled before one failed.

        The last has a problem if a click did not change it.
        """
        return (await self._call(dict[str, list[Located]], "fill", fields))["done"]

    async def submit(self, ref: str) -> Submission:
        """Submit a field's form, or return the button or key to do it with."""
        return await self._call(Submission, "submit", ref)

    async def focus(self, ref: str) -> None:
        await self._call(dict[str, bool], "focus", ref)

    async def describe(self, ref: str) -> str:
        return (await self._call(dict[str, str], "describe", ref))["text"]

    async def quiet(self, quiet_ms: int, limit_ms: int) -> bool:
        """Wait until the document has not changed for `quiet_ms`. Returns whether that happened.

        A document with disabled scripts has no timers, and only loading changes it: then the wait is `quiet_ms` in any
        case.
        """
        reply = await self._call(dict[str, bool], "quiet", {"quiet_ms": quiet_ms, "limit_ms": limit_ms})
        if not reply["waited"]:
            await asyncio.sleep(quiet_ms / 1000)
        return reply["quiet"]

    async def check(
        self,
        *,
        text: str | None = None,
        text_gone: str | None = None,
        ref: str | None = None,
        selector: str | None = None,
    ) -> bool:
        given = {"text": text, "text_gone": text_gone, "ref": ref, "selector": selector}
        return _without_problem(await self._call(Holds, "check", given), {"selector": selector or ""}).holds

    async def box(self, target: dict[str, str]) -> PageBox:
        return _without_problem(await self._call(PageBox, "box", target), target)

    async def title(self) -> str:
        """The page's title, which the page's own scripts can't replace by a function."""
        reply = await self._connection.send(
            "Runtime.callFunctionOn",
            {"functionDeclaration": _TITLE, "objectId": self._object_id, "returnByValue": True},
            self._session,
        )
        _check(reply)
        return str(reply["result"]["value"])

    def show(self, refs: list[str]) -> asyncio.Future[dict[str, Any]]:
        """Record the refs in an answer: an element whose ref is in no answer may get that of an older one."""
        asked = {"functionDeclaration": _SHOW, "objectId": self._object_id, "arguments": [{"value": refs}]}
        return self._connection.send("Runtime.callFunctionOn", asked, self._session)

    async def element(self, ref: str) -> str:
        """The element itself, as the id of an object in the isolated world."""
        return str((await self._run(_ELEMENT, {"value": ref}))["objectId"])

    async def _call(self, type: type[T], name: str, *arguments: Any) -> T:
        answer = await self._ask(name, arguments)
        for _ in range(MOST_NESTED):
            if not answer["unexamined"] or name not in _REPEATABLE or not await self._reveal_closed_roots():
                break
            answer = await self._ask(name, arguments)
        return msgspec.convert(answer["value"], type)

    async def _ask(self, name: str, arguments: tuple[Any, ...]) -> dict[str, Any]:
        reply = await self._run(_CALL, {"value": name}, {"value": arguments}, by_value=True)
        answer: dict[str, Any] = reply["value"]
        self._refs.last = max(self._refs.last, int(answer["last"]))
        return answer

    async def _reveal_closed_roots(self) -> int:
        """Give the script the closed shadow roots that it can't reach. Returns how many there were."""
        hosts = (await self._run(_HOSTS))["objectId"]
        listed = await self._connection.call(
            "Runtime.getProperties", {"objectId": hosts, "ownProperties": True}, self._session
        )
        ids = [each["value"]["objectId"] for each in listed["result"] if each["name"].isdigit()]
        roots = [root for root in await asyncio.gather(*map(self._closed_root, ids)) if root]
        await self._run(_REVEAL, *({"objectId": root} for root in roots))
        return len(roots)

    async def _closed_root(self, host: str) -> str:
        """The closed shadow root of an element, as the id of an object in the isolated world; empty if it has none."""
        described = await self._connection.call("DOM.describeNode", {"objectId": host}, self._session)
        for root in described["node"].get("shadowRoots", ()):
            if root.get("shadowRootType") == "closed":
                node = {"backendNodeId": root["backendNodeId"], "executionContextId": self._context_id}
                resolved = await self._connection.call("DOM.resolveNode", node, self._session)
                return str(resolved["object"]["objectId"])
        return ""

    async def _run(self, function: str, *arguments: dict[str, Any], by_value: bool = False) -> dict[str, Any]:
        """Call a function of the script. Returns its result as the browser describes it."""
        reply = await self._connection.send(
            "Runtime.callFunctionOn",
            {
                "functionDeclaration": function,
                "objectId": self._object_id,
                "arguments": arguments,
                "returnByValue": by_value,
                "awaitPromise": by_value,
            },
            self._session,
        )
        _check(reply)
        result: dict[str, Any] = reply["result"]
        return result


@cache
def source() -> str:
    """The script's text, without its first comment."""
    text = files("longshore.toolsets.browser").joinpath("page_script.js").read_text("utf-8")
    return text[text.index("(prefix, last) =>") :].rstrip().removesuffix(";")


def _check(reply: dict[str, Any]) -> None:
    if "exceptionDetails" in reply:
        details = reply["exceptionDetails"]
        text = str(details.get("exception", {}).get("description") or details.get("text", ""))
        raise CdpError("the page script", text.partition("\n")[0].removeprefix("Error: "))


def quote(query: dict[str, str]) -> str:
    """A target in quotes, such as `ref "e12"`."""
    return " ".join(f'{name} "{clean(value, 80)}"' for name, value in query.items())


def _without_problem(answer: T, query: dict[str, str]) -> T:
    problem = str(getattr(answer, "problem", ""))
    if problem:
        hint = "" if "regex" in query else "; take a snapshot for the refs"
        raise ToolError(f"{quote(query)}: {problem}{hint}")
    return answer
