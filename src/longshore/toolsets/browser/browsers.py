"""The browsers of all principals: opened at their first use, chosen by id or as the latest or current one."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import wraps
from ipaddress import ip_address
from typing import Any, Concatenate, Final, Literal, ParamSpec, TypeVar, final

from msgspec import Struct

from longshore.addresses import is_loopback
from longshore.errors import ToolError
from longshore.registry.handles import HandleTable
from longshore.telemetry.recorder import Started, ignore_process
from longshore.toolsets.browser.answers import fence
from longshore.toolsets.browser.browser import Attachment, Browser
from longshore.toolsets.browser.events import clean
from longshore.toolsets.browser.launch import BrowserProcess, LaunchOptions, launch
from longshore.toolsets.browser.navigation import LoadFailed
from longshore.toolsets.browser.options import BrowserOptions
from longshore.toolsets.browser.origins import OriginRules, make_rules, origin_of_url
from longshore.toolsets.browser.proxy import OriginProxy, resolve_name
from longshore.toolsets.browser.tab import Arrival, Tab
from longshore.toolsets.browser.websocket import attach

WIDTH: Final = 1280
HEIGHT: Final = 800
MOST_PROFILES: Final = 100
"""Attached browsers that are remembered of a principal. Addresses where no real browser is could name more."""
_PROXY_STATUSES: Final = (403, 502)
"""The statuses with which the proxy answers for what it refuses and for what it can't reach."""

Strategy = Literal["latest", "current", "byId"]
P = ParamSpec("P")
T = TypeVar("T")


class Used(Struct, frozen=True):
    """The browser and tab of a call."""

    id: str
    browser: Browser
    tab: Tab
    notes: list[str]

    @property
    def place(self) -> str:
        return f"{self.id} {self.tab.id}"

    def say(self, text: str) -> str:
        """Append a text of the server after the notes."""
        return "\n".join([*self.notes, text])

    def fence(self, text: str) -> str:
        """Return a text of the page as the answer."""
        return fence(self.place, self.tab.url, self.tab.prepare_answer(text))


def _noted(
    start: Callable[Concatenate[Browsers, str, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Browsers, str, P], Coroutine[Any, Any, T]]:
    """Record the start of a browser of a principal, for `Browsers.wait_for_starts`."""

    @wraps(start)
    async def noted(self: Browsers, owner: str, /, *args: P.args, **kwargs: P.kwargs) -> T:
        started = asyncio.get_running_loop().create_future()
        self.starting.setdefault(owner, []).append(started)
        try:
            return await start(self, owner, *args, **kwargs)
        finally:
            self.starting[owner].remove(started)
            started.set_result(None)

    return noted


@final
class Browsers:
    """A table of browsers. All of them use one proxy, which enforces the origin rules."""

    def __init__(self, options: BrowserOptions, started: Started = ignore_process, server: Any = None) -> None:
        """`started` is the recorder's `process_started`; `server` has the configured roots."""
        self._server = server
        self._started = started
        self._options = options
        self.rules: OriginRules = make_rules(
            options.allowed_origins, options.blocked_origins, options.private_addresses
        )
        self._proxy: OriginProxy | None = None
        self._table: HandleTable[Browser] = HandleTable(
            "browser",
            Browser.close,
            quota=options.most_browsers,
            idle_seconds=options.idle_seconds,
            close_tool="browser_close",
        )
        self._current: dict[str, str] = {}
        self._opening: dict[str, asyncio.Lock] = {}
        self._profiles: dict[str, str] = {}
        """The principals of the browsers that were attached to, by the profile that each runs with."""
        self.starting: dict[str, list[asyncio.Future[None]]] = {}
        """Browsers that are being started or attached to, by principal: each is done when it is there, or failed."""

    async def close_all(self) -> None:
        try:
            await self._table.close_all()
        finally:
            if self._proxy is not None:
                await self._proxy.close()

    def all(self, owner: str) -> dict[str, Browser]:
        return self._table.all(owner)

    def everything(self) -> list[tuple[str, str, Browser]]:
        """The browsers of all principals, each with its principal and id."""
        return self._table.everything()

    def current(self, owner: str) -> str | None:
        """The browser that was used last; if that is closed, the latest."""
        mine, used = self._table.all(owner), self._current.get(owner)
        return used if used in mine else next(reversed(mine), None)

    async def wait_for_starts(self, owner: str, id: str | None = None) -> None:
        """Wait for browsers that calls before this one are opening, unless `id` names an open one.

        Calls that are piped into a server are sent together: those after a launch refer to the launched browser.
        """
        if self.starting.get(owner) and id not in self._table.all(owner):
            await asyncio.wait(self.starting[owner])

    @property
    def _roots(self) -> list[str]:
        return [] if self._server is None else self._server.config.server.roots

    @_noted
    async def open(
        self, owner: str, *, headless: bool | None = None, width: int | None = None, height: int | None = None
    ) -> tuple[str, list[str]]:
        """Start a browser. Returns its id and notices for the caller."""
        self._table.check_quota(owner)
        shown = self._options.headless if headless is None else headless
        size = (width or WIDTH, height or HEIGHT)
        options = LaunchOptions(self._options.path or None, shown, await self._proxy_url(), *size, self._roots)
        process = await self._launch(options, owner)

        async def relaunch() -> BrowserProcess:
            process = await self._launch(options, owner)
            browser.downloads.folder = _make_folder(process, "downloads")
            return process

        browser = Browser(
            process,
            relaunch,
            downloads=_make_folder(process, "downloads"),
            most_tabs=self._options.most_tabs,
            most_download_bytes=self._options.max_download_size,
            viewport=size,
        )
        try:
            await browser.open()
        except BaseException:
            await process.end()
            raise
        return self._add(owner, browser), [process.notice] if process.notice else []

    async def _launch(self, options: LaunchOptions, owner: str) -> BrowserProcess:
        process = await launch(options)
        ended = self._started("browser", process.pid, owner)
        process.when_ended(lambda: ended(None))
        return process

    @_noted
    async def attach(self, owner: str, address: str, viewport: tuple[int, int] | None) -> str:
        """Attach to a running browser at http://HOST:PORT or ws://…, or `auto`. Returns its id."""
        self._table.check_quota(owner)
        if not self._options.attach and address != self._options.connect:
            raise ToolError("attaching is switched off here (toolsets.browser.attach); leave connect out")
        if self.rules != OriginRules():
            raise ToolError(
                "this server has origin rules (toolsets.browser.allowed_origins, blocked_origins, private_addresses), "
                "which it can't enforce in a browser that somebody else started; leave connect out"
            )
        is_local, checked = (True, None) if address == "auto" else await self._check_address(address)
        connection = await attach(address, checked)
        engine = Attachment(connection, is_local)
        browser = Browser(engine, most_tabs=self._options.most_tabs, isolated=False, viewport=viewport)
        try:
            await browser.open()
            self._claim(await browser.profile() or address, owner)
        except BaseException:
            connection.close()
            raise
        return self._add(owner, browser)

    def _claim(self, profile: str, owner: str) -> None:
        """Record the principal of an attached browser.

        Raises ToolError if another principal has, or had, logins in it.
        """
        if self._profiles.setdefault(profile, owner) != owner:
            raise ToolError(
                "another principal has attached to this browser, which is theirs until it ends; "
                "browser_open without connect opens one of yours"
            )
        mine = [each for each, principal in self._profiles.items() if principal == owner]
        if len(mine) > MOST_PROFILES:
            del self._profiles[mine[0]]

    async def _check_address(self, address: str) -> tuple[bool, list[str]]:
        """Whether a browser is on this machine, and its IP addresses. Raises ToolError for a metadata service."""
        origin = origin_of_url(address)
        if origin is None:
            return False, []  # `attach` refuses it
        problem = self.rules.origin_problem(origin)
        found = list[str]()
        if problem is None:
            try:
                found += await resolve_name(origin.host, origin.port)
            except OSError:
                pass  # `attach` reports it
        for each in found:
            problem = problem or self.rules.address_problem(origin, ip_address(each))
        if problem is not None:
            raise ToolError(f"{problem}; nothing was requested")
        return is_loopback(origin.host), found

    @asynccontextmanager
    async def use(
        self, owner: str, id: str | None, strategy: Strategy | None, tab_id: str | None, *, new_tab: bool = False
    ) -> AsyncGenerator[Used]:
        """The browser and tab of a call; both are opened if there is none, the tab with `new_tab` always.

        Further information for the caller is in the notes, and is added to a ToolError raised meanwhile.
        """
        chosen, notes = await self._choose(owner, id, strategy)
        self._current[owner] = chosen
        used: Used | None = None
        try:
            with self._table.use(owner, chosen) as browser:
                if browser.has_ended:
                    await self.close(owner, chosen)
                    raise ToolError(
                        f"the browser that {chosen} was attached to has ended; attach to another with browser_open, "
                        "or the next call uses one of ours"
                    )
                tab = await (browser.new_tab() if new_tab else browser.use_tab(tab_id))
                used = Used(chosen, browser, tab, notes)
                yield used
        except ToolError as problem:
            text = "; ".join([*notes, str(problem)])
            shown = text if used is None else used.tab.prepare_answer(text)
            if shown == str(problem):
                raise
            raise ToolError(shown) from None

    async def find(self, owner: str, id: str | None, strategy: Strategy | None) -> tuple[str, list[str]]:
        """The id of an open browser, and notes for the caller. Raises ToolError if there is none."""
        await self.wait_for_starts(owner, id)
        found, notes = self._resolve(owner, id, strategy)
        if found is None:
            raise ToolError("no browser is open")
        return found, notes

    async def close(self, owner: str, id: str) -> None:
        await self._table.remove(owner, id)

    def upload_folder(self, browser: Browser) -> str | None:
        """A folder that a browser of this server can read; None for an attached one, which reads the files in place."""
        engine = browser.engine
        if isinstance(engine, BrowserProcess):
            return _make_folder(engine, "uploads")
        if isinstance(engine, Attachment) and engine.is_local:
            return None
        raise ToolError("this browser runs on another machine, which has not the files of this one")

    async def navigate(self, tab: Tab, go: Awaitable[Arrival]) -> Arrival:
        """Await a navigation of a tab. Raises ToolError with the proxy's reason if it was refused or led nowhere."""
        try:
            arrival = await go
        except LoadFailed as problem:
            documents = [each for each in tab.log.network if each.kind == "Document"]
            raise (self._proxy_problem(documents[-1].url) if documents else None) or problem from None
        if arrival.status in _PROXY_STATUSES and (refusal := self._proxy_problem(arrival.url)):
            raise refusal
        return arrival

    def _proxy_problem(self, url: str) -> ToolError | None:
        reason = None if self._proxy is None else self._proxy.reason_for(url)
        return None if reason is None else ToolError(f"{clean(url)} can't be loaded: {reason}")

    async def _choose(self, owner: str, id: str | None, strategy: Strategy | None) -> tuple[str, list[str]]:
        await self.wait_for_starts(owner, id)
        async with self._opening.setdefault(owner, asyncio.Lock()):  # concurrent first calls open one browser
            found, notes = self._resolve(owner, id, strategy)
            if found is not None:
                return found, notes
            if self._options.connect:
                return await self.attach(owner, self._options.connect, None), []
            return await self.open(owner)

    def _resolve(self, owner: str, id: str | None, strategy: Strategy | None) -> tuple[str | None, list[str]]:
        mine = self._table.all(owner)
        if id in mine:
            return id, []
        if strategy == "byId":
            valid = f"yours are {', '.join(mine)}" if mine else "you have none open"
            wanted = "target byId needs a browserId" if id is None else f"no browser {id[:40]!r}"
            raise ToolError(f"{wanted}; {valid}")
        found = self.current(owner) if strategy == "current" else next(reversed(mine), None)
        unknown = [f"no browser {id[:40]!r}, so {found} was used"] if id is not None and found is not None else []
        return found, unknown

    def _add(self, owner: str, browser: Browser) -> str:
        id = self._table.add(owner, browser)
        self._current[owner] = id
        return id

    async def _proxy_url(self) -> str:
        if self._proxy is None:
            proxy = OriginProxy(self.rules)
            await proxy.open()
            self._proxy = self._proxy or proxy
        return self._proxy.url


def _make_folder(process: BrowserProcess, name: str) -> str:
    """A folder within the browser's own, which its user can write to and which is deleted with it."""
    path = os.path.join(process.folder, name)
    os.makedirs(path, mode=0o700, exist_ok=True)
    owner = os.stat(process.folder)
    os.chown(path, owner.st_uid, owner.st_gid)
    return path
