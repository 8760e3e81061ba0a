"""The parameters of each method but `tools/call`, as they are read."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Raw, Struct, UnsetType, field

from longshore.protocol.envelope import Envelope
from longshore.wire.messages import Id


class InitializeParams(Struct, rename="camel"):
    protocol_version: str
    capabilities: dict[str, Any] = {}
    client_info: dict[str, Any] = {}


class ListParams(Struct):
    cursor: str | UnsetType = UNSET


class UriParams(Struct):
    uri: str


class LevelParams(Struct):
    level: str


class ReadParams(Struct):
    uri: str
    meta: Envelope | UnsetType = field(name="_meta", default=UNSET)
    input_responses: Raw | UnsetType = field(name="inputResponses", default=UNSET)
    request_state: str | UnsetType = field(name="requestState", default=UNSET)


class GetParams(Struct):
    name: str
    arguments: Raw = Raw(b"{}")
    meta: Envelope | UnsetType = field(name="_meta", default=UNSET)
    input_responses: Raw | UnsetType = field(name="inputResponses", default=UNSET)
    request_state: str | UnsetType = field(name="requestState", default=UNSET)


class PromptRef(Struct, tag_field="type", tag="ref/prompt"):
    name: str


class ResourceRef(Struct, tag_field="type", tag="ref/resource"):
    uri: str


class CompletionArgument(Struct):
    name: str
    value: str


class CompletionContext(Struct, frozen=True):
    arguments: dict[str, str] = {}


class CompleteParams(Struct):
    ref: PromptRef | ResourceRef
    argument: CompletionArgument
    context: CompletionContext = CompletionContext()


class CancelledParams(Struct, rename="camel"):
    request_id: Id | UnsetType = UNSET
