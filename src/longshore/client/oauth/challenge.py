"""The WWW-Authenticate header: which scheme, and what the server says of what it wants."""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct

MOST_CHARS = 16 << 10
"""Of one header; what is beyond is not read. Real ones have a few hundred."""
_SCHEME = re.compile(r"[ \t,]*([!#$%&'*+.^_`|~0-9A-Za-z-]+)(?=[ \t]|,|$)[ \t]*")
_FIELD = re.compile(
    r"""[ \t,]*([!#$%&'*+.^_`|~0-9A-Za-z-]+)[ \t]*=[ \t]*(?:"((?:[^"\\]|\\.)*)"|([!#$%&'*+.^_`|~0-9A-Za-z:/?=&@;-]+))"""
)
_TOKEN68 = re.compile(r"[A-Za-z0-9._~+/-]+=*(?=[ \t]*(?:,|$))")
_ESCAPE = re.compile(r"\\(.)")


class Challenge(Struct, frozen=True):
    """What one scheme asks for. The names of fields are in lower case; the first of two of the same name counts."""

    scheme: str
    fields: dict[str, str]


class Demand(Struct, frozen=True):
    """What a refusal asks of us, over all its challenges that we could meet."""

    error: str = ""
    scope: str | None = None
    metadata: str | None = None
    dpop: bool = False
    """Only a token that is bound to a key will do."""


def description(headers: Iterable[tuple[str, str]]) -> str:
    """Why the server refuses, in its own words; empty where it does not say."""
    found = parse(value for name, value in headers if name == "www-authenticate")
    return next((each.fields["error_description"] for each in found if each.fields.get("error_description")), "")


def parse(values: Iterable[str]) -> list[Challenge]:
    """The challenges of all WWW-Authenticate headers of an answer. What can't be read ends the one it is in."""
    found: list[Challenge] = []
    for value in values:
        text, at = value[:MOST_CHARS], 0
        while scheme := _SCHEME.match(text, at):
            fields: dict[str, str] = {}
            found.append(Challenge(scheme[1].lower(), fields))
            at = _read_fields(text, scheme.end(), fields)
    return found


def _read_fields(text: str, at: int, fields: dict[str, str]) -> int:
    alone = _TOKEN68.match(text, at)
    if alone and not _FIELD.match(text, at):
        return alone.end()
    while field := _FIELD.match(text, at):
        value = field[3] if field[2] is None else _ESCAPE.sub(r"\1", field[2])
        fields.setdefault(field[1].lower(), value)
        at = field.end()
    return at


def read(headers: Iterable[tuple[str, str]]) -> Demand:
    """What the headers of a 401 or 403 ask for."""
    found = parse(value for name, value in headers if name == "www-authenticate")
    ours = [each for each in found if each.scheme in ("bearer", "dpop")]

    def first(name: str) -> str | None:
        return next((each.fields[name] for each in ours if name in each.fields), None)

    schemes = {each.scheme for each in ours}
    return Demand(first("error") or "", first("scope"), first("resource_metadata"), dpop=schemes == {"dpop"})
