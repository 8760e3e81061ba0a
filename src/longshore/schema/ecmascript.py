"""Whether a pattern is a regular expression of ECMAScript with the `u` flag, as JavaScript's validators compile it.

Python's own syntax is close enough to be written by mistake: a group `(?P<n>…)`, an anchor `\\Z`, a needless `\\-`.
Nothing is matched here; a pattern is read once, from left to right. What is plainly Python's can be translated.
"""

from __future__ import annotations

import re
from typing import Final, final

MOST_CHARS: Final = 10_000
"""A pattern that is longer is not read. Nobody wrote it by hand, and nobody could mend it."""

_QUANTIFIER: Final = re.compile(r"(?:[*+?]|\{(\d+)(?:,(\d*))?\})\??")
_GROUP: Final = re.compile(r"\((?:\?(?:(:)|(<?[=!])|<([A-Za-z_$\u0080-\U0010FFFF][\w$]*)>))?")
_ESCAPE: Final = re.compile(
    r"""\\(?:(?P<set>[dDsSwW]|[pP]\{[A-Za-z_]+(?:=[A-Za-z0-9_]+)?\})|(?P<control>[fnrtv])|c(?P<letter>[A-Za-z])"""
    r"""|0(?![0-9])|x(?P<byte>[0-9A-Fa-f]{2})|u(?P<unit>[0-9A-Fa-f]{4})|u\{(?P<point>0*[0-9A-Fa-f]{1,6})\}"""
    r"""|(?P<plain>[\^$\\.*+?()\[\]{}|/]))"""
)
_BACK: Final = re.compile(r"\\(?:([1-9][0-9]*)|k<([^>]*)>)")
_CONTROLS: Final = {"f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def find_flaw(pattern: str) -> str:
    """What is wrong with it, in a few words; nothing where nothing is, or where that would take too long to tell."""
    if len(pattern) > MOST_CHARS:
        return ""
    try:
        _Reading(pattern).read()
    except _Flaw as flaw:
        return str(flaw)
    return ""


class _Flaw(Exception):
    pass


@final
class _Reading:
    def __init__(self, pattern: str) -> None:
        self._text, self._at = pattern, 0
        self._open: list[bool] = []
        """Of each group that is open, whether it may be repeated once it is closed."""
        self._repeatable = False
        self._captures = 0
        self._names: set[str] = set()
        self._numbers: list[int] = []
        self._called: list[str] = []

    def read(self) -> None:
        while self._at < len(self._text):
            self._step(self._text[self._at])
        if self._open:
            raise _Flaw("a group is not closed")
        if any(number > self._captures for number in self._numbers):
            raise _Flaw("a back reference to a group that is not there")
        if missing := [name for name in self._called if name not in self._names]:
            raise _Flaw(f"a back reference to the group {missing[0]!r}, which is not there")

    def _step(self, char: str) -> None:
        if char in "*+?{":
            self._repeat()
        elif char == "(":
            self._group()
        elif char == ")":
            self._close()
        elif char == "[":
            self._set()
        elif char == "\\":
            self._escape()
        elif char in "]}":
            raise _Flaw(f"a lone {char}")
        else:
            self._advance(1, repeatable=char not in "^$|")

    def _advance(self, chars: int, *, repeatable: bool) -> None:
        self._at += chars
        self._repeatable = repeatable

    def _repeat(self) -> None:
        found = _QUANTIFIER.match(self._text, self._at)
        if found is None:
            raise _Flaw("a lone {")
        if not self._repeatable:
            raise _Flaw(f"{found[0]} repeats nothing")
        if found[2] and _is_less(found[2], found[1]):
            raise _Flaw(f"the numbers of {found[0]} are out of order")
        self._advance(len(found[0]), repeatable=False)

    def _group(self) -> None:
        found = _GROUP.match(self._text, self._at)
        if found is None or self._text.startswith("?", found.end()):
            raise _Flaw(f"the group {self._text[self._at : self._at + 4]}")
        if found[3]:
            if found[3] in self._names:
                raise _Flaw(f"two groups named {found[3]}")
            self._names.add(found[3])
        self._captures += not (found[1] or found[2])
        self._open.append(not found[2])
        self._advance(len(found[0]), repeatable=False)

    def _close(self) -> None:
        if not self._open:
            raise _Flaw("a lone )")
        self._advance(1, repeatable=self._open.pop())

    def _escape(self) -> None:
        if self._text[self._at + 1 : self._at + 2] in ("b", "B"):
            return self._advance(2, repeatable=False)
        if found := _BACK.match(self._text, self._at):
            if found[2] is not None:
                self._called.append(found[2])
            else:
                self._numbers.append(int(found[1][:9]))
            return self._advance(len(found[0]), repeatable=True)
        return self._advance(len(self._escaped()[0]), repeatable=True)

    def _escaped(self) -> re.Match[str]:
        found = _ESCAPE.match(self._text, self._at)
        if found is None or (found["point"] and int(found["point"], 16) > 0x10FFFF):
            raise _Flaw(f"the escape {self._text[self._at : self._at + 2]}")
        return found

    def _set(self) -> None:
        self._at += 2 if self._text.startswith("^", self._at + 1) else 1
        while not self._text.startswith("]", self._at):
            first = self._member()
            if self._text.startswith("-", self._at) and not self._text.startswith("-]", self._at):
                self._at += 1
                self._check_range(first, self._member())
        self._advance(1, repeatable=True)

    def _check_range(self, first: str | None, last: str | None) -> None:
        if first is None or last is None:
            raise _Flaw("a range in [] that begins or ends with more than one character")
        if first > last:
            raise _Flaw(f"the range {first}-{last} is out of order")

    def _member(self) -> str | None:
        """One character of a set; None for one that stands for many."""
        char = self._text[self._at : self._at + 1]
        if not char:
            raise _Flaw("a [ is not closed")
        if char != "\\":
            self._at += 1
            return char
        if (after := self._text[self._at + 1 : self._at + 2]) in ("-", "b"):
            self._at += 2
            return "-" if after == "-" else "\b"
        found = self._escaped()
        self._at = found.end()
        return _meant(found)


def _meant(found: re.Match[str]) -> str | None:
    if found["set"]:
        return None
    if found["control"] or found["plain"]:
        return _CONTROLS.get(found["control"] or "") or found["plain"]
    if found["letter"]:
        return chr(ord(found["letter"]) % 32)
    code = found["byte"] or found["unit"] or found["point"]
    return chr(int(code, 16)) if code else "\0"


def _is_less(one: str, other: str) -> bool:
    """Of numbers of any length."""
    one, other = one.lstrip("0"), other.lstrip("0")
    return (len(one), one) < (len(other), other)


# -- from Python's syntax

_TOKEN: Final = re.compile(
    r"\\U(?P<point>[0-9A-Fa-f]{8})|\\(?P<escaped>[\s\S])|\(\?P<(?P<name>\w+)>"
    r"|(?P<group>\(\?(?![:=!<]))|\{\d+(?:,\d*)?\}|(?P<upto>\{,\d+\})|(?P<open>\[\^?\]?)|(?P<lone>[{}\]])|[\s\S]"
)
_KEPT: Final = frozenset("dDsSwWbBfnrtvux0123456789^$\\.*+?()[]{}|/")
_ANCHORS: Final = {"A": "^", "Z": "$", "z": "$", "a": "\\x07"}


def translate(pattern: str) -> str | None:
    """A pattern of Python's as JavaScript reads it, or None where that is not plain to see."""
    if len(pattern) > MOST_CHARS:
        return None
    alike = not find_flaw(pattern) and "[]" not in pattern and "[^]" not in pattern
    written = pattern if alike else _rewrite(pattern)
    return None if written is None or find_flaw(written) else written


def _rewrite(pattern: str) -> str | None:
    parts: list[str] = []
    inside = False
    for token in _TOKEN.finditer(pattern):
        if token["group"] and not inside:
            return None  # a flag, a comment, a condition, or a name that our own validator does not know
        parts.append(_in_set(token) if inside else _outside(token))
        inside = (inside or token["open"] is not None) and token[0] != "]"
    return "".join(parts)


def _outside(token: re.Match[str]) -> str:
    if token["name"]:
        return f"(?<{token['name']}>"
    if token["upto"]:
        return f"{{0{token['upto'][1:]}"
    if token["open"]:
        return token["open"].replace("]", "\\]")  # the first one in a set is a character
    if token["lone"]:
        return f"\\{token['lone']}"
    return _ANCHORS.get(token["escaped"] or "") or _plain(token)


def _in_set(token: re.Match[str]) -> str:
    if token["open"]:
        return token["open"].replace("[", "\\[")
    return token[0] if token["escaped"] == "-" else _plain(token)


def _plain(token: re.Match[str]) -> str:
    """Without a needless backslash. What has one and is a letter stays as it is, and is found to be a flaw."""
    if token["point"]:
        return f"\\u{{{token['point'].lstrip('0') or '0'}}}"
    escaped = token["escaped"]
    return escaped if escaped and not escaped.isalnum() and escaped not in _KEPT else token[0]
