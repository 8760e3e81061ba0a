"""Which scopes to request: those that are needed, and those that were requested before."""

from __future__ import annotations

import re
from collections.abc import Iterable

OFFLINE = "offline_access"
"""Requests a refresh token, at authorization servers that list it."""
MOST_CHARS = 256
"""Of one scope. The longest in use are URLs of some 100."""
MOST = 100
"""In one request. They are part of the URL that a browser opens, and a person reads them."""
_SCOPE = re.compile(rf"[\x21\x23-\x5b\x5d-\x7e]{{1,{MOST_CHARS}}}")


def split_scopes(text: str | None) -> tuple[str, ...]:
    """The valid scopes in a text, each once, in order."""
    return valid_scopes((text or "").split(" "))


def valid_scopes(scopes: Iterable[object]) -> tuple[str, ...]:
    """The valid scopes among these, each once, in order."""
    good = (each for each in scopes if isinstance(each, str) and _SCOPE.fullmatch(each))
    return tuple(dict.fromkeys(good))[:MOST]


def choose_scopes(
    challenged: tuple[str, ...],
    configured: tuple[str, ...],
    supported: tuple[str, ...],
    before: tuple[str, ...],
    listed: tuple[str, ...] | None,
    *,
    refreshable: bool,
) -> tuple[str, ...]:
    """The scopes of an authorization.

    They come from the challenge and the caller, else from the server's metadata. `before` was requested already:
    without it, other requests would fail. `listed` are the scopes of the authorization server: `offline_access` is
    requested if it is one of them and a refresh token can be used.
    """
    wanted = dict.fromkeys((*before, *configured, *challenged) if challenged or configured else (*before, *supported))
    explicit = OFFLINE in configured and listed is None
    wanted.pop(OFFLINE, None)
    if explicit or (wanted and refreshable and OFFLINE in (listed or ())):
        wanted[OFFLINE] = None
    return tuple(wanted)
