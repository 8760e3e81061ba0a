"""Where a value breaks its schema, in plain lines of `path: what was expected; what came; what was probably meant`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, Final, Literal

from msgspec import Struct

from longshore.schema.kinds import is_array, is_object
from longshore.schema.phrase import cut, describe, either, expected, kind, path, quote

SHOWN_LINES: Final = 20
"""Lines of one explanation. An attacker's thousand unknown keys must not become a thousand lines."""
COUNTED_LINES: Final = 1000
"""Beyond this many, failures are not even counted."""

_NAMED: Final = 8
"""Names of one form that are told."""

Place = tuple[str | int, ...]


class Breach(Struct, frozen=True):
    """One failure."""

    where: Place
    said: str
    types: tuple[str, ...] = ()
    """What it might be, where it is of the wrong kind."""
    options: tuple[Any, ...] = ()
    """What it might be, where its value is none of those that are allowed."""
    mend: Literal["parse", "omit"] | None = None
    """What would make sense of it: to read the JSON inside a string, or to leave a null out."""

    @property
    def line(self) -> str:
        return f"{path(self.where)}: {self.said}" if self.where else self.said


def shorten(lines: Sequence[str]) -> list[str]:
    """As many as are shown, and how many there are besides."""
    hidden = len(lines) - SHOWN_LINES
    least = "at least " if len(lines) >= COUNTED_LINES else ""
    return [*lines[:SHOWN_LINES], f"… and {least}{hidden} more"] if hidden > 0 else list(lines)


def wrong_type(types: Sequence[str], value: Any) -> str:
    """The words for a value of another kind."""
    got = quote(value) if "integer" in types and isinstance(value, float) else kind(value)
    return f"expected {expected(list(types))}, got {got}"


def wrong_value(options: Sequence[Any], value: Any, close: str | None) -> str:
    """The words for a value that is none of those that are allowed."""
    if len(options) == 1:
        return f"must be {quote(options[0])}; got {quote(value)}"
    said = (
        f"must be {describe({'enum': options})}" if len(options) <= SHOWN_LINES else "is not one of the allowed values"
    )
    return f"{said}; got {quote(value)}" + (f"; did you mean {quote(close)}?" if close else "")


def to_leave_out(forms: Sequence[Any]) -> str:
    """Of forms that fit at once: what tells them apart, where that is what they require, as either/or is written."""
    found: list[Any] = [form.get("required") if is_object(form) else None for form in forms]
    names = [dict.fromkeys(map(str, each)) if is_array(each) else {} for each in found]
    apart = [[cut(name) for name in islice(each, _NAMED) if any(name not in o for o in names)] for each in names]
    return f": leave out {either([' and '.join(each) for each in apart])}" if all(apart) else ""


def _count(value: Any, one: str) -> str:
    return f"got 1 {one}" if len(value) == 1 else f"got {len(value)} {one}s"


SAID: Final[dict[str, Callable[[Any, Any], str]]] = {
    "minimum": lambda limit, value: f"must be >= {limit}; got {quote(value)}",
    "maximum": lambda limit, value: f"must be <= {limit}; got {quote(value)}",
    "exclusiveMinimum": lambda limit, value: f"must be > {limit}; got {quote(value)}",
    "exclusiveMaximum": lambda limit, value: f"must be < {limit}; got {quote(value)}",
    "multipleOf": lambda step, value: f"must be a multiple of {step}; got {quote(value)}",
    "minLength": lambda limit, value: f"must have a length >= {limit}; {_count(value, 'character')}",
    "maxLength": lambda limit, value: f"must have a length <= {limit}; {_count(value, 'character')}",
    "minItems": lambda limit, value: f"must have at least {limit} items; {_count(value, 'item')}",
    "maxItems": lambda limit, value: f"must have at most {limit} items; {_count(value, 'item')}",
    "minProperties": lambda limit, value: f"must have at least {limit} fields; {_count(value, 'field')}",
    "maxProperties": lambda limit, value: f"must have at most {limit} fields; {_count(value, 'field')}",
    "pattern": lambda pattern, value: f"must match the pattern {cut(str(pattern))}; got {quote(value)}",
    "format": lambda name, value: f"must be in the format {cut(str(name))}; got {quote(value)}",
    "uniqueItems": lambda _, __: "must not repeat items",
    "contains": lambda _, __: "lacks an item that is required",
    "not": lambda _, __: "has a form that is forbidden",
    "contentEncoding": lambda name, _: f"must be {cut(str(name))} text",
    "contentMediaType": lambda name, _: f"must be {cut(str(name))}",
}
"""Words for the rules that say nothing of what is inside a value: keyword → (what it asks, the value) → words."""


def breach_of(error: Any) -> Breach:
    """An error of jsonschema-rs, as the search would have told it."""
    where: Place = tuple(error.instance_path)
    if error.kind.name == "required":
        return Breach((*where, error.kind.property), "missing")
    if error.kind.name in ("additionalProperties", "unevaluatedProperties"):
        return Breach((*where, error.kind.unexpected[0]), "unknown field")
    return Breach(where, said_of(error))


def said_of(error: Any) -> str:
    """The words for an error of jsonschema-rs."""
    rule: str = error.kind.name
    if rule == "type":
        return wrong_type(list(error.kind.types), error.instance)
    if rule == "enum":
        return wrong_value(list(error.kind.options), error.instance, None)
    if rule == "const":
        return wrong_value([error.kind.expected_value], error.instance, None)
    if rule in SAID:
        return SAID[rule](error.kind.value, error.instance)
    return "the pattern took too many steps on this value" if "acktrack" in rule else f"breaks the rule {cut(rule)}"
