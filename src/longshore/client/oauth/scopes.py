"""Which scopes to ask for: as few as will do, and never fewer than before."""

from __future__ import annotations

import re
from collections.abc import Iterable

OFFLINE = "offline_access"
"""Asks for a refresh token. Only authorization servers that list it know it."""
MOST_CHARS = 256
"""Of one scope. The longest in use are URLs of some 100."""
MOST = 100
"""At once. They all stand in the URL that a browser opens, and a person is to read them there."""
_SCOPE = re.compile(rf"[\x21\x23-\x5b\x5d-\x7e]{{1,{MOST_CHARS}}}")


def words(text: str | None) -> tuple[str, ...]:
    """The scopes in a text, each once, in their order. What is no scope is left out."""
    return clean((text or "").split(" "))


def clean(scopes: Iterable[object]) -> tuple[str, ...]:
    """What of these is a scope, each once, in order."""
    good = (each for each in scopes if isinstance(each, str) and _SCOPE.fullmatch(each))
    return tuple(dict.fromkeys(good))[:MOST]


def choose(
    challenged: tuple[str, ...],
    configured: tuple[str, ...],
    supported: tuple[str, ...],
    before: tuple[str, ...],
    listed: tuple[str, ...] | None,
    *,
    refreshable: bool,
) -> tuple[str, ...]:
    """The scopes of an authorization.

    The challenge says what is needed, else the caller, else the server's metadata; with none of them none is named.
    `before` is what was asked for already: giving that up would make the next request fail. `listed` is what the
    authorization server says it has, by which `offline_access` is asked for where a refresh token can be used.
    """
    wanted = dict.fromkeys((*before, *configured, *challenged) if challenged or configured else (*before, *supported))
    explicit = OFFLINE in configured and listed is None
    wanted.pop(OFFLINE, None)
    if explicit or (wanted and refreshable and OFFLINE in (listed or ())):
        wanted[OFFLINE] = None
    return tuple(wanted)
