"""The parts of a file: the output of a parser, before names are resolved and anything is stored."""

from __future__ import annotations

from typing import Final, TypeAlias

from msgspec import Struct

FILE, CLASS, FUNCTION, METHOD, SECTION, TEXT = "file", "class", "function", "method", "section", "text"
"""The kinds of nodes that files have."""
PART_CHARACTERS: Final = 12_000
"""Of one part's text. Nearly all functions and sections are shorter; beyond it a text is cut, or divided."""
NAME_CHARACTERS: Final = 200


class Part(Struct, frozen=True):
    """A piece of a file that becomes a node."""

    kind: str
    name: str
    """Within its file: `Class.method`, or the headings above a section. The file's own is its path."""
    text: str
    first_line: int
    last_line: int
    parent: int | None = None
    """The part that it belongs to, by its position."""


class CodeCall(Struct, frozen=True):
    """Code in a part calls something by a dotted name."""

    part: int
    name: tuple[str, ...]


class Import(Struct, frozen=True):
    """A Python file binds a name to a module, or to something in one."""

    bound: str
    """The name in this file; `*` for all that the module has, empty if no name is bound."""
    module: str
    level: int = 0
    """How many dots the module's name begins with."""
    name: str = ""
    """The imported name of the module; empty for the module itself."""


class Mention(Struct, frozen=True):
    """A part of a document links to a file, or to a section in it."""

    part: int
    path: str
    """As it is stored; empty for the same file."""
    anchor: str = ""


Reference: TypeAlias = CodeCall | Import | Mention


class ParsedFile(Struct, frozen=True):
    """The parts of a file, itself the first, and what they refer to."""

    parser: str
    parts: tuple[Part, ...]
    references: tuple[Reference, ...] = ()
    problem: str = ""
    """Why it was read as plain text only, though its name says otherwise."""


def cut(text: str, most: int = PART_CHARACTERS) -> str:
    """A text cut to the most that a part may have; it says how much is missing."""
    if len(text) <= most:
        return text
    return f"{text[: most - 40].rstrip()}\n[… {len(text) - most + 40:,} characters more]"
