"""`serve --http`: one process that serves, or a supervisor of several.

Stopping takes no longer than the grace and a moment. Nothing new is accepted; calls in flight may finish; the others
are answered with an error, streams with their last event; then connections close. A watchdog ends a process that does
not end by then.
"""

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
from longshore.transports.http_server.endpoint import (
    Endpoint,
    apply_endpoint,
    check,
    choose_token,
    greet,
    open_endpoint,
)
from longshore.transports.http_server.listener import Listener
from longshore.transports.http_server.supervisor import READY, Supervisor, WorkerConfig, read_worker_config
from longshore.transports.http_server.tls import make_context
from longshore.transports.process import Process

SPARE_FILES = 512
"""Open files beside the connections: databases, and what tools have open."""
WORKER_SECONDS = 0.8
"""From the end of the grace to a certain end of a process that serves: under a second, with room for last writes."""
SUPERVISOR_SECONDS = 1.2
"""The same of a supervisor, which waits for its workers in that time: so theirs must be over before."""


class Served(Struct, frozen=True):
    """What `serve --http` needs of a server."""

    name: str
    engine: Engine
    config: Config
    makes_token: bool
    """Whether it makes a token for itself if none is configured."""
    report: Callable[[bool], object]
    """Reports problems found at the start; True: the supervisor has reported them."""
    watch: Callable[[Any], object]
    """Watches the configuration files, on this loop."""
    close: Callable[[Process], object]
    """Closes the toolsets and ends child processes."""


def serve_http(served: Served) -> None:
    """Serve until a signal. Raises ConfigError, and Stopped with the signal's exit code."""
    given = read_worker_config()
    served.report(given is not None)
    with ExitStack() as held:
        if given is not None:
            worker, control = given
            held.enter_context(control)
            sockets = [held.enter_context(socket(fileno=fd)) for fd in worker.sockets]
            _serve(served, worker.endpoint, sockets, control)
            return
        config = served.config
        make_context(config.http)
        token, requires_token = choose_token(config, served.makes_token)
        check(config, requires_token)
        endpoint, sockets = open_endpoint(config, token, requires_token)
        for each in sockets:
            held.enter_context(each)
        if config.http.workers > 1:
            _supervise(served, endpoint, sockets)
        else:
            _serve(served, endpoint, sockets, None)


def _serve(served: Served, endpoint: Endpoint, sockets: list[socket], control: socket | None) -> None:
    """Serve in this process. A worker has a control socket to its supervisor."""
    import uvloop

    engine, config = served.engine, apply_endpoint(served.config, endpoint)
    _allow_files(engine.limits.connections + SPARE_FILES)
    process = _process(engine, config.http.grace + WORKER_SECONDS)
    loop = uvloop.new_event_loop()
    asyncio.set_event_loop(loop)
    app = HttpApp(engine, config, token=endpoint.token.text if endpoint.token else None)
    server = HttpServer(loop, engine, app)
    process.end_by(server.stop)
    served.watch(loop)

    def ready() -> None:
        _freeze_memory()
        if control is None:
            greet(served.name, config, endpoint, 1)
        else:
            with suppress(OSError):  # the supervisor has ended, which closes the control socket
                control.send(READY)

    if control is None:
        adopt()
    else:
        process.watch_family()
        loop.add_reader(control, _end_with_supervisor, control, loop, process, server)
    try:
        loop.run_until_complete(server.run(sockets, make_context(config.http), lines=config.http.lines, ready=ready))
    finally:
        served.close(process)
    process.leave()


def _end_with_supervisor(
    control: socket, loop: asyncio.AbstractEventLoop, process: Process, server: HttpServer
) -> None:
    """Stop: the supervisor has closed the control socket, or has ended."""
    loop.remove_reader(control)
    process.end_unsignalled()
    server.stop()


def _supervise(served: Served, endpoint: Endpoint, sockets: list[socket]) -> None:
    config = apply_endpoint(served.config, endpoint)
    count, grace = config.http.workers, config.http.grace
    process = _process(served.engine, grace + SUPERVISOR_SECONDS)
    adopt()
    worker = WorkerConfig(endpoint, [each.fileno() for each in sockets])
    supervisor = Supervisor(count, worker, served.engine.recorder, lambda: greet(served.name, config, endpoint, count))
    process.end_by(supervisor.stop)
    try:
        supervisor.run(grace + (WORKER_SECONDS + SUPERVISOR_SECONDS) / 2)
    finally:
        if endpoint.temp_dir:
            shutil.rmtree(endpoint.temp_dir, ignore_errors=True)
    process.leave()


def _process(engine: Engine, seconds: float) -> Process:
    """Handle the signals, with a watchdog that ends the process after so long."""
    process = Process(replace(engine.limits, stop_seconds=seconds))
    process.install()
    return process


def _freeze_memory() -> None:
    """Exempt all objects made so far from garbage collection, whose passes took 10 ms in the middle of requests."""
    import gc

    gc.collect()
    gc.freeze()


def _allow_files(count: int) -> None:
    """Raise the limit of open files to the number of connections, as far as the system allows."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = count if hard == resource.RLIM_INFINITY else min(count, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


LAST_WRITE_SECONDS = 0.3
"""After the grace, how long peers may take to read their last answers."""
CLEAN_UP_SECONDS = 0.05
"""How long a cancelled task may take to clean up."""


@final
class HttpServer:
    """Serves an app on sockets, on a loop of its own."""

    def __init__(self, loop: asyncio.AbstractEventLoop, engine: Engine, app: HttpApp) -> None:
        self._loop = loop
        self._engine = engine
        self._app = app
        self._stopped = asyncio.Event()
        loop.set_exception_handler(self._report)

    def stop(self) -> bool:
        """Stop serving. Signal handlers call it. False: the loop does not run, so only an exception ends it."""
        if not self._loop.is_running():
            return False
        self._loop.call_soon_threadsafe(self._stopped.set)
        return True

    async def run(
        self, sockets: list[socket], tls: SSLContext | None, *, lines: bool, ready: Callable[[], object]
    ) -> None:
        """Serve until `stop`."""
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
            self._engine.recorder.problem("error", "the server did not shut down in order", problem)
        tasks = listener.cut()
        if tasks:
            await asyncio.wait(tasks, timeout=CLEAN_UP_SECONDS)
        await self._close()

    async def _close(self) -> None:
        try:
            await asyncio.wait_for(self._app.close(), LAST_WRITE_SECONDS)
        except TimeoutError:
            text = f"the store was not closed within {LAST_WRITE_SECONDS:g} s, and the process ends without it"
            self._engine.recorder.problem("warning", text)
        except Exception as problem:
            self._engine.recorder.problem("warning", "the store could not be closed", problem)

    def _report(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Log an exception that the loop caught. A connection that broke is no error."""
        problem = context.get("exception")
        level: Level = "debug" if isinstance(problem, OSError) else "error"
        self._engine.recorder.problem(level, str(context.get("message", "something failed")), problem)
