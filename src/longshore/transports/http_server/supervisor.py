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
"""Times in a row that workers end soon after their start, after which no more are started. All at once is one time."""
SOON_SECONDS = 5.0
"""A worker that lived longer than this did not end because of how it was started."""
BACKOFF = Backoff(0.1, 3.0)
"""Pauses before a worker that ended soon is replaced. Short: its author may be repairing it right now."""
LEAVE_SECONDS = 2.0
"""What a worker gets to exit once it has closed its line: all that it had to do is done, and its grace is over."""
_LOOK_SECONDS = 10.0
"""Between two looks at workers that say nothing. One that ends is noticed at once, by SIGCHLD."""
_LEAVING_LOOK_SECONDS = 0.02
"""The same while one exits, so that another one soon takes its place."""
_BAD_USE = 2
"""What a worker exits with that could not use its configuration. It has said why, and would say it again."""


class WorkersFailed(LongshoreError):
    """Workers end as soon as they are started."""


@final
class Worker:
    """One process, and our end of the line to it."""

    def __init__(self, orders: Orders) -> None:
        self.line, theirs = socket.socketpair()
        with theirs:
            # A process group of its own: Ctrl-C is for the supervisor, which tells the workers by closing the line.
            self._process = subprocess.Popen(
                [sys.executable, *sys.orig_argv[1:]],
                stdin=subprocess.DEVNULL,
                env={**os.environ, VARIABLE: str(theirs.fileno())},
                pass_fds=(theirs.fileno(), *orders.sockets),
                process_group=0,
            )
        self.pid = self._process.pid
        self.started = monotonic()
        self.ready = False
        self.left = FOREVER
        """When it has closed its line."""
        try:
            send_orders(self.line, orders)
        except OSError:
            pass  # it has ended already, and that will be seen

    def hear(self) -> None:
        """Take what it says, if it says anything."""
        try:
            said = self.line.recv(16, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        except OSError:
            said = b""
        self.ready = self.ready or said.startswith(READY)
        if not said:
            self.left = min(self.left, monotonic())

    def ended(self, status: int) -> str:
        """It was reaped. Gives how it ended, in words."""
        self.line.close()
        code = self._process.returncode = os.waitstatus_to_exitcode(status)
        return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"

    @property
    def code(self) -> int | None:
        return self._process.returncode


@final
class Supervisor:
    """Keeps a number of workers running until it is told to stop."""

    def __init__(self, count: int, orders: Orders, recorder: Recorder, ready: Callable[[], object]) -> None:
        self._count = count
        self._orders = orders
        self._recorder = recorder
        self._ready: Callable[[], object] | None = ready
        self._workers: dict[int, Worker] = {}
        self._others = set(children(os.getpid()))
        """What the server's own file has started. It is ended at the end, not before."""
        self._failures = 0
        self._failed = 0.0
        """When the last of them was counted."""
        self._not_before = 0.0
        self._wake, self._waker = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(self._waker, False)
        self._stopping = False

    def stop(self) -> bool:
        """Have it end. Called by a signal handler."""
        self._stopping = True
        self._interrupt()
        return True

    def _interrupt(self, *_: object) -> None:
        """Have `_wait` return."""
        with suppress(BlockingIOError):
            os.write(self._waker, b"!")

    def run(self, patience: float) -> None:
        """Keep the workers running until `stop`; then they have `patience` to end."""
        before = signal.signal(signal.SIGCHLD, self._interrupt)
        try:
            while not self._stopping:
                self._start()
                self._wait(_LOOK_SECONDS)
                self._look_after()
        finally:
            self._end(patience)
            signal.signal(signal.SIGCHLD, before)

    def _start(self) -> None:
        while len(self._workers) < self._count and monotonic() >= self._not_before:
            worker = Worker(self._orders)
            self._workers[worker.pid] = worker

    def _wait(self, seconds: float) -> None:
        """Until a worker says something or ends, or somebody wants us to stop."""
        if len(self._workers) < self._count:
            seconds = min(seconds, max(self._not_before - monotonic(), 0.0))
        poll = select.poll()
        poll.register(self._wake, select.POLLIN)
        for worker in self._workers.values():
            if worker.left < FOREVER:
                seconds = min(seconds, _LEAVING_LOOK_SECONDS)  # its line would end the wait at once, and for ever
            else:
                poll.register(worker.line, select.POLLIN)
        poll.poll(seconds * 1000)
        with suppress(BlockingIOError):
            os.read(self._wake, 64)

    def _look_after(self) -> None:
        for worker in self._workers.values():
            worker.hear()
            if monotonic() - worker.left > LEAVE_SECONDS:
                _kill(worker.pid)
        for worker, how in self._reap():
            self._replace(worker, how)
        if self._ready is not None and sum(worker.ready for worker in self._workers.values()) == self._count:
            self._ready()
            self._ready = None

    def _reap(self) -> list[tuple[Worker, str]]:
        """The workers that have ended. What they leave behind falls to us, and is ended too."""
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
            raise WorkersFailed(f"{text}; what they said is above")
        pause = BACKOFF.pause(self._failures)
        self._not_before = monotonic() + pause
        self._recorder.problem("warning", f"worker {worker.pid} {how}; another one is started")

    def _count_failure(self, worker: Worker) -> None:
        """A bad moment counts once, however many it ends: those that were there when it was counted share its cause."""
        now = monotonic()
        if now - worker.started >= SOON_SECONDS:
            self._failures = 1
        elif worker.started >= self._failed:
            self._failures += 1
        else:
            return
        self._failed = now

    def _end(self, patience: float) -> None:
        """Close the lines: to every worker that is the word to stop. Who does not is ended."""
        self._stopping = True
        for worker in self._workers.values():
            worker.line.close()
        until = monotonic() + patience
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
"""Tells a process that it is a worker, by the number of its end of the line. Not one of the configuration's."""
READY = b"!"
_PATIENCE_SECONDS = 10.0
"""For the orders, which are sent as soon as the worker is started; whoever has not by then won't."""
_PIECE_BYTES = 1 << 16
"""What is read at once. The orders are a few hundred bytes."""


class Orders(Struct, frozen=True):
    """What a worker is told."""

    site: Endpoint
    sockets: list[int]


def send_orders(line: socket.socket, orders: Orders) -> None:
    line.sendall(msgspec.json.encode(orders) + b"\n")


def take_orders() -> tuple[Orders, socket.socket] | None:
    """What this process was told, and its end of the line; None if it is no worker. Its children are told nothing."""
    number = os.environ.pop(VARIABLE, None)
    if number is None:
        return None
    try:
        line = socket.socket(fileno=int(number))
    except (OSError, ValueError):
        return None  # a worker's child that was started before the worker came to this
    line.set_inheritable(False)
    line.settimeout(_PATIENCE_SECONDS)
    try:
        orders = msgspec.json.decode(_read_line(line), type=Orders)
    except (OSError, msgspec.DecodeError):
        line.close()
        raise SystemExit(1) from None  # whoever started us is gone
    line.setblocking(False)
    for fd in orders.sockets:
        os.set_inheritable(fd, False)
    return orders, line


def _read_line(line: socket.socket) -> bytes:
    said = b""
    while not said.endswith(b"\n") and (piece := line.recv(_PIECE_BYTES)):
        said += piece
    return said
