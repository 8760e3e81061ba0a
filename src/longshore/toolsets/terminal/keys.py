"""Names of keys, such as ctrl-c, up, enter and f5, and the bytes that a terminal sends for them."""

from __future__ import annotations

from typing import Final

from longshore.errors import ToolError
from longshore.nearest import did_you_mean

_PLAIN: Final = {
    "enter": "\r",
    "return": "\r",
    "tab": "\t",
    "escape": "\x1b",
    "esc": "\x1b",
    "space": " ",
    "backspace": "\x7f",
}
_CURSOR: Final = {"up": "A", "down": "B", "right": "C", "left": "D", "end": "F", "home": "H"}
"""The last character of the sequence. Programs choose between two forms of it."""
_FUNCTION: Final = {"f1": "P", "f2": "Q", "f3": "R", "f4": "S"}
_NUMBERED: Final = {
    "insert": 2,
    "delete": 3,
    "page-up": 5,
    "page-down": 6,
    "f5": 15,
    "f6": 17,
    "f7": 18,
    "f8": 19,
    "f9": 20,
    "f10": 21,
    "f11": 23,
    "f12": 24,
}
_OTHER_NAMES: Final = {"pageup": "page-up", "pagedown": "page-down", "pgup": "page-up", "pgdn": "page-down"}
_MODIFIERS: Final = {"shift": 1, "alt": 2, "ctrl": 4}
NAMES: Final = (*_PLAIN, *_CURSOR, *_FUNCTION, *_NUMBERED)


def encode_keys(names: list[str], *, application_cursor: bool = False) -> bytes:
    """The bytes that a terminal sends for these keys. Raises ToolError for an unknown one.

    `application_cursor` is the mode of a screen in which arrows have another form.
    """
    return "".join(_encode(name, application_cursor) for name in names).encode()


def canonical_name(name: str) -> str:
    """A key's name in our spelling: `Ctrl+C`, `C-c` and `^C` are ctrl-c."""
    modifiers, key = _split(name)
    return "".join(f"{each}-" for each, bit in _MODIFIERS.items() if modifiers & bit) + key


def _encode(name: str, application_cursor: bool) -> str:
    modifiers, key = _split(name)
    if key in _CURSOR or key in _FUNCTION:
        letter = _CURSOR.get(key) or _FUNCTION[key]
        if modifiers:
            return f"\x1b[1;{modifiers + 1}{letter}"
        return f"\x1bO{letter}" if application_cursor or key in _FUNCTION else f"\x1b[{letter}"
    if key in _NUMBERED:
        return f"\x1b[{_NUMBERED[key]};{modifiers + 1}~" if modifiers else f"\x1b[{_NUMBERED[key]}~"
    if key == "tab" and modifiers == _MODIFIERS["shift"]:
        return "\x1b[Z"
    sent = _PLAIN.get(key, key)
    if len(sent) != 1:
        raise _unknown(name, key)
    return _modify(sent, modifiers, name)


def _modify(sent: str, modifiers: int, name: str) -> str:
    """One character with shift, ctrl and alt."""
    if modifiers & _MODIFIERS["shift"]:
        sent = sent.upper()
    if modifiers & _MODIFIERS["ctrl"]:
        if sent == "?":
            sent = "\x7f"
        elif sent in " @[\\]^_" or (sent.isascii() and sent.isalpha()):
            sent = "\0" if sent == " " else chr(ord(sent.upper()) & 0x1F)
        elif sent >= " ":
            raise ToolError(f"there is no key {name!r}: ctrl goes with a letter or one of space @ [ \\ ] ^ _ ?")
    return f"\x1b{sent}" if modifiers & _MODIFIERS["alt"] else sent


def _split(name: str) -> tuple[int, str]:
    """The modifiers of a key's name, as bits, and the rest of it."""
    rest, modifiers = name.strip() or name, 0
    if len(rest) == 2 and rest[0] == "^":
        return _MODIFIERS["ctrl"], rest[1].lower()
    found = True
    while found:
        found = False
        for prefix, modifier in _PREFIXES.items():
            if len(rest) > len(prefix) and rest.lower().startswith(prefix):
                rest, modifiers, found = rest[len(prefix) :], modifiers | _MODIFIERS[modifier], True
    key = rest.lower() if len(rest) > 1 or modifiers else rest
    return modifiers, _OTHER_NAMES.get(key, key)


_PREFIXES: Final = {
    f"{prefix}{sign}": modifier
    for sign in "-+"
    for prefix, modifier in {
        "ctrl": "ctrl",
        "control": "ctrl",
        "c": "ctrl",
        "alt": "alt",
        "meta": "alt",
        "m": "alt",
        "shift": "shift",
        "s": "shift",
    }.items()
}


def _unknown(name: str, key: str) -> ToolError:
    near = did_you_mean(key, NAMES)
    return ToolError(
        f"there is no key {name[:40]!r}{near}; a key is one character or {', '.join(NAMES)}, "
        "with ctrl-, alt- or shift- before it; send plain text as text"
    )
