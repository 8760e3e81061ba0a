"""Standing between a server and its real client: where what this client has no handler for goes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, final

from msgspec import Struct
from msgspec.structs import replace

from longshore.client.answering import Answering
from longshore.client.hearing import Hearing
from longshore.client.line import Line
from longshore.client.listing import Listing
from longshore.client.records import LogMessage
from longshore.client.session import Session
from longshore.errors import ClientError, ConnectionLost


class Relay(Struct, frozen=True):
    """`ask` answers a server's question or raises Unanswerable; `log` and `lost` are told what happens."""

    capabilities: Mapping[str, Any]
    """What a server may ask, by what the real clients can do."""
    ask: Callable[[str, Mapping[str, Any]], Awaitable[Any]]
    log: Callable[[LogMessage], Any]
    lost: Callable[[ClientError], Any]


@final
class Relaying:
    """The part of a client that a mount takes over."""

    def __init__(self, line: Line, answering: Answering, hearing: Hearing, listing: Listing) -> None:
        self._line, self._answering, self._hearing, self._listing = line, answering, hearing, listing
        self._begun = False
        self._resends = line.reconnect

    def begin(self, relay: Relay) -> dict[str, Any]:
        """Have others answer and hear what the client has no handlers for. Gives what it declares by itself.

        Before it is opened: servers of the handshake era are told only once what their client can do. From then on
        whoever relays makes lost connections again: two who do that would start a server more often than either.
        """
        line = self._line
        if self._begun or not line.closed:
            raise ClientError("the client is open or relayed already", line.name)
        self._begun = True
        line.reconnect = False
        own = dict(line.wish.capabilities)
        line.wish = replace(line.wish, capabilities={**relay.capabilities, **own})
        self._answering.relay = relay.ask
        if self._hearing.on_log is None:
            self._hearing.on_log = relay.log
        before = line.lost

        def lost(session: Session) -> None:
            if session.gone is not None:
                relay.lost(session.gone)
            before(session)

        line.lost = lost
        return own

    @property
    def left_out(self) -> list[str]:
        """What the client left out of lists, and why."""
        return list(self._listing.problems)

    def resends(self, tool: str, problem: ConnectionLost) -> bool:
        """Whether a call that was under way when the connection was lost may be sent again on another."""
        return self._resends and (problem.unsent or self._listing.repeatable(tool))

    def lifetime(self, kinds: Iterable[str]) -> float:
        """For how many seconds the server lets the lists of these kinds be kept: the least of them."""
        return self._listing.lifetime(kinds)

    def handles(self, method: str) -> bool:
        """Whether the client answers questions of this kind by itself."""
        return self._answering.handles(method)

    async def answer(self, method: str, params: Mapping[str, Any]) -> Any:
        """The answer of the client's own handler to a question."""
        return await self._answering.answer(method, params)
