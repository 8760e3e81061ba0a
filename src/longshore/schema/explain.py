"""Why arguments of a typed tool were refused: one line per failure, all at once. Only reached after the decoder failed.

What a model plainly meant is taken after all: see `mending`, and a whole number written as 3.0, which JSON Schema calls
an integer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw

from longshore.schema.failure import shorten
from longshore.schema.infer import Schemas
from longshore.schema.kinds import is_array, is_object
from longshore.schema.mending import PARSED_BYTES, NotAnObject, mend, open_arguments
from longshore.schema.phrase import model_lines, plain
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
    told = {breach.where[0] for breach in mended.breaches if breach.where}
    for parameter in signature.parameters:
        name = parameter.name
        if name in refusals and name not in told:
            parts[name], failures = _fit(parameter, parts[name], refusals[name])
            lines += failures
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


def _fit(parameter: Parameter, raw: Raw, error: Exception) -> tuple[Raw, list[str]]:
    """The value as the declared type takes it, or the decoder's reasons why it can't be taken."""
    if len(bytes(raw)) <= PARSED_BYTES:
        whole = Raw(msgspec.json.encode(_integral(msgspec.json.decode(raw))))
        if _refusal(parameter, whole) is None:
            return whole, []
    found = model_lines(error)
    return raw, [_join(parameter.name, line) for line in ([plain(error)] if found is None else found)]


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


def _join(name: str, line: str) -> str:
    where, colon, said = line.partition(": ")
    if colon and re.fullmatch(r"[\w.\[\]]+", where):
        return f"{name}{where}: {said}" if where.startswith("[") else f"{name}.{where}: {said}"
    return f"{name}: {line}"
