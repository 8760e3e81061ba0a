"""Jwks: an issuer's public keys, from a URL or a file, fetched when they are needed."""

from __future__ import annotations

import time
from base64 import urlsafe_b64decode
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias, final

import msgspec
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, JWKRegistry, OKPKey, RSAKey
from joserfc.jws import JWSRegistry
from msgspec import Struct

from longshore.auth.verdict import Unavailable
from longshore.errors import ConfigError
from longshore.single_flight import SingleFlight

Key: TypeAlias = RSAKey | ECKey | OKPKey
Keys: TypeAlias = dict[tuple[str, str | None], Key]
"""By thumbprint and `kid`: an issuer may publish one key under two names."""

FRESH_SECONDS = 600.0
"""How long a key set is used. After that the next token brings about a new one, and a key that is not in it ends the
tokens that it signed."""

REFETCH_SECONDS = 30.0
"""An unknown key may be a new one, so the set is fetched again, but not at the pace at which tokens can be forged."""

RETRY_SECONDS = 5.0
"""After a failure nobody asks again for this long."""

LEAST_RSA_BITS = 2048
MOST_KEYS = 64
"""Issuers have two or three."""

_PUBLIC = ("kty", "kid", "use", "key_ops", "alg", "n", "e", "crv", "x", "y")

ALGORITHMS = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA", "Ed25519"),
)
"""Signatures with a public key. With `none` there is none, and HS256 would take the public key for a secret."""


class _KeySet(Struct, frozen=True):
    keys: list[dict[str, Any]]


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
class Jwks:
    """The keys, and when they were fetched from `source`. `lost` is called when a key is gone from the set."""

    def __init__(
        self,
        source: str,
        load: Callable[[], Awaitable[bytes]],
        lost: Callable[[], None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._source = source
        self._load = load
        self._lost = lost
        self._clock = clock
        self._keys: Keys = {}
        self._fetched = self._tried = float("-inf")
        self._failure: str | None = None
        self._fetches: SingleFlight[bytes, None] = SingleFlight()

    async def find(self, kid: str | None, algorithm: str) -> list[Key]:
        """The keys that a token of this header may be signed with. Raises Unavailable."""
        if not _within(FRESH_SECONDS, self._fetched, self._clock()):
            await self._refresh()
        found = self._fit(kid, algorithm)
        if not found:
            await self._refresh()
            found = self._fit(kid, algorithm)
        return found

    @property
    def fresh(self) -> float:
        """Until when the set need not be fetched again."""
        return self._fetched + FRESH_SECONDS

    def _fit(self, kid: str | None, algorithm: str) -> list[Key]:
        named = [key for key in self._keys.values() if kid is None or key.kid == kid]
        return [key for key in named if _suits(key, algorithm)]

    async def _refresh(self) -> None:
        """Fetch the set, unless that was done just now."""
        pause = RETRY_SECONDS if self._failure else REFETCH_SECONDS
        if _within(pause, self._tried, self._clock()) and not self._fetches:
            if self._failure:
                raise Unavailable(self._failure)
            return
        await self._fetches.run(b"", self._fetch)

    async def _fetch(self) -> None:
        self._tried = self._clock()
        try:
            keys = parse(await self._load(), self._source)
        except Unavailable as error:
            self._failure = str(error)
            raise
        gone = self._keys.keys() - keys.keys()
        self._keys, self._fetched, self._failure = keys, self._clock(), None
        if gone:
            self._lost()


def parse(data: bytes, source: str) -> Keys:
    """The usable keys of a JWKS document. Raises Unavailable if there is none."""
    try:
        listed = _key_set.decode(data).keys
    except (ValueError, RecursionError):
        raise Unavailable(f"{source} is not a JWKS document") from None
    keys = [key for key in map(_imported, listed[:MOST_KEYS]) if key is not None]
    if not keys:
        raise Unavailable(f"{source} holds no key that can be used")
    return {(key.thumbprint(), key.kid): key for key in keys}


def _imported(jwk: dict[str, Any]) -> Key | None:
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


def _suits(key: Key, algorithm: str) -> bool:
    try:
        JWSRegistry.algorithms[algorithm].check_key(key)
    except JoseError:
        return False
    return True


def _within(seconds: float, since: float, now: float) -> bool:
    """Whether less than `seconds` have passed. A clock that was set back has not passed any, and is not trusted."""
    return 0 <= now - since < seconds
