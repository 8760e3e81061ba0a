"""The credential of a request, and the refusal of one.

A credential is a bearer token, a key header or a cookie, never part of a URL. A refusal has the status, the
WWW-Authenticate header (RFC 6750, RFC 9728) and a text; it holds nothing that the client sent, nor a caller's name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TypeAlias, final

from msgspec import Struct

from longshore.errors import ConfigError

Headers: TypeAlias = dict[bytes, bytes]
"""Lower-case names, as ASGI gives them; the HTTP transport has refused duplicates."""

MOST_BYTES = 8192
"""A token. Access tokens with many claims have 2 or 3 KiB."""

TOKEN = re.compile(rb"[A-Za-z0-9._~+/-]+=*")
"""RFC 6750's b68token: fits a header and a cookie without quoting."""

OFFLINE = "offline_access"
"""A scope that clients request by themselves; a server neither needs nor names it."""

_BEARER = re.compile(rb"[Bb][Ee][Aa][Rr][Ee][Rr] +([A-Za-z0-9._~+/-]+=*)[ \t]*")
_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}")
_RESERVED = ("authorization", "cookie", "host", "origin", "content-type", "content-length", "mcp-session-id")
_UNQUOTED = frozenset(chr(code) for code in range(0x20, 0x7F)) - {'"', "\\"}
"""What RFC 6750 allows in its values. Other characters could end the value, or the header."""


class MalformedCredential(Exception):
    """The request holds no well-formed credential. The text says why and holds nothing of it."""


class OtherScheme(MalformedCredential):
    """The request holds a credential of another scheme, such as Basic: it counts as none."""


@final
class CredentialReader:
    """Finds the credential in the configured places."""

    def __init__(self, key_header: str, cookie: str) -> None:
        if key_header and (not _NAME.fullmatch(key_header) or key_header.lower() in _RESERVED):
            raise ConfigError('auth.key_header: not a header that can hold a key; use "X-API-Key", or "" for none')
        if cookie and not _NAME.fullmatch(cookie):
            raise ConfigError('auth.cookie: not a name for a cookie; use letters, digits, - and _, or "" for none')
        self._key_header = key_header.lower().encode() or b":"  # which is the name of no header
        self._cookie = cookie.encode()

    def find(self, headers: Headers, same_origin: bool) -> bytes | None:
        """The token, or None. Raises MalformedCredential.

        A cookie counts only if the server's own page sent it: any other page could make a browser send it along.
        """
        authorization = headers.get(b"authorization")
        key = headers.get(self._key_header)
        cookie = self._from_cookie(headers[b"cookie"]) if same_origin and b"cookie" in headers else None
        if authorization is None:
            if key is None or cookie is None:
                token = cookie if key is None else key
                return None if token is None else _checked(token.strip(b" \t"))
        elif key is None and cookie is None:
            return _bearer_token(authorization)
        raise MalformedCredential(
            "more than one credential: send the Authorization header, the key header or the cookie"
        )

    def _from_cookie(self, header: bytes) -> bytes | None:
        if not self._cookie:
            return None
        pairs = [pair.strip(b" \t").partition(b"=") for pair in header.split(b";")]
        found = [value for name, _, value in pairs if name == self._cookie]
        if len(found) > 1:
            # A site on another path or subdomain can set one; which is ours is unknown.
            raise MalformedCredential("the cookie comes twice; clear it and sign in again")
        return found[0] if found else None


def _bearer_token(value: bytes) -> bytes:
    found = _BEARER.fullmatch(value)
    if found is not None and len(value) <= MOST_BYTES:
        return found[1]
    scheme, _, token = value.partition(b" ")
    if scheme.lower() != b"bearer":
        raise OtherScheme("the Authorization header is not of the form: Bearer TOKEN")
    return _checked(token.strip(b" \t"))


def _checked(token: bytes) -> bytes:
    if len(token) > MOST_BYTES:
        raise MalformedCredential(f"the token is longer than {MOST_BYTES} bytes")
    if not TOKEN.fullmatch(token):
        raise MalformedCredential("the token holds characters that no token has" if token else "the token is empty")
    return token


class Refusal(Struct, frozen=True):
    """An answer in place of a Principal. `challenge` is the value of WWW-Authenticate, or empty for none."""

    status: int
    challenge: str
    text: str


@final
class Challenges:
    """The refusals of one server."""

    def __init__(self, metadata_url: str | None, scopes: frozenset[str]) -> None:
        self._metadata = [("resource_metadata", metadata_url)] if metadata_url else []
        self._where = [*self._metadata, *_scope(scopes)]
        self.missing = Refusal(401, _challenge(self._where), "this server asks for a credential and there is none")
        self.uncheckable = Refusal(503, "", "the credential can't be checked now; try again in a moment")

    def malformed(self, why: str) -> Refusal:
        """400 for a malformed credential, as RFC 6750 asks: the same request with another token would fail too."""
        return self._refuse(400, "invalid_request", why)

    def other_scheme(self, why: str) -> Refusal:
        """401 for a credential of another scheme: without an error code, as if there were none."""
        return Refusal(401, self.missing.challenge, why)

    def invalid(self, why: str) -> Refusal:
        """401 for a token that is not valid."""
        return self._refuse(401, "invalid_token", why)

    def insufficient(self, needed: frozenset[str], lacking: frozenset[str]) -> Refusal:
        """403 for a token that lacks scopes. All go into one challenge, so that the user is asked once."""
        why = f"this needs scopes that the credential does not have: {_joined(lacking)}"
        error = [("error", "insufficient_scope"), *_scope(needed), *self._metadata]
        return Refusal(403, _challenge([*error, ("error_description", why)]), why)

    def _refuse(self, status: int, code: str, why: str) -> Refusal:
        return Refusal(status, _challenge([("error", code), ("error_description", why), *self._where]), why)


def _scope(scopes: Iterable[str]) -> list[tuple[str, str]]:
    joined = _joined(scopes)
    return [("scope", joined)] if joined else []


def _joined(scopes: Iterable[str]) -> str:
    return " ".join(sorted(scope for scope in scopes if scope != OFFLINE))


def _challenge(fields: list[tuple[str, str]]) -> str:
    fields = fields or [("realm", "mcp")]  # RFC 6750 wants at least one
    return "Bearer " + ", ".join(f'{name}="{_quoted(value)}"' for name, value in fields)


def _quoted(value: str) -> str:
    return "".join(character if character in _UNQUOTED else "?" for character in value)
