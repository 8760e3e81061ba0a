"""Clears the remembered eras before each test: another server may get the same port."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longshore.client.negotiate._known", {})
