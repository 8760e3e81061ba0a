"""Becoming known to an authorization server (RFC 7591). What it gives is kept by issuer and shown to no other.

There may be several registrations with one issuer: another name, way back or set of scopes takes another. None replaces
another, for a refresh token is good only for the client that it was given to.
"""

from __future__ import annotations

import time
from typing import Any

import msgspec
from msgspec import Struct

from longshore.client.oauth.addresses import shown
from longshore.client.oauth.asking import Asker, Reply, refusal
from longshore.client.oauth.cupboard import Cupboard
from longshore.client.oauth.discovery import AuthServer
from longshore.client.oauth.identity import BASIC, METHODS, NONE, POST, Identity
from longshore.client.oauth.scopes import words
from longshore.errors import AuthorizationError

MOST_REGISTRATIONS = 32
"""With one issuer. Beyond, the oldest is forgotten."""


class Application(Struct, frozen=True):
    """What we say of ourselves."""

    name: str
    kind: str
    """`native` for what runs on a person's machine, `web` for what runs on a server."""
    method: str | None = None
    """How the caller insists on proving who we are."""


class Registered(Struct, frozen=True, omit_defaults=True):
    """A registration, as it is stored: what was given, and what it was made for. Its text shows no secret."""

    client_id: str
    redirect: str
    application: Application
    secret: str | None = None
    method: str | None = None
    scopes: tuple[str, ...] = ()
    expires: float = 0
    doubted: bool = False
    """A login by it came to nothing. It may be used where it is known to work, and for no other login."""

    def __repr__(self) -> str:
        return f"Registered({self.client_id!r})"

    @property
    def identity(self) -> Identity:
        return Identity(self.client_id, self.secret, method=self.method)

    def suits(self, application: Application, scopes: tuple[str, ...]) -> bool:
        """Whether it serves for a login. Some hold a client to the scopes that it registered with."""
        return not self.doubted and self.application == application and set(scopes) <= set(self.scopes)


class _Kept(Struct, frozen=True):
    issuer: str
    registrations: list[Registered]


async def recall(cupboard: Cupboard, issuer: str) -> list[Registered]:
    """The registrations with an issuer that still hold, the latest first."""
    record = await cupboard.read(_key(issuer))
    try:
        kept = msgspec.convert(record, _Kept)
    except msgspec.ValidationError:  # what can't be read is as good as not there
        return []
    found = kept.registrations if kept.issuer == issuer else []
    return [each for each in found if each.client_id and each.redirect and not 0 < each.expires <= time.time()]


async def doubt(cupboard: Cupboard, issuer: str, client_id: str) -> None:
    """A login by this registration came to nothing, maybe because the issuer does not know it any more."""

    def doubted(each: Registered) -> Registered:
        return msgspec.structs.replace(each, doubted=True) if each.client_id == client_id else each

    async with cupboard.alone():
        await _write(cupboard, issuer, [doubted(each) for each in await recall(cupboard, issuer)])


async def forget(cupboard: Cupboard, issuer: str, client_id: str) -> None:
    """The issuer does not know this client any more."""
    async with cupboard.alone():
        known = await recall(cupboard, issuer)
        await _write(cupboard, issuer, [each for each in known if each.client_id != client_id])


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
        raise _refused(server, reply)
    client_id = reply.text("client_id")
    if not client_id or not client_id.isprintable():
        raise AuthorizationError(f"registration: {shown(server.issuer)} gave no client_id")
    made = Registered(
        client_id,
        redirect,
        application,
        secret=reply.text("client_secret") or None,
        method=_usable(reply.text("token_endpoint_auth_method"), reply),
        scopes=(*scopes, *words(reply.text("scope"))),
        expires=_expires(reply),
    )
    async with cupboard.alone():
        known = [each for each in await recall(cupboard, server.issuer) if each.client_id != client_id]
        await _write(cupboard, server.issuer, [made, *known])
    return made.identity


async def _write(cupboard: Cupboard, issuer: str, registrations: list[Registered]) -> None:
    kept = [msgspec.to_builtins(each) for each in registrations[:MOST_REGISTRATIONS]]
    await cupboard.write(_key(issuer), {"issuer": issuer, "registrations": kept} if kept else None)


def wanted_method(server: AuthServer) -> str:
    """What we ask to prove ourselves by: nothing, for a program on a person's machine can't keep a secret."""
    taken = server.auth_methods or (NONE,)
    return next((method for method in (NONE, BASIC, POST) if method in taken), NONE)


def _usable(method: str, reply: Reply) -> str | None:
    """The method that was agreed on, if we have what it takes; else it is chosen when it is needed."""
    if method not in METHODS or (method in (BASIC, POST) and not reply.text("client_secret")):
        return None
    return method


def _expires(reply: Reply) -> float:
    """When the secret ends, 0 for never."""
    said: Any = (reply.document or {}).get("client_secret_expires_at")
    return float(said) if isinstance(said, (int, float)) and 0 < said < 1e12 else 0


def _refused(server: AuthServer, reply: Reply) -> AuthorizationError:
    if server.assumed:
        what = "the server wants a token, but says nowhere how to get one by OAuth"
        return AuthorizationError(what, fix="if you have one, give it by {}", options=("auth",))
    what = f"registration: {shown(server.issuer)} refused: {refusal(reply)}"
    fix = "register with it by hand and give client_id= (and client_secret=, if it gave one)"
    return AuthorizationError(what, fix=fix)


def _key(issuer: str) -> str:
    return f"client {issuer}"
