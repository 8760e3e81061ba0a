"""The requests of one session that run one after the other: each begins when the one before has been answered.

A dialect asks for that (`Dialect.in_order`). Messages that are refused have their turn too, so answers go out in the
order of what they answer. What waits counts against its connection (`Link.hold_back`), which stops reading.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import final

from msgspec import Struct
from msgspec.structs import replace

from longshore.server.link import Link, WrappedLink
from longshore.wire.messages import Id, Malformed, Message

_PLACE_BYTES = 512
"""What a message that waits takes beside its frame."""


class QueuedRequest(Struct, eq=False):
    """A message that will be answered."""

    message: Message | Malformed
    frame: bytes
    link: Link
    is_cancelled: bool = False
    refusal: str = ""
    """Why it will not run; empty if it will, unless it is cancelled."""

    @property
    def size(self) -> int:
        return _PLACE_BYTES + len(self.frame)


@final
class RequestQueue:
    """The requests of one session, of which at most one runs. Its length counts those that wait."""

    __slots__ = ("_handle", "_is_proceeding", "_is_running", "_waiting")

    def __init__(self, handle: Callable[[QueuedRequest], bytes | None]) -> None:
        """`handle` answers a request now, or later through its link."""
        self._handle = handle
        self._waiting: deque[QueuedRequest] = deque()
        self._is_running = False
        self._is_proceeding = False

    def __len__(self) -> int:
        return len(self._waiting)

    def handle(self, request: QueuedRequest) -> bytes | None:
        """Answer a request if it is its turn; else later, through its link."""
        if not (self._is_running or self._waiting):
            return self._begin(request)
        self._waiting.append(request)
        request.link.hold_back(request.size)
        return None

    def proceed(self) -> None:
        """Begin the requests whose turn it is. A transport calls it when the peer reads again."""
        if self._is_proceeding:
            return
        self._is_proceeding = True
        try:
            while self._waiting and not (self._is_running or self._waiting[0].link.congested):
                request = self._waiting.popleft()
                request.link.hold_back(-request.size)
                answer = self._begin(request)
                if answer is not None:
                    request.link.answer(answer)
        finally:
            self._is_proceeding = False

    def _begin(self, request: QueuedRequest) -> bytes | None:
        self._is_running = True
        answer = self._handle(replace(request, link=_Turn(request.link, self)))
        if answer is not None:
            self._is_running = False
        return answer

    def end_turn(self) -> None:
        """Begin the next request: the running one has been answered."""
        self._is_running = False
        self.proceed()

    def cancel(self, id: Id) -> None:
        """Cancel the oldest waiting request with this id: it is answered when its turn comes."""
        for request in self._waiting:
            if request.message.id == id and not request.is_cancelled:
                request.is_cancelled = True
                return

    def refuse_all(self, why: str) -> None:
        """Refuse every waiting request when its turn comes."""
        for request in self._waiting:
            request.refusal = f"it was not run: {why}"

    def clear(self) -> None:
        """Drop every waiting request: the peer is gone."""
        self._waiting.clear()


@final
class _Turn(WrappedLink):
    """The link of the running request."""

    __slots__ = ("_queue",)

    def __init__(self, outer: Link, queue: RequestQueue) -> None:
        super().__init__(outer)
        self._queue = queue

    def answer(self, frame: bytes | None) -> None:
        super().answer(frame)
        self._queue.end_turn()
