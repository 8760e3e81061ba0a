"""Translates the arguments of a call by an alias that has parameters of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from longshore.errors import ProtocolError
from longshore.protocol.dialect import Failure
from longshore.server.call import Call, Stopped

if TYPE_CHECKING:
    from longshore.server.replies import Replies

_NULL = b"null"
_NO_ARGUMENTS = b"{}"


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
        from longshore.server.header_arguments import check_repaired

        check_repaired(entry, call.link.headers, msgspec.json.decode(call.arguments))
    return None
