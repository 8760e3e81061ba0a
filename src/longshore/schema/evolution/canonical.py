"""JSON in the one form that a value has: sorted, indented, so that files and differences are the same everywhere."""

from __future__ import annotations

import json
from difflib import unified_diff
from itertools import takewhile
from typing import Any, Final

MOST_LINES: Final = 500
"""Lines of each side that are compared, from the first difference on. It takes the square of them: 30 ms."""


def pretty(value: Any) -> str:
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False)


def same(one: Any, other: Any) -> bool:
    """Whether they are one value. To Python, `True` is 1."""
    return pretty(one) == pretty(other)


def differences(old: Any, new: Any, before: str, now: str, around: int = 3) -> list[str]:
    """What differs, line by line. Of what is very long, the beginning of it."""
    sides = [pretty(old).splitlines(), pretty(new).splitlines()]
    longest = max(map(len, sides))
    start = max(0, _alike(*sides) - around) if longest > MOST_LINES else 0
    one, other = (side[start : start + MOST_LINES] for side in sides)
    more = [f"… and {longest - start - MOST_LINES:,} lines that were not compared"]
    found = list(unified_diff(one, other, before, now, lineterm="", n=around))
    return found + more if longest - start > MOST_LINES else found


def _alike(one: list[str], other: list[str]) -> int:
    """How many lines they have in common before the first difference."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
