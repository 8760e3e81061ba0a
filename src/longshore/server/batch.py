"""Batches: arrays of messages, which 2025-03-26 requires and no other revision allows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET

from longshore.protocol.peer import is_enveloped
from longshore.protocol.revisions import MODERN
from longshore.server.link import Link, WrappedLink
from longshore.wire.codec import INVALID_REQUEST, error, read
from longshore.wire.messages import Batch, Blank, Malformed, Message

if TYPE_CHECKING:
    from longshore.server.engine import Engine

_ALONE: Final = ("initialize", "subscriptions/listen")
"""The handshake must come first, and a listen has no end that a batch could wait for."""


class BatchLink(WrappedLink):
    """Collects the answers to one batch, and sends them as one array after the last."""

    __slots__ = ("_answers", "_missing")

    def __init__(self, outer: Link, requests: int) -> None:
        super().__init__(outer)
        self._missing = requests
        self._answers: list[bytes] = []

    def answer(self, frame: bytes | None) -> None:
        self._missing -= 1
        if frame is not None:
            self._answers.append(frame)
        if self._missing == 0:
            super().answer(b"[" + b",".join(self._answers) + b"]" if self._answers else None)


def refuse_in_batch(message: Malformed, _: Link) -> bytes:
    """The error for a batch, or for a message of one, as MCP has it."""
    return error(message.id, message.code, message.text)


def handle_batch(
    engine: Engine,
    batch: Batch,
    link: Link,
    handle: Callable[[bytes, Link], bytes | None],
    refuse: Callable[[Malformed, Link], bytes | None] = refuse_in_batch,
) -> bytes | None:
    """Answer the requests of a batch with one array, now or when the last of them has ended."""
    if not batch.items:
        return refuse(Malformed(INVALID_REQUEST, "an empty array holds no message"), link)
    if len(batch.items) > engine.limits.batch:
        return refuse(Malformed(INVALID_REQUEST, f"a batch holds at most {engine.limits.batch} messages"), link)
    frames = [bytes(item) for item in batch.items]
    messages = [read(frame, engine.limits.depth, 0) for frame in frames]
    requests = sum(map(_wants_answer, messages))
    collector = BatchLink(link, requests)
    for frame, message in zip(frames, messages, strict=True):
        wrong = _find_fault(message)
        if wrong is None:
            answer = handle(frame, collector)
        else:
            answer = refuse(Malformed(INVALID_REQUEST, wrong, getattr(message, "id", None)), collector)
        if answer is not None:
            collector.answer(answer)
    if not requests:
        link.answer(None)
    return None


def _wants_answer(message: Any) -> bool:
    if isinstance(message, Message):
        return message.method != "" and message.id is not UNSET
    return not isinstance(message, Blank)


def _find_fault(message: Any) -> str | None:
    """Why a message that is allowed alone is not in a batch; None if it is."""
    if isinstance(message, Batch):
        return "a batch holds messages, not arrays"
    if isinstance(message, Message) and message.id is not UNSET:
        if message.method in _ALONE:
            return f"{message.method} can't be part of a batch"
        if is_enveloped(message.params):
            return f"a request of {MODERN[-1]} can't be part of a batch"
    return None
