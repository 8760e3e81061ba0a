"""The secrets of this process that are known by their values: tokens of the configuration. No record shows one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

SHORTEST: Final = 8
"""A known secret that is shorter is not removed: it may be a part of many words."""

secrets: Final[set[str]] = set()


def add(found: Iterable[str | None]) -> None:
    """Remove these from everything that is recorded in this process from now on."""
    secrets.update(each for each in found if each and len(each) >= SHORTEST)
