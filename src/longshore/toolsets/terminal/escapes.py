"""Output of programs as text that is safe to show: escape sequences removed, other control characters made visible.

A line that overwrites itself, such as a progress bar, is shown in its last state. The number of newlines stays the
same.
"""

from __future__ import annotations

import re
from typing import Final

from longshore.invisible import MARKS, TAGS

# A string (OSC, DCS, APC, PM, SOS) counts only if it ends within its line, so that no output is lost in a broken one.
# No class holds a character that begins a sequence: otherwise many beginnings would take quadratic time.
_SEQUENCE: Final = re.compile(
    r"(?:\x1b\[|\x9b)(?P<parameters>[0-?]*)[ -/]*(?P<final>[@-~])"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x80-\x9f\n]*(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[ -/]*[0-~]"
    r"|(?P<control>[\b\r\x1b\x80-\x9f])"
    rf"|(?P<invisible>[\x00-\x07\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f{MARKS}{TAGS}]+)"
)


class _Visible(dict[int, str]):
    """The replacements of invisible characters, by code point. Bells and character set shifts change no text."""

    def __missing__(self, code: int) -> str:
        shown = f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
        return self.setdefault(code, shown)


_VISIBLE: Final = _Visible({0x07: "", 0x0E: "", 0x0F: ""})


def show_bytes(data: bytes) -> str:
    """Output as text. Bytes that are no UTF-8 are shown as \\xNN."""
    return clean(data.decode("utf-8", "backslashreplace"))


def clean(text: str) -> str:
    """Text without escape sequences and invisible characters."""
    text = text.replace("\r\n", "\n")
    if "\r" in text or "\b" in text:
        return "\n".join(map(_clean_line, text.split("\n")))
    return _SEQUENCE.sub(_replace, text)


def _clean_line(line: str) -> str:
    line = line.rstrip("\r")
    return _overwrite(line) if "\r" in line or "\b" in line else _SEQUENCE.sub(_replace, line)


def _replace(found: re.Match[str]) -> str:
    return (found["control"] or found["invisible"] or "").translate(_VISIBLE)


def _overwrite(line: str) -> str:
    """The last state of a line with carriage returns and backspaces."""
    cells, column, end = list[str](), 0, 0
    for found in _SEQUENCE.finditer(line):
        column = _put(cells, column, line[end : found.start()])
        end = found.end()
        if found["control"] == "\r":
            column = 0
        elif found["control"] == "\b":
            column = max(0, column - 1)
        elif found["final"] == "K":
            _erase(cells, column, found["parameters"])
        else:
            column = _put(cells, column, _replace(found))
    _put(cells, column, line[end:])
    return "".join(cells)


def _put(cells: list[str], column: int, text: str) -> int:
    end = column + len(text)
    cells[column:end] = text
    return end


def _erase(cells: list[str], column: int, parameters: str) -> None:
    """Erase to the end of the line (0), to its beginning (1), or all of it (2)."""
    if parameters != "1":
        del cells[column:]
    if parameters in ("1", "2"):
        cells[:column] = " " * min(column, len(cells))
