"""Names and paths as answers show them."""

from __future__ import annotations

from longshore.registry.token_budget import cut_line
from longshore.sandbox.file_errors import SHOWN_CHARACTERS


def show_name(name: str) -> str:
    """A name or path as text of one line: what is no text or would break the line is escaped."""
    if name.isprintable():
        return name
    text = name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def show_path(path: str) -> str:
    """A path as an answer names it: one line, not too long."""
    return cut_line(show_name(path), SHOWN_CHARACTERS)
