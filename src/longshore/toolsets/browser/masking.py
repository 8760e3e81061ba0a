"""Values that calls have entered in password fields, and texts without them."""

from __future__ import annotations

import html
import re
from typing import Final, final
from urllib.parse import quote, quote_plus, unquote_plus

from msgspec.json import encode

MOST_SECRETS: Final = 100
"""Values that are masked. A browser has few of them; the oldest are forgotten."""
LEAST_MASKED: Final = 6
"""Characters of a value that is masked in every text. Dots for a shorter one would be in ordinary words and numbers."""
DOTS: Final = "••••"
_PARAMETER: Final = re.compile(r"([?&#][^=&#\s]*=)([^&#\s]+)")
_UNESCAPED: Final = "!*'()"
"""Characters that encodeURIComponent leaves unchanged, and Python does not."""


@final
class Secrets:
    """The values that were entered in the password fields of a browser."""

    def __init__(self) -> None:
        self._values: dict[str, None] = {}
        self._pattern: re.Pattern[str] | None = None

    def add(self, value: str) -> None:
        self._values[value] = None
        if len(self._values) > MOST_SECRETS:
            del self._values[next(iter(self._values))]
        forms = {form for each in self._values for form in _forms(each) if len(form) >= LEAST_MASKED}
        longest_first = sorted(forms, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if forms else None

    def mask(self, text: str) -> str:
        """A text with dots for the values in it that are not short."""
        return text if self._pattern is None else self._pattern.sub(DOTS, text)

    def mask_parameters(self, text: str) -> str:
        """An address, or a text with some, with dots for the parameters with such a value."""
        if not self._values:
            return text

        def masked(found: re.Match[str]) -> str:
            return f"{found[1]}{DOTS}" if unquote_plus(found[2]) in self._values else found[0]

        return _PARAMETER.sub(masked, text)


def _forms(value: str) -> set[str]:
    """The spellings of a value in texts: as it is, on one line, and as in a snapshot, JSON, HTML and addresses."""
    return {
        value,
        " ".join(value.split()),
        value.replace('"', "'"),
        encode(value).decode()[1:-1],
        html.escape(value, quote=False),
        html.escape(value),
        quote_plus(value),
        quote(value, safe=_UNESCAPED),
    }
