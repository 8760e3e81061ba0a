"""Content blocks and results of MCP, and how they are rendered for a peer of an older revision."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field, structs

from longshore.protocol.revisions import ANY_STRUCTURED, BLOCK_META, CONTENT, ICONS, STRUCTURED, Revision

Json = Any


class Annotations(Struct, rename="camel"):
    """Hints on a block or resource: its audience, its priority (0 to 1), and when it changed (ISO 8601)."""

    audience: list[Literal["user", "assistant"]] | UnsetType = UNSET
    """Whom it is for."""
    priority: float | UnsetType = UNSET
    """1: needed; 0: may be left out."""
    last_modified: str | UnsetType = UNSET
    """As in 2026-07-28T12:00:00Z."""


class Text(Struct, tag_field="type", tag="text", rename="camel", gc=False):
    """Text for the model."""

    text: str
    annotations: Annotations | UnsetType = UNSET
    meta: dict[str, Json] | UnsetType = field(name="_meta", default=UNSET)


class Image(Struct, tag_field="type", tag="image", rename="camel"):
    """A picture. `data` is its bytes; they are encoded as base64 when sent."""

    data: bytes
    mime_type: str = "image/png"
    annotations: Annotations | UnsetType = UNSET
    meta: dict[str, Json] | UnsetType = field(name="_meta", default=UNSET)


class Audio(Struct, tag_field="type", tag="audio", rename="camel"):
    """Sound. `data` is its bytes; they are encoded as base64 when sent."""

    data: bytes
    mime_type: str = "audio/wav"
    annotations: Annotations | UnsetType = UNSET
    meta: dict[str, Json] | UnsetType = field(name="_meta", default=UNSET)


class ResourceLink(Struct, tag_field="type", tag="resource_link", rename="camel"):
    """A link to a resource that the client may read, for content too large to send unasked."""

    uri: str
    name: str
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    mime_type: str | UnsetType = UNSET
    size: int | UnsetType = UNSET
    annotations: Annotations | UnsetType = UNSET
    icons: list[Icon] | UnsetType = UNSET
    meta: dict[str, Json] | UnsetType = field(name="_meta", default=UNSET)


class Contents(Struct, rename="camel"):
    """The contents of a resource: text, or bytes that are sent as base64."""

    uri: str
    text: str | UnsetType = UNSET
    blob: bytes | UnsetType = UNSET
    mime_type: str | UnsetType = UNSET
    meta: dict[str, Json] | UnsetType = field(name="_meta", default=UNSET)


class EmbeddedResource(Struct, tag_field="type", tag="resource", rename="camel"):
    """A resource's contents inside a result."""

    resource: Contents
    annotations: Annotations | UnsetType = UNSET
    meta: dict[str, Json] | UnsetType = field(name="_meta", default=UNSET)


class Icon(Struct, rename="camel"):
    """A picture for a list entry: an https or data URI."""

    src: str
    """Its URI."""
    mime_type: str | UnsetType = UNSET
    """If the URI does not tell."""
    sizes: list[str] | UnsetType = UNSET
    """As in `48x48`, or `any`."""
    theme: Literal["light", "dark"] | UnsetType = UNSET
    """The background that it is for."""


Block = Text | Image | Audio | ResourceLink | EmbeddedResource
BLOCKS = (Text, Image, Audio, ResourceLink, EmbeddedResource)


class CallResult(Struct, rename="camel", gc=False):
    """A whole `tools/call` result, for authors who set every field themselves."""

    content: list[Any]
    """The blocks: `Text`, `Image`, `Audio`, `ResourceLink`, `EmbeddedResource`."""
    structured: Json = field(name="structuredContent", default=UNSET)
    """The same as data, as the output schema says."""
    is_error: bool | UnsetType = UNSET
    """Whether the call failed."""
    meta: dict[str, Json] | UnsetType = field(name="_meta", default=UNSET)
    """For programs that know your keys."""
    result_type: str | UnsetType = UNSET
    """`resultType` of 2026-07-28."""


class Message(Struct):
    """One message of a prompt."""

    role: Literal["user", "assistant"]
    content: Any
    """A text, or a block."""


def lower_result(result: CallResult, revision: Revision) -> CallResult:
    """The result in the form of a revision. Plain text, and the newest revisions, pass unchanged."""
    content = result.content
    for block in content:
        if block.__class__ is not Text or block.meta is not UNSET:
            content = [lower_block(each, revision) for each in content]
            break
    structured = result.structured
    if structured is not UNSET:
        if revision.index < STRUCTURED:
            structured = UNSET
        elif revision.index < ANY_STRUCTURED and not is_object(structured):
            structured = {"result": structured}
    if content is result.content and structured is result.structured:
        return result
    return structs.replace(result, content=content, structured=structured)


def lower_block(block: Any, revision: Revision) -> Any:
    """The block, or a text that describes it if the revision has no such kind."""
    kind = block_kind(block)
    if revision.knows(CONTENT, kind):
        return _lower_fields(block, revision)
    fields: dict[str, Any] = msgspec.to_builtins(block)
    if kind == "resource_link":
        return Text(f"{fields.get('name', '')}: {fields.get('uri', '')}")
    what = kind
    if kind == "audio":
        data = str(fields.get("data", ""))
        what = f"audio, {fields.get('mimeType', '')}, {len(data) * 3 // 4 - data[-2:].count('=')} bytes"
    return Text(f"[{what}: not in this client's protocol revision]")


_FIELDS = {"_meta": BLOCK_META, "icons": ICONS}


def _lower_fields(block: Any, revision: Revision) -> Any:
    unknown = [name for name, first in _FIELDS.items() if first > revision.index]
    if not unknown:
        return block
    if isinstance(block, dict):
        return {key: value for key, value in block.items() if key not in unknown}  # pyright: ignore[reportUnknownVariableType]
    unset = {name.strip("_"): UNSET for name in unknown if getattr(block, name.strip("_"), UNSET) is not UNSET}
    return structs.replace(block, **unset) if unset else block


def block_kind(block: Any) -> str:
    """The wire name of a block's kind; empty for other values."""
    if isinstance(block, dict):
        return str(block.get("type", ""))  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]
    config = getattr(block, "__struct_config__", None)
    return str(config.tag) if config is not None and isinstance(block, BLOCKS) else ""


def is_object(value: Any) -> bool:
    """Whether structured content is a JSON object, as every revision takes it."""
    if isinstance(value, Raw):
        return bytes(value).lstrip()[:1] == b"{"
    return isinstance(value, (dict, Struct))
