"""The authorization code flow with PKCE: the URL that the browser opens, and the checks of where it comes back."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from hashlib import sha256
from hmac import compare_digest
from secrets import token_urlsafe
from urllib.parse import parse_qsl, urlencode, urlsplit

from msgspec import Struct

from longshore.client.auth.discovery import AuthServer
from longshore.client.auth.oauth_http import one_line
from longshore.client.auth.scopes import OFFLINE
from longshore.client.auth.token_endpoint import GrantRefused, Purpose
from longshore.client.auth.url_policy import shown
from longshore.errors import AuthorizationError

STEP = "authorization"
MOST_FIELDS = 64
"""In the query that a browser comes back with. Five of them are read, and some servers add their own."""
_ONCE = ("code", "state", "iss", "error", "error_description")


class Attempt(Struct, frozen=True):
    """One login: the values that the answer is checked against."""

    server: AuthServer
    client_id: str
    redirect: str
    state: str
    verifier: str

    def __repr__(self) -> str:
        return f"Attempt({self.server.issuer!r})"


def begin_login(server: AuthServer, client_id: str, redirect: str) -> Attempt:
    """A new attempt at a server that `check_server` accepts."""
    return Attempt(server, client_id, redirect, token_urlsafe(32), token_urlsafe(64))


def check_server(server: AuthServer) -> None:
    """Check that a login there is possible, and safe. Raises AuthorizationError."""
    if not server.authorization_endpoint:
        fix = "use a grant without a login, such as ClientCredentials"
        raise AuthorizationError(f"{STEP}: {shown(server.issuer)} has no authorization_endpoint; {fix}")
    if "S256" not in server.challenge_methods:
        what = f"{STEP}: {shown(server.issuer)} does not say that it supports PKCE with S256"
        raise AuthorizationError(f"{what} (code_challenge_methods_supported), so a code could be stolen; not used")


def authorization_url(attempt: Attempt, purpose: Purpose) -> str:
    """The URL that the browser opens."""
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
    """The code in the URL that the browser came back to, if it belongs to this attempt. Raises AuthorizationError.

    No part of an answer is used or shown before its state and its issuer are checked.
    """
    fields = _fields(url)
    if not compare_digest(fields.get("state", "").encode(), attempt.state.encode()):
        raise AuthorizationError(f"{STEP}: the answer does not belong to this login (another state); log in again")
    _check_issuer(attempt.server, fields.get("iss"))
    if "error" in fields:
        said = one_line(f"{fields['error']}: {fields.get('error_description', '')}".rstrip(": "))
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
    """RFC 9207: compared as texts, without normalization. It must be there if the metadata promise it."""
    if iss is None:
        if server.sends_iss:
            what = f"{shown(server.issuer)} promises to name itself in its answers (iss), and this one does not"
            raise AuthorizationError(f"{STEP}: {what}; it was not used")
    elif iss != server.issuer:
        what = f"the answer names another issuer than the one that was asked, {shown(server.issuer)}"
        raise AuthorizationError(f"{STEP}: {what}; it was not used: it may be an attempt to steal the code")
