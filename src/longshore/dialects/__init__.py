"""The dialects by name. Each is loaded when a server speaks it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from longshore.protocol.dialect import Dialect

NAMES = ("bb", "brooklyn", "browseros", "ghost")


def load_dialect(name: str) -> Dialect:
    """The dialect of this name."""
    from importlib import import_module

    dialect: Dialect = import_module(f"longshore.dialects.{name}").DIALECT
    return dialect
