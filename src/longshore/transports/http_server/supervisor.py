"""`serve --http`: one process that serves, or a supervisor of several workers.

Stopping takes little longer than the grace and the `stop_seconds` of the toolsets. Nothing new is accepted; calls in
flight may finish; the others are answered with an error, streams with their last event; then connections close. A
watchdog ends a process that does not end by then.

A worker is the same command, started again, on sockets that the supervisor has bound. It is not forked: a fork of a
process with threads inherits their locks. A worker that ends is replaced, after a longer pause each time that it ends
at once, up to a limit.
"""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import select
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack, suppress
from ssl import SSLContext
from time import monotonic
from typing import Any, final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from longshore.auth.verifiers import TokenVerifier
from longshore.backoff import Backoff
from longshore.config import Config
from longshore.errors import LongshoreError
from longshore.sandbox.descendants import adopt, children, end_all
from longshore.server.engine import Engine
from longshore.telemetry.recorder import Recorder
from longshore.telemetry.records import Level
from longshore.transports.http.app import HttpApp
from longshore.transports.http.parts import PartFactory
from longshore.transports.http_server.endpoint import Endpoint, greet, make_context, open_endpoint
from longshore.transports.http_server.listener import Listener
from longshore.transports.process import Process

SPARE_FILES = 512
"""Open files beside the connections: databases, and what tools have open."""
WORKER_SECONDS = 0.8
"""From the end of the grace to a certain end of a process that serves: under a second, with room for last writes."""
SUPERVISOR_SECONDS = 1.2
"""The same of a supervisor, which waits for its workers in that time: so theirs must be over before."""


class Served(Struct, frozen=True):
    """The parts of a server that `serve --http` uses."""

    name: str
    engine: Engine
    config: Config
    makes_token: bool
    """Whether it makes a token for itself if none is configured."""
    console: bool
    """Whether the console is among the parts."""
    verifier: TokenVerifier | None
    """The author's own check of tokens."""
    parts: Callable[[], list[PartFactory]]
    """Loads what is served beside MCP."""
    report: Callable[[bool], object]
    """Reports problems found at the start; True: the supervisor has reported them."""
    watch: Callable[[Any], object]
    """Watches the configuration files, on this loop."""
    close: Callable[[Process], object]
    """Closes the toolsets and ends child processes."""
    extra_seconds: Callable[..., float]
    """How much longer that may take because toolsets ask for it; True: also those that this process has not opened."""


def serve_http(served: Served) -> None:
    """Serve until a signal. Raises ConfigError, and Stopped with the signal's exit code."""
    given = read_worker_config()
    served.report(given is not None)
    with ExitStack() as held:
        if given is not None:
            worker, control = given
            held.enter_context(control)
            sockets = [held.enter_context(socket.socket(fileno=fd)) for fd in worker.sockets]
            _serve(served, worker.endpoint, sockets, control)
            return
        config = served.config
        make_context(config.http)
        endpoint, sockets = open_endpoint(config, served.makes_token, served.console, served.verifier)
        for each in sockets:
            held.enter_context(each)
        if config.http.workers > 1:
            _supervise(served, endpoint, sockets)
        else:
            _serve(served, endpoint, sockets, None)


def _serve(served: Served, endpoint: Endpoint, sockets: list[socket.socket], control: socket.socket | None) -> None:
    """Serve in this process. A worker has a control socket to its supervisor."""
    import uvloop

    engine, config = served.engine, endpoint.apply(served.config)
    _allow_files(engine.limits.connections + SPARE_FILES)
    process = _process(engine, config.http.grace + WORKER_SECONDS, served.extra_seconds)
    loop = uvloop.new_event_loop()
    asyncio.set_event_loop(loop)
    own = endpoint.token.text if endpoint.token else None
    is_for_all = endpoint.requires_token or config.auth.mode == "optional"
    token, parts, verifier = own if is_for_all else None, served.parts(), served.verifier
    app = HttpApp(engine, config, token=token, parts=parts, parts_token=own, verifier=verifier)
    server = HttpServer(loop, engine, app)
    process.end_by(server.stop)
    served.watch(loop)

    def ready() -> None:
        # Exempt all objects made so far from garbage collection, whose passes took 10 ms in the middle of requests.
        gc.collect()
        gc.freeze()
        if control is None:
            greet(served.name, config, endpoint, 1)
        else:
            with suppress(OSError):  # the supervisor has ended, which closes the control socket
                control.send(READY)

    def end_with_supervisor() -> None:
        loop.remove_reader(control)
        process.end_unsignalled()
        server.stop()

    if control is None:
        adopt()
    else:
        process.watch_family()
        loop.add_reader(control, end_with_supervisor)
    try:
        loop.run_until_complete(server.run(sockets, make_context(config.http), lines=config.http.lines, ready=ready))
    finally:
        served.close(process)
    process.leave()


def _supervise(served: Served, endpoint: Endpoint, sockets: list[socket.socket]) -> None:
    config = endpoint.apply(served.config)
    count, grace = config.http.workers, config.http.grace
    extra = served.extra_seconds(True)
    process = _process(served.engine, grace + SUPERVISOR_SECONDS + extra)
    adopt()
    worker = WorkerConfig(endpoint, [each.fileno() for each in sockets])
    supervisor = Supervisor(count, worker, served.engine.recorder, lambda: greet(served.name, config, endpoint, count))
    process.end_by(supervisor.stop)
    try:
        supervisor.run(grace + extra + (WORKER_SECONDS + SUPERVISOR_SECONDS) / 2)
    finally:
        if endpoint.temp_dir:
            shutil.rmtree(endpoint.temp_dir, ignore_errors=True)
    process.leave()


def _process(engine: Engine, seconds: float, extra_seconds: Callable[[], float] = float) -> Process:
    """Handle the signals, with a watchdog that ends the process after a deadline."""
    process = Process(replace(engine.limits, stop_seconds=seconds), extra_seconds)
    process.install()
    return process


def _allow_files(count: int) -> None:
    """Raise the limit of open files to the number of connections, as far as the system allows."""
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
        self, sockets: list[socket.socket], tls: SSLContext | None, *, lines: bool, ready: Callable[[], object]
    ) -> None:
        """Serve until `stop`."""
        try:
            await self._app.start()
        except BaseException:
            await self._close()
            raise
        engine = self._engine
        taken = engine if lines and not self._app.guard.required else None
        listener = Listener(self._app, self._loop, engine.limits, engine.recorder, taken, self._app.guard.anyone)
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
        """Log an exception that the loop caught. A broken connection is no error."""
        problem = context.get("exception")
        level: Level = "debug" if isinstance(problem, OSError) else "error"
        self._engine.recorder.problem(level, str(context.get("message", "something failed")), problem)


# -- workers

HOPELESS = 5
"""Times in a row that workers end soon after their start, after which none is started. Several at once count as one."""
SOON_SECONDS = 5.0
"""A worker that lived longer than this did not end because of how it was started."""
BACKOFF = Backoff(0.1, 3.0)
"""Pauses before a worker that ended soon is replaced. Short: its author may be repairing it right now."""
LEAVE_SECONDS = 2.0
"""How long a worker may take to exit after it has closed its control socket: its grace is over then."""
_LOOK_SECONDS = 10.0
"""Between two checks of silent workers. SIGCHLD reports one that ends at once."""
_BAD_USE = 2
"""The exit code of a worker whose configuration is invalid. It has reported why; another one would fail too."""


class WorkersFailed(LongshoreError):
    """Workers end as soon as they are started."""


@final
class Worker:
    """One worker process, and the supervisor's end of its control socket."""

    def __init__(self, worker_config: WorkerConfig) -> None:
        self.control, theirs = socket.socketpair()
        with theirs:
            # A process group of its own: Ctrl-C reaches the supervisor alone, which closes the control sockets.
            self._process = subprocess.Popen(
                [sys.executable, *sys.orig_argv[1:]],
                stdin=subprocess.DEVNULL,
                env={**os.environ, VARIABLE: str(theirs.fileno())},
                pass_fds=(theirs.fileno(), *worker_config.sockets),
                process_group=0,
            )
        self.pid = self._process.pid
        self.started = monotonic()
        self.ready = False
        self.code = 0
        """The exit code, once it has ended; negative: the signal that ended it."""
        self.listening = True
        """Whether its end of the control socket is open."""
        self.left = 0.0
        """When it was found closed."""
        self.report_end: Callable[[int | None], None] = lambda _: None
        """Records its end."""
        with suppress(OSError):  # the worker has ended, which `_reap` notices
            self.control.sendall(msgspec.json.encode(worker_config) + b"\n")

    def read_control(self) -> None:
        """Read its control socket: whether it is ready, or has closed it."""
        try:
            said = self.control.recv(16, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        except OSError:
            said = b""
        self.ready = self.ready or said.startswith(READY)
        if self.listening and not said:
            self.listening, self.left = False, monotonic()

    def ended(self, status: int) -> None:
        """Note that it was reaped."""
        self.control.close()
        self.code = self._process.returncode = os.waitstatus_to_exitcode(status)
        self.report_end(self.code)


@final
class Supervisor:
    """Keeps a number of workers running until it is stopped."""

    def __init__(
        self, count: int, worker_config: WorkerConfig, recorder: Recorder, ready: Callable[[], object]
    ) -> None:
        self._count = count
        self._worker_config = worker_config
        self._recorder = recorder
        self._ready: Callable[[], object] | None = ready
        self._workers: dict[int, Worker] = {}
        self._others = set(children(os.getpid()))
        """Child processes that the server's own file has started. They end with the supervisor."""
        self._failures = 0
        self._failed = 0.0
        """When the last failure was counted."""
        self._not_before = 0.0
        self._wake, self._waker = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(self._waker, False)
        self._stopping = False

    def stop(self) -> bool:
        """Stop. Signal handlers call it."""
        self._stopping = True
        self._interrupt()
        return True

    def _interrupt(self, *_: object) -> None:
        """Make `_wait` return."""
        with suppress(BlockingIOError):
            os.write(self._waker, b"!")

    def run(self, seconds: float) -> None:
        """Keep the workers running until `stop`; then wait for their end within the deadline."""
        before = signal.signal(signal.SIGCHLD, self._interrupt)
        try:
            while not self._stopping:
                while len(self._workers) < self._count and monotonic() >= self._not_before:
                    worker = Worker(self._worker_config)
                    self._workers[worker.pid] = worker
                    worker.report_end = self._recorder.process_started("worker", worker.pid)
                self._wait(_LOOK_SECONDS)
                self._look_after()
        finally:
            self._end(seconds)
            signal.signal(signal.SIGCHLD, before)

    def _wait(self, seconds: float) -> None:
        """Wait until a worker writes or ends, or until `stop`."""
        if len(self._workers) < self._count:
            seconds = min(seconds, max(self._not_before - monotonic(), 0.0))
        poll = select.poll()
        poll.register(self._wake, select.POLLIN)
        for worker in self._workers.values():
            if worker.listening:
                poll.register(worker.control, select.POLLIN)
            else:  # a closed socket would end every wait at once
                seconds = min(seconds, LEAVE_SECONDS)
        poll.poll(seconds * 1000)
        with suppress(BlockingIOError):
            os.read(self._wake, 64)

    def _look_after(self) -> None:
        for worker in self._workers.values():
            worker.read_control()
            if not worker.listening and monotonic() - worker.left > LEAVE_SECONDS:
                with suppress(OSError):
                    os.kill(worker.pid, signal.SIGKILL)
        for worker in self._reap():
            self._count_failure(worker)
        if self._ready is not None and sum(worker.ready for worker in self._workers.values()) == self._count:
            self._ready()
            self._ready = None

    def _reap(self) -> list[Worker]:
        """The workers that have ended. Their orphaned children are killed."""
        ended: list[Worker] = []
        try:
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                worker = self._workers.pop(found[0], None)
                if worker is not None:
                    worker.ended(found[1])
                    ended.append(worker)
        except ChildProcessError:
            pass
        for pid in children(os.getpid()):
            if pid not in self._workers and pid not in self._others:
                with suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
        return ended

    def _count_failure(self, worker: Worker) -> None:
        """Decide when a worker that has ended is replaced. Raises after too many failures.

        Workers that ran when one was counted share its cause, and count once.
        """
        if self._stopping:
            return
        code, now = worker.code, monotonic()
        if code == _BAD_USE and not worker.ready:
            raise SystemExit(_BAD_USE)
        if now - worker.started >= SOON_SECONDS:
            self._failures, self._failed = 1, now
        elif worker.started >= self._failed:
            self._failures, self._failed = self._failures + 1, now
        how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
        if self._failures >= HOPELESS:
            text = f"{self._failures} times in a row workers ended within {SOON_SECONDS:g} s, the last of them {how}"
            raise WorkersFailed(f"{text}; their errors are above")
        self._not_before = now + BACKOFF.pause(self._failures)
        self._recorder.problem("warning", f"worker {worker.pid} {how}; it is replaced")

    def _end(self, seconds: float) -> None:
        """Close the control sockets, which stops the workers, and kill those that do not stop."""
        self._stopping = True
        for worker in self._workers.values():
            worker.control.close()
        until = monotonic() + seconds
        while self._workers and monotonic() < until:
            self._reap()
            if self._workers:
                select.select([], [], [], 0.01)
        end_all(0)
        for worker in self._workers.values():
            worker.ended(signal.SIGKILL)
        self._workers.clear()


VARIABLE = "_LONGSHORE_WORKER"
"""The environment variable with the descriptor of a worker's control socket. Not a configuration key."""
READY = b"!"
_CONFIG_SECONDS = 10.0
"""How long a worker waits for its configuration, which is sent as soon as it is started."""
_PIECE_BYTES = 1 << 16
"""Bytes of one read. The configuration has a few hundred."""


class WorkerConfig(Struct, frozen=True):
    """The start message of a worker: the endpoint, with the token that no command line should show, and its sockets."""

    endpoint: Endpoint
    sockets: list[int]


def read_worker_config() -> tuple[WorkerConfig, socket.socket] | None:
    """The configuration of this process and its control socket; None if it is no worker."""
    number = os.environ.pop(VARIABLE, None)
    if number is None:
        return None
    try:
        control = socket.socket(fileno=int(number))
    except (OSError, ValueError):
        return None  # a child of a worker, started before the worker read its configuration
    control.set_inheritable(False)
    control.settimeout(_CONFIG_SECONDS)
    sent = b""
    try:
        while not sent.endswith(b"\n") and (piece := control.recv(_PIECE_BYTES)):
            sent += piece
        worker_config = msgspec.json.decode(sent, type=WorkerConfig)
    except (OSError, msgspec.DecodeError):
        control.close()
        raise SystemExit(1) from None  # the supervisor has ended
    control.setblocking(False)
    for fd in worker_config.sockets:
        os.set_inheritable(fd, False)
    return worker_config, control
