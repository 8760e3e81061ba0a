"""The records that a client gets from servers, and reading them from JSON.

Entries of lists and results keep their whole JSON object in `record`.
"""

from __future__ import annotations

from typing import Any, TypeVar, cast

import msgspec
from msgspec import UNSET, Raw, Struct, field

from longshore.errors import BadAnswer
from longshore.protocol.content import Audio, Block, Contents, EmbeddedResource, Image, Message, ResourceLink, Text
from longshore.schema.kinds import as_object, is_array, is_object
from longshore.wire.codec import BROKEN


class ServerInfo(Struct, frozen=True, kw_only=True):
    """A server's name, capabilities and instructions, and the revision that was agreed on."""

    name: str
    version: str
    title: str | None
    instructions: str | None
    capabilities: dict[str, Any]
    """What it declares; `can` asks for one."""
    revision: str
    """The revision that is spoken: `2025-11-25`."""
    info: dict[str, Any]
    """The server's `serverInfo` as it came."""

    def can(self, capability: str, part: str | None = None) -> bool:
        """Whether it declares a capability, or a part of one: `can("resources", "subscribe")`."""
        found = self.capabilities.get(capability)
        return found is not None and (part is None or (is_object(found) and bool(found.get(part))))


class _Entry(Struct, kw_only=True, rename="camel"):
    title: str | None = None
    description: str | None = None
    icons: list[dict[str, Any]] = []
    meta: dict[str, Any] = field(name="_meta", default={})
    record: dict[str, Any] = field(name=" record", default={})
    """The whole entry as it came."""


class ToolInfo(_Entry, kw_only=True, rename="camel"):
    """A tool."""

    name: str
    input_schema: dict[str, Any]
    """The schema of its arguments."""
    output_schema: dict[str, Any] | None = None
    """The schema of `structured` in its results."""
    annotations: dict[str, Any] = {}
    """`readOnlyHint` and the other hints."""

    @property
    def repeatable(self) -> bool:
        """Whether it declares that a repeated call has no further effect."""
        return self.annotations.get("readOnlyHint") is True or self.annotations.get("idempotentHint") is True


class ResourceInfo(_Entry, kw_only=True, rename="camel"):
    """A resource."""

    uri: str
    name: str
    mime_type: str | None = None
    size: int | None = None
    annotations: dict[str, Any] = {}


class TemplateInfo(_Entry, kw_only=True, rename="camel"):
    """A template of resources."""

    uri_template: str
    name: str
    mime_type: str | None = None
    annotations: dict[str, Any] = {}


class PromptInfo(_Entry, kw_only=True, rename="camel"):
    """A prompt."""

    name: str
    arguments: list[dict[str, Any]] = []


KEYS: dict[str, tuple[str, type[Any]]] = {
    "tools/list": ("tools", ToolInfo),
    "resources/list": ("resources", ResourceInfo),
    "resources/templates/list": ("resourceTemplates", TemplateInfo),
    "prompts/list": ("prompts", PromptInfo),
}
"""For each method that lists: the key of the entries, and their type."""


def read_entry(kind: type[Any], entry: Any) -> Any:
    """An entry as its record. Raises BadAnswer."""
    if not isinstance(entry, dict):
        raise BadAnswer(f"an entry of the list is no object: {str(entry)[:100]}")
    try:
        made = msgspec.convert(entry, kind)
    except msgspec.ValidationError as problem:
        name = str(entry.get("name", "?"))[:100]  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]
        raise BadAnswer(f"the definition of {name!r} can't be used: {problem}") from None
    made.record = entry
    return made


class Change(Struct, frozen=True):
    """A change at the server: of the list `tools`, `resources` or `prompts`, or of the resource at `uri`."""

    kind: str
    uri: str | None = None


class LogMessage(Struct, frozen=True):
    """A log message of a server's."""

    level: str
    data: Any
    logger: str | None = None


class Completion(Struct, rename="camel"):
    """Possible values of an argument."""

    values: list[str]
    total: int | None = None
    """How many there are, if the server says so."""
    has_more: bool = False
    """Whether there are more than these."""


# -- results

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
    """The structured content; UNSET if there is none."""
    is_error: bool = False
    """Whether the call failed; only with `check=False`."""
    meta: dict[str, Any] = {}
    record: dict[str, Any] = {}
    """The whole result as it came."""
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
    return Result(
        content=[read_block(block) for block in content],
        structured=record.get("structuredContent", UNSET),
        is_error=record.get("isError") is True,
        meta=as_object(record.get("_meta")),
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


def _read_member(record: dict[str, Any], key: str, kind: type[T], name: str) -> T:
    try:
        return msgspec.convert(record.get(key), kind)
    except msgspec.ValidationError as problem:
        raise BadAnswer(f"the {name} can't be read: {problem}") from None


def read_contents(record: dict[str, Any]) -> list[Contents]:
    """The contents of a resource."""
    return _read_member(record, "contents", list[Contents], "contents")


def read_completion(record: dict[str, Any]) -> Completion:
    return _read_member(record, "completion", Completion, "completion")


def read_prompt(record: dict[str, Any]) -> PromptResult:
    messages = _read_member(record, "messages", list[Message], "prompt")
    for message in messages:
        message.content = read_block(message.content)
    description = record.get("description")
    return PromptResult(messages, description if isinstance(description, str) else None, record)


def as_type(result: Result, wanted: type[T]) -> T:
    """The result as a type of the caller's: from the structured content, else from the text, as JSON or as it is."""
    value = result.structured
    if value is UNSET and wanted is str:
        return cast("T", result.text)
    if value is UNSET:
        try:
            value = msgspec.json.decode(result.text)
        except BROKEN as problem:
            raise BadAnswer(f"the result's text is no {_name(wanted)}: {problem}") from None
        return _convert(value, wanted)
    try:
        return _convert(value, wanted)
    except BadAnswer:
        if isinstance(value, dict) and set(cast("dict[str, Any]", value)) == {"result"}:
            # Before 2026-07-28 structured content is an object, so other values are wrapped in one.
            return _convert(cast("dict[str, Any]", value)["result"], wanted)
        raise


def _convert(value: Any, wanted: type[T]) -> T:
    """Convert by the rules for a tool's parameters."""
    from longshore.schema.custom_type import convert
    from longshore.schema.signature import SignatureProblem
    from longshore.schema.types import read_type_cached

    try:
        return cast("T", convert(value, read_type_cached(wanted)))
    except SignatureProblem as problem:
        raise TypeError(f"no result can be read as {_name(wanted)}: {problem}") from None
    except msgspec.ValidationError as problem:
        raise BadAnswer(f"the result is no {_name(wanted)}: {problem}") from None


def _name(wanted: Any) -> str:
    return getattr(wanted, "__name__", None) or str(wanted)
