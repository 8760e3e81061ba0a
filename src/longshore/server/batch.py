"""Batches: arrays of messages, which 2025-03-26 requires and no other revision allows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET

from longshore.protocol.peer import is_enveloped
from longshore.protocol.revisions import MODERN
from longshore.server.link import Link, WrappedLink
from longshore.wire.codec import INVALID_REQUEST, error, read
from longshore.wire.messages import Batch, Blank, Message

if TYPE_CHECKING:
    from longshore.server.engine import Engine

_ALONE: Final = ("initialize", "subscriptions/listen")
"""The handshake must come first, and a listen has no end that a batch could wait for."""


class BatchLink(WrappedLink):
    """Collects the answers to one batch, and sends them as one array after the last."""

    __slots__ = ("_answers", "_missing", "_size")

    def __init__(self, outer: Link, requests: int) -> None:
        super().__init__(outer)
        self._missing = requests
        self._answers: list[bytes] = []
        self._size = 0

    def answer(self, frame: bytes | None) -> None:
        self._missing -= 1
        if frame is not None:
            self._answers.append(frame)
            self._size += len(frame)
            self._outer.hold_part(len(frame))
        if self._missing == 0:
            self._outer.hold_part(-self._size)
            super().answer(b"[" + b",".join(self._answers) + b"]" if self._answers else None)


def refuse_in_batch(id: Any, text: str) -> bytes:
    """The error for a batch, or for a message of one, as MCP has it."""
    return error(id, INVALID_REQUEST, text)


def handle_batch(
    engine: Engine,
    batch: Batch,
    link: Link,
    handle: Callable[[bytes, Link], bytes | None],
    refuse: Callable[[Any, str], bytes] = refuse_in_batch,
) -> bytes | None:
    """Answer the requests of a batch with one array, now or when the last of them has ended."""
    if not batch.items:
        return refuse(None, "an empty array holds no message")
    if len(batch.items) > engine.limits.batch:
        return refuse(None, f"a batch holds at most {engine.limits.batch} messages")
    frames = [bytes(item) for item in batch.items]
    messages = [read(frame, engine.limits.depth, 0) for frame in frames]
    requests = sum(map(_wants_answer, messages))
    collector = BatchLink(link, requests)
    for frame, message in zip(frames, messages, strict=True):
        wrong = _find_fault(message)
        answer = handle(frame, collector) if wrong is None else refuse(getattr(message, "id", None), wrong)
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
