"""A channel around another, which it leaves as it is: for those that only look on."""

from __future__ import annotations

from longshore.client.channel import About, Channel
from longshore.errors import ClientError
from longshore.protocol.revisions import Revision
from longshore.wire.messages import Id


class PassingChannel(Channel):
    """Passes everything on, both ways."""

    def __init__(self, inner: Channel) -> None:
        self._inner = inner
        super().__init__()
        self.shared, self.handshake_only, self.logs_in = inner.shared, inner.handshake_only, inner.logs_in
        inner.hear, inner.fail, inner.lose = self.heard, self.failed, self.lost
        inner.note = lambda text: self.note(text)

    # These change when the server is reached.

    @property
    def where(self) -> str:
        return self._inner.where

    @where.setter
    def where(self, where: str) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]
        self._inner.where = where

    @property
    def congested(self) -> bool:
        return self._inner.congested

    @congested.setter
    def congested(self, _: bool) -> None:
        """That is the inner one's to say."""

    @property
    def waiting(self) -> bool:
        return self._inner.waiting

    @property
    def ended(self) -> bool:
        return self._inner.ended

    # -- what comes

    def heard(self, frame: bytes) -> None:
        self.hear(frame)

    def failed(self, id: Id, problem: ClientError) -> None:
        self.fail(id, problem)

    def lost(self, problem: ClientError) -> None:
        self.lose(problem)

    # -- what goes

    async def open(self) -> None:
        await self._inner.open()

    def send(self, frame: bytes, about: About) -> None:
        self._inner.send(frame, about)

    def cancel(self, id: Id, frame: bytes) -> None:
        self._inner.cancel(id, frame)

    async def ready(self) -> None:
        await self._inner.ready()

    def speak(self, revision: Revision) -> None:
        self._inner.speak(revision)

    async def close(self) -> None:
        await self._inner.close()

    def said(self) -> str:
        return self._inner.said()
