"""The data of a configuration file in any format, and the error of a malformed file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from longshore.schema.kinds import is_object


class BrokenFile(Exception):
    """A text that is malformed, or that can't be edited: the line and the problem."""

    def __init__(self, line: int, what: str) -> None:
        super().__init__(f"line {line}, {what}" if line else what)
        self.line, self.what = line, what


def look_up(data: Any, path: Sequence[str]) -> Any | None:
    """The value at a path of keys; None if there is none."""
    for key in path:
        if not is_object(data) or key not in data:
            return None
        data = data[key]
    return data


def with_value(data: dict[str, Any], path: Sequence[str], value: Any) -> dict[str, Any]:
    """A copy with a value at a path."""
    key, *rest = path
    inner = data.get(key)
    return {**data, key: with_value(inner if is_object(inner) else {}, rest, value) if rest else value}


def without_value(data: dict[str, Any], path: Sequence[str]) -> dict[str, Any]:
    """A copy without the value at a path."""
    key, *rest = path
    if rest:
        return {**data, key: without_value(data[key], rest)}
    return {name: value for name, value in data.items() if name != key}
