"""Views: what a toolset has open, for a person who looks on: the page of a browser, the screen of a command."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Literal

from msgspec import Struct


class Shown(Struct, frozen=True):
    """What a view shows now. A text is UTF-8."""

    data: bytes
    mime_type: str = "text/plain; charset=utf-8"


class View(Struct, frozen=True, kw_only=True):
    """One open thing. Looking at it is no use of it: it becomes idle all the same."""

    key: str
    """Tells it from the others of its toolset."""
    kind: Literal["image", "text"]
    title: str
    owner: str
    """The principal that it belongs to."""
    subtitle: str = ""
    updated: float | None = None
    """When it changed last, in seconds since 1970, if that is known."""
    look: Callable[[], Coroutine[Any, Any, Shown]]
    """What it shows. Raises ToolError if that can't be found out."""
