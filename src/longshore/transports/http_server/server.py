"""`serve --http`: from the configuration to a process that serves, or to one that looks after workers which do."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from contextlib import ExitStack, suppress
from socket import socket
from ssl import SSLContext
from typing import Any, final

from msgspec import Struct
from msgspec.structs import replace

from longshore.config import Config
from longshore.sandbox.descendants import adopt
from longshore.server.engine import Engine
from longshore.telemetry.records import Level
from longshore.transports.http.app import HttpApp
from longshore.transports.http.factory import make_app
from longshore.transports.http_server.endpoint import Endpoint, check, choose_token, greet, open_site, settle
from longshore.transports.http_server.listener import Listener
from longshore.transports.http_server.supervisor import READY, Orders, Supervisor, take_orders
from longshore.transports.http_server.tls import make_context
from longshore.transports.process import Process

SPARE_FILES = 512
"""Open files beside the connections: databases, and what tools have open."""
WORKER_SECONDS = 0.8
"""From the end of the grace to a certain end of a process that serves: under a second, with room for last writes."""
SUPERVISOR_SECONDS = 1.2
"""The same of a supervisor, which waits for its workers in that time: so theirs must be over before."""


class Served(Struct, frozen=True):
    """The server, as far as it matters here."""

    name: str
    engine: Engine
    config: Config
    asks_token: bool
    """Whether it asks for a token where nobody has configured one."""
    settle: Callable[[bool], object]
    """Tells what is wrong at the start, given whether that is told already: by who looks after this process."""
    watch: Callable[[Any], object]
    """Looks after the configuration files, given a loop."""
    close: Callable[[Process], object]
    """Closes the toolsets and ends child processes."""


def serve_http(served: Served) -> None:
    """Serve until a signal. Raises ConfigError for what can't be done, and Stopped with the signal's exit code."""
    given = take_orders()
    served.settle(given is not None)
    with ExitStack() as held:
        if given is not None:
            orders, line = given
            held.enter_context(line)
            sockets = [held.enter_context(socket(fileno=fd)) for fd in orders.sockets]
            _serve(served, orders.site, sockets, line)
            return
        config = served.config
        make_context(config.http)
        token, asks = choose_token(config, served.asks_token)
        check(config, asks)
        site, sockets = open_site(config, token, asks)
        for each in sockets:
            held.enter_context(each)
        if config.http.workers > 1:
            _supervise(served, site, sockets)
        else:
            _serve(served, site, sockets, None)


def _serve(served: Served, site: Endpoint, sockets: list[socket], line: socket | None) -> None:
    """Be the process, or one of the processes, that serves. `line` leads to the supervisor."""
    import uvloop

    engine, config = served.engine, settle(served.config, site)
    _allow_files(engine.limits.connections + SPARE_FILES)
    process = _process(engine, config.http.grace + WORKER_SECONDS)
    loop = uvloop.new_event_loop()
    asyncio.set_event_loop(loop)
    app = make_app(engine, config, token=site.token.text if site.token else None)
    serving = Serving(loop, engine, app)
    process.end_by(serving.stop)
    served.watch(loop)

    def ready() -> None:
        _settle_memory()
        if line is None:
            greet(served.name, config, site, 1)
        else:
            with suppress(OSError):  # the supervisor is gone, or ends; the line says so to its reader
                line.send(READY)

    if line is None:
        adopt()
    else:
        process.watch_family()
        loop.add_reader(line, _end_with_supervisor, line, loop, process, serving)
    try:
        loop.run_until_complete(serving.run(sockets, make_context(config.http), lines=config.http.lines, ready=ready))
    finally:
        served.close(process)
    process.leave()


def _end_with_supervisor(line: socket, loop: asyncio.AbstractEventLoop, process: Process, serving: Serving) -> None:
    """The line has closed: the supervisor wants us to stop, or is gone."""
    loop.remove_reader(line)
    process.end_unsignalled()
    serving.stop()


def _supervise(served: Served, site: Endpoint, sockets: list[socket]) -> None:
    config = settle(served.config, site)
    count, grace = config.http.workers, config.http.grace
    process = _process(served.engine, grace + SUPERVISOR_SECONDS)
    adopt()
    orders = Orders(site, [each.fileno() for each in sockets])
    supervisor = Supervisor(count, orders, served.engine.recorder, lambda: greet(served.name, config, site, count))
    process.end_by(supervisor.stop)
    try:
        supervisor.run(grace + (WORKER_SECONDS + SUPERVISOR_SECONDS) / 2)
    finally:
        if site.temp_dir:
            shutil.rmtree(site.temp_dir, ignore_errors=True)
    process.leave()


def _process(engine: Engine, seconds: float) -> Process:
    """Take over the signals, with a watchdog that bites after so long."""
    process = Process(replace(engine.limits, stop_seconds=seconds))
    process.install()
    return process


def _settle_memory() -> None:
    """What is there before the first request stays: the collector need not look at all of it again and again.

    It did so in the middle of requests, for ten milliseconds at a time.
    """
    import gc

    gc.collect()
    gc.freeze()


def _allow_files(count: int) -> None:
    """Have the system allow as many open files as there may be connections, as far as it lets us."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = count if hard == resource.RLIM_INFINITY else min(count, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


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
