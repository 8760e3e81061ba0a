"""Frames to messages and back: what a good frame is read as, and what a frame of ours never holds."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from counts import count
from longshore.wire import codec
from longshore.wire.messages import ABSENT, Batch, Blank, Malformed, Message, Notification, Reply, Request


def read(frame: bytes | str) -> Any:
    return codec.read(frame.encode() if isinstance(frame, str) else frame, 128, 100)


def test_a_request_is_read_with_its_params_raw() -> None:
    message = read('{"jsonrpc":"2.0","id":7,"method":"m","params":{"a": [1, 2]}}')
    assert (message.id, message.method, bytes(message.params)) == (7, "m", b'{"a": [1, 2]}')


def test_a_notification_has_no_id_and_a_response_no_method() -> None:
    assert read('{"jsonrpc":"2.0","method":"m"}').id is UNSET
    response = read('{"jsonrpc":"2.0","id":"a","result":{"x":1}}')
    assert (response.method, response.id, bytes(response.result), response.error) == ("", "a", b'{"x":1}', ABSENT)


def test_ids_keep_their_type_and_value() -> None:
    for id in (0, -5, 7, "7", "", "ü", 2**53 + 1, 2**63 - 1, -(2**63)):
        found = read(json.dumps({"jsonrpc": "2.0", "id": id, "method": "m"})).id
        assert found == id and type(found) is type(id)


PIECE = 1 << 16


@pytest.mark.parametrize("at", [0, PIECE - 3, PIECE - 2, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE - 1, 3 * PIECE])
@pytest.mark.parametrize("bad", [b"\xff", b"\xc3", b"\xf0\x9f\x98"])
def test_invalid_utf8_is_reported_at_its_byte_in_a_long_frame(at: int, bad: bytes) -> None:
    text = b"x" * at + bad + b"x" * (3 * PIECE - at)
    assert not codec.is_utf8(text)
    assert read(text).text == f"not UTF-8 at byte {at}"


@pytest.mark.parametrize("shift", [0, 1, 2, 3])
def test_a_character_may_lie_across_two_pieces_of_a_long_frame(shift: int) -> None:
    assert codec.is_utf8(b"x" * shift + "😀".encode() * PIECE)
    assert not codec.is_utf8(b"x" * shift + "😀".encode() * PIECE + b"\xf0\x9f")


@pytest.mark.parametrize("blank", ["", " ", "\t", "\r", " \r "])
def test_a_blank_line_gets_no_answer(blank: str) -> None:
    assert isinstance(read(blank), Blank)


@pytest.mark.parametrize("sent", [0, 1, 99, 100, 101, 102, 5000])
def test_a_batch_holds_at_most_one_item_more_than_may_be_sent(sent: int) -> None:
    batch = read("[" + ",".join(["1"] * sent) + "]")
    assert isinstance(batch, Batch)
    assert len(batch.items) == min(sent, 101)


def test_a_batch_that_is_not_json_is_a_parse_error() -> None:
    for text in ("[1,]", "[1", "[NaN]", "[1]x"):
        assert read(text).code == codec.PARSE_ERROR


def test_an_id_too_large_is_echoed_as_it_was_written() -> None:
    told = read('{"jsonrpc":"2.0","id":123456789012345678901234567890,"method":"m"}')
    assert isinstance(told, Malformed)
    frame = codec.error(told.id, told.code, told.text)
    assert b'"id":123456789012345678901234567890,' in frame


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\u0085"])
@pytest.mark.parametrize(
    "make",
    [
        lambda text: Reply(1, {"text": text, text: [text]}),
        lambda text: Reply(text, {}),
        lambda text: Notification("m", {"a": text}),
        lambda text: Request("q", "m", {"a": text}),
    ],
)
def test_no_frame_holds_a_raw_line_separator(separator: str, make: Any) -> None:
    frame = codec.encode(make(f"a{separator}b\n\r\x0b\x0c\x1c\x1d\x1e"))
    assert len(frame.decode().splitlines()) == 1
    assert separator in json.dumps(json.loads(frame), ensure_ascii=False)


def test_an_error_text_with_separators_is_one_line_too() -> None:
    frame = codec.error("a\u2028", -32600, "no\u0085way", {"d": "\u2029\n"})
    assert len(frame.decode().splitlines()) == 1
    assert json.loads(frame)["error"] == {"code": -32600, "message": "no\u0085way", "data": {"d": "\u2029\n"}}


_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=15,
)


@settings(max_examples=count(200), deadline=None)
@given(id=st.integers(-(2**63), 2**63 - 1) | st.text(max_size=256), result=_JSON)
def test_an_encoded_message_is_one_line_that_decodes_again(id: int | str, result: Any) -> None:
    frame = codec.encode(Reply(id, result))
    assert len(frame.decode().splitlines()) == 1
    message = read(frame)
    assert isinstance(message, Message)
    assert message.id == id and type(message.id) is type(id)
    assert json.loads(bytes(message.result)) == json.loads(json.dumps(result))


@settings(max_examples=count(300), deadline=None)
@given(
    frame=st.binary(max_size=200) | st.text(max_size=100).map(str.encode) | _JSON.map(lambda v: json.dumps(v).encode())
)
def test_reading_never_raises(frame: bytes) -> None:
    assert isinstance(read(frame), (Message, Malformed, Batch, Blank))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_nan_and_infinity_are_never_encoded_as_numbers(value: float) -> None:
    frame = codec.encode(Reply(1, {"v": value}))
    assert json.loads(frame, parse_constant=pytest.fail)["result"] == {"v": None}
    assert msgspec.json.decode(frame)
