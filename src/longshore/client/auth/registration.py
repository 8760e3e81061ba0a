"""Dynamic registration of the client (RFC 7591). Registrations are stored by issuer, and no other issuer sees them.

There may be several with one issuer: another name, redirect URI or set of scopes needs another. A new one does not
replace an old one: a refresh token is valid only for the client that it was issued to.
"""

from __future__ import annotations

import time
from typing import Any

import msgspec
from msgspec import Struct

from longshore.client.auth.discovery import AuthServer
from longshore.client.auth.oauth_http import OAuthHttp, OAuthResponse, explain_refusal
from longshore.client.auth.scopes import split_scopes
from longshore.client.auth.token_endpoint import BASIC, METHODS, NONE, POST, Identity
from longshore.client.auth.token_store import TokenStore
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


class _Record(Struct, frozen=True):
    issuer: str
    registrations: list[Registration]


async def load_registrations(store: TokenStore, issuer: str) -> list[Registration]:
    """The registrations with an issuer that have not expired, the latest first."""
    record = await store.read(_key(issuer))
    try:
        kept = msgspec.convert(record, _Record)
    except msgspec.ValidationError:  # a malformed record counts as none
        return []
    found = kept.registrations if kept.issuer == issuer else []
    return [each for each in found if each.client_id and each.redirect and not 0 < each.expires <= time.time()]


async def mark_doubted(store: TokenStore, issuer: str, client_id: str) -> None:
    """Note that a login with this registration failed: the issuer may have deleted it."""

    def doubted(each: Registration) -> Registration:
        return msgspec.structs.replace(each, doubted=True) if each.client_id == client_id else each

    async with store.process_lock():
        await _write(store, issuer, [doubted(each) for each in await load_registrations(store, issuer)])


async def delete_registration(store: TokenStore, issuer: str, client_id: str) -> None:
    """Delete the registration of a client that the issuer does not know any more."""
    async with store.process_lock():
        known = await load_registrations(store, issuer)
        await _write(store, issuer, [each for each in known if each.client_id != client_id])


async def register(
    http: OAuthHttp,
    store: TokenStore,
    server: AuthServer,
    application: Application,
    redirect: str,
    scopes: tuple[str, ...],
) -> Identity:
    """Register the client. Raises AuthorizationError."""
    document: dict[str, Any] = {
        "client_name": application.name,
        "redirect_uris": [redirect],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": application.method or wanted_method(server),
        "application_type": application.kind,
    }
    if scopes:
        document["scope"] = " ".join(scopes)
    response = await http.post_json(server.registration_endpoint, document, "registration: the endpoint")
    if response.status not in (200, 201):
        raise _refused(server, response)
    client_id = response.text("client_id")
    if not client_id or not client_id.isprintable():
        raise AuthorizationError(f"registration: {shown(server.issuer)} gave no client_id")
    made = Registration(
        client_id,
        redirect,
        application,
        secret=response.text("client_secret") or None,
        method=_usable(response.text("token_endpoint_auth_method"), response),
        scopes=(*scopes, *split_scopes(response.text("scope"))),
        expires=_expires(response),
    )
    async with store.process_lock():
        known = [each for each in await load_registrations(store, server.issuer) if each.client_id != client_id]
        await _write(store, server.issuer, [made, *known])
    return made.identity


async def _write(store: TokenStore, issuer: str, registrations: list[Registration]) -> None:
    kept = [msgspec.to_builtins(each) for each in registrations[:MOST_REGISTRATIONS]]
    await store.write(_key(issuer), {"issuer": issuer, "registrations": kept} if kept else None)


def wanted_method(server: AuthServer) -> str:
    """The authentication method to register: none if possible, as a program on a person's machine has no secret."""
    taken = server.auth_methods or (NONE,)
    return next((method for method in (NONE, BASIC, POST) if method in taken), NONE)


def _usable(method: str, response: OAuthResponse) -> str | None:
    """The agreed method, if we have its secret; else None, and it is chosen when it is needed."""
    if method not in METHODS or (method in (BASIC, POST) and not response.text("client_secret")):
        return None
    return method


def _expires(response: OAuthResponse) -> float:
    """When the secret expires, 0 for never."""
    said: Any = (response.document or {}).get("client_secret_expires_at")
    return float(said) if isinstance(said, (int, float)) and 0 < said < 1e12 else 0


def _refused(server: AuthServer, response: OAuthResponse) -> AuthorizationError:
    if server.assumed:
        what = "the server wants a token, but says nowhere how to get one by OAuth"
        return AuthorizationError(what, fix="if you have one, give it by {}", options=("auth",))
    what = f"registration: {shown(server.issuer)} refused: {explain_refusal(response)}"
    fix = "register with it by hand and give client_id= (and client_secret=, if it gave one)"
    return AuthorizationError(what, fix=fix)


def _key(issuer: str) -> str:
    return f"client {issuer}"
