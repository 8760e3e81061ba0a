"""A tool as one kind of client takes it: its schemas written in the words that this client knows.

Lowering only loosens. Whatever could be called before can be called after; what a client's words can't say is left out
of the schema, and the server goes on checking against the author's own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal, get_args

from msgspec import Struct

from longshore.schema.kinds import is_object
from longshore.schema.lowering.gemini import in_fields_of_gemini
from longshore.schema.lowering.strict import made_strict
from longshore.schema.rewriting import (
    inlined,
    modernised,
    with_items,
    with_object_root,
    with_properties,
    without_booleans,
    without_root_combinators,
)
from longshore.schema.rewriting.everywhere import tell

Form = Literal["claude", "openai", "openai-strict", "gemini", "vscode", "cursor", "brooklyn"]
FORMS: Final[tuple[Form, ...]] = get_args(Form)

Step = Callable[[Any], Any]


class _Lowering(Struct, frozen=True):
    """What is done for one form: before the relations at the root go into the description, and after."""

    first: tuple[Step, ...] = ()
    then: tuple[Step, ...] = ()
    snake: bool = False
    """Whether the schema is repeated under the key `input_schema`."""


_COPILOT: Final = _Lowering((modernised, inlined), (with_items,))
_LOWERINGS: Final[dict[Form, _Lowering]] = {
    "claude": _Lowering(),
    "openai": _Lowering((modernised,), (with_items, with_properties)),
    "openai-strict": _Lowering((modernised, inlined), (made_strict, with_items, with_properties)),
    "gemini": _Lowering((modernised, inlined), (in_fields_of_gemini,)),
    "vscode": _COPILOT,
    "cursor": _COPILOT,
    "brooklyn": _Lowering(snake=True),
}


def lower(tool: dict[str, Any], form: Form) -> dict[str, Any]:
    """A tool, as in `tools/list`, in one of the forms. It may be anybody's; nothing in it makes this fail."""
    lowering = _LOWERINGS[form]
    schema, said = _lower_input(tool.get("inputSchema"), lowering)
    lowered = tell({**tool, "inputSchema": schema}, said)
    if "outputSchema" in lowered:
        lowered = _lower_output(lowered)
    return {**lowered, "input_schema": schema} if lowering.snake else lowered


def _lower_input(schema: Any, lowering: _Lowering) -> tuple[dict[str, Any], str]:
    schema = _opened(schema)
    for step in lowering.first:
        schema = step(schema)
    # Both big APIs refuse relations at the root, and those clients that don't belong to one send to either.
    schema, said = without_root_combinators(schema)
    schema = with_object_root(without_booleans(schema))
    for step in lowering.then:
        schema = step(schema)
    return schema, said


def _opened(schema: Any) -> Any:
    """A root needs a type and properties of its own."""
    return inlined(schema) if is_object(schema) and "$ref" in schema else schema


def _lower_output(tool: dict[str, Any]) -> dict[str, Any]:
    """Clients built on the official SDK drop a whole list for an output schema that is not of an object."""
    schema = _opened(tool["outputSchema"])
    if is_object(schema) and schema.get("type") == "object":
        return {**tool, "outputSchema": without_booleans(schema)}
    return {key: value for key, value in tool.items() if key != "outputSchema"}
