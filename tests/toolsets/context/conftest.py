from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from longshore.toolsets.context.store import Store
from services import PostgresServer, start_postgres

from .graphs import Clock, opened, postgres_place


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "context.db"


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    with start_postgres() as server:
        yield server


@pytest.fixture
def postgres_url(postgres: PostgresServer) -> Iterator[str]:
    """The address of an empty store."""
    with postgres_place(postgres) as url:
        yield url


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, path: Path) -> str:
    """An empty place for a store, on each of the engines."""
    return str(path) if request.param == "sqlite" else request.getfixturevalue("postgres_url")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(place: str, clock: Clock) -> Iterator[Store]:
    """A store whose index is in order at the end of each test."""
    with opened(place, clock=clock) as made:
        yield made
        assert made.check() == []
