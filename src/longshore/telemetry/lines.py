"""A record as one line of JSON, as stderr and the log file have it."""

from __future__ import annotations

import msgspec

from longshore.telemetry.records import Level, Record

FIELD_CHARACTERS = 2048
"""Of one field of a JSON line: some twenty lines of text. A client's text must not fill the log."""

LONG_CHARACTERS = 16 << 10
"""Of a trace, its end, with the message: more than a hundred frames, and a quarter of a pipe's buffer. Of arguments and
results, where they are asked for, the beginning."""

_LONG = frozenset({"trace", "arguments", "result"})
_encode = msgspec.json.Encoder().encode


def json_line(record: Record, level: Level) -> bytes:
    """A record on one line, without what it does not say."""
    fields = {"level": level, **msgspec.to_builtins(record)}
    text = _encode({key: _cut(key, value) for key, value in fields.items() if value not in ("", None)}).decode()
    return f"{text if text.isprintable() else escape(text)}\n".encode()


def escape(text: str) -> str:
    """JSON with unprintable characters escaped. JSON itself escapes only the ASCII controls."""
    pairs = ((char, char.encode("utf-16-be")) for char in text)
    return "".join(
        char if char.isprintable() else "".join(f"\\u{raw[at : at + 2].hex()}" for at in range(0, len(raw), 2))
        for char, raw in pairs
    )


def _cut(key: str, value: object) -> object:
    """A field cut to fit on a line. A text without an encoding, such as some file names, is escaped."""
    if not isinstance(value, str):
        return value
    text = value.encode(errors="backslashreplace").decode()
    most = LONG_CHARACTERS if key in _LONG else FIELD_CHARACTERS
    if len(text) <= most:
        return text
    return "…" + text[-most:] if key == "trace" else text[:most] + "…"
