"""stdio: a blocking read loop while only the peer can cause output, then asyncio for good.

Importing asyncio takes longer than the rest of a cold start, and a blocking read and write is the fastest way to
answer. So the process begins without it. The first coroutine, slow thread or configuration file to watch opens a loop,
and from then on stdin is one of its readers. A `def` tool's call that ends within a few milliseconds is awaited in the
blocking phase, until asyncio has been imported while the client is idle. Only the main thread writes. Reading stops
only while the peer does not read our output, which is checked after each frame: the answers to a chunk of small
requests can be a thousand times its size.
"""

from __future__ import annotations

import os
import select
from _thread import _count as thread_count  # pyright: ignore[reportPrivateUsage]
from _thread import allocate_lock
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, final

from longshore.server.engine import Engine
from longshore.server.link import Link
from longshore.transports.descriptors import grow, never_blocks, unblock
from longshore.transports.process import Process
from longshore.wire.framing import Frame, Framer, TooLong

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

CHUNK_BYTES = 1 << 16
"""One read. Beyond 128 KiB malloc maps and unmaps memory for each, which costs 12 µs."""
JOIN_BYTES = 1 << 16
"""Frames up to this size in all are joined into one write; larger ones are not copied again."""
SMALL_BYTES = 1 << 12
"""Frames of this size on average are joined however many: a write for each costs more than to copy them."""
RETRY_SECONDS = 0.05
QUIET_MILLISECONDS = 250
"""A client that is silent for this long does not wait for an answer, even if it has not listed the tools yet."""
LAST_WRITE_SECONDS = 0.2
"""After the grace period, how long a slow peer may take to read the last answers."""
THREAD_SECONDS = 0.02
"""How long the blocking phase waits for threads before it opens a loop, which takes about as long."""
IMPORT_SECONDS = 0.25
"""The same while a toolset is imported: asyncio, imported beside it, would only delay it."""

_HANG_UP = getattr(select, "POLLRDHUP", 0)  # POLLHUP comes unasked

Part = bytes | memoryview


@final
class Stdio(Link):
    """Serves one engine on two file descriptors until the input ends."""

    transport = "stdio"

    def __init__(self, engine: Engine, reader: int, writer: int, process: Process | None = None) -> None:
        """`process`, if given, is ended by `end_soon`, and watches its parent and children once the client is idle."""
        super().__init__()
        self._engine = engine
        self._process = process
        self._reader, self._writer = reader, unblock(writer)
        self._never_blocks = never_blocks(reader)
        self._poll = select.poll()
        self._poll.register(reader, select.POLLIN)
        self._framer = Framer(engine.limits.frame_bytes)
        self._high = engine.limits.output_bytes
        self._frames: deque[Frame] = deque()
        self._out: list[bytes] = []
        self._queued = 0
        self._backlog: deque[memoryview] = deque()
        self._held = 0
        self._waiting = 0
        """The bytes of requests that wait for earlier ones."""
        self._loop: AbstractEventLoop | None = None
        self._handling = False
        self._flush_due = False
        self._looking = False
        """Whether `_look_for_end` is due."""
        self._ended = False
        self._finished = False
        self._grown: set[int] = set()
        self._chores: list[Callable[[], object]] = []
        self._loop_chores: list[Callable[[AbstractEventLoop], None]] = []
        self._quiet_chores: list[Callable[[], object]] = []
        self._posted: deque[Callable[[], None]] = deque()
        """Actions that threads post to the main thread before there is a loop; the lock is free while there are any."""
        self._wakeup = allocate_lock()
        self._wakeup.acquire()
        engine.executor.adopt_host(self)
        if process is not None:
            process.end_by(self.end_soon)
            self.when_idle(process.watch_family)

    def when_idle(self, chore: Callable[[], object]) -> None:
        """Run a chore once, while the client waits for no answer, and at the latest before the loop runs."""
        self._chores.append(chore)

    def when_quiet(self, chore: Callable[[], object]) -> None:
        """Run a chore once, when the client has been silent for a while, unless a loop is opened before that."""
        self._quiet_chores.append(chore)

    def when_looping(self, chore: Callable[[AbstractEventLoop], None]) -> None:
        """Run a chore once there is a loop. A chore does not cause one to be opened."""
        self._loop_chores.append(chore)

    # -- the two phases

    def run(self) -> None:
        """Serve until the input ends; then wait for the calls in flight for the grace period, and stop the rest."""
        try:
            if self._run_blocking():
                self._run_loop()
        except (BrokenPipeError, ConnectionResetError):
            pass  # the peer reads no more answers
        finally:
            self._finished = True
            if self._loop is not None:
                self._engine.cancel_all(self)
                self._await_cancelled(self._loop)
            self._engine.recording.session_closed(self)

    def _run_blocking(self) -> bool:
        """True: something needs the loop. False: the input has ended and nothing is in flight."""
        executor, quiet = self._engine.executor, False
        while self._loop is None:
            if executor.running and not self._await_threads():
                self.open_loop()
                break
            if self._chores and self._idle():
                self._do_chores()
                continue
            if self._quiet_chores and self._is_silent(0 if quiet else QUIET_MILLISECONDS):
                quiet = True  # until the client sends something, the others need not wait again
                self._quiet_chores.pop(0)()
                continue
            quiet = False
            ours = executor.threads + executor.recorder.threads
            if thread_count() > ours + (0 if self._process is None else self._process.threads):
                self.open_loop()  # a thread that a tool has started may send something
                break
            if self._posted:  # by a thread that has ended since; only now, for an earlier look could miss it
                self._run_posted()
                continue
            if self._read():
                continue
            self._ended = True
            self._take(self._framer.close())
            if self._engine.executor.running and not self._await_threads():  # a last line without a newline
                self.open_loop()
            if self._loop is None:
                self._engine.detach(self)
                self._flush()
                return False
        return True

    def _await_threads(self) -> bool:
        """Wait for the running calls to end. False: one takes too long, or has opened a loop."""
        executor = self._engine.executor
        importing = executor.importing > 0
        end = monotonic() + (IMPORT_SECONDS if importing else THREAD_SECONDS)
        while executor.running:
            if self._loop is not None or not self._wakeup.acquire(timeout=max(end - monotonic(), 0)):
                return False
            self._run_posted()
            if importing and not executor.importing:
                importing, end = False, monotonic() + THREAD_SECONDS
        return True

    def call_threadsafe(self, action: Callable[[], None]) -> None:
        self._posted.append(action)
        if self._loop is not None:  # it was opened a moment ago
            self._loop.call_soon_threadsafe(self._run_posted)
        else:
            with suppress(RuntimeError):  # it is free already
                self._wakeup.release()

    def _run_posted(self) -> None:
        while self._posted:
            self._posted.popleft()()

    def _idle(self) -> bool:
        """Whether the client waits for no answer: it has listed or called tools, or has been silent for a while."""
        begun = self._engine.listed or self._engine.executor.calls > 0
        return self._is_silent(0 if begun else QUIET_MILLISECONDS)

    def _is_silent(self, milliseconds: int) -> bool:
        """Whether the client sends nothing for so long."""
        return not self._poll.poll(milliseconds)

    def _do_chores(self) -> None:
        chores, self._chores = self._chores, []
        for chore in chores:
            chore()

    def open_loop(self) -> AbstractEventLoop:
        """The loop, opened on first use. Nothing runs on it until the blocking phase has ended."""
        if self._loop is None:
            import asyncio

            self._loop = asyncio.new_event_loop()
            asyncio.set_event_loop(self._loop)
            self._engine.executor.loop_opened(self._loop)
            self._loop.call_soon(self._run_posted)
            self._do_chores()  # before a tool runs: processes that it starts must be adopted
            for chore in self._loop_chores:
                chore(self._loop)
        return self._loop

    def _run_loop(self) -> None:
        loop = self.open_loop()
        if self._ended:
            loop.call_soon(self._end_of_input)
        elif self._never_blocks:
            loop.call_soon(self._pump)  # `serve < file`, `dev </dev/null`: epoll refuses these
        elif not self._stopped:
            loop.add_reader(self._reader, self._readable)
        loop.run_forever()

    def _await_cancelled(self, loop: AbstractEventLoop) -> None:
        """Give the cancelled calls a moment to clean up. Toolsets have tasks of their own, which `stop` may need."""
        import asyncio

        if not self._never_blocks:
            loop.remove_reader(self._reader)
        tasks = tuple(self._engine.executor.cancelled_tasks)
        if tasks:
            loop.run_until_complete(asyncio.wait(tasks, timeout=RETRY_SECONDS))

    def cancel_tasks(self) -> None:
        """Cancel the remaining tasks after `run` and the end of the toolsets, and give them a moment to clean up."""
        if self._loop is None:
            return
        import asyncio

        loop = self._loop
        tasks = asyncio.all_tasks(loop)
        for task in tasks:
            task.cancel()
        if tasks:
            _, left = loop.run_until_complete(asyncio.wait(tasks, timeout=RETRY_SECONDS))
            for task in left:
                task._log_destroy_pending = False  # type: ignore[attr-defined]  # no warning: the process ends

    def end_soon(self) -> bool:
        """End the loop; called by a signal handler. False: there is none, or a frame is being handled."""
        if self._loop is None or self._handling or not self._loop.is_running():
            return False
        self._loop.call_soon_threadsafe(self._finish)
        return True

    def _finish(self) -> None:
        """Stop the loop. Only once: a second stop would interrupt the cleanup."""
        if not self._finished:
            self._finished = True
            self.open_loop().stop()

    # -- bytes in

    def _read(self) -> bool:
        """Read once and handle the frames. False: the input has ended."""
        framer = self._framer
        is_long = framer.wants_room
        try:
            if is_long:
                frames = self._read_long()
            else:
                chunk = os.read(self._reader, CHUNK_BYTES)
                frames = framer.feed(chunk) if chunk else None
        except BlockingIOError:  # one socket may be both the input and the non-blocking output
            if self._loop is None:
                self._poll.poll()
            return True
        except ConnectionResetError:
            return False
        if frames:
            self._take(frames)
            if is_long:
                framer.release()
        return frames is not None

    def _read_long(self) -> list[Frame] | None:
        """The frames that the next piece of a long line completes. None: the input has ended."""
        self._grow(self._reader)
        with self._framer.room() as room:
            count = os.readv(self._reader, [room])
        return self._framer.filled(count) if count else None

    def _readable(self) -> None:
        if not self._read():
            self._ended = True
            if not self._never_blocks and self._loop is not None:
                self._loop.remove_reader(self._reader)
            self._end_of_input()

    def _pump(self) -> None:
        loop = self.open_loop()
        if self._stopped:
            loop.call_later(RETRY_SECONDS, self._pump)
            return
        self._readable()
        if not self._ended:
            loop.call_soon(self._pump)

    def _take(self, frames: Sequence[Frame]) -> None:
        """Handle frames until they end or reading must stop; the rest is handled when it goes on."""
        handle, out, high, queued = self._engine.frames.handle, self._out, self._high, 0
        watched = bool(self._engine.tap.watchers)
        self._handling = True
        try:
            for index, frame in enumerate(frames):
                if watched and not isinstance(frame, TooLong):
                    self._engine.tap.show("in", self, bytes(frame))
                reply = handle(frame, self) if type(frame) is bytes else self._handle_long(frame)
                if reply is not None:
                    out.append(reply)
                    queued += len(reply)
                    if queued > high:
                        queued = 0
                        self._flush()
                if self._waiting > high or self.congested:
                    self._frames.extend(frames[index + 1 :])
                    break
        finally:
            self._handling = False
        if out:
            self._flush()

    def _handle_long(self, frame: Frame) -> bytes | None:
        if isinstance(frame, TooLong):
            return self._engine.frames.too_long(frame, self)
        assert isinstance(frame, memoryview)
        return self._engine.frames.handle_long(frame, self)

    def _end_of_input(self) -> None:
        """Wait for the calls in flight for the grace period; then stop and answer the rest, and end the loop."""
        loop = self.open_loop()
        self._take(self._framer.close())
        self._engine.detach(self)
        self._engine.executor.add_end_listener(lambda: loop.call_soon(self._check_drained))
        loop.call_later(self._engine.limits.eof_grace_seconds, self._give_up)
        self._check_drained()

    def _check_drained(self) -> None:
        self._flush()
        if not (self._engine.executor.live or self.session.queue or self._backlog or self._frames):
            self._finish()

    def _give_up(self) -> None:
        grace = self._engine.limits.eof_grace_seconds
        self._engine.executor.stop_all(f"the input ended and it did not finish within {grace:g} s (--eof-grace)")
        self._flush()
        if self._backlog:
            self.open_loop().call_later(LAST_WRITE_SECONDS, self._finish)
        else:
            self._finish()

    # -- bytes out

    def send(self, frame: bytes) -> None:
        self._out.append(frame)
        self._queued += len(frame)
        if self._queued > self._high:
            self._flush()  # a handler may send much without returning to the loop
        elif self._handling:
            pass
        elif self._loop is None or not self._engine.executor.running:
            self._flush()
        elif not self._flush_due:
            self._flush_due = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        """Write the queued frames. In the loop, bytes that the peer does not read at once are held."""
        self._flush_due = False
        self._queued = 0
        out = self._out
        if not out:
            return
        if self._engine.tap.watchers:
            for frame in out:
                self._engine.tap.show("out", self, frame)
        parts: list[Part]
        if len(out) == 1 and len(out[0]) <= JOIN_BYTES:
            parts = [out[0] + b"\n"]
        elif sum(map(len, out)) <= max(JOIN_BYTES, SMALL_BYTES * len(out)):
            out.append(b"")
            parts = [b"\n".join(out)]
        else:
            parts = [part for frame in out for part in (frame, b"\n")]
            self._grow(self._writer)
        out.clear()
        if self._loop is None:
            self._write_all(parts)
            return
        waiting = bool(self._backlog)
        for part in parts:
            self._backlog.append(memoryview(part))
            self._held += len(part)
        if not waiting and not self._write_backlog():
            self._loop.add_writer(self._writer, self._writable)
        if self._held > self._high and not self.congested and not self._finished:
            self.congested = True
            self._stop_reading()

    def _write_all(self, parts: list[Part]) -> None:
        """Write in the blocking phase, where nothing else can happen until the peer reads."""
        for part in parts:
            rest: Part = part
            while rest:
                try:
                    written = os.write(self._writer, rest)
                except BlockingIOError:
                    self._await_reader()
                else:
                    rest = memoryview(rest)[written:]

    def _await_reader(self) -> None:
        """Block until the peer reads more; once it has closed its output, for the grace period at most."""
        poll = select.poll()
        poll.register(self._writer, select.POLLOUT)
        poll.register(self._reader, _HANG_UP)
        if all(fd == self._reader for fd, _ in poll.poll()):
            poll.unregister(self._reader)
            if not poll.poll(self._engine.limits.eof_grace_seconds * 1000):
                raise BrokenPipeError

    def _write_backlog(self) -> bool:
        """Write what is held. False: the peer does not read more at present."""
        backlog = self._backlog
        while backlog:
            part = backlog[0]
            try:
                written = os.write(self._writer, part)
            except BlockingIOError:
                return False
            except OSError:  # the peer has closed its input
                self._ended = True
                self._out.clear()
                self._frames.clear()
                backlog.clear()
                self._finish()
                return True
            self._held -= written
            if written < len(part):
                backlog[0] = part[written:]
                return False
            backlog.popleft()
        return True

    def _look_for_end(self) -> None:
        """Begin the grace period if the input has ended, which is not noticed while we don't read."""
        self._looking = False
        if not self._stopped or self._ended or self._loop is None:
            return
        poll = select.poll()
        poll.register(self._reader, _HANG_UP)
        if poll.poll(0):
            self._loop.call_later(self._engine.limits.eof_grace_seconds, self._give_up_unread)
        else:
            self._looking = True
            self._loop.call_later(RETRY_SECONDS, self._look_for_end)

    def _give_up_unread(self) -> None:
        if self._stopped and not self._ended:
            self._ended = True
            self._frames.clear()
            self._give_up()

    def _writable(self) -> None:
        if not self._write_backlog() or self._finished:
            return
        self.open_loop().remove_writer(self._writer)
        if self.congested:  # the peer reads again
            self.congested = False
            self._read_on()
        elif self._ended:
            self._check_drained()

    # -- stopping and reading on

    @property
    def _is_full(self) -> bool:
        return self._waiting > self._high

    @property
    def _stopped(self) -> bool:
        """Whether nothing is read, for there is too much output or too much that waits already."""
        return self.congested or self._is_full

    def hold_back(self, size: int) -> None:
        was_full = self._is_full
        self._waiting += size
        if self._is_full and not was_full and not self._finished:
            self.open_loop()
            self._stop_reading()
        elif was_full and not self._is_full:
            self.open_loop().call_soon(self._read_on)

    def _stop_reading(self) -> None:
        if not self._never_blocks:
            self.open_loop().remove_reader(self._reader)
            if not self._looking:
                self._look_for_end()

    def _read_on(self) -> None:
        """Begin what waits, handle the frames that were read, and read on, as far as the peer reads."""
        if self._finished:
            return
        self.session.proceed()
        if not self._stopped:
            frames, self._frames = list(self._frames), deque()
            self._take(frames)
        if not self.congested:
            self._engine.executor.start_queued()
        if not (self._stopped or self._ended or self._never_blocks):
            self.open_loop().add_reader(self._reader, self._readable)
        if self._ended:
            self._check_drained()

    def _grow(self, fd: int) -> None:
        if fd not in self._grown:
            self._grown.add(fd)
            grow(fd)
