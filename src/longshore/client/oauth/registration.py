"""Becoming known to an authorization server (RFC 7591). What it gives is kept by issuer and shown to no other."""

from __future__ import annotations

import time
from typing import Any

from msgspec import Struct

from longshore.client.oauth.addresses import shown
from longshore.client.oauth.asking import Asker, Reply, refusal
from longshore.client.oauth.cupboard import Cupboard
from longshore.client.oauth.discovery import AuthServer
from longshore.client.oauth.identity import BASIC, METHODS, NONE, POST, Identity
from longshore.client.oauth.scopes import words
from longshore.errors import AuthorizationError


class Application(Struct, frozen=True):
    """What we say of ourselves."""

    name: str
    kind: str
    """`native` for what runs on a person's machine, `web` for what runs on a server."""
    method: str | None = None
    """How the caller insists on proving who we are."""


class Registered(Struct, frozen=True):
    """A registration, where it lets the browser be sent back to, and the scopes that it was made for."""

    identity: Identity
    redirect: str
    scopes: tuple[str, ...]


async def recall(cupboard: Cupboard, issuer: str) -> Registered | None:
    """The registration with an issuer, if there is one that still holds."""
    record = await cupboard.read(_key(issuer))
    if record is None or record.get("issuer") != issuer:
        return None
    client_id, redirect = _text(record, "client_id"), _text(record, "redirect")
    expires: Any = record.get("expires")
    if not client_id or not redirect or (isinstance(expires, (int, float)) and 0 < expires <= time.time()):
        return None
    identity = Identity(client_id, _text(record, "secret"), method=_text(record, "method"))
    return Registered(identity, redirect, words(_text(record, "scope")))


async def forget(cupboard: Cupboard, issuer: str) -> None:
    """The issuer does not know us any more."""
    await cupboard.write(_key(issuer), None)


async def register(
    asker: Asker,
    cupboard: Cupboard,
    server: AuthServer,
    application: Application,
    redirect: str,
    scopes: tuple[str, ...],
) -> Identity:
    """Register anew. Raises AuthorizationError."""
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
    reply = await asker.post_json(server.registration_endpoint, document, "registration: the endpoint")
    if reply.status not in (200, 201):
        raise AuthorizationError(_refused(server, reply))
    client_id = reply.text("client_id")
    if not client_id or not client_id.isprintable():
        raise AuthorizationError(f"registration: {shown(server.issuer)} gave no client_id")
    method = reply.text("token_endpoint_auth_method")
    identity = Identity(client_id, reply.text("client_secret") or None, method=_usable(method, reply))
    await cupboard.write(
        _key(server.issuer),
        {
            "issuer": server.issuer,
            "client_id": client_id,
            "secret": identity.secret,
            "method": identity.method,
            "redirect": redirect,
            "scope": " ".join((*scopes, *words(reply.text("scope")))),
            "expires": (reply.document or {}).get("client_secret_expires_at"),
        },
    )
    return identity


def wanted_method(server: AuthServer) -> str:
    """What we ask to prove ourselves by: nothing, for a program on a person's machine can't keep a secret."""
    taken = server.auth_methods or (NONE,)
    return next((method for method in (NONE, BASIC, POST) if method in taken), NONE)


def _usable(method: str, reply: Reply) -> str | None:
    """The method that was agreed on, if we have what it takes; else it is chosen when it is needed."""
    if method not in METHODS or (method in (BASIC, POST) and not reply.text("client_secret")):
        return None
    return method


def _refused(server: AuthServer, reply: Reply) -> str:
    if server.assumed:
        what = "the server wants a token, but says nowhere how to get one by OAuth"
        return f"{what}; if you have one, give it by auth="
    what = f"registration: {shown(server.issuer)} refused: {refusal(reply)}"
    return f"{what}; register with it by hand and give client_id= (and client_secret=, if it gave one)"


def _text(record: dict[str, Any], name: str) -> str | None:
    value = record.get(name)
    return value if isinstance(value, str) else None


def _key(issuer: str) -> str:
    return f"client {issuer}"
