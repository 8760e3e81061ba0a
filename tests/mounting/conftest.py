"""Async tests run on a loop of their own; no test uses the era that another one remembered for the same port."""

from __future__ import annotations

from inspect import iscoroutinefunction, signature

import pytest

from .gateway import run


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    test = pyfuncitem.obj
    if not iscoroutinefunction(test):
        return None
    given = {name: pyfuncitem.funcargs[name] for name in signature(test).parameters}
    run(lambda: test(**given))
    return True


@pytest.fixture(autouse=True)
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longshore.client.negotiate._known", {})
