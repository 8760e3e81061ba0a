"""Runs `async def` tests."""

from __future__ import annotations

import asyncio
from inspect import iscoroutinefunction

import pytest

WAIT_SECONDS = 120.0


def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test of this folder that is a coroutine."""
    if not iscoroutinefunction(pyfuncitem.function):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    asyncio.run(asyncio.wait_for(pyfuncitem.function(**arguments), WAIT_SECONDS))
    return True
