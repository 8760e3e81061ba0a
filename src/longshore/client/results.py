"""The results of requests, read from their JSON."""

from __future__ import annotations

from typing import Any, TypeVar, cast

import msgspec
from msgspec import UNSET, Raw, Struct

from longshore.client.models import Completion
from longshore.errors import BadAnswer
from longshore.protocol.content import Audio, Block, Contents, EmbeddedResource, Image, Message, ResourceLink, Text
from longshore.schema.kinds import is_array, is_object
from longshore.wire.codec import BROKEN

T = TypeVar("T")

_BLOCKS: dict[str, type[Any]] = {
    "text": Text,
    "image": Image,
    "audio": Audio,
    "resource_link": ResourceLink,
    "resource": EmbeddedResource,
}
_read_dict = msgspec.json.Decoder(dict[str, Any]).decode


class Result(Struct):
    """The result of a tool: `text` for reading, `structured` for programs, `content` with everything."""

    content: list[Block | dict[str, Any]]
    structured: Any = UNSET
    is_error: bool = False
    meta: dict[str, Any] = {}
    record: dict[str, Any] = {}
    """As it came."""

    @property
    def text(self) -> str:
        """The text blocks, one under the other."""
        return "\n".join([block.text for block in self.content if isinstance(block, Text)])


class PromptResult(Struct):
    """A prompt, filled in."""

    messages: list[Message]
    description: str | None = None
    record: dict[str, Any] = {}


def read_object(raw: Raw) -> dict[str, Any]:
    """A result as a plain object. Raises BadAnswer."""
    try:
        return _read_dict(raw)
    except BROKEN:
        raise BadAnswer(f"the result is no object: {bytes(raw)[:100]!r}") from None


def read_result(record: dict[str, Any]) -> Result:
    """A tool's result. Servers may leave an empty `content` out."""
    content: Any = record.get("content", [])
    if not is_array(content):
        raise BadAnswer("the result's content is no list")
    meta: Any = record.get("_meta")
    return Result(
        content=[read_block(block) for block in content],
        structured=record.get("structuredContent", UNSET),
        is_error=record.get("isError") is True,
        meta=meta if is_object(meta) else {},
        record=record,
    )


def read_block(block: Any) -> Any:
    """A content block as its record; a block of an unknown kind as it came. Raises BadAnswer."""
    if not isinstance(block, dict):
        raise BadAnswer(f"a content block is no object: {str(block)[:100]}")
    fields = cast("dict[str, Any]", block)
    kind = _BLOCKS.get(str(fields.get("type")))
    if kind is None:
        return fields
    try:
        return msgspec.convert(fields, kind)
    except msgspec.ValidationError as problem:
        raise BadAnswer(f"a {fields['type']} block can't be read: {problem}") from None


def read_contents(record: dict[str, Any]) -> list[Contents]:
    """The contents of a resource."""
    try:
        return msgspec.convert(record.get("contents"), list[Contents])
    except msgspec.ValidationError as problem:
        raise BadAnswer(f"the contents can't be read: {problem}") from None


def read_prompt(record: dict[str, Any]) -> PromptResult:
    try:
        messages = msgspec.convert(record.get("messages"), list[Message])
    except msgspec.ValidationError as problem:
        raise BadAnswer(f"the prompt can't be read: {problem}") from None
    for message in messages:
        message.content = read_block(message.content)
    description = record.get("description")
    return PromptResult(messages, description if isinstance(description, str) else None, record)


def as_type(result: Result, wanted: type[T]) -> T:
    """The result as a type of the caller's: from the structured content, else from the text, as JSON or as it is."""
    value = result.structured
    if value is UNSET:
        return _from_text(result.text, wanted)
    try:
        return _convert(value, wanted)
    except BadAnswer:
        if isinstance(value, dict) and set(cast("dict[str, Any]", value)) == {"result"}:
            # Before 2026-07-28 structured content is an object, so other values are wrapped in one.
            return _convert(cast("dict[str, Any]", value)["result"], wanted)
        raise


def _from_text(text: str, wanted: type[T]) -> T:
    if wanted is str:
        return cast("T", text)
    try:
        value = msgspec.json.decode(text)
    except BROKEN as problem:
        raise BadAnswer(f"the result's text is no {_name(wanted)}: {problem}") from None
    return _convert(value, wanted)


def _convert(value: Any, wanted: type[T]) -> T:
    """Convert by the rules for a tool's parameters."""
    from longshore.schema.custom_type import convert
    from longshore.schema.parameter import SignatureProblem
    from longshore.schema.types import read_type_cached

    try:
        return cast("T", convert(value, read_type_cached(wanted)))
    except SignatureProblem as problem:
        raise TypeError(f"no result can be read as {_name(wanted)}: {problem}") from None
    except msgspec.ValidationError as problem:
        raise BadAnswer(f"the result is no {_name(wanted)}: {problem}") from None


def _name(wanted: Any) -> str:
    return getattr(wanted, "__name__", None) or str(wanted)


def read_completion(record: dict[str, Any]) -> Completion:
    try:
        return msgspec.convert(record.get("completion"), Completion)
    except msgspec.ValidationError as problem:
        raise BadAnswer(f"the completion can't be read: {problem}") from None
