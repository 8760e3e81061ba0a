"""The processes of all principals: one for each session, and one in reserve, which saves a call the time of a start."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, nullcontext
from typing import Any, Final, final

from longshore.errors import ToolError
from longshore.registry.handles import HandleTable
from longshore.toolsets.code.options import CodeOptions
from longshore.toolsets.code.process import CodeProcess

RESERVE_SECONDS: Final = 300.0
"""The process in reserve is closed when no code has run for so long."""
SESSION_CHARACTERS: Final = 64
"""The longest name of a session."""

Roots = tuple[str, ...]


@final
class Processes:
    """Processes by session, and the limits of each owner, a principal's name. `start` starts one for some roots."""

    def __init__(self, options: CodeOptions, start: Callable[[Roots], Awaitable[CodeProcess]]) -> None:
        self._options, self._start = options, start
        self._table: HandleTable[CodeProcess] = HandleTable(
            "session", CodeProcess.close, quota=options.most_sessions, idle_seconds=options.idle_seconds
        )
        self._ids = dict[tuple[str, str], str]()
        """The id of each session by its owner and name."""
        self._running = Counter[str]()
        self._busy = set[tuple[str, str | None]]()
        """The sessions whose code is running, or is about to."""
        self._reserve: tuple[Roots, CodeProcess] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._tasks = set[asyncio.Task[None]]()
        self._closed = False

    @asynccontextmanager
    async def use(self, owner: str, session: str | None, roots: Roots) -> AsyncGenerator[tuple[CodeProcess, bool]]:
        """A process for one run of code, and whether it is new. It is closed afterwards, unless it is a session's.

        If the run raises, what its code does is not known, so its process is closed in any case. Raises ToolError.
        """
        if self._running[owner] >= self._options.most_running:
            raise ToolError(f"{self._running[owner]} pieces of your code are running, the most that may; wait for one")
        if session is not None and (owner, session) in self._busy:
            raise ToolError(f"session {session!r} is running code; wait for it, or use another session")
        self._running[owner] += 1
        self._busy.add((owner, session))
        keeps = False
        process: CodeProcess | None = None
        try:
            process, is_new = await self._find(owner, session, roots)
            with nullcontext() if session is None else self._table.use(owner, self._ids[owner, session]):
                yield process, is_new
            keeps = session is not None
        finally:
            self._running[owner] -= 1
            self._busy.discard((owner, session))
            if process is not None and not keeps:
                self._forget(owner, session, process)
            self._prepare(roots)

    def everything(self) -> list[tuple[str, str, CodeProcess]]:
        """The processes of all sessions, each with its owner and the session's name."""
        found = [(owner, name, self._table.all(owner).get(id)) for (owner, name), id in self._ids.items()]
        return [(owner, name, process) for owner, name, process in found if process is not None]

    async def close_all(self) -> None:
        """End all, and start none any more."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        reserve, self._reserve = self._reserve, None
        if reserve is not None:
            await reserve[1].close()
        await self._table.close_all()
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def _find(self, owner: str, session: str | None, roots: Roots) -> tuple[CodeProcess, bool]:
        if session is None:
            return await self._take(roots), True
        if not session or len(session) > SESSION_CHARACTERS:
            raise ToolError(f"session: give a name of 1 to {SESSION_CHARACTERS} characters")
        id = self._ids.get((owner, session))
        found = None if id is None else self._table.all(owner).get(id)
        if found is not None and found.is_alive:
            if found.roots != roots:
                raise ToolError(f"the folders have changed since session {session!r} began; use another session")
            return found, False
        if found is not None:
            self._forget(owner, session, found)
        self._table.check_quota(owner)
        process = await self._take(roots)
        self._ids[owner, session] = self._table.add(owner, process)
        return process, True

    async def _take(self, roots: Roots) -> CodeProcess:
        """The process in reserve, or a new one."""
        if self._closed:
            raise ToolError("no code can run: the server is stopping")
        reserve, self._reserve = self._reserve, None
        if reserve is not None:
            if reserve[0] == roots and reserve[1].is_alive:
                return reserve[1]
            self._begin(reserve[1].close())
        return await self._start(roots)

    def _forget(self, owner: str, session: str | None, process: CodeProcess) -> None:
        """Close a process, and its session."""
        id = None if session is None else self._ids.pop((owner, session), None)
        self._begin(process.close() if id is None or id not in self._table.all(owner) else self._remove(owner, id))

    async def _remove(self, owner: str, id: str) -> None:
        try:
            await self._table.remove(owner, id)
        except ToolError:  # it was idle, and is being closed
            pass

    def _prepare(self, roots: Roots) -> None:
        """Start a process in reserve, if there is none."""
        if self._closed:
            return
        loop = asyncio.get_running_loop()
        if self._timer is not None:
            self._timer.cancel()
        self._timer = loop.call_later(RESERVE_SECONDS, self._drop_reserve)
        if self._reserve is None:
            self._begin(self._fill(roots))

    async def _fill(self, roots: Roots) -> None:
        try:
            made = await self._start(roots)
        except ToolError:  # the next call says why
            return
        if self._closed or self._reserve is not None:
            await made.close()
        else:
            self._reserve = roots, made

    def _drop_reserve(self) -> None:
        reserve, self._reserve = self._reserve, None
        if reserve is not None:
            self._begin(reserve[1].close())

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
