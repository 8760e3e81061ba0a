"""Patterns of typed tools, matched in linear time.

msgspec matches with `re`, which backtracks: 41 bytes keep `^(a+)+$` busy for ever, and nothing else runs meanwhile. So
patterns are taken out of what msgspec decodes with, and matched by the engine that checks authors' own schemas. They
mean what they mean in the schema that clients see, as ECMAScript reads it: `\\d` is 0-9, `\\w` is ASCII, `$` is the
very end.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from longshore.schema.ecmascript import translate
from longshore.schema.parameter import Patterns, SignatureProblem
from longshore.schema.validate import compile_linear, interruptible

Matches = Callable[[str], bool]
"""Whether a text has a match anywhere."""

_FLAGS: Final = re.compile(r"\(\?[imsu]+\)")
"""Flags for a whole pattern, which the engine knows and ECMAScript does not."""
_REWRITE: Final = "write it without look-around, back references and other syntax that only `re` knows"
_WAIVE: Final = 'waive={"E13": "why it is harmless"}'


def read_pattern(pattern: str, patterns: Patterns) -> Matches:
    """How the pattern is matched, or a SignatureProblem where that could take for ever and nobody has allowed it."""
    if (matches := _linear(pattern)) is not None:
        return matches
    if patterns != "any":
        raise unbounded(f"the pattern {pattern!r} can't be matched in linear time", _REWRITE, patterns)
    search = re.compile(pattern).search
    return interruptible(lambda text: search(text) is not None)


def unbounded(what: str, fix: str, patterns: Patterns) -> SignatureProblem:
    """Says that a check might never end."""
    either = f"{fix}, or {_WAIVE}" if patterns == "waivable" else fix
    return SignatureProblem(f"{what}, so one value could keep the server busy for ever", either)


def _linear(pattern: str) -> Matches | None:
    found = _FLAGS.match(pattern)
    flags = found[0] if found else ""
    written = translate(pattern[len(flags) :])
    return None if written is None else compile_linear(flags + written)
