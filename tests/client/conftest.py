"""Fixtures: no test uses the era that another one remembered."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longshore.client.negotiate._known", {})


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rungs of the ladder by which a child is ended are as high as before, only nearer to each other."""
    for name in ("EOF_SECONDS", "TERM_SECONDS"):
        monkeypatch.setattr(f"longshore.client.child.{name}", 0.2)
