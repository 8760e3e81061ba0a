"""Paths as a model writes them, and names that are denied."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Callable, Sequence
from fnmatch import translate
from typing import Final, final

from longshore.sandbox.file_errors import FileError

MOST_PATH_BYTES: Final = 4095
"""Linux's PATH_MAX without the final NUL: what openat2 accepts. macOS has 1,023 and says so itself."""
MOST_PARTS: Final = 200
"""Components of a path. The walk holds one descriptor for each, and a process may have as few as 256."""
_SCHEME: Final = "file://"
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
PLAIN: Final = re.compile(rf"(?=.{{1,{2 * MOST_PARTS - 1}}}\Z)(?:/(?!\.\.?(?:/|\Z))[^/\x00-\x1f\x7f\ud800-\udfff]+)+")
"""An absolute path that `absolute_text` returns as it is: nothing in it is to be resolved or refused.

Its length alone shows that it has neither too many bytes nor too many parts.
"""


def absolute_text(given: str, first_root: str) -> str:
    """The absolute path that a text means: absolute, relative to the first root, `~/…` or a `file://` URI.

    Nothing is looked up and `..` stays. Raises FileError.
    """
    text = _from_uri(given) if given[: len(_SCHEME)].lower() == _SCHEME else given
    if text == "~" or text.startswith("~/"):
        text = os.path.expanduser("~") + text[1:]
    if not text:
        raise FileError('""', "bad_path", ": it is empty", 'give "." for the first folder that you may use')
    if _CONTROL.search(text):
        raise FileError(given, "bad_path", ": it has a control character")
    try:
        size = len(os.fsencode(text))
    except UnicodeEncodeError:
        raise FileError(given, "bad_path", ": it has half of a surrogate pair") from None
    if size > MOST_PATH_BYTES:
        raise FileError(given, "bad_path", f": {size:,} bytes are too long, at most {MOST_PATH_BYTES:,} are possible")
    if text.count("/") >= MOST_PARTS:
        raise FileError(given, "bad_path", f": it has more than {MOST_PARTS} parts")
    return "/" + os.path.join(first_root, text).lstrip("/")


def _from_uri(given: str) -> str:
    from urllib.parse import unquote

    host, slash, rest = given[len(_SCHEME) :].partition("/")
    if host.lower() not in ("", "localhost") or not slash:
        raise FileError(given, "bad_path", ": it names another machine or no path", "write file:///folder/file")
    return slash + unquote(rest, errors="surrogateescape")


@final
class DeniedNames:
    """Globs of files that may not be read, changed or listed: `.env`, `*.pem`, `.git/objects`.

    A glob matches a name, or several in a row if it has slashes, anywhere in a path, and with a folder everything in
    it. Upper and lower case are equal, as on macOS.
    """

    def __init__(self, globs: Sequence[str] = ()) -> None:
        split = [[part for part in _fold(glob).split("/") if part not in ("", "**")] for glob in globs]
        # One expression for all single names: a walk matches it with every file.
        self._name = re.compile("|".join(translate(parts[0]) for parts in split if len(parts) == 1) or "(?!)")
        self._rows = [[re.compile(translate(part)) for part in parts] for parts in split if len(parts) > 1]
        self._empty = not any(split)

    def __bool__(self) -> bool:
        return not self._empty

    def match(self, relative: str) -> bool:
        """Whether a real path, relative to its root, is denied."""
        if self._empty:
            return False
        names = _fold(relative).split("/")
        if any(map(self._name.match, names)):
            return True
        return bool(self._rows) and any(_occurs(row, names) for row in self._rows)

    def within(self, folder: str) -> Callable[[str], bool]:
        """Whether a path relative to a folder is denied; the folder is relative to its root."""
        if self._empty:
            return lambda _: False
        return lambda path: self.match(f"{folder}/{path}")


def _occurs(row: list[re.Pattern[str]], names: list[str]) -> bool:
    windows = (names[at : at + len(row)] for at in range(len(names) - len(row) + 1))
    return any(all(part.match(name) for part, name in zip(row, window, strict=True)) for window in windows)


def _fold(path: str) -> str:
    folded = path.casefold()
    return folded if folded.isascii() else unicodedata.normalize("NFC", folded)
