"""A watcher for changes in PostgreSQL: each commit that wrote something notifies a channel."""

from __future__ import annotations

import select
import socket
import threading
import time
from collections.abc import Callable
from typing import Any, Final, final

import psycopg

from longshore.backoff import Backoff
from longshore.errors import StoreError

BACKOFF: Final = Backoff(0.1, 5.0)
"""Pauses before a lost connection is made again."""


@final
class NotifiedWatcher:
    """A connection that listens. It is opened again when it is lost."""

    def __init__(self, connect: Callable[[], psycopg.Connection[Any]]) -> None:
        """`connect` returns a connection that listens already."""
        self._connect = connect
        self._connection: psycopg.Connection[Any] | None = connect()
        self._wake_reader, self._wake_writer = socket.socketpair()
        """A byte that `close` writes ends the wait of another thread."""
        self._lock = threading.Lock()
        self._is_waiting = False
        self._closed = threading.Event()

    def wait(self, seconds: float) -> bool:
        with self._lock:
            if self._closed.is_set():
                return False
            self._is_waiting = True
        try:
            return self._wait(time.monotonic() + seconds)
        finally:
            with self._lock:
                self._is_waiting = False
                if self._closed.is_set():
                    self._release()

    def close(self) -> None:
        with self._lock:
            if not self._closed.is_set():
                self._closed.set()
                if self._is_waiting:
                    self._wake_writer.send(b"\0")  # the waiting thread closes the connection
                else:
                    self._release()

    def _wait(self, deadline: float) -> bool:
        failures = 0
        while True:
            left = max(0.0, deadline - time.monotonic())
            if self._connection is None:
                try:
                    self._connection = self._connect()
                except StoreError:
                    failures += 1
                    if self._is_woken(min(BACKOFF.pause(failures), left)) or not left:
                        return False
                else:
                    return True  # changes of the meantime were not notified
            elif (is_notified := self._listen(self._connection, left)) is not None:
                return is_notified

    def _listen(self, connection: psycopg.Connection[Any], seconds: float) -> bool | None:
        """Return whether a notification has arrived; None if the connection was lost."""
        deadline = time.monotonic() + seconds
        try:
            while not _take_notifications(connection):
                left = deadline - time.monotonic()
                if left <= 0 or self._is_woken(left, connection.fileno()):
                    return False
            return True
        except (psycopg.Error, OSError):
            connection.close()
            self._connection = None
            return None

    def _is_woken(self, seconds: float, *others: int) -> bool:
        """Wait until `close` is called or data arrives; return whether it was `close`."""
        poll = select.poll()
        for each in (self._wake_reader.fileno(), *others):
            poll.register(each, select.POLLIN)
        return any(each == self._wake_reader.fileno() for each, _ in poll.poll(seconds * 1000))

    def _release(self) -> None:
        self._wake_reader.close()
        self._wake_writer.close()
        if self._connection is not None:
            self._connection.close()


def _take_notifications(connection: psycopg.Connection[Any]) -> bool:
    """Return whether notifications have arrived."""
    connection.pgconn.consume_input()
    found = False
    while connection.pgconn.notifies() is not None:
        found = True
    return found
