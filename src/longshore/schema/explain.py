"""Why arguments of a typed tool were refused: one line per failure, all at once. Only reached after the decoder failed.

What a model plainly meant is taken after all: see `mending`, and a whole number written as 3.0, which JSON Schema calls
an integer.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec import Raw

from longshore.schema.failure import shorten
from longshore.schema.infer import Schemas
from longshore.schema.kinds import is_array, is_object
from longshore.schema.mending import Mended, NotAnObject, mend, open_arguments
from longshore.schema.phrase import model_lines, plain
from longshore.schema.reading import Reading
from longshore.schema.signature import Parameter, Signature
from longshore.schema.standin import decode_special


def explain(tool: str, signature: Signature, raw: bytes | Raw) -> Reading:
    """The arguments if they could be understood after all, else a line for each fault."""
    try:
        text, notes = open_arguments(tool, raw)
    except NotAnObject as problem:
        return Reading(faults=(str(problem),))
    given = msgspec.json.decode(text, type=dict[str, Raw])
    mended = _mend(tool, signature, given, msgspec.json.decode(text))
    lines = [breach.line for breach in mended.breaches]
    parts = {
        name: Raw(msgspec.json.encode(mended.value[name])) if name in mended.touched else given[name]
        for name in mended.value
    }
    told = {breach.where[0] for breach in mended.breaches if breach.where}
    for parameter in signature.parameters:
        if parameter.name in parts and parameter.name not in told:
            parts[parameter.name], failures = _fit(parameter, parts[parameter.name])
            lines += failures
    if lines:
        return Reading(faults=tuple(shorten(lines)))
    return _decoded(signature, msgspec.json.encode(parts), (*notes, *mended.notes))


def _mend(tool: str, signature: Signature, given: dict[str, Raw], value: dict[str, Any]) -> Mended:
    from longshore.schema.validate import finder

    refused = [p for p in signature.parameters if p.name in given and _refusal(p, given[p.name]) is not None]
    return mend(value, finder(_declared(signature, refused), tool))


def _declared(signature: Signature, refused: list[Parameter]) -> dict[str, Any]:
    """What the function takes. The decoder has the last word, so what it took is not looked at again."""
    schemas = Schemas("validation")
    missing_or_wrong = {p.name for p in signature.parameters if p.required} | {p.name for p in refused}
    properties = {p.name: schemas.of(p.type) if p.name in missing_or_wrong else {} for p in signature.parameters}
    required = [p.name for p in signature.parameters if p.required]
    return schemas.close({"properties": properties, "required": required, "additionalProperties": False})


def _decoded(signature: Signature, text: bytes, notes: tuple[str, ...]) -> Reading:
    try:
        return Reading(signature.decode(text), notes=notes)
    except Exception as error:  # a validator of the author's may raise anything
        return Reading(faults=(plain(error),))


def _fit(parameter: Parameter, raw: Raw) -> tuple[Raw, list[str]]:
    """The value as the declared type takes it, or the decoder's reasons why it can't be taken."""
    error = _refusal(parameter, raw)
    if error is None:
        return raw, []
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
