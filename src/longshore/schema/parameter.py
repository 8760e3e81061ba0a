"""A parameter of a function, and the exception for a function that can't be offered to clients."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

Patterns = Literal["linear", "waivable", "any"]
"""The patterns that a type may have: of linear time only, the same in a tool whose author may waive it, or any."""


class SignatureProblem(Exception):
    """A function can't be offered to clients. `what` and `fix` are one sentence each; the caller knows the place."""

    def __init__(self, what: str, fix: str) -> None:
        super().__init__(f"{what}; {fix}")
        self.what, self.fix = what, fix


class Parameter(Struct, frozen=True):
    """One parameter. `type` is ready for msgspec: with constraints, without description and marker."""

    name: str
    type: Any
    required: bool
    default: Any
    """NODEFAULT if there is none."""
    description: str | None = None
    keyword_only: bool = False
    marker: Any = None
    extra: dict[str, Any] | None = None
    """Schema keywords that the author gave, through `Header(…)` or `Meta(extra_json_schema=…)`."""
    in_header: bool = False
    """Whether it, or something in it, may be repeated in a header. Only the schema says so for certain."""
    authored: bool = False
    """Whether a part of its schema may be the author's own: keywords, or keys that are no plain names."""
    old_names: tuple[str, ...] = ()
    """The names that it had before."""
