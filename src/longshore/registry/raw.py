"""The raw level: an author's own schema and handler. Nothing is inferred and nothing is wrapped."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from longshore.errors import RegistrationError
from longshore.registry.function import (
    HEAVY,
    check_options,
    read_aliases,
    read_scopes,
    run_mode,
    second_look,
    tool_meta,
)
from longshore.registry.headers import schema_headers
from longshore.registry.names import check_name
from longshore.registry.results import render_raw, schema_renderer
from longshore.registry.shape import read_shape
from longshore.registry.tool import Entry, Json, Tool, effect_hints
from longshore.registry.where import Place, refuse
from longshore.schema.reading import Reading

if TYPE_CHECKING:
    from longshore.schema.validate import Validator

_decode = msgspec.json.Decoder(dict[str, Any]).decode


class _Broken(Exception):
    """Arguments that break the author's schema."""


def raw_entry(tool: Tool, handler: Callable[..., Any]) -> Entry:
    """An entry of a raw tool. The handler takes `(arguments, context)` and returns a whole result."""
    check_name(tool.name, "tool", handler)
    if not isinstance(tool.input_schema, dict) or tool.input_schema.get("type") != "object":  # pyright: ignore[reportUnnecessaryIsInstance]
        refuse(handler, f"the input schema of {tool.name!r} has no object at its root", 'give it "type": "object"')
    is_async = _shape(tool, handler)
    check_options(handler, tool, is_async)
    arguments = _Arguments(tool, handler)
    output = tool.output_schema
    return Entry(
        kind="tool",
        name=tool.name,
        where=Place(handler),
        run=run_mode(handler, tool.run if tool.run != "async" else None, is_async),
        decode=arguments.decode,
        invoke=lambda values, call: handler(values, call.context),
        render=render_raw if output is None else schema_renderer(_OutputCheck(tool, handler), output, render_raw),
        explain=second_look(handler, arguments.explain, arguments.decode, (), tool.earlier),
        describe=lambda: describe(tool),
        timeout=tool.timeout,
        replay=tool.replay,
        scopes=read_scopes(handler, tool.scopes),
        effects=tool.effects,
        idempotent=tool.idempotent,
        headers=schema_headers(handler, tool.input_schema),
        raw=True,
        checks=tool.validate,
        category=tool.category,
        tags=tuple(tool.tags),
        examples=tuple(tool.examples),
        errors=dict(tool.errors or {}),
        help=tool.help,
        aliases=read_aliases(handler, tool.name, tool.aliases),
        waived=dict(tool.waive or {}),
    )


def describe(tool: Tool) -> dict[str, Json]:
    """The tool as it is sent: every keyword of the author's schemas as it was written."""
    described = {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description or None,
        "icons": list(tool.icons) or None,
        "inputSchema": tool.input_schema,
        "outputSchema": tool.output_schema,
        "annotations": effect_hints(tool.effects, tool.idempotent, tool.open_world, tool.annotations) or None,
        "_meta": tool_meta(tool.category, tool.tags, tool.meta),
    }
    return {key: value for key, value in described.items() if value is not None}


def _shape(tool: Tool, handler: Any) -> bool:
    """Whether the handler is async. Refuses one that could not be called with two values."""
    if not callable(handler):
        what = f"the handler of {tool.name!r} is no function"
        raise RegistrationError(repr(handler), what, "def handler(arguments, ctx)")
    shape = read_shape(handler)
    if shape.fewest > 2 or shape.most < 2:
        refuse(handler, "a raw handler takes the arguments and the context", "def handler(arguments, ctx)")
    if tool.run == "async" and not shape.is_async:
        refuse(handler, 'run="async" is for async def, and this is def', "leave `run` out")
    return shape.is_async


class _Arguments:
    """Decodes arguments and checks them by the author's schema, which is compiled when the first call needs it."""

    def __init__(self, tool: Tool, handler: Callable[..., Any]) -> None:
        self._tool, self._handler = tool, handler
        self._compiled: Validator | None = None
        self._is_valid: Callable[[Any], bool] = self._compile if tool.validate else lambda _: True

    def decode(self, raw: Any) -> dict[str, Any]:
        values = _decode(raw)
        if self._is_valid(values):
            return values
        raise _Broken

    def _compile(self, values: Any) -> bool:
        """The first check, which makes those that follow a single step."""
        self._compiled = compile_schema(self._tool.input_schema, self._handler, self._tool.waive)
        self._is_valid = self._compiled.is_valid
        return self._is_valid(values)

    def explain(self, raw: Any, _: Exception) -> Reading:
        from longshore.schema.failure import shorten
        from longshore.schema.mending import NotAnObject, mend, open_arguments

        try:
            opened = open_arguments(self._tool.name, bytes(raw))
        except NotAnObject as problem:
            return Reading(faults=problem.lines)
        if self._compiled is None and self._is_valid(opened.value):
            return Reading(opened.value, notes=opened.notes)
        assert self._compiled is not None  # by the check, if not before
        mended = mend(opened.value, self._compiled.finder(self._tool.name))
        if mended.breaches:
            return Reading(faults=tuple(shorten([breach.line for breach in mended.breaches])))
        return Reading(mended.value, notes=(*opened.notes, *mended.notes))


class _OutputCheck:
    def __init__(self, tool: Tool, handler: Callable[..., Any]) -> None:
        self._tool, self._handler = tool, handler
        self._errors: Callable[[Any], list[str]] | None = None

    def __call__(self, value: Any) -> list[str]:
        if value is msgspec.UNSET:
            return ["there is no structured content"]
        if self._errors is None:
            assert self._tool.output_schema is not None
            self._errors = compile_schema(self._tool.output_schema, self._handler, self._tool.waive).errors
        return self._errors(value)


def compile_schema(schema: dict[str, Any], handler: Any, waived: Mapping[str, str] | None) -> Validator:
    """An author's schema, ready to check values. Refuses one that can't be used, or whose checks might never end."""
    from longshore.schema.validate import SchemaProblem, compile
    from longshore.schema.weight import FIX, WHAT, is_heavy

    try:
        compiled = compile(schema)
    except SchemaProblem as problem:
        refuse(handler, problem.what, problem.fix)
    if HEAVY in (waived or {}):
        compiled.expect_no_end()
    elif is_heavy(schema, doubtful=False):
        refuse(handler, WHAT, FIX)
    return compiled
