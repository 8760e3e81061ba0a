"""The lifespan of a server: state that each process opens once, before the first call, and closes when it ends."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from math import inf
from typing import TYPE_CHECKING, Any, final

from longshore.errors import LifespanFailed, RegistrationError
from longshore.registry.source_location import caller, refuse

if TYPE_CHECKING:
    from asyncio import Event, Future, Task

Manager = AbstractAsyncContextManager[Any] | AbstractContextManager[Any]
Report = Callable[..., None]


@final
class Lifespan:
    """Opens and closes what an author's context manager yields, once in each process.

    One task enters and leaves the manager, so it may hold task groups and timeouts. A plain context manager is entered
    and left on threads. `changed` is called when the state has opened or closed.
    """

    def __init__(
        self, make: Callable[..., Manager], server: object, seconds: float | None, report: Report, changed: Report
    ) -> None:
        """`seconds` is how long the end may take; None: a share of `limits.stop_seconds`."""
        if not callable(make):
            raise RegistrationError(caller(), f"Server(lifespan={make!r:.60}) can't be called", "lifespan=open_state")
        if seconds is not None and not 0 < seconds < inf:
            what = f"lifespan_seconds={seconds!r} is no number of seconds"
            raise RegistrationError(caller(), what, "lifespan_seconds=5.0")
        self.seconds = seconds
        self.is_open = False
        self.value: Any = None
        self._make, self._server, self._report, self._changed = make, server, report, changed
        self._task: Task[None] | None = None
        self._opened: Future[None] | None = None
        self._closing: Event | None = None

    async def open(self) -> None:
        """Open the state. Concurrent callers await the same future; after a failure the next caller tries again.

        Raises LifespanFailed.
        """
        from asyncio import Event, get_running_loop, shield

        loop = get_running_loop()
        if self._task is None or self._opened is None or self._task.get_loop() is not loop:
            self._opened, self._closing = loop.create_future(), Event()
            self._task = loop.create_task(self._live(self._opened, self._closing))
        await shield(self._opened)

    @property
    def needs_closing(self) -> bool:
        return self._task is not None and not self._task.done()

    async def close(self, seconds: float) -> None:
        """Close the state if it is open. A manager that takes longer than its time is cancelled."""
        from asyncio import get_running_loop, wait

        task, self._task = self._task, None
        if task is None or self._closing is None or task.get_loop() is not get_running_loop():
            return
        self._closing.set()
        most = self.seconds or seconds
        _, late = await wait([task], timeout=most)
        if late:
            self._report("warning", f"the lifespan was not closed within {most:.1f} s, so it ended as it was")
            task.cancel()
            await wait([task], timeout=seconds)

    async def _live(self, opened: Future[None], closing: Event) -> None:
        from asyncio import CancelledError

        try:
            async with as_async(self._manager()) as value:
                self.value, self.is_open = value, True
                self._changed()
                opened.set_result(None)
                await closing.wait()
        except BaseException as problem:  # also sys.exit(): whoever waits for the state is answered
            if not opened.done():
                self._fail(opened, problem)
            elif not isinstance(problem, CancelledError):
                self._report("error", "the lifespan did not close in order", problem)
            if isinstance(problem, KeyboardInterrupt):
                raise
        finally:
            if self.is_open and self._opened is opened:  # it may have been opened again meanwhile
                self.value, self.is_open = None, False
                self._changed()

    def _manager(self) -> Manager:
        made: Any = self._make(self._server)
        if not isinstance(made, (AbstractAsyncContextManager, AbstractContextManager)):
            fix = "put @asynccontextmanager of contextlib above it"
            refuse(self._make, f"a lifespan returns a context manager, and this is a {type(made).__name__}", fix)
        return made  # pyright: ignore[reportUnknownVariableType]

    def _fail(self, opened: Future[None], problem: BaseException) -> None:
        from longshore.redaction.texts import remove_secrets

        if self._opened is opened:
            self._task = None
        self._report("error", "the lifespan did not open", problem)
        shown, _ = remove_secrets(str(problem))
        failed = LifespanFailed(f"the lifespan did not open: {type(problem).__name__}: {shown}")
        opened.set_exception(failed)
        opened.exception()  # marks it as retrieved: every caller may have been cancelled


def as_async(manager: Manager) -> AbstractAsyncContextManager[Any]:
    """A context manager as an async one: the methods of a plain one run on threads."""
    from contextlib import asynccontextmanager

    if isinstance(manager, AbstractAsyncContextManager):
        return manager  # pyright: ignore[reportUnknownVariableType]
    plain = manager

    @asynccontextmanager
    async def threaded() -> AsyncGenerator[Any]:
        from longshore.registry.toolset import begin_call

        values: list[Any] = []

        def enter() -> None:
            values.append(plain.__enter__())

        def leave() -> None:
            plain.__exit__(None, None, None)

        await begin_call(enter)
        try:
            yield values[0]
        finally:
            await begin_call(leave)

    return threaded()
