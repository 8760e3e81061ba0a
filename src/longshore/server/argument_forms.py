"""Arguments that are sent in another form than the tool's: under an alias, of an earlier version, JSON inside a string.

Arguments of an alias with its own parameters are translated. Headers that repeat arguments are compared: they must
equal the arguments that the tool receives, or a call passes a proxy by the one and reaches the tool with the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from longshore.errors import ProtocolError
from longshore.protocol.dialect import Failure
from longshore.protocol.http_headers import Headers
from longshore.registry.tool import Entry
from longshore.schema.kinds import is_object
from longshore.schema.output import encode
from longshore.server.call import Call, Stopped

if TYPE_CHECKING:
    from longshore.server.replies import Replies

_NULL = b"null"
_NO_ARGUMENTS = b"{}"


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


def translate(replies: Replies, call: Call, alias: str) -> bytes | None:
    """Replace the arguments of an alias by the tool's. Returns the answer if they are invalid."""
    try:
        return _translate(replies, call, alias)
    except (Stopped, ProtocolError):
        raise
    except BaseException as problem:  # an author's validator or migration may raise anything
        return replies.exception(call, problem)[0]


def _translate(replies: Replies, call: Call, alias: str) -> bytes | None:
    entry, raw = call.entry, bytes(call.arguments)
    reading = entry.alias_migrations[alias].translate(alias, _NO_ARGUMENTS if raw == _NULL else raw)
    call.remarks = (*call.remarks, *reading.notes)
    if reading.faults:
        text = f"{alias}: invalid arguments\n" + "\n".join(reading.faults)
        return replies.failure(call, Failure("invalid_arguments", text))
    call.arguments, call.translated = reading.arguments, True
    if entry.headers and call.link.headers is not None:
        check_repaired(entry, call.link.headers, msgspec.json.decode(call.arguments))
    return None
