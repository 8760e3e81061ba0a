"""Content-Type and Accept, read as far as a server of JSON and event streams needs them."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

MOST_KNOWN: Final = 256
"""Header values whose reading is remembered; clients send the same few again and again."""
LONGEST_KNOWN: Final = 256
"""Longer values are read each time: nobody's headers may fill our memory."""

_JSON = re.compile(rb"application/json[ \t]*(?:;[ \t]*charset=(?:utf-8|\"utf-8\"))?", re.IGNORECASE)
_USUAL = frozenset((b"application/json", b"application/json; charset=utf-8", b"application/json;charset=utf-8"))
_NO_WEIGHT = re.compile(r"0(?:\.0*)?")
_BOTH = (True, True)


def is_json(raw: bytes | None) -> bool:
    """Whether a body is sent as `application/json`, and in UTF-8 if it says so.

    Nothing else will do: a web page may send `text/plain` anywhere without asking, but not this.
    """
    return raw in _USUAL or (raw is not None and _JSON.fullmatch(raw.strip(b" \t")) is not None)


def accepts(raw: bytes | None) -> tuple[bool, bool]:
    """Whether an answer may be JSON, and whether it may be an event stream. Who does not say takes both."""
    if raw is None:
        return _BOTH
    return _known(raw) if len(raw) <= LONGEST_KNOWN else _read(raw)


def _read(raw: bytes) -> tuple[bool, bool]:
    ranges = [_range(part) for part in raw.decode("latin-1").lower().split(",") if part.strip(" \t")]
    if not ranges:
        return _BOTH
    return _takes(ranges, "application", "json"), _takes(ranges, "text", "event-stream")


_known = lru_cache(MOST_KNOWN)(_read)


def _range(part: str) -> tuple[str, bool]:
    """A media range, and whether it is wanted at all: `q=0` is how a client says no."""
    kind, *parameters = (piece.strip(" \t") for piece in part.split(";"))
    weights = [value for name, _, value in (piece.partition("=") for piece in parameters) if name.strip() == "q"]
    return kind, not any(_NO_WEIGHT.fullmatch(weight.strip()) for weight in weights)


def _takes(ranges: list[tuple[str, bool]], kind: str, subtype: str) -> bool:
    """The most exact range that names a type decides; where it is there twice, one yes is enough."""
    for name in (f"{kind}/{subtype}", f"{kind}/*", "*/*"):
        said = [wanted for found, wanted in ranges if found == name]
        if said:
            return any(said)
    return False
