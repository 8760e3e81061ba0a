"""The in-flight table and the handshake: the rules by which each request is answered exactly once. No I/O, no clock.

One session is one scope of request ids: a stdio process, a handshake-era HTTP session, or a single modern HTTP
request. `begin` opens a row and refuses an id that is in flight. The row is closed by the first of `end` (an answer is
due) and `cancel` (none is); the second one returns False or None, and its caller sends nothing. That is the whole
guarantee; hypothesis checks it in tests.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar, final

from longshore.errors import ProtocolError
from longshore.protocol.peer import Envelope, Peer, cacheable, modern_peer
from longshore.protocol.revisions import METHODS, Revision
from longshore.wire.codec import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND
from longshore.wire.messages import Id

Row = TypeVar("Row")


@final
class Session(Generic[Row]):
    """State of one scope. `peer` is set by the handshake and stays None where every request is modern."""

    __slots__ = (
        "_envelope",
        "_modern",
        "asked",
        "client_roots",
        "declared",
        "initialized",
        "input_ended",
        "label",
        "name",
        "next_ask",
        "opened_at",
        "peer",
        "queue",
        "rows",
        "state",
        "subscriptions",
    )

    def __init__(self, peer: Peer | None = None) -> None:
        self.peer = peer
        self.initialized = peer is not None
        self.rows: dict[Id, Row] = {}
        self.subscriptions: set[str] = set()
        self.asked: dict[Id, Row] = {}
        self.next_ask = 0
        self.client_roots: Any = None
        """What the client says of its roots, once a call has needed them."""
        self.state: Any = None
        """Where its calls keep values for one another, once a call has needed it."""
        self.name = "longshore"
        """The prefix of the ids of our own requests. Processes that serve one session each have their own."""
        self.declared: frozenset[str] = frozenset()
        """The server capabilities declared in the handshake; changes of others are not pushed to the peer."""
        self.label = ""
        """Its name in telemetry records, once one was made. Its id, over HTTP, is a secret."""
        self.opened_at = 0.0
        """When its handshake was recorded; 0: it was not."""
        self.input_ended = False
        """Whether the peer sends nothing more, so that no question will be answered."""
        self.queue: Any = None
        """Requests that wait for earlier ones, where a dialect runs them one after the other."""
        self._envelope: Envelope | None = None
        self._modern: Peer | None = None

    def sender(self, envelope: Envelope) -> Peer:
        """The peer of a modern request. A client sends the same envelope each time, so the last one is cached."""
        if self._modern is not None and envelope == self._envelope:
            return self._modern
        peer = modern_peer(envelope)
        cached = cacheable(envelope)
        if cached is not None:
            self._envelope, self._modern = cached, peer
        return peer

    # -- the exactly-once rule

    def begin(self, id: Id, row: Row) -> None:
        """Open a row. Raises for an id that is in flight."""
        self.refuse_duplicate(id)
        self.rows[id] = row

    def refuse_duplicate(self, id: Id) -> None:
        """Raise if a request with this id is in flight. For a request that is answered at once, without a row."""
        if id in self.rows:
            raise ProtocolError(INVALID_REQUEST, "a request with this id is in flight")

    def end(self, id: Id, row: Row) -> bool:
        """Close a row to answer it. False: it was cancelled or answered before, and nothing may be sent."""
        if self.rows.get(id) is not row:
            return False
        del self.rows[id]
        return True

    def cancel(self, id: Id) -> Row | None:
        """Close a row without an answer. None: no such request is in flight, which is not an error."""
        return self.rows.pop(id, None)

    # -- requests that wait for earlier ones

    @property
    def is_busy(self) -> bool:
        """Whether a request is in flight, or waits for an earlier one."""
        return bool(self.rows or self.queue)

    def proceed(self) -> None:
        """Begin the waiting requests whose turn it is."""
        if self.queue is not None:
            self.queue.proceed()

    def drop_queue(self) -> None:
        """Drop the waiting requests of a peer that is gone."""
        if self.queue is not None:
            self.queue.clear()

    # -- requests of ours to the peer, in the handshake era

    def ask(self, row: Row) -> Id:
        """A fresh id for a request of ours."""
        self.next_ask += 1
        id = f"{self.name}-{self.next_ask}"
        self.asked[id] = row
        return id

    def answered(self, id: Id) -> Row | None:
        """Close a request of ours and return its row. None: it is unknown, or was answered before."""
        return self.asked.pop(id, None)

    # -- the handshake

    def open(self, peer: Peer, declared: frozenset[str] = frozenset()) -> None:
        """Complete the handshake. A second one replaces the first: some clients retry it."""
        self.peer = peer
        self.declared = declared
        self.initialized = False
        self.subscriptions.clear()
        self.client_roots = None

    def require_peer(self, method: str) -> Peer:
        """The handshake's peer. Before the handshake, raises an error that tells the client how to begin."""
        if self.peer is None:
            raise ProtocolError(
                INVALID_PARAMS,
                f"{method} came before initialize; send initialize first, or put the 2026-07-28 envelope "
                'into params._meta ("io.modelcontextprotocol/protocolVersion" and "…/clientCapabilities")',
            )
        return self.peer


def check_method(method: str, revision: Revision | None, capabilities: frozenset[str]) -> None:
    """Refuse a method that does not exist, or not in this revision, or not on this server."""
    known = METHODS.get(method)
    if known is None:
        raise ProtocolError(METHOD_NOT_FOUND, f"no method {method[:100]!r}")
    if revision is not None and not known.first <= revision.index <= known.last:
        raise ProtocolError(METHOD_NOT_FOUND, f"no method {method!r} in {revision.name}")
    if known.capability and known.capability not in capabilities:
        raise ProtocolError(METHOD_NOT_FOUND, f"this server has no {known.capability}")
