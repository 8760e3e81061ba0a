"""A call of `call_tool` as the call of the tool that it names.

The request is written anew, as if the client had called that tool. So errors, questions, progress, scopes, rates and
the record of the call are the tool's own, and none of them knows of `call_tool`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from longshore.errors import ToolError
from longshore.registry.tool import Entry
from longshore.server.call import Call, CallParams
from longshore.server.link import Link, WrappedLink
from longshore.server.policy import CALL_TOOL
from longshore.wire.codec import BROKEN, encode
from longshore.wire.messages import Id

if TYPE_CHECKING:
    from longshore.server.engine import Engine

_NO_ARGUMENTS: Final = Raw(b"{}")


@final
class CalledToolLink(WrappedLink):
    """The link of a request that was written anew. Its client's headers repeat the arguments of `call_tool`."""

    __slots__ = ()

    def __init__(self, outer: Link) -> None:
        super().__init__(outer)
        self.headers = None


class ToolCall(Struct, forbid_unknown_fields=True):
    """The arguments of `call_tool`."""

    name: str
    arguments: Raw = _NO_ARGUMENTS


class InvalidArguments(Exception):
    """The arguments of `call_tool` itself are wrong: the text has a line for each fault."""


class _Meta(Struct):
    meta: Raw | UnsetType = field(name="_meta", default=UNSET)


class _Request(Struct):
    params: _Meta


_read_call: Final = msgspec.json.Decoder(ToolCall).decode
_read_request: Final = msgspec.json.Decoder(_Request).decode


def find_called(engine: Engine, call: Call) -> tuple[ToolCall, tuple[str, ...]]:
    """The tool that a call of `call_tool` names, with its arguments, and what was repaired of them.

    Raises InvalidArguments or ToolError.
    """
    found, notes = _read_arguments(call.entry, call.arguments)
    if found.name == CALL_TOOL:
        raise ToolError(f"{CALL_TOOL} can't call itself: give it the name and the arguments of the tool that you mean")
    principal = call.link.principal
    if engine.find_tool(found.name, principal) is None:
        from longshore.server.unknown_tool import explain

        raise ToolError(explain(engine, found.name, principal=principal))
    return found, notes


def write_request(id: Id, params: CallParams, frame: bytes | memoryview, found: ToolCall) -> bytes:
    """The request of a client that calls the tool itself, with everything else of the one that came."""
    made: dict[str, Any] = {
        "name": found.name,
        "arguments": found.arguments,
        "_meta": _read_request(frame).params.meta,
        "inputResponses": params.input_responses,
        "requestState": params.request_state,
    }
    given = {name: value for name, value in made.items() if value is not UNSET}
    return encode({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": given})


def _read_arguments(entry: Entry, raw: Raw) -> tuple[ToolCall, tuple[str, ...]]:
    try:
        found = _read_call(raw)
        if bytes(found.arguments)[:1] == b"{":
            return found, ()
    except BROKEN:
        pass
    return _repair(entry, raw)


def _repair(entry: Entry, raw: Raw) -> tuple[ToolCall, tuple[str, ...]]:
    """Arguments in another form than that of the schema, read and explained as those of any tool."""
    if entry.toolset is not None and entry.toolset.lazy is not None:
        entry.toolset.lazy.load_now()  # only the code knows its types
    notes: tuple[str, ...] = ()
    try:
        values: Any = entry.decode(raw)
    except Exception as problem:
        reading = entry.explain(_NO_ARGUMENTS if bytes(raw) == b"null" else raw, problem)
        if reading.faults:
            raise InvalidArguments(f"{entry.name}: invalid arguments\n" + "\n".join(reading.faults)) from None
        values, notes = reading.arguments, reading.notes
    return ToolCall(values.name, Raw(encode(values.arguments or {}))), notes
