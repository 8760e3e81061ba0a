"""Completions: what could stand in a prompt's argument or in a hole of a URI template."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from msgspec import Struct

from longshore.registry.shape import read_shape
from longshore.registry.tool import Entry
from longshore.registry.where import Place, refuse
from longshore.schema.output import OutputMismatch
from longshore.schema.reading import say_why

MAX_VALUES = 100
"""The specification's limit for one answer."""


class Completing(Struct):
    """What is to be completed: the text so far, and the arguments that are settled."""

    value: str
    settled: dict[str, str]


def completion_entry(ref: str, argument: str, fn: Callable[..., Any]) -> Entry:
    """A completion of a function that takes the text so far, and maybe the settled arguments."""
    shape = read_shape(fn)
    if shape.fewest > 2 or shape.most < 1:
        refuse(fn, "a completion takes the text so far, and maybe the settled arguments", "def complete(text, settled)")
    both = shape.most >= 2
    return Entry(
        kind="completion",
        name=f"{ref} {argument}",
        where=Place(fn),
        run="async" if shape.is_async else "thread",
        decode=lambda completing: completing,
        invoke=lambda c, _: fn(c.value, c.settled) if both else fn(c.value),
        render=lambda values, _: render(values),
        explain=say_why,
        describe=dict,
        effects="read",
    )


def render(values: Any) -> dict[str, Any]:
    """At most a hundred values, and how many there are."""
    if values.__class__ in (str, bytes) or not hasattr(values, "__iter__"):
        raise OutputMismatch(f"a completion returns a list of texts, not {type(values).__name__}")
    found = [str(value) for value in values]
    completion: dict[str, Any] = {"values": found[:MAX_VALUES], "total": len(found), "hasMore": len(found) > MAX_VALUES}
    return {"completion": completion}


def choices(kind: Any) -> list[str] | None:
    """What a type itself allows: the members of a Literal or an enum, also where it may be absent."""
    if get_origin(kind) in (Union, UnionType):
        found = [choices(part) for part in get_args(kind) if part is not NoneType]
        return [value for part in found if part is not None for value in part] or None
    if get_origin(kind) is Literal:
        return [str(value) for value in get_args(kind)]
    if isinstance(kind, type) and issubclass(kind, Enum):
        return [str(member.value) for member in kind]
    return None


def matching(values: list[str], text: str) -> list[str]:
    """Those that begin with the text, whatever its case."""
    return [value for value in values if value.lower().startswith(text.lower())]
