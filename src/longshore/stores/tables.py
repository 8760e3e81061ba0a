"""The store's operations as SQL, inside whatever transaction is open. Runs on the committer's thread."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import final

from longshore.stores.names import family_of_prefix, to_bytes, to_text

MESSAGE_SECONDS = 60.0
"""How long a message stays for a process that is slow to read it."""

SWEPT_ENTRIES, SWEPT_LOGS = 1000, 100
"""Expired rows that one sweep deletes at most, so that nobody waits long for the lock."""

LAST_POSITION = (1 << 63) - 1
"""The largest integer of SQLite. Clients name positions, and may name a larger one."""

READ_MESSAGES = 1000
"""Messages read at once."""


@final
class Tables:
    """One connection and a clock. `posted` is set when a message was written, for the one who tells the others."""

    def __init__(self, connection: sqlite3.Connection, clock: Callable[[], float]) -> None:
        self.connection = connection
        self._execute = connection.execute
        self._clock = clock
        self.posted = False

    def get(self, key: str) -> bytes | None:
        found = self._execute("SELECT value FROM entries WHERE key = ? AND expires > ?", (to_bytes(key), self._clock()))
        row = found.fetchone()
        return row[0] if row else None

    def set(self, key: str, value: bytes, seconds: float) -> None:
        self._execute(
            "INSERT INTO entries VALUES (?, ?, ?)"
            " ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires = excluded.expires",
            (to_bytes(key), value, self._clock() + seconds),
        )

    def add(self, key: str, value: bytes, seconds: float) -> bool:
        now = self._clock()
        done = self._execute(
            "INSERT INTO entries VALUES (?, ?, ?)"
            " ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires = excluded.expires"
            " WHERE entries.expires <= ?",
            (to_bytes(key), value, now + seconds, now),
        )
        return done.rowcount == 1

    def swap(self, key: str, old: bytes, new: bytes, seconds: float) -> bool:
        now = self._clock()
        done = self._execute(
            "UPDATE entries SET value = ?, expires = ? WHERE key = ? AND expires > ? AND value = ?",
            (new, now + seconds, to_bytes(key), now, old),
        )
        return done.rowcount == 1

    def touch(self, key: str, seconds: float) -> bool:
        now = self._clock()
        done = self._execute(
            "UPDATE entries SET expires = ? WHERE key = ? AND expires > ?", (now + seconds, to_bytes(key), now)
        )
        return done.rowcount == 1

    def delete(self, *keys: str) -> None:
        for key in map(to_bytes, keys):
            self._execute("DELETE FROM entries WHERE key = ?", (key,))
            self._delete_log(key)

    def find(self, prefix: str) -> dict[str, bytes]:
        found = self._execute(
            "SELECT key, value FROM entries WHERE key >= ? AND key < ? AND expires > ? ORDER BY expires",
            (*_range(prefix), self._clock()),
        )
        return {to_text(key): value for key, value in found}

    def count(self, family: str) -> int:
        # With the expired ones: so the key's index alone can count, and no row is read.
        row = self._execute("SELECT count(*) FROM entries WHERE key >= ? AND key < ?", _range(family)).fetchone()
        return int(row[0])

    def append(self, key: str, value: bytes, seconds: float, most: int) -> int:
        log, position = self._next_position(to_bytes(key), seconds)
        self._execute("INSERT INTO events VALUES (?, ?, ?)", (log, position, value))
        self._execute("DELETE FROM events WHERE log = ? AND position <= ?", (log, position - max(most, 1)))
        return position

    def read(self, key: str, after: int, most: int) -> list[tuple[int, bytes]]:
        return self._execute(
            "SELECT position, events.value FROM logs JOIN events ON events.log = logs.id"
            " WHERE key = ? AND expires > ? AND position > ? ORDER BY position LIMIT ?",
            (to_bytes(key), self._clock(), min(max(after, 0), LAST_POSITION), max(most, 0)),
        ).fetchall()

    def post(self, topic: str, message: bytes) -> None:
        row = (to_bytes(topic), message, self._clock())
        self._execute("INSERT INTO messages (topic, body, sent) VALUES (?, ?, ?)", row)
        self.posted = True

    def newest(self) -> int:
        """The id of the last message that was ever posted."""
        row = self._execute("SELECT seq FROM sqlite_sequence WHERE name = 'messages'").fetchone()
        return row[0] if row else 0

    def messages(self, after: int) -> list[tuple[int, bytes, bytes]]:
        return self._execute(
            "SELECT id, topic, body FROM messages WHERE id > ? ORDER BY id LIMIT ?", (after, READ_MESSAGES)
        ).fetchall()

    def check(self) -> None:
        self.set("longshore-check", b"", MESSAGE_SECONDS)

    def litter(self) -> bool:
        """Whether there is anything to sweep. Reads only, so it disturbs nobody."""
        now = self._clock()
        row = self._execute(
            "SELECT EXISTS (SELECT 1 FROM entries WHERE expires <= ?)"
            " OR EXISTS (SELECT 1 FROM logs WHERE expires <= ?)"
            " OR EXISTS (SELECT 1 FROM messages WHERE sent <= ?)",
            (now, now, now - MESSAGE_SECONDS),
        ).fetchone()
        return bool(row[0])

    def sweep(self) -> None:
        """Delete what has expired, or some of it if it is much."""
        now = self._clock()
        self._execute(
            "DELETE FROM entries WHERE rowid IN (SELECT rowid FROM entries WHERE expires <= ? LIMIT ?)",
            (now, SWEPT_ENTRIES),
        )
        expired = self._execute("SELECT key FROM logs WHERE expires <= ? LIMIT ?", (now, SWEPT_LOGS)).fetchall()
        for (key,) in expired:
            self._delete_log(key)
        self._execute("DELETE FROM messages WHERE sent <= ?", (now - MESSAGE_SECONDS,))

    def _next_position(self, key: bytes, seconds: float) -> tuple[int, int]:
        """The row of a log, made if need be, and the position that now is its last."""
        now = self._clock()
        row = self._execute("SELECT id, last FROM logs WHERE key = ? AND expires > ?", (key, now)).fetchone()
        if row:
            log, position = row[0], row[1] + 1
            self._execute("UPDATE logs SET last = ?, expires = ? WHERE id = ?", (position, now + seconds, log))
            return log, position
        self._delete_log(key)  # it may have expired and still be there
        made = self._execute("INSERT INTO logs (key, last, expires) VALUES (?, 1, ?)", (key, now + seconds))
        assert made.lastrowid is not None
        return made.lastrowid, 1

    def _delete_log(self, key: bytes) -> None:
        self._execute("DELETE FROM events WHERE log = (SELECT id FROM logs WHERE key = ?)", (key,))
        self._execute("DELETE FROM logs WHERE key = ?", (key,))


def _range(prefix: str) -> tuple[bytes, bytes]:
    """The first key with a prefix, and the first after all of them."""
    family_of_prefix(prefix)
    low = to_bytes(prefix)
    return low, low[:-1] + bytes((low[-1] + 1,))  # no byte of UTF-8 is 255
