"""Every published revision of MCP, as data: which methods, fields and content kinds exist in which.

Rendering something for an older peer is a look into these tables, never a test of a version in the code. A number is
the position of the first (or last) revision in `NAMES`. Sources: the specification's own schemas, revision by revision.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

NAMES: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
R2411, R2503, R2506, R2511, R2607 = range(5)
_LATER = 99


class Revision(Struct, frozen=True, gc=False):
    """One revision. `modern` ones carry their envelope in every request; the others begin with `initialize`."""

    name: str
    index: int
    plain: bool
    """Whether a tool's result goes out as it is made: nothing to add and nothing to take away."""

    @property
    def modern(self) -> bool:
        return self.index >= R2607

    @property
    def batches(self) -> bool:
        return self.index == R2503

    def knows(self, table: Mapping[str, int], key: str) -> bool:
        return table.get(key, _LATER) <= self.index


REVISIONS: Final = {name: Revision(name, index, R2506 <= index < R2607) for index, name in enumerate(NAMES)}
LEGACY: Final = NAMES[:R2607]
MODERN: Final = NAMES[R2607:]


class Method(Struct, frozen=True):
    """A request that a client may send: from which revision to which, and the server capability that it needs."""

    first: int = R2411
    last: int = R2607
    capability: str = ""


METHODS: Final[dict[str, Method]] = {
    "initialize": Method(last=R2511),
    "ping": Method(last=R2511),
    "server/discover": Method(first=R2607),
    "tools/list": Method(capability="tools"),
    "tools/call": Method(capability="tools"),
    "resources/list": Method(capability="resources"),
    "resources/templates/list": Method(capability="resources"),
    "resources/read": Method(capability="resources"),
    "resources/subscribe": Method(last=R2511, capability="resources"),
    "resources/unsubscribe": Method(last=R2511, capability="resources"),
    "prompts/list": Method(capability="prompts"),
    "prompts/get": Method(capability="prompts"),
    "completion/complete": Method(capability="completions"),
    "logging/setLevel": Method(last=R2511, capability="logging"),
    "subscriptions/listen": Method(first=R2607),
}

# Fields of each record, with the first revision that has them. What a table does not name is never sent.
_DESCRIBED = {"name": R2411, "title": R2506, "description": R2411, "icons": R2511, "_meta": R2506}
TOOL: Final = _DESCRIBED | {"inputSchema": R2411, "outputSchema": R2506, "annotations": R2503}
RESOURCE: Final = _DESCRIBED | {"uri": R2411, "mimeType": R2411, "size": R2411, "annotations": R2411}
TEMPLATE: Final = _DESCRIBED | {"uriTemplate": R2411, "mimeType": R2411, "annotations": R2411}
PROMPT: Final = _DESCRIBED | {"arguments": R2411}
ARGUMENT: Final = {"name": R2411, "title": R2506, "description": R2411, "required": R2411}
IMPLEMENTATION: Final = {
    "name": R2411,
    "version": R2411,
    "title": R2506,
    "description": R2511,
    "websiteUrl": R2511,
    "icons": R2511,
}
CAPABILITIES: Final = {
    "tools": R2411,
    "resources": R2411,
    "prompts": R2411,
    "logging": R2411,
    "completions": R2503,
    "extensions": R2411,
    "experimental": R2411,
}
CONTENT: Final = {"text": R2411, "image": R2411, "resource": R2411, "audio": R2503, "resource_link": R2506}
STRUCTURED: Final = R2506
ANY_STRUCTURED: Final = R2607
BLOCK_META: Final = R2506
ICONS: Final = R2511
PROGRESS_MESSAGE: Final = R2503
ELICITATION: Final = R2506
URL_ELICITATION: Final = R2511
TITLED_CHOICES: Final = R2511

LOG_LEVELS: Final = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")


def negotiate(asked: str) -> Revision:
    """The handshake's answer: what was asked for if it has a handshake, else the newest that has one.

    Never newer than asked where what was asked is known: clients disconnect over that. 2026-07-28 is unreachable here.
    """
    known = REVISIONS.get(asked)
    return known if known is not None and not known.modern else REVISIONS[LEGACY[-1]]


def lower(record: Mapping[str, Any], table: Mapping[str, int], revision: Revision) -> dict[str, Any]:
    """The record with the fields that the revision knows."""
    return {key: value for key, value in record.items() if table.get(key, _LATER) <= revision.index}
