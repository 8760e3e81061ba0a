"""Why arguments were refused: one line per failure, all at once. Only reached after the typed decoder has failed.

Two kinds of arguments are accepted here after all, because some models send them: an array or object as a JSON string,
where the declared type can't be a string, and a whole number written as 3.0, which JSON Schema calls an integer.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec import Raw

from longshore.limits import DEFAULT_LIMITS
from longshore.schema.failure import nearest
from longshore.schema.infer import type_schema
from longshore.schema.kinds import is_array, is_object
from longshore.schema.phrase import cut, describe, kind, model_lines, plain
from longshore.schema.reading import Reading
from longshore.schema.signature import Parameter, Signature
from longshore.schema.standin import decode_special
from longshore.wire.depth import too_deep

SHOWN_LINES = 20
"""Lines of one explanation. An attacker's thousand unknown keys must not become a thousand lines."""


def explain(tool_name: str, signature: Signature, raw: bytes | Raw) -> Reading:
    """The arguments if they could be understood after all, else a line for each fault."""
    try:
        given = msgspec.json.decode(raw, type=dict[str, Raw])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return Reading(faults=(_no_object(tool_name, raw),))
    mended: dict[str, Raw] = {}
    lines = _unknown(tool_name, signature, given)
    for parameter in signature.parameters:
        if parameter.name in given:
            mended[parameter.name], failures = _mend(parameter, given[parameter.name])
            lines += failures
        elif parameter.required:
            lines.append(f"{parameter.name}: missing ({describe(type_schema(parameter.type))}, required)")
    if lines:
        return Reading(faults=tuple(_shortened(lines)))
    return _decoded(signature, msgspec.json.encode(mended))


def _decoded(signature: Signature, text: bytes) -> Reading:
    try:
        return Reading(signature.decode(text))
    except Exception as error:  # a validator of the author's may raise anything
        return Reading(faults=(plain(error),))


def _no_object(tool_name: str, raw: bytes | Raw) -> str:
    try:
        value = msgspec.json.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        return f"arguments: not valid JSON ({cut(str(error))})"
    return f"arguments: expected an object with the arguments of {cut(tool_name)}, got {kind(value)}"


def _unknown(tool_name: str, signature: Signature, given: dict[str, Raw]) -> list[str]:
    names = [p.name for p in signature.parameters]
    takes = f"takes: {', '.join(names)}" if names else f"{cut(tool_name)} takes no arguments"
    return [f"{cut(name)}: unknown argument{_hint(name, names)} ({takes})" for name in given if name not in names]


def _hint(name: str, names: list[str]) -> str:
    close = nearest(name, names)
    return f"; did you mean {close}?" if close else ""


def _mend(parameter: Parameter, raw: Raw) -> tuple[Raw, list[str]]:
    """The value as the declared type takes it, or the lines that say why it can't be taken."""
    error = _refusal(parameter, raw)
    if error is None:
        return raw, []
    try:
        value = msgspec.json.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return raw, [f"{parameter.name}: not valid JSON text"]
    for attempt in (_unquoted(parameter, value), _whole(value)):
        if attempt is not None and _refusal(parameter, attempt) is None:
            return attempt, []
    return raw, _failures(parameter, value, error)


def _refusal(parameter: Parameter, raw: Raw) -> Exception | None:
    try:
        msgspec.json.decode(raw, type=parameter.type, dec_hook=decode_special)
    except Exception as error:  # a validator of the author's may raise anything
        return error
    return None


def _unquoted(parameter: Parameter, value: Any) -> Raw | None:
    """The JSON inside a string, where the declared type is an array or object and can't be a string."""
    if not isinstance(value, str) or not value.lstrip().startswith(("[", "{")):
        return None
    text = value.encode(errors="replace")
    # The framer counted how deep the message nests, not what is inside its strings.
    if _takes_text(type_schema(parameter.type)) or too_deep(text, DEFAULT_LIMITS.depth):
        return None
    return Raw(text)


def _takes_text(schema: dict[str, Any]) -> bool:
    match schema:
        case {"anyOf": options}:
            return any(_takes_text(o) for o in options)
        case {"enum": values}:
            return any(isinstance(v, str) for v in values)
        case {"type": found}:
            return found == "string" or (is_array(found) and "string" in found)
        case {"$ref": _}:
            return False  # only records are written as references
        case _:
            return True


def _whole(value: Any) -> Raw:
    return Raw(msgspec.json.encode(_integral(value)))


def _integral(value: Any) -> Any:
    """The value with 3.0 as 3 throughout."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if is_array(value):
        return [_integral(v) for v in value]
    if is_object(value):
        return {k: _integral(v) for k, v in value.items()}
    return value


def _failures(parameter: Parameter, value: Any, error: Exception) -> list[str]:
    """All failures of one value. The schema knows them all; the decoder, which has the last word, only its first."""
    lines = _by_schema(parameter, value)
    if lines:
        return lines
    if (found := model_lines(error)) is not None:
        return [_join(parameter.name, line) for line in found]
    return [_join(parameter.name, plain(error))]


def _by_schema(parameter: Parameter, value: Any) -> list[str]:
    from longshore.schema.validate import SchemaProblem, compile

    try:
        return compile(type_schema(parameter.type)).errors(value, (parameter.name,))
    except SchemaProblem:  # a Python pattern that the validator can't read, or a very large type
        return []


def _join(name: str, line: str) -> str:
    where, colon, said = line.partition(": ")
    if colon and re.fullmatch(r"[\w.\[\]]+", where):
        return f"{name}{where}: {said}" if where.startswith("[") else f"{name}.{where}: {said}"
    return f"{name}: {line}"


def _shortened(lines: list[str]) -> list[str]:
    hidden = len(lines) - SHOWN_LINES
    return [*lines[:SHOWN_LINES], f"… and {hidden} more"] if hidden > 0 else lines
