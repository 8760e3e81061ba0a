"""Arrays of messages, which the revision of 2025-03-26 demands and no other allows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET

from longshore.protocol.envelope import is_enveloped
from longshore.protocol.revisions import MODERN
from longshore.server.link import BatchLink, Link
from longshore.wire.codec import INVALID_REQUEST, error, read
from longshore.wire.messages import Batch, Blank, Message

if TYPE_CHECKING:
    from longshore.server.dispatch import Engine

_ALONE: Final = ("initialize", "subscriptions/listen")
"""The handshake must come first, and a listen has no end that a batch could wait for."""


def handle_batch(engine: Engine, batch: Batch, link: Link) -> bytes | None:
    """Answer the requests of a batch with one array, now or when the last of them is done."""
    peer = link.session.peer
    if peer is None or not peer.revision.batches:
        return error(None, INVALID_REQUEST, "send one message a line: only a 2025-03-26 session takes arrays")
    if not batch.items:
        return error(None, INVALID_REQUEST, "an empty array holds no message")
    if len(batch.items) > engine.limits.batch:
        return error(None, INVALID_REQUEST, f"a batch holds at most {engine.limits.batch} messages")
    frames = [bytes(item) for item in batch.items]
    messages = [read(frame, engine.limits.depth, 0) for frame in frames]
    collector = BatchLink(link, sum(map(_wants_answer, messages)))
    for frame, message in zip(frames, messages, strict=True):
        answer = _refuse(message) or engine.handle(frame, collector)
        if answer is not None:
            collector.answer(answer)
    if not any(map(_wants_answer, messages)):
        link.answer(None)
    return None


def _wants_answer(message: Any) -> bool:
    if isinstance(message, Message):
        return message.method != "" and message.id is not UNSET
    return not isinstance(message, Blank)


def _refuse(message: Any) -> bytes | None:
    """What a single line may be and a member of a batch may not."""
    if isinstance(message, Batch):
        return error(None, INVALID_REQUEST, "a batch holds messages, not arrays")
    if isinstance(message, Message) and message.id is not UNSET:
        if message.method in _ALONE:
            return error(message.id, INVALID_REQUEST, f"{message.method} can't be part of a batch")
        if is_enveloped(message.params):
            return error(message.id, INVALID_REQUEST, f"a request of {MODERN[-1]} can't be part of a batch")
    return None
