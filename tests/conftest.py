"""What holds for all tests."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

from trusting import Trusting

# No example is too slow: the first one imports what the others use, on cores that others use too.
settings.register_profile("patient", settings.default, deadline=None)
settings.load_profile("patient")

# A shell starts what it runs in the background with these ignored, and every process that a test starts would inherit
# that: its Ctrl-C and Ctrl-\ would do nothing.
for each, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGQUIT, signal.SIG_DFL)):
    if signal.getsignal(each) is signal.SIG_IGN:
        signal.signal(each, usual)


def pytest_collection_finish() -> None:
    """The collector need not look at all tests again whenever one of them wants to know what it has left."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _a_cache_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> None:
    """No test finds what an earlier run has left, or leaves anything in the home of who runs it."""
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))
    os.environ["XDG_DATA_HOME"] = str(tmp_path_factory.mktemp("data"))
    os.environ["XDG_STATE_HOME"] = str(tmp_path_factory.mktemp("state"))


@pytest.fixture
def trust() -> Iterator[Trusting]:
    """Trusts configuration files, until the end of the test."""
    made = Trusting()
    yield made
    made.end()
