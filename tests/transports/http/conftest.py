"""Every test of this folder twice: on uvicorn as anybody runs it, and on our own server with its fast lane."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from serving import OWN


@pytest.fixture(autouse=True, params=["uvicorn", "longshore"])
def server_kind(request: Any) -> Iterator[str]:
    token = OWN.set(request.param == "longshore")
    yield request.param
    OWN.reset(token)
