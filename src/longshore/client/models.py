"""What a client gets from servers, as records. The entries of lists keep their whole JSON object in `record`."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct, field

from longshore.errors import BadAnswer
from longshore.schema.kinds import is_object


class ServerInfo(Struct, frozen=True, kw_only=True):
    """A server's name, capabilities and instructions, and the revision that was agreed on."""

    name: str
    version: str
    title: str | None
    instructions: str | None
    capabilities: dict[str, Any]
    revision: str
    info: dict[str, Any]
    """The server's `serverInfo` as it came."""

    def can(self, capability: str, part: str | None = None) -> bool:
        found = self.capabilities.get(capability)
        return found is not None and (part is None or (is_object(found) and bool(found.get(part))))


class _Entry(Struct, kw_only=True, rename="camel"):
    title: str | None = None
    description: str | None = None
    icons: list[dict[str, Any]] = []
    meta: dict[str, Any] = field(name="_meta", default={})
    record: dict[str, Any] = field(name=" record", default={})


class ToolInfo(_Entry, kw_only=True, rename="camel"):
    """A tool."""

    name: str
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None = None
    annotations: dict[str, Any] = {}

    @property
    def repeatable(self) -> bool:
        """Whether it declares that calling it twice does no more than calling it once."""
        return self.annotations.get("readOnlyHint") is True or self.annotations.get("idempotentHint") is True


class ResourceInfo(_Entry, kw_only=True, rename="camel"):
    """A resource."""

    uri: str
    name: str
    mime_type: str | None = None
    size: int | None = None
    annotations: dict[str, Any] = {}


class TemplateInfo(_Entry, kw_only=True, rename="camel"):
    """A family of resources."""

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
    has_more: bool = False
