"""Newline framing: the limits exactly, bounded memory, and the same frames however the bytes are split."""

from __future__ import annotations

import os
import tracemalloc
from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from counts import count
from longshore.wire.framing import END_BYTES, LONG_BYTES, ROOM_BYTES, Frame, Framer, TooLong

Events = list[object]
TOO_LONG = "too long"


def own(frames: list[Frame]) -> Events:
    """The frames as values of their own: a view is only lent."""
    return [TOO_LONG if isinstance(frame, TooLong) else bytes(frame) for frame in frames]


def fill(framer: Framer, data: bytes) -> Events:
    """Bring the bytes in as stdio does for a long line: read into `room`, then `filled`, then `release`."""
    room = framer.room()
    assert len(room) == ROOM_BYTES
    room[: len(data)] = data
    room.release()
    events = own(framer.filled(len(data)))
    framer.release()
    return events


def split(data: bytes, size: int) -> Iterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]


def events_of(data: bytes, limit: int, size: int) -> Events:
    framer = Framer(limit)
    events = [event for chunk in split(data, size) for event in own(framer.feed(chunk))]
    return events + own(framer.close())


# -- tables


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize(("length", "whole"), [(99, True), (100, True), (101, False)])
def test_a_line_at_the_limit_passes_and_one_byte_more_does_not(length: int, whole: bool, size: int) -> None:
    line = b"x" * length
    assert events_of(line + b"\nnext\n", 100, size) == [line if whole else TOO_LONG, b"next"]


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize(("length", "whole"), [(99, True), (100, True), (101, False)])
def test_the_limit_holds_for_a_last_line_without_a_newline(length: int, whole: bool, size: int) -> None:
    line = b"x" * length
    assert events_of(line, 100, size) == [line if whole else TOO_LONG]


@pytest.mark.parametrize("over", [-1, 0, 1])
def test_the_limit_is_as_exact_for_a_line_read_into_room(over: int) -> None:
    limit = 3 * ROOM_BYTES
    line = b"x" * (limit + over)
    framer = Framer(limit)
    events = own(framer.feed(line[:LONG_BYTES]))
    assert framer.wants_room
    for chunk in split(line[LONG_BYTES:] + b"\nnext\n", ROOM_BYTES):
        events += fill(framer, chunk) if framer.wants_room else own(framer.feed(chunk))
    assert events == [TOO_LONG if over > 0 else line, b"next"]


@pytest.mark.parametrize(
    ("data", "frames"),
    [
        (b"\n", [b""]),
        (b"\n\n\n", [b"", b"", b""]),
        (b"a\r\nb\r\n", [b"a\r", b"b\r"]),
        (b"a\n\nb\n", [b"a", b"", b"b"]),
        (b"a", [b"a"]),
        (b"a\nb", [b"a", b"b"]),
        (b"\r\n", [b"\r"]),
        ("ü🛳\n".encode(), ["ü🛳".encode()]),
        (b"a\x85b\xe2\x80\xa8c\x0b\x0cd\n", [b"a\x85b\xe2\x80\xa8c\x0b\x0cd"]),
    ],
)
@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_only_a_newline_ends_a_frame(data: bytes, frames: list[bytes], size: int) -> None:
    assert events_of(data, 100, size) == frames


def test_closing_after_a_finished_line_gives_no_frame() -> None:
    framer = Framer(100)
    framer.feed(b"a\n")
    assert framer.close() == []
    assert framer.close() == []


def test_a_line_too_long_is_reported_once_when_it_ends() -> None:
    framer = Framer(10)
    assert framer.feed(b"x" * 10) == []
    assert not framer.overlong
    assert framer.feed(b"x" * 1000) == []
    assert framer.overlong
    assert framer.pending == 0
    assert own(framer.feed(b"xx\nok\nha")) == [TOO_LONG, b"ok"]
    assert not framer.overlong
    assert framer.close() == [b"ha"]


def test_closing_within_a_line_too_long_reports_it() -> None:
    framer = Framer(10)
    assert framer.feed(b"x" * 11) == []
    assert own(framer.close()) == [TOO_LONG]
    assert framer.feed(b"ok\n") == [b"ok"]


@pytest.mark.parametrize("size", [1, 1000, 5000, 1 << 20])
def test_a_line_over_the_limit_is_reduced_to_both_ends(size: int) -> None:
    line = bytes(b"abcdefghij"[n % 10] for n in range(3 * END_BYTES))
    framer = Framer(2 * END_BYTES)
    frames = [frame for chunk in split(line + b"\n", size) for frame in framer.feed(chunk)]
    assert frames == [TooLong(line[:END_BYTES], line[-END_BYTES:])]


def test_a_line_over_the_limit_read_into_room_is_reduced_to_both_ends() -> None:
    line = bytes(b"abcdefghij"[n % 10] for n in range(4 * ROOM_BYTES))
    framer = Framer(3 * ROOM_BYTES)
    frames = framer.feed(line[:LONG_BYTES])
    for chunk in split(line[LONG_BYTES:] + b"\n", ROOM_BYTES):
        if framer.wants_room:
            room = framer.room()
            room[: len(chunk)] = chunk
            room.release()
            frames += framer.filled(len(chunk))
        else:
            frames += framer.feed(chunk)
    assert frames == [TooLong(line[:END_BYTES], line[-END_BYTES:])]


def test_every_line_too_long_is_reported() -> None:
    assert events_of(b"x" * 11 + b"\n" + b"y" * 12 + b"\nok\n" + b"z" * 50 + b"\n", 10, 4) == [
        TOO_LONG,
        TOO_LONG,
        b"ok",
        TOO_LONG,
    ]


def test_64_mb_without_a_newline_hold_no_more_than_the_limit() -> None:
    limit, chunk = 1 << 20, b"x" * (1 << 16)
    framer = Framer(limit)
    reports, most = 0, 0
    tracemalloc.start()
    try:
        for _ in range((64 << 20) // len(chunk)):
            reports += len(framer.feed(chunk))
            most = max(most, framer.pending)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert reports == 0
    assert most <= limit
    assert peak < 3 * limit
    assert own(framer.feed(b"\nok\n")) == [TOO_LONG, b"ok"]


def test_64_mb_read_into_room_hold_no_more_than_the_limit_and_its_room() -> None:
    limit, chunk = 4 << 20, b"x" * ROOM_BYTES
    framer = Framer(limit)
    reports = len(framer.feed(b"x" * LONG_BYTES))
    tracemalloc.start()
    try:
        for _ in range(64):
            reports += len(fill(framer, chunk) if framer.wants_room else framer.feed(chunk))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert reports == 0
    assert peak < 4 * limit
    assert own(framer.feed(b"\nok\n")) == [TOO_LONG, b"ok"]


@pytest.mark.parametrize("limit", [LONG_BYTES, 3 * ROOM_BYTES, 16 * ROOM_BYTES - 1, 16 * ROOM_BYTES])
def test_the_memory_for_a_long_line_is_no_larger_than_the_limit_and_one_read(limit: int) -> None:
    framer = Framer(limit)
    framer.feed(b"x" * min(LONG_BYTES, limit))
    held = 0
    while framer.pending < limit:
        room = framer.room()
        held = max(held, len(room.obj))  # type: ignore[arg-type]
        room.release()
        assert framer.filled(min(ROOM_BYTES, limit - framer.pending)) == []
    assert held <= max(limit, ROOM_BYTES) + ROOM_BYTES


def test_a_million_one_byte_pieces_take_linear_time_and_give_one_frame() -> None:
    framer = Framer(1 << 20)
    for _ in range(200_000):
        assert framer.feed(b"x") == []
    assert framer.pending == 200_000
    assert framer.feed(b"\n") == [b"x" * 200_000]


def test_a_referenced_view_is_never_overwritten() -> None:
    framer = Framer(8 << 20)
    framer.feed(b'["' + b"a" * LONG_BYTES)
    room = framer.room()
    room[:3] = b'"]\n'
    room.release()
    [lent] = framer.filled(3)
    kept = msgspec.json.decode(lent, type=list[msgspec.Raw])[0]
    framer.release()
    framer.feed(b"b" * LONG_BYTES)
    fill(framer, b"b\n")
    assert bytes(kept) == b'"' + b"a" * LONG_BYTES + b'"'


def test_a_view_is_of_no_use_after_its_release() -> None:
    framer = Framer(8 << 20)
    framer.feed(b"a" * LONG_BYTES)
    room = framer.room()
    room[:1] = b"\n"
    room.release()
    [lent] = framer.filled(1)
    assert isinstance(lent, memoryview)
    framer.release()
    with pytest.raises(ValueError, match="released"):
        bytes(lent)


def test_memory_for_long_lines_is_given_back_when_none_come() -> None:
    framer = Framer(8 << 20)
    framer.feed(b"a" * LONG_BYTES)
    fill(framer, b"\n")
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for _ in range(1000):
            framer.feed(b"{}\n")
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after <= before + 10_000
    assert framer._long is None


# -- any split

_LINES = st.lists(st.binary(max_size=40).map(lambda b: b.replace(b"\n", b"")) | st.just(b"x" * 33), max_size=12)


@settings(max_examples=count(150), deadline=None)
@given(lines=_LINES, tail=st.binary(max_size=40), cuts=st.lists(st.integers(0, 600), max_size=20))
def test_any_split_of_the_bytes_gives_the_same_frames(lines: list[bytes], tail: bytes, cuts: list[int]) -> None:
    data = b"".join(line + b"\n" for line in lines) + tail
    whole = Framer(32)
    expected = (own(whole.feed(data)) if data else []) + own(whole.close())
    framer, events, start = Framer(32), list[object](), 0
    for cut in sorted({min(cut, len(data)) for cut in cuts} | {len(data)}):
        if cut > start:
            events += own(framer.feed(data[start:cut]))
            start = cut
    assert events + own(framer.close()) == expected


class AnySplit(RuleBasedStateMachine):
    """Pieces of any size, by `feed` or into `room`, against the plain meaning: cut at newlines, drop the long."""

    @initialize(limit=st.sampled_from([10, 100, LONG_BYTES + 5, 3 * LONG_BYTES]))
    def begin(self, limit: int) -> None:
        self.limit = limit
        self.framer = Framer(limit)
        self.data = bytearray()
        self.events: Events = []

    @rule(piece=st.binary(min_size=1, max_size=30))
    def feed(self, piece: bytes) -> None:
        self._take(piece, own(self.framer.feed(piece)))

    @rule(size=st.sampled_from([1, 90, LONG_BYTES - 1, LONG_BYTES, LONG_BYTES + 1]))
    def feed_much(self, size: int) -> None:
        piece = b"z" * size
        self._take(piece, own(self.framer.feed(piece)))

    @rule(
        piece=st.lists(st.sampled_from([b"\n", b"\n\n", b"ab", b"{}\n", b"\r\n"]), min_size=1, max_size=6).map(b"".join)
    )
    def feed_lines(self, piece: bytes) -> None:
        self._take(piece, own(self.framer.feed(piece)))

    @precondition(lambda self: self.framer.wants_room)
    @rule(
        piece=st.binary(min_size=1, max_size=30)
        | st.sampled_from([b"\n", b"q" * LONG_BYTES, b"q\nr\n" + b"s" * LONG_BYTES])
    )
    def read_into_room(self, piece: bytes) -> None:
        self._take(piece, fill(self.framer, piece))

    def _take(self, piece: bytes, events: Events) -> None:
        self.data += piece
        self.events += events
        assert self.framer.pending <= self.limit

    def teardown(self) -> None:
        if hasattr(self, "framer"):
            assert self.events + own(self.framer.close()) == reference(bytes(self.data), self.limit)


def reference(data: bytes, limit: int) -> Events:
    lines = data.split(b"\n")
    if not lines[-1]:
        lines.pop()
    return [line if len(line) <= limit else TOO_LONG for line in lines]


TestAnySplit = AnySplit.TestCase
TestAnySplit.settings = settings(max_examples=count(60), stateful_step_count=25, deadline=None)


def test_random_megabytes_in_random_pieces_agree_with_the_reference() -> None:
    data = os.urandom(1 << 20).replace(b"\x00", b"\n")
    assert events_of(data, 1000, 4097) == reference(data, 1000)
