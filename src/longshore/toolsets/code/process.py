"""A Python process in the sandbox, which runs pieces of code one after the other and calls tools for them."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, Final, final

import msgspec
from msgspec import Raw, Struct, structs

from longshore.errors import LongshoreError, ToolError
from longshore.sandbox.launch import Launch
from longshore.server.inner_calls import InnerCalls
from longshore.toolsets.code import worker
from longshore.toolsets.terminal.command import Command, start_command
from longshore.wire.codec import INTERNAL_ERROR, INVALID_PARAMS, encode, error

MESSAGE_BYTES: Final = 16 << 20
"""One message of the code: a tool's arguments, or the pictures that it shows. As long as a message of a client's."""
END_SECONDS: Final = 1.0
"""From the end of its socket to the end of a process; the kernel takes some milliseconds."""
MOST_CALLS: Final = 64
"""Tool calls of one piece of code at once: as many as a server runs by default. No more messages are read then."""

CALLS_AT_ONCE: Final = 16
"""Calls of inline tools that are answered before others get a turn: a turn costs as much as three of them."""

Arguments = Callable[[str, Sequence[Raw], dict[str, Raw]], tuple[str, Raw]]
"""The name and the arguments of a tool call, from what the code wrote. Raises ToolError."""


class Media(Struct, frozen=True):
    """A picture or a sound that the code shows."""

    mime_type: str
    data: bytes


class Link(Struct, frozen=True, rename="camel"):
    """A link that the code shows."""

    uri: str
    name: str
    mime_type: str | None = None
    description: str | None = None
    size: int | None = None


class Message(Struct, frozen=True):
    """What the process sends: a tool call, a request for a resource, or the end of a run."""

    id: int = 0
    tool: str = ""
    args: list[Raw] = []
    kwargs: dict[str, Raw] = {}
    read: str = ""
    done: str = ""
    failed: bool = False
    media: list[Media] = []
    links: list[Link] = []


_read = msgspec.json.Decoder(Message).decode
_SOURCE: Final = worker.__file__


class ProcessEnded(LongshoreError):
    """The process of the code has ended, or sent what it may not."""


def command_of(descriptor: int) -> tuple[str, ...]:
    """The command that runs the worker: the interpreter of this server, without its packages."""
    interpreter: str = getattr(sys, "_base_executable", sys.executable)  # a virtual environment is not visible
    with open(_SOURCE, encoding="utf-8") as file:
        return (interpreter, "-I", "-S", "-c", file.read(), str(descriptor))


@final
class CodeProcess:
    """One process. `close` ends it and everything that its code has started."""

    def __init__(
        self, command: Command, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, roots: tuple[str, ...]
    ) -> None:
        self.command, self.roots = command, roots
        self._reader, self._writer = reader, writer
        self._runs = 0

    @property
    def is_alive(self) -> bool:
        return self.command.is_running and not self._reader.at_eof()

    def output_since(self, start: int) -> bytes:
        """What was printed from a position on, as far as it was not dropped."""
        output = self.command.output
        return output.read(output.skip_dropped(start), output.size)

    async def run(self, code: str, calls: InnerCalls, arguments: Arguments) -> Message:
        """Run a piece of code to its end, and answer its requests. Raises ProcessEnded."""
        self._runs += 1
        file = f"<code {self._runs}>" if self._runs > 1 else "<code>"
        self._write({"run": code, "file": file})
        answering = dict[asyncio.Task[None], int]()
        """The calls in progress, with their ids."""
        at_once = 0
        try:
            while True:
                message = await self._next()
                if message.done:
                    if message.done != file:
                        raise ProcessEnded("the code sent a message that only the server's own part may send")
                    self.command.read_rest()
                    for id in answering.values():
                        self._answer(id, error(id, INTERNAL_ERROR, "the code that made this call has ended"))
                    return message
                reply = _begin(message, calls, arguments)
                if isinstance(reply, bytes):
                    self._answer(message.id, reply)
                    await self._writer.drain()
                    at_once += 1
                    if at_once % CALLS_AT_ONCE == 0:
                        await asyncio.sleep(0)  # else code that calls fast keeps the loop from everybody
                    continue
                task = asyncio.ensure_future(self._answer_later(message.id, reply))
                answering[task] = message.id
                task.add_done_callback(lambda task: answering.pop(task, None))
                if len(answering) >= MOST_CALLS:
                    await asyncio.wait(answering, return_when=asyncio.FIRST_COMPLETED)
        except ConnectionError:
            raise await self._ended() from None
        finally:
            calls.close()
            for task in answering:
                task.cancel()

    async def close(self) -> None:
        """End the process at once."""
        self._writer.close()
        await self.command.end(0)
        await self.command.close()

    async def _next(self) -> Message:
        try:
            line = await self._reader.readuntil(b"\n")
        except asyncio.IncompleteReadError:
            raise await self._ended() from None
        except asyncio.LimitOverrunError:
            raise ProcessEnded(f"the code sent more than {MESSAGE_BYTES >> 20} MiB at once; send less") from None
        try:
            return _read(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError):
            raise ProcessEnded("the code sent a message that can't be read; call tools by tools.NAME(…) only") from None

    async def _ended(self) -> ProcessEnded:
        """The error for a process that is gone, with how it ended."""
        await self.command.wait(END_SECONDS)
        if self.command.is_running:
            return ProcessEnded("the code closed its connection to the server")
        by = f" by {self.command.signal}, as for too much memory" if self.command.signal == "SIGKILL" else ""
        return ProcessEnded(f"the process of the code ended{by}, with exit code {self.command.exit_code}")

    async def _answer_later(self, id: int, reply: Awaitable[bytes]) -> None:
        self._answer(id, await reply)
        with suppress(ConnectionError):  # whoever reads from the process says that it has ended
            await self._writer.drain()

    def _answer(self, id: int, reply: bytes) -> None:
        self._write({"id": id, "reply": Raw(reply)})

    def _write(self, message: dict[str, Any]) -> None:
        self._writer.write(encode(message) + b"\n")


def _begin(message: Message, calls: InnerCalls, arguments: Arguments) -> bytes | Awaitable[bytes]:
    if message.read:
        return calls.read_resource(message.read)
    try:
        return calls.call_tool(*arguments(message.tool, message.args, message.kwargs))
    except ToolError as problem:
        refused: bytes = error(message.id, INVALID_PARAMS, str(problem))
        return refused


async def start_process(launch: Callable[[tuple[str, ...]], Awaitable[Launch]], roots: tuple[str, ...]) -> CodeProcess:
    """Start a process by a launch for a command in some roots. Raises ToolError if it can't be started."""
    ours, theirs = socket.socketpair()
    try:
        with theirs:
            made = await launch(command_of(theirs.fileno()))
            try:
                passed = structs.replace(made, pass_fds=(*made.pass_fds, theirs.fileno()))
                command = start_command(passed, "code")
            except BaseException:
                made.close()
                raise
        reader, writer = await asyncio.open_unix_connection(sock=ours, limit=MESSAGE_BYTES)
    except BaseException:
        ours.close()
        raise
    return CodeProcess(command, reader, writer, roots)
