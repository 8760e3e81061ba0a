"""Characters that a text can hold and nobody sees: what others wrote is rid of them before people or terminals get it.

Each is the inside of a character class.
"""

from __future__ import annotations

from typing import Final

CONTROLS: Final = "\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f-\\x9f"
"""Commands for a terminal. Tab and the two line ends are text."""
MARKS: Final = "\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069\\ufeff\\ufff9-\\ufffb"
"""Marks that turn the reading order round, break lines, or say what is beside the text."""
TAGS: Final = "\\U000e0000-\\U000e007f"
"""Letters that only models see."""
