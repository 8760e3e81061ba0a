"""The stores that several processes can share, and a pair of processes on each."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from services import RedisServer

from .processes import Nursery, Process, Site, site

STORES = ("sqlite", "redis")


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    made = Nursery()
    yield made
    made.end()


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path_factory.mktemp("redis"), "--databases", "1000")
    server.start()
    yield server
    server.stop()


_databases = itertools.count()


def make_url(kind: str, folder: Path, request: pytest.FixtureRequest) -> str:
    """A store that nobody has used."""
    if kind == "sqlite":
        return f"sqlite:///{folder}/sessions.db"
    return request.getfixturevalue("redis_server").url.removesuffix("0") + str(next(_databases))


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return make_url(request.param, tmp_path, request)


@pytest.fixture(params=STORES, scope="session")
def lasting(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, nursery: Nursery
) -> Iterator[Site]:
    """Two processes for all tests that leave them as they are."""
    folder = tmp_path_factory.mktemp("lasting")
    with site(nursery, make_url(request.param, folder, request), folder) as made:
        made.start(2)
        yield made


@pytest.fixture
def fresh(nursery: Nursery, store: str, tmp_path: Path) -> Iterator[Site]:
    """Processes for one test, which may do to them what it likes."""
    with site(nursery, store, tmp_path) as made:
        yield made


@pytest.fixture
def pair(lasting: Site) -> Iterator[tuple[Process, Process]]:
    a, b = lasting.processes
    yield a, b
    a.close_connections()
    b.close_connections()
    assert a.alive and b.alive
