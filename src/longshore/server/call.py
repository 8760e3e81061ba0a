"""One request that runs: its row in the in-flight table and everything that is known about it."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Struct, UnsetType

from longshore.protocol.envelope import Envelope
from longshore.protocol.peer import Peer
from longshore.protocol.session import Session
from longshore.registry.tool import Entry
from longshore.server.lane import read_call
from longshore.server.link import Link
from longshore.wire.messages import Id

if TYPE_CHECKING:
    from longshore.server.context import Context, Notes
    from longshore.server.executor import Executor
    from longshore.server.questions import Interview
    from longshore.server.turns import Caller


SMALL_BYTES = 1024
"""Frames up to this size are not worth counting or reading twice: a thousand of them take 8 MB at the worst."""
MEDIUM_BYTES = 1 << 16
"""Calls with frames up to this size may start however much the running ones hold: 64 of them take 4 MB."""


class Call(Struct, eq=False):
    """A request on its way. A Struct, because one is made for every call and a class costs three times as much."""

    executor: Executor
    link: Link
    session: Session[Any]
    peer: Peer
    id: Id
    method: str
    entry: Entry
    arguments: Any
    """Raw until the call starts, then what the entry's decoder made of it."""
    frame: bytes | memoryview
    """The whole request, for whoever wants `_meta` or must know it again; dropped if nobody will."""
    meta: Envelope | UnsetType = UNSET
    started: float = 0.0
    deadline: float = inf
    paused: float = 0.0
    """Seconds left on the clock of a call that waits for the client, when it began to wait."""
    ended: bool = False
    running: bool = False
    parked: bool = False
    caller: Caller | None = None
    """Whom it counts against where callers share the places."""
    held: int = 0
    """The size of the frame of a call that runs, if it is worth counting."""
    task: Any = None
    thread: bool = False
    notes: Notes | None = None
    remarks: tuple[str, ...] = ()
    """What was mended in the arguments; the result carries it."""
    max_age: float = 0.0
    """Seconds for which the client may keep what it reads."""
    made_context: Context | None = None
    interview: Interview | None = None
    failed: bool = False
    """Whether the result that the handler made says that it failed."""

    def own(self) -> None:
        """Let go of memory that the transport is about to use again, and of all that the frame can give again.

        A call that waits is counted by its frame. What was decoded of it may take many times as much.
        """
        frame = self.frame = bytes(self.frame)
        if self.method == "tools/call" and len(frame) > SMALL_BYTES:
            self.arguments = read_call(frame).params.arguments

    @property
    def context(self) -> Context:
        """The handler's view of this call, made when it is first wanted."""
        if self.made_context is None:
            from longshore.server.context import Context

            self.made_context = Context(self)
        return self.made_context
