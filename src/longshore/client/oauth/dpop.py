"""DPoP (RFC 9449): tokens that are of no use to whoever does not have the key that they are bound to."""

from __future__ import annotations

import time
from base64 import b64encode, urlsafe_b64encode
from hashlib import sha256
from typing import Any, final
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

from longshore.addresses import origin_of
from longshore.client.oauth.authorizer import Headers
from longshore.client.oauth.signing import load_signing

NONCE = "dpop-nonce"
USE_NONCE = "use_dpop_nonce"
MOST_NONCE_CHARS = 1024
"""Of one nonce. It is part of each proof, and so of a header of each request."""
MOST_ORIGINS = 16
"""That a nonce is known of. There are two: the server, and its issuer."""


@final
class Prover:
    """One key, and the nonces that servers gave for proofs by it."""

    def __init__(self, key: dict[str, str] | None = None) -> None:
        self._signing = load_signing("DPoP")
        self.key: dict[str, str] = key or self._signing.make_key()
        self._signer: Any = self._signing.make_signer(self.key)
        self._nonces: dict[tuple[str, str, int], str] = {}

    def __repr__(self) -> str:
        return "Prover(…)"

    def prove(self, method: str, url: str, token: str | None = None, body: bytes | None = None) -> str:
        """The proof for one request. `token` and `body` are named by their hashes, where there are any."""
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
        proof: str = self._signing.sign_proof(self._signer, claims)
        return proof

    def hear(self, url: str, headers: Headers) -> bool:
        """Take the nonce that an answer gives for the next proof. False: it gives none, or the one we had."""
        nonce = next((value for name, value in headers if name == NONCE), None)
        if not nonce or len(nonce) > MOST_NONCE_CHARS:
            return False
        where = origin_of(urlsplit(url))
        fresh = self._nonces.get(where) != nonce
        if where not in self._nonces and len(self._nonces) >= MOST_ORIGINS:
            self._nonces.clear()
        self._nonces[where] = nonce
        return fresh
