"""The raw level: an author's own schema and handler. Nothing is inferred and nothing is wrapped."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from longshore.errors import RegistrationError
from longshore.registry.function import (
    UNBOUNDED_RULE,
    read_arity,
    run_mode,
    schema_headers,
    tool_fields,
    with_migrations,
)
from longshore.registry.results import render_raw, schema_renderer
from longshore.registry.source_location import SourceLocation, refuse
from longshore.registry.tool import Entry, Tool, check_name, describe_tool

if TYPE_CHECKING:
    from longshore.schema.repair import RepairResult
    from longshore.schema.validate import Validator

_decode = msgspec.json.Decoder(dict[str, Any]).decode


class _InvalidArguments(Exception):
    """The arguments don't match the author's schema."""


def raw_entry(tool: Tool, handler: Any) -> Entry:
    """The entry of a raw tool. The handler takes `(arguments, context)` and returns a whole result."""
    check_name(tool.name, "tool", handler)
    if not isinstance(tool.input_schema, dict) or tool.input_schema.get("type") != "object":  # pyright: ignore[reportUnnecessaryIsInstance]
        refuse(handler, f"the input schema of {tool.name!r} has no object at its root", 'give it "type": "object"')
    if not callable(handler):
        what = f"the handler of {tool.name!r} is no function"
        raise RegistrationError(repr(handler), what, "def handler(arguments, ctx)")
    fewest, most, is_async = read_arity(handler)
    if fewest > 2 or most < 2:
        refuse(handler, "a raw handler takes the arguments and the context", "def handler(arguments, ctx)")
    if tool.run == "async" and not is_async:
        refuse(handler, 'run="async" is for async def, and this is def', "leave `run` out")
    run = run_mode(handler, tool.run if tool.run != "async" else None, is_async, tool=True)
    arguments = _Arguments(tool, handler)
    return Entry(
        kind="tool",
        name=tool.name,
        where=SourceLocation(handler),
        decode=arguments.decode,
        invoke=lambda values, call: handler(values, call.context),
        render=_renderer(tool, handler),
        explain=with_migrations(handler, arguments.explain, arguments.decode, (), tool.migrations),
        describe=lambda: describe_tool(tool.name, tool, tool.description, tool.input_schema, tool.output_schema),
        headers=schema_headers(handler, tool.input_schema),
        raw=True,
        checks=tool.validate,
        **tool_fields(handler, tool.name, tool, run),
    )


class _Arguments:
    """Decodes arguments and checks them against the author's schema, which the first call compiles."""

    def __init__(self, tool: Tool, handler: Callable[..., Any]) -> None:
        self._tool, self._handler = tool, handler
        self._compiled: Validator | None = None
        self._is_valid: Callable[[Any], bool] = self._compile if tool.validate else lambda _: True

    def decode(self, raw: Any) -> dict[str, Any]:
        values = _decode(raw)
        if self._is_valid(values):
            return values
        raise _InvalidArguments

    def _compile(self, values: Any) -> bool:
        """The first check; later ones are a single call."""
        self._compiled = compile_schema(self._tool.input_schema, self._handler, self._tool.waive)
        self._is_valid = self._compiled.is_valid
        return self._is_valid(values)

    def explain(self, raw: Any, _: Exception) -> RepairResult:
        from longshore.schema.repair import repair_raw

        if self._compiled is None and self._tool.validate:
            self._compile({})
        find = None if self._compiled is None else self._compiled.finder(self._tool.name)
        return repair_raw(self._tool.name, bytes(raw), find)


def _renderer(tool: Tool, handler: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    schema = tool.output_schema
    if schema is None:
        return render_raw
    compiled: list[Validator] = []  # by the first result

    def check(value: Any) -> list[str]:
        if not compiled:
            compiled.append(compile_schema(schema, handler, tool.waive))
        return compiled[0].errors(value)

    return schema_renderer(check, schema, render_raw)


def compile_schema(schema: dict[str, Any], handler: Any, waived: Mapping[str, str] | None) -> Validator:
    """Compile an author's schema. Refuses one that can't be used, or whose checks might run for ever."""
    from longshore.schema.cost import FIX, UNBOUNDED, is_unbounded
    from longshore.schema.validate import SchemaProblem, compile

    try:
        compiled = compile(schema)
    except SchemaProblem as problem:
        refuse(handler, problem.what, problem.fix)
    if UNBOUNDED_RULE in (waived or {}):
        compiled.make_interruptible()
    elif is_unbounded(schema, if_unknown=False):
        refuse(handler, UNBOUNDED, FIX)
    return compiled
