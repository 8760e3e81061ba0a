"""The one credential of a request: a bearer token, a key header or a cookie. Nothing else is looked at, no URL ever."""

from __future__ import annotations

import re
from typing import TypeAlias, final

from longshore.errors import ConfigError

Headers: TypeAlias = dict[bytes, bytes]
"""Lower-case names, as ASGI gives them; duplicates were refused before."""

MOST_BYTES = 8192
"""A token. Access tokens with many claims have 2 or 3 KiB."""

TOKEN = re.compile(rb"[A-Za-z0-9._~+/-]+=*")
"""RFC 6750's b68token: what fits a header and a cookie without quoting."""

_BEARER = re.compile(rb"[Bb][Ee][Aa][Rr][Ee][Rr] +([A-Za-z0-9._~+/-]+=*)[ \t]*")
_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}")
_TAKEN = ("authorization", "cookie", "host", "origin", "content-type", "content-length", "mcp-session-id")


class Malformed(Exception):
    """What was sent is no credential. The text says why and holds nothing of it."""


class Strange(Malformed):
    """What was sent may be a credential, but of another kind than is asked for, such as Basic: so there is none."""


@final
class Reader:
    """Finds the credential in the places that are configured."""

    def __init__(self, key_header: str, cookie: str) -> None:
        if key_header and (not _NAME.fullmatch(key_header) or key_header.lower() in _TAKEN):
            raise ConfigError('auth.key_header: not a header that can hold a key; use "X-API-Key", or "" for none')
        if cookie and not _NAME.fullmatch(cookie):
            raise ConfigError('auth.cookie: not a name for a cookie; use letters, digits, - and _, or "" for none')
        self._key_header = key_header.lower().encode() or b":"  # which is the name of no header
        self._cookie = cookie.encode()

    def find(self, headers: Headers, same_origin: bool) -> bytes | None:
        """The token, or None. Raises Malformed.

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
            return _bearer(authorization)
        raise Malformed("more than one credential: send the Authorization header, the key header or the cookie")

    def _from_cookie(self, header: bytes) -> bytes | None:
        if not self._cookie:
            return None
        pairs = [pair.strip(b" \t").partition(b"=") for pair in header.split(b";")]
        found = [value for name, _, value in pairs if name == self._cookie]
        if len(found) > 1:
            # A neighbour on another path or subdomain can plant one; which is ours can't be told.
            raise Malformed("the cookie comes twice; clear it and sign in again")
        return found[0] if found else None


def _bearer(value: bytes) -> bytes:
    found = _BEARER.fullmatch(value)
    if found is not None and len(value) <= MOST_BYTES:
        return found[1]
    scheme, _, token = value.partition(b" ")
    if scheme.lower() != b"bearer":
        raise Strange("the Authorization header is not of the form: Bearer TOKEN")
    return _checked(token.strip(b" \t"))


def _checked(token: bytes) -> bytes:
    if len(token) > MOST_BYTES:
        raise Malformed(f"the token is longer than {MOST_BYTES} bytes")
    if not TOKEN.fullmatch(token):
        raise Malformed("the token holds characters that no token has" if token else "the token is empty")
    return token
