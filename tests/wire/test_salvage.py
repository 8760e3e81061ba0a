"""What is saved of frames that are not JSON: the text, or the id."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longshore.wire.codec import read
from longshore.wire.framing import END_BYTES
from longshore.wire.messages import Malformed, Message, Repaired, UnreadableResponse
from longshore.wire.salvage import MOST_HALVES, outline, repair

BOM = b"\xef\xbb\xbf"


@pytest.mark.parametrize(
    ("written", "repaired"),
    [
        (r"\ud83d", r"\ufffd"),
        (r"\uDC00", r"\ufffd"),
        (r"a\ud83db", r"a\ufffdb"),
        (r"\ud83d\ud83d", r"\ufffd\ufffd"),
        (r"\udc00\ud83d", r"\ufffd\ufffd"),
        (r"\ud83d\ud83d\ude00", r"\ufffd\ud83d\ude00"),
        (r"\ud83d\u0041", r"\ufffd\u0041"),
        (r"\\\ud83d", r"\\\ufffd"),
        (r"\n\ud83d", r"\n\ufffd"),
    ],
)
def test_each_lone_surrogate_becomes_the_replacement_character(written: str, repaired: str) -> None:
    assert repair(f'"{written}"'.encode()) == f'"{repaired}"'.encode()


@pytest.mark.parametrize(
    "written", ["", "plain", r"\ud83d\ude00", r"\uD83D\uDE00", r"\\ud83d", r"\\\\ud83d", "ud83d", "ü"]
)
def test_a_frame_without_faults_is_returned_as_the_same_object(written: str) -> None:
    frame = f'"{written}"'.encode()
    assert repair(frame) is frame


def test_a_byte_order_mark_is_dropped() -> None:
    assert repair(BOM + b"{}") == b"{}"
    assert repair(BOM + rb'"\ud83d"') == rb'"\ufffd"'


@given(st.text(st.characters(exclude_categories=()), max_size=30))
def test_any_text_that_json_can_write_is_read_after_repair(text: str) -> None:
    """Python's encoder writes surrogates as JavaScript's does. Pairs stay, halves are replaced."""
    wanted = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    assert json.loads(repair(json.dumps(text).encode())) == wanted


PING = rb'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"%s"}}'


def test_one_byte_order_mark_is_skipped_and_a_second_one_is_not_json() -> None:
    assert isinstance(read(BOM + PING % b"", 10, 0), Repaired)
    assert isinstance(read(2 * BOM + PING % b"", 10, 0), Malformed)


def peak_while_reading(frame: bytes, kind: type) -> int:
    tracemalloc.start()
    try:
        assert isinstance(read(frame, 10, 0), kind)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_repairs_take_a_few_copies_of_the_frame() -> None:
    for frame, kind in [(BOM * 1_000_000, Malformed), (PING % (rb"\n" * 500_000 + rb"\ud83d"), Repaired)]:
        assert peak_while_reading(frame, kind) < 4 * len(frame)


@pytest.mark.parametrize("over", [-1, 0, 1])
def test_so_many_halves_are_replaced_and_no_more(over: int) -> None:
    message = read(PING % (rb"\ud83d" * (MOST_HALVES + over)), 10, 0)
    assert isinstance(message, Malformed if over > 0 else Repaired)
    assert message.id == 1


def test_only_replaced_surrogates_change_what_a_message_says() -> None:
    marked = read(BOM + PING % b"x", 10, 0)
    assert isinstance(marked, Repaired) and not marked.surrogates
    halved = read(PING % rb"\ud83d", 10, 0)
    assert isinstance(halved, Repaired) and halved.surrogates
    assert halved.frame == PING % rb"\ufffd"


@pytest.mark.parametrize(
    ("frame", "id", "method"),
    [
        ('{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":NaN}}', 1, "m"),
        ('{"method":"m","params":{"a":NaN},"jsonrpc":"2.0","id":"x"}', "x", "m"),
        ('{"params":{"a":NaN},"method":"m","id":-7}  ', -7, "m"),
        (' { "id" : 1 , "method" : "m" , "params" : NaN } ', 1, "m"),
        ('{"id":"a\\"b","method":"m","x":NaN', 'a"b', "m"),
        ('{"id":1,"params":{"id":2,"a":NaN}}', 1, ""),
        ('{"jsonrpc":"2.0","_x":1,"id":1,"method":"m","params":NaN}', 1, "m"),
        ('{"id":1,"method":"m","params":{"name":"x","arguments":{"a":1,"id":99}', 1, "m"),
        ('\ufeff{"id":1,"method":"m","params":NaN}', 1, "m"),
        ('{"params":{"a":NaN,"id":2}}', None, ""),
        ('{"params":{"a":NaN},"id":{"b":1}}', None, ""),
        ('{"params":[NaN,"id",2]}', None, ""),
        ('{"id":1.5,"a":NaN}', None, ""),
        ('[{"id":1},NaN]', None, ""),
        ("NaN", None, ""),
    ],
)
def test_the_id_and_the_method_are_found_at_either_end(frame: str, id: Any, method: str) -> None:
    message = read(frame.encode(), 10, 0)
    assert isinstance(message, Malformed)
    assert (message.id, message.method) == (id, method)


@pytest.mark.parametrize(
    "frame",
    [
        '{"jsonrpc":"2.0","id":1,"result":{"a":NaN}}',
        '{"error":{"a":NaN},"jsonrpc":"2.0","id":1}',
        '{"jsonrpc":"2.0","id":1,"result":null,"x":NaN}',
    ],
)
def test_a_response_that_can_not_be_read_is_an_error_response(frame: str) -> None:
    message = read(frame.encode(), 10, 0)
    assert isinstance(message, UnreadableResponse)
    assert message.id == 1
    assert "NaN" not in bytes(message.error).decode() and b"can't be read" in bytes(message.error)


@given(
    st.dictionaries(st.text(max_size=5), st.recursive(st.integers() | st.text(max_size=8), st.lists, max_leaves=5)),
    st.permutations(["jsonrpc", "id", "method", "params"]),
    st.integers(0, 2**53) | st.text('abc\\"{}[],:', max_size=8),
    st.integers(0, 60),
)
def test_no_other_id_is_ever_found_than_the_message_has(
    params: dict[str, Any], order: list[str], id: Any, cut: int
) -> None:
    whole = {"jsonrpc": "2.0", "id": id, "method": "m", "params": {"id": 99, **params}}
    frame = json.dumps({key: whole[key] for key in order}).encode()
    assert isinstance(read(frame, 100, 0), Message)
    members, is_response = outline(frame, frame)
    assert not is_response
    assert json.loads(members[b"id"]) == id
    if order.index("id") < order.index("params"):
        cut_off = frame[: len(frame) - cut]
        found = outline(cut_off, cut_off).members.get(b"id")
        assert found is None or json.loads(found) == id


@pytest.mark.parametrize("over", [-1, 0, 1])
def test_no_more_than_the_ends_are_searched(over: int) -> None:
    member = b'"id":1,'
    frame = b"{" + b" " * (END_BYTES - len(member) - 1 + over) + member + b'"params":' + b" " * END_BYTES
    assert (b"id" in outline(frame, b"").members) is (over <= 0)
