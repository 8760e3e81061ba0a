"""Jwt: access tokens that carry their own proof. Signature, issuer, audience and times are checked, in that order.

Of the header only `alg`, `kid` and `typ` are read. A key, or the address of one, that a token brings along is ignored.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode
from collections.abc import Callable
from typing import Any, final

import msgspec
from joserfc.errors import JoseError
from joserfc.jws import JWSRegistry
from msgspec import Struct

from longshore.auth import files
from longshore.auth.claims import Claims, check_audience, check_times, principal
from longshore.auth.fetch import MOST_BYTES, Fetcher
from longshore.auth.jwks import Jwks, Key, check_algorithms, parse
from longshore.auth.verdict import Rejected, Unavailable, Verified
from longshore.config.sections import AuthConfig
from longshore.errors import ConfigError

_COMPACT = re.compile(rb"([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]*)")
_TYPES = (None, "jwt", "at+jwt")
"""A JWT of another type, such as a logout token, is no access token although the same key signed it."""

_MALFORMED = "the access token is malformed"


class _Header(Struct, frozen=True):
    alg: str
    kid: str | None = None
    typ: str | None = None
    crit: Any = None


_header = msgspec.json.Decoder(_Header)
_claims = msgspec.json.Decoder(Claims)


@final
class Jwt:
    """Checks the tokens of one issuer."""

    def __init__(
        self, auth: AuthConfig, issuer: str, audience: str, lost: Callable[[], None], clock: Callable[[], float]
    ) -> None:
        source = auth.jwks or ""
        self._issuer = issuer
        self._audience = audience
        self._algorithms = check_algorithms(auth.algorithms)
        self._clock = clock
        self._fetcher = Fetcher("auth.jwks", source, {}) if "://" in source else None
        self._path = source
        if self._fetcher is None:
            _check_file(source)
        self._jwks = Jwks(source, self._load, lost, clock)

    def takes(self, token: bytes) -> bool:
        """Whether this is one for us, and not an opaque token."""
        parts = _COMPACT.fullmatch(token)
        return parts is not None and parts[1].startswith(b"ey")  # `{"` in base64

    async def verify(self, token: bytes) -> Verified:
        """Whose token it is. Raises Rejected or Unavailable."""
        parts = _COMPACT.fullmatch(token)
        if parts is None:
            raise Rejected(_MALFORMED)
        header = self._read_header(parts[1])
        keys = await self._jwks.find(header.kid, header.alg)
        if not keys:
            raise Rejected("the access token is signed with a key that its issuer does not have")
        signed, signature = token[: parts.end(2)], _decoded(parts[3])
        if not any(_is_signed(signed, signature, key, header.alg) for key in keys):
            raise Rejected("the signature of the access token is wrong")
        return self._judge(_decode(_claims, parts[2]))

    def close(self) -> None:
        if self._fetcher is not None:
            self._fetcher.close()

    def _read_header(self, part: bytes) -> _Header:
        header: _Header = _decode(_header, part)
        if header.alg not in self._algorithms:
            raise Rejected("the access token is signed in a way that is not accepted here")
        kind = None if header.typ is None else header.typ.lower().removeprefix("application/")
        if header.crit is not None or kind not in _TYPES:
            raise Rejected("this kind of token is not an access token")
        return header

    def _judge(self, claims: Claims) -> Verified:
        now = self._clock()
        if claims.iss != self._issuer:
            raise Rejected("the access token comes from another issuer")
        check_audience(claims, self._audience)
        check_times(claims, now)
        if claims.exp is None:
            raise Rejected("the access token has no expiry")
        if not claims.sub:
            raise Rejected("the access token does not say whom it is for")
        return Verified(principal(claims, self._issuer), now, claims.exp, claims.exp, self._jwks.fresh)

    async def _load(self) -> bytes:
        if self._fetcher is not None:
            return await self._fetcher.fetch()
        try:
            return files.read("auth.jwks", self._path, MOST_BYTES).data
        except ConfigError as error:
            raise Unavailable(str(error)) from None


def _check_file(path: str) -> None:
    try:
        parse(files.read("auth.jwks", path, MOST_BYTES).data, repr(path))
    except Unavailable as error:
        raise ConfigError(f"auth.jwks: {error}") from None


def _is_signed(signed: bytes, signature: bytes, key: Key, algorithm: str) -> bool:
    try:
        return JWSRegistry.algorithms[algorithm].verify(signed, signature, key)
    except (JoseError, ValueError):
        return False


def _decode(decoder: msgspec.json.Decoder[Any], part: bytes) -> Any:
    try:
        return decoder.decode(_decoded(part))
    except (ValueError, RecursionError):
        raise Rejected(_MALFORMED) from None


def _decoded(part: bytes) -> bytes:
    try:
        return urlsafe_b64decode(part + b"=" * (-len(part) % 4))
    except ValueError:
        raise Rejected(_MALFORMED) from None
