"""What jsonschema-rs found wrong, as plain lines of `path: what`."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from typing import Any

from longshore.schema.phrase import cut, describe, either, expected, kind, path, quote

# Longer names are not typing errors, and comparing them takes quadratic time.
_NAME_CHARS = 100


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate that was probably meant; None if none is close."""
    if len(name) > _NAME_CHARS:
        return None
    by_folded = {c.casefold(): c for c in candidates}
    close = difflib.get_close_matches(name.casefold(), by_folded, n=1, cutoff=0.6)
    return by_folded[close[0]] if close else None


def lines_of(errors: list[Any], at: list[str | int]) -> list[str]:
    """The lines of all failures; `at` is the path of the value that was validated."""
    listed = [e.instance_path for e in errors if type(e.kind).__name__ == "Enum"]
    # The list of allowed values also tells their type.
    told = [e for e in errors if type(e.kind).__name__ != "Type" or e.instance_path not in listed]
    return [line for e in told for line in _lines(e, at)]


def _lines(error: Any, at: list[str | int]) -> list[str]:
    where = [*at, *error.instance_path]
    name = type(error.kind).__name__
    if name in _PER_KEY:
        return _PER_KEY[name](error, where)
    if name in ("AnyOf", "OneOfNotValid"):
        return _branches(error, at, where)
    said = _SAID[name](error) if name in _SAID else f"breaks the rule {error.kind.name}"
    return [_line(where, said)]


def _line(where: list[str | int], said: str) -> str:
    return f"{path(where)}: {said}" if where else said


def _type(error: Any) -> str:
    types = list(error.kind.types)
    if "integer" in types and isinstance(error.instance, float):
        return f"expected {expected(types)}, got {quote(error.instance)}"
    return f"expected {expected(types)}, got {kind(error.instance)}"


def _enum(error: Any) -> str:
    options = list(error.kind.options)
    said = f"must be {describe({'enum': options})}" if len(options) <= 20 else "is not one of the allowed values"
    close = nearest(error.instance, [o for o in options if isinstance(o, str)]) if _is_text(error.instance) else None
    hint = f"; did you mean {quote(close)}?" if close and len(options) > 1 else ""
    return f"{said}; got {quote(error.instance)}{hint}"


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _unknown(error: Any, where: list[str | int]) -> list[str]:
    return [_line([*where, key], "unknown field") for key in error.kind.unexpected]


def _missing(error: Any, where: list[str | int]) -> list[str]:
    return [_line([*where, str(error.kind.property)], "missing")]


def _branches(error: Any, at: list[str | int], where: list[str | int]) -> list[str]:
    """A union: the failures of the one branch that was meant, if that can be told, else what the branches expect."""
    context: list[list[Any]] = error.kind.context
    here = list(error.instance_path)
    meant = [b for b in context if not any(_is_type_here(e, here) for e in b)]
    if len(meant) == 1:
        return lines_of(meant[0], at)
    if not meant:
        types = [t for b in context for e in b if _is_type_here(e, here) for t in e.kind.types]
        return [_line(where, f"expected {expected(types)}, got {kind(error.instance)}")]
    said = [lines_of(b[:1], at) for b in meant if b]
    if all(s == said[0] for s in said):
        return said[0]
    reasons = either([s[0].removeprefix(f"{path(where)}: ") for s in said])
    return [_line(where, f"fits none of the allowed forms: {reasons}")]


def _is_type_here(error: Any, here: list[str | int]) -> bool:
    return type(error.kind).__name__ == "Type" and list(error.instance_path) == here


_PER_KEY: dict[str, Callable[[Any, list[str | int]], list[str]]] = {
    "AdditionalProperties": _unknown,
    "UnevaluatedProperties": _unknown,
    "Required": _missing,
}

_SAID: dict[str, Callable[[Any], str]] = {
    "Type": _type,
    "Enum": _enum,
    "Constant": lambda e: f"must be {quote(e.kind.expected_value)}; got {quote(e.instance)}",
    "Minimum": lambda e: f"must be >= {e.kind.limit}",
    "Maximum": lambda e: f"must be <= {e.kind.limit}",
    "ExclusiveMinimum": lambda e: f"must be > {e.kind.limit}",
    "ExclusiveMaximum": lambda e: f"must be < {e.kind.limit}",
    "MultipleOf": lambda e: f"must be a multiple of {e.kind.multiple_of}",
    "MinLength": lambda e: f"must have a length >= {e.kind.limit}",
    "MaxLength": lambda e: f"must have a length <= {e.kind.limit}",
    "MinItems": lambda e: f"must have at least {e.kind.limit} items",
    "MaxItems": lambda e: f"must have at most {e.kind.limit} items",
    "AdditionalItems": lambda e: f"must have at most {e.kind.limit} items",
    "UnevaluatedItems": lambda _: "has items that are not allowed",
    "MinProperties": lambda e: f"must have at least {e.kind.limit} fields",
    "MaxProperties": lambda e: f"must have at most {e.kind.limit} fields",
    "UniqueItems": lambda _: "must not repeat items",
    "Contains": lambda _: "lacks an item that is required",
    "Pattern": lambda e: f"must match the pattern {cut(e.kind.pattern)}",
    "Format": lambda e: f"must be in the format {cut(e.kind.format)}",
    "Not": lambda _: "has a form that is forbidden",
    "FalseSchema": lambda _: "is not allowed here",
    "OneOfMultipleValid": lambda _: "fits several of the forms of which it may fit one",
    "PropertyNames": lambda e: f"has a key that is not allowed: {lines_of([e.kind.error], [])[0]}",
    "BacktrackLimitExceeded": lambda _: "the pattern took too many steps on this value",
}
