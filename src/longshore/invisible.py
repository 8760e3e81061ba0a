"""Invisible characters, which are removed from texts of others before people or terminals get them.

Each constant is the inside of a character class of a regular expression.
"""

from __future__ import annotations

from typing import Final

CONTROLS: Final = "\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f-\\x9f"
"""Terminal control characters. Tab and the two line ends are text."""
MARKS: Final = "\\u061c\\u200b\\u200e\\u200f\\u2028-\\u202e\\u2060-\\u2064\\u2066-\\u206f\\ufeff\\ufff9-\\ufffb"
"""Marks that reverse the reading order, break lines, have no width, or annotate text.

Marks with a visible effect are not included: joiners (U+200C, U+200D) and the emoji selector (U+FE0F).
"""
TAGS: Final = "\\ufe00-\\ufe0e\\U000e0000-\\U000e0fff"
"""Tags and variation selectors, which only models see and which can encode any text."""
