"""The three kinds of store, on asyncio's loop and on uvloop's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from services import start_redis

from .place import MemoryPlace, Place, RedisPlace, SqlitePlace, run


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with start_redis(tmp_path_factory.mktemp("redis")) as url:
        yield url


def _make(kind: str, request: pytest.FixtureRequest) -> Place:
    name, _, loop = kind.partition("-")
    fast = loop == "uvloop"
    if name == "memory":
        return MemoryPlace(fast)
    if name == "sqlite":
        return SqlitePlace(request.getfixturevalue("tmp_path"), fast)
    place = RedisPlace(request.getfixturevalue("redis_url"), fast)
    run(place.empty())
    return place


@pytest.fixture(params=["memory", "sqlite", "redis", "sqlite-uvloop", "redis-uvloop"])
def place(request: pytest.FixtureRequest) -> Place:
    return _make(request.param, request)


@pytest.fixture(params=["sqlite", "redis"])
def shared_place(request: pytest.FixtureRequest) -> Place:
    return _make(request.param, request)


@pytest.fixture
def sqlite_path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"
