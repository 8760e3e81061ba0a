"""Repairs arguments that a tool refused, where the meaning is plain, and says what is wrong with the others.

- An array or object as a JSON string, where no string is allowed. Also the arguments as a whole.
- Null for an argument that may be left out and can't be null: some APIs make a model fill in everything.
- A whole number written as 3.0, which JSON Schema calls an integer.

Repaired arguments are checked again, so nothing is accepted that the tool would not accept. All violations are listed
at once, one line each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

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
    """Arguments as the handler takes them, or the faults that prevent it."""

    arguments: Any = None
    faults: tuple[str, ...] = ()
    """One line each, for the model. None: the arguments could be repaired."""
    notes: tuple[str, ...] = ()
    """What was repaired, such as JSON inside a string. Paths, never values."""


def repair_raw(tool: str, raw: bytes | Raw, find: Find | None) -> RepairResult:
    """Repair the arguments of a raw tool. `find` lists the violations of its schema; None if it validates nothing."""
    try:
        opened = _open(tool, raw)
    except _NotAnObject as problem:
        return RepairResult(faults=problem.lines)
    if find is None:
        return RepairResult(opened.value, notes=opened.notes)
    repaired = repair(opened.value, find)
    if repaired.violations:
        return RepairResult(faults=tuple(shorten([each.line for each in repaired.violations])))
    return RepairResult(repaired.value, notes=(*opened.notes, *repaired.notes))


def repair_typed(tool: str, signature: Signature, raw: bytes | Raw) -> RepairResult:
    """Repair the arguments of a typed tool. The decoder has the last word."""
    try:
        opened = _open(tool, raw)
    except _NotAnObject as problem:
        return RepairResult(faults=problem.lines)
    given = msgspec.json.decode(opened.text, type=dict[str, Raw])
    refusals = _refusals(signature, given)
    repaired = repair(opened.value, _finder(tool, signature, refusals))
    lines = [each.line for each in repaired.violations]
    for name in repaired.touched & repaired.value.keys():
        given[str(name)] = Raw(msgspec.json.encode(repaired.value[str(name)]))
    parts = {name: given[name] for name in repaired.value}
    if repaired.touched:
        refusals = _refusals(signature, parts)
    listed = {each.where for each in repaired.violations}
    above = {part for where in listed for part in _prefixes(where)}
    for parameter in signature.parameters:
        name = parameter.name
        if name in refusals:
            parts[name], found = _fit(parameter, parts[name], refusals[name])
            if (name,) in above:  # beside a listed violation, only one that is certainly another
                found = [each for each in found if each.came is not UNSET and _is_apart(each.where, listed, above)]
            lines += [Violation(each.where, wrong_form(each.text, each.came)).line for each in found]
    if lines:
        return RepairResult(faults=tuple(shorten(lines)))
    try:
        notes = (*opened.notes, *repaired.notes)
        return RepairResult(signature.decode(msgspec.json.encode(parts)), notes=notes)
    except Exception as error:  # an author's validator may raise anything
        return RepairResult(faults=(plain(error),))


# -- the arguments as a whole


class _NotAnObject(Exception):
    """The arguments as a whole are no object. Its lines are for the model."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__("; ".join(lines))
        self.lines = tuple(lines)


class _Opened(NamedTuple):
    """Arguments that are an object: their text, out of a string if they came as one, and their value."""

    text: bytes | Raw
    value: dict[str, Any]
    notes: tuple[str, ...] = ()


def _open(tool: str, raw: bytes | Raw) -> _Opened:
    try:
        value = msgspec.json.decode(raw)
    except _UNREADABLE as error:
        raise _NotAnObject(_unreadable_arguments(raw) or [f"arguments: {_why(error)}"]) from None
    if is_object(value):
        return _Opened(raw, value)
    inner = _parsed(value, 0)
    if is_object(inner):
        return _Opened(value.encode(), inner, ("the arguments came as a JSON string; it was parsed",))
    raise _NotAnObject([f"arguments: expected an object with the arguments of {cut(tool)}, got {kind(value)}"])


def _unreadable_arguments(raw: bytes | Raw) -> list[str]:
    """A line for each argument that can't be read: a number out of range, bytes that are no text."""
    lines: list[str] = []
    try:
        for name, part in msgspec.json.decode(raw, type=dict[str, Raw]).items():
            try:
                msgspec.json.decode(part)
            except _UNREADABLE as error:
                lines.append(f"{cut(name)}: {_why(error)}")
    except _UNREADABLE:
        return []
    return shorten(lines)


def _why(error: Exception) -> str:
    text = "some of it is no UTF-8" if isinstance(error, UnicodeDecodeError) else str(error).partition(" - at `")[0]
    return f"not valid JSON ({cut(text)})"


# -- repairs


class RepairedArguments(NamedTuple):
    """Arguments after repairs, their remaining violations, and what was repaired."""

    value: dict[str, Any]
    violations: list[Violation]
    notes: tuple[str, ...] = ()
    touched: frozenset[str | int] = frozenset()
    """The arguments that were changed."""


def repair(value: dict[str, Any], find: Find) -> RepairedArguments:
    """Repair a value in place, until it is valid or nothing helps."""
    notes: list[str] = []
    touched: set[str | int] = set()
    violations = find(value)
    for _ in range(MAX_ROUNDS):
        helped = [(each.where, note) for each in violations if (note := _try(value, each))]
        if not helped:
            break
        notes += [note for _, note in helped]
        touched |= {where[0] for where, _ in helped}
        violations = find(value)
    return RepairedArguments(value, violations, tuple(shorten(notes)), frozenset(touched))


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


def _finder(tool: str, signature: Signature, refused: Iterable[str]) -> Find:
    """Lists the violations of the parameters' schema. An argument that the decoder took is not checked again."""
    from longshore.schema.validate import SchemaProblem, build_finder

    schemas = Schemas("validation")
    missing_or_wrong = {p.name for p in signature.parameters if p.required} | set(refused)
    properties = {p.name: schemas.of(p.type) if p.name in missing_or_wrong else {} for p in signature.parameters}
    required = [p.name for p in signature.parameters if p.required]
    schema = schemas.close({"properties": properties, "required": required, "additionalProperties": False})
    try:
        return build_finder(schema, tool)
    except SchemaProblem:  # pydantic may write a schema that is none
        return lambda _: []


class _Reason(NamedTuple):
    """A reason of the decoder against a value. It may give only the first of several."""

    where: Place
    text: str
    came: Any
    """The value there; UNSET if it is not known."""


def _fit(parameter: Parameter, raw: Raw, error: Exception) -> tuple[Raw, list[_Reason]]:
    """The value as the declared type takes it, or the decoder's reasons against it."""
    value: Any = None
    if len(bytes(raw)) <= MAX_PARSED_BYTES:
        value = _integral(msgspec.json.decode(raw))
        whole = Raw(msgspec.json.encode(value))
        refusal = _refusal(parameter, whole)
        if refusal is None:
            return whole, []
        error = refusal
    return raw, [_Reason((parameter.name, *steps), text, _at(value, steps)) for steps, text in places(error)]


def _is_apart(where: Place, listed: set[Place], above: set[Place]) -> bool:
    return where not in above and listed.isdisjoint(_prefixes(where))


def _prefixes(where: Place) -> Iterable[Place]:
    """A place and all places that it is inside of."""
    return (where[:length] for length in range(1, len(where) + 1))


def _at(value: Any, steps: Place) -> Any:
    for step in steps:
        if is_object(value) and isinstance(step, str):
            value = value.get(step, UNSET)
        elif is_array(value) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
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
