"""The life of one process that serves HTTP: it begins, serves until it is told to stop, and ends in order.

Stopping takes no longer than the grace and a moment. Nothing new is accepted; calls in flight may finish; the others
are answered with an error, streams with their last event; then connections close. A watchdog sees to it that nothing
can hold the process any longer than that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from socket import socket
from ssl import SSLContext
from typing import Any, final

from longshore.server.dispatch import Engine
from longshore.telemetry.records import Level
from longshore.transports.http.app import HttpApp
from longshore.transports.serving.listener import Listener

LAST_WRITE_SECONDS = 0.3
"""After the grace, how long peers may take over what was written for them last."""
CLEAN_UP_SECONDS = 0.05
"""What a cancelled task gets to clean up after itself."""


@final
class Serving:
    """Serves an app on sockets, on a loop of its own."""

    def __init__(self, loop: asyncio.AbstractEventLoop, engine: Engine, app: HttpApp) -> None:
        self._loop = loop
        self._engine = engine
        self._app = app
        self._stopped = asyncio.Event()
        loop.set_exception_handler(self._report)

    def stop(self) -> bool:
        """Have it end. May be called by a signal handler; False: it does not run, so that only an exception ends it."""
        if not self._loop.is_running():
            return False
        self._loop.call_soon_threadsafe(self._stopped.set)
        return True

    async def run(
        self, sockets: list[socket], tls: SSLContext | None, *, lines: bool, ready: Callable[[], object]
    ) -> None:
        """Serve until `stop`; then end."""
        try:
            await self._app.start()
        except BaseException:
            await self._close()
            raise
        engine = self._engine
        listener = Listener(self._app, self._loop, engine.limits, engine.recorder, engine if lines else None)
        await listener.listen(sockets, tls)
        ready()
        await self._stopped.wait()
        await self._end(listener, self._app.config.http.grace)

    async def _end(self, listener: Listener, grace: float) -> None:
        listener.stop()
        try:
            async with asyncio.timeout(grace + LAST_WRITE_SECONDS):
                await self._app.shut(grace)
                await listener.drained()
        except TimeoutError:
            pass
        except Exception as problem:
            self._engine.recorder.problem("error", "the server did not shut down as it should", problem)
        tasks = listener.cut()
        if tasks:
            await asyncio.wait(tasks, timeout=CLEAN_UP_SECONDS)
        await self._close()

    async def _close(self) -> None:
        try:
            await asyncio.wait_for(self._app.close(), LAST_WRITE_SECONDS)
        except TimeoutError:
            text = f"the store was not closed within {LAST_WRITE_SECONDS:g} s, and the process ends without that"
            self._engine.recorder.problem("warning", text)
        except Exception as problem:
            self._engine.recorder.problem("warning", "the store did not close as it should", problem)

    def _report(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """What nobody caught. A peer that hangs up in the middle of something is nobody's fault."""
        problem = context.get("exception")
        level: Level = "debug" if isinstance(problem, OSError) else "error"
        self._engine.recorder.problem(level, str(context.get("message", "something failed")), problem)
