"""Search patterns that ripgrep and Python's `re` understand alike.

A pattern is read once and written for each engine. Both match within lines only, so classes never hold a newline; `$`
also stands before the \\r of a CRLF line; `\\s` is Unicode's white space; a brace that is no repetition is plain text.
Bytes that are no UTF-8 match nothing. Lookaround, backreferences, atomic groups and possessive repetition, which
ripgrep lacks, are left to Python. Syntax that only ripgrep has (`\\p{…}`, class arithmetic) and inline flags other
than a leading `(?i)` are errors.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

from longshore.errors import ToolError

MOST_CHARACTERS: Final = 4_000
"""A pattern is written by a person or a model; longer ones only cost time."""
MOST_REPETITIONS: Final = 1_000
"""Of `{m,n}`. ripgrep's automaton grows with it."""

_META: Final = frozenset("\\.+*?()|[]{}^$#&-~")
_SPACE: Final = " \\t\\r\\f\\v\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000"
"""Unicode's White_Space without the newline. Python's own also has \\x1c to \\x1f."""
_UNDECODABLE: Final = "\\udc80-\\udcff"
"""The characters that Python makes of bytes that are no UTF-8."""
_CONTROLS: Final = {"t": 9, "r": 13, "f": 12, "v": 11, "a": 7}
_HEXADECIMAL: Final = {"x": 2, "u": 4, "U": 8}
_REPETITION: Final = re.compile(r"\{(\d*)(,?)(\d*)\}", re.ASCII)
_NAMED_GROUP: Final = re.compile(r"\(\?P?<([A-Za-z_]\w*)>", re.ASCII)
_LOOKAROUND: Final = re.compile(r"\(\?(?:<?[=!]|>)")
_BACKREFERENCE: Final = re.compile(r"\(\?P=([A-Za-z_]\w*)\)", re.ASCII)
_FIX: Final = 'escape it with "\\" or search literally'


class PatternError(ToolError):
    """A pattern that can't be searched: says what, where and the fix."""


class Pattern(Struct, frozen=True):
    """A pattern as each engine reads it."""

    ripgrep: str | None
    """None if only Python can."""
    python: str
    strict: str
    """For Python, in a text with bytes that are no UTF-8."""
    ignore_case: bool


def read_pattern(text: str, *, literal: bool = False, ignore_case: bool = False) -> Pattern:
    """Read a pattern, which is a regular expression unless `literal`. Raises PatternError."""
    _check_text(text)
    if literal:
        escaped = "".join(map(_escape, text))
        return Pattern(escaped, escaped, escaped, ignore_case)
    if found := re.match(r"\(\?([imsu]+)\)", text):
        text, ignore_case = text[found.end() :], ignore_case or "i" in found[1]
    reader = _Reader(text)
    reader.read()
    python, strict = "".join(reader.python), "".join(reader.strict)
    try:
        re.compile(python)
        re.compile(strict)
    except (re.error, OverflowError, RecursionError) as error:
        raise PatternError(f"the pattern {text!r} can't be read: {error}; {_FIX}") from None
    return Pattern(None if reader.only_python else "".join(reader.ripgrep), python, strict, ignore_case)


def _check_text(text: str) -> None:
    if not text:
        raise PatternError("the pattern is empty; give a text to search for")
    if len(text) > MOST_CHARACTERS:
        raise PatternError(f"the pattern has {len(text):,} characters; at most {MOST_CHARACTERS:,} are searched for")
    if "\n" in text or "\0" in text:
        raise PatternError(
            "the pattern has a newline or NUL; lines are searched one by one, so give a part of one line"
        )
    try:
        text.encode()
    except UnicodeEncodeError:
        raise PatternError("the pattern is no valid Unicode text; leave out lone surrogates") from None


def _escape(character: str) -> str:
    return f"\\{character}" if character in _META else character


class _Reader:
    """Reads a pattern from left to right and writes it for each engine."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.ripgrep, self.python, self.strict = list[str](), list[str](), list[str]()
        self.only_python = False
        self.repeatable = False
        """Whether what was read last can be repeated."""

    def read(self) -> None:
        while self.at < len(self.text):
            character = self.text[self.at]
            if character == "\\":
                self._read_escape()
            elif character == "[":
                self._class()
            elif character == "(":
                self._group()
            elif character in "*+?{":
                self._repetition(character)
            else:
                self._plain(character)

    def _write(self, ripgrep: str, python: str | None = None, strict: str | None = None, *, atom: bool = True) -> None:
        python = ripgrep if python is None else python
        self.ripgrep.append(ripgrep)
        self.python.append(python)
        self.strict.append(python if strict is None else strict)
        self.repeatable = atom

    def _plain(self, character: str) -> None:
        self.at += 1
        match character:
            case ".":
                self._write(".", ".", f"[^\\n{_UNDECODABLE}]")
            case "^":
                self._write("^", "^", atom=False)
            case "$":
                self._write("(?:\\r?$)", "(?:\\r?$)", atom=False)
            case "|" | ")":
                self._write(character, atom=character == ")")
            case _:
                self._write(_escape(character))

    def _group(self) -> None:
        rest = self.text[self.at :]
        if found := _NAMED_GROUP.match(rest):
            self._write(f"(?P<{found[1]}>", atom=False)
        elif found := _LOOKAROUND.match(rest):
            self.only_python = True
            self._write(found[0], atom=False)
        elif found := _BACKREFERENCE.match(rest):
            self.only_python = True
            self._write(found[0])
        elif found := re.match(r"\(\?i?:", rest):
            self._write(found[0], atom=False)
        elif rest.startswith("(?"):
            raise self._error(rest[:4], "use a leading (?i), (?:…), (?i:…), (?P<name>…) or lookaround")
        else:
            self.at += 1
            return self._write("(", atom=False)
        self.at += len(found[0])
        return None

    def _repetition(self, character: str) -> None:
        written, length = character, 1
        if character == "{":
            found = _REPETITION.match(self.text, self.at)
            if found is None or not (found[1] or found[3]) or (found[3] and not found[2]):
                return self._plain(character)
            if max(int(found[1] or 0), int(found[3] or 0)) > MOST_REPETITIONS:
                raise self._error(found[0], f"repeat at most {MOST_REPETITIONS:,} times")
            written, length = f"{{{found[1] or 0}{found[2]}{found[3]}}}", len(found[0])
        if not self.repeatable:
            raise self._error(written, f"there is nothing before it to repeat; {_FIX}")
        self.at += length
        suffix = self.text[self.at : self.at + 1]
        if suffix in ("?", "+") and suffix:
            self.at += 1
            written += suffix
            self.only_python |= suffix == "+"
        return self._write(written, atom=False)

    def _read_escape(self) -> None:
        name = self.text[self.at + 1 : self.at + 2]
        if name in "dwsDWS" and name:
            self.at += 2
            self._shorthand(name)
        elif name in ("b", "B"):
            self.at += 2
            self._write(f"\\{name}", atom=False)
        elif name in ("A", "z", "Z"):
            self.at += 2
            self._plain_at("^" if name == "A" else "$")
        elif found := re.compile(r"\\[1-9]\d?(?!\d)", re.ASCII).match(self.text, self.at):
            self.at += len(found[0])
            self.only_python = True
            self._write(found[0])
        else:
            self._write(_character(self._character()))

    def _plain_at(self, character: str) -> None:
        self._plain(character)
        self.at -= 1

    def _shorthand(self, name: str) -> None:
        written = f"\\{name}"
        match name:
            case "s":
                self._write(written, f"[{_SPACE}]")
            case "S":
                self._write(written, f"[^\\n{_SPACE}]", f"[^\\n{_SPACE}{_UNDECODABLE}]")
            case "D" | "W":
                positive = name.lower()
                self._write(written, f"[^\\n\\{positive}]", f"[^\\n\\{positive}{_UNDECODABLE}]")
            case _:
                self._write(written)

    def _character(self) -> int:
        """The code point of an escape or a plain character, which is read."""
        character = self.text[self.at]
        if character != "\\":
            self.at += 1
            return ord(character)
        name = self.text[self.at + 1 : self.at + 2]
        if name in _CONTROLS:
            self.at += 2
            return _CONTROLS[name]
        if name in _HEXADECIMAL:
            digits = self.text[self.at + 2 : self.at + 2 + _HEXADECIMAL[name]]
            if not re.fullmatch(f"[0-9a-fA-F]{{{_HEXADECIMAL[name]}}}", digits) or not _is_scalar(int(digits, 16)):
                raise self._error(f"\\{name}{digits}", f"give a character by {_HEXADECIMAL[name]} hexadecimal digits")
            self.at += 2 + len(digits)
            return int(digits, 16)
        if name and (not name.isascii() or not (name.isalnum() or name == "_")):
            self.at += 2
            return ord(name)
        raise self._error(f"\\{name}", "use \\d \\w \\s \\b \\t \\r \\xHH \\uHHHH or an escaped sign, in one line")

    def _class(self) -> None:
        """A class in brackets. An opening bracket in it is a plain character."""
        start = self.at
        self.at += 1
        negated = self.text[self.at : self.at + 1] == "^"
        self.at += negated
        ripgrep, python, guard = list[str](), list[str](), False
        first = True
        while first or self.text[self.at : self.at + 1] != "]":
            if self.at >= len(self.text):
                self.at = start
                raise self._error("[", f"the class has no ]; {_FIX}")
            first = False
            guard |= self._class_item(ripgrep, python)
        self.at += 1
        sign = "^" if negated else ""
        rust, body = f"[{sign}{''.join(ripgrep)}]", "".join(python)
        if negated:
            self._write(rust, f"[^\\n{body}]", f"[^\\n{body}{_UNDECODABLE}]")
        elif guard:
            self._write(rust, f"(?:(?!\\n)[{body}])", f"(?:(?![\\n{_UNDECODABLE}])[{body}])")
        else:
            self._write(rust, f"[{body}]")

    def _class_item(self, ripgrep: list[str], python: list[str]) -> bool:
        """Read a character, range or shorthand. True if it may hold a newline or undecodable bytes."""
        if (found := self.text[self.at : self.at + 2]) in ("&&", "--", "~~", "[:"):
            raise self._error(found, "no set operations and named classes are known; escape the signs")
        if found[:1] == "\\" and found[1:] in tuple("dwsDWS"):
            self.at += 2
            ripgrep.append(found)
            python.append({"\\s": _SPACE, "\\S": "\\S\\x1c-\\x1f"}.get(found, found))
            return found[1].isupper()
        low = self._character_in_class()
        following = self.text[self.at : self.at + 2]
        if following[:1] != "-" or following[1:] in ("]", ""):
            ripgrep.append(_character(low))
            python.append(_character(low))
            return False
        self.at += 1
        high = self._character_in_class()
        if high < low:
            raise self._error(f"{chr(low)}-{chr(high)}", "a range goes upwards")
        written = f"{_character(low)}-{_character(high)}"
        ripgrep.append(written)
        python.append(written)
        return low <= 10 <= high or (low <= 0xDCFF and high >= 0xDC80)

    def _character_in_class(self) -> int:
        if self.text.startswith("\\b", self.at):
            raise self._error("\\b", "a class can't hold a word boundary; use \\x08 for a backspace")
        if self.at >= len(self.text):
            raise self._error("[", f"the class has no ]; {_FIX}")
        return self._character()

    def _error(self, what: str, fix: str) -> PatternError:
        return PatternError(f"the pattern {self.text!r} has {what!r} at character {self.at + 1}: {fix}")


def _character(code: int) -> str:
    """A character as both engines read it, within brackets too."""
    if code < 32 or code == 127:
        return f"\\x{code:02x}"
    return _escape(chr(code))


def _is_scalar(code: int) -> bool:
    return code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF
