"""JWT access tokens: the issuer's keys, fetched when they are needed, and the checks of a token.

Signature, issuer, audience and times are checked, in that order. Of the header only `alg`, `kid` and `typ` are read: a
key, or the address of one, that a token brings along is ignored.
"""

from __future__ import annotations

import asyncio
import re
from base64 import urlsafe_b64decode
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar, final
from weakref import WeakKeyDictionary

import msgspec
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, JWKRegistry, OKPKey, RSAKey
from joserfc.jws import JWSRegistry
from msgspec import Struct

from longshore.auth.settings import trusted
from longshore.auth.static_tokens import read_file
from longshore.auth.verifiers import MOST_BYTES, Claims, IssuerUnavailable, RejectedToken, Verified, fetch
from longshore.config.sections import AuthConfig
from longshore.errors import ConfigError

Key: TypeAlias = RSAKey | ECKey | OKPKey
Keys: TypeAlias = dict[tuple[str, str | None], Key]
"""By thumbprint and `kid`: an issuer may publish one key under two names."""
T = TypeVar("T")

FRESH_SECONDS = 600.0
"""How long a key set is used. Then the next token triggers a fetch; tokens of a key that is not in it any more end."""

REFETCH_SECONDS = 30.0
"""Least time between two fetches. An unknown key may be a new one, but forged tokens must not flood the issuer."""

RETRY_SECONDS = 5.0
"""Least time between two fetches after a failure."""

LEAST_RSA_BITS = 2048
MOST_KEYS = 64
"""Issuers have two or three."""

_PUBLIC = ("kty", "kid", "use", "key_ops", "alg", "n", "e", "crv", "x", "y")

ALGORITHMS = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA", "Ed25519"),
)
"""Signatures with a public key. With `none` there is none, and HS256 would take the public key for a secret."""

_COMPACT = re.compile(rb"([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]*)")
_TYPES = ("", "jwt", "at+jwt")
"""A JWT of another type, such as a logout token, is no access token although the same key signed it."""


class _Header(Struct, frozen=True):
    alg: str
    kid: str | None = None
    typ: str | None = None
    crit: Any = None


class _KeySet(Struct, frozen=True):
    keys: list[dict[str, Any]]


@final
class JwtVerifier:
    """Checks the tokens of one issuer, with its keys from a URL or a file.

    `removed` is called when a key is in the set no more.
    """

    def __init__(
        self, auth: AuthConfig, audience: str, removed: Callable[[], None], clock: Callable[[], float]
    ) -> None:
        for name in auth.algorithms:
            if name not in ALGORITHMS or name not in JWSRegistry.algorithms:
                choice = ", ".join(ALGORITHMS)
                raise ConfigError(f"auth.algorithms: {name[:40]!r} is not accepted; choose from {choice}")
        if not auth.algorithms:
            raise ConfigError("auth.algorithms: empty, so no access token would be accepted")
        self._algorithms = frozenset(auth.algorithms)
        self._issuer, self._audience = auth.issuer or "", audience
        self._removed, self._clock = removed, clock
        self._source = auth.jwks or ""
        self._keys: Keys = {}
        self._fetched = self._tried = float("-inf")
        self._failure: str | None = None
        self._locks: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()
        if "://" in self._source:
            trusted("auth.jwks", self._source)
            return
        try:
            parse_keys(read_file("auth.jwks", self._source, MOST_BYTES)[0], repr(self._source))
        except IssuerUnavailable as error:
            raise ConfigError(f"auth.jwks: {error}") from None

    def takes(self, token: bytes) -> bool:
        """Whether this is a JWT, and not an opaque token."""
        return token.startswith(b"ey") and _COMPACT.fullmatch(token) is not None  # `{"` in base64

    async def verify(self, token: bytes) -> Verified:
        parts = _COMPACT.fullmatch(token)
        assert parts is not None  # it `takes` the token
        header = _decode(parts[1], _Header)
        if header.alg not in self._algorithms:
            raise RejectedToken("the access token is signed in a way that is not accepted here")
        if header.crit is not None or (header.typ or "").lower().removeprefix("application/") not in _TYPES:
            raise RejectedToken("this kind of token is not an access token")
        keys = await self._find_keys(header.kid, header.alg)
        if not keys:
            raise RejectedToken("the access token is signed with a key that its issuer does not have")
        signed, signature = token[: parts.end(2)], _decode_base64(parts[3])
        if not any(_is_signed(signed, signature, key, header.alg) for key in keys):
            raise RejectedToken("the signature of the access token is wrong")
        claims, now = _decode(parts[2], Claims), self._clock()
        if claims.iss != self._issuer:
            raise RejectedToken("the access token comes from another issuer")
        claims.check(self._audience, now)
        if claims.exp is None:
            raise RejectedToken("the access token has no expiry")
        if not claims.sub:
            raise RejectedToken("the access token does not say whom it is for")
        principal = claims.principal(self._issuer)
        return Verified(principal, now, claims.exp, claims.exp, fresh=self._fetched + FRESH_SECONDS)

    # -- the issuer's keys

    async def _find_keys(self, kid: str | None, algorithm: str) -> list[Key]:
        """The keys that a token of this header may be signed with. Raises IssuerUnavailable."""
        found: list[Key] = []
        if self._has_passed(FRESH_SECONDS, self._fetched) or not (found := self._matching(kid, algorithm)):
            async with self._locks.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
                await self._refresh()
            found = self._matching(kid, algorithm)
        return found

    def _matching(self, kid: str | None, algorithm: str) -> list[Key]:
        named = [key for key in self._keys.values() if kid is None or key.kid == kid]
        return [key for key in named if _fits(key, algorithm)]

    async def _refresh(self) -> None:
        """Fetch the set, unless that was done just now."""
        if not self._has_passed(RETRY_SECONDS if self._failure else REFETCH_SECONDS, self._tried):
            if self._failure:
                raise IssuerUnavailable(self._failure)
            return
        try:
            if "://" in self._source:
                data = await fetch(self._source)
            else:
                data, _ = read_file("auth.jwks", self._source, MOST_BYTES)
            keys = parse_keys(data, self._source)
        except (IssuerUnavailable, ConfigError) as error:
            self._failure, self._tried = str(error), self._clock()
            raise IssuerUnavailable(self._failure) from None
        is_less = bool(self._keys.keys() - keys.keys())
        self._keys, self._failure = keys, None
        self._fetched = self._tried = self._clock()
        if is_less:
            self._removed()

    def _has_passed(self, seconds: float, since: float) -> bool:
        """Whether so many seconds have passed, or the clock was set back."""
        return not 0 <= self._clock() - since < seconds


def parse_keys(data: bytes, source: str) -> Keys:
    """The usable keys of a JWKS document. Raises IssuerUnavailable if there is none."""
    try:
        listed = msgspec.json.decode(data, type=_KeySet).keys
    except (ValueError, RecursionError):
        raise IssuerUnavailable(f"{source} is not a JWKS document") from None
    keys = [key for key in map(_import_key, listed[:MOST_KEYS]) if key is not None]
    if not keys:
        raise IssuerUnavailable(f"{source} holds no key that can be used")
    return {(key.thumbprint(), key.kid): key for key in keys}


def _import_key(jwk: dict[str, Any]) -> Key | None:
    """A public key, or None: a set may hold others, new kinds, and RSA keys so short that they can be broken."""
    public = {name: value for name, value in jwk.items() if name in _PUBLIC}
    try:
        if public.get("kty") == "RSA":
            modulus = int.from_bytes(urlsafe_b64decode(public["n"] + "=="), "big")
            if modulus.bit_length() < LEAST_RSA_BITS:
                return None
        key = JWKRegistry.import_key(public)
    except Exception:  # whatever is wrong with one key, the others must work
        return None
    return key if isinstance(key, (RSAKey, ECKey, OKPKey)) else None


def _fits(key: Key, algorithm: str) -> bool:
    try:
        JWSRegistry.algorithms[algorithm].check_key(key)
    except JoseError:
        return False
    return True


def _is_signed(signed: bytes, signature: bytes, key: Key, algorithm: str) -> bool:
    try:
        return JWSRegistry.algorithms[algorithm].verify(signed, signature, key)
    except (JoseError, ValueError):
        return False


def _decode(part: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(_decode_base64(part), type=kind)
    except (ValueError, RecursionError):
        raise RejectedToken("the access token is malformed") from None


def _decode_base64(part: bytes) -> bytes:
    try:
        return urlsafe_b64decode(part + b"=" * (-len(part) % 4))
    except ValueError:
        raise RejectedToken("the access token is malformed") from None
