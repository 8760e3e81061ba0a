"""stdio: a blocking read loop for as long as nothing but the peer can cause output, then asyncio for good.

Importing asyncio takes longer than all the rest of a cold start, and a blocking read and write is the fastest way to
answer. So the process begins without it. The first coroutine, thread, or configuration file to watch opens a loop,
and from then on stdin is one of its readers. Only the main thread writes. Reading stops for one reason alone: output
that the peer does not take. It is looked at after each frame, for a chunk of small requests can ask for a thousand
times its size.
"""

from __future__ import annotations

import os
import select
from _thread import _count as thread_count  # pyright: ignore[reportPrivateUsage]
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, final

from longshore.server.dispatch import Engine
from longshore.server.link import Link
from longshore.transports.descriptors import grow, is_regular, unblock
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
"""A peer that says nothing for this long does not wait for an answer, even if it has not listed the tools yet."""
LAST_WRITE_SECONDS = 0.2
"""After the grace has passed, how long a peer that reads slowly may take over the last answers."""

_HANG_UP = getattr(select, "POLLRDHUP", 0)  # POLLHUP comes unasked

Part = bytes | memoryview


@final
class Stdio(Link):
    """Serves one engine on two file descriptors until the input ends."""

    __slots__ = (
        "_backlog",
        "_chores",
        "_ended",
        "_engine",
        "_finished",
        "_flush_due",
        "_framer",
        "_frames",
        "_grown",
        "_handling",
        "_held",
        "_high",
        "_loop",
        "_loop_chores",
        "_out",
        "_queued",
        "_reader",
        "_regular",
        "_writer",
        "own_threads",
    )

    def __init__(self, engine: Engine, reader: int, writer: int) -> None:
        super().__init__()
        self._engine = engine
        self._reader, self._writer = reader, unblock(writer)
        self._regular = is_regular(reader)
        self._framer = Framer(engine.limits.frame_bytes)
        self._high = engine.limits.output_bytes
        self._frames: deque[Frame] = deque()
        self._out: list[bytes] = []
        self._queued = 0
        self._backlog: deque[memoryview] = deque()
        self._held = 0
        self._loop: AbstractEventLoop | None = None
        self._handling = False
        self._flush_due = False
        self._ended = False
        self._finished = False
        self.own_threads = 0
        """How many threads of the process have nothing to say to the client."""
        self._grown: set[int] = set()
        self._chores: list[Callable[[], object]] = []
        self._loop_chores: list[Callable[[AbstractEventLoop], None]] = []
        engine.executor.open_loop = self.open_loop
        engine.executor.adopt_thread()

    def when_idle(self, chore: Callable[[], object]) -> None:
        """Do something once, when nobody waits for an answer, and at the latest before the loop runs."""
        self._chores.append(chore)

    def when_looping(self, chore: Callable[[AbstractEventLoop], None]) -> None:
        """Do something once, when a loop is there; it alone is no reason to open one."""
        self._loop_chores.append(chore)

    # -- the two phases

    def run(self) -> None:
        """Serve until the input ends; then give calls in flight their grace and answer what is left."""
        try:
            if self._run_blocking():
                self._run_loop()
        except (BrokenPipeError, ConnectionResetError):
            pass  # nobody reads any more, so nobody is to be answered
        finally:
            self._finished = True
            if self._loop is not None:
                self._engine.cancel_all(self)
                self._cancel_tasks(self._loop)

    def _run_blocking(self) -> bool:
        """True: something needs the loop. False: the input has ended and nothing is in flight."""
        while self._loop is None:
            if self._chores and self._idle():
                self._do_chores()
                continue
            if thread_count() > self.own_threads:
                self.open_loop()  # a thread of somebody's may have something to say
                break
            if self._read():
                continue
            self._ended = True
            self._take(self._framer.close())
            if self._loop is None:
                self._engine.detach(self)
                self._flush()
                return False
        return True

    def _idle(self) -> bool:
        """Whether the client waits for nothing: it has what it began for, or has been silent for a while."""
        poll = select.poll()
        poll.register(self._reader, select.POLLIN)
        begun = self._engine.listed or self._engine.executor.calls > 0
        return not poll.poll(0 if begun else QUIET_MILLISECONDS)

    def _do_chores(self) -> None:
        chores, self._chores = self._chores, []
        for chore in chores:
            chore()

    def open_loop(self) -> AbstractEventLoop:
        """Begin the second phase. Nothing runs on the loop until the blocking read loop has ended."""
        if self._loop is None:
            import asyncio

            self._loop = asyncio.new_event_loop()
            asyncio.set_event_loop(self._loop)
            self._engine.executor.loop = self._loop
            self._do_chores()  # before a tool runs: what it starts must be ours to end
            for chore in self._loop_chores:
                chore(self._loop)
        return self._loop

    def _run_loop(self) -> None:
        loop = self._loop
        assert loop is not None
        if self._ended:
            loop.call_soon(self._end_of_input)
        elif self._regular:
            loop.call_soon(self._pump)  # `serve < file`: epoll refuses regular files
        elif not self.congested:
            loop.add_reader(self._reader, self._readable)
        loop.run_forever()

    def _cancel_tasks(self, loop: AbstractEventLoop) -> None:
        """What still runs is cancelled, and gets a moment to clean up after itself."""
        import asyncio

        if not self._regular:
            loop.remove_reader(self._reader)
        tasks = asyncio.all_tasks(loop)
        for task in tasks:
            task.cancel()
        if tasks:
            _, left = loop.run_until_complete(asyncio.wait(tasks, timeout=RETRY_SECONDS))
            for task in left:
                task._log_destroy_pending = False  # type: ignore[attr-defined]  # it was asked to end; so be it

    def end_soon(self) -> bool:
        """Called by a signal handler: have the loop end. False: there is none, or it waits for a handler of ours."""
        if self._loop is None or self._handling or not self._loop.is_running():
            return False
        self._loop.call_soon_threadsafe(self._finish)
        return True

    def _finish(self) -> None:
        """Leave the loop. Once: what is said after that must not stop the loop while it cleans up."""
        if not self._finished:
            self._finished = True
            assert self._loop is not None
            self._loop.stop()

    # -- bytes in

    def _read(self) -> bool:
        """Read once and handle what came. False: there is no more."""
        try:
            frames = self._read_frames()
        except BlockingIOError:
            self._await_input()
            return True
        except ConnectionResetError:
            return False
        if frames:
            self._take(frames)
            self._framer.release()
        return frames is not None

    def _read_frames(self) -> list[Frame] | None:
        framer = self._framer
        if framer.wants_room:
            self._grow(self._reader)
            with framer.room() as room:
                count = os.readv(self._reader, [room])
            return framer.filled(count) if count else None
        chunk = os.read(self._reader, CHUNK_BYTES)
        return framer.feed(chunk) if chunk else None

    def _await_input(self) -> None:
        """Block until something comes: one socket may be both our input and the output on which we must not block."""
        if self._loop is None:
            poll = select.poll()
            poll.register(self._reader, select.POLLIN)
            poll.poll()

    def _readable(self) -> None:
        if not self._read():
            self._ended = True
            if not self._regular and self._loop is not None:
                self._loop.remove_reader(self._reader)
            self._end_of_input()

    def _pump(self) -> None:
        assert self._loop is not None
        if self.congested:
            self._loop.call_later(RETRY_SECONDS, self._pump)
            return
        self._readable()
        if not self._ended:
            self._loop.call_soon(self._pump)

    def _take(self, frames: Sequence[Frame]) -> None:
        """Handle frames until they end or the output runs full; the rest waits for the reader."""
        handle, out, high, queued = self._engine.handle, self._out, self._high, 0
        self._handling = True
        try:
            for index, frame in enumerate(frames):
                reply = handle(frame, self) if type(frame) is bytes else self._handle_long(frame)
                if reply is not None:
                    out.append(reply)
                    queued += len(reply)
                    if queued > high:
                        queued = 0
                        self._flush()
                        if self.congested:
                            self._frames.extend(frames[index + 1 :])
                            break
        finally:
            self._handling = False
        if out:
            self._flush()

    def _handle_long(self, frame: Frame) -> bytes | None:
        if isinstance(frame, TooLong):
            return self._engine.too_long(frame, self)
        assert isinstance(frame, memoryview)
        return self._engine.handle_long(frame, self)

    def _end_of_input(self) -> None:
        """Calls in flight get their grace; then what is left is stopped, answered, and the loop ends."""
        loop = self._loop
        assert loop is not None
        self._take(self._framer.close())
        self._engine.detach(self)
        self._engine.executor.when_ended = lambda: loop.call_soon(self._check_drained)
        loop.call_later(self._engine.limits.eof_grace_seconds, self._give_up)
        self._check_drained()

    def _check_drained(self) -> None:
        assert self._loop is not None
        self._flush()
        if not (self._engine.executor.live or self._backlog or self._frames):
            self._finish()

    def _give_up(self) -> None:
        assert self._loop is not None
        grace = self._engine.limits.eof_grace_seconds
        self._engine.executor.stop_all(f"the input ended and it did not finish within {grace:g} s (--eof-grace)")
        self._flush()
        if self._backlog:
            self._loop.call_later(LAST_WRITE_SECONDS, self._finish)
        else:
            self._finish()

    # -- bytes out

    def send(self, frame: bytes) -> None:
        self._out.append(frame)
        self._queued += len(frame)
        if self._queued > self._high:
            self._flush()  # a handler may send for long without letting the loop go on
        elif self._handling:
            pass
        elif self._loop is None or not self._engine.executor.running:
            self._flush()
        elif not self._flush_due:
            self._flush_due = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        """Write what is queued. In the loop, what the peer does not take at once is held."""
        self._flush_due = False
        self._queued = 0
        out = self._out
        if not out:
            return
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
        elif self._backlog:
            self._hold(parts)
        else:
            self._write_some(parts)

    def _write_all(self, parts: list[Part]) -> None:
        """The blocking phase: nothing else can happen anyway until the peer takes this."""
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
        """Block until the peer takes more. One that has closed its side has only the grace left for that."""
        poll = select.poll()
        poll.register(self._writer, select.POLLOUT)
        poll.register(self._reader, _HANG_UP)
        if all(fd == self._reader for fd, _ in poll.poll()):
            poll.unregister(self._reader)
            if not poll.poll(self._engine.limits.eof_grace_seconds * 1000):
                raise BrokenPipeError

    def _write_some(self, parts: list[Part]) -> None:
        for index, part in enumerate(parts):
            written = self._write(part)
            if written < 0:
                return
            if written < len(part):
                self._hold([memoryview(part)[written:], *parts[index + 1 :]])
                if self._loop is not None:
                    self._loop.add_writer(self._writer, self._writable)
                return

    def _write(self, part: Part) -> int:
        """How many bytes the peer took; -1 if it is gone, and with it all reason to go on."""
        try:
            return os.write(self._writer, part)
        except BlockingIOError:
            return 0
        except OSError:
            self._hang_up()
            return -1

    def _hang_up(self) -> None:
        assert self._loop is not None
        self._ended = True
        self._out.clear()
        self._frames.clear()
        self._backlog.clear()
        self._finish()

    def _hold(self, parts: list[Part]) -> None:
        for part in parts:
            self._backlog.append(memoryview(part))
            self._held += len(part)
        if self._held > self._high and not self.congested:
            self.congested = True
            if self._loop is not None and not self._regular:
                self._loop.remove_reader(self._reader)
                self._look_for_end()

    def _look_for_end(self) -> None:
        """While we don't read, we don't see that the input has ended. The grace begins all the same."""
        if not self.congested or self._ended or self._loop is None:
            return
        poll = select.poll()
        poll.register(self._reader, _HANG_UP)
        if poll.poll(0):
            self._loop.call_later(self._engine.limits.eof_grace_seconds, self._give_up_unread)
        else:
            self._loop.call_later(RETRY_SECONDS, self._look_for_end)

    def _give_up_unread(self) -> None:
        if self.congested and not self._ended:
            self._ended = True
            self._frames.clear()
            self._give_up()

    def _writable(self) -> None:
        backlog, loop = self._backlog, self._loop
        assert loop is not None
        while backlog:
            part = backlog[0]
            written = self._write(part)
            if written < 0:
                return
            self._held -= written
            if written < len(part):
                backlog[0] = part[written:]
                return
            backlog.popleft()
        loop.remove_writer(self._writer)
        if self.congested:
            self._relieve(loop)
        if self._ended:
            self._check_drained()

    def _relieve(self, loop: AbstractEventLoop) -> None:
        """The peer reads again: handle what waited, start what was parked, read on."""
        self.congested = False
        frames, self._frames = list(self._frames), deque()
        self._take(frames)
        if not self.congested:
            self._engine.executor.settle()
            if not self._ended and not self._regular:
                loop.add_reader(self._reader, self._readable)

    def _grow(self, fd: int) -> None:
        if fd not in self._grown:
            self._grown.add(fd)
            grow(fd)
