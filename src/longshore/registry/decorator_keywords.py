"""The keyword arguments of `@app.tool`, `@app.resource` and `@app.prompt`, for type checkers and editors.

Never imported at run time. A test compares the names with the records that hold the values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypedDict

from longshore.protocol.content import Annotations, Icon
from longshore.registry.tool import Effects, Json


class _Keywords(TypedDict, total=False):
    name: str | None
    title: str | None
    description: str | None
    icons: Sequence[Icon]
    meta: Mapping[str, Json] | None
    timeout: float | Literal[False] | None
    run: Literal["thread", "inline"] | None


class PromptKeywords(_Keywords, total=False):
    """Options of a prompt."""


class ResourceKeywords(_Keywords, total=False):
    """Options of a resource."""

    mime_type: str | None
    size: int | None
    annotations: Annotations | None
    max_age: float


class ToolKeywords(_Keywords, total=False):
    """Options of a tool."""

    category: str | None
    tags: Sequence[str]
    effects: Effects | None
    idempotent: bool | None
    open_world: bool | None
    replay: bool
    examples: Sequence[Any]
    errors: Mapping[str, str] | None
    output_schema: dict[str, Json] | None
    annotations: Mapping[str, Json] | None
    scopes: Sequence[str]
    help: str | None
    aliases: Sequence[str]
    earlier: Sequence[Callable[..., Any]]
    waive: Mapping[str, str] | None
