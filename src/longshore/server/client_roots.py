"""The roots of a handshake-era client, which narrow the folders that its calls may touch.

The client is asked by the first call that needs its folders, and again after it has said that they changed. Concurrent
calls share one question. A client that does not answer in time narrows nothing, unless it has answered before: then its
last answer counts. A late answer counts for later calls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Final, final

import msgspec
from msgspec import Meta, Struct

from longshore.errors import WouldBlock
from longshore.protocol.questions import Root
from longshore.protocol.session import Session
from longshore.sandbox.roots import Roots
from longshore.wire.codec import BROKEN, encode
from longshore.wire.messages import Id, Message, Request

if TYPE_CHECKING:
    from longshore.server.call import Call

ANSWER_SECONDS: Final = 3.0
"""How long a call waits for the client's roots. No person has to be asked, so clients answer at once."""
MOST_ROOTS: Final = 256
"""Each is looked up on the disk. A workspace of an editor has a few."""


class _Answer(Struct):
    roots: Annotated[list[Root], Meta(max_length=MOST_ROOTS)]


_read_answer = msgspec.json.Decoder(_Answer).decode


@final
class ClientRoots:
    """The roots of one session's client. All but `uris`, `current` and `narrowed` is for the serving thread."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self.uris: tuple[str, ...] | None = None
        """The last answer; None: there was none."""
        self.current = False
        """Whether there is nothing to wait for: the client has answered, or can't."""
        self.narrowed: tuple[Roots, tuple[str, ...], Roots] | None = None
        """The roots of the server when they were last narrowed, the client's, and what was left."""
        self._report = report
        self._question: Id | None = None
        self._waiting: list[Callable[[], object]] = []

    def narrowed_before(self, roots: Roots) -> Roots:
        """The part of the server's roots that is left, if it was found before and still holds. Raises WouldBlock.

        A root of the client that is a link may lead elsewhere by now. For any other it is enough that a path is opened
        which names it and follows no link.
        """
        if self.narrowed is None or self.narrowed[:2] != (roots, self.uris):
            raise WouldBlock
        left = self.narrowed[2]
        if not set(left.given) <= set(roots.given):
            raise WouldBlock
        return left

    def request(self, call: Call, done: Callable[[], object]) -> None:
        """Ask the client, unless a question is open. `done` is called once there is nothing to wait for."""
        if self.current or call.session.input_ended:
            done()
            return
        self._waiting.append(done)
        if self._question is None:
            self._question = call.session.ask(self)
            call.link.send(encode(Request(self._question, "roots/list", {})))

    def answered(self, message: Message) -> None:
        """Take the client's response. A malformed one leaves its last answer as it was."""
        self._question = None
        try:
            self.uris = tuple(root.uri for root in _read_answer(message.result).roots)
        except BROKEN:
            self._warn("answered roots/list with an error or something else than roots")
        self._stop_waiting()

    def give_up(self) -> None:
        """Wait no longer. If the answer comes later, it counts for later calls."""
        if not self.current:
            self._warn(f"did not answer roots/list within {ANSWER_SECONDS:g} s")
            self._stop_waiting()

    def changed(self, session: Session[Any]) -> None:
        """The client's roots have changed: an answer that is on its way may be outdated, so all ask again."""
        if self._question is not None:
            session.answered(self._question)
            self._question = None
        self._stop_waiting()
        self.current = False

    def end(self) -> None:
        """The client sends nothing more."""
        self._stop_waiting()

    def _stop_waiting(self) -> None:
        self.current = True
        waiting, self._waiting = self._waiting, []
        for done in waiting:
            done()

    def _warn(self, what: str) -> None:
        if self.uris is None:
            self._report(f"a client {what}, so it narrows nothing: its calls may touch all folders of the server")
