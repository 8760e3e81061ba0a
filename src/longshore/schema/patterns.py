"""Patterns: matched in linear time here, and written so that JavaScript can read them.

msgspec matches with `re`, which backtracks: 41 bytes make `^(a+)+$` run forever, which blocks everything else. So
patterns are removed from the types that msgspec decodes, and matched by the engine that checks authors' own schemas.
They mean what they mean in the schema that clients see, as ECMAScript reads it: `\\d` is 0-9, `\\w` is ASCII, `$` is
the very end. Python's syntax is close enough to be written by mistake: a group `(?P<n>…)`, an anchor `\\Z`, a needless
`\\-`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from longshore.schema.signature import Patterns, SignatureProblem

MAX_CHARS: Final = 10_000
"""A longer pattern is not read. No author wrote it by hand, and no author could correct it."""

Matches = Callable[[str], bool]
"""Whether a text has a match anywhere."""

_FLAGS: Final = re.compile(r"\(\?[imsu]+\)")
"""Flags for a whole pattern, which the engine knows and ECMAScript does not."""
_REWRITE: Final = "write it without look-around, back references and other syntax that only `re` knows"
_WAIVE: Final = 'waive={"E13": "why it is harmless"}'


def read_pattern(pattern: str, patterns: Patterns) -> Matches:
    """Decide how the pattern is matched. SignatureProblem if that could run forever and `patterns` doesn't allow it."""
    from longshore.schema.validate import compile_linear, interruptible

    found = _FLAGS.match(pattern)
    flags = found[0] if found else ""
    written = translate(pattern[len(flags) :])
    if written is not None and (matches := compile_linear(flags + written)) is not None:
        return matches
    if patterns != "any":
        raise unbounded(f"the pattern {pattern!r} can't be matched in linear time", _REWRITE, patterns)
    search = re.compile(pattern).search
    return interruptible(lambda text: search(text) is not None)


def unbounded(what: str, fix: str, patterns: Patterns) -> SignatureProblem:
    """The problem of a check that might never end."""
    either = f"{fix}, or {_WAIVE}" if patterns == "waivable" else fix
    return SignatureProblem(f"{what}, so one value could keep the server busy for ever", either)


# -- JavaScript's syntax

_SHARED: Final = r"[dDsSwWfnrtv^$\\.*+?()\[\]{}|/]|0(?![0-9])|c[A-Za-z]|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}"
_LONG: Final = r"u\{(?:0*[0-9A-Fa-f]{1,5}|0*10[0-9A-Fa-f]{4})\}|[pP]\{[A-Za-z_]+(?:=[A-Za-z0-9_]+)?\}"
_PART: Final = re.compile(
    rf"\\(?:{_SHARED}|{_LONG}|[bB]|[1-9][0-9]*|k<[^>]*>)|\[\^?(?:\\(?:{_SHARED}|{_LONG}|[b-])|[^\]\\])*\]"
    r"|\((?:\?(?::|<?[=!]|<[^\W\d][\w$]*>|<\$[\w$]*>))?(?!\?)|\{\d+(?:,\d*)?\}|[*+?](?!\+)|[^\\\[\](){}*+?]|\)"
)
_REFUSED: Final = {"\\": ("the escape", 2), "(": ("the group", 4), "[": ("the set", 4)}
"""Words for what is refused by its first character, and how many characters of it are shown."""


def find_flaw(pattern: str) -> str:
    """The first part of a pattern that JavaScript refuses with the `u` flag; empty if none is found.

    Each part is checked by itself. The validator decides whether the whole is a pattern.
    """
    at = 0
    while at < len(pattern) <= MAX_CHARS:
        part = _PART.match(pattern, at)
        if part is None:
            kind, shown = _REFUSED.get(pattern[at], ("a lone", 1))
            return f"{kind} {pattern[at : at + shown]}"
        at = part.end()
    return ""


_UNIT: Final = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
_NESTED_LOOP: Final = re.compile(
    r"\((?:\?:|\?<\w+>)?(?:[^()|?*+{}^$][?*])*[^()|?*+{}^$][+*](?:[^()|?*+{}^$][?*])*\)(?:[+*]|\{\d+,\})"
)


def has_nested_loop(pattern: str) -> bool:
    """Whether a loop repeats a group that is itself one loop, beside parts that may be absent: `(a+)+`, `(\\w+\\s?)*`.

    An engine that backtracks tries all divisions of the text between the two loops, which double with each character.
    """
    return len(pattern) <= MAX_CHARS and bool(_NESTED_LOOP.search(_UNIT.sub("x", pattern)))


# -- from Python's syntax

_TOKEN: Final = re.compile(
    r"\\(?P<escaped>[\s\S])|\(\?P<(?P<name>\w+)>|(?P<group>\(\?(?![:=!<]))|\{\d+(?:,\d*)?\}|\{,(?P<upto>\d+)\}"
    r"|\[(?P<negated>\^?)(?P<set>\]?(?:\\[\s\S]|[^\]\\])*)\]|(?P<lone>[{}\]])|[\s\S]"
)
_KEPT: Final = frozenset("^$\\.*+?()[]{}|/")
_ANCHORS: Final = {"A": "^", "Z": "$", "z": "$", "a": "\\x07"}


def translate(pattern: str) -> str | None:
    """A pattern of Python's as JavaScript writes it; None if the translation is not certain."""
    if len(pattern) > MAX_CHARS:
        return None
    if not find_flaw(pattern) and "[]" not in pattern and "[^]" not in pattern:
        return pattern
    tokens = list(_TOKEN.finditer(pattern))
    if any(token["group"] for token in tokens):
        return None  # a flag, a comment, a condition, or a name that our own validator does not know
    written = "".join(map(_translate, tokens))
    return None if find_flaw(written) else written


def _translate(token: re.Match[str]) -> str:
    if token["name"]:
        return f"(?<{token['name']}>"
    if token["upto"]:
        return f"{{0,{token['upto']}}}"
    if token["lone"]:
        return f"\\{token['lone']}"
    if token["set"] is not None:
        inner = re.sub(r"\\([\s\S])|[\[\]]", _translate_in_set, token["set"])
        return f"[{token['negated']}{inner}]"
    return _ANCHORS.get(token["escaped"]) or _unescape(token["escaped"]) if token["escaped"] else token[0]


def _translate_in_set(found: re.Match[str]) -> str:
    """A bracket in a set is a character."""
    if found[1] is None:
        return f"\\{found[0]}"
    return found[0] if found[1] == "-" else _unescape(found[1])


def _unescape(char: str) -> str:
    """An escaped character without a needless backslash."""
    return f"\\{char}" if char.isalnum() or char in _KEPT else char
