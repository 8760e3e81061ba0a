"""The signatures themselves, by joserfc. Loaded by `signing` only."""

from __future__ import annotations

from typing import Any

from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, OKPKey, RSAKey
from msgspec import Struct

from longshore.errors import AuthorizationError

Key = ECKey | RSAKey | OKPKey

_KINDS: dict[str, type[ECKey] | type[RSAKey] | type[OKPKey]] = {"ES": ECKey, "RS": RSAKey, "PS": RSAKey, "Ed": OKPKey}


def sign_with(private_key: str | dict[str, Any], algorithm: str, claims: dict[str, Any]) -> str:
    """A signed token of these claims, by a key in PEM or as a JWK. Raises AuthorizationError."""
    kind = _KINDS.get(algorithm[:2])
    if kind is None:
        choice = "ES256, ES384, ES512, RS256, PS256 or Ed25519"
        raise AuthorizationError(f"{algorithm!r} is no algorithm to sign with; choose {choice}")
    try:
        key: Key = kind.import_key(private_key)
        header = {"alg": algorithm, "typ": "JWT"}
        if key.kid:
            header["kid"] = key.kid
        return jwt.encode(header, claims, key, algorithms=[algorithm])
    except (JoseError, ValueError, TypeError):  # whatever they say may quote the key
        fix = f"give a private key in PEM or as a JWK that fits {algorithm}, or name its algorithm="
        raise AuthorizationError(f"the private key can't be used to sign; {fix}") from None


def make_key() -> dict[str, str]:
    """A new private key for ES256, as a JWK."""
    return {name: str(value) for name, value in ECKey.generate_key("P-256", private=True).as_dict(private=True).items()}


class Signer(Struct, frozen=True):
    """A private key that was read, and its public half. Reading it takes longer than signing."""

    private: ECKey
    public: dict[str, str]

    def __repr__(self) -> str:
        return "Signer(…)"


def make_signer(key: dict[str, str]) -> Signer:
    """What signs by a private key for ES256. Raises AuthorizationError."""
    try:
        private = ECKey.import_key({name: key[name] for name in ("kty", "crv", "x", "y", "d")})
    except (JoseError, ValueError, TypeError, KeyError):  # whatever they say may quote the key
        raise AuthorizationError("the key that the stored token is bound to can't be read") from None
    return Signer(private, {name: key[name] for name in ("kty", "crv", "x", "y")})


def sign_proof(signer: Signer, claims: dict[str, Any]) -> str:
    """A DPoP proof: these claims, signed by the key whose public half it shows."""
    head = {"typ": "dpop+jwt", "alg": "ES256", "jwk": signer.public}
    return jwt.encode(head, claims, signer.private, algorithms=["ES256"])
