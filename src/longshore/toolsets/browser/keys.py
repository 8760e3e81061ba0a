"""Names of keys, such as `Enter` and `Control+A`, and the input events of a keyboard for them."""

from __future__ import annotations

import sys
from typing import Any, Final

from msgspec import Struct

from longshore.errors import ToolError
from longshore.nearest import did_you_mean

InputEvent = tuple[str, dict[str, Any]]
"""A method of the protocol's Input domain and its parameters."""


class KeyboardKey(Struct, frozen=True):
    """A key as pages see it: its meaning, its place, its legacy number and the text that it types."""

    key: str
    code: str
    number: int
    text: str = ""
    location: int = 0


_NAMED: Final = {
    key.key.lower(): key
    for key in (
        KeyboardKey("Enter", "Enter", 13, "\r"),
        KeyboardKey("Tab", "Tab", 9),
        KeyboardKey("Escape", "Escape", 27),
        KeyboardKey("Backspace", "Backspace", 8),
        KeyboardKey("Delete", "Delete", 46),
        KeyboardKey("Insert", "Insert", 45),
        KeyboardKey("Home", "Home", 36),
        KeyboardKey("End", "End", 35),
        KeyboardKey("PageUp", "PageUp", 33),
        KeyboardKey("PageDown", "PageDown", 34),
        KeyboardKey("ArrowLeft", "ArrowLeft", 37),
        KeyboardKey("ArrowUp", "ArrowUp", 38),
        KeyboardKey("ArrowRight", "ArrowRight", 39),
        KeyboardKey("ArrowDown", "ArrowDown", 40),
        KeyboardKey("ContextMenu", "ContextMenu", 93),
        KeyboardKey("CapsLock", "CapsLock", 20),
        *(KeyboardKey(f"F{n}", f"F{n}", 111 + n) for n in range(1, 13)),
    )
}
_NAMED["space"] = KeyboardKey(" ", "Space", 32, " ")
_OTHER_NAMES: Final = {
    "return": "enter",
    "esc": "escape",
    "del": "delete",
    "up": "arrowup",
    "down": "arrowdown",
    "left": "arrowleft",
    "right": "arrowright",
    "pgup": "pageup",
    "pgdn": "pagedown",
    "page-up": "pageup",
    "page-down": "pagedown",
}
_MODIFIERS: Final = {
    "Alt": (1, KeyboardKey("Alt", "AltLeft", 18, location=1)),
    "Control": (2, KeyboardKey("Control", "ControlLeft", 17, location=1)),
    "Meta": (4, KeyboardKey("Meta", "MetaLeft", 91, location=1)),
    "Shift": (8, KeyboardKey("Shift", "ShiftLeft", 16, location=1)),
}
_MODIFIER_NAMES: Final = {
    "alt": "Alt",
    "option": "Alt",
    "control": "Control",
    "ctrl": "Control",
    "meta": "Meta",
    "cmd": "Meta",
    "command": "Meta",
    "shift": "Shift",
    "controlormeta": "Meta" if sys.platform == "darwin" else "Control",
}
_SHIFT: Final = 8
_PUNCTUATION: Final = {
    "`~": ("Backquote", 192),
    "-_": ("Minus", 189),
    "=+": ("Equal", 187),
    "[{": ("BracketLeft", 219),
    "]}": ("BracketRight", 221),
    "\\|": ("Backslash", 220),
    ";:": ("Semicolon", 186),
    "'\"": ("Quote", 222),
    ",<": ("Comma", 188),
    ".>": ("Period", 190),
    "/?": ("Slash", 191),
}
"""The keys of the US layout with signs, without and with shift."""
_SHIFTED_DIGITS: Final = ")!@#$%^&*("
_MAC_COMMANDS: Final = {"a": "selectAll", "c": "copy", "v": "paste", "x": "cut", "z": "undo"}
"""On macOS the system, not the page's engine, turns these keys with Meta into edits. Input events bypass it."""


def _characters() -> dict[str, KeyboardKey]:
    """The keys of the US layout by the character that each types."""
    keys = {" ": _NAMED["space"]}
    for letter in "abcdefghijklmnopqrstuvwxyz":
        for text in (letter, letter.upper()):
            keys[text] = KeyboardKey(text, f"Key{letter.upper()}", ord(letter.upper()), text)
    for digit, shifted in enumerate(_SHIFTED_DIGITS):
        for text in (str(digit), shifted):
            keys[text] = KeyboardKey(text, f"Digit{digit}", 48 + digit, text)
    for pair, (code, number) in _PUNCTUATION.items():
        for text in pair:
            keys[text] = KeyboardKey(text, code, number, text)
    return keys


_CHARACTERS: Final = _characters()
NAMES: Final = tuple(key.key if key.key != " " else "Space" for key in _NAMED.values())


def modifier_bits(names: list[str]) -> int:
    """The bits of modifiers such as Control and Shift, for a mouse event. Raises ToolError for an unknown one."""
    bits = 0
    for name in names:
        modifier = _MODIFIER_NAMES.get(name.strip().lower())
        if modifier is None:
            raise ToolError(f"there is no modifier {name[:40]!r}; use Alt, Control, Meta or Shift")
        bits |= _MODIFIERS[modifier][0]
    return bits


def press_events(name: str) -> list[InputEvent]:
    """The events of pressing and releasing a key, with its modifiers. Raises ToolError for an unknown one."""
    modifiers, key = _parse(name)
    events: list[InputEvent] = []
    bits = 0
    for each in modifiers:
        bits |= _MODIFIERS[each][0]
        events.append(_event("rawKeyDown", _MODIFIERS[each][1], bits))
    events += _stroke(key, bits)
    for each in reversed(modifiers):
        bits &= ~_MODIFIERS[each][0]
        events.append(_event("keyUp", _MODIFIERS[each][1], bits))
    return events


def type_events(text: str) -> list[InputEvent]:
    """The events of typing a text: a stroke for each character that a keyboard has, and the rest inserted."""
    events: list[InputEvent] = []
    for character in text.replace("\r\n", "\n"):
        key = _NAMED["enter"] if character == "\n" else _NAMED["tab"] if character == "\t" else None
        key = key or _CHARACTERS.get(character)
        if key is None:
            events.append(("Input.insertText", {"text": character}))
        else:
            shifted = (
                character.isupper() or character in _SHIFTED_DIGITS or any(character == p[1] for p in _PUNCTUATION)
            )
            events += _stroke(key, _SHIFT if shifted else 0)
    return events


def _parse(name: str) -> tuple[list[str], KeyboardKey]:
    """The modifiers of a key's name in the order given, and the key."""
    rest = name if len(name) == 1 else name.strip()
    parts = [*rest[:-1].split("+")[:-1], "+"] if rest.endswith("++") else rest.split("+") if rest != "+" else ["+"]
    *before, last = parts
    modifiers: list[str] = []
    for each in before:
        modifier = _MODIFIER_NAMES.get(each.strip().lower())
        if modifier is None:
            raise _unknown(name, each)
        if modifier not in modifiers:
            modifiers.append(modifier)
    if len(last) == 1 and last.isalpha() and modifiers and "Shift" not in modifiers:
        last = last.lower()  # Control+A is the key A without shift
    return modifiers, _key(name, last, "Shift" in modifiers)


def _key(name: str, last: str, shifted: bool) -> KeyboardKey:
    if len(last) == 1:
        if last not in _CHARACTERS:
            return KeyboardKey(last, "", 0, last)
        return _CHARACTERS[last.upper() if shifted and last.isalpha() else last]
    lower = last.strip().lower()
    if lower in _MODIFIER_NAMES:
        return _MODIFIERS[_MODIFIER_NAMES[lower]][1]
    key = _NAMED.get(_OTHER_NAMES.get(lower, lower))
    if key is None:
        raise _unknown(name, last)
    return key


def _stroke(key: KeyboardKey, bits: int) -> list[InputEvent]:
    """Down and up. Text is typed unless Alt, Control or Meta is held."""
    text = "" if bits & ~_SHIFT else key.text
    down = _event("keyDown" if text else "rawKeyDown", key, bits)
    if text:
        down[1]["text"] = down[1]["unmodifiedText"] = text
    if sys.platform == "darwin" and bits & _MODIFIERS["Meta"][0] and key.key.lower() in _MAC_COMMANDS:
        down[1]["commands"] = [_MAC_COMMANDS[key.key.lower()]]
    return [down, _event("keyUp", key, bits)]


def _event(kind: str, key: KeyboardKey, bits: int) -> InputEvent:
    return "Input.dispatchKeyEvent", {
        "type": kind,
        "modifiers": bits,
        "key": key.key,
        "code": key.code,
        "windowsVirtualKeyCode": key.number,
        "location": key.location,
    }


def _unknown(name: str, part: str) -> ToolError:
    near = did_you_mean(part, (*NAMES, *_MODIFIERS))
    return ToolError(
        f"there is no key {name[:40]!r}{near}; a key is one character or {', '.join(NAMES)}, "
        "with Control+, Shift+, Alt+ or Meta+ before it; send plain text as text"
    )
