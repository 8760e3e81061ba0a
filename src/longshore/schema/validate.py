"""Author-supplied JSON Schemas, validated by jsonschema-rs. No `$ref` is ever fetched, be it http or file."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Mapping
from typing import Any, Final, NoReturn, TypeVar

import jsonschema_rs
import msgspec

from longshore.schema.kinds import is_object
from longshore.schema.phrase import cut, path
from longshore.schema.violations import ErrorFinder, Violation, shorten, text_of
from longshore.schema.walk import walk_objects
from longshore.wire.codec import too_deep

SCHEMA_BYTES = 64 << 10
"""An author's own schema, encoded. Larger ones cost more to validate than the call they guard."""

SCHEMA_DEPTH = 64
"""Its nesting. The compiler recurses, and no author writes deeper ones by hand."""

BACKTRACKS = 100_000
"""Steps of one pattern with look-around on one value; other patterns run in linear time."""

_DIALECTS: dict[str, Any] = {
    "https://json-schema.org/draft/2020-12/schema": jsonschema_rs.Draft202012Validator,
    "https://json-schema.org/draft/2019-09/schema": jsonschema_rs.Draft201909Validator,
    "http://json-schema.org/draft-07/schema": jsonschema_rs.Draft7Validator,
    "http://json-schema.org/draft-06/schema": jsonschema_rs.Draft6Validator,
    "http://json-schema.org/draft-04/schema": jsonschema_rs.Draft4Validator,
}
DEFAULT_DIALECT = "https://json-schema.org/draft/2020-12/schema"


class SchemaProblem(Exception):
    """A schema can't be used. `what` and `fix` are one sentence each; the caller knows its place."""

    def __init__(self, what: str, fix: str) -> None:
        super().__init__(f"{what}; {fix}")
        self.what, self.fix = what, fix


class Validator:
    """A compiled schema. `is_valid` takes microseconds; violations are looked for only in a value that is not valid."""

    def __init__(self, compiled: Any, schema: dict[str, Any]) -> None:
        self._compiled, self._schema = compiled, schema
        self._unbounded = False
        self.is_valid: Callable[[Any], bool] = compiled.is_valid

    def make_interruptible(self) -> None:
        """Let stop signals end the process even during a check, because its author has waived the bound of checks."""
        self._unbounded = True
        self.is_valid = interruptible(self.is_valid)

    def errors(self, value: Any) -> list[str]:
        """One line per violation, `path: what`, at most `SHOWN_LINES`; none if the value is valid."""
        return shorten([violation.line for violation in self.finder()(value)])

    def finder(self, taker: str | None = None) -> Callable[[Any], list[Violation]]:
        """Lists the violations of values, within one budget. `taker` names the tool whose arguments they are."""
        find = ErrorFinder(self._schema, self._compiled, taker).find
        return interruptible(find) if self._unbounded else find


def build_finder(schema: dict[str, Any], taker: str) -> Callable[[Any], list[Violation]]:
    """Lists the violations of a schema that we wrote ourselves, so that its size is not limited."""
    return ErrorFinder(schema, _build(schema, DEFAULT_DIALECT), taker).find


def compile(schema: Any, documents: Mapping[str, Any] | None = None) -> Validator:
    """Compile a schema, or raise `SchemaProblem`: too large, too deep, invalid, an outside `$ref`, another dialect.

    `documents` are other schemas that references may name, by address. Nothing is ever fetched.
    """
    if not is_object(schema):
        raise SchemaProblem("the schema is not an object", 'write it as a JSON object such as {"type": "object"}')
    measure(schema)
    dialect = read_dialect(schema, documents or {})
    return Validator(_build(schema, dialect, documents), schema)


def measure(schema: dict[str, Any]) -> None:
    """Raise `SchemaProblem` for a schema that is too large or too deep."""
    deep = SchemaProblem(f"the schema is nested deeper than {SCHEMA_DEPTH} levels", "move the inner parts to $defs")
    try:
        text = msgspec.json.encode(schema)
    except RecursionError:  # it may contain itself
        raise deep from None
    except Exception:
        raise SchemaProblem(
            "the schema is not JSON", "use only dicts, lists, strings, numbers, booleans and None"
        ) from None
    if too_deep(text, SCHEMA_DEPTH):
        raise deep
    if len(text) > SCHEMA_BYTES:
        raise SchemaProblem(f"the schema has {len(text)} bytes, more than {SCHEMA_BYTES}", "make it smaller")


def _build(schema: dict[str, Any], dialect: str, documents: Mapping[str, Any] | None = None) -> Any:
    draft = _DIALECTS[dialect]
    asked: list[str] = []

    def refuse(uri: str) -> NoReturn:
        asked.append(uri)
        raise ValueError("not fetched")

    try:
        patterns = jsonschema_rs.FancyRegexOptions(backtrack_limit=BACKTRACKS)
        registry = jsonschema_rs.Registry(list(documents.items())) if documents else None
        compiled = draft(schema, retriever=refuse, pattern_options=patterns, registry=registry)
    except (jsonschema_rs.ValidationError, ValueError, jsonschema_rs.ReferencingError) as error:
        raise _problem(error, asked) from None
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # it has no name that could be imported
            raise
        fix = "give each schema one address or name, or refer by #/$defs/…"
        raise SchemaProblem("references in the schema can't be told apart", fix) from None
    if asked:
        raise _outside(asked[0])
    return compiled


def compile_linear(pattern: str) -> Callable[[Any], bool] | None:
    """A check whether a text has a match, in linear time; None for a pattern that needs backtracking."""
    try:
        options = jsonschema_rs.RegexOptions()
        return jsonschema_rs.Draft202012Validator({"pattern": pattern}, pattern_options=options).is_valid
    except (jsonschema_rs.ValidationError, ValueError):
        return None


def read_dialect(schema: dict[str, Any], documents: Mapping[str, Any]) -> str:
    """The dialect of the root. `SchemaProblem` for one that we don't know, be it of a sub-schema."""
    found = DEFAULT_DIALECT
    if b'"$schema"' not in msgspec.json.encode(schema):
        return found  # most schemas; encoding one is thirty times as fast as walking it
    for index, sub in enumerate(walk_objects(schema)):
        named = sub.get("$schema")
        if named is None:
            continue
        dialect = str(documents.get(str(named), {}).get("$schema", named)).rstrip("#")
        if dialect not in _DIALECTS:
            fix = f"use {DEFAULT_DIALECT} or leave $schema out"
            raise SchemaProblem(f"the dialect {cut(str(named))} is not supported", fix)
        if index == 0:
            found = dialect
    return found


def _problem(error: Exception, asked: list[str]) -> SchemaProblem:
    kind = type(getattr(error, "kind", None)).__name__
    said = str(getattr(error, "message", error)).splitlines()[0]
    if (missing := re.match(r"Resource '([^']*)'", said)) or asked:
        return _outside(missing[1] if missing else asked[0])
    if kind == "Referencing":
        return SchemaProblem(f"a $ref in the schema leads nowhere ({cut(said)})", "define it under $defs")
    where = path(list(getattr(error, "instance_path", [])))
    at = f" at {where}" if where else ""
    said = text_of(error) if hasattr(error, "kind") else cut(said)
    return SchemaProblem(f"the schema is invalid{at}", f"correct it: {said}")


def _outside(uri: str) -> SchemaProblem:
    return SchemaProblem(
        f"the schema refers to {cut(uri)}, which is never fetched", "copy what it refers to into $defs"
    )


# -- checks that may never end, because an author has waived E13

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

Value = TypeVar("Value")
Outcome = TypeVar("Outcome")


def interruptible(check: Callable[[Value], Outcome]) -> Callable[[Value], Outcome]:
    """The same check, during which a stop signal ends the process at once; on the main thread only.

    Python runs a signal handler between two bytecodes, and such a check is one call into C that holds the interpreter.
    So the kernel's default action is set while it runs, which ends the process without clean-up.
    """

    def run(value: Value) -> Outcome:
        handlers: dict[int, Any] = {each: signal.getsignal(each) for each in _SIGNALS}
        replaced = {each: handler for each, handler in handlers.items() if callable(handler)}
        try:
            for each in replaced:
                signal.signal(each, signal.SIG_DFL)
        except ValueError:  # another thread
            return check(value)
        try:
            return check(value)
        finally:
            for each, handler in replaced.items():
                signal.signal(each, handler)

    return run
