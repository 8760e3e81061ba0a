"""Tokens, the client's identity, and requests to a token endpoint."""

from __future__ import annotations

import time
from base64 import b64encode
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote_plus
from uuid import uuid4

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from longshore.client.auth.authorizer import TOKEN, Headers
from longshore.client.auth.discovery import AuthServer, split_scopes
from longshore.client.auth.dpop import USE_NONCE, Prover, sign_assertion
from longshore.client.auth.oauth_http import OAuthHttp, OAuthResponse, TryLater, explain_refusal
from longshore.errors import AuthorizationError

LEEWAY_SECONDS = 20.0
"""A token is renewed this long before it expires: requests take time, and clocks differ. A short one at its half."""
ASSERTION_SECONDS = 120
"""Lifetime of a client assertion: long enough for clocks that differ, too short to be stolen."""
_MOST_CHARS = 64 << 10
"""Of one token. It goes into a header of each request, where servers take 8 to 64 KiB."""
_NONCE_TRIES = 2
"""Times that a proof is made again: with the requested nonce, and with another if that one expired."""
_SECRETS = ("code", "code_verifier", "refresh_token", "assertion", "client_secret", "client_assertion")

BASIC, POST, NONE, PRIVATE_KEY = "client_secret_basic", "client_secret_post", "none", "private_key_jwt"
METHODS = (BASIC, POST, NONE, PRIVATE_KEY)


class Identity(Struct, frozen=True, omit_defaults=True):
    """A client's identifier at one issuer, with its secret or key. Its text shows no secret."""

    client_id: str
    secret: str | None = None
    private_key: str | dict[str, Any] | None = None
    algorithm: str = "ES256"
    method: str | None = None
    """How to prove it, if that was agreed on."""
    registered: bool = False
    """It was registered for the login, and not given by the caller."""

    def __repr__(self) -> str:
        return f"Identity({self.client_id!r})"


class Tokens(Struct, frozen=True, omit_defaults=True):
    """An access token, its refresh token, and the server and scopes they were issued for. Its text shows no token."""

    access: str
    kind: str
    """`Bearer` or `DPoP`: the scheme of the header that carries it."""
    issuer: str
    resource: str | None = None
    """None for a server without metadata (2025-03-26)."""
    client: Identity | None = None
    """The client that the refresh token belongs to. Of one that the caller gave, no secret is stored."""
    asked: tuple[str, ...] = ()
    """The scopes that were requested or granted."""
    expires: float | None = None
    renew: float | None = None
    """When it is to be renewed."""
    refresh: str | None = None
    key: dict[str, str] | None = None
    """The private key that they are bound to, as a JWK."""

    def __repr__(self) -> str:
        return f"Tokens(issuer={self.issuer!r}, resource={self.resource!r}, asked={self.asked!r})"

    @property
    def is_stale(self) -> bool:
        """Whether it is time to renew them."""
        return self.renew is not None and time.time() >= self.renew

    @property
    def is_expired(self) -> bool:
        return self.expires is not None and time.time() >= self.expires


def read_tokens(record: Mapping[str, Any] | None) -> Tokens | None:
    """Tokens from a stored record; None if it is malformed."""
    try:
        found = msgspec.convert(record, Tokens)
    except msgspec.ValidationError:
        return None
    good = TOKEN.fullmatch(found.access) and found.kind in ("Bearer", "DPoP") and (found.key or found.kind == "Bearer")
    return found if good else None


class GrantRefused(AuthorizationError):
    """An authorization server refused a grant. `error` is its code, such as invalid_grant."""

    def __init__(self, what: str, error: str) -> None:
        super().__init__(what)
        self.error = error


def refusal(what: str, error: str, status: int) -> AuthorizationError:
    """The exception for a refused grant: TryLater if it may be granted later, else GrantRefused."""
    if status >= 500 or status == 429 or error in ("server_error", "temporarily_unavailable"):
        return TryLater(what)
    return GrantRefused(what, error)


# -- the client's identity


def _authenticate(identity: Identity, server: AuthServer) -> tuple[Headers, dict[str, str]]:
    """The headers and form fields that authenticate the client. Raises AuthorizationError."""
    method = _choose_method(identity, server)
    fields = {"client_id": identity.client_id}  # in addition to Basic: the official SDK's server requires it
    if method == BASIC:
        return [basic_header(identity.client_id, identity.secret or "")], fields
    if method == POST:
        fields["client_secret"] = identity.secret or ""
    elif method == PRIVATE_KEY:
        if identity.private_key is None:
            raise AuthorizationError("private_key_jwt needs a private key; give one by private_key=")
        now = int(time.time())
        claims = {"iss": identity.client_id, "sub": identity.client_id, "aud": server.issuer, "jti": uuid4().hex}
        times = {"iat": now, "exp": now + ASSERTION_SECONDS}
        fields["client_assertion_type"] = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
        fields["client_assertion"] = sign_assertion(identity.private_key, identity.algorithm, {**claims, **times})
    return [], fields


def basic_header(client_id: str, secret: str) -> tuple[str, str]:
    """The header for client_secret_basic, both parts as in a form (RFC 6749, 2.3.1)."""
    pair = f"{quote_plus(client_id)}:{quote_plus(secret)}"
    return "Authorization", f"Basic {b64encode(pair.encode()).decode()}"


def _choose_method(identity: Identity, server: AuthServer) -> str:
    """The agreed method, else the safest that both sides support."""
    if identity.method in METHODS:
        return identity.method
    if identity.private_key is not None:
        own = [PRIVATE_KEY]
    elif identity.secret is not None:
        own = [BASIC, POST, NONE]  # some issue a secret to every client and then expect none
    else:
        return NONE
    supported = server.auth_methods or own
    for method in own:
        if method in supported:
            return method
    what = f"the token endpoint takes {', '.join(supported)}, and we have what {' or '.join(own)} takes"
    raise AuthorizationError(f"{what}; give what it takes, or insist by token_endpoint_auth_method=")


# -- token requests


class GrantContext(Struct, frozen=True):
    """One authorization: what tokens are requested for, and at which authorization server."""

    http: OAuthHttp
    mcp_server: str
    """The URL of the MCP server, as tokens are stored for it."""
    server: AuthServer
    resource: str | None
    scopes: tuple[str, ...]
    prover: Prover | None = None
    dpop_required: bool = False
    """A token that is not bound to the key is not accepted."""


async def request_tokens(
    context: GrantContext, identity: Identity | None, form: Mapping[str, str], step: str
) -> Tokens:
    """Get tokens for one grant. Raises GrantRefused if the endpoint refuses, else AuthorizationError."""
    url, prover = context.server.token_endpoint, context.prover
    tries = 0
    while True:
        headers, proof = _authenticate(identity, context.server) if identity else ([], {})
        sent = {**form, **({"resource": context.resource} if context.resource else {}), **proof}
        dpop = [("DPoP", prover.prove("POST", url))] if prover else []
        response = await context.http.post_form(url, step + ": the token endpoint", sent, [*headers, *dpop])
        new_nonce = prover is not None and prover.save_nonce(url, response.headers)
        tries += 1
        if not (new_nonce and response.text("error") == USE_NONCE and tries <= _NONCE_TRIES):
            break
    if response.status != 200:
        basic = [value.partition(" ")[2] for _, value in headers]
        secrets = [*(sent.get(name) for name in _SECRETS), identity.secret if identity else None, *basic]
        what = f"{step}: the token endpoint refused: {explain_refusal(response, secrets)}"
        raise refusal(what, response.text("error"), response.status)
    return _read_response(response, context, identity, step)


async def refresh(context: GrantContext, identity: Identity, old: Tokens) -> Tokens:
    """New tokens for a refresh token. It stays valid if the response has no other."""
    form = {"grant_type": "refresh_token", "refresh_token": old.refresh or ""}
    found = await request_tokens(context, identity, form, "renewing the token")
    asked = tuple(dict.fromkeys((*old.asked, *found.asked)))
    return replace(found, refresh=found.refresh or old.refresh, asked=asked)


class _TokenResponse(Struct, frozen=True):
    access_token: str
    token_type: str
    expires_in: float | None = None
    refresh_token: str | None = None
    scope: str | None = None


def _read_response(response: OAuthResponse, context: GrantContext, identity: Identity | None, step: str) -> Tokens:
    try:  # not strict: some servers give `expires_in` as a text
        found = msgspec.convert(response.document, _TokenResponse, strict=False)
    except msgspec.ValidationError:
        found = _TokenResponse("", "")
    kind, seconds, now = found.token_type.lower(), found.expires_in, time.time()
    if len(found.access_token) > _MOST_CHARS or not TOKEN.fullmatch(found.access_token):
        raise AuthorizationError(f"{step}: the token endpoint's answer holds no access token that can be used")
    if kind not in ("bearer", "dpop") or (kind == "dpop" and context.prover is None):
        raise AuthorizationError(f"{step}: the token endpoint gave a token of a type that was not asked for")
    if kind == "bearer" and context.dpop_required:
        what = f"{step}: the token endpoint gave a token that is not bound to our key"
        raise AuthorizationError(f"{what}; allow that by dpop=False, if the server takes such tokens")
    if seconds is not None and not 0 < seconds < 1e10:
        seconds = None
    return Tokens(
        access=found.access_token,
        kind="DPoP" if kind == "dpop" else "Bearer",
        issuer=context.server.issuer,
        resource=context.resource,
        client=Identity(identity.client_id) if identity and not identity.registered else identity,
        asked=tuple(dict.fromkeys((*context.scopes, *split_scopes(found.scope)))),
        expires=None if seconds is None else now + seconds,
        renew=None if seconds is None else now + max(seconds - LEEWAY_SECONDS, seconds / 2),
        refresh=found.refresh_token or None,
        key=context.prover.key if context.prover else None,
    )
