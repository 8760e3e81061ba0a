"""Runs `async def` tests, and lets no test use the era that another one remembered."""

from __future__ import annotations

from inspect import iscoroutinefunction

import pytest

from client.http.scripted import run as run_bounded
from client.scripted import run


def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test of this folder that is a coroutine, and see that it leaves nothing; over HTTP, no task."""
    if not iscoroutinefunction(pyfuncitem.function):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    in_http = pyfuncitem.path.parent.name == "http"
    (run_bounded if in_http else run)(lambda: pyfuncitem.function(**arguments))
    return True


@pytest.fixture(autouse=True)
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longshore.client.negotiate._known", {})


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rungs of the ladder by which a child is ended are as high as before, only nearer to each other."""
    for name in ("EOF_SECONDS", "TERM_SECONDS"):
        monkeypatch.setattr(f"longshore.client.child_process.{name}", 0.2)
