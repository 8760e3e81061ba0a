"""One `longshore.toml`: bytes → a parsed document whose keys know their lines, or a ConfigError that says why not."""

from __future__ import annotations

import os
import re
import stat
import tomllib
from typing import Any

from msgspec import Struct

from longshore.config.lines import Path, line_of, lines_of
from longshore.errors import ConfigError
from longshore.files import read_regular

FILE_BYTES = 1 << 20
"""A configuration is a few KiB; a megabyte is some other file. Parsing it would hold up the start for seconds."""

KEY_PARTS = 32
"""`a.b.c` has three. tomllib is quadratic in them: one key of half a million took all memory, or two minutes."""

_PART = r"""(?:[A-Za-z0-9_-]+|"(?:\\.|[^"\\\n])*"|'[^'\n]*')"""
_LONG_KEY = re.compile(rf"(?:^[ \t]*\[{{0,2}}|[{{,])[ \t]*{_PART}(?:[ \t]*\.[ \t]*{_PART}){{{KEY_PARTS}}}")
_PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


class Document(Struct, frozen=True):
    """A parsed file. `shown` is its path as messages show it."""

    shown: str
    tables: dict[str, Any]
    lines: dict[Path, int]

    def where(self, path: Path) -> str:
        """`longshore.toml:7`."""
        return f"{self.shown}:{line_of(self.lines, path)}"


def read(path: str, cwd: str) -> Document:
    """Read and parse a file."""
    shown = show_path(path, cwd)
    text = _decode(_read_bytes(path, shown), shown)
    _refuse_long_keys(text, shown)
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(_syntax(str(error), text, shown)) from None
    except RecursionError:
        raise ConfigError(f"{shown}: nested too deeply") from None
    except ValueError:  # int() of thousands of digits
        raise ConfigError(f"{shown}: a number has too many digits") from None
    return Document(shown, tables, lines_of(text.replace("\r\n", "\n")))


def show_path(path: str, cwd: str) -> str:
    """Relative to where the user stands if it is below, else whole."""
    inside = cwd.rstrip(os.sep) + os.sep
    return path[len(inside) :] if cwd and path.startswith(inside) else path


def _read_bytes(path: str, shown: str) -> bytes:
    try:
        raw, found = read_regular(path, FILE_BYTES)
    except OSError as error:
        raise ConfigError(f"{shown}: can't be read: {(error.strerror or 'unknown error').lower()}") from None
    mode = found.st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISCHR(mode)):  # /dev/null is a fine way to say "no project file"
        raise ConfigError(f"{shown}: {'a directory' if stat.S_ISDIR(mode) else 'not a file'}; expected a TOML file")
    if len(raw) > FILE_BYTES:
        raise ConfigError(f"{shown}: larger than {FILE_BYTES} bytes")
    return raw


def _decode(raw: bytes, shown: str) -> str:
    try:
        return raw.decode("utf-8-sig")  # editors on Windows write a byte order mark
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{shown}:{line}: not UTF-8 (byte 0x{raw[error.start]:02x})") from None


def _refuse_long_keys(text: str, shown: str) -> None:
    for number, line in enumerate(text.split("\n"), 1):
        # A string could look the same, but nobody writes 33 words joined by dots.
        if line.count(".") >= KEY_PARTS and _LONG_KEY.search(line):
            raise ConfigError(f"{shown}:{number}: a key has more than {KEY_PARTS} parts")


def _syntax(message: str, text: str, shown: str) -> str:
    """tomllib's message, with its place in front and without Python in it."""
    place = _PLACE.search(message)
    line, column = (place[1], place[2]) if place else (None, None)
    line = line or str(text.rstrip().count("\n") + 1)
    said = message[: place.start()] if place else message
    said = re.sub(r"\(('.*?'),?\)", lambda m: ".".join(m[1].replace("'", "").split(", ")), said)
    said = said.replace("Cannot overwrite a value", "A key is set twice")
    return f"{shown}:{line}: {said[:1].lower()}{said[1:]}" + (f" (column {column})" if column else "")
