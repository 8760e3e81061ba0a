"""How processes on one file wake each other: a datagram to every socket in a folder beside it.

A datagram says only that there is something to read. If it can't be sent or the folder can't be used, nothing breaks:
everybody also looks now and then: every ten seconds, or once a second where no nudge can come.
"""

from __future__ import annotations

import os
import socket
from typing import final

SUFFIX = ".sock"
FOLDER_MODE = 0o700
NUDGE = b"!"
LONGEST = 100
"""Bytes that the address of a Unix socket holds, with some room. A folder with a longer path is named by descriptor."""


@final
class Nudges:
    """Used on one thread. `open` may be called again, for as long as we are `lost`."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._name = os.urandom(6).hex() + SUFFIX
        self._inbox: socket.socket | None = None
        self._outbox: socket.socket | None = None
        self._descriptor = -1

    @property
    def _path(self) -> str:
        return os.path.join(self._folder, self._name)

    def _address(self, name: str) -> str:
        path = os.path.join(self._folder, name)
        if len(os.fsencode(path)) <= LONGEST:
            return path
        if self._descriptor < 0 or os.fstat(self._descriptor).st_nlink == 0:  # it was removed and made anew
            self._close_descriptor()
            self._descriptor = os.open(self._folder, getattr(os, "O_PATH", 0) | os.O_DIRECTORY | os.O_CLOEXEC)
        return f"/proc/self/fd/{self._descriptor}/{name}"

    def _close_descriptor(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def open(self) -> int | None:
        """The descriptor that becomes readable when somebody nudges."""
        inbox = None
        try:
            os.makedirs(self._folder, FOLDER_MODE, exist_ok=True)
            inbox = _make_socket()
            inbox.bind(self._address(self._name))
        except OSError:
            if inbox is not None:
                inbox.close()
            return None
        self._inbox = inbox
        return inbox.fileno()

    def lost(self) -> bool:
        """Whether there is no socket of ours: it could not be made, or somebody removed it or the folder."""
        return self._inbox is None or not os.path.exists(self._path)

    def send(self) -> None:
        """Nudge all others, and remove the sockets of those who died."""
        try:
            names = os.listdir(self._folder)
        except OSError:
            return
        for name in names:
            if name.endswith(SUFFIX) and name != self._name:
                self._send_to(name)

    def drain(self) -> None:
        """Take all nudges that came: one look answers them all."""
        try:
            while self._inbox is not None and self._inbox.recv(len(NUDGE)):
                pass
        except OSError:
            pass

    def shut(self) -> None:
        """Close the inbox, and remove it."""
        if self._inbox is not None:
            self._inbox.close()
            self._inbox = None
            _remove(self._path)

    def close(self) -> None:
        self.shut()
        self._close_descriptor()
        if self._outbox is not None:
            self._outbox.close()
            self._outbox = None

    def _send_to(self, name: str) -> None:
        try:
            if self._outbox is None:
                self._outbox = _make_socket()
            self._outbox.sendto(NUDGE, self._address(name))
        except ConnectionRefusedError:
            _remove(os.path.join(self._folder, name))  # its process is gone; one that was too fast for us makes it anew
        except OSError:
            pass  # full: it has nudges enough; or gone meanwhile; or no descriptor is left: it looks by itself


def _make_socket() -> socket.socket:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    made.setblocking(False)
    return made


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass
