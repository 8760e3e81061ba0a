"""What a refused request is told: the status, the WWW-Authenticate header (RFC 6750, RFC 9728) and a text.

No challenge holds anything that the client sent, nor the name of a caller.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import final

from msgspec import Struct

_AS_IS = frozenset(chr(code) for code in range(0x20, 0x7F)) - {'"', "\\"}
"""RFC 6750 allows these in its values. Whatever else there is could end the value, or the header."""

OFFLINE = "offline_access"
"""Clients ask for it by themselves; a server neither needs nor names it."""


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
        self.missing = Refusal(401, _bearer(self._where), "this server asks for a credential and there is none")
        self.uncheckable = Refusal(503, "", "the credential can't be checked now; try again in a moment")

    def malformed(self, why: str) -> Refusal:
        """What was sent is no credential. RFC 6750 wants 400: the same request with another token would fail too."""
        return Refusal(400, _bearer([("error", "invalid_request"), ("error_description", why), *self._where]), why)

    def strange(self, why: str) -> Refusal:
        """What was sent is a credential of another kind: without an error code, as if there were none."""
        return Refusal(401, self.missing.challenge, why)

    def invalid(self, why: str) -> Refusal:
        """The token is no good."""
        return Refusal(401, _bearer([("error", "invalid_token"), ("error_description", why), *self._where]), why)

    def insufficient(self, needed: frozenset[str], lacking: frozenset[str]) -> Refusal:
        """The token is good, but not for this. All scopes go into one challenge: asking twice would annoy a person."""
        why = f"this needs scopes that the credential does not have: {_listed(lacking)}"
        error = [("error", "insufficient_scope"), *_scope(needed), *self._metadata]
        return Refusal(403, _bearer([*error, ("error_description", why)]), why)


def _scope(scopes: Iterable[str]) -> list[tuple[str, str]]:
    listed = _listed(scopes)
    return [("scope", listed)] if listed else []


def _listed(scopes: Iterable[str]) -> str:
    return " ".join(sorted(scope for scope in scopes if scope != OFFLINE))


def _bearer(fields: list[tuple[str, str]]) -> str:
    fields = fields or [("realm", "mcp")]  # RFC 6750 wants at least one
    return "Bearer " + ", ".join(f'{name}="{_quoted(value)}"' for name, value in fields)


def _quoted(value: str) -> str:
    return "".join(character if character in _AS_IS else "?" for character in value)
