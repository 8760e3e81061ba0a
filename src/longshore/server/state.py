"""`requestState`: what a call that asks needs to go on later, carried by the client and signed by us.

It holds the tool, a digest of the request, the principal, an expiry, the round, the answers and the results of
`once`. The client may read it but not change it, use it for another request or another person, or use it late. A
tool that is neither read-only nor idempotent also burns a nonce, so that one answer can't refund an order twice.
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


class State(Struct):
    """The contents."""

    tool: str
    request: str
    principal: str
    expires: float
    round: int
    nonce: str
    asked: dict[str, str]
    """Digest of each question that the last round asked, by key."""
    answers: dict[str, Any]
    """Raw answers by digest and key of their question: one key may ask several things, one after the other."""
    memo: dict[str, Any]


_decode = msgspec.json.Decoder(State).decode
_encode = msgspec.json.Encoder().encode


def digest(*parts: Any) -> str:
    """A short name for exactly this content."""
    return sha256(_encode(parts)).hexdigest()[:32]


class Nonces(Protocol):
    """Remembers which nonces were used up, for every process that may be shown one."""

    async def burn(self, nonce: str, expires: float) -> bool:
        """Use a nonce up. False: it was."""
        ...


@final
class LocalNonces:
    """The nonces of a process that shares its clients with no other."""

    def __init__(self) -> None:
        self._burnt: dict[str, float] = {}

    async def burn(self, nonce: str, expires: float) -> bool:
        if len(self._burnt) >= _MAX_NONCES:
            now = time()
            self._burnt = {old: when for old, when in self._burnt.items() if when > now}
        if nonce in self._burnt:
            return False
        self._burnt[nonce] = expires
        return True


@final
class Seal:
    """Signs and opens states with one key."""

    def __init__(self, limits: Limits, key: bytes | None = None) -> None:
        self._limits = limits
        self._key = key or urandom(KEY_BYTES)

    def close(self, state: State) -> str:
        """The state as an opaque string."""
        body = _encode(state)
        sealed = urlsafe_b64encode(self._sign(body) + body).decode()
        if len(sealed) > self._limits.state_bytes:
            text = f"the answers and `once` results of this call take {len(sealed):,} bytes"
            raise ProtocolError(INVALID_PARAMS, f"{text}; a requestState holds {self._limits.state_bytes:,}")
        return sealed

    def open(self, sealed: str, *, tool: str, request: str, principal: str) -> State:
        """The state that this exact request was given. Raises for any other."""
        state = self._verify(sealed)
        if (state.tool, state.request, state.principal) != (tool, request, principal):
            raise _invalid("belongs to another request")
        if state.expires < time():
            raise _invalid("has expired; send the request again without it")
        return state

    def _verify(self, sealed: str) -> State:
        if len(sealed) > self._limits.state_bytes:
            raise _invalid("is too long")
        try:
            data = urlsafe_b64decode(sealed.encode("ascii"))
        except ValueError:
            raise _invalid("is not one of ours") from None
        if urlsafe_b64encode(data).decode() != sealed:
            raise _invalid("is not one of ours")  # base64 has more than one spelling of the same bytes
        signature, body = data[:_SIGNATURE_BYTES], data[_SIGNATURE_BYTES:]
        if not hmac.compare_digest(signature, self._sign(body)):
            raise _invalid("is not one of ours")
        return _decode(body)

    def _sign(self, body: bytes) -> bytes:
        return hmac.digest(self._key, body, "sha256")


def used_already() -> ProtocolError:
    return _invalid("was used already")


def _invalid(why: str) -> ProtocolError:
    return ProtocolError(INVALID_PARAMS, f"requestState {why}")
