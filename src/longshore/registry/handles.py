"""Things that stay open between calls, such as terminals and pages: by principal, with a quota and an idle limit."""

from __future__ import annotations

from asyncio import gather, get_running_loop, shield, wait
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Final, Generic, TypeVar, final

from longshore.errors import QuotaReached, ToolError

if TYPE_CHECKING:
    from asyncio import Task, TimerHandle

T = TypeVar("T")

QUOTA: Final = 8
"""Open at once for one principal: more than an agent keeps track of."""
IDLE_SECONDS: Final = 1800.0
"""Unused for so long, it is closed. A person may come back from lunch; a forgotten one is not held for a day."""
_SHOWN_CHARACTERS: Final = 40
"""Of an unknown id, in the error."""


@final
class _Open(Generic[T]):
    """One open thing."""

    __slots__ = ("used", "users", "value")

    def __init__(self, value: T, now: float) -> None:
        self.value, self.used, self.users = value, now, 0


@final
class _Owned(Generic[T]):
    """The open things of one principal. It outlives them for the idle time, so that no id soon means another thing."""

    __slots__ = ("last", "opened", "used")

    def __init__(self) -> None:
        self.opened: dict[str, _Open[T]] = {}
        self.last, self.used = 0, 0.0


@final
class HandleTable(Generic[T]):
    """The open things of one kind, each with a short id (`t1`) that only its owner can use.

    The owner is a principal's name (`ctx.principal.name`). The table closes what it was given: when it is removed, was
    not used for `idle_seconds`, exceeds the quota, or when `close_all` is called, which belongs in the toolset's
    `stop`. `close` may be `def` or `async def`; idle things are closed by a timer, in tasks of the table's own. All
    methods run on the event loop, so the tools that call them are `async def`.
    """

    def __init__(
        self,
        kind: str,
        close: Callable[[T], Awaitable[None] | None],
        *,
        quota: int = QUOTA,
        idle_seconds: float = IDLE_SECONDS,
        close_tool: str = "",
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """`kind` is one noun; its first letter begins the ids. `close_tool` is the tool that closes one, for errors."""
        self._kind, self._close, self._clock = kind, close, clock
        self._quota, self._idle_seconds, self._close_tool = quota, idle_seconds, close_tool
        self._owners: dict[str, _Owned[T]] = {}
        self._closing: set[Task[None]] = set()
        self._timer: TimerHandle | None = None
        self._closed = False

    def check_quota(self, owner: str) -> None:
        """Raise ToolError if the owner may not open another one. To be asked before one is opened at a cost."""
        self._drop_idle([owner])
        mine = self.all(owner)
        if self._closed:
            raise ToolError(f"no {self._kind} can be opened: the server is stopping")
        if len(mine) >= self._quota:
            how = f"close one with {self._close_tool}" if self._close_tool else "close one"
            raise QuotaReached(
                f"you have {len(mine)} {self._kind}s open, the most that you may have: {', '.join(mine)}; {how} first "
                f"(one that is not used for {self._idle_seconds / 60:g} min is closed)"
            )

    def add(self, owner: str, value: T) -> str:
        """Add an open thing, and return its id. Beyond the quota it is closed again, and ToolError raised."""
        try:
            self.check_quota(owner)
        except ToolError:
            self._close_later(value)
            raise
        mine = self._owners.setdefault(owner, _Owned())
        mine.last, mine.used = mine.last + 1, self._clock()
        id = f"{self._kind[0]}{mine.last}"
        mine.opened[id] = _Open(value, mine.used)
        self._set_timer()
        return id

    def get(self, owner: str, id: str) -> T:
        """The thing of this id, which counts as a use. Raises ToolError for an id that is not the owner's."""
        return self._find(owner, id).value

    @contextmanager
    def use(self, owner: str, id: str) -> Generator[T]:
        """`with table.use(owner, id) as thing:` does not let it become idle meanwhile."""
        found = self._find(owner, id)
        found.users += 1
        try:
            yield found.value
        finally:
            found.users -= 1
            found.used = self._clock()

    def all(self, owner: str) -> dict[str, T]:
        """The open things of this owner by id, the oldest first."""
        mine = self._owners.get(owner)
        return {} if mine is None else {id: each.value for id, each in mine.opened.items()}

    def everything(self) -> list[tuple[str, str, T]]:
        """The open things of all owners, each with its owner and id. Listing them does not count as a use."""
        return [(owner, id, each.value) for owner, mine in self._owners.items() for id, each in mine.opened.items()]

    async def remove(self, owner: str, id: str) -> None:
        """Close one, also while it is used. Raises ToolError for an id that is not the owner's."""
        value = self._find(owner, id).value
        del self._owners[owner].opened[id]
        await shield(self._begin(self._call_close(value)))  # a cancelled call must not leave it half closed

    async def expire(self) -> None:
        """Close all that are idle, and wait until they are closed."""
        self._drop_idle(list(self._owners))
        if self._closing:
            await wait(self._closing)

    async def close_all(self) -> None:
        """Close all, and accept none any more. Raises the first error of `close`, when all were called."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        values = [each.value for mine in self._owners.values() for each in mine.opened.values()]
        self._owners.clear()
        ended = await gather(*map(self._call_close, values), *self._closing, return_exceptions=True)
        for problem in ended:
            if problem is not None:
                raise problem

    def _find(self, owner: str, id: str) -> _Open[T]:
        self._drop_idle([owner])
        mine = self._owners.get(owner)
        found = None if mine is None else mine.opened.get(id)
        if mine is None or found is None:
            known = ", ".join(self.all(owner))
            raise ToolError(
                f"no {self._kind} {id[:_SHOWN_CHARACTERS]!r}; "
                + (f"yours are {known}" if known else f"you have no open {self._kind}")
            )
        mine.used = found.used = self._clock()
        return found

    def _drop_idle(self, owners: Iterable[str]) -> None:
        """Take out what is idle, and begin to close it."""
        now = self._clock()
        since = now - self._idle_seconds
        for owner in owners:
            mine = self._owners.get(owner)
            if mine is None:
                continue
            for id in [id for id, each in mine.opened.items() if not each.users and each.used <= since]:
                self._close_later(mine.opened.pop(id).value)
                mine.used = now
            if not mine.opened and mine.used <= since:
                del self._owners[owner]

    def _set_timer(self) -> None:
        """Look for idle handles when the first may be idle, and again later for a handle that is in use then."""
        if self._timer is None and self._owners:
            now = self._clock()
            times = [mine.used for mine in self._owners.values()]
            times += [each.used for mine in self._owners.values() for each in mine.opened.values()]
            due = (
                min((used for used in times if used > now - self._idle_seconds), default=now) + self._idle_seconds - now
            )
            self._timer = get_running_loop().call_later(due, self._look)

    def _look(self) -> None:
        self._timer = None
        self._drop_idle(list(self._owners))
        self._set_timer()

    def _close_later(self, value: T) -> None:
        self._begin(self._close_reporting(value))

    def _begin(self, closing: Coroutine[None, None, None]) -> Task[None]:
        task = get_running_loop().create_task(closing)
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
        return task

    async def _close_reporting(self, value: T) -> None:
        try:
            await self._call_close(value)
        except Exception as problem:  # whoever calls a method now has nothing to do with it
            text = f"a {self._kind} was not closed in order"
            get_running_loop().call_exception_handler({"message": text, "exception": problem})

    async def _call_close(self, value: T) -> None:
        closing = self._close(value)
        if closing is not None:
            await closing
