"""`serve --http`: from the configuration to a process that serves, or to one that looks after workers which do."""

from __future__ import annotations

import asyncio
import shutil
import socket
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from longshore.config import Config
from longshore.sandbox.descendants import adopt
from longshore.server.dispatch import Engine
from longshore.transports.http.making import make_app
from longshore.transports.http.memory import give_back
from longshore.transports.process import Process
from longshore.transports.serving.control import READY, Orders, take_orders
from longshore.transports.serving.greeting import greet
from longshore.transports.serving.serving import Serving
from longshore.transports.serving.site import Site, check, choose_token, open_site, settle
from longshore.transports.serving.supervision import Supervisor
from longshore.transports.serving.tls import make_context

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
            sockets = [held.enter_context(socket.socket(fileno=fd)) for fd in orders.sockets]
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


def _serve(served: Served, site: Site, sockets: list[socket.socket], line: socket.socket | None) -> None:
    """Be the process, or one of the processes, that serves. `line` leads to the supervisor."""
    import uvloop

    engine, config = served.engine, settle(served.config, site)
    _allow_files(engine.limits.connections + SPARE_FILES)
    process = _process(engine, config.http.grace + WORKER_SECONDS)
    loop = uvloop.new_event_loop()
    asyncio.set_event_loop(loop)
    app = make_app(engine, config, token=site.token.text if site.token else None)
    serving = Serving(loop, engine, app)
    process.end_soon = serving.stop
    served.watch(loop)

    def ready() -> None:
        _settle_memory()
        app.sessions.give_back = give_back
        if line is None:
            greet(served.name, config, site, 1)
        else:
            with suppress(OSError):  # the supervisor is gone, or ends; the line says so to its reader
                line.send(READY)

    if line is None:
        adopt()
    else:
        process.settle_in()
        loop.add_reader(line, _end_with_supervisor, line, loop, process, serving)
    try:
        loop.run_until_complete(serving.run(sockets, make_context(config.http), lines=config.http.lines, ready=ready))
    finally:
        served.close(process)
    process.leave()


def _end_with_supervisor(
    line: socket.socket, loop: asyncio.AbstractEventLoop, process: Process, serving: Serving
) -> None:
    """The line has closed: the supervisor wants us to stop, or is gone."""
    loop.remove_reader(line)
    process.end_untold()
    serving.stop()


def _supervise(served: Served, site: Site, sockets: list[socket.socket]) -> None:
    config = settle(served.config, site)
    count, grace = config.http.workers, config.http.grace
    process = _process(served.engine, grace + SUPERVISOR_SECONDS)
    adopt()
    orders = Orders(site, [each.fileno() for each in sockets])
    supervisor = Supervisor(count, orders, served.engine.recorder, lambda: greet(served.name, config, site, count))
    process.end_soon = supervisor.stop
    try:
        supervisor.run(grace + (WORKER_SECONDS + SUPERVISOR_SECONDS) / 2)
    finally:
        if site.passing:
            shutil.rmtree(site.passing, ignore_errors=True)
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
