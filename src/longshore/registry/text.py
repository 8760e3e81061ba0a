"""Arguments that arrive as text only: prompt arguments and the values in a URI."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from longshore.errors import ProtocolError
from longshore.limits import DEFAULT_LIMITS
from longshore.schema.signature import Signature
from longshore.wire.codec import INVALID_PARAMS
from longshore.wire.depth import too_deep


def read_texts(texts: Mapping[str, str], signature: Signature) -> Any:
    """The texts as what the function takes. Raises -32602, naming every fault."""
    known = {parameter.name: parameter for parameter in signature.parameters}
    faults = [f"{name}: unknown argument (takes: {', '.join(known) or 'none'})" for name in texts if name not in known]
    values: dict[str, Any] = {}
    for name, parameter in known.items():
        if name in texts:
            try:
                values[name] = _read(texts[name], parameter.type)
            except (msgspec.MsgspecError, ValueError) as problem:
                faults.append(f"{name}: {_fault(texts[name], parameter.type, problem)}")
        elif parameter.required:
            faults.append(f"{name}: missing")
    if faults:
        raise ProtocolError(INVALID_PARAMS, "invalid arguments: " + "; ".join(faults))
    return signature.arguments(**values)


def _fault(text: str, kind: Any, problem: Exception) -> str:
    """What was expected. The parser would say that it got a string, and everything here is one."""
    from longshore.schema.infer import type_schema
    from longshore.schema.phrase import describe, plain, quote

    foreign = not isinstance(problem, msgspec.ValidationError)
    if foreign or "got `str`" in str(problem) or "Invalid enum value" in str(problem):
        return f"expected {describe(type_schema(kind))}, got {quote(text)}"
    return plain(problem)


def _read(text: str, kind: Any) -> Any:
    if kind is str or kind is Any:
        return text
    from longshore.schema.standin import decode_special

    try:
        return msgspec.convert(text, kind, strict=False, dec_hook=decode_special)
    except msgspec.ValidationError:
        if text[:1] not in ("[", "{") or too_deep(text.encode(errors="replace"), DEFAULT_LIMITS.depth):
            raise
        return msgspec.json.decode(text, type=kind, dec_hook=decode_special)
