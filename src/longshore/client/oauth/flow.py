"""The authorization code flow with PKCE: what is asked of the person's browser, and what may come back from it."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from hashlib import sha256
from hmac import compare_digest
from secrets import token_urlsafe
from urllib.parse import parse_qsl, urlencode, urlsplit

from msgspec import Struct

from longshore.client.oauth.addresses import shown
from longshore.client.oauth.asking import plain
from longshore.client.oauth.discovery import AuthServer
from longshore.client.oauth.scopes import OFFLINE
from longshore.client.oauth.tokens import GrantRefused, Purpose
from longshore.errors import AuthorizationError

STEP = "authorization"
MOST_FIELDS = 64
"""In the answer that a browser brings. There are five that count, and some add their own."""
_ONCE = ("code", "state", "iss", "error", "error_description")


class Attempt(Struct, frozen=True):
    """One login, as it stands before the browser is sent off: what its answer will be held to."""

    server: AuthServer
    client_id: str
    redirect: str
    state: str
    verifier: str

    def __repr__(self) -> str:
        return f"Attempt({self.server.issuer!r})"


def begin(server: AuthServer, client_id: str, redirect: str) -> Attempt:
    """A new attempt, at a server that was checked."""
    return Attempt(server, client_id, redirect, token_urlsafe(32), token_urlsafe(64))


def check(server: AuthServer) -> None:
    """See that a login there is possible, and safe. Raises AuthorizationError."""
    if not server.authorization_endpoint:
        fix = "use a grant without a login, such as ClientCredentials"
        raise AuthorizationError(f"{STEP}: {shown(server.issuer)} has no authorization_endpoint; {fix}")
    if "S256" not in server.challenge_methods:
        what = f"{STEP}: {shown(server.issuer)} does not say that it supports PKCE with S256"
        raise AuthorizationError(f"{what} (code_challenge_methods_supported), so a code could be stolen; not used")


def authorization_url(attempt: Attempt, purpose: Purpose) -> str:
    """Where to send the browser."""
    digest = sha256(attempt.verifier.encode()).digest()
    fields = {
        "response_type": "code",
        "client_id": attempt.client_id,
        "redirect_uri": attempt.redirect,
        "state": attempt.state,
        "code_challenge": urlsafe_b64encode(digest).rstrip(b"=").decode(),
        "code_challenge_method": "S256",
    }
    if purpose.resource:
        fields["resource"] = purpose.resource
    if purpose.scopes:
        fields["scope"] = " ".join(purpose.scopes)
    if OFFLINE in purpose.scopes:
        fields["prompt"] = "consent"  # OpenID Connect gives no refresh token otherwise
    endpoint = attempt.server.authorization_endpoint
    return f"{endpoint}{'&' if urlsplit(endpoint).query else '?'}{urlencode(fields)}"


def read_code(attempt: Attempt, url: str) -> str:
    """The code in the URL that the browser was sent back to, if that answers this attempt. Raises AuthorizationError.

    Nothing of an answer is acted on or shown before it is known to come from the issuer that was asked.
    """
    fields = _fields(url)
    if not compare_digest(fields.get("state", "").encode(), attempt.state.encode()):
        raise AuthorizationError(f"{STEP}: the answer does not belong to this login (another state); log in again")
    _check_issuer(attempt.server, fields.get("iss"))
    if "error" in fields:
        said = plain(f"{fields['error']}: {fields.get('error_description', '')}".rstrip(": "))
        raise GrantRefused(f"{STEP}: {shown(attempt.server.issuer)} refused: {said}", fields["error"], 400)
    code = fields.get("code", "")
    if not code:
        raise AuthorizationError(f"{STEP}: the answer holds no code; log in again")
    return code


def _fields(url: str) -> dict[str, str]:
    try:
        pairs = parse_qsl(urlsplit(url).query, keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except ValueError:
        raise AuthorizationError(f"{STEP}: the answer can't be read; log in again") from None
    names = [name for name, _ in pairs]
    if any(names.count(name) > 1 for name in _ONCE):
        raise AuthorizationError(f"{STEP}: the answer names something twice; it was not used")
    return dict(pairs)


def _check_issuer(server: AuthServer, iss: str | None) -> None:
    """RFC 9207: compared as texts, without making them alike first. What is promised must be there."""
    if iss is None:
        if server.sends_iss:
            what = f"{shown(server.issuer)} promises to name itself in its answers (iss), and this one does not"
            raise AuthorizationError(f"{STEP}: {what}; it was not used")
    elif iss != server.issuer:
        what = f"the answer names another issuer than the one that was asked, {shown(server.issuer)}"
        raise AuthorizationError(f"{STEP}: {what}; it was not used, for it may be a trick to steal the code")
