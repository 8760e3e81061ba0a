"""Dynamic registration of the client (RFC 7591): one for each issuer and application.

A registration is stored for the next login. The tokens that were issued to it have its identity with them, so that it
can be replaced: by one with more scopes or another redirect URI, or because the issuer has deleted it.
"""

from __future__ import annotations

import time
from typing import Any

import msgspec
from msgspec import Struct

from longshore.client.auth.discovery import split_scopes
from longshore.client.auth.oauth_http import explain_refusal
from longshore.client.auth.store import TokenStore
from longshore.client.auth.tokens import BASIC, METHODS, NONE, POST, GrantContext, Identity
from longshore.client.auth.url_policy import shown
from longshore.errors import AuthorizationError


class Application(Struct, frozen=True, array_like=True):
    """How the client describes itself."""

    name: str
    kind: str
    """`native` for a program on a person's machine, `web` for one on a server."""
    method: str | None = None
    """The authentication method that the caller insists on."""

    def key(self, issuer: str) -> str:
        """The key of its registration with an issuer, which no other issuer sees."""
        return f"client {issuer} {msgspec.json.encode(self).decode()}"


class Registration(Struct, frozen=True, omit_defaults=True):
    """A registration as it is stored. Its text shows no secret."""

    client_id: str
    redirect: str
    secret: str | None = None
    method: str | None = None
    scopes: tuple[str, ...] = ()
    """Those that were registered: some servers allow no others."""
    expires: float = 0

    def __repr__(self) -> str:
        return f"Registration({self.client_id!r})"

    @property
    def identity(self) -> Identity:
        return Identity(self.client_id, self.secret, method=self.method, registered=True)


async def load_registration(store: TokenStore, key: str) -> Registration | None:
    """A registration that has not expired."""
    try:
        found = msgspec.convert(await store.read(key), Registration)
    except msgspec.ValidationError:  # a malformed record counts as none
        return None
    return found if found.client_id and found.redirect and not 0 < found.expires <= time.time() else None


async def register(context: GrantContext, store: TokenStore, application: Application, redirect: str) -> Identity:
    """Register the client, also for the scopes of its earlier registration. Raises AuthorizationError."""
    server, key = context.server, application.key(context.server.issuer)
    if not server.registration_endpoint:
        what = f"registration: {shown(server.issuer)} lets no client register itself"
        raise AuthorizationError(f"{what}; register with it by hand and give OAuth(client_id=…)")
    before = await load_registration(store, key)
    scopes = tuple(dict.fromkeys((*(before.scopes if before else ()), *context.scopes)))
    # Without a secret if possible, as a program on a person's machine has none.
    method = next((each for each in (NONE, BASIC, POST) if each in (server.auth_methods or (NONE,))), NONE)
    document: dict[str, Any] = {
        "client_name": application.name,
        "redirect_uris": [redirect],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": application.method or method,
        "application_type": application.kind,
        **({"scope": " ".join(scopes)} if scopes else {}),
    }
    response = await context.http.post_json(server.registration_endpoint, "registration: the endpoint", document)
    if response.status not in (200, 201) and server.assumed:
        what = "the server wants a token, but says nowhere how to get one by OAuth"
        raise AuthorizationError(what, fix="if you have one, give it by {}", options=("auth",))
    if response.status not in (200, 201):
        what = f"registration: {shown(server.issuer)} refused: {explain_refusal(response)}"
        fix = "register with it by hand and give client_id= (and client_secret=, if it gave one)"
        raise AuthorizationError(what, fix=fix)
    client_id, secret = response.text("client_id"), response.text("client_secret") or None
    if not client_id or not client_id.isprintable():
        raise AuthorizationError(f"registration: {shown(server.issuer)} gave no client_id")
    agreed = response.text("token_endpoint_auth_method")
    expires: Any = response.document.get("client_secret_expires_at")
    made = Registration(
        client_id,
        redirect,
        secret,
        # A method without its secret is of no use: then it is chosen when it is needed.
        method=agreed if agreed in METHODS and (secret or agreed not in (BASIC, POST)) else None,
        scopes=(*scopes, *split_scopes(response.text("scope"))),
        expires=float(expires) if isinstance(expires, (int, float)) and 0 < expires < 1e12 else 0,
    )
    await store.write(key, msgspec.to_builtins(made))
    return made.identity
