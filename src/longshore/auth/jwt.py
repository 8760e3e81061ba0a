"""JWT access tokens: the issuer's keys, fetched when they are needed, and the checks of a token.

Signature, issuer, audience and times are checked, in that order. Of the header only `alg`, `kid` and `typ` are read: a
key, or the address of one, that a token brings along is ignored.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias, final

import msgspec
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, JWKRegistry, OKPKey, RSAKey
from joserfc.jws import JWSRegistry
from msgspec import Struct

from longshore.auth.static_tokens import read_file
from longshore.auth.verified_tokens import Claims, IssuerUnavailable, RejectedToken, Verified
from longshore.auth.verifiers import MOST_BYTES, IssuerEndpoint
from longshore.config.sections import AuthConfig
from longshore.errors import ConfigError
from longshore.single_flight import SingleFlight

Key: TypeAlias = RSAKey | ECKey | OKPKey
Keys: TypeAlias = dict[tuple[str, str | None], Key]
"""By thumbprint and `kid`: an issuer may publish one key under two names."""

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
_TYPES = (None, "jwt", "at+jwt")
"""A JWT of another type, such as a logout token, is no access token although the same key signed it."""

_MALFORMED = "the access token is malformed"


class _Header(Struct, frozen=True):
    alg: str
    kid: str | None = None
    typ: str | None = None
    crit: Any = None


class _KeySet(Struct, frozen=True):
    keys: list[dict[str, Any]]


_header = msgspec.json.Decoder(_Header)
_claims = msgspec.json.Decoder(Claims)
_key_set = msgspec.json.Decoder(_KeySet)


def check_algorithms(names: list[str]) -> frozenset[str]:
    """The configured algorithms. Raises for one that is unsafe or unknown."""
    for name in names:
        if name not in ALGORITHMS or name not in JWSRegistry.algorithms:
            raise ConfigError(f"auth.algorithms: {name[:40]!r} is not accepted; choose from {', '.join(ALGORITHMS)}")
    if not names:
        raise ConfigError("auth.algorithms: empty, so no access token would be accepted")
    return frozenset(names)


@final
class KeyStore:
    """The keys of an issuer, from a URL or a file. `removed` is called when a key is in the set no more."""

    def __init__(
        self,
        source: str,
        load: Callable[[], Awaitable[bytes]],
        removed: Callable[[], None],
        clock: Callable[[], float],
    ) -> None:
        self._source = source
        self._load = load
        self._removed = removed
        self._clock = clock
        self._keys: Keys = {}
        self._fetched = self._tried = float("-inf")
        self._failure: str | None = None
        self._fetches: SingleFlight[bytes, None] = SingleFlight()

    async def find(self, kid: str | None, algorithm: str) -> list[Key]:
        """The keys that a token of this header may be signed with. Raises IssuerUnavailable."""
        if not _within(FRESH_SECONDS, self._fetched, self._clock()):
            await self._refresh()
        found = self._matching(kid, algorithm)
        if not found:
            await self._refresh()
            found = self._matching(kid, algorithm)
        return found

    @property
    def fresh(self) -> float:
        """Until when the set need not be fetched again."""
        return self._fetched + FRESH_SECONDS

    def _matching(self, kid: str | None, algorithm: str) -> list[Key]:
        named = [key for key in self._keys.values() if kid is None or key.kid == kid]
        return [key for key in named if _fits(key, algorithm)]

    async def _refresh(self) -> None:
        """Fetch the set, unless that was done just now."""
        pause = RETRY_SECONDS if self._failure else REFETCH_SECONDS
        if _within(pause, self._tried, self._clock()) and not self._fetches:
            if self._failure:
                raise IssuerUnavailable(self._failure)
            return
        await self._fetches.run(b"", self._fetch)

    async def _fetch(self) -> None:
        self._tried = self._clock()
        try:
            keys = parse_keys(await self._load(), self._source)
        except IssuerUnavailable as error:
            self._failure = str(error)
            raise
        is_less = bool(self._keys.keys() - keys.keys())
        self._keys, self._fetched, self._failure = keys, self._clock(), None
        if is_less:
            self._removed()


def parse_keys(data: bytes, source: str) -> Keys:
    """The usable keys of a JWKS document. Raises IssuerUnavailable if there is none."""
    try:
        listed = _key_set.decode(data).keys
    except (ValueError, RecursionError):
        raise IssuerUnavailable(f"{source} is not a JWKS document") from None
    keys = [key for key in map(_import_key, listed[:MOST_KEYS]) if key is not None]
    if not keys:
        raise IssuerUnavailable(f"{source} holds no key that can be used")
    return {(key.thumbprint(), key.kid): key for key in keys}


def _import_key(jwk: dict[str, Any]) -> Key | None:
    """A public key, or None: a set may hold others, and new kinds."""
    public = {name: value for name, value in jwk.items() if name in _PUBLIC}
    if public.get("kty") not in ("RSA", "EC", "OKP") or _is_short(public):
        return None
    try:
        key = JWKRegistry.import_key(public)
    except Exception:  # whatever is wrong with one key, the others must work
        return None
    return key if isinstance(key, (RSAKey, ECKey, OKPKey)) else None


def _is_short(jwk: dict[str, Any]) -> bool:
    """An RSA key that can be broken."""
    if jwk["kty"] != "RSA":
        return False
    try:
        modulus = urlsafe_b64decode(str(jwk.get("n")) + "==")
    except ValueError:
        return True
    return int.from_bytes(modulus, "big").bit_length() < LEAST_RSA_BITS


def _fits(key: Key, algorithm: str) -> bool:
    try:
        JWSRegistry.algorithms[algorithm].check_key(key)
    except JoseError:
        return False
    return True


def _within(seconds: float, since: float, now: float) -> bool:
    """Whether less than `seconds` have passed; False if the clock was set back."""
    return 0 <= now - since < seconds


@final
class JwtVerifier:
    """Checks the tokens of one issuer."""

    def __init__(
        self, auth: AuthConfig, issuer: str, audience: str, removed: Callable[[], None], clock: Callable[[], float]
    ) -> None:
        source = auth.jwks or ""
        self._issuer = issuer
        self._audience = audience
        self._algorithms = check_algorithms(auth.algorithms)
        self._clock = clock
        self._endpoint = IssuerEndpoint("auth.jwks", source) if "://" in source else None
        self._path = source
        if self._endpoint is None:
            _check_file(source)
        self._keys = KeyStore(source, self._load, removed, clock)

    def takes(self, token: bytes) -> bool:
        """Whether this is a JWT, and not an opaque token."""
        parts = _COMPACT.fullmatch(token)
        return parts is not None and parts[1].startswith(b"ey")  # `{"` in base64

    async def verify(self, token: bytes) -> Verified:
        """Raises RejectedToken or IssuerUnavailable."""
        parts = _COMPACT.fullmatch(token)
        if parts is None:
            raise RejectedToken(_MALFORMED)
        header = self._read_header(parts[1])
        keys = await self._keys.find(header.kid, header.alg)
        if not keys:
            raise RejectedToken("the access token is signed with a key that its issuer does not have")
        signed, signature = token[: parts.end(2)], _decoded(parts[3])
        if not any(_is_signed(signed, signature, key, header.alg) for key in keys):
            raise RejectedToken("the signature of the access token is wrong")
        return self._check(_decode(_claims, parts[2]))

    def close(self) -> None:
        if self._endpoint is not None:
            self._endpoint.close()

    def _read_header(self, part: bytes) -> _Header:
        header: _Header = _decode(_header, part)
        if header.alg not in self._algorithms:
            raise RejectedToken("the access token is signed in a way that is not accepted here")
        kind = None if header.typ is None else header.typ.lower().removeprefix("application/")
        if header.crit is not None or kind not in _TYPES:
            raise RejectedToken("this kind of token is not an access token")
        return header

    def _check(self, claims: Claims) -> Verified:
        now = self._clock()
        if claims.iss != self._issuer:
            raise RejectedToken("the access token comes from another issuer")
        claims.check_audience(self._audience)
        claims.check_times(now)
        if claims.exp is None:
            raise RejectedToken("the access token has no expiry")
        if not claims.sub:
            raise RejectedToken("the access token does not say whom it is for")
        return Verified(claims.principal(self._issuer), now, claims.exp, claims.exp, self._keys.fresh)

    async def _load(self) -> bytes:
        if self._endpoint is not None:
            return await self._endpoint.fetch()
        try:
            return read_file("auth.jwks", self._path, MOST_BYTES).data
        except ConfigError as error:
            raise IssuerUnavailable(str(error)) from None


def _check_file(path: str) -> None:
    try:
        parse_keys(read_file("auth.jwks", path, MOST_BYTES).data, repr(path))
    except IssuerUnavailable as error:
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
        raise RejectedToken(_MALFORMED) from None


def _decoded(part: bytes) -> bytes:
    try:
        return urlsafe_b64decode(part + b"=" * (-len(part) % 4))
    except ValueError:
        raise RejectedToken(_MALFORMED) from None
