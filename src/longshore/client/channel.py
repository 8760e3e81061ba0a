"""A way to one server: it carries frames there and back, and knows nothing of what they say.

There are two kinds. A duplex one (a child's pipes, memory) has one stream each way. Over HTTP each request has its own
stream of answers, so a request can fail alone, and giving up on it closes its stream. The session treats both alike.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from longshore.errors import ClientError
from longshore.limits import Limits
from longshore.protocol.revisions import Revision
from longshore.wire.messages import Id

CLIENT_LIMITS = Limits(frame_bytes=64 << 20, batch=10_000)
"""A client takes larger frames and batches than a server: it chose whom to talk to, and results outgrow arguments."""


class About(Struct, frozen=True):
    """What a frame is, for a transport that must say so beside the frame."""

    method: str
    id: Id | None = None
    """None: a notification, or an answer of ours."""
    name: str | None = None
    """The tool, prompt or URI that it is about."""
    headers: tuple[tuple[str, str], ...] = ()
    """Arguments that headers repeat."""


class Channel:
    """Subclasses do the I/O. A channel is opened once, lives on one event loop, and is closed once or more.

    - `hear` is called with every whole frame that comes.
    - `fail` is called when one request will get no answer; `lose` when none ever will, at most once and never after
      `close` began.
    - `send` never blocks and never raises for what the other side does: it reports by `fail` or `lose`.
    - `note` is called with what is odd and fails nothing.
    """

    where: str = ""
    shared: bool = False
    """Whether each request has its own stream of answers."""
    handshake_only: bool = False
    """Whether only servers of the handshake era are reached this way."""
    logs_in: bool = False
    """Whether a person may have to log in, so that it should be looked whether one is waited for."""

    def __init__(self) -> None:
        self.congested = False
        self.hear: Callable[[bytes], None] = _unset
        self.fail: Callable[[Id, ClientError], None] = _unset
        self.lose: Callable[[ClientError], None] = _unset
        self.note: Callable[[str], None] = _unset

    async def open(self) -> None:
        """Start or reach the server. Raises ConnectError."""

    def send(self, frame: bytes, about: About) -> None:
        raise NotImplementedError

    def cancel(self, id: Id, frame: bytes) -> None:  # noqa: ARG002 - for those with a stream for each request
        """We gave up on a request. `frame` is the notification that says so."""
        self.send(frame, About("notifications/cancelled"))

    @property
    def waiting(self) -> bool:
        """Whether it waits for a person, who logs in somewhere. No clock runs meanwhile."""
        return False

    @property
    def ended(self) -> bool:
        """Whether the server is a process, and has ended."""
        return False

    async def ready(self) -> None:
        """Wait until what was sent is on its way."""

    def speak(self, revision: Revision) -> None:
        """The two sides have agreed on a revision."""

    async def close(self) -> None:
        """End it. Nothing of it is left then."""

    def said(self) -> str:
        """The last that the server printed beside the protocol."""
        return ""


def _unset(*_: object) -> None:
    raise AssertionError("the channel was not given to a session")
