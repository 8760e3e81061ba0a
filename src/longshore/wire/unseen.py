"""Characters that a text can hold and nobody sees: what others wrote is rid of them before people or terminals get it.

Each is the inside of a character class.
"""

from __future__ import annotations

from typing import Final

CONTROLS: Final = "\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f-\\x9f"
"""Commands for a terminal. Tab and the two line ends are text."""
MARKS: Final = "\\u061c\\u200b\\u200e\\u200f\\u2028-\\u202e\\u2060-\\u2064\\u2066-\\u206f\\ufeff\\ufff9-\\ufffb"
"""Marks that turn the reading order round, break lines, have no width, or say what is beside the text.

Those that join letters or choose a picture (U+200C, U+200D, U+FE0F) are seen by what they do.
"""
TAGS: Final = "\\U000e0000-\\U000e0fff"
"""Letters that only models see: tags, and selectors of variants, which can stand for any text."""
