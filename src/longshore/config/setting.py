"""Setting: one value that one source gave to one key."""

from __future__ import annotations

from typing import Any, TypeAlias

from msgspec import Struct

from longshore.config.record import Origin

Path: TypeAlias = tuple[str, ...]


class Setting(Struct, frozen=True):
    """One value and who set it."""

    path: Path
    value: Any
    origin: Origin
