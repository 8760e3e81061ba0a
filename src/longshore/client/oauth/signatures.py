"""The signatures themselves, by joserfc. Loaded by `signing` only."""

from __future__ import annotations

from typing import Any

from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, OKPKey, RSAKey

from longshore.errors import AuthorizationError

Key = ECKey | RSAKey | OKPKey

_KINDS: dict[str, type[ECKey] | type[RSAKey] | type[OKPKey]] = {"ES": ECKey, "RS": RSAKey, "PS": RSAKey, "Ed": OKPKey}


def sign_with(private_key: str | dict[str, Any], algorithm: str, claims: dict[str, Any]) -> str:
    """A signed token of these claims, by a key in PEM or as a JWK. Raises AuthorizationError."""
    kind = _KINDS.get(algorithm[:2])
    if kind is None:
        choice = "ES256, ES384, ES512, RS256, PS256 or EdDSA"
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


def sign_proof(key: dict[str, str], claims: dict[str, Any]) -> str:
    """A DPoP proof: these claims, signed by the key whose public half it shows."""
    signer = ECKey.import_key({name: key[name] for name in ("kty", "crv", "x", "y", "d")})
    public = {name: key[name] for name in ("kty", "crv", "x", "y")}
    return jwt.encode({"typ": "dpop+jwt", "alg": "ES256", "jwk": public}, claims, signer, algorithms=["ES256"])
