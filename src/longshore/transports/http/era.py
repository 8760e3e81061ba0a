"""Which era a request is of: the one with sessions, or the one in which each request is complete in itself."""

from __future__ import annotations

import msgspec
from msgspec import Raw, Struct

from longshore.protocol.envelope import PREFIX, is_enveloped
from longshore.protocol.revisions import LEGACY
from longshore.wire.codec import BROKEN

_ENVELOPE = f'"{PREFIX}'.encode()
_ESCAPES = (rb"\u00", rb"\/")
"""JSON can spell the same key in other ways, but not without one of these."""
_LEGACY = frozenset(name.encode() for name in LEGACY)


class _Body(Struct):
    params: Raw = Raw(b"{}")


_read = msgspec.json.Decoder(_Body).decode


def is_modern(version: bytes | None, body: bytes) -> bool:
    """Whether a request is of the era without sessions: its header names a version that is, or it has the envelope."""
    if version is not None and version not in _LEGACY and version.strip() not in _LEGACY:
        return True
    return has_envelope(body)


def has_envelope(body: bytes) -> bool:
    """Whether a message carries the envelope. Its text may also be part of an argument, so it is looked at twice."""
    if _ENVELOPE not in body and _ESCAPES[0] not in body and _ESCAPES[1] not in body:
        return False
    try:
        return is_enveloped(_read(body).params)
    except BROKEN:
        return False
