"""How often tests repeat what depends on chance (races, kills, generated input)."""

from __future__ import annotations

import os

SOAK = int(os.environ.get("SOAK", "1"))
"""`make test` repeats a little; `make soak` so many times as often."""


def count(usual: int) -> int:
    """How often to repeat what `make test` does `usual` times."""
    return usual * SOAK
