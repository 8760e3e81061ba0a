"""Prompts: a function whose result is the start of a conversation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, cast

import msgspec
from msgspec import Struct

from longshore.errors import ProtocolError
from longshore.protocol.content import Icon, Message, lower_block
from longshore.registry.function import check_timeout, invoker, name_of, read_signature, run_mode
from longshore.registry.results import to_block
from longshore.registry.source_location import SourceLocation
from longshore.registry.text_arguments import read_texts
from longshore.registry.tool import Entry, Json, check_name, report_problem
from longshore.schema.output import OutputMismatch
from longshore.schema.signature import Signature
from longshore.wire.codec import INVALID_PARAMS

_decode = msgspec.json.Decoder(dict[str, str]).decode


class PromptOptions(Struct, kw_only=True):
    """The options of `@app.prompt(…)`."""

    name: str | None = None
    title: str | None = None
    description: str | None = None
    icons: Sequence[Icon] = ()
    meta: Mapping[str, Json] | None = None
    timeout: float | Literal[False] | None = None
    run: Literal["thread", "inline"] | None = None


def prompt_entry(fn: Callable[..., Any], options: PromptOptions, context_type: type) -> Entry:
    """The entry of a prompt."""
    name = name_of(fn) if options.name is None else options.name
    check_name(name, "prompt", fn)
    check_timeout(fn, options.timeout)
    signature = read_signature(fn, context_type)
    describe = _Describe(fn, name, options, signature)
    return Entry(
        kind="prompt",
        name=name,
        where=SourceLocation(fn),
        run=run_mode(fn, options.run, signature.is_async),
        decode=lambda raw: read_texts(_read(raw), signature),
        invoke=invoker(fn, signature),
        render=lambda value, call: _render(value, call, describe),
        explain=report_problem,
        describe=describe,
        timeout=options.timeout,
        asked=signature.asked,
        parameters={p.name: p.type for p in signature.parameters},
        effects="read",
    )


def _read(raw: Any) -> dict[str, str]:
    if bytes(raw) == b"null":
        return {}  # some clients send null where they mean no arguments
    try:
        return _decode(raw)
    except msgspec.ValidationError as problem:
        text = str(problem).replace("`", "")
        raise ProtocolError(INVALID_PARAMS, f"prompt arguments are an object of strings: {text}") from None


def _render(value: Any, call: Any, describe: _Describe) -> dict[str, Any]:
    items = list(cast(list[Any], value)) if isinstance(value, (list, tuple)) else [value]
    result: dict[str, Any] = {"messages": [_message(item, call) for item in items]}
    description = describe.description
    return {"description": description, **result} if description else result


def _message(item: Any, call: Any) -> Message:
    if isinstance(item, dict) and "role" in item:
        item = msgspec.convert(item, Message)
    if item is None:
        raise OutputMismatch("a prompt returns a text, a block, a message or a list of them, not None")
    if not isinstance(item, Message):
        item = Message("user", item)
    return Message(item.role, lower_block(to_block(item.content), call.peer.revision))


class _Describe:
    """The description of a prompt for clients."""

    def __init__(self, fn: Callable[..., Any], name: str, options: PromptOptions, signature: Signature) -> None:
        self._fn, self._name, self._options, self._signature = fn, name, options, signature

    @property
    def description(self) -> str | None:
        return self._options.description or self._doc().summary or None

    def __call__(self) -> dict[str, Json]:
        options, doc = self._options, self._doc()
        described = {
            "name": self._name,
            "title": options.title,
            "description": self.description,
            "icons": list(options.icons) or None,
            "_meta": options.meta,
            "arguments": [self._argument(p, doc.parameters) for p in self._signature.parameters] or None,
        }
        return {key: value for key, value in described.items() if value is not None}

    def _argument(self, parameter: Any, descriptions: Mapping[str, str]) -> dict[str, Json]:
        argument: dict[str, Json] = {"name": parameter.name}
        description = parameter.description or descriptions.get(parameter.name)
        if description:
            argument["description"] = description
        return argument | {"required": parameter.required}

    def _doc(self) -> Any:
        from longshore.schema.docstring import parse

        return parse(self._fn.__doc__, [p.name for p in self._signature.parameters])
