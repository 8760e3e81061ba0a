"""Arguments that arrive as text, those of prompts and the variables of a URI template, and their completion."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

import msgspec
from msgspec import Struct

from longshore.errors import ProtocolError
from longshore.limits import DEFAULT_LIMITS
from longshore.registry.arity import read_arity
from longshore.registry.source_location import SourceLocation, refuse
from longshore.registry.tool import Entry, report_problem
from longshore.schema.output import OutputMismatch
from longshore.schema.signature import Signature
from longshore.wire.codec import INVALID_PARAMS, too_deep


def read_texts(texts: Mapping[str, str], signature: Signature) -> Any:
    """The texts as the typed arguments of the function. Raises -32602 that names every fault."""
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
    """The text for a wrong argument. The decoder would say that it got a string, and everything here is one."""
    from longshore.schema.infer import type_schema
    from longshore.schema.phrase import describe, plain, quote

    foreign = not isinstance(problem, msgspec.ValidationError)
    if foreign or "got `str`" in str(problem) or "Invalid enum value" in str(problem):
        return f"expected {describe(type_schema(kind))}, got {quote(text)}"
    return plain(problem)


def _read(text: str, kind: Any) -> Any:
    if kind is str or kind is Any:
        return text
    from longshore.schema.custom_type import decode_special

    try:
        return msgspec.convert(text, kind, strict=False, dec_hook=decode_special)
    except msgspec.ValidationError:
        if text[:1] not in ("[", "{") or too_deep(text.encode(errors="replace"), DEFAULT_LIMITS.depth):
            raise
        return msgspec.json.decode(text, type=kind, dec_hook=decode_special)


# -- completion

MAX_VALUES = 100
"""The specification's limit for one answer."""


class CompletionRequest(Struct):
    """The text so far, and the other arguments that are already given."""

    value: str
    given: dict[str, str]


def completion_entry(ref: str, argument: str, fn: Callable[..., Any]) -> Entry:
    """The entry of a completion. The function takes the text so far, and may take the other arguments."""
    arity = read_arity(fn)
    if arity.fewest > 2 or arity.most < 1:
        refuse(fn, "a completion takes the text so far, and maybe the other arguments", "def complete(text, given)")
    both = arity.most >= 2
    return Entry(
        kind="completion",
        name=f"{ref} {argument}",
        where=SourceLocation(fn),
        run="async" if arity.is_async else "thread",
        decode=lambda request: request,
        invoke=lambda c, _: fn(c.value, c.given) if both else fn(c.value),
        render=lambda values, _: render_completion(values),
        explain=report_problem,
        describe=dict,
        effects="read",
    )


def render_completion(values: Any) -> dict[str, Any]:
    """The first hundred values, and how many there are."""
    if values.__class__ in (str, bytes) or not hasattr(values, "__iter__"):
        raise OutputMismatch(f"a completion returns a list of texts, not {type(values).__name__}")
    found = [str(value) for value in values]
    completion: dict[str, Any] = {"values": found[:MAX_VALUES], "total": len(found), "hasMore": len(found) > MAX_VALUES}
    return {"completion": completion}


def choices(kind: Any) -> list[str] | None:
    """The values that a type allows: the members of a Literal or an enum, also if it is optional."""
    if get_origin(kind) in (Union, UnionType):
        found = [choices(part) for part in get_args(kind) if part is not NoneType]
        return [value for part in found if part is not None for value in part] or None
    if get_origin(kind) is Literal:
        return [str(value) for value in get_args(kind)]
    if isinstance(kind, type) and issubclass(kind, Enum):
        return [str(member.value) for member in kind]
    return None


def matching(values: list[str], text: str) -> list[str]:
    """The values that begin with the text, ignoring case."""
    return [value for value in values if value.lower().startswith(text.lower())]
