"""The three kinds of store, Redis on uvloop and the others on asyncio's loop."""

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
    if kind == "memory":
        return MemoryPlace()
    if kind == "sqlite":
        return SqlitePlace(request.getfixturevalue("tmp_path"))
    place = RedisPlace(request.getfixturevalue("redis_url"), fast=True)
    run(place.empty())
    return place


@pytest.fixture(params=["memory", "sqlite", "redis"])
def place(request: pytest.FixtureRequest) -> Place:
    return _make(request.param, request)


@pytest.fixture(params=["sqlite", "redis"])
def shared_place(request: pytest.FixtureRequest) -> Place:
    return _make(request.param, request)


@pytest.fixture
def sqlite_path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"
