"""The fast lane: tools that are called often are read in one pass, from the frame straight into their typed
arguments.

`tools/call` is first read with its arguments raw, because only then is it known whose they are. Once a tool has been
called a few times it joins a union of request types, told apart by the tool's name, and from then on the parser
itself picks the type. A frame that does not fit, for whatever reason, is read again the ordinary way, which knows
how to explain what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal, Union, final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from longshore.protocol.envelope import Envelope
from longshore.registry.tool import Entry
from longshore.wire.messages import WireId

JOIN_CALLS: Final = 4
"""After so many calls a tool joins: a tool that is called once should not cost a decoder."""
MOST_TOOLS: Final = 64
"""The union is built anew for each tool that joins, so it may not grow with a server of thousands."""


class CallParams(Struct, gc=False):
    """Parameters of `tools/call`, read the ordinary way."""

    name: str
    arguments: Raw = Raw(b"{}")
    meta: Envelope | UnsetType = field(name="_meta", default=UNSET)
    input_responses: Raw | UnsetType = field(name="inputResponses", default=UNSET)
    request_state: str | UnsetType = field(name="requestState", default=UNSET)


class CallRequest(Struct, gc=False):
    """A whole `tools/call`."""

    jsonrpc: Literal["2.0"]
    id: WireId
    method: Literal["tools/call"]
    params: CallParams


read_call: Final[Callable[[Any], CallRequest]] = msgspec.json.Decoder(CallRequest).decode


@final
class Lane:
    """The tools that are read in one pass. `read` raises for every frame that is not a good call of one of them."""

    __slots__ = ("entries", "read", "tried")

    def __init__(self) -> None:
        self.entries: dict[type, Entry] = {}
        self.read: Callable[[Any], Any] = read_call
        self.tried: set[str] = set()
        """The tools that have come, whether they were let in or not: once is enough."""

    def join(self, entry: Entry) -> None:
        """Let a tool in, if its arguments have a type and there is room."""
        self.tried.add(entry.name)
        if entry.arguments is None or len(self.entries) >= MOST_TOOLS:
            return
        entries = {**self.entries, _params_type(entry): entry}
        request = msgspec.defstruct(
            "LaneRequest",
            [
                ("jsonrpc", Literal["2.0"]),
                ("id", WireId),
                ("method", Literal["tools/call"]),
                ("params", Union[tuple(entries)]),  # noqa: UP007  (its members are known only now)
            ],
            gc=False,
        )
        from longshore.schema.custom_type import decode_special

        try:
            self.read = msgspec.json.Decoder(request, dec_hook=decode_special).decode
        except TypeError:
            return  # a type that msgspec can't put into a union; it stays with the ordinary way
        self.entries = entries


def _params_type(entry: Entry) -> type:
    assert entry.arguments is not None
    optional = not any(f.required for f in msgspec.structs.fields(entry.arguments))
    arguments: Any = ("arguments", entry.arguments)
    if optional:
        arguments = ("arguments", entry.arguments, field(default_factory=entry.arguments))
    rest: list[Any] = [
        ("meta", Envelope | UnsetType, field(name="_meta", default=UNSET)),
        ("input_responses", Raw | UnsetType, field(name="inputResponses", default=UNSET)),
        ("request_state", str | UnsetType, field(name="requestState", default=UNSET)),
    ]
    return msgspec.defstruct("LaneParams", [arguments, *rest], tag_field="name", tag=entry.name, gc=False)
