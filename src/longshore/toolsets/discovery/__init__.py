"""Tools by which an agent finds out what a server offers: `app.add(Discovery(app))`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from longshore.toolsets.discovery.tools import Discovery as Discovery

__all__ = ["Discovery"]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    """Loaded when it is used: the commands want only what tells of tools."""
    if name != "Discovery":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from longshore.toolsets.discovery.tools import Discovery

    return Discovery
