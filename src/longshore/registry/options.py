"""The types of a toolset's options, beyond `bool`, `int`, `float` (seconds), `str`, `Literal` and `list[str]`."""

from __future__ import annotations

from types import NoneType, UnionType
from typing import Annotated, Any, TypeAlias, Union, get_args, get_origin, get_type_hints

from msgspec import Meta, Struct

Size: TypeAlias = Annotated[int, Meta(extra={"kind": "size"})]
"""Bytes: a number, or a text such as "10MB" (10,000,000) or "10MiB" (10,485,760)."""

Folder: TypeAlias = Annotated[str, Meta(min_length=1, extra={"kind": "folder"})]
"""A path, made absolute: relative to the file that names it, or to the working directory; `~` is the home.

A URL stays as it is, for options that take either.
"""

RESERVED = frozenset({"enabled", "timeout", "groups"})
"""Keys that every toolset has."""


class Variable(Struct, frozen=True):
    """A second environment variable that sets an option: `Annotated[str, Variable("CONTEXTGRAPH_DB")]`."""

    name: str


def read_hint(hint: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The types of a union without None, and everything that is annotated on the union or on a type."""
    if get_origin(hint) is Annotated:
        types, notes = read_hint(hint.__origin__)
        return types, (*notes, *hint.__metadata__)
    if get_origin(hint) not in (Union, UnionType):
        return (hint,), ()
    read = [read_hint(part) for part in get_args(hint) if part is not NoneType]
    return tuple(one for types, _ in read for one in types), tuple(note for _, notes in read for note in notes)


def second_variables(options: type[Struct]) -> dict[str, str]:
    """The variables that `Variable` names, each with its option."""
    hints = get_type_hints(options, include_extras=True)
    return {
        note.name: field for field, hint in hints.items() for note in read_hint(hint)[1] if isinstance(note, Variable)
    }
