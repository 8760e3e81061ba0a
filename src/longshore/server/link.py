"""A way back to one peer. Transports subclass it; the engine knows nothing else of them."""

from __future__ import annotations

from typing import Any

from longshore.protocol.peer import Principal
from longshore.protocol.session import Session

LOCAL = Principal()


class Link:
    """Where the answers of one request scope go.

    - `send` takes a notification or a request of ours, `answer` a response; `answer(None)` says that none will come.
    - `congested` is True while the peer does not take what it was sent; nothing new is started for it then.
    """

    __slots__ = ("congested", "principal", "session")

    def __init__(self, session: Session[Any] | None = None, principal: Principal = LOCAL) -> None:
        self.session: Session[Any] = Session() if session is None else session
        self.principal = principal
        self.congested = False

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
        self._outer = outer
        self._missing = requests
        self._answers: list[bytes] = []

    def send(self, frame: bytes) -> None:
        self._outer.send(frame)

    def answer(self, frame: bytes | None) -> None:
        self._missing -= 1
        if frame is not None:
            self._answers.append(frame)
        if self._missing == 0 and self._answers:
            self._outer.answer(b"[" + b",".join(self._answers) + b"]")
