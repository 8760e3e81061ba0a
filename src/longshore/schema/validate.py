"""Author-supplied JSON Schemas, validated by jsonschema-rs. No `$ref` is ever fetched, be it http or file."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn

import jsonschema_rs
import msgspec

from longshore.protocol.subschemas import subschemas
from longshore.schema.failure import Breach, breach_of, said_of, shorten
from longshore.schema.kinds import is_object
from longshore.schema.phrase import cut, path
from longshore.schema.unbounded import interruptible
from longshore.wire.depth import too_deep

SCHEMA_BYTES = 64 << 10
"""An author's own schema, encoded. Larger ones cost more to validate than the call they guard."""

SCHEMA_DEPTH = 64
"""Its nesting. The compiler recurses, and nobody writes deeper ones by hand."""

BACKTRACKS = 100_000
"""Steps of one pattern with look-around on one value; other patterns run in linear time."""

_DIALECTS: dict[str, Any] = {
    "https://json-schema.org/draft/2020-12/schema": jsonschema_rs.Draft202012Validator,
    "https://json-schema.org/draft/2019-09/schema": jsonschema_rs.Draft201909Validator,
    "http://json-schema.org/draft-07/schema": jsonschema_rs.Draft7Validator,
    "http://json-schema.org/draft-06/schema": jsonschema_rs.Draft6Validator,
    "http://json-schema.org/draft-04/schema": jsonschema_rs.Draft4Validator,
}
_WHOLE = "urn:longshore:whole"
"""Where a schema is found while parts of it are compiled by themselves."""
DEFAULT_DIALECT = "https://json-schema.org/draft/2020-12/schema"


Find = Callable[[Any], list[Breach]]


class SchemaProblem(Exception):
    """A schema can't be used. `what` and `fix` are one sentence each; the caller knows where."""

    def __init__(self, what: str, fix: str) -> None:
        super().__init__(f"{what}; {fix}")
        self.what, self.fix = what, fix


class Validator:
    """A compiled schema. It judges; what is wrong is only looked for once it said no."""

    def __init__(self, compiled: Any, schema: dict[str, Any], dialect: str) -> None:
        self._compiled, self._schema, self._dialect = compiled, schema, dialect
        self._rules: dict[Any, Any] = {}
        self._unbounded = False
        self.is_valid: Callable[[Any], bool] = compiled.is_valid
        """Whether a plain JSON value keeps the schema."""

    def expect_no_end(self) -> None:
        """Have stop signals end the process even during a check: its author says that this one needs no bound."""
        self._unbounded = True
        self.is_valid = interruptible(self.is_valid)

    def errors(self, value: Any) -> list[str]:
        """One line per failure, `path: what`, at most `SHOWN_LINES`; no lines if the value keeps the schema."""
        return shorten([breach.line for breach in self.finder()(value)])

    def finder(self, taker: str | None = None) -> Find:
        """What says where a value breaks the schema. `taker` takes such values as its arguments."""
        find = finder(self._schema, taker, dialect=self._dialect, rules=self._rules)

        def look(value: Any) -> list[Breach]:
            return [] if self.is_valid(value) else find(value) or [self._first(value)]

        return interruptible(look) if self._unbounded else look

    def _first(self, value: Any) -> Breach:
        """The validator's own first error."""
        from longshore.schema.search import first_error

        error = first_error(self._compiled, value)
        return Breach((), "is not valid; it is too large to say where") if error is None else breach_of(error)


def finder(
    schema: dict[str, Any],
    taker: str | None,
    *,
    dialect: str = DEFAULT_DIALECT,
    rules: dict[Any, Any] | None = None,
) -> Find:
    """A search whose steps are bounded over all that it is asked. It may find nothing where a schema is odd."""
    from longshore.schema.rewriting.everywhere import change_everywhere, schemas_in
    from longshore.schema.search import Search

    # Its own address would be there twice: the library panics at "#name" then.
    whole = {key: value for key, value in schema.items() if key not in ("$id", "id")}

    def build(part: dict[str, Any]) -> Any:
        inner = list(schemas_in(whole if part is schema else part))
        if any("$id" in each for each in inner):
            return None
        refers = any("$ref" in each for each in inner)
        try:
            return _build(change_everywhere(inner[0], _lead_to_whole), dialect, {_WHOLE: whole} if refers else None)
        except SchemaProblem:
            return None

    return Search(schema, build, {} if rules is None else rules, bare_refs="draft-0" in dialect, taker=taker).look


def _lead_to_whole(part: dict[str, Any]) -> dict[str, Any]:
    """References of a part that is compiled by itself still lead to where they stood."""
    ref = part.get("$ref")
    return {**part, "$ref": _WHOLE + ref} if isinstance(ref, str) and ref.startswith("#") else part


def compile(schema: Any, documents: Mapping[str, Any] | None = None) -> Validator:
    """Compile a schema, or raise `SchemaProblem`: too large, too deep, invalid, an outside `$ref`, another dialect.

    `documents` are what references may lead to besides, by address. Nothing is ever fetched.
    """
    if not is_object(schema):
        raise SchemaProblem("the schema is not an object", 'write it as a JSON object such as {"type": "object"}')
    measure(schema)
    dialect = read_dialect(schema, documents or {})
    return Validator(_build(schema, dialect, documents), schema, dialect)


def measure(schema: dict[str, Any]) -> None:
    """Raise `SchemaProblem` for one that is too large or too deep. By itself, for who looks before it compiles."""
    deep = SchemaProblem(f"the schema is nested deeper than {SCHEMA_DEPTH} levels", "move the inner parts to $defs")
    try:
        text = msgspec.json.encode(schema)
    except RecursionError:  # it may hold itself
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
    """Says whether a text has a match of a pattern, in linear time; None for a pattern that needs backtracking."""
    try:
        options = jsonschema_rs.RegexOptions()
        return jsonschema_rs.Draft202012Validator({"pattern": pattern}, pattern_options=options).is_valid
    except (jsonschema_rs.ValidationError, ValueError):
        return None


def read_dialect(schema: dict[str, Any], documents: Mapping[str, Any]) -> str:
    """The dialect of the root. `SchemaProblem` for one that we don't know, be it of a sub-schema."""
    found = DEFAULT_DIALECT
    if b'"$schema"' not in msgspec.json.encode(schema):
        return found  # as most: to write it is thirty times as fast as to look into all of it
    for index, sub in enumerate(_subschemas(schema)):
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


def _subschemas(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield schema
    for keyword, value in schema.items():
        for sub in subschemas(keyword, value):
            if is_object(sub):
                yield from _subschemas(sub)


def _problem(error: Exception, asked: list[str]) -> SchemaProblem:
    kind = type(getattr(error, "kind", None)).__name__
    said = str(getattr(error, "message", error)).splitlines()[0]
    if (missing := re.match(r"Resource '([^']*)'", said)) or asked:
        return _outside(missing[1] if missing else asked[0])
    if kind == "Referencing":
        return SchemaProblem(f"a $ref in the schema leads nowhere ({cut(said)})", "define it under $defs")
    where = path(list(getattr(error, "instance_path", [])))
    at = f" at {where}" if where else ""
    said = said_of(error) if hasattr(error, "kind") else cut(said)
    return SchemaProblem(f"the schema is invalid{at}", f"correct it: {said}")


def _outside(uri: str) -> SchemaProblem:
    return SchemaProblem(
        f"the schema refers to {cut(uri)}, which is never fetched", "copy what it refers to into $defs"
    )
