"""The candidate most similar to a mistyped name, for "did you mean …?"."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

NAME_CHARS = 100
"""Longer names are not typing errors, and the comparison takes quadratic time."""
CANDIDATES = 500
"""Names that one name is compared with: some milliseconds."""


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """Return the most similar candidate, ignoring case; None if none is similar."""
    if len(name) > NAME_CHARS:
        return None
    from difflib import get_close_matches  # slow to import, and needed only after an error

    by_folded = {c.casefold(): c for c in islice(candidates, CANDIDATES)}
    close = get_close_matches(name.casefold(), by_folded, n=1, cutoff=0.6)
    return by_folded[close[0]] if close else None


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """`; did you mean x?` for the end of a message, or nothing."""
    near = nearest(name, candidates)
    return f"; did you mean {near}?" if near else ""
