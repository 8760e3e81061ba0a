"""Type guards for classes, JSON objects and JSON arrays, and reading members of unchecked values."""

from __future__ import annotations

from typing import Any, TypeGuard


def is_class(tp: Any) -> TypeGuard[type[Any]]:
    """A class, not a generic alias or another annotation."""
    return isinstance(tp, type)


def is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    """A JSON object."""
    return isinstance(value, dict)


def is_array(value: Any) -> TypeGuard[list[Any]]:
    """A JSON array."""
    return isinstance(value, list)


def as_object(value: Any) -> dict[str, Any]:
    """The value if it is an object, else an empty one."""
    return value if is_object(value) else {}


def as_array(value: Any) -> list[Any]:
    """The value if it is an array, else an empty one."""
    return value if is_array(value) else []


NAME_CHARACTERS = 64
"""The longest name of a tool, or key of an object, that the APIs of all clients accept. MCP allows 128 for a tool."""


def is_plain_key(name: str) -> bool:
    """A key that every client accepts: an ASCII identifier, in which `-` is allowed, too."""
    return len(name) <= NAME_CHARACTERS and name.isascii() and name.replace("-", "_").isidentifier()
