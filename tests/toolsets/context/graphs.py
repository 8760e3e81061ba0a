"""Stores for the tests, with a clock that the tests set."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from longshore.toolsets.context.place import is_address
from longshore.toolsets.context.postgres import PostgresDatabase
from longshore.toolsets.context.records import NewItem, NewSource, Query
from longshore.toolsets.context.sqlite_file import SqliteFile
from longshore.toolsets.context.store import Store, StoreLimits
from services import PostgresServer

ME = NewSource(actor="tester")


class Clock:
    """Microseconds that pass one by one."""

    def __init__(self, now: int = 1_000) -> None:
        self.now = now

    def __call__(self) -> int:
        self.now += 1
        return self.now


@contextmanager
def postgres_place(server: PostgresServer) -> Iterator[str]:
    """The address of a schema that is not there yet, and not any more afterwards."""
    name = f"test_{uuid4().hex}"
    yield f"{server.url}?schema={name}"
    server.run(f"DROP SCHEMA IF EXISTS {name} CASCADE")


@contextmanager
def opened(
    place: str | Path, *, clock: Any = None, limits: StoreLimits | None = None, **options: Any
) -> Iterator[Store]:
    more = {} if clock is None else {"clock": clock}
    engine = PostgresDatabase if is_address(str(place)) else SqliteFile
    store = Store(engine(str(place), **options), limits=limits or StoreLimits(), **more)
    try:
        yield store
    finally:
        store.close()


def fact(name: str, text: str = "", **fields: Any) -> NewItem:
    return NewItem(kind="fact", name=name, text=text, **fields)


def names(store: Store, text: str, **fields: Any) -> list[str]:
    """The names of the hits of a query."""
    return [hit.node.name for hit in store.query(Query(text=text, **fields)).hits]


def texts(store: Store, node: int, **moment: Any) -> list[str]:
    """A node's texts at a moment, sorted."""
    from longshore.toolsets.context.records import Moment

    return sorted(o.text for o in store.observations(node, Moment(**moment)))
