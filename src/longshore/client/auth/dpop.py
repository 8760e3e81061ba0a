"""Signatures: DPoP proofs (RFC 9449), which bind tokens to a key, and client assertions (private_key_jwt).

They need joserfc, which is an extra and is imported when something is signed.
"""

from __future__ import annotations

import time
from base64 import b64encode, urlsafe_b64encode
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec
from typing import Any, final
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

from longshore.addresses import origin_of
from longshore.client.auth.authorizer import Headers
from longshore.errors import AuthorizationError

NONCE = "dpop-nonce"
USE_NONCE = "use_dpop_nonce"
MOST_NONCE_CHARS = 1024
"""Of one nonce. It is part of each proof, and so of a header of each request."""
MOST_ORIGINS = 16
"""Origins whose nonce is known. There are two: the server and its issuer."""
_KEY_CLASSES = {"ES": "ECKey", "RS": "RSAKey", "PS": "RSAKey", "Ed": "OKPKey"}


def load_joserfc(what: str) -> tuple[Any, Any]:
    """The modules `joserfc.jwk` and `joserfc.jwt`. Raises AuthorizationError, with the fix, if they are missing."""
    try:
        return import_module("joserfc.jwk"), import_module("joserfc.jwt")
    except ImportError as missing:
        fix = "install it with: pip install 'longshore[jwt]'"
        library = (missing.name or "joserfc").partition(".")[0]
        raise AuthorizationError(f"{what} needs the library {library}; {fix}") from None


def can_sign() -> bool:
    """Whether joserfc is installed."""
    return find_spec("joserfc") is not None


def sign_assertion(private_key: str | dict[str, Any], algorithm: str, claims: dict[str, Any]) -> str:
    """A signed JWT of these claims, by a key in PEM or as a JWK. Raises AuthorizationError."""
    jwk, jwt = load_joserfc("private_key_jwt")
    name = _KEY_CLASSES.get(algorithm[:2])
    if name is None:
        choice = "ES256, ES384, ES512, RS256, PS256 or Ed25519"
        raise AuthorizationError(f"{algorithm!r} is no algorithm to sign with; choose {choice}")
    try:
        key = getattr(jwk, name).import_key(private_key)
        header = {"alg": algorithm, "typ": "JWT", **({"kid": key.kid} if key.kid else {})}
        signed: str = jwt.encode(header, claims, key, algorithms=[algorithm])
        return signed
    except _jose_errors():  # their text may quote the key
        fix = f"give a private key in PEM or as a JWK that fits {algorithm}, or name its algorithm="
        raise AuthorizationError(f"the private key can't be used to sign; {fix}") from None


def _jose_errors() -> tuple[type[Exception], ...]:
    return import_module("joserfc.errors").JoseError, ValueError, TypeError, KeyError


@final
class Prover:
    """One ES256 key, and the nonces that servers gave for proofs by it."""

    def __init__(self, key: dict[str, str] | None = None) -> None:
        jwk, self._jwt = load_joserfc("DPoP")
        made: dict[str, Any] = key or jwk.ECKey.generate_key("P-256", private=True).as_dict(private=True)
        self.key = {name: str(value) for name, value in made.items()}
        try:
            self._private = jwk.ECKey.import_key({name: self.key[name] for name in ("kty", "crv", "x", "y", "d")})
        except _jose_errors():  # their text may quote the key
            raise AuthorizationError("the key that the stored token is bound to can't be read") from None
        self._public = {name: self.key[name] for name in ("kty", "crv", "x", "y")}
        self._nonces: dict[tuple[str, str, int], str] = {}

    def __repr__(self) -> str:
        return "Prover(…)"

    def prove(self, method: str, url: str, token: str | None = None, body: bytes | None = None) -> str:
        """The proof for one request. It names `token` and `body` by their hashes."""
        parts = urlsplit(url)
        claims: dict[str, Any] = {
            "jti": uuid4().hex,
            "htm": method,
            "htu": urlunsplit((parts.scheme, parts.netloc, parts.path or "/", "", "")),
            "iat": int(time.time()),
        }
        if token is not None:
            claims["ath"] = urlsafe_b64encode(sha256(token.encode()).digest()).rstrip(b"=").decode()
        if body:
            claims["content_digest"] = f"sha-256=:{b64encode(sha256(body).digest()).decode()}:"
        nonce = self._nonces.get(origin_of(parts))
        if nonce is not None:
            claims["nonce"] = nonce
        header = {"typ": "dpop+jwt", "alg": "ES256", "jwk": self._public}
        proof: str = self._jwt.encode(header, claims, self._private, algorithms=["ES256"])
        return proof

    def save_nonce(self, url: str, headers: Headers) -> bool:
        """Use the nonce of a response for the next proof. False: it has none, or the same as before."""
        nonce = next((value for name, value in headers if name == NONCE), "")
        where = origin_of(urlsplit(url))
        if not 0 < len(nonce) <= MOST_NONCE_CHARS or self._nonces.get(where) == nonce:
            return False
        if where not in self._nonces and len(self._nonces) >= MOST_ORIGINS:
            self._nonces.clear()
        self._nonces[where] = nonce
        return True
