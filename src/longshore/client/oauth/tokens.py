"""Tokens, and asking a token endpoint for them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from longshore.client.oauth.asking import Asker, Reply, refusal
from longshore.client.oauth.authorizer import TOKEN, Headers
from longshore.client.oauth.discovery import AuthServer
from longshore.client.oauth.dpop import USE_NONCE, Prover
from longshore.client.oauth.identity import Identity, prove
from longshore.client.oauth.scopes import words
from longshore.errors import AuthorizationError

LEEWAY_SECONDS = 20.0
"""A token is renewed this long before it expires: requests take time, and clocks differ. A short one at its half."""
_MOST_CHARS = 64 << 10
"""Of one token. It goes into a header of each request, where servers take 8 to 64 KiB."""
_NONCE_TRIES = 2
"""Times that a proof is made again: with the nonce that was asked for, and with another if that one ran out."""
_SECRETS = ("code", "code_verifier", "refresh_token", "assertion", "client_secret", "client_assertion")


class Tokens(Struct, frozen=True, omit_defaults=True):
    """What a token endpoint gave, and for what. Its text shows no token."""

    access: str
    kind: str
    """`Bearer` or `DPoP`: the scheme of the header that carries it."""
    issuer: str
    resource: str | None = None
    client_id: str = ""
    """Whom the refresh token belongs to."""
    asked: tuple[str, ...] = ()
    """The scopes that were asked for, or given without having been."""
    expires: float | None = None
    renew: float | None = None
    """From when on another is wanted."""
    refresh: str | None = None
    key: dict[str, str] | None = None
    """The private key that they are bound to, as a JWK."""

    def __repr__(self) -> str:
        return f"Tokens(issuer={self.issuer!r}, resource={self.resource!r}, asked={self.asked!r})"

    def is_stale(self, now: float) -> bool:
        return self.renew is not None and now >= self.renew

    def is_over(self, now: float) -> bool:
        return self.expires is not None and now >= self.expires

    def record(self) -> dict[str, Any]:
        """As it is stored."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found


def from_record(record: Mapping[str, Any] | None) -> Tokens | None:
    """What was stored; None if that can't be read any more."""
    try:
        found = msgspec.convert(record, Tokens)
    except msgspec.ValidationError:
        return None
    good = TOKEN.fullmatch(found.access) and found.kind in ("Bearer", "DPoP") and (found.key or found.kind == "Bearer")
    return found if good else None


class GrantRefused(AuthorizationError):
    """An authorization server said no; `error` is its code, as invalid_grant. `temporary`: it may say yes later."""

    def __init__(self, what: str, error: str, status: int) -> None:
        super().__init__(what)
        self.error = error
        self.temporary = status >= 500 or status == 429 or error in ("server_error", "temporarily_unavailable")


class Purpose(Struct, frozen=True):
    """What tokens are asked for."""

    server: AuthServer
    resource: str | None
    scopes: tuple[str, ...]
    prover: Prover | None = None
    insist: bool = False
    """A token that is not bound to the key will not do."""


async def ask(asker: Asker, purpose: Purpose, identity: Identity | None, form: Mapping[str, str], step: str) -> Tokens:
    """Ask the token endpoint with one grant. Raises GrantRefused where it says no, else AuthorizationError."""
    fields = {**form, "resource": purpose.resource} if purpose.resource else dict(form)
    reply, secrets = await _post(asker, purpose, identity, fields, step)
    if reply.status != 200:
        what = f"{step}: the token endpoint refused: {refusal(reply, secrets)}"
        raise GrantRefused(what, reply.text("error"), reply.status)
    return _read(reply, purpose, identity, step)


async def refresh(asker: Asker, purpose: Purpose, identity: Identity, old: Tokens) -> Tokens:
    """New tokens for old ones. Where no other refresh token comes, the old one stays good."""
    form = {"grant_type": "refresh_token", "refresh_token": old.refresh or ""}
    found = await ask(asker, purpose, identity, form, "renewing the token")
    asked = tuple(dict.fromkeys((*old.asked, *found.asked)))
    return replace(found, refresh=found.refresh or old.refresh, asked=asked)


async def _post(
    asker: Asker, purpose: Purpose, identity: Identity | None, fields: dict[str, str], step: str
) -> tuple[Reply, list[str | None]]:
    """The answer, and the secrets that were sent: a refusal may quote what it refuses."""
    url, prover = purpose.server.token_endpoint, purpose.prover
    tries = 0
    while True:
        headers, proof = prove(identity, purpose.server) if identity else ([], {})
        form = {**fields, **proof}
        reply = await asker.post_form(url, form, [*headers, *_dpop(prover, url)], step + ": the token endpoint")
        fresh = prover is not None and prover.hear(url, reply.headers)
        tries += 1
        if not (fresh and reply.text("error") == USE_NONCE and tries <= _NONCE_TRIES):
            basic = [value.partition(" ")[2] for _, value in headers]
            return reply, [*(form.get(name) for name in _SECRETS), identity.secret if identity else None, *basic]


def _dpop(prover: Prover | None, url: str) -> Headers:
    return [("DPoP", prover.prove("POST", url))] if prover else []


def _read(reply: Reply, purpose: Purpose, identity: Identity | None, step: str) -> Tokens:
    access, kind = _secret(reply, "access_token"), reply.text("token_type").lower()
    if access is None:
        raise AuthorizationError(f"{step}: the token endpoint's answer holds no access token that can be used")
    if kind not in ("bearer", "dpop") or (kind == "dpop" and purpose.prover is None):
        raise AuthorizationError(f"{step}: the token endpoint gave a token of a type that was not asked for")
    if kind == "bearer" and purpose.insist:
        what = f"{step}: the token endpoint gave a token that is not bound to our key"
        raise AuthorizationError(f"{what}; allow that by dpop=False, if the server takes such tokens")
    granted, seconds, now = words(reply.text("scope")), _lifetime(reply), time.time()
    return Tokens(
        access=access,
        kind="DPoP" if kind == "dpop" else "Bearer",
        issuer=purpose.server.issuer,
        resource=purpose.resource,
        client_id=identity.client_id if identity else "",
        asked=tuple(dict.fromkeys((*purpose.scopes, *granted))),
        expires=None if seconds is None else now + seconds,
        renew=None if seconds is None else now + max(seconds - LEEWAY_SECONDS, seconds / 2),
        refresh=_secret(reply, "refresh_token"),
        key=purpose.prover.key if purpose.prover else None,
    )


def _secret(reply: Reply, name: str) -> str | None:
    value = reply.text(name)
    return value if len(value) <= _MOST_CHARS and TOKEN.fullmatch(value) else None


def _lifetime(reply: Reply) -> float | None:
    """For how many seconds the token is good. Some say them as a text; none at all is no lifetime."""
    said: Any = (reply.document or {}).get("expires_in")
    try:
        seconds = float(said) if isinstance(said, (int, float, str)) and not isinstance(said, bool) else None
    except (ValueError, OverflowError):
        return None
    return seconds if seconds is not None and 0 < seconds < 1e10 else None
