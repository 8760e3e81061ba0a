"""What a tool or prompt may be called."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from longshore.registry.where import refuse

ILLEGAL = re.compile(r"[^A-Za-z0-9_.-]")
_ALLOWED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-")
MAX_NAME_CHARACTERS = 64
"""The specification says 128; the APIs behind two of three clients refuse more than 64."""


def check_name(name: Any, kind: str, fn: Callable[..., Any]) -> None:
    """Refuse a name that some client would drop, rename or choke on."""
    if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME_CHARACTERS or not _ALLOWED.issuperset(name):
        refuse(
            fn,
            f"{name!r} can't be a {kind}'s name: 1 to {MAX_NAME_CHARACTERS} of A-Z a-z 0-9 _ - .",
            f"name={legal(str(name))!r}",
        )


def legal(name: str) -> str:
    """The nearest name that is allowed."""
    return re.sub(f"{ILLEGAL.pattern}+", "_", name).strip("_")[:MAX_NAME_CHARACTERS] or "tool"


def hint(name: str, names: Iterable[str]) -> str:
    """What is said after a name that nobody knows: the one that was probably meant, or nothing."""
    from longshore.nearest import nearest

    near = nearest(name, names)
    return f"; did you mean {near!r}?" if near else ""
