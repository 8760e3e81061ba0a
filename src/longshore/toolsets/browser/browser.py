"""A browser for one agent: an isolated context with tabs, popups and downloads, opened again when it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Protocol, final

from msgspec import Struct

from longshore.errors import ToolError
from longshore.toolsets.browser.connection import CdpConnection, CdpError, ConnectionClosed, Params
from longshore.toolsets.browser.downloads import Downloads
from longshore.toolsets.browser.events import clean
from longshore.toolsets.browser.masking import Secrets
from longshore.toolsets.browser.page import ATTACH_SECONDS, CLOSED, POPUPS, Page, drop
from longshore.toolsets.browser.tab import Tab

MOST_TABS: Final = 20
_PAGES: Final = [{"type": "page"}]
POPUP_SECONDS: Final = 2.0
"""How long a popup may take to load before it is reported."""
ADOPT_SECONDS: Final = 3.0
"""A page of a user's that does not answer for so long is discarded or hangs."""
MOST_REFUSED: Final = 10
"""Popups that are closed during one call, before the page that opens them is given up."""


class BrowserEngine(Protocol):
    """A running browser: one that this server started, or an attachment to another one."""

    @property
    def connection(self) -> CdpConnection: ...
    async def end(self) -> None: ...


@final
class Attachment:
    """A running browser that this server did not start. It is detached from, never closed."""

    def __init__(self, connection: CdpConnection, is_local: bool = False) -> None:
        """`is_local`: whether it runs on this machine, and reads its files."""
        self.connection, self.is_local = connection, is_local

    async def end(self) -> None:
        self.connection.close()


Relaunch = Callable[[], Awaitable[BrowserEngine]]


class UserPage(Struct, frozen=True):
    """A page that the user of an attached browser has open, and that we are not attached to."""

    id: str
    """The id of its tab after the attachment."""
    url: str
    title: str


@final
class Browser:
    """Tabs in a context of their own. It has none until `open`."""

    def __init__(
        self,
        engine: BrowserEngine,
        relaunch: Relaunch | None = None,
        *,
        downloads: str | None = None,
        most_tabs: int = MOST_TABS,
        most_download_bytes: int = 100_000_000,
        isolated: bool = True,
        viewport: tuple[int, int] | None = None,
    ) -> None:
        """`relaunch` starts the browser again after it has ended. `downloads` is a folder that the browser's user can
        write to; without it downloads are refused. `isolated=False` uses the context of an attached browser's user.
        """
        self.engine, self._relaunch = engine, relaunch
        self._most_tabs, self._isolated, self._viewport = most_tabs, isolated, viewport
        self.tabs: dict[str, Tab] = {}
        self.current: Tab | None = None
        """The tab that was last opened or used."""
        self.downloads = Downloads(downloads, self._cancel_download, most_bytes=most_download_bytes, followed=isolated)
        self.secrets = Secrets()
        self.closed = False
        self._last_id = 0
        self._context: str | None = None
        self._stop: Callable[[], None] = _nothing
        self._starting = asyncio.Lock()
        self._popups: set[asyncio.Task[None]] = set()
        self._choosing = asyncio.Lock()
        self._creating = 0
        self._waiting: dict[str, str] = {}
        """Sessions of new pages that wait for us, by target: those that we are creating."""
        self._adopted: set[str] = set()
        """Targets that others opened: never closed by us."""
        self._user_pages: dict[str, str] = {}
        """The targets of the user's pages that were listed, by the id of their tab."""
        self._download_tabs: dict[str, Tab] = {}
        self._in_shared_windows: set[str] = set()
        """Ids of tabs that share a window with another one: popups and what opened them."""

    async def open(self) -> None:
        """Create its context. Raises ToolError for an unexpected answer of the engine."""
        connection = self._connection
        self._stop = connection.listen(None, self._take)
        self._context = None
        try:
            if self._isolated:
                made = await self._call("Target.createBrowserContext", {"disposeOnDetach": True})
                self._context = made["browserContextId"]
            await self._call("Target.setDiscoverTargets", {"discover": True, "filter": _PAGES})
            if self._is_ours:
                # A popup waits until we are attached. Otherwise no one could close a dialog that it opens at once.
                attaching = {"autoAttach": True, "waitForDebuggerOnStart": True, "flatten": True, "filter": _PAGES}
                await self._call("Target.setAutoAttach", attaching)
            if self._isolated:
                await self._call("Browser.setDownloadBehavior", self._download_behaviour())
        except (CdpError, ConnectionClosed, TimeoutError) as problem:
            raise ToolError(f"the browser can't be used: {_reason(problem)}") from None

    # -- tabs

    async def new_tab(self, url: str | None = None) -> Tab:
        """Open a tab, and load a URL in it."""
        self._check_room()
        tab = self._add_tab()
        try:
            tab.page = await self.open_page(tab)
            if url is not None:
                await tab.navigate(url)
        except BaseException:
            if tab.page is None:
                self.tabs.pop(tab.id, None)
            raise
        self.current = tab
        return tab

    def tab(self, id: str | None = None) -> Tab:
        """A tab by its id, without one the current tab. Raises ToolError that lists the ids."""
        tab = self.tabs.get(id) if id is not None else self.current
        if tab is None or tab.closed:
            raise ToolError(f"there is no tab {id or 'open'}; the tabs are: {', '.join(self.tabs) or 'none'}")
        self.current = tab
        return tab

    async def use_tab(self, id: str | None) -> Tab:
        """The tab of a call. Attaches to a page of the user; opens a tab if the call has no id and there is none."""
        async with self._choosing:  # concurrent first calls open one tab
            if id is None and self.current is None:
                return await self.new_tab()
            tab = self.tabs.get(id or "")
            if tab is not None and tab.page is not None and tab.page.ended.done() and self._is_adopted(tab):
                self._forget(tab, close=False)  # the page may have reappeared since
            if id in self._user_pages and id not in self.tabs:
                return await self._adopt(id, self._user_pages[id])
        return self.tab(id)

    async def user_pages(self) -> list[UserPage]:
        """The pages of an attached browser's user that we are not attached to, without those of the browser itself."""
        if self._isolated:
            return []
        try:
            contexts = (await self._call("Target.getBrowserContexts"))["browserContextIds"]
            found = (await self._call("Target.getTargets", {"filter": [{"type": "page"}]}))["targetInfos"]
        except (CdpError, ConnectionClosed, TimeoutError) as problem:
            raise ToolError(f"the browser does not list its pages ({_reason(problem)})") from None
        ids = {target: id for id, target in self._user_pages.items()}
        self._user_pages, free = {}, list[UserPage]()
        for info in found:
            target, url, tab = str(info["targetId"]), str(info["url"]), self._tab_of_target(info["targetId"])
            if tab is not None and self._is_adopted(tab):
                self._user_pages[tab.id] = target
            elif (
                tab is None
                and url.startswith(("http://", "https://", "about:blank"))
                and info.get("browserContextId") not in contexts  # another client's
            ):
                id = ids.get(target) or self._next_id()
                self._user_pages[id] = target
                free.append(UserPage(id, url, str(info.get("title", ""))))
        return free

    async def profile(self) -> str | None:
        """The id of the profile of an attached browser's user, unique to it. None if the browser has none."""
        try:
            reply = await self._call("Target.getBrowserContexts")
        except (CdpError, ConnectionClosed, TimeoutError) as problem:
            raise ToolError(f"the browser can't be used: {_reason(problem)}") from None
        return reply.get("defaultBrowserContextId")

    async def _adopt(self, id: str, target_id: str) -> Tab:
        """Attach to a page that a user has open. It stays open when the browser is closed."""
        self._check_room()
        tab = Tab(id, self)
        try:
            async with asyncio.timeout(ADOPT_SECONDS):
                attached = await Page.attach(
                    self._connection, target_id, tab.log, tab.dialogs, is_users=True, has_proxy=False
                )
            tab.page = self._follow(tab, attached)
        except (CdpError, ConnectionClosed, TimeoutError):
            raise ToolError(
                f"{id} can't be attached to: it is closed, discarded or hangs; browser_tabs lists the others"
            ) from None
        tab.seen_url = tab.page.frames.main.url
        self.tabs[id] = self.current = tab
        self._adopted.add(target_id)
        self._in_shared_windows.add(id)
        return tab

    async def close_tab(self, id: str) -> bool:
        """Close a tab. False: its page stays open, because we did not open it."""
        tab = self.tab(id)
        closes = not self._is_adopted(tab)
        self._forget(tab, close=True)
        return closes

    async def close(self) -> None:
        """Close all tabs opened by this server, and the browser if this server started it."""
        if self.closed:
            return
        self.closed = True
        for task in self._popups:
            task.cancel()
        for tab in list(self.tabs.values()):
            self._forget(tab, close=True)
        self._stop()
        if not self._connection.is_closed:
            try:
                if self._context is not None:
                    await self._call("Target.disposeBrowserContext", {"browserContextId": self._context})
                else:
                    await self._call("Browser.getVersion")  # the answer shows that the tabs' closing was received
            except (CdpError, ConnectionClosed, TimeoutError, ToolError):
                pass
        self.downloads.end()
        await self.engine.end()

    def _check_room(self) -> None:
        if len(self.tabs) >= self._most_tabs:
            raise ToolError(f"a browser has at most {self._most_tabs} tabs; close one of {', '.join(self.tabs)}")

    def _add_tab(self, opener: Tab | None = None) -> Tab:
        tab = Tab(self._next_id(), self, opener=opener)
        self.tabs[tab.id] = tab
        return tab

    def _next_id(self) -> str:
        self._last_id += 1
        return f"t{self._last_id}"

    def _forget(self, tab: Tab, close: bool) -> None:
        """Remove a tab."""
        tab.closed = True
        self.tabs.pop(tab.id, None)
        self._in_shared_windows.discard(tab.id)
        page = tab.page
        if page is not None:
            if close and not page.ended.done():
                page.close()
            page.end(CLOSED)
        if self.current is tab:
            self.current = next(reversed(self.tabs.values()), None)

    async def resize(self, width: int, height: int) -> None:
        """Change the size of all pages, including future ones."""
        self._viewport = (width, height)
        try:
            for page in [tab.page for tab in self.tabs.values()]:
                if page is not None and not page.ended.done():
                    await self._resize(page, width, height)
        except (CdpError, ConnectionClosed, TimeoutError) as problem:
            raise ToolError(f"the pages were not resized ({_reason(problem)}); try again") from None

    # -- what tabs need

    async def open_page(self, tab: Tab) -> Page:
        """A new page for a tab, in a new browser if the old one has ended."""
        await self._ensure_running()
        params: Params = {"url": "about:blank", "newWindow": True}
        if self._context is not None:
            params["browserContextId"] = self._context
        if self._viewport is not None:
            params["width"], params["height"] = self._viewport
        try:
            try:
                page = await self._open_page(tab, params)
            except TimeoutError:
                page = await self._open_page(tab, params)  # its renderer may have been killed meanwhile
        except TimeoutError:
            raise ToolError(f"the browser opened no tab within {2 * ATTACH_SECONDS:g} s; try again") from None
        except (CdpError, ConnectionClosed) as problem:
            raise ToolError(f"the browser opened no tab ({_reason(problem)}); try again") from None
        self._in_shared_windows.discard(tab.id)
        return page

    async def _open_page(self, tab: Tab, params: Params) -> Page:
        target_id, session = await self._create_target(params)
        page: Page | None = None
        try:
            page = await Page.attach(
                self._connection, target_id, tab.log, tab.dialogs, session, has_proxy=self._is_ours
            )
            if self._viewport is not None:
                await self._resize(page, *self._viewport)
        except TimeoutError:
            if page is not None:
                page.end("it could not be used")
            drop(self._connection.send("Target.closeTarget", {"targetId": target_id}))
            raise
        return self._follow(tab, page)

    async def _create_target(self, params: Params) -> tuple[str, str | None]:
        """A new page, and its session if the browser has attached us to it."""
        self._creating += 1
        try:
            target_id = str((await self._call("Target.createTarget", params))["targetId"])
        finally:
            self._creating -= 1
        return target_id, self._waiting.pop(target_id, None)

    async def wait_popups(self, opener: Tab) -> None:
        if self._popups:
            await asyncio.wait(tuple(self._popups), timeout=POPUP_SECONDS + 1)
        popups = [tab.page for tab in self.tabs.values() if tab.opener is opener and tab.page is not None]
        if popups:
            await asyncio.gather(*(page.wait_if_closing() for page in popups))

    def shares_window(self, tab: Tab) -> bool:
        return tab.id in self._in_shared_windows

    def replaces(self, tab: Tab) -> bool:
        return not self._is_adopted(tab) and not self.has_ended

    def _is_adopted(self, tab: Tab) -> bool:
        return tab.page is not None and tab.page.target_id in self._adopted

    async def _resize(self, page: Page, width: int, height: int) -> None:
        metrics = {"width": width, "height": height, "deviceScaleFactor": 0, "mobile": False}
        await self._connection.call("Emulation.setDeviceMetricsOverride", metrics, page.session, ATTACH_SECONDS)

    # -- the browser behind it

    @property
    def is_attached(self) -> bool:
        """Whether it is in the context of a user's own browser."""
        return not self._isolated

    @property
    def has_ended(self) -> bool:
        """Whether an attached browser has ended. A browser started by this server is restarted instead."""
        return self._relaunch is None and self._connection.is_closed

    @property
    def _is_ours(self) -> bool:
        """Whether this server started the browser. In other browsers it attaches to requested tabs only."""
        return not isinstance(self.engine, Attachment)

    @property
    def _connection(self) -> CdpConnection:
        return self.engine.connection

    async def _call(self, method: str, params: Params | None = None) -> Params:
        return await self._connection.call(method, params, seconds=ATTACH_SECONDS)

    async def _ensure_running(self) -> None:
        """Start the browser again if it has ended. Concurrent callers await the same start."""
        async with self._starting:
            if self.closed:
                raise ToolError("this browser is closed; open another")
            if not self._connection.is_closed:
                return
            self._stop()
            self.downloads.end()
            await self.engine.end()
            if self._relaunch is None:
                raise ToolError("the browser has ended; open another")
            self.engine = await self._relaunch()
            self._adopted.clear()
            await self.open()

    def _download_behaviour(self) -> Params:
        folder = self.downloads.folder
        saving = {"behavior": "deny"} if folder is None else {"behavior": "allowAndName", "downloadPath": folder}
        return {**saving, "browserContextId": self._context, "eventsEnabled": True}

    def _cancel_download(self, guid: str) -> None:
        context = {"browserContextId": self._context} if self._context else {}
        drop(self._connection.send("Browser.cancelDownload", {"guid": guid, **context}))

    # -- events

    def _take(self, method: str, params: Params) -> None:
        match method:
            case "Target.targetCreated" if not self._is_ours:
                self._target_created(params["targetInfo"], None)
            case "Target.attachedToTarget" if self._is_ours and params.get("waitingForDebugger"):
                self._attached(params["targetInfo"], str(params["sessionId"]))
            case "Target.targetDestroyed":
                self._target_destroyed(str(params["targetId"]))
                self._adopted.discard(str(params["targetId"]))
            case "Target.targetCrashed":
                tab = self._tab_of_target(str(params["targetId"]))
                if tab is not None and tab.page is not None:
                    tab.page.end("its process crashed or was killed")
            case "Browser.downloadWillBegin":
                self._download_began(params)
            case "Browser.downloadProgress":
                ended = self.downloads.progress(params)
                if ended is not None:
                    self._notify(self._download_tabs.pop(ended.guid, None), ended.line())
            case _:
                pass

    def _attached(self, info: Params, session: str) -> None:
        """The browser has attached us to a new page, which waits."""
        if info.get("browserContextId") != self._context or self._tab_of_target(info["targetId"]) is not None:
            drop(self._connection.send("Runtime.runIfWaitingForDebugger", {}, session))
            drop(self._connection.send("Target.detachFromTarget", {"sessionId": session}))
        elif self._creating and "openerId" not in info:
            self._waiting[info["targetId"]] = session
        else:
            self._target_created(info, session)

    def _target_created(self, info: Params, session: str | None) -> None:
        opener = self._tab_of_target(str(info.get("openerId", "")))
        if opener is None and session is not None:
            opener = self.current  # a link opened in a new tab by a key
        if info.get("type") != "page" or opener is None or self._tab_of_target(info["targetId"]) is not None:
            return
        if self._is_adopted(opener):
            if len(self.tabs) >= self._most_tabs:
                return
            self._adopted.add(info["targetId"])
        elif len(self.tabs) >= self._most_tabs:
            self._refuse_popup(opener, str(info["targetId"]), session)
            return
        tab = self._add_tab(opener)
        self._in_shared_windows |= {tab.id, opener.id}
        task = asyncio.get_running_loop().create_task(self._popup(tab, opener, info["targetId"], session))
        self._popups.add(task)
        task.add_done_callback(self._popups.discard)

    def _refuse_popup(self, opener: Tab, target_id: str, session: str | None) -> None:
        opener.log.notices.add(f"a popup was closed: a browser has at most {self._most_tabs} tabs")
        task = asyncio.get_running_loop().create_task(self._close_target(target_id, session))
        self._popups.add(task)
        task.add_done_callback(self._popups.discard)
        opener.refused_popups += 1
        if opener.refused_popups >= MOST_REFUSED and opener.page is not None and not opener.page.ended.done():
            # An order to end its script would take effect after hundreds more.
            opener.page.give_up(POPUPS)

    async def _close_target(self, target_id: str, session: str | None) -> None:
        """Close a popup. A paused popup is resumed first: the page that opened it is blocked until then."""
        try:
            if session is not None:
                await self._connection.call("Runtime.runIfWaitingForDebugger", {}, session, ATTACH_SECONDS)
            await self._call("Target.closeTarget", {"targetId": target_id})
        except (CdpError, ConnectionClosed, TimeoutError):
            pass  # it is closed

    def _target_destroyed(self, target_id: str) -> None:
        tab = self._tab_of_target(target_id)
        if tab is not None and tab.page is not None and not tab.page.ended.done():
            tab.page.end(CLOSED)

    def _follow(self, tab: Tab, page: Page) -> Page:
        """Remove the tab when this page is closed. A page that ended for another reason is replaced."""

        def ended(reason: asyncio.Future[str]) -> None:
            if tab.page is page and reason.result() == CLOSED and not tab.closed:
                self._forget(tab, close=False)
                self._notify(tab.opener, f"tab {tab.id} was closed")

        page.ended.add_done_callback(ended)
        return page

    async def _popup(self, tab: Tab, opener: Tab, target_id: str, session: str | None) -> None:
        """Attach to a page that another one opened, and report it when it has loaded."""
        try:
            page = tab.page = self._follow(
                tab,
                await Page.attach(
                    self._connection,
                    target_id,
                    tab.log,
                    tab.dialogs,
                    session,
                    is_users=target_id in self._adopted,
                    has_proxy=self._is_ours,
                ),
            )
            async with asyncio.timeout(POPUP_SECONDS):
                while "load" not in page.lifecycle.get(page.frames.main.loader, ()) and not page.ended.done():
                    page.changed.clear()
                    await page.changed.wait()
                await tab.look(page)
        except TimeoutError:
            if tab.page is None:
                drop(self._connection.send("Target.closeTarget", {"targetId": target_id}))
        except (CdpError, ConnectionClosed):
            pass
        if tab.page is None or tab.page.ended.done():
            tab.closed = True
            self.tabs.pop(tab.id, None)
            opener.log.notices.add("a new tab opened and closed again")
            return
        tab.seen_url = tab.page.frames.main.url or tab.seen_url
        opener.log.notices.add(f"opened tab {tab.id} ({clean(tab.url)})")
        for notice in tab.log.notices.take():
            opener.log.notices.add(f"{tab.id}: {notice}")

    def _tab_of_target(self, target_id: str) -> Tab | None:
        for tab in self.tabs.values():
            if tab.page is not None and tab.page.target_id == target_id:
                return tab
        return None

    def _download_began(self, params: Params) -> None:
        frame = str(params.get("frameId", ""))
        owner = next((tab for tab in self.tabs.values() if tab.page is not None and frame in tab.page.frames), None)
        if owner is None:
            return  # of another context
        download = self.downloads.begin(params)
        if download.state == "running":
            self._download_tabs[download.guid] = owner
        else:
            self._notify(owner, download.line())

    def _notify(self, tab: Tab | None, text: str) -> None:
        if tab is not None:
            tab.log.notices.add(text)


def _reason(problem: Exception) -> str:
    """The reason why a call to the browser failed. A TimeoutError has no text."""
    return clean(str(problem)) or "it did not answer in time"


def _nothing() -> None:
    """The initial function, which stops nothing."""
