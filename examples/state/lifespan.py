"""A database that is opened before the first call and closed when the process ends."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock

from longshore import Context, Server


@dataclass
class Database:
    """One connection, which threads use one after the other."""

    connection: sqlite3.Connection
    lock: Lock = field(default_factory=Lock)


@contextmanager
def open_database(_: Server) -> Iterator[Database]:
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    connection.execute("CREATE TABLE note (text TEXT)")
    try:
        yield Database(connection)
    finally:
        connection.close()


app = Server("notes", lifespan=open_database)


@app.tool
def add_note(text: str, ctx: Context[Database]) -> int:
    """Add a note, and return how many there are."""
    database = ctx.lifespan
    with database.lock:
        database.connection.execute("INSERT INTO note VALUES (?)", (text,))
        return int(database.connection.execute("SELECT count(*) FROM note").fetchone()[0])


if __name__ == "__main__":
    app.run()
