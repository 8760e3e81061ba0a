"""One request in progress: its row in the in-flight table, and a decoded `tools/call`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from math import inf
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from longshore.protocol.peer import Envelope, Peer
from longshore.protocol.session import Session
from longshore.registry.tool import Entry
from longshore.server.link import Link
from longshore.wire.messages import Id, WireId

if TYPE_CHECKING:
    from longshore.server.call_queue import Caller
    from longshore.server.context import CallNotifications, Context
    from longshore.server.executor import Executor
    from longshore.server.questions import Elicitation
    from longshore.telemetry.events import RequestInfo
    from longshore.telemetry.records import TraceContext


SMALL_BYTES: Final = 1024
"""Frames up to this size are neither counted nor decoded again: a thousand of them take 8 MB at most."""
MEDIUM_BYTES: Final = 1 << 16
"""Calls with frames up to this size may start however much the running ones hold: 64 of them take 4 MB."""


class Stopped(SystemExit):
    """Raised in the main thread by a stop signal. A SystemExit: asyncio lets nothing else out of its callbacks."""


class CallParams(Struct, gc=False):
    """Parameters of `tools/call`. The arguments stay raw until the tool is known."""

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

_NAME: Final = re.compile(rb'"name"\s*:\s*"([\w.-]+)"')
_HEAD_BYTES: Final = 1024
"""Where the name of a long call's tool is looked for: clients send it before the arguments."""


def read_long_call(frame: memoryview, tools: Mapping[str, Entry]) -> CallRequest:
    """Decode a call in one pass, its arguments into the type of the tool that the first bytes name.

    `read_call` passes over the arguments and leaves them raw, to be decoded in a second pass: 1.5 ms of 6 for 10 MB.
    It remains the judge of every frame that does not fit the type, or names its tool elsewhere.
    """
    for found in _NAME.finditer(bytes(frame[:_HEAD_BYTES])):
        entry = tools.get(found[1].decode())
        decoder: Any = None if entry is None else getattr(entry.decode, "__self__", None)
        if decoder.__class__ is msgspec.json.Decoder:
            try:
                return _typed_reader(found[1].decode(), decoder)(frame)
            except Exception:  # an author's type may raise anything
                break
    return read_call(frame)


@lru_cache(maxsize=64)
def _typed_reader(tool: str, decoder: msgspec.json.Decoder[Any]) -> Callable[[Any], CallRequest]:
    """The decoder of calls of one tool, given that of its arguments."""
    fields: list[Any] = [("name", Literal[tool]), ("arguments", decoder.type)]
    params = msgspec.defstruct("TypedParams", fields, bases=(CallParams,), kw_only=True, gc=False)
    fields = [("params", params)]
    request: Any = msgspec.defstruct("TypedRequest", fields, bases=(CallRequest,), kw_only=True, gc=False)
    return msgspec.json.Decoder(request, dec_hook=decoder.dec_hook).decode


class Call(Struct, eq=False):
    """A request in progress. A Struct, because one is made for every call and a class costs three times as much."""

    executor: Executor
    link: Link
    session: Session[Any]
    peer: Peer
    id: Id
    method: str
    entry: Entry
    arguments: Any
    """Raw until the call starts, then the typed arguments."""
    frame: bytes | memoryview
    """The whole request, for `ctx.meta` and the digest of a question; dropped if the handler uses neither."""
    meta: Envelope | UnsetType = UNSET
    info: RequestInfo | None = None
    """What telemetry records of it; None: nothing is recorded."""
    received: float = 0.0
    announced: bool = False
    """Whether it was recorded that it came in."""
    recorded_arguments: bytes = b""
    trace: TraceContext | None = None
    """The trace that it belongs to, and that requests which it makes are to carry on."""
    started: float = 0.0
    deadline: float = inf
    paused: float = 0.0
    """Seconds that were left until the deadline when the call began to wait for the client."""
    ended: bool = False
    running: bool = False
    queued: bool = False
    caller: Caller | None = None
    """The session or connection that it counts against, where several share the server."""
    counted_bytes: int = 0
    """The size of a running call's frame, if it is worth counting."""
    task: Any = None
    thread: bool = False
    notifications: CallNotifications | None = None
    remarks: tuple[str, ...] = ()
    """Repairs of the arguments, which the result reports."""
    alias: str = ""
    """The name by which a tool was called whose toolset has to be imported first."""
    translated: bool = False
    """Whether the arguments were made of those of an alias, so that they are not in the frame."""
    max_age: float = 0.0
    """Seconds for which the client may cache a resource's contents."""
    made_context: Context | None = None
    elicitation: Elicitation | None = None
    failed: bool = False
    """Whether the handler's own result has `isError`."""
    number: int = 0
    """By which the console names it; 0: it was not shown."""

    def detach_frame(self) -> None:
        """Copy the frame out of the transport's buffer, and drop the objects that can be decoded from it again.

        A queued call is counted by the size of its frame; the decoded arguments may take many times as much.
        """
        frame = self.frame = bytes(self.frame)
        if self.method == "tools/call" and len(frame) > SMALL_BYTES and not self.translated:
            self.arguments = read_call(frame).params.arguments

    @property
    def context(self) -> Context:
        """The handler's view of this call, made on first use."""
        if self.made_context is None:
            self.made_context = _context_type()(self)
        return self.made_context


@cache
def _context_type() -> type[Context]:
    """The class, imported by the first call that takes a context."""
    from longshore.server.context import Context

    return Context
