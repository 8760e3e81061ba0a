"""Why arguments of a typed tool were refused: one line per failure, all at once. Only reached after the decoder failed.

What a model plainly meant is taken after all: see `mending`, and a whole number written as 3.0, which JSON Schema calls
an integer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec import UNSET, Raw

from longshore.schema.failure import Breach, Place, shorten
from longshore.schema.infer import Schemas
from longshore.schema.kinds import is_array, is_object
from longshore.schema.mending import PARSED_BYTES, NotAnObject, mend, open_arguments
from longshore.schema.phrase import places, plain, wrong_form
from longshore.schema.reading import Reading
from longshore.schema.signature import Parameter, Signature
from longshore.schema.standin import decode_special

if TYPE_CHECKING:
    from longshore.schema.validate import Find


def explain(tool: str, signature: Signature, raw: bytes | Raw) -> Reading:
    """The arguments if they could be understood after all, else a line for each fault."""
    try:
        opened = open_arguments(tool, raw)
    except NotAnObject as problem:
        return Reading(faults=problem.lines)
    given = msgspec.json.decode(opened.text, type=dict[str, Raw])
    refusals = _refusals(signature, given)
    mended = mend(opened.value, _finder(tool, signature, refusals))
    lines = [breach.line for breach in mended.breaches]
    for name in mended.touched & mended.value.keys():
        given[str(name)] = Raw(msgspec.json.encode(mended.value[str(name)]))
    parts = {name: given[name] for name in mended.value}
    if mended.touched:
        refusals = _refusals(signature, parts)
    told = {breach.where for breach in mended.breaches}
    above = {part for where in told for part in _parts(where)}
    for parameter in signature.parameters:
        name = parameter.name
        if name in refusals:
            parts[name], found = _fit(parameter, parts[name], refusals[name])
            if (name,) in above:  # beside what is told, only what is surely another fault
                found = [each for each in found if each.came is not UNSET and _is_apart(each.where, told, above)]
            lines += [Breach(each.where, wrong_form(each.said, each.came)).line for each in found]
    if lines:
        return Reading(faults=tuple(shorten(lines)))
    return _decoded(signature, msgspec.json.encode(parts), (*opened.notes, *mended.notes))


def _refusals(signature: Signature, given: dict[str, Raw]) -> dict[str, Exception]:
    """What the decoder, which has the last word, has against each argument."""
    found = {p.name: _refusal(p, given[p.name]) for p in signature.parameters if p.name in given}
    return {name: error for name, error in found.items() if error is not None}


def _finder(tool: str, signature: Signature, refused: Iterable[str]) -> Find:
    from longshore.schema.validate import finder

    return finder(_declared(signature, refused), tool)


def _declared(signature: Signature, refused: Iterable[str]) -> dict[str, Any]:
    """What the function takes. The decoder has the last word, so what it took is not looked at again."""
    schemas = Schemas("validation")
    missing_or_wrong = {p.name for p in signature.parameters if p.required} | set(refused)
    properties = {p.name: schemas.of(p.type) if p.name in missing_or_wrong else {} for p in signature.parameters}
    required = [p.name for p in signature.parameters if p.required]
    return schemas.close({"properties": properties, "required": required, "additionalProperties": False})


def _decoded(signature: Signature, text: bytes, notes: tuple[str, ...]) -> Reading:
    try:
        return Reading(signature.decode(text), notes=notes)
    except Exception as error:  # a validator of the author's may raise anything
        return Reading(faults=(plain(error),))


class _Reason(NamedTuple):
    """What the decoder has against a value. Of several it may tell the first only."""

    where: Place
    said: str
    came: Any
    """What is there; UNSET where that is not known."""


def _fit(parameter: Parameter, raw: Raw, error: Exception) -> tuple[Raw, list[_Reason]]:
    """The value as the declared type takes it, or the decoder's reasons why it can't be taken."""
    value: Any = None
    if len(bytes(raw)) <= PARSED_BYTES:
        value = _integral(msgspec.json.decode(raw))
        whole = Raw(msgspec.json.encode(value))
        refusal = _refusal(parameter, whole)
        if refusal is None:
            return whole, []
        error = refusal
    return raw, [_Reason((parameter.name, *steps), said, _at(value, steps)) for steps, said in places(error)]


def _is_apart(where: Place, told: set[Place], above: set[Place]) -> bool:
    return where not in above and told.isdisjoint(_parts(where))


def _parts(where: Place) -> Iterable[Place]:
    """A place and all that it is inside of."""
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


def _refusal(parameter: Parameter, raw: Raw) -> Exception | None:
    try:
        msgspec.json.decode(raw, type=parameter.type, dec_hook=decode_special)
    except Exception as error:  # a validator of the author's may raise anything
        return error
    return None


def _integral(value: Any) -> Any:
    """The value with 3.0 as 3 throughout."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if is_array(value):
        return [_integral(v) for v in value]
    if is_object(value):
        return {k: _integral(v) for k, v in value.items()}
    return value
