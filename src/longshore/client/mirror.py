"""Which arguments the headers of a modern HTTP call repeat, and how they are written there."""

from __future__ import annotations

from binascii import b2a_base64
from collections.abc import Mapping
from math import isfinite
from typing import Any, cast

import msgspec

from longshore.protocol.http_headers import PARAM, HeaderParam, read_value

_PREFIX = PARAM.decode()


def mirrored(params: tuple[HeaderParam, ...], arguments: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """The headers of a call, of what the body says: an enum's value, a date's text. What is absent or null has none."""
    arguments = msgspec.to_builtins(arguments)
    found: list[tuple[str, str]] = []
    for param in params:
        value: Any = arguments
        for step in param.path:
            value = cast("Mapping[str, Any]", value).get(step) if isinstance(value, Mapping) else None
        if isinstance(value, (str, int)) or (isinstance(value, float) and isfinite(value)):  # JSON has no other numbers
            found.append((_spelled(param.header), write_value(_text(value))))
    return tuple(found)


def _spelled(header: bytes) -> str:
    name = header.decode()
    return "Mcp-Param-" + name.removeprefix(_PREFIX).title()


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def write_value(text: str) -> str:
    """A text as a header can hold it: as it is, or in the base64 form."""
    plain = text.encode("utf-8")
    sealed = text.startswith("=?base64?") and text.endswith("?=")
    if not sealed and text.isascii() and text.isprintable() and read_value(plain) == text:
        return text
    return "=?base64?" + b2a_base64(plain, newline=False).decode() + "?="
