"""A way back to one peer. Transports subclass it; the engine knows nothing else of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from longshore.protocol.peer import Principal
from longshore.protocol.session import Session

if TYPE_CHECKING:
    from longshore.protocol.dialect import Kind
    from longshore.protocol.headers import Headers

LOCAL = Principal()


class Link:
    """Where the answers of one request scope go.

    - `send` takes a notification or a request of ours, `answer` a response; `answer(None)` says that none will come.
    - `congested` is True while the peer does not take what it was sent; nothing new is started for it then.
    - `caller` names the owner and the session or connection whose calls take turns; None: it is the only peer.
    - `has_status` is True where a refusal has a status of its own, as in HTTP.
    - `headers` is what an HTTP request says beside its body, if the two must agree: then it is a modern request.
    """

    __slots__ = ("caller", "congested", "headers", "principal", "session")
    has_status: ClassVar[bool] = False

    def __init__(self, session: Session[Any] | None = None, principal: Principal = LOCAL) -> None:
        self.session: Session[Any] = Session() if session is None else session
        self.principal = principal
        self.caller: tuple[str, object] | None = None
        self.congested = False
        self.headers: Headers | None = None

    @property
    def home(self) -> Link:
        """Where notices go that belong to no request. A link that outlives its requests is its own home."""
        return self

    @property
    def owner(self) -> object:
        """Whose listens are counted together."""
        return self

    def close_stream(self, retry: float | None) -> None:
        """Let the connection go but not the request, where the peer can come back for the answer."""

    def failed(self, kind: Kind) -> None:
        """Take note of why the answer to come is a failure."""

    def send(self, frame: bytes) -> None:
        raise NotImplementedError

    def answer(self, frame: bytes | None) -> None:
        if frame is not None:
            self.send(frame)


class BatchLink(Link):
    """Collects the answers to one batch and sends them as one array, when the last is there."""

    __slots__ = ("_answers", "_missing", "_outer")

    def __init__(self, outer: Link, requests: int) -> None:
        super().__init__(outer.session, outer.principal)
        self.caller = outer.caller
        self.headers = outer.headers
        self._outer = outer
        self._missing = requests
        self._answers: list[bytes] = []

    @property
    def home(self) -> Link:
        return self._outer.home

    @property
    def owner(self) -> object:
        return self._outer.owner

    def send(self, frame: bytes) -> None:
        self._outer.send(frame)

    def answer(self, frame: bytes | None) -> None:
        self._missing -= 1
        if frame is not None:
            self._answers.append(frame)
        if self._missing == 0:
            self._outer.answer(b"[" + b",".join(self._answers) + b"]" if self._answers else None)
