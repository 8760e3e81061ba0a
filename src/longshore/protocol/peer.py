"""The peer of a request: its revision, capabilities and name, from the handshake or from the request's own `_meta`.

Requests of 2026-07-28 carry this *envelope* in `params._meta`, together with a progress token and trace context.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from longshore.errors import Forbidden, ProtocolError
from longshore.protocol.revisions import LOG_LEVELS, MODERN, REVISIONS, Revision
from longshore.wire.codec import BROKEN, INVALID_PARAMS, encode
from longshore.wire.messages import Id

PREFIX: Final = "io.modelcontextprotocol/"
SERVER_INFO: Final = PREFIX + "serverInfo"
SUBSCRIPTION_ID: Final = PREFIX + "subscriptionId"
ABSENT: Final = "longshore/absent"
"""The key in `_meta` of a list of tools: mounted servers that are down, by prefix, and why."""
UNSUPPORTED_VERSION: Final = -32022

OWN_ENVELOPE: Final = encode({f"{PREFIX}protocolVersion": MODERN[-1], f"{PREFIX}clientCapabilities": {}})
"""The `_meta` of a request that the server itself makes, without a client that could be asked anything."""


CACHED_BYTES: Final = 4096
"""The largest envelope that a session caches; real ones have a few hundred bytes."""


class Peer(Struct, frozen=True, gc=False):
    """The client of one request. `client` is a label for logs and display; no decision depends on it."""

    revision: Revision
    capabilities: dict[str, Any]
    client: dict[str, Any]
    log_level: int | None = None
    """The lowest rank of log messages that it wants; None: none."""

    def can(self, *path: str) -> bool:
        """Whether a capability was declared, e.g. `can("elicitation", "url")`."""
        here: Any = self.capabilities
        for step in path:
            if not isinstance(here, dict) or step not in here:
                return False
            here = here[step]  # pyright: ignore[reportUnknownVariableType]
        return True


class InitializeParams(Struct, rename="camel"):
    """The parameters of a handshake."""

    protocol_version: str
    capabilities: dict[str, Any] = {}
    client_info: dict[str, Any] = {}


class Principal(Struct, frozen=True):
    """The user that a request acts for. On stdio it is the person who started the process.

    It holds no token: a client's token is never passed on.
    """

    name: str = "local"
    scopes: frozenset[str] | None = None
    """The granted scopes; None: all."""

    def lacks(self, needed: frozenset[str]) -> frozenset[str]:
        """The needed scopes that were not granted."""
        return frozenset() if self.scopes is None else needed - self.scopes

    def require(self, what: str, needed: frozenset[str]) -> None:
        """Raise Forbidden if scopes that something needs were not granted."""
        if self.lacks(needed):
            raise Forbidden(what, needed, "; send a token" if self == ANONYMOUS else "")


ANONYMOUS: Final = Principal("anonymous", frozenset())
"""A caller without a token, where one is optional."""


class Envelope(Struct, gc=False):
    """The keys of a request's `_meta` that the server itself reads. Handlers get the rest by `ctx.meta`."""

    progress_token: Id | UnsetType = field(name="progressToken", default=UNSET)
    version: str | UnsetType = field(name=PREFIX + "protocolVersion", default=UNSET)
    capabilities: Raw | UnsetType = field(name=PREFIX + "clientCapabilities", default=UNSET)
    client: Raw | UnsetType = field(name=PREFIX + "clientInfo", default=UNSET)
    log_level: str | UnsetType = field(name=PREFIX + "logLevel", default=UNSET)
    trace_parent: Raw | UnsetType = field(name="traceparent", default=UNSET)
    """Raw, as the next two: trace context that is malformed is ignored."""
    trace_state: Raw | UnsetType = field(name="tracestate", default=UNSET)
    baggage: Raw | UnsetType = field(name="baggage", default=UNSET)


class AnyParams(Struct, gc=False):
    """The parameters of any request: the envelope, and the values that HTTP headers repeat."""

    name: Raw | UnsetType = UNSET
    uri: Raw | UnsetType = UNSET
    meta: Envelope | UnsetType = field(name="_meta", default=UNSET)

    def named(self, method: str) -> str | None:
        """The value that the `Mcp-Name` header repeats. None: there is none, or it is not a string."""
        raw = self.uri if method == "resources/read" else self.name
        try:
            return None if raw is UNSET else _read_text(raw)
        except BROKEN:
            return None


_read_any = msgspec.json.Decoder(AnyParams).decode
_read_text = msgspec.json.Decoder(str).decode
_read_object = msgspec.json.Decoder(dict[str, Any]).decode


class BadEnvelope(ProtocolError):
    """A 2026-07-28 request without a valid envelope."""

    def __init__(self, text: str) -> None:
        super().__init__(INVALID_PARAMS, text)


def has_envelope(params: Raw) -> bool:
    """Whether parameters carry an envelope, or a part of one. Raises for malformed parameters."""
    meta = _read_any(params).meta
    return meta is not UNSET and (meta.version is not UNSET or meta.capabilities is not UNSET)


def is_enveloped(params: Raw) -> bool:
    """Whether parameters carry an envelope. False for malformed parameters."""
    try:
        return has_envelope(params)
    except BROKEN:
        return False


def require_envelope(envelope: Envelope | UnsetType) -> str:
    """The revision that an envelope names. Raises if a required key is missing."""
    if envelope is UNSET:
        raise BadEnvelope(f'params._meta needs "{PREFIX}protocolVersion" and "{PREFIX}clientCapabilities"')
    if envelope.version is UNSET or envelope.capabilities is UNSET:
        missing = "protocolVersion" if envelope.version is UNSET else "clientCapabilities"
        raise BadEnvelope(f'params._meta needs "{PREFIX}{missing}"')
    return envelope.version


def modern_peer(envelope: Envelope) -> Peer:
    """The peer that an envelope describes. Raises for the first fault in the order that the specification sets."""
    version = require_envelope(envelope)
    assert envelope.capabilities is not UNSET
    capabilities = _object(envelope.capabilities, "clientCapabilities")
    client = {} if envelope.client is UNSET else _object(envelope.client, "clientInfo")
    if version not in MODERN:
        data = {"supported": list(MODERN), "requested": version[:100]}
        raise ProtocolError(UNSUPPORTED_VERSION, "Unsupported protocol version", data)
    level = None if envelope.log_level is UNSET else log_level(envelope.log_level)
    return Peer(REVISIONS[version], capabilities, client, level)


def cacheable(envelope: Envelope) -> Envelope | None:
    """A copy that does not reference the frame. None: it is too large to cache, or has a progress token."""
    if envelope.progress_token is not UNSET:
        return None
    raws = [UNSET if raw is UNSET else Raw(bytes(raw)) for raw in (envelope.capabilities, envelope.client)]
    if sum(len(bytes(raw)) for raw in raws if raw is not UNSET) > CACHED_BYTES:
        return None
    return Envelope(UNSET, envelope.version, raws[0], raws[1], envelope.log_level)


def _object(raw: Raw, name: str) -> dict[str, Any]:
    try:
        return _read_object(raw)
    except BROKEN:
        raise BadEnvelope(f'"{PREFIX}{name}" must be an object') from None


def log_level(level: str) -> int:
    """The rank of a log level. Raises for an unknown one."""
    if level not in LOG_LEVELS:
        raise ProtocolError(INVALID_PARAMS, f"no log level {level[:100]!r}; one of {', '.join(LOG_LEVELS)}")
    return LOG_LEVELS.index(level)
