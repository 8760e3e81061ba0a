"""JSON in the one form that a value has: sorted, indented, so that files and differences are the same everywhere."""

from __future__ import annotations

import json
from difflib import unified_diff
from typing import Any


def pretty(value: Any) -> str:
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False)


def same(one: Any, other: Any) -> bool:
    """Whether they are one value. To Python, `True` is 1."""
    return pretty(one) == pretty(other)


def differences(old: Any, new: Any, before: str, now: str, around: int = 3) -> list[str]:
    """What differs, line by line."""
    return list(unified_diff(pretty(old).splitlines(), pretty(new).splitlines(), before, now, lineterm="", n=around))
