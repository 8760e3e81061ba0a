"""What things of a mounted server are called here."""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import sha256
from typing import Any

from longshore.errors import RegistrationError
from longshore.registry.source_location import caller
from longshore.registry.tool import ILLEGAL, MAX_NAME_CHARACTERS
from longshore.wire.unseen import CONTROLS, MARKS, TAGS

MAX_PREFIX_CHARACTERS = 24
"""Leaves 39 for the names behind it, which is more than nine of ten have."""
_MARK_CHARACTERS = 8
_UNSEEN = re.compile(f"[{CONTROLS}{MARKS}{TAGS}]")


def check_prefix(prefix: Any, mounted: Iterable[str]) -> None:
    """Refuse a prefix that no name could have, or one by which two mounts could make the same name."""
    if not isinstance(prefix, str) or not re.fullmatch(rf"[A-Za-z0-9_-]{{1,{MAX_PREFIX_CHARACTERS}}}", prefix):
        what = f"{prefix!r} can't be a prefix: 1 to {MAX_PREFIX_CHARACTERS} of A-Z a-z 0-9 _ -"
        raise RegistrationError(caller(), what, 'app.mount(…, prefix="files")')
    for other in mounted:
        first, second = sorted((prefix, other), key=len)
        if second.startswith(first + "_"):
            what = f"the prefixes {first!r} and {second!r} could give two tools one name"
            raise RegistrationError(caller(), what, "take a prefix that is not the beginning of another")


def mounted_name(prefix: str, name: str) -> str:
    """`files_read` of `read`. What would be too long or hold what no client takes is cut, and marked by a digest."""
    whole = f"{prefix}_{name}"
    fit = ILLEGAL.sub("_", whole)
    if fit == whole and len(whole) <= MAX_NAME_CHARACTERS:
        return whole
    mark = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_MARK_CHARACTERS]
    return f"{fit[: MAX_NAME_CHARACTERS - 1 - _MARK_CHARACTERS]}_{mark}"


def seen(text: str) -> str:
    """The text without what a person who reads it would not see."""
    return _UNSEEN.sub("", text)


def seen_in(part: Any) -> Any:
    """A definition, with every title and description in it as a person sees them."""
    if isinstance(part, list):
        return [seen_in(each) for each in part]  # pyright: ignore[reportUnknownVariableType]
    if not isinstance(part, dict):
        return part
    return {key: _seen_value(key, value) for key, value in part.items()}  # pyright: ignore[reportUnknownVariableType]


def _seen_value(key: Any, value: Any) -> Any:
    return seen(value) if key in ("title", "description") and isinstance(value, str) else seen_in(value)
