"""The in-flight table and the handshake: the rules that make an answer come exactly once. No I/O, no clock.

One session stands for one scope of request ids: a stdio process, a handshake-era HTTP session, or a single modern
HTTP request. A row is opened by `begin`, and closed by whichever comes first of `end` (an answer is due) and
`cancel` (none is). Whoever comes second is told so and must stay silent. That is the whole guarantee, and hypothesis
walks it in tests.
"""

from __future__ import annotations

from typing import Generic, TypeVar, final

from longshore.errors import ProtocolError
from longshore.protocol.envelope import Envelope, modern_peer, remembered
from longshore.protocol.peer import Peer
from longshore.protocol.revisions import METHODS, Revision
from longshore.wire.codec import INVALID_PARAMS, METHOD_NOT_FOUND
from longshore.wire.messages import Id

Row = TypeVar("Row")


@final
class Session(Generic[Row]):
    """State of one scope. `peer` is set by the handshake and stays None where every request is modern."""

    __slots__ = (
        "_envelope",
        "_modern",
        "asked",
        "deaf",
        "declared",
        "initialized",
        "name",
        "next_ask",
        "peer",
        "rows",
        "subscriptions",
    )

    def __init__(self, peer: Peer | None = None) -> None:
        self.peer = peer
        self.initialized = peer is not None
        self.rows: dict[Id, Row] = {}
        self.subscriptions: set[str] = set()
        self.asked: dict[Id, Row] = {}
        self.next_ask = 0
        self.name = "longshore"
        """Begins the ids of our own requests. Processes that serve one session together each have their own."""
        self.declared: frozenset[str] = frozenset()
        """The server capabilities that the handshake told the peer of; what it was not told of is not pushed to it."""
        self.deaf = False
        """Whether the peer has said its last word, so that nothing we ask will be answered."""
        self._envelope: Envelope | None = None
        self._modern: Peer | None = None

    def sender(self, envelope: Envelope) -> Peer:
        """Who sent a modern request. A client says the same of itself in all of them, so the last is remembered."""
        if self._modern is not None and envelope == self._envelope:
            return self._modern
        peer = modern_peer(envelope)
        kept = remembered(envelope)
        if kept is not None:
            self._envelope, self._modern = kept, peer
        return peer

    # -- the exactly-once rule

    def begin(self, id: Id, row: Row) -> bool:
        """Open a row. False: a request with this id is in flight, and this one must be refused."""
        if id in self.rows:
            return False
        self.rows[id] = row
        return True

    def end(self, id: Id, row: Row) -> bool:
        """Close a row to answer it. False: it was cancelled or answered, so nothing may be sent."""
        if self.rows.get(id) is not row:
            return False
        del self.rows[id]
        return True

    def cancel(self, id: Id) -> Row | None:
        """Close a row that will not be answered. None: no such request is in flight, which is no fault."""
        return self.rows.pop(id, None)

    # -- requests of ours to the peer, in the handshake era

    def ask(self, row: Row) -> Id:
        """A fresh id for a request of ours."""
        self.next_ask += 1
        id = f"{self.name}-{self.next_ask}"
        self.asked[id] = row
        return id

    def answered(self, id: Id) -> Row | None:
        """Whose question this response answers. None: nobody asked, or it was answered before."""
        return self.asked.pop(id, None)

    # -- the handshake

    def open(self, peer: Peer, declared: frozenset[str] = frozenset()) -> None:
        """`initialize` was answered. A second handshake replaces the first: some clients retry it."""
        self.peer = peer
        self.declared = declared
        self.initialized = False
        self.subscriptions.clear()

    def require_peer(self, method: str) -> Peer:
        """The handshake's peer, or the refusal that tells a client how to begin."""
        if self.peer is None:
            raise ProtocolError(
                INVALID_PARAMS,
                f"{method} came before initialize; send initialize first, or put the 2026-07-28 envelope "
                'into params._meta ("io.modelcontextprotocol/protocolVersion" and "…/clientCapabilities")',
            )
        return self.peer


def check_method(method: str, revision: Revision | None, capabilities: frozenset[str]) -> None:
    """Refuse a method that does not exist, not in this revision, or not on this server."""
    known = METHODS.get(method)
    if known is None:
        raise ProtocolError(METHOD_NOT_FOUND, f"no method {method[:100]!r}")
    if revision is not None and not known.first <= revision.index <= known.last:
        raise ProtocolError(METHOD_NOT_FOUND, f"no method {method!r} in {revision.name}")
    if known.capability and known.capability not in capabilities:
        raise ProtocolError(METHOD_NOT_FOUND, f"this server has no {known.capability}")
