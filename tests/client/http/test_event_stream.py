"""The parser of server-sent events: every line end, cut anywhere, and bounded."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longshore.client.sse import _MOST_ID, EventTooLarge, SseEvent, SseParser


def read(*chunks: bytes, most: int = 1000) -> list[SseEvent]:
    events = SseParser(most)
    return [event for chunk in chunks for event in events.feed(chunk)]


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_every_line_end(end: bytes) -> None:
    stream = end.join([b"event: x", b"data: a", b"data:b", b"", b"data: c", b"", b""])
    assert read(stream) == [SseEvent(b"a\nb", "x"), SseEvent(b"c")]


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (b"", []),
        (b"data: half", []),
        (b"data: half\n", []),
        (b"\xef\xbb\xbfdata: a\n\n", [b"a"]),
        (b"data: \xef\xbb\xbf\n\n", [b"\xef\xbb\xbf"]),
        (b": a comment\ndata: a\n\n", [b"a"]),
        (b"data\ndata\n\n", [b"\n"]),
        (b"data:\n\n", []),
        (b"data:  two\n\n", [b" two"]),
        (b"data: a:b\n\n", [b"a:b"]),
        (b"nonsense: 1\ndata: a\n\n", [b"a"]),
        (b"data: a\n\n\n\ndata: b\n\n", [b"a", b"b"]),
        (b"Data: a\n\n", []),
        (b"data: \xe2\x80\xa8\x85\x0b\x0c\n\n", [b"\xe2\x80\xa8\x85\x0b\x0c"]),  # no line ends here
    ],
)
def test_events_are_parsed(stream: bytes, expected: list[bytes]) -> None:
    assert [event.data for event in read(stream)] == expected


@pytest.mark.parametrize(
    ("stream", "id", "retry"),
    [
        (b"id: 1\ndata: a\n\n", "1", None),
        (b"id: 1\n\n", "1", None),  # an event that is there for its id alone
        (b"id: 1\n", "", None),  # it may have been the next
        (b"id: 1\n\ndata: a\n\n", "1", None),
        (b"id: 1\n\nid\n\n", "", None),
        (b"id: a\x00b\n\n", "", None),
        (b"id: " + b"x" * 5000 + b"\n\n", "", None),
        (b"id: \xc3\xa9\n\n", "é", None),
        (b"retry: 500\n", "", 0.5),
        (b"retry: 5x\n", "", None),
        (b"retry: -5\n", "", None),
        (b"retry:\n", "", None),
        (b"retry: " + b"9" * 5000 + b"\n", "", None),
        ("retry: ²\n".encode(), "", None),
    ],
)
def test_a_stream_s_last_id_and_retry_are_read(stream: bytes, id: str, retry: float | None) -> None:
    events = SseParser(10_000)
    events.feed(stream)
    assert (events.last_id, events.retry) == (id, retry)


LINES = st.sampled_from(
    [
        b"data: a",
        b"data:",
        b"data: \xc3\xa9",
        b"id: 7",
        b"id",
        b"retry: 9",
        b"event: e",
        b": c",
        b"",
        b"",
        b"\xef\xbb\xbf",
    ]
)
STREAMS = st.lists(st.tuples(LINES, st.sampled_from([b"\n", b"\r", b"\r\n"]))).map(
    lambda lines: b"".join(line + end for line, end in lines)
)


@given(stream=STREAMS | st.binary(max_size=60), cuts=st.lists(st.integers(0, 80)))
def test_the_result_does_not_depend_on_how_the_bytes_are_split(stream: bytes, cuts: list[int]) -> None:
    places = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    whole, parts = SseParser(1000), SseParser(1000)
    at_once = whole.feed(stream)
    in_parts = [event for a, b in pairwise(places) for event in parts.feed(stream[a:b])]
    assert in_parts == at_once
    assert (parts.last_id, parts.retry) == (whole.last_id, whole.retry)


@pytest.mark.parametrize("chunk", [1, 7, 1000])
@pytest.mark.parametrize(("size", "fits"), [(99, True), (100, True), (101, False)])
def test_the_size_of_an_event_is_bounded(size: int, fits: bool, chunk: int) -> None:
    """All of it together counts: `data: `, its value and the line end."""
    stream = b"data: " + b"x" * (size - 7) + b"\n"
    chunks = [stream[at : at + chunk] for at in range(0, len(stream), chunk)]
    if fits:
        assert read(*chunks, most=100) == []
    else:
        with pytest.raises(EventTooLarge, match="100 bytes"):
            read(*chunks, most=100)


def test_the_lines_of_an_event_are_bounded_together() -> None:
    with pytest.raises(EventTooLarge):
        read(*[b"data: x\n"] * 20, most=100)


def test_the_size_of_a_stream_is_not_bounded() -> None:
    assert len(read(*[b"data: x\n\n", b": comment, and a long one at that\n"] * 1000, most=50)) == 1000


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
@pytest.mark.parametrize("pieces", [1, 3])
def test_comments_do_not_count(end: bytes, pieces: int) -> None:
    """Not their line ends either, nor the event that they interrupt."""
    events = SseParser(30)
    for line in (b"data: xxxxx", *[b": keep-alive"] * 5000):
        whole = line + end
        for at in range(0, len(whole), -(-len(whole) // pieces)):
            assert events.feed(whole[at : at + -(-len(whole) // pieces)]) == []
    assert events.feed(end + end) == [SseEvent(b"xxxxx")]


def test_the_id_of_an_event_that_is_too_large_is_read() -> None:
    """So that it is not asked for again. It may have had none."""
    events = SseParser(100)
    events.feed(b"id: 1\ndata: a\n\n")
    with pytest.raises(EventTooLarge):
        events.feed(b"id: 2\ndata: " + b"x" * 100)
    assert events.last_id == "2"
    events = SseParser(100)
    events.feed(b"id: 1\ndata: a\n\n")
    with pytest.raises(EventTooLarge):
        events.feed(b"data: " + b"x" * 100)
    assert events.last_id == "1"


@pytest.mark.parametrize(("size", "fits"), [(_MOST_ID - 1, True), (_MOST_ID, True), (_MOST_ID + 1, False)])
def test_the_length_of_an_id_is_bounded(size: int, fits: bool) -> None:
    events = SseParser(10_000)
    events.feed(b"id: " + b"x" * size + b"\n\n")
    assert events.last_id == ("x" * size if fits else "")


def test_an_event_of_megabytes_in_small_pieces_takes_no_quadratic_time() -> None:
    events = SseParser(64 << 20)
    for _ in range(32 << 8):
        assert events.feed(b"x" * 1024 if _ else b"data: ") == []
    [event] = events.feed(b"\n\n")
    assert len(event.data) == ((32 << 8) - 1) * 1024
