"""Messages between the processes that use one SQLite file.

A message is a row of a table. The process that writes one sends a datagram to the socket of each other process, in a
folder beside the file; a datagram says only that there is something to read. Where sockets can't be used, every
process polls once a second; else it polls every ten seconds, as a safety net.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import TypeAlias, final

from longshore.errors import StoreError
from longshore.stores.store import Listeners, OnMessage, Stop, to_text

POLL_SECONDS, IDLE_POLL_SECONDS = 1.0, 10.0
"""How often messages are looked for without a datagram: where none can come, and where they can."""

SUFFIX = ".sock"
FOLDER_MODE = 0o700
ADDRESS_BYTES = 100
"""Limit of a Unix socket address, with a margin. A folder with a longer path is addressed by descriptor."""

Collect: TypeAlias = Callable[[int | None], Awaitable[tuple[int, list[tuple[int, bytes, bytes]]]]]
"""Returns the id of the newest message, and the messages after an id (none for None): id, topic, body."""


@final
class Inbox:
    """The socket of this process, and datagrams to those of the others."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._name = os.urandom(6).hex() + SUFFIX
        self._socket: socket.socket | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def is_open(self) -> bool:
        """False if the socket could not be made, or if it or its folder was removed."""
        return self._socket is not None and os.path.exists(os.path.join(self._folder, self._name))

    def open(self, loop: asyncio.AbstractEventLoop, received: Callable[[], None]) -> None:
        """Make the socket, again if need be; `received` is called on the loop. Does nothing where that fails."""
        self.close()
        made = None
        try:
            os.makedirs(self._folder, FOLDER_MODE, exist_ok=True)
            made = _make_socket()
            with _address(self._folder, self._name) as address:
                made.bind(address)
            loop.add_reader(made, self._drain, received)
        except OSError:
            if made is not None:
                made.close()
            return
        self._socket, self._loop = made, loop

    def _drain(self, received: Callable[[], None]) -> None:
        """Read all datagrams: one look at the table answers them all."""
        try:
            while self._socket is not None and self._socket.recv(1):
                pass
        except OSError:
            pass
        received()

    def close(self) -> None:
        if self._socket is not None:
            if self._loop is not None and not self._loop.is_closed():
                self._loop.remove_reader(self._socket)
            self._socket.close()
            self._socket = None
            _remove(os.path.join(self._folder, self._name))

    def notify_others(self) -> None:
        """Send a datagram to every other process, and remove the sockets of dead ones. Runs on the store's thread."""
        try:
            names = [name for name in os.listdir(self._folder) if name.endswith(SUFFIX) and name != self._name]
            if not names:
                return
            sender = _make_socket()
        except OSError:
            return
        with sender:
            for name in names:
                self._notify(sender, name)

    def _notify(self, sender: socket.socket, name: str) -> None:
        try:
            with _address(self._folder, name) as address:
                sender.sendto(b"!", address)
        except ConnectionRefusedError:
            _remove(os.path.join(self._folder, name))  # its process has ended
        except OSError:
            pass  # full: that process has datagrams to read; or removed meanwhile; or no descriptor is left


@final
class Bus:
    """Delivers messages to the listeners of this process. Used on the event loop."""

    def __init__(self, inbox: Inbox, collect: Collect) -> None:
        self._inbox, self._collect = inbox, collect
        self._listeners = Listeners()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self._stale = False
        self._last: int | None = None

    async def listen(self, topic: str, on_message: OnMessage) -> Stop:
        newest, _ = await self._collect(None)
        if self._last is None:
            self._last = newest
        stop = self._listeners.add(topic, on_message)
        loop = asyncio.get_running_loop()
        if self._loop is not loop:  # the first listener, or the first one of a new loop
            self._inbox.close()
            self._loop, self._task = loop, None
            self._poll()
        return stop

    def wake(self) -> None:
        """Read new messages, after a post or a datagram."""
        if self._loop is None or self._loop is not asyncio.get_running_loop():
            return
        self._stale = True
        if self._task is None or self._task.done():
            self._task = self._loop.create_task(self._read())

    def close(self) -> None:
        self._listeners.clear()
        if self._timer is not None:
            self._timer.cancel()
        self._inbox.close()
        self._loop = None

    def _poll(self) -> None:
        """Look for messages, and repair the inbox, now and regularly.

        The period ends at a multiple of ten seconds: an idle process does all of its periodic work in one wake-up.
        """
        loop = self._loop
        if loop is None:
            return
        if not self._inbox.is_open:
            self._inbox.open(loop, self.wake)
        seconds = IDLE_POLL_SECONDS if self._inbox.is_open else POLL_SECONDS
        self._timer = loop.call_at((loop.time() // seconds + 1) * seconds, self._poll)
        self.wake()

    async def _read(self) -> None:
        """Deliver new messages. Listeners get MISSED if messages were deleted before this process read them."""
        while self._stale:
            self._stale = False
            last = self._last or 0
            try:
                newest, found = await self._collect(last)
            except StoreError:
                return  # closed, or the file can't be read: the next poll tries again
            if newest < last or (found and found[0][0] != last + 1) or (not found and newest > last):
                self._listeners.report_missed()
            self._last = found[-1][0] if found else newest
            self._listeners.deliver([(to_text(topic), body) for _, topic, body in found])
            self._stale = self._stale or self._last < newest


@contextmanager
def _address(folder: str, name: str) -> Generator[str]:
    path = os.path.join(folder, name)
    if len(os.fsencode(path)) <= ADDRESS_BYTES:
        yield path
        return
    descriptor = os.open(folder, getattr(os, "O_PATH", 0) | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{descriptor}/{name}"
    finally:
        os.close(descriptor)


def _make_socket() -> socket.socket:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    made.setblocking(False)
    return made


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass
