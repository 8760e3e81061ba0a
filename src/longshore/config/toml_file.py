"""One `longshore.toml`: bytes → tables whose keys know their lines, or a ConfigError that says why not."""

from __future__ import annotations

import os
import re
import stat
import tomllib
from typing import Any, TypeAlias, cast

from msgspec import Struct

from longshore.errors import ConfigError
from longshore.files import read_regular

FILE_BYTES = 1 << 20
"""A configuration is a few KiB; a megabyte is some other file, and parsing it would delay the start by seconds."""

KEY_PARTS = 32
"""`a.b.c` has three. tomllib is quadratic in them: one key of half a million took all memory, or two minutes."""

DEPTH = 4
"""The longest path whose line is recorded; the longest key is `toolsets.NAME.KEY`."""

Path: TypeAlias = tuple[str, ...]

_PART = r"""(?:[A-Za-z0-9_-]+|"(?:\\.|[^"\\\n])*"|'[^'\n]*')"""
_LONG_KEY = re.compile(rf"(?:^[ \t]*\[{{0,2}}|[{{,])[ \t]*{_PART}(?:[ \t]*\.[ \t]*{_PART}){{{KEY_PARTS}}}")
_ERROR_PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")
_TEXT = re.compile(
    r"""
    \#[^\n]*
    | \"{3} (?: \\. | [^\\] )*? \"{3,5}      # the closing quotes may follow one or two of the text's own
    | '{3} .*? '{3,5}
    | " (?: \\. | [^"\\\n] )* "
    | ' [^'\n]* '
    """,
    re.VERBOSE | re.DOTALL,
)
_STATEMENT = re.compile(
    rf"^[ \t]*(?:(\[{{1,2}})[ \t]*)?({_PART}(?:[ \t]*\.[ \t]*{_PART})*)[ \t]*(?(1)\]|=)", re.MULTILINE
)
"""`[key]`, `[[key]]` or `key =` at the beginning of a line."""


class Document(Struct, frozen=True):
    """A parsed file. `shown` is its path as messages show it."""

    shown: str
    tables: dict[str, Any]
    lines: dict[Path, int]

    def line(self, path: Path) -> int:
        """The line of a key, else of the innermost table around it."""
        known = (self.lines.get(path[:length]) for length in range(min(len(path), DEPTH), 0, -1))
        return next((line for line in known if line is not None), 1)


def read(path: str, cwd: str, text: str | None = None) -> Document:
    """Read and parse a file, or the `text` that counts in its place. Messages show its path relative to `cwd`."""
    shown = shown_path(path, cwd)
    text = read_text(path, shown) if text is None else text
    for number, line in enumerate(text.split("\n"), 1):
        # A string could look the same, but a string of 33 words joined by dots is no real case.
        if line.count(".") >= KEY_PARTS and _LONG_KEY.search(line):
            raise ConfigError(f"{shown}:{number}: a key has more than {KEY_PARTS} parts")
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(_syntax_error(str(error), text, shown)) from None
    except RecursionError:
        raise ConfigError(f"{shown}: nested too deeply") from None
    except ValueError:  # int() of thousands of digits
        raise ConfigError(f"{shown}: a number has too many digits") from None
    return Document(shown, tables, lines_of(text.replace("\r\n", "\n")))


def shown_path(path: str, cwd: str) -> str:
    """A path as messages show it: relative to a folder, if it is below."""
    inside = cwd.rstrip(os.sep) + os.sep
    return path[len(inside) :] if cwd and path.startswith(inside) else path


def read_text(path: str, shown: str, form: str = "TOML") -> str:
    """The text of a configuration file. Raises ConfigError."""
    try:
        raw, status = read_regular(path, FILE_BYTES)
    except OSError as error:
        raise ConfigError(f"{shown}: can't be read: {(error.strerror or 'unknown error').lower()}") from None
    mode = status.st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISCHR(mode)):  # /dev/null is a fine way to say "no project file"
        raise ConfigError(f"{shown}: {'a directory' if stat.S_ISDIR(mode) else 'not a file'}; expected a {form} file")
    if len(raw) > FILE_BYTES:
        raise ConfigError(f"{shown}: larger than {FILE_BYTES} bytes")
    try:
        return raw.decode("utf-8-sig")  # editors on Windows write a byte order mark
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{shown}:{line}: not UTF-8 (byte 0x{raw[error.start]:02x})") from None


def _syntax_error(message: str, text: str, shown: str) -> str:
    """tomllib's message with its place in front and without Python in it."""
    place = _ERROR_PLACE.search(message)
    line = (place and place[1]) or str(text.rstrip().count("\n") + 1)
    column = f" (column {place[2]})" if place and place[2] else ""
    what = message[: place.start()] if place else message
    what = re.sub(r"\(('.*?'),?\)", lambda m: ".".join(m[1].replace("'", "").split(", ")), what)
    what = what.replace("Cannot overwrite a value", "A key is set twice")
    return f"{shown}:{line}: {what[:1].lower()}{what[1:]}{column}"


def lines_of(text: str) -> dict[Path, int]:
    """The first line of each key and table of a text that tomllib accepts. Longer paths are cut to DEPTH.

    tomllib does not say where a key stands. Keys inside an inline table or an array count as on its first line.
    """
    found: dict[Path, int] = {}
    table: Path = ()
    # Without its texts of several lines, every statement begins on a line of its own.
    plain = _TEXT.sub(lambda piece: piece[0] if "\n" not in piece[0] else "\n" * piece[0].count("\n"), text)
    place = line = 0
    for statement in _STATEMENT.finditer(plain):
        line, place = line + plain.count("\n", place, statement.end()), statement.end()
        # tomllib knows the escapes of quoted parts.
        path: list[str] = []
        node: Any = tomllib.loads(f"{statement[2]} = 0")
        while isinstance(node, dict):
            name, node = next(iter(cast("dict[str, Any]", node).items()))
            path.append(name)
        if statement[1]:
            table = tuple(path)
        whole = table if statement[1] else (*table, *path)
        for length in range(1, min(len(whole), DEPTH) + 1):
            found.setdefault(whole[:length], line + 1)
    return found
