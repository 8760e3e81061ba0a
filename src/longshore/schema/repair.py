"""Repairs arguments that a tool refused if their meaning is certain, and describes the faults of the others.

- An array or object as a JSON string, where no string is allowed. Also the arguments as a whole.
- Null for an argument that may be left out and can't be null: some APIs make a model fill in everything.
- A whole number written as 3.0, which JSON Schema calls an integer.

Repaired arguments are checked again, so nothing is accepted that the tool would not accept. All violations are listed
at once, one line each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct

from longshore.limits import DEFAULT_LIMITS
from longshore.schema.custom_type import decode_special
from longshore.schema.infer import Schemas
from longshore.schema.kinds import is_array, is_object
from longshore.schema.phrase import cut, kind, path, places, plain, wrong_form
from longshore.schema.signature import Parameter, Signature
from longshore.schema.violations import Place, Violation, shorten
from longshore.wire.codec import too_deep

MAX_ROUNDS: Final = 16
"""Times that repaired arguments are checked again: a parsed string may hold strings in turn."""
MAX_PARSED_BYTES: Final = 1 << 20
"""The longest string that is parsed, and the longest argument in which 3.0 becomes 3."""

_UNREADABLE: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)

Find = Callable[[Any], list[Violation]]


class RepairResult(Struct, frozen=True):
    """The repaired arguments for the handler, or the faults that prevent it."""

    arguments: Any = None
    faults: tuple[str, ...] = ()
    """One line each, for the model. None: the arguments could be repaired."""
    notes: tuple[str, ...] = ()
    """The repairs, such as JSON inside a string. Paths, never values."""


def repair_raw(tool: str, raw: bytes | Raw, find: Find | None) -> RepairResult:
    """Repair the arguments of a raw tool. `find` lists the violations of its schema; None if it validates nothing."""
    value, whole = _open(tool, raw)
    if whole.faults:
        return whole
    violations, notes = ([], ()) if find is None else repair(value, find)
    if violations:
        return RepairResult(faults=tuple(shorten([each.line for each in violations])))
    return RepairResult(value, notes=(*whole.notes, *notes))


def repair_typed(tool: str, signature: Signature, raw: bytes | Raw) -> RepairResult:
    """Repair the arguments of a typed tool. The decoder decides."""
    value, whole = _open(tool, raw)
    if whole.faults:
        return whole
    parts = {name: Raw(msgspec.json.encode(each)) for name, each in value.items()}
    refusals = _refusals(signature, parts)
    shown = [p for p in signature.parameters if not p.hidden or p.name in value]
    violations, notes = repair(value, _finder(tool, shown, refusals))
    if notes:
        parts = {name: Raw(msgspec.json.encode(each)) for name, each in value.items()}
        refusals = _refusals(signature, parts)
    lines = [each.line for each in violations]
    for parameter in signature.parameters:
        if (error := refusals.get(parameter.name)) is not None:
            listed = [each.where for each in violations if each.where[:1] == (parameter.name,)]
            parts[parameter.name], more = _fit(parameter, parts[parameter.name], error, listed)
            lines += more
    if lines:
        return RepairResult(faults=tuple(shorten(lines)))
    try:
        return RepairResult(signature.decode(msgspec.json.encode(parts)), notes=(*whole.notes, *notes))
    except Exception as error:  # an author's validator may raise anything
        return RepairResult(faults=(plain(error),))


def _open(tool: str, raw: bytes | Raw) -> tuple[dict[str, Any], RepairResult]:
    """The arguments as a whole, out of a string if they came as one; and the fault if they are no object."""
    try:
        value = msgspec.json.decode(raw)
    except _UNREADABLE as error:
        text = "some of it is no UTF-8" if isinstance(error, UnicodeDecodeError) else str(error).partition(" - at `")[0]
        return {}, RepairResult(faults=(f"arguments: not valid JSON ({cut(text)})",))
    if is_object(value):
        return value, RepairResult()
    if is_object(inner := _parsed(value, 0)):
        return inner, RepairResult(notes=("the arguments came as a JSON string; it was parsed",))
    fault = f"arguments: expected an object with the arguments of {cut(tool)}, got {kind(value)}"
    return {}, RepairResult(faults=(fault,))


# -- repairs


def repair(value: dict[str, Any], find: Find) -> tuple[list[Violation], tuple[str, ...]]:
    """Repair a value in place, until it is valid or no repair applies.

    Returns the remaining violations, and the repairs.
    """
    notes: list[str] = []
    violations = find(value)
    for _ in range(MAX_ROUNDS):
        helped = [note for each in violations if (note := _try(value, each))]
        if not helped:
            break
        notes += helped
        violations = find(value)
    return violations, tuple(shorten(notes))


def _try(value: Any, violation: Violation) -> str | None:
    """Repair one place, and return the note; None if that is not possible."""
    if violation.repair is None or not violation.where:
        return None
    *steps, last = violation.where
    for step in steps:
        value = value[step]
    if violation.repair == "omit":
        removed = value.pop(last, False) is None  # two violations may be about the same null
        return f"`{path(violation.where)}` came as null; it was left out" if removed else None
    parsed = _parsed(value[last], len(violation.where))
    if parsed is None:
        return None
    value[last] = parsed
    return f"`{path(violation.where)}` came as a JSON string; it was parsed"


def _parsed(text: Any, level: int) -> Any:
    """The JSON inside a string at this level of the arguments; None if there is none, or too much."""
    if not isinstance(text, str) or len(text) > MAX_PARSED_BYTES:
        return None
    raw = text.encode(errors="replace")
    # The framer checked how deep the message nests, but not the inside of its strings.
    if too_deep(raw, DEFAULT_LIMITS.depth - level):
        return None
    try:
        return msgspec.json.decode(raw)
    except _UNREADABLE:
        return None


# -- the decoder of a typed tool


def _refusals(signature: Signature, given: dict[str, Raw]) -> dict[str, Exception]:
    """The decoder's error for each argument that it refuses."""
    found = {p.name: _refusal(p, given[p.name]) for p in signature.parameters if p.name in given}
    return {name: error for name, error in found.items() if error is not None}


def _refusal(parameter: Parameter, raw: Raw) -> Exception | None:
    try:
        msgspec.json.decode(raw, type=parameter.type, dec_hook=decode_special)
    except Exception as error:  # an author's validator may raise anything
        return error
    return None


def _finder(tool: str, parameters: Sequence[Parameter], refused: Iterable[str]) -> Find:
    """Lists the violations of the parameters' schema. An argument that the decoder took is not checked again."""
    from longshore.schema.validate import SchemaProblem, build_finder

    schemas = Schemas("validation")
    missing_or_wrong = {p.name for p in parameters if p.required} | set(refused)
    properties = {p.name: schemas.of(p.type) if p.name in missing_or_wrong else {} for p in parameters}
    required = [p.name for p in parameters if p.required]
    schema = schemas.close({"properties": properties, "required": required, "additionalProperties": False})
    try:
        return build_finder(schema, tool)
    except SchemaProblem:  # pydantic may write a schema that is none
        return lambda _: []


def _fit(parameter: Parameter, raw: Raw, error: Exception, listed: list[Place]) -> tuple[Raw, list[str]]:
    """The value as the declared type takes it, or the decoder's reasons against it, perhaps the first of several.

    Beside listed violations only those that are certainly others: not inside of one, nor around it.
    """
    value: Any = None
    if len(bytes(raw)) <= MAX_PARSED_BYTES:
        value = _integral(msgspec.json.decode(raw))
        whole = Raw(msgspec.json.encode(value))
        refusal = _refusal(parameter, whole)
        if refusal is None:
            return whole, []
        error = refusal
    lines: list[str] = []
    for steps, text in places(error):
        where, came = (parameter.name, *steps), _at(value, steps)
        apart = came is not UNSET and all(where[: len(each)] != each[: len(where)] for each in listed)
        if apart or not listed:
            lines.append(Violation(where, wrong_form(text, came)).line)
    return raw, lines


def _at(value: Any, steps: Place) -> Any:
    """The value at a place; UNSET if the place leads nowhere."""
    try:
        for step in steps:
            value = value[step]
    except (LookupError, TypeError):
        return UNSET
    return value


def _integral(value: Any) -> Any:
    """The value with 3.0 as 3 throughout."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if is_array(value):
        return [_integral(v) for v in value]
    if is_object(value):
        return {k: _integral(v) for k, v in value.items()}
    return value
