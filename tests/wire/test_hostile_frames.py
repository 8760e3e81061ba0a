"""Every frame of the hostile table, through codec and engine: one answer with the right code and id, or silence."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hostile.frames import FAILED, PARAMS, PARSE, TABLE, Row
from longshore import Server
from longshore.limits import DEFAULT_LIMITS
from longshore.server.link import Link
from longshore.wire.codec import read
from longshore.wire.messages import Batch, Blank, Malformed, Message

INITIALIZE = (
    b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},'
    b'"clientInfo":{"name":"t","version":"0"}}}'
)
by_name = pytest.mark.parametrize("row", TABLE, ids=[row.name for row in TABLE])


class Collector(Link):
    __slots__ = ("frames",)

    def __init__(self) -> None:
        super().__init__()
        self.frames: list[bytes] = []

    def send(self, frame: bytes) -> None:
        self.frames.append(frame)


def answer_to(row: Row, *, initialized: bool) -> bytes | None:
    app = Server("t")
    link = Collector()
    if initialized:
        assert app.engine.handle(INITIALIZE, link) is not None
    reply = app.engine.handle(row.frame, link)
    assert not link.frames
    return reply


def check(row: Row, reply: bytes | None) -> None:
    if row.code is None:
        assert reply is None
        return
    assert reply is not None
    message: dict[str, Any] = json.loads(reply)
    assert message.pop("jsonrpc") == "2.0"
    assert message.pop("id") == row.id
    assert type(json.loads(reply)["id"]) is type(row.id)
    if row.code == FAILED:
        assert message["result"]["isError"] is True
        assert "can't be read" in message["result"]["content"][0]["text"]
    elif row.code == 0:
        assert message == {"result": {}}
    else:
        assert message["error"]["code"] == row.code
        assert message["error"]["message"]
        assert message.keys() == {"error"}


@by_name
def test_a_hostile_frame_before_initialize_gets_its_one_answer(row: Row) -> None:
    check(row, answer_to(row, initialized=False))


@by_name
def test_a_hostile_frame_in_a_session_gets_its_one_answer(row: Row) -> None:
    check(row, answer_to(row, initialized=True))


@by_name
def test_the_codec_itself_never_raises_and_agrees_on_the_code(row: Row) -> None:
    told = read(row.frame, DEFAULT_LIMITS.depth, DEFAULT_LIMITS.batch)
    assert isinstance(told, (Message, Malformed, Batch, Blank))
    if isinstance(told, Malformed):
        assert told.code == (PARSE if row.code == FAILED else row.code)
        echoed = json.loads(bytes(told.id)) if isinstance(told.id, memoryview) else told.id
        assert row.id == (
            int(bytes(echoed)) if hasattr(echoed, "copy") else echoed
        )  # a Raw holds an id too large for us
    elif isinstance(told, Blank):
        assert row.code is None
    elif isinstance(told, Message):
        assert row.code in (0, None, PARAMS, -32601)


@by_name
def test_no_answer_to_a_hostile_frame_is_longer_than_a_screen(row: Row) -> None:
    """A peer can't have its own megabyte sent back to it as an error."""
    reply = answer_to(row, initialized=False)
    assert reply is None or len(reply) < 2000
