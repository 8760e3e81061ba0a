"""Turns a return value into content. The renderer is chosen at registration, so a call only runs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

import msgspec
from msgspec import UNSET, Raw

from longshore.protocol.content import BLOCKS, CallResult, Contents, EmbeddedResource, Text, block_kind, is_object
from longshore.protocol.revisions import ANY_STRUCTURED, CONTENT
from longshore.schema.output import Output, OutputMismatch, encode

Render = Callable[[Any, Any], CallResult]
PASSTHROUGH = (*BLOCKS, Contents, CallResult)
_BLOCK_TYPES = frozenset(BLOCKS)
_NEEDED = {
    "text": ("text",),
    "image": ("data", "mimeType"),
    "audio": ("data", "mimeType"),
    "resource": ("resource",),
    "resource_link": ("uri", "name"),
}
"""The fields that make an object a content block, rather than data that also has a `type`."""


def renderer(output: Output) -> Render:
    """The renderer of a typed tool's values."""
    if not output.structured:
        return _render_text if output.exact is str else _render_content
    if output.exact is int or output.exact is bool:
        return _scalar_renderer(output, output.exact)
    return _structured_renderer(output)


def _render_text(value: Any, call: Any) -> CallResult:
    if value.__class__ is str:
        return CallResult([Text(value)])
    return _render_content(value, call)


def _scalar_renderer(output: Output, exact: type) -> Render:
    def render(value: Any, _: Any) -> CallResult:
        if value.__class__ is not exact:
            if value.__class__ is CallResult:
                return _enforced(value, output)
            raw = output.enforce(value)
            return CallResult([Text(raw.decode())], {"result": Raw(raw)})
        text = str(value) if exact is int else ("true" if value else "false")
        return CallResult([Text(text)], {"result": value})

    return render


def _structured_renderer(output: Output) -> Render:
    def render(value: Any, _: Any) -> CallResult:
        if value.__class__ is CallResult:
            return _enforced(value, output)
        if value.__class__ is list and any(isinstance(item, BLOCKS) for item in value):
            raise OutputMismatch(
                "it declares a list of data and returns content blocks; declare e.g. -> list[Text | Image]"
            )
        raw = output.enforce(value)
        structured = {"result": Raw(raw)} if output.wrap else Raw(raw)
        return CallResult([Text(raw.decode())], structured)

    return render


def _enforced(value: CallResult, output: Output) -> CallResult:
    """An author's CallResult where a type was declared: its structured part must be of that type."""
    result = copy_result(value)
    if result.is_error is True:
        return result
    if result.structured is UNSET:
        raise OutputMismatch("it declares a type, and there is no structured content")
    given = msgspec.json.decode(result.structured)
    if not output.wrap:
        output.enforce(given)
        return result
    wrapped = isinstance(given, dict) and "result" in given
    output.enforce(given["result"] if wrapped else given)
    return result if wrapped else msgspec.structs.replace(result, structured={"result": result.structured})


def schema_renderer(check: Callable[[Any], list[str]], schema: Mapping[str, Any], make: Render) -> Render:
    """The renderer for an author's output schema, which the structured part must match."""
    wrap = schema.get("type") != "object"

    def render(value: Any, call: Any) -> CallResult:
        result = make(value, call)
        structured = result.structured
        if result.is_error is not True:
            missing = ["there is no structured content"]
            faults = missing if structured is UNSET else check(msgspec.json.decode(_written(structured)))
            if faults:
                raise OutputMismatch("it breaks its own output schema: " + "; ".join(faults))
        if wrap and structured is not UNSET and _wants_objects(call):
            result.structured = {"result": structured}
        return result

    return render


def render_data(value: Any, _: Any) -> CallResult:
    """Data as text and as structured content; a whole result as it is."""
    if value.__class__ is CallResult:
        return copy_result(value)
    raw = encode(value)
    return CallResult([Text(raw.decode())], Raw(raw))


def render_raw(value: Any, _: Any) -> CallResult:
    """The result of a raw handler: a CallResult, or the JSON object that MCP defines. Nothing is added."""
    if value.__class__ is CallResult:
        return copy_result(value)
    if isinstance(value, dict) and isinstance(value.get("content"), list):  # pyright: ignore[reportUnknownMemberType]
        fields = cast(dict[str, Any], value)
        return CallResult(
            fields["content"],
            fields.get("structuredContent", UNSET),
            fields.get("isError", UNSET),
            fields.get("_meta", UNSET),
        )
    kind = type(cast(object, value)).__name__
    raise OutputMismatch(f"a raw handler returns a CallResult or an object with `content`, not {kind}")


def copy_result(value: CallResult) -> CallResult:
    """A copy of a result with everything encoded. The original stays as it is: it may be returned again."""
    if not isinstance(value.content, (list, tuple)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise OutputMismatch("the content of a CallResult is a list of blocks")
    content: list[Any] = [block if isinstance(block, (dict, *BLOCKS)) else to_block(block) for block in value.content]
    return msgspec.structs.replace(value, content=content, structured=_written(value.structured))


def _written(structured: Any) -> Any:
    """Structured content as encoded JSON."""
    return structured if structured is UNSET or structured.__class__ is Raw else Raw(encode(structured))


def _wants_objects(call: Any) -> bool:
    """Whether the peer accepts only objects as structured content, as every peer that is answered without a call."""
    return call is None or call.peer.revision.index < ANY_STRUCTURED


def _render_content(value: Any, call: Any) -> CallResult:
    """Render a value that is not declared as structured: text, blocks, a list of them, or plain data as JSON text."""
    if value is None:
        return CallResult([])
    if value.__class__ is CallResult:
        result = copy_result(value)
        if result.structured is not UNSET and not is_object(result.structured) and _wants_objects(call):
            result.structured = {"result": result.structured}
        return result
    if value.__class__ is list and _BLOCK_TYPES.issuperset(map(type, value)) and value:
        return CallResult([*value])
    if _is_block(value):
        return CallResult([value])
    if isinstance(value, str):
        return CallResult([Text(value)])
    if isinstance(value, Contents):
        return CallResult([EmbeddedResource(value)])
    if isinstance(value, (list, tuple)) and any(
        _is_block(item) or isinstance(item, Contents) for item in cast(list[Any], value)
    ):
        return CallResult([to_block(item) for item in cast(list[Any], value)])
    raw = encode(value)
    return CallResult([Text(raw.decode())], Raw(raw) if raw[:1] == b"{" else UNSET)


def to_block(value: Any) -> Any:
    """A content block as it is, any other value as a text block."""
    if _is_block(value):
        return value
    if isinstance(value, Contents):
        return EmbeddedResource(value)
    return Text(value if isinstance(value, str) else encode(value).decode())


def _is_block(value: Any) -> bool:
    kind = block_kind(value)
    return kind in CONTENT and (not isinstance(value, dict) or all(key in value for key in _NEEDED[kind]))


def cut_text(result: CallResult, limit: int) -> CallResult:
    """The result with its texts cut to a number of bytes, and a note that says so.

    Structured content can't be cut. It is left out, which breaks the output schema, so the result becomes an error.
    """
    left, content, lost = limit, list[Any](), 0
    for block in result.content:
        is_dict = isinstance(block, dict)
        text: Any = cast(dict[str, Any], block).get("text") if is_dict else getattr(block, "text", None)
        if not isinstance(text, str) or block_kind(block) != "text":
            content.append(block)
            continue
        data = text.encode()
        kept = data[: max(left, 0)].decode(errors="ignore")
        lost += len(data) - len(kept.encode())
        left -= len(data)
        content.append({**block, "text": kept} if is_dict else msgspec.structs.replace(block, text=kept))
    if not lost:
        return result
    content.append(Text(f"[cut: {lost:,} bytes more; this tool's result_bytes is {limit:,}]"))
    failed = result.is_error if result.structured is UNSET else True
    return msgspec.structs.replace(result, content=content, structured=UNSET, is_error=failed)
