"""The tests of this folder run on our own server; those marked `BOTH` also on uvicorn, as anybody runs it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from serving import OWN


@pytest.fixture(autouse=True)
def server_kind(request: Any) -> Iterator[str]:
    kind = getattr(request, "param", "longshore")
    token = OWN.set(kind == "longshore")
    yield kind
    OWN.reset(token)
