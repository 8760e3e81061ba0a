"""Tools that describe a server to an agent: `app.add_toolset(Discovery(app))`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from longshore.toolsets.discovery.tools import Discovery as Discovery

__all__ = ["Discovery"]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    """Loads the toolset lazily: commands use `survey` only."""
    if name != "Discovery":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from longshore.toolsets.discovery.tools import Discovery

    return Discovery
