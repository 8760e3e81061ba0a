"""What one test learned of a server says nothing of the next one, which may have got the same port."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longshore.client.negotiate._known", {})
