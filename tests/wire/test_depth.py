"""Depth is told without a recursive parser, and agrees with a scanner that is too simple to be wrong."""

from __future__ import annotations

import json
import tracemalloc
from threading import Thread
from threading import stack_size as set_stack_size
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from counts import count
from longshore.limits import DEFAULT_LIMITS
from longshore.wire.codec import is_shallow, read, too_deep
from longshore.wire.messages import Malformed


def deepest(frame: bytes) -> int:
    """The deepest level, by walking over the bytes."""
    level = most = 0
    in_string = escaped = False
    for byte in frame:
        if in_string:
            if escaped:
                escaped = False
            elif byte == 0x5C:
                escaped = True
            elif byte == 0x22:
                in_string = False
        elif byte == 0x22:
            in_string = True
        elif byte in b"[{":
            level += 1
            most = max(most, level)
        elif byte in b"]}":
            level -= 1
    return most


_SCALARS = st.none() | st.booleans() | st.integers() | st.text(st.sampled_from('ab[]{}"\\/\n\u2028é'), max_size=12)
_JSON = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=25,
)


def wrap(value: Any, levels: int) -> Any:
    for index in range(levels):
        value = [value] if index % 2 else {"a]": value, "b": '["\\'}
    return value


@settings(max_examples=count(300), deadline=None)
@given(value=_JSON, levels=st.integers(0, 12), limit=st.integers(1, 12))
@example(value=['\\"[', "\\\\", '"'], levels=3, limit=3)
def test_too_deep_agrees_with_a_scanner_on_every_json_text(value: Any, levels: int, limit: int) -> None:
    frame = json.dumps(wrap(value, levels), ensure_ascii=False).encode()
    assert too_deep(frame, limit) == (deepest(frame) > limit)


@settings(max_examples=count(200), deadline=None)
@given(
    pieces=st.lists(
        st.sampled_from([b"[", b"]", b"{", b"}", b'"', b"\\", b'\\"', b"\\\\", b"a", b",", b" "]), max_size=80
    ),
    limit=st.integers(1, 6),
)
def test_no_text_that_a_parser_could_follow_too_deep_is_let_through(pieces: list[bytes], limit: int) -> None:
    """Text that is not JSON may be judged either way, as long as what comes before its first fault is not too deep."""
    frame = b"".join(pieces)
    if not too_deep(frame, limit):
        assert parser_depth(frame) <= max(limit, len(frame) if len(frame) <= 2 * limit else 0)


def parser_depth(frame: bytes) -> int:
    """How deep a parser gets before it meets its first fault or the end."""
    try:
        json.loads(frame)
        return deepest(frame)
    except json.JSONDecodeError as fault:
        return deepest(frame.decode()[: fault.pos].encode())


@pytest.mark.parametrize("filler", [b"", b" " * 20_000], ids=["short", "long"])
@pytest.mark.parametrize(("levels", "deep"), [(127, False), (128, False), (129, True), (900, True), (100_000, True)])
@pytest.mark.parametrize(("left", "right"), [(b"[", b"]"), (b'{"a":', b"}"), (b'{"]":[', b"]}")])
def test_the_limit_is_exact(left: bytes, right: bytes, levels: int, deep: bool, filler: bytes) -> None:
    step = 2 if len(right) == 2 else 1
    inner = b"[]" if levels % step else b"1"
    frame = left * (levels // step) + filler + inner + right * (levels // step)
    assert deepest(frame) == levels
    assert too_deep(frame, 128) is deep


@pytest.mark.parametrize(
    "frame",
    [
        b'["' + b"[" * 5000 + b'"]',
        b'["' + b'\\"[' * 5000 + b'"]',
        b'["' + b"\\\\[" * 5000 + b'"]',
        b'{"' + b"{" * 5000 + b'":"' + b"[" * 5000 + b'"}',
        b"[" + b",".join([b"[]"] * 5000) + b"]",
        b"[" + b",".join([b'{"a":[1]}'] * 5000) + b"]",
    ],
)
def test_brackets_in_strings_and_side_by_side_do_not_count(frame: bytes) -> None:
    json.loads(frame)
    assert not too_deep(frame, 128)


@pytest.mark.parametrize("frame", [b'"' + b"[" * 5000, b'"\\' + b"[" * 5000])
def test_a_string_that_never_ends_holds_no_levels(frame: bytes) -> None:
    assert not too_deep(frame, 128)


@pytest.mark.parametrize("count", [127, 128, 129])
def test_shallow_counts_opening_brackets_up_to_the_limit(count: int) -> None:
    data = bytearray(b"[{" * (count // 2) + b"[" * (count % 2))
    assert is_shallow(data, len(data), 128) is (count <= 128)
    assert is_shallow(data + b"[" * 999, len(data), 128) is (count <= 128)


def test_a_hundred_thousand_levels_are_refused_on_a_thread_with_a_small_stack() -> None:
    told: list[Any] = []
    old = set_stack_size(256 << 10)
    try:
        frames = [b"[" * 100_000, b"[" * 128 + b"]" * 128, b'{"a":' * 900]
        thread = Thread(target=lambda: told.extend(read(f, DEFAULT_LIMITS.depth, 100) for f in frames))
        thread.start()
    finally:
        set_stack_size(old)
    thread.join(5)
    assert len(told) == 3
    assert isinstance(told[0], Malformed) and told[0].code == -32700
    assert isinstance(told[2], Malformed) and told[2].code == -32700


@settings(max_examples=count(100), deadline=None)
@given(
    pieces=st.lists(
        st.sampled_from(['"a"', '"\\\\"', '"\\""', '"[{"', "[]", "{}", '"\\\\\\""', '"\\u005b"']),
        min_size=1,
        max_size=9,
    ),
    shift=st.integers(0, 12),
    levels=st.integers(125, 131),
)
def test_the_depth_of_a_frame_does_not_depend_on_the_slices(pieces: list[str], shift: int, levels: int) -> None:
    """Strings and escapes lie across every boundary between two slices."""
    frame = (
        " " * shift + "[" * (levels - 1) + "[" + ",".join(pieces * (150_000 // len(",".join(pieces)))) + "]"
    ).encode()
    frame += b"]" * (levels - 1)
    assert too_deep(frame, 128) == (deepest(frame) > 128)


@pytest.mark.parametrize("unit", [b'"",[],', b'{"a":1},', b'["a\\\\"],', b'["\\""],', b'"",'])
def test_a_frame_of_megabytes_is_judged_without_megabytes_of_objects(unit: bytes) -> None:
    frame = b"[" + b"[]," * 200 + unit * ((4 << 20) // len(unit)) + b"1]"
    tracemalloc.start()
    try:
        assert not too_deep(frame, 128)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < len(frame)
