"""Compares headers with arguments that are sent in another form than the tool's: an old name, an earlier version, JSON
inside a string.

The headers must equal the arguments that the tool receives, or a call passes a proxy by the one and reaches the tool
with the other.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from longshore.protocol.http_headers import Headers
from longshore.registry.tool import Entry
from longshore.schema.kinds import is_object
from longshore.schema.output import encode


class _Params(Struct):
    arguments: Any = None


class _Call(Struct):
    params: _Params


def check_sent(entry: Entry, headers: Headers, frame: bytes | memoryview) -> None:
    """Compare the headers with the arguments as sent, under the current names of their parameters."""
    arguments = msgspec.json.decode(frame, type=_Call).params.arguments
    renames: dict[str, str] = getattr(entry.explain, "renames", {})
    if is_object(arguments) and not renames.keys().isdisjoint(arguments):
        arguments = {new: arguments[name] for name, new in renames.items() if name in arguments} | arguments
    headers.check_params(entry.headers, arguments)


def check_repaired(entry: Entry, headers: Headers, arguments: Any) -> None:
    """Compare the headers with repaired arguments. No header repeats one that equals its default."""
    names = {param.path[0] for param in entry.headers}
    if not is_object(arguments):
        found = ((field, getattr(arguments, field.name)) for field in msgspec.structs.fields(arguments))
        arguments = {field.encode_name: value for field, value in found if value is not field.default}
    given = {name: arguments[name] for name in names if name in arguments}
    headers.check_params(entry.headers, msgspec.json.decode(encode(given)))
