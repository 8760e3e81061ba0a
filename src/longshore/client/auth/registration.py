"""Dynamic registration of the client (RFC 7591). Registrations are stored by issuer, and no other issuer sees them.

There may be several with one issuer: another name, redirect URI or set of scopes needs another. A new one does not
replace an old one: a refresh token is valid only for the client that it was issued to.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct

from longshore.client.auth.discovery import split_scopes
from longshore.client.auth.oauth_http import explain_refusal
from longshore.client.auth.store import TokenStore
from longshore.client.auth.tokens import BASIC, METHODS, NONE, POST, GrantContext, Identity
from longshore.client.auth.url_policy import shown
from longshore.errors import AuthorizationError

MOST_REGISTRATIONS = 32
"""With one issuer. Beyond, the oldest is deleted."""


class Application(Struct, frozen=True):
    """How the client describes itself."""

    name: str
    kind: str
    """`native` for a program on a person's machine, `web` for one on a server."""
    method: str | None = None
    """The authentication method that the caller insists on."""


class Registration(Struct, frozen=True, omit_defaults=True):
    """A registration as it is stored. Its text shows no secret."""

    client_id: str
    redirect: str
    application: Application
    secret: str | None = None
    method: str | None = None
    scopes: tuple[str, ...] = ()
    expires: float = 0
    doubted: bool = False
    """A login with it failed. It still renews its tokens, but is not used for another login."""

    def __repr__(self) -> str:
        return f"Registration({self.client_id!r})"

    @property
    def identity(self) -> Identity:
        return Identity(self.client_id, self.secret, method=self.method)

    def suits(self, application: Application, scopes: tuple[str, ...]) -> bool:
        """Whether it can be used for a login. Some servers allow only the scopes that were registered."""
        return not self.doubted and self.application == application and set(scopes) <= set(self.scopes)


async def load_registrations(store: TokenStore, issuer: str) -> list[Registration]:
    """The registrations with an issuer that have not expired, the latest first."""
    record = await store.read(f"client {issuer}") or {}
    try:
        found = msgspec.convert(record.get("registrations"), list[Registration])
    except msgspec.ValidationError:  # a malformed record counts as none
        return []
    return [each for each in found if each.client_id and each.redirect and not 0 < each.expires <= time.time()]


async def change_registrations(
    store: TokenStore, issuer: str, change: Callable[[list[Registration]], list[Registration]]
) -> None:
    """Change the registrations with an issuer, one process at a time."""
    async with store.process_lock():
        changed = change(await load_registrations(store, issuer))[:MOST_REGISTRATIONS]
        await store.write(f"client {issuer}", {"registrations": msgspec.to_builtins(changed)} if changed else None)


async def register(context: GrantContext, store: TokenStore, application: Application, redirect: str) -> Identity:
    """Register the client. Raises AuthorizationError."""
    server, scopes = context.server, context.scopes
    if not server.registration_endpoint:
        what = f"registration: {shown(server.issuer)} lets no client register itself"
        raise AuthorizationError(f"{what}; register with it by hand and give OAuth(client_id=…)")
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
        application,
        secret,
        # A method without its secret is of no use: then it is chosen when it is needed.
        method=agreed if agreed in METHODS and (secret or agreed not in (BASIC, POST)) else None,
        scopes=(*scopes, *split_scopes(response.text("scope"))),
        expires=float(expires) if isinstance(expires, (int, float)) and 0 < expires < 1e12 else 0,
    )
    await change_registrations(
        store, server.issuer, lambda known: [made, *(each for each in known if each.client_id != client_id)]
    )
    return made.identity
