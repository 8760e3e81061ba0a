"""The channel to a child process, over its pipes."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import IO, final

from longshore.client.channel import CLIENT_LIMITS, About, Channel
from longshore.client.child import Child, spawn
from longshore.errors import ConnectError, ConnectionLost
from longshore.limits import Limits
from longshore.wire.framing import Framer, TooLong

SAID_BYTES = 24 << 10
SAID_LINES = 20
"""What is kept of what a server complains: enough for a log line with the longest traceback, not for a log."""
_STORY_SECONDS = 1.0
"""How long an exit code is waited for once the output has ended."""
_DRAIN_SECONDS = 0.3
"""How long output is read on after the process has ended: somebody else may hold the pipe open for ever."""
_READ_BYTES = 64 << 10
"""What a pipe holds. asyncio makes room for four times as much, mapped anew each time: a third of what a call costs."""
_USELESS_BYTES = 1 << 20
"""What is read on when nobody listens any more, so that a server can finish what it was saying. More is a flood."""


@final
class StdioChannel(Channel):
    """Starts a server, one message a line."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        limits: Limits = CLIENT_LIMITS,
    ) -> None:
        super().__init__()
        self.where = shlex.join(command)
        self._command, self._env, self._cwd = list(command), env, cwd
        self._framer = Framer(limits.frame_bytes)
        self._limit = limits.frame_bytes
        self._said = bytearray()
        self._useless = 0
        self._child: Child | None = None
        self._input: asyncio.WriteTransport | None = None
        self._output: asyncio.ReadTransport | None = None
        self._starting = asyncio.Lock()
        self._unused: list[IO[bytes]] = []
        """Pipes that the loop has not taken yet: a start may be cancelled half-way."""
        self._pipes: list[asyncio.BaseTransport] = []
        self._open_pipes: list[asyncio.Future[None]] = []
        self._lost = False
        self._ready = asyncio.Event()
        self._watching: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None

    async def open(self) -> None:
        async with self._starting:
            await self._start()

    async def _start(self) -> None:
        try:
            self._child = child = spawn(self._command, self._env, self._cwd)
        except ConnectError as problem:
            raise problem.at(self.where) from None
        self.where = f"{self.where} (pid {child.pid})"
        stdin, stdout, stderr = self._unused = list(child.pipes)
        loop = asyncio.get_running_loop()
        self._output, output_ended = await self._read_pipe(stdout, self._take)
        await self._read_pipe(stderr, self._complain)
        gone = loop.create_future()
        self._open_pipes.append(gone)
        self._unused.remove(stdin)
        transport, _ = await loop.connect_write_pipe(lambda: _Input(self, gone), stdin)
        self._input = transport
        self._pipes.append(transport)
        self._watching = loop.create_task(self._watch(child, output_ended, gone))

    async def _read_pipe(
        self, pipe: IO[bytes], take: Callable[[bytes], None]
    ) -> tuple[asyncio.ReadTransport, asyncio.Future[None]]:
        loop = asyncio.get_running_loop()
        ended = loop.create_future()
        self._unused.remove(pipe)
        transport, _ = await loop.connect_read_pipe(lambda: _Output(take, ended), pipe)
        if hasattr(transport, "max_size"):  # asyncio's own; other loops have theirs
            setattr(transport, "max_size", _READ_BYTES)  # noqa: B010  (it is not among what the type tells)
        self._pipes.append(transport)
        self._open_pipes.append(ended)
        return transport, ended

    # -- both ways

    def send(self, frame: bytes, about: About) -> None:
        if self._input is None or self._lost or self._closing is not None:
            if about.id is not None:
                self.fail(about.id, ConnectionLost("the connection is closed", unsent=True))
            return
        self._input.write(frame + b"\n")

    async def ready(self) -> None:
        while self.congested and not self._lost and self._closing is None:
            await self._ready.wait()

    def pause(self) -> None:
        """For the pipe: it takes no more for now."""
        self.congested = True
        self._ready.clear()

    def resume(self) -> None:
        self.congested = False
        self._ready.set()

    def _take(self, chunk: bytes) -> None:
        if self._lost or self._closing is not None:
            self._pass_over(chunk)
            return
        for frame in self._framer.feed(chunk):
            if isinstance(frame, TooLong):
                self._end_too_long()
            elif not self._lost:
                self.hear(bytes(frame))
        if self._framer.overlong:
            self._end_too_long()

    def _end_too_long(self) -> None:
        self._end_with(ConnectionLost(f"it sent a message of more than {self._limit:,} bytes"))

    def _pass_over(self, chunk: bytes) -> None:
        self._useless += len(chunk)
        if self._useless > _USELESS_BYTES and self._output is not None:
            self._output.pause_reading()

    def _complain(self, chunk: bytes) -> None:
        self._said += chunk
        if len(self._said) > 2 * SAID_BYTES:
            del self._said[:-SAID_BYTES]

    def said(self) -> str:
        text = bytes(self._said[-SAID_BYTES:]).decode("utf-8", "replace")
        return "\n".join(text.splitlines()[-SAID_LINES:])

    # -- the end

    @property
    def ended(self) -> bool:
        return self._child is not None and self._child.ended.done()

    async def _watch(self, child: Child, output_ended: asyncio.Future[None], input_gone: asyncio.Future[None]) -> None:
        """Tell when it is gone: when it has ended and its output too, or nearly so, or when nothing can reach it."""
        await asyncio.wait((child.ended, output_ended, input_gone), return_when=asyncio.FIRST_COMPLETED)
        if not child.ended.done():
            await asyncio.wait((child.ended,), timeout=_STORY_SECONDS)
        if child.ended.done():
            await asyncio.wait(self._open_pipes[:2], timeout=_DRAIN_SECONDS)
        which = "output" if output_ended.done() else "input"
        self._end_with(ConnectionLost(child.story() or f"it closed its {which}"))

    def _end_with(self, problem: ConnectionLost) -> None:
        if self._lost or self._closing is not None:
            return
        self._lost = True
        self._ready.set()
        self.lose(problem.at(self.where, self.said()))

    async def close(self) -> None:
        if self._child is None:
            return
        if self._closing is None:
            self._ready.set()
            self._closing = asyncio.get_running_loop().create_task(self._close(self._child))
            self._closing.add_done_callback(self._closed)
        await asyncio.shield(self._closing)

    def _closed(self, closing: asyncio.Task[None]) -> None:
        """A task that is cancelled before its first step, as where the loop ends, has done nothing at all."""
        if closing.cancelled() and self._child is not None:
            self._child.kill()
            self._close_pipes()

    async def _close(self, child: Child) -> None:
        async with self._starting:
            for file in self._unused:
                file.close()
        try:
            if self._watching is not None:
                self._watching.cancel()
            if self._input is not None and not self._input.is_closing():
                self._input.abort()  # what it has not read by now, it will not
            await child.end()
        finally:
            self._close_pipes()
        if self._open_pipes:
            await asyncio.wait(self._open_pipes, timeout=_DRAIN_SECONDS)

    def _close_pipes(self) -> None:
        for pipe in self._pipes:
            if not pipe.is_closing():
                pipe.close()


@final
class _Output(asyncio.Protocol):
    """A pipe of the child's that we read."""

    def __init__(self, take: Callable[[bytes], None], ended: asyncio.Future[None]) -> None:
        self._take, self._ended = take, ended

    def data_received(self, data: bytes) -> None:
        self._take(data)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the name is asyncio's
        if not self._ended.done():
            self._ended.set_result(None)


@final
class _Input(asyncio.BaseProtocol):
    """The child's input. That it is broken shows at its other end, too."""

    def __init__(self, channel: StdioChannel, gone: asyncio.Future[None]) -> None:
        self._channel, self._gone = channel, gone

    def pause_writing(self) -> None:
        self._channel.pause()

    def resume_writing(self) -> None:
        self._channel.resume()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the name is asyncio's
        self._channel.resume()
        if not self._gone.done():
            self._gone.set_result(None)
