"""The frames of a page, in any process: their scripts, and their positions in the window."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final, TypeVar, final

from longshore.errors import ToolError
from longshore.toolsets.browser.connection import CdpConnection, CdpError
from longshore.toolsets.browser.events import FIRST_TAB, RefNumbers
from longshore.toolsets.browser.script import REF, PageScript

MOST_FRAMES: Final = 200
"""Frames of a page that we follow. A page can make them without end."""
REDIRECTS: Final = 5
REDIRECT_SECONDS: Final = 0.1
"""Tries to read a document that is replaced meanwhile, and the pause after each."""
_REF: Final = re.compile(REF)

T = TypeVar("T")


@final
class Frame:
    """A frame. Its id stays when it gets another document or moves to another process."""

    def __init__(self, id: str, parent: str | None, session: str, prefix: str, refs: RefNumbers) -> None:
        self.id, self.parent, self.session, self.prefix, self.refs = id, parent, session, prefix, refs
        self.url = ""
        self.loader = ""
        """The id of its document."""
        self.script: PageScript | None = None
        self.installing = asyncio.Lock()


@final
class Frames:
    """The frame tree of a page, updated by the page's events."""

    def __init__(self, connection: CdpConnection, main_id: str, session: str, refs: RefNumbers) -> None:
        self._connection, self._refs = connection, refs
        self.main = Frame(main_id, None, session, refs.prefix, refs)
        self._frames = {main_id: self.main}
        self._contexts: dict[str, str] = {}
        """The unique ids of the worlds that the frames' own scripts run in, by frame."""

    def __iter__(self) -> Iterator[Frame]:
        """The main frame first."""
        return iter(tuple(self._frames.values()))

    def __contains__(self, id: str) -> bool:
        return id in self._frames

    def get(self, id: str) -> Frame | None:
        return self._frames.get(id)

    def of_ref(self, ref: str) -> Frame:
        """The frame of a ref: `f2e7` is in frame f2, `e7` in the main frame, `t2e7` in that of tab t2."""
        match = _REF.fullmatch(ref)
        if match is None:
            raise ToolError(f"{ref[:40]!r} is no ref; refs look like e12 or f2e12 and stand in snapshots")
        for frame in self:
            if frame.prefix == match[1]:
                return frame
        if (tab := match[2] or FIRST_TAB) != self._refs.tab:
            mine = f"take a snapshot for the refs of {self._refs.tab}"
            raise ToolError(f"{ref} is a ref of tab {tab}; give tab_id={tab}, or {mine}")
        raise ToolError(f"the frame of {ref} is no longer on the page; take a snapshot for the refs of now")

    # -- events

    def take(self, session: str, method: str, params: dict[str, Any]) -> list[str]:
        """An event of the page. Returns the loaders of the documents that it ended."""
        match method:
            case "Page.frameAttached":
                self._add(params["frameId"], params.get("parentFrameId"), session)
            case "Page.frameNavigated":
                return self._navigated(session, params["frame"])
            case "Page.navigatedWithinDocument":
                if frame := self._frames.get(params["frameId"]):
                    frame.url = str(params.get("url", ""))
            case "Runtime.executionContextCreated":
                self._context_created(params["context"])
            case "Page.frameDetached":
                if params.get("reason") != "swap":  # a swapped frame continues in another process
                    return self._remove(params["frameId"])
            case _:
                pass
        return []

    def take_tree(self, session: str, tree: dict[str, Any]) -> None:
        """Take over a frame tree as the browser gave it at the attachment."""
        frame = self._add(tree["frame"]["id"], tree["frame"].get("parentId"), session)
        if frame is None or frame.loader or frame.session != session:
            return  # it has navigated or moved since
        self._navigated(session, tree["frame"])
        for child in tree.get("childFrames", ()):
            self.take_tree(session, child)

    def moved(self, id: str, session: str, parent: str | None) -> list[str]:
        """A frame is now in a process of its own, with another document. Returns the loaders of those that ended."""
        frame = self._add(id, parent, session)
        if frame is None or frame.session == session:
            return []
        ended = self._loaders(frame)
        frame.session, frame.script, frame.loader = session, None, ""
        return ended

    def _navigated(self, session: str, reply: dict[str, Any]) -> list[str]:
        frame = self._add(reply["id"], reply.get("parentId"), session)
        if frame is None:
            return []
        ended = [] if frame.loader == reply["loaderId"] else self._loaders(frame)
        frame.session, frame.script = session, None
        frame.url, frame.loader = str(reply.get("url", "")) + str(reply.get("urlFragment", "")), reply["loaderId"]
        return ended

    def _loaders(self, frame: Frame) -> list[str]:
        """The document of a frame, and those of the frames in it."""
        loaders = [frame.loader] if frame.loader else []
        for child in self:
            if child.parent == frame.id:
                loaders += self._loaders(child)
        return loaders

    def _add(self, id: str, parent: str | None, session: str) -> Frame | None:
        frame = self._frames.get(id)
        if frame is None and len(self._frames) < MOST_FRAMES:
            self._refs.last_frame += 1
            prefix = f"{self._refs.prefix}f{self._refs.last_frame}"
            frame = self._frames[id] = Frame(id, parent or self.main.id, session, prefix, RefNumbers())
        return frame

    def _context_created(self, context: dict[str, Any]) -> None:
        """Store a context. The contexts of a page are at first announced before its frames."""
        about = context.get("auxData", {})
        id = str(about.get("frameId", ""))
        if about.get("isDefault") and (id in self._contexts or len(self._contexts) < MOST_FRAMES):
            self._contexts[id] = str(context["uniqueId"])

    def context(self, frame: Frame) -> str | None:
        """The world that a frame's own scripts run in, as the unique id of its execution context."""
        return self._contexts.get(frame.id)

    def _remove(self, id: str) -> list[str]:
        if id == self.main.id or id not in self._frames:
            return []
        ended = self._loaders(self._frames[id])
        del self._frames[id]
        self._contexts.pop(id, None)
        for child in [frame.id for frame in self if frame.parent == id]:
            self._remove(child)
        return ended

    # -- scripts

    async def script(self, frame: Frame) -> PageScript:
        """The script of a frame's document, installed at its first use."""
        async with frame.installing:
            if frame.script is None:
                made = await PageScript.install(self._connection, frame.session, frame.id, frame.prefix, frame.refs)
                frame.script = made
            return frame.script

    async def use(self, frame: Frame, work: Callable[[PageScript], Awaitable[T]]) -> T:
        """Run a function with a frame's script; once more if the document was replaced meanwhile."""
        try:
            return await work(await self.script(frame))
        except CdpError:
            frame.script = None
        return await work(await self.script(frame))

    async def read(self, frame: Frame, work: Callable[[PageScript], Awaitable[T]]) -> T:
        """Run a reading function with a frame's script, again while scripts redirect to other documents."""
        for _ in range(REDIRECTS):
            try:
                return await self.use(frame, work)
            except CdpError:
                await asyncio.sleep(REDIRECT_SECONDS)
        return await self.use(frame, work)

    # -- places

    async def offset(self, frame: Frame) -> tuple[float, float]:
        """The offset of a frame's own viewport in the main frame's."""
        x = y = 0.0
        while frame.parent is not None:
            parent = self._frames.get(frame.parent)
            if parent is None:
                raise ToolError("the frame is no longer on the page; take a snapshot")
            owner = await self._owner(frame, parent)
            box = await self._connection.call("DOM.getBoxModel", {"backendNodeId": owner}, parent.session)
            left, top = box["model"]["content"][:2]
            x, y = x + left, y + top
            frame = self._local_root(parent)
        return x, y

    async def scroll_into_view(self, frame: Frame) -> None:
        """Scroll the frames around this one until it is visible."""
        if frame.parent is None or (parent := self._frames.get(frame.parent)) is None:
            return
        await self.scroll_into_view(parent)
        owner = await self._owner(frame, parent)
        await self._connection.call("DOM.scrollIntoViewIfNeeded", {"backendNodeId": owner}, parent.session)

    async def _owner(self, frame: Frame, parent: Frame) -> int:
        """The node of the iframe element."""
        found = await self._connection.call("DOM.getFrameOwner", {"frameId": frame.id}, parent.session)
        return int(found["backendNodeId"])

    def _local_root(self, frame: Frame) -> Frame:
        """The outermost frame of the same process: boxes are relative to it."""
        while frame.parent is not None:
            parent = self._frames.get(frame.parent)
            if parent is None or parent.session != frame.session:
                break
            frame = parent
        return frame
