"""The channel to a child process, over its pipes."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Callable, Sequence
from functools import partial
from typing import final

from longshore.client.channel import Channel, ChannelEvents, FrameInfo, TransportOptions
from longshore.client.child_process import ChildProcess, spawn
from longshore.errors import ConnectionLost
from longshore.wire.framing import Framer, TooLong

TAIL_BYTES = 24 << 10
TAIL_LINES = 20
"""The part of a server's stderr that is kept: enough for the longest traceback, not for a log."""
_EXIT_SECONDS = 1.0
"""Time to wait for the exit code once the output has ended."""
_DRAIN_SECONDS = 0.3
"""Time to read on after the process has ended: another process may hold the pipe open forever."""
_READ_BYTES = 64 << 10
"""The size of a pipe. asyncio allocates four times as much for each read: a third of the cost of a call."""
_IGNORED_BYTES = 1 << 20
"""Output that is read and ignored after the end, so that a server can finish writing. Then reading stops."""


@final
class StdioChannel(Channel):
    """Starts a server and exchanges messages with it, one per line."""

    def __init__(self, command: Sequence[str], events: ChannelEvents, options: TransportOptions) -> None:
        super().__init__(events)
        self.label = shlex.join(command)
        self._command, self._env, self._cwd = list(command), options.env, options.cwd
        self._limit = options.limits.frame_bytes
        self._framer = Framer(self._limit)
        self._stderr = bytearray()
        self._ignored = 0
        self._child: ChildProcess | None = None
        self._input: asyncio.WriteTransport | None = None
        self._pipes: list[asyncio.BaseTransport] = []
        """Standard output, standard error, input: as far as they are connected."""
        self._ends: list[asyncio.Future[None]] = []
        """Done when these are closed."""
        self._lost = False
        self._ready = asyncio.Event()
        self._watching: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None

    async def open(self) -> None:
        self._child = child = spawn(self._command, self._env, self._cwd)
        self.label = f"{self.label} (pid {child.pid})"
        loop = asyncio.get_running_loop()
        self._ends = [loop.create_future() for _ in range(3)]
        output_ended, errors_ended, input_ended = self._ends
        unused = [stdin, stdout, stderr] = list(child.pipes)
        try:
            for pipe, take, ended in ((stdout, self._take, output_ended), (stderr, self._take_stderr, errors_ended)):
                unused.remove(pipe)
                reader, _ = await loop.connect_read_pipe(partial(_Output, take, ended), pipe)
                if hasattr(reader, "max_size"):  # asyncio's own; other loops have theirs
                    setattr(reader, "max_size", _READ_BYTES)  # noqa: B010  (it is not among what the type tells)
                self._pipes.append(reader)
            unused.remove(stdin)
            self._input, _ = await loop.connect_write_pipe(lambda: _Input(self, input_ended), stdin)
            self._pipes.append(self._input)
        finally:
            for pipe in unused:  # cancelled half-way
                pipe.close()
        self._watching = loop.create_task(self._watch(child))

    # -- both ways

    def send(self, frame: bytes, info: FrameInfo) -> None:
        if self._input is not None and not self._lost and self._closing is None:
            self._input.write(frame + b"\n")
        elif info.id is not None:
            self.events.on_failure(info.id, ConnectionLost("the connection is closed", unsent=True))

    async def ready(self) -> None:
        while self.congested and not self._lost and self._closing is None:
            await self._ready.wait()

    def pause(self) -> None:
        """The pipe is full."""
        self.congested = True
        self._ready.clear()

    def resume(self) -> None:
        self.congested = False
        self._ready.set()

    def _take(self, chunk: bytes) -> None:
        if self._lost or self._closing is not None:
            self._ignored += len(chunk)
            if self._ignored > _IGNORED_BYTES and isinstance(self._pipes[0], asyncio.ReadTransport):
                self._pipes[0].pause_reading()
            return
        too_long = False
        for frame in self._framer.feed(chunk):
            if isinstance(frame, TooLong):
                too_long = True
            elif not self._lost and not too_long:
                self.events.on_frame(bytes(frame))
        if too_long or self._framer.overlong:
            self._end_with(ConnectionLost(f"it sent a message of more than {self._limit:,} bytes"))

    def _take_stderr(self, chunk: bytes) -> None:
        self._stderr += chunk
        if len(self._stderr) > 2 * TAIL_BYTES:
            del self._stderr[:-TAIL_BYTES]

    def stderr_tail(self) -> str:
        text = bytes(self._stderr[-TAIL_BYTES:]).decode("utf-8", "replace")
        return "\n".join(text.splitlines()[-TAIL_LINES:])

    # -- the end

    @property
    def ended(self) -> bool:
        return self._child is not None and self._child.ended.done()

    async def _watch(self, child: ChildProcess) -> None:
        """Report the end of the process and its output, or of its input."""
        output_ended, _, input_ended = self._ends
        await asyncio.wait((child.ended, output_ended, input_ended), return_when=asyncio.FIRST_COMPLETED)
        if not child.ended.done():
            await asyncio.wait((child.ended,), timeout=_EXIT_SECONDS)
        if child.ended.done():
            await asyncio.wait(self._ends[:2], timeout=_DRAIN_SECONDS)
        which = "output" if output_ended.done() else "input"
        self._end_with(ConnectionLost(child.how_it_ended() or f"it closed its {which}"))

    def _end_with(self, problem: ConnectionLost) -> None:
        if not self._lost and self._closing is None:
            self._lost = True
            self._ready.set()
            self.events.on_lost(problem)

    async def close(self) -> None:
        if self._child is None:
            return
        if self._closing is None:
            self._ready.set()
            self._closing = asyncio.get_running_loop().create_task(self._close(self._child))
            self._closing.add_done_callback(self._closed)
        await asyncio.shield(self._closing)

    def _closed(self, closing: asyncio.Task[None]) -> None:
        """Kill the child if the task was cancelled before its first step, as at the end of the loop."""
        if closing.cancelled() and self._child is not None:
            self._child.kill()
            self._close_pipes()

    async def _close(self, child: ChildProcess) -> None:
        try:
            if self._watching is not None:
                self._watching.cancel()
            if self._input is not None and not self._input.is_closing():
                self._input.abort()  # unread input stays unread
            await child.end()
        finally:
            self._close_pipes()
        if self._pipes:
            await asyncio.wait(self._ends[: len(self._pipes)], timeout=_DRAIN_SECONDS)

    def _close_pipes(self) -> None:
        for pipe in self._pipes:
            if not pipe.is_closing():
                pipe.close()


@final
class _Output(asyncio.Protocol):
    """Reads a pipe of the child's."""

    def __init__(self, take: Callable[[bytes], None], ended: asyncio.Future[None]) -> None:
        self._take, self._ended = take, ended

    def data_received(self, data: bytes) -> None:
        self._take(data)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the name is asyncio's
        if not self._ended.done():
            self._ended.set_result(None)


@final
class _Input(asyncio.BaseProtocol):
    """Writes to the child's input."""

    def __init__(self, channel: StdioChannel, closed: asyncio.Future[None]) -> None:
        self._channel, self._closed = channel, closed

    def pause_writing(self) -> None:
        self._channel.pause()

    def resume_writing(self) -> None:
        self._channel.resume()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the name is asyncio's
        self._channel.resume()
        if not self._closed.done():
            self._closed.set_result(None)
