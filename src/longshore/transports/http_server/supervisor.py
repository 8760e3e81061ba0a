"""Workers: the same command, started again for each, on sockets that the supervisor has bound.

Started anew and not forked: a fork of a process with threads inherits their locks. A worker that ends is replaced,
each time after a longer pause if it ends at once, until that is hopeless.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import final

import msgspec
from msgspec import Struct

from longshore.errors import LongshoreError
from longshore.limits import FOREVER
from longshore.retry import Backoff
from longshore.sandbox.descendants import children, end_all
from longshore.telemetry.recorder import Recorder
from longshore.transports.http_server.endpoint import Endpoint

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
_LEAVING_LOOK_SECONDS = 0.02
"""The same while one exits, so that another one soon takes its place."""
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
        self.left = FOREVER
        """When it closed its control socket."""
        try:
            send_config(self.control, worker_config)
        except OSError:
            pass  # it has ended, which `_reap` notices

    def read_control(self) -> None:
        """Read its control socket: whether it is ready, or has closed it."""
        try:
            said = self.control.recv(16, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        except OSError:
            said = b""
        self.ready = self.ready or said.startswith(READY)
        if not said:
            self.left = min(self.left, monotonic())

    def ended(self, status: int) -> str:
        """Note that it was reaped. Gives a description of how it ended."""
        self.control.close()
        code = self._process.returncode = os.waitstatus_to_exitcode(status)
        return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"

    @property
    def code(self) -> int | None:
        return self._process.returncode


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
        """Keep the workers running until `stop`; then they have so many seconds to end."""
        before = signal.signal(signal.SIGCHLD, self._interrupt)
        try:
            while not self._stopping:
                self._start()
                self._wait(_LOOK_SECONDS)
                self._look_after()
        finally:
            self._end(seconds)
            signal.signal(signal.SIGCHLD, before)

    def _start(self) -> None:
        while len(self._workers) < self._count and monotonic() >= self._not_before:
            worker = Worker(self._worker_config)
            self._workers[worker.pid] = worker

    def _wait(self, seconds: float) -> None:
        """Wait until a worker writes or ends, or until `stop`."""
        if len(self._workers) < self._count:
            seconds = min(seconds, max(self._not_before - monotonic(), 0.0))
        poll = select.poll()
        poll.register(self._wake, select.POLLIN)
        for worker in self._workers.values():
            if worker.left < FOREVER:
                seconds = min(seconds, _LEAVING_LOOK_SECONDS)  # a closed socket would end every wait at once
            else:
                poll.register(worker.control, select.POLLIN)
        poll.poll(seconds * 1000)
        with suppress(BlockingIOError):
            os.read(self._wake, 64)

    def _look_after(self) -> None:
        for worker in self._workers.values():
            worker.read_control()
            if monotonic() - worker.left > LEAVE_SECONDS:
                _kill(worker.pid)
        for worker, how in self._reap():
            self._replace(worker, how)
        if self._ready is not None and sum(worker.ready for worker in self._workers.values()) == self._count:
            self._ready()
            self._ready = None

    def _reap(self) -> list[tuple[Worker, str]]:
        """The workers that have ended. Their orphaned children are killed."""
        ended: list[tuple[Worker, str]] = []
        try:
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                worker = self._workers.pop(found[0], None)
                if worker is not None:
                    ended.append((worker, worker.ended(found[1])))
        except ChildProcessError:
            pass
        for pid in children(os.getpid()):
            if pid not in self._workers and pid not in self._others:
                _kill(pid)
        return ended

    def _replace(self, worker: Worker, how: str) -> None:
        if self._stopping:
            return
        if worker.code == _BAD_USE and not worker.ready:
            raise SystemExit(_BAD_USE)
        self._count_failure(worker)
        if self._failures >= HOPELESS:
            text = f"{self._failures} times in a row workers ended within {SOON_SECONDS:g} s, the last of them {how}"
            raise WorkersFailed(f"{text}; their errors are above")
        pause = BACKOFF.pause(self._failures)
        self._not_before = monotonic() + pause
        self._recorder.problem("warning", f"worker {worker.pid} {how}; it is replaced")

    def _count_failure(self, worker: Worker) -> None:
        """Count a worker that ended soon. Workers that ran when one was counted share its cause, and count once."""
        now = monotonic()
        if now - worker.started >= SOON_SECONDS:
            self._failures = 1
        elif worker.started >= self._failed:
            self._failures += 1
        else:
            return
        self._failed = now

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


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        pass


VARIABLE = "_LONGSHORE_WORKER"
"""The environment variable with the descriptor of a worker's control socket. Not a configuration key."""
READY = b"!"
_CONFIG_SECONDS = 10.0
"""How long a worker waits for its configuration, which is sent as soon as it is started."""
_PIECE_BYTES = 1 << 16
"""Bytes of one read. The configuration has a few hundred."""


class WorkerConfig(Struct, frozen=True):
    """What a worker needs: the endpoint, with the token that no command line should show, and its sockets."""

    endpoint: Endpoint
    sockets: list[int]


def send_config(control: socket.socket, worker_config: WorkerConfig) -> None:
    control.sendall(msgspec.json.encode(worker_config) + b"\n")


def read_worker_config() -> tuple[WorkerConfig, socket.socket] | None:
    """The configuration of this process and its control socket; None if it is no worker."""
    number = os.environ.pop(VARIABLE, None)
    if number is None:
        return None
    try:
        control = socket.socket(fileno=int(number))
    except (OSError, ValueError):
        return None  # a worker's child that was started before the worker came to this
    control.set_inheritable(False)
    control.settimeout(_CONFIG_SECONDS)
    try:
        worker_config = msgspec.json.decode(_read_config(control), type=WorkerConfig)
    except (OSError, msgspec.DecodeError):
        control.close()
        raise SystemExit(1) from None  # the supervisor has ended
    control.setblocking(False)
    for fd in worker_config.sockets:
        os.set_inheritable(fd, False)
    return worker_config, control


def _read_config(control: socket.socket) -> bytes:
    said = b""
    while not said.endswith(b"\n") and (piece := control.recv(_PIECE_BYTES)):
        said += piece
    return said
