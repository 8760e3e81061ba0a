"""What requests carry beside their own parameters: progress tokens, trace context and the modern era's envelope."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from longshore.errors import ProtocolError
from longshore.protocol.peer import Peer
from longshore.protocol.revisions import LOG_LEVELS, MODERN, REVISIONS
from longshore.wire.codec import BROKEN, INVALID_PARAMS, encode
from longshore.wire.messages import Id

PREFIX: Final = "io.modelcontextprotocol/"
SERVER_INFO: Final = PREFIX + "serverInfo"
SUBSCRIPTION_ID: Final = PREFIX + "subscriptionId"
ABSENT: Final = "longshore/absent"
"""The key in `_meta` of a list of tools: mounted servers that are down, by prefix, and why."""
UNSUPPORTED_VERSION: Final = -32022

OWN_ENVELOPE: Final = encode({f"{PREFIX}protocolVersion": MODERN[-1], f"{PREFIX}clientCapabilities": {}})
"""The `_meta` of a request that we make ourselves, with nobody behind it who could be asked anything."""


KEPT_BYTES: Final = 4096
"""What a client says of itself is remembered up to this size; real ones need a few hundred."""


class Envelope(Struct, gc=False):
    """The keys of a request's `_meta` that the server itself reads. The rest is the handler's to look at."""

    progress_token: Id | UnsetType = field(name="progressToken", default=UNSET)
    version: str | UnsetType = field(name=PREFIX + "protocolVersion", default=UNSET)
    capabilities: Raw | UnsetType = field(name=PREFIX + "clientCapabilities", default=UNSET)
    client: Raw | UnsetType = field(name=PREFIX + "clientInfo", default=UNSET)
    log_level: str | UnsetType = field(name=PREFIX + "logLevel", default=UNSET)


class AnyParams(Struct, gc=False):
    """Any request's parameters, for the envelope and what HTTP headers repeat of them."""

    name: Raw | UnsetType = UNSET
    uri: Raw | UnsetType = UNSET
    meta: Envelope | UnsetType = field(name="_meta", default=UNSET)

    def named(self, method: str) -> str | None:
        """What the request is about, where its headers must say so too. None: it does not say, or not as text."""
        raw = self.uri if method == "resources/read" else self.name
        try:
            return None if raw is UNSET else _read_text(raw)
        except BROKEN:
            return None


_read_any = msgspec.json.Decoder(AnyParams).decode
_read_text = msgspec.json.Decoder(str).decode
_read_object = msgspec.json.Decoder(dict[str, Any]).decode


class BadEnvelope(ProtocolError):
    """A modern request that does not say what every modern request must."""

    def __init__(self, text: str) -> None:
        super().__init__(INVALID_PARAMS, text)


def has_envelope(params: Raw) -> bool:
    """Whether parameters carry the envelope, or a part of it that makes the request modern. Raises if none can be."""
    meta = _read_any(params).meta
    return meta is not UNSET and (meta.version is not UNSET or meta.capabilities is not UNSET)


def is_enveloped(params: Raw) -> bool:
    """The same, of parameters that may be anything."""
    try:
        return has_envelope(params)
    except BROKEN:
        return False


def require_envelope(envelope: Envelope | UnsetType) -> str:
    """The revision that a modern request names. Raises if it lacks what it must have."""
    if envelope is UNSET:
        raise BadEnvelope(f'params._meta needs "{PREFIX}protocolVersion" and "{PREFIX}clientCapabilities"')
    if envelope.version is UNSET or envelope.capabilities is UNSET:
        missing = "protocolVersion" if envelope.version is UNSET else "clientCapabilities"
        raise BadEnvelope(f'params._meta needs "{PREFIX}{missing}"')
    return envelope.version


def modern_peer(envelope: Envelope) -> Peer:
    """Who sent this self-contained request. Raises what the modern ladder of checks demands, in its order."""
    version = require_envelope(envelope)
    assert envelope.capabilities is not UNSET
    capabilities = _object(envelope.capabilities, "clientCapabilities")
    client = {} if envelope.client is UNSET else _object(envelope.client, "clientInfo")
    if version not in MODERN:
        data = {"supported": list(MODERN), "requested": version[:100]}
        raise ProtocolError(UNSUPPORTED_VERSION, "Unsupported protocol version", data)
    return Peer(REVISIONS[version], capabilities, client, _level(envelope.log_level))


def remembered(envelope: Envelope) -> Envelope | None:
    """A copy that is independent of the frame it came in. None: it is too large to keep, or belongs to one request."""
    if envelope.progress_token is not UNSET:
        return None
    raws = [UNSET if raw is UNSET else Raw(bytes(raw)) for raw in (envelope.capabilities, envelope.client)]
    if sum(len(bytes(raw)) for raw in raws if raw is not UNSET) > KEPT_BYTES:
        return None
    return Envelope(UNSET, envelope.version, raws[0], raws[1], envelope.log_level)


def _object(raw: Raw, name: str) -> dict[str, Any]:
    try:
        return _read_object(raw)
    except BROKEN:
        raise BadEnvelope(f'"{PREFIX}{name}" must be an object') from None


def _level(level: str | UnsetType) -> int | None:
    return None if level is UNSET else log_level(level)


def log_level(level: str) -> int:
    """The rank of a log level; raises for one that does not exist."""
    if level not in LOG_LEVELS:
        raise ProtocolError(INVALID_PARAMS, f"no log level {level[:100]!r}; one of {', '.join(LOG_LEVELS)}")
    return LOG_LEVELS.index(level)
