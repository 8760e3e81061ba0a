"""Who we are to an authorization server, and how we prove that at its token endpoint."""

from __future__ import annotations

import time
from base64 import b64encode
from typing import Any
from urllib.parse import quote_plus
from uuid import uuid4

from msgspec import Struct

from longshore.client.oauth.authorizer import Headers
from longshore.client.oauth.discovery import AuthServer
from longshore.errors import AuthorizationError

BASIC, POST, NONE, PRIVATE_KEY = "client_secret_basic", "client_secret_post", "none", "private_key_jwt"
METHODS = (BASIC, POST, NONE, PRIVATE_KEY)

ASSERTION_SECONDS = 120
"""How long a signed proof of who we are is good: long enough for clocks that differ, too short to be of use later."""
_ASSERTION_KIND = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"


class Identity(Struct, frozen=True):
    """A client's identifier at one issuer, with what proves it. Its text shows no secret."""

    client_id: str
    secret: str | None = None
    private_key: str | dict[str, Any] | None = None
    algorithm: str = "ES256"
    method: str | None = None
    """How to prove it, if that was agreed on."""

    def __repr__(self) -> str:
        return f"Identity({self.client_id!r})"


def prove(identity: Identity, server: AuthServer) -> tuple[Headers, dict[str, str]]:
    """The headers and form fields that say who we are in a token request. Raises AuthorizationError."""
    method = choose(identity, server)
    fields = {"client_id": identity.client_id}  # beside Basic too: the official SDK's server wants it
    if method == BASIC:
        return [basic(identity.client_id, identity.secret or "")], fields
    if method == POST:
        fields["client_secret"] = identity.secret or ""
    elif method == PRIVATE_KEY:
        fields["client_assertion_type"] = _ASSERTION_KIND
        fields["client_assertion"] = _assertion(identity, server)
    return [], fields


def basic(client_id: str, secret: str) -> tuple[str, str]:
    """The header for client_secret_basic, both parts as in a form (RFC 6749, 2.3.1)."""
    pair = f"{quote_plus(client_id)}:{quote_plus(secret)}"
    return "Authorization", f"Basic {b64encode(pair.encode()).decode()}"


def choose(identity: Identity, server: AuthServer) -> str:
    """The way to prove it: as agreed, else the safest of those that both sides have."""
    if identity.method in METHODS:
        return identity.method
    if identity.private_key is not None:
        own = [PRIVATE_KEY]
    elif identity.secret is not None:
        own = [BASIC, POST, NONE]  # some give a secret to whoever registers and want none of it
    else:
        return NONE
    taken = server.auth_methods or own
    for method in own:
        if method in taken:
            return method
    what = f"the token endpoint takes {', '.join(taken)}, and we have what {' or '.join(own)} takes"
    raise AuthorizationError(f"{what}; give what it takes, or insist by token_endpoint_auth_method=")


def _assertion(identity: Identity, server: AuthServer) -> str:
    from longshore.client.oauth.signing import load_signing

    if identity.private_key is None:
        raise AuthorizationError("private_key_jwt needs a private key; give one by private_key=")
    signing = load_signing("private_key_jwt")
    now = int(time.time())
    claims = {
        "iss": identity.client_id,
        "sub": identity.client_id,
        "aud": server.issuer,
        "iat": now,
        "exp": now + ASSERTION_SECONDS,
        "jti": uuid4().hex,
    }
    signed: str = signing.sign_with(identity.private_key, identity.algorithm, claims)
    return signed
