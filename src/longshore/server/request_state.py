"""`requestState`: the state of a call that asks a question, signed by the server and carried by the client.

It holds the tool, a digest of the request, the principal, an expiry, the round, the answers and the results of
`once`. The client can read it but not change it, use it for another request or principal, or use it late. A tool
that is neither read-only nor idempotent also consumes a nonce, so that one answer can't refund an order twice.
"""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import sha256
from os import urandom
from time import time
from typing import Any, Protocol, final

import msgspec
from msgspec import Struct

from longshore.errors import ProtocolError
from longshore.limits import Limits
from longshore.wire.codec import INVALID_PARAMS

KEY_BYTES = 32
_SIGNATURE_BYTES = 32
_MAX_NONCES = 100_000


class RequestState(Struct):
    """The contents."""

    tool: str
    request: str
    principal: str
    expires: float
    round: int
    nonce: str
    asked: dict[str, str]
    """Digest of each question of the last round, by key."""
    answers: dict[str, Any]
    """Raw answers by digest and key of their question: one key may ask several things, one after the other."""
    memo: dict[str, Any]


_decode = msgspec.json.Decoder(RequestState).decode
_encode = msgspec.json.Encoder().encode


def digest(*parts: Any) -> str:
    """A short digest of the content."""
    return sha256(_encode(parts)).hexdigest()[:32]


class Nonces(Protocol):
    """Consumed nonces, shared by every process that may receive one."""

    async def consume(self, nonce: str, expires: float) -> bool:
        """Consume a nonce. False: it was consumed before."""
        ...


@final
class MemoryNonces:
    """The nonces of a single process."""

    def __init__(self) -> None:
        self._consumed: dict[str, float] = {}

    async def consume(self, nonce: str, expires: float) -> bool:
        if len(self._consumed) >= _MAX_NONCES:
            now = time()
            self._consumed = {old: when for old, when in self._consumed.items() if when > now}
        if nonce in self._consumed:
            return False
        self._consumed[nonce] = expires
        return True


@final
class StateSigner:
    """Signs and verifies states with one key."""

    def __init__(self, limits: Limits, key: bytes | None = None) -> None:
        self._limits = limits
        self._key = key or urandom(KEY_BYTES)

    def sign(self, state: RequestState) -> str:
        """Encode and sign a state."""
        body = _encode(state)
        signed = urlsafe_b64encode(self._signature(body) + body).decode()
        if len(signed) > self._limits.state_bytes:
            text = f"the answers and `once` results of this call take {len(signed):,} bytes"
            raise ProtocolError(INVALID_PARAMS, f"{text}; a requestState holds {self._limits.state_bytes:,}")
        return signed

    def verify(self, signed: str, *, tool: str, request: str, principal: str) -> RequestState:
        """Decode a state. Raises unless it was signed for exactly this request."""
        state = self._decode(signed)
        if (state.tool, state.request, state.principal) != (tool, request, principal):
            raise _invalid("belongs to another request")
        if state.expires < time():
            raise _invalid("has expired; send the request again without it")
        return state

    def _decode(self, signed: str) -> RequestState:
        if len(signed) > self._limits.state_bytes:
            raise _invalid("is too long")
        try:
            data = urlsafe_b64decode(signed.encode("ascii"))
        except ValueError:
            raise _invalid("is not one of ours") from None
        if urlsafe_b64encode(data).decode() != signed:
            raise _invalid("is not one of ours")  # base64 has more than one spelling of the same bytes
        signature, body = data[:_SIGNATURE_BYTES], data[_SIGNATURE_BYTES:]
        if not hmac.compare_digest(signature, self._signature(body)):
            raise _invalid("is not one of ours")
        return _decode(body)

    def _signature(self, body: bytes) -> bytes:
        return hmac.digest(self._key, body, "sha256")


def already_used() -> ProtocolError:
    return _invalid("was used already")


def _invalid(why: str) -> ProtocolError:
    return ProtocolError(INVALID_PARAMS, f"requestState {why}")
