"""The pytest plugin. Pytest loads it wherever Longshore is installed, so it imports nothing until it is used.

- `mcp_client`: a sync client of the server under test, in memory. `mcp_connect()`: an async one.
- `mcp_server`: the server under test. Override it, or set `longshore_server = server.py` in pytest's configuration.
- `mcp_answers`: answers to the server's questions. `mcp_surface(path)`: compares what it offers with a file.
- `@pytest.mark.mcp_era("modern", "legacy")`: once in each. `@pytest.mark.mcp_client(…)`: options of the client.
"""

from __future__ import annotations

import os
from argparse import ArgumentError
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from longshore.client.client import Client
    from longshore.client.sync import SyncClient
    from longshore.testing.answers import Answers

_NO_SERVER = """no server to test. Either name it in pytest's configuration:

    [tool.pytest.ini_options]
    longshore_server = "path/to/server.py"      # or "module:app"

or override the fixture, in conftest.py or beside the test:

    @pytest.fixture
    def mcp_server():
        return app"""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini(
        "longshore_server", "The MCP server under test: path/to/server.py[:name] or module[:name].", default=""
    )
    try:
        parser.getgroup("longshore").addoption(
            "--mcp-update",
            action="store_true",
            dest="longshore_mcp_update",
            help="Write the files that mcp_surface and assert_surface compare with.",
        )
    except (ValueError, ArgumentError):
        pass  # another plugin has an option of that name: update=True does the same


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "mcp_era(*eras): run a test of an MCP server once in each era or revision.")
    config.addinivalue_line("markers", "mcp_client(**options): options of the client that mcp_client opens.")
    if config.getoption("longshore_mcp_update", False):
        from longshore.testing import snapshot

        snapshot.updating = True
        config.add_cleanup(lambda: setattr(snapshot, "updating", False))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    mark = metafunc.definition.get_closest_marker("mcp_era")
    if mark is not None and "mcp_era" in metafunc.fixturenames:
        metafunc.parametrize("mcp_era", mark.args or ("modern", "legacy"))


@pytest.fixture
def mcp_era() -> str:
    """The era that clients ask for. `auto`: the newest that the server has."""
    return "auto"


@pytest.fixture
def mcp_server(pytestconfig: pytest.Config) -> Any:
    """The server under test: a `Server`, or any other target of `Client`."""
    target = pytestconfig.getini("longshore_server")
    if not target:
        pytest.fail(_NO_SERVER, pytrace=False)
    from longshore.errors import LongshoreError
    from longshore.loader import load_server

    try:
        return load_server(target, os.path.dirname(pytestconfig.inipath or "") or str(pytestconfig.rootpath))
    except LongshoreError as problem:
        pytest.fail(f"longshore_server = {target}: {problem}", pytrace=False)


@pytest.fixture
def _mcp_target(mcp_server: Any) -> Any:
    """The server without the calls, subscriptions and rate limits of earlier tests."""
    from longshore.app import Server

    if isinstance(mcp_server, Server):
        mcp_server.renew()
    return mcp_server


@pytest.fixture
def mcp_answers() -> Iterator[Answers]:
    """Answers to the server's questions: `mcp_answers.add(True)`. `mcp_answers.asked` has the questions."""
    from longshore.testing.answers import Answers

    answers = Answers()
    yield answers
    answers.verify()


@pytest.fixture
def _mcp_options(request: pytest.FixtureRequest, mcp_era: str) -> dict[str, Any]:
    options: dict[str, Any] = {"era": mcp_era}
    if "mcp_answers" in request.fixturenames:
        options["on_elicit"] = request.getfixturevalue("mcp_answers")
    for mark in reversed(list(request.node.iter_markers("mcp_client"))):
        options |= mark.kwargs
    return options


@pytest.fixture
def mcp_client(_mcp_target: Any, _mcp_options: dict[str, Any]) -> Iterator[SyncClient]:
    """A client of the server under test, open for the length of the test."""
    from longshore.client.sync import SyncClient

    with SyncClient(_mcp_target, **_mcp_options) as client:
        yield client


@pytest.fixture
def mcp_connect(_mcp_target: Any, _mcp_options: dict[str, Any]) -> Callable[..., AbstractAsyncContextManager[Client]]:
    """For async tests: `async with mcp_connect() as client`. Takes the options of `Client`."""
    from functools import partial

    from longshore.client.client import Client

    return partial(Client, _mcp_target, **_mcp_options)


@pytest.fixture
def mcp_surface(request: pytest.FixtureRequest, _mcp_target: Any, _mcp_options: dict[str, Any]) -> Callable[..., None]:
    """`mcp_surface("tests/surface.json")` fails if the server does not offer what the file says.

    The path is relative to pytest's root folder; the default is `surface.json` beside the test.
    """

    def compare(path: str | os.PathLike[str] | None = None, *, update: bool | None = None) -> None:
        __tracebackhide__ = True
        from longshore.client.sync import SyncClient
        from longshore.testing.snapshot import assert_surface

        own = request.path.parent / "surface.json"
        with SyncClient(_mcp_target, **_mcp_options) as client:
            assert_surface(client, own if path is None else request.config.rootpath / path, update=update)

    return compare
