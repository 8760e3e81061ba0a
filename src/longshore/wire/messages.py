"""The records of JSON-RPC 2.0, decoded and encoded by `wire.codec`."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

Id = int | str

MAX_ID_CHARACTERS: Final = 256
"""A string id is echoed, and held in memory while its call runs; clients use a UUID at most."""

# An id is echoed by us and compared by the peer: a 64-bit integer or a short string survives that everywhere.
WireId = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)] | Annotated[str, Meta(max_length=MAX_ID_CHARACTERS)]

NO_PARAMS: Final = Raw(b"{}")
ABSENT: Final = Raw(b"")


class Message(Struct, gc=False):
    """Any well-formed message: a request has method and id, a notification only a method, a response only an id."""

    jsonrpc: Literal["2.0"]
    method: str = ""
    id: WireId | UnsetType = UNSET
    params: Raw = NO_PARAMS
    result: Raw = ABSENT
    error: Raw = ABSENT


class Repaired(Message):
    """A message decoded from a repaired frame, because the frame as sent was not JSON."""

    frame: bytes = b""
    surrogates: bool = False
    """Whether halves of surrogate pairs were replaced, which changes the text."""


class UnreadableResponse(Message):
    """An error response that replaces an unreadable response to a request of ours."""


class Malformed(Struct, frozen=True):
    """A frame that is not a message: the error to answer, with the id and method if they could be read."""

    code: int
    text: str
    id: Id | Raw | None = None
    method: str = ""


class Batch(Struct, frozen=True):
    """An array of messages. `items` holds at most one more than the limit."""

    items: list[Raw]


class Blank(Struct, frozen=True):
    """An empty line, or a response too broken to match: nothing is answered."""


class Reply(Struct, tag_field="jsonrpc", tag="2.0", gc=False):
    """A result for a request."""

    id: Id
    result: Any


class Fault(Struct, omit_defaults=True):
    """The error member of an error response."""

    code: int
    message: str
    data: Any = UNSET


class ErrorReply(Struct, tag_field="jsonrpc", tag="2.0"):
    """An error for a request, or for a frame whose id could not be read (null)."""

    id: Id | Raw | None
    error: Fault


class Notification(Struct, tag_field="jsonrpc", tag="2.0", omit_defaults=True):
    """A message without an answer."""

    method: str
    params: Any = UNSET


class Request(Struct, tag_field="jsonrpc", tag="2.0", omit_defaults=True):
    """A request that we send to the peer."""

    id: Id
    method: str
    params: Any = UNSET
