"""The interface between a session and a transport: a channel carries frames and does not parse them.

There are two kinds. A duplex channel (a child's pipes, memory) has one stream in each direction. Over HTTP each request
has its own response stream, so a request can fail alone, and cancelling it closes its stream. A session treats both
alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from msgspec import Struct

from longshore.errors import ClientError
from longshore.limits import Limits
from longshore.protocol.revisions import Revision
from longshore.wire.messages import Id

CLIENT_LIMITS = Limits(frame_bytes=64 << 20, batch=10_000)
"""A client takes larger frames and batches than a server: it chose its peer, and results outgrow arguments."""


class TransportOptions(Struct, frozen=True):
    """The arguments of `Client` that belong to the transport."""

    env: Mapping[str, str] | None = None
    cwd: str | None = None
    headers: Mapping[str, str] | None = None
    auth: Any = None
    limits: Limits = CLIENT_LIMITS


class FrameInfo(Struct, frozen=True):
    """The method and subject of a frame, which HTTP repeats in headers."""

    method: str
    id: Id | None = None
    """None: a notification, or an answer of ours."""
    name: str | None = None
    """The tool, prompt or URI that the request is about."""
    headers: tuple[tuple[str, str], ...] = ()
    """Arguments that HTTP headers repeat."""


class ChannelEvents(Protocol):
    """Receives what a channel reports. A session is one."""

    def on_frame(self, frame: bytes) -> None:
        """A whole frame arrived."""

    def on_failure(self, id: Id, problem: ClientError) -> None:
        """This request will get no answer."""

    def on_lost(self, problem: ClientError) -> None:
        """No request will get an answer any more. Reported at most once, and never after `close` began."""

    def on_login(self, started: bool) -> None:
        """A person began or ended a login. Deadlines stop in between."""

    def note(self, text: str) -> None:
        """Report an unexpected event that fails no request."""


class Channel:
    """Subclasses do the I/O. A channel is opened once, lives on one event loop, and is closed once or more.

    `send` never blocks and never raises for errors of the peer: these go to `events`.
    """

    label: str = ""
    """The server's name in error messages."""
    shared: bool = False
    """Whether each request has its own response stream."""
    handshake_only: bool = False
    """Whether only servers of the handshake era can be reached by this transport."""
    congested: bool = False
    """Whether a sender should await `ready` first."""

    def __init__(self, events: ChannelEvents) -> None:
        self.events = events

    async def open(self) -> None:
        """Start or reach the server. Raises ConnectError."""

    def send(self, frame: bytes, info: FrameInfo) -> None:
        raise NotImplementedError

    def cancel(self, id: Id, frame: bytes) -> None:  # noqa: ARG002 - for transports with a stream for each request
        """Cancel a request. `frame` is its cancellation notification."""
        self.send(frame, FrameInfo("notifications/cancelled"))

    @property
    def ended(self) -> bool:
        """Whether the server is a child process that has ended."""
        return False

    async def ready(self) -> None:
        """Wait while the channel is congested, or until the handshake that was just confirmed is complete."""

    def speak(self, revision: Revision) -> None:
        """The revision was negotiated."""

    async def close(self) -> None:
        """Release everything."""

    def stderr_tail(self) -> str:
        """The last lines that the server printed on its stderr."""
        return ""


ChannelFactory = Callable[[ChannelEvents], Channel]
