"""A wire to PostgreSQL that is cut at a commit."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal


class CutWire:
    """Carries bytes both ways. `cut` says what is lost of the next commit: the request, or only its answer."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.cut: Literal["", "request", "answer"] = ""
        self.is_dead_after = False
        """Whether nobody can connect after the cut."""
        self._dead = False
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self._dead:
                client.close()
                continue
            server = socket.create_connection(("127.0.0.1", self._target))
            for ends in ((client, server), (server, client)):
                thread = threading.Thread(target=self._carry, args=ends)
                self._threads.append(thread)
                thread.start()

    def _carry(self, source: socket.socket, target: socket.socket) -> None:
        with source:
            try:
                while data := source.recv(1 << 16):
                    if self.cut and b"COMMIT\0" in data and data[:1] == b"Q":
                        lost, self.cut = self.cut, ""
                        self._dead = self.is_dead_after
                        if lost == "answer":
                            source.shutdown(socket.SHUT_WR)  # the client sees the end before the answer
                            target.sendall(data)
                        break
                    target.sendall(data)
            except OSError:
                pass
            for end in (source, target):
                try:
                    end.shutdown(socket.SHUT_WR)
                except OSError:
                    pass

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(30)


@contextmanager
def cut_wire(port: int) -> Iterator[CutWire]:
    wire = CutWire(port)
    try:
        yield wire
    finally:
        wire.close()
