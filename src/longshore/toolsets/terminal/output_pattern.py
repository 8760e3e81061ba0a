"""A regular expression that is matched against output as it arrives, in linear time for every expression."""

from __future__ import annotations

import re
from typing import Final, final

from longshore.errors import ToolError
from longshore.schema.patterns import translate
from longshore.schema.validate import compile_linear
from longshore.toolsets.terminal.escapes import show_bytes

MOST_CHARACTERS: Final = 1_000
"""Of a pattern. Most are a word or two."""
OVERLAP_BYTES: Final = 4096
"""Of earlier output, so that a match may begin there."""
_FLAGS: Final = re.compile(r"\(\?([imsu]+)\)")


@final
class OutputPattern:
    """Reports when output matches. `^` and `$` stand for the beginning and end of a line."""

    def __init__(self, pattern: str) -> None:
        """Raises ToolError for a pattern that can't be matched."""
        if not 0 < len(pattern) <= MOST_CHARACTERS:
            raise ToolError(f"a pattern has 1 to {MOST_CHARACTERS:,} characters, this one {len(pattern):,}")
        found = _FLAGS.match(pattern)
        written = translate(pattern[found.end() :] if found else pattern)
        flags = "".join({"m", *(found[1] if found else "")})
        matches = None if written is None else compile_linear(f"(?{flags}){written}")
        if matches is None:
            raise ToolError(
                f"the pattern {pattern!r} can't be matched: write a regular expression without look-around and back "
                'references, and escape plain signs such as ( [ * ? by "\\"'
            )
        self._matches = matches
        self._before = b""

    def feed(self, data: bytes) -> bool:
        """Whether the output matches, including this part."""
        data = self._before + data
        self._before = data[-OVERLAP_BYTES:]
        return self._matches(show_bytes(data))
