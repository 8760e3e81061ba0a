"""Prompts, and arguments that arrive as text: those of prompts and the variables of URI templates, with completion."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Literal, Union, cast, get_args, get_origin

import msgspec
from msgspec import Struct

from longshore.errors import ProtocolError
from longshore.limits import DEFAULT_LIMITS
from longshore.protocol.content import Message, lower_block
from longshore.registry.function import check_timeout, invoker, name_of, read_arity, read_signature, run_mode
from longshore.registry.results import to_block
from longshore.registry.source_location import SourceLocation, refuse
from longshore.registry.tool import Entry, Json, Options, check_name, describe, report_problem
from longshore.schema.output import OutputMismatch
from longshore.schema.signature import Signature
from longshore.wire.codec import INVALID_PARAMS, too_deep

_decode = msgspec.json.Decoder(dict[str, str]).decode


def prompt_entry(fn: Callable[..., Any], options: Options, context_type: type) -> Entry:
    """The entry of a prompt: a function whose result is the start of a conversation."""
    name = name_of(fn) if options.name is None else options.name
    check_name(name, "prompt", fn)
    signature = read_signature(fn, context_type)

    def about() -> dict[str, Json]:
        from longshore.schema.docstring import parse

        doc = parse(fn.__doc__, [p.name for p in signature.parameters])
        arguments: list[dict[str, Json]] = []
        for parameter in signature.parameters:
            text = parameter.description or doc.parameters.get(parameter.name)
            described = {"description": text} if text else {}
            arguments.append({"name": parameter.name, **described, "required": parameter.required})
        return describe(name, options, options.description or doc.summary, {"arguments": arguments or None})

    def render(value: Any, call: Any) -> dict[str, Any]:
        items = list(cast(list[Any], value)) if isinstance(value, (list, tuple)) else [value]
        result: dict[str, Any] = {"messages": [_message(item, call) for item in items]}
        description = about().get("description")
        return {"description": description, **result} if description else result

    return Entry(
        kind="prompt",
        name=name,
        decode=lambda raw: read_texts(_read_strings(raw), signature),
        invoke=invoker(fn, signature),
        render=render,
        describe=about,
        **text_fields(fn, options, signature),
    )


def text_fields(fn: Callable[..., Any], options: Options, signature: Signature) -> dict[str, Any]:
    """The fields of an entry that are the same for prompts and resources."""
    check_timeout(options.timeout, fn)
    return {
        "where": SourceLocation(fn),
        "run": run_mode(fn, options.run, signature.is_async),
        "explain": report_problem,
        "timeout": options.timeout,
        "asked": signature.asked,
        "parameters": {parameter.name: parameter.type for parameter in signature.parameters},
        "effects": "read",
    }


def _read_strings(raw: Any) -> dict[str, str]:
    if bytes(raw) == b"null":
        return {}  # some clients send null where they mean no arguments
    try:
        return _decode(raw)
    except msgspec.ValidationError as problem:
        text = str(problem).replace("`", "")
        raise ProtocolError(INVALID_PARAMS, f"prompt arguments are an object of strings: {text}") from None


def _message(item: Any, call: Any) -> Message:
    if isinstance(item, dict) and "role" in item:
        item = msgspec.convert(item, Message)
    if item is None:
        raise OutputMismatch("a prompt returns a text, a block, a message or a list of them, not None")
    if not isinstance(item, Message):
        item = Message("user", item)
    return Message(item.role, lower_block(to_block(item.content), call.peer.revision))


# -- arguments as text


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
    fewest, most, is_async = read_arity(fn)
    if fewest > 2 or most < 1:
        refuse(fn, "a completion takes the text so far, and maybe the other arguments", "def complete(text, given)")
    return Entry(
        kind="completion",
        name=f"{ref} {argument}",
        where=SourceLocation(fn),
        run="async" if is_async else "thread",
        decode=lambda request: request,
        invoke=lambda c, _: fn(c.value, c.given) if most >= 2 else fn(c.value),
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
