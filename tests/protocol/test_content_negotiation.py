"""Content-Type and Accept, case by case."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longshore.protocol.http_headers import LONGEST_KNOWN, MOST_KNOWN, _known, accepts, is_json


@pytest.mark.parametrize(
    "raw",
    [
        b"application/json",
        b"Application/JSON",
        b" application/json\t",
        b"application/json;charset=utf-8",
        b"application/json; charset=utf-8",
        b"application/json; charset=UTF-8",
        b"application/json ; Charset=Utf-8",
        b'application/json; charset="utf-8"',
        b'application/json;charset="UTF-8" ',
    ],
)
def test_json_in_utf_8_is_taken(raw: bytes) -> None:
    assert is_json(raw)


@pytest.mark.parametrize(
    "raw",
    [
        None,
        b"",
        b"text/plain",
        b"text/plain; charset=utf-8",
        b"text/json",
        b"application/x-www-form-urlencoded",
        b"multipart/form-data; boundary=application/json",
        b"application/jsonx",
        b"application/json-rpc",
        b"application/ld+json",
        b"application/vnd.api+json",
        b"xapplication/json",
        b"application /json",
        b"application",
        b"*/*",
        b"application/*",
        b"application/json;",
        b"application/json, text/plain",
        b"application/json,application/json",
        b"text/plain;application/json",
        b"application/json; charset=latin-1",
        b"application/json; charset=utf-16",
        b"application/json; charset=utf-8; charset=latin-1",
        b"application/json; charset",
        b"application/json; charset=",
        b"application/json; charset = utf-8",
        b'application/json; charset="utf-8',
        b"application/json; charset='utf-8'",
        b"application/json; version=1",
        b"application/json\r\nx: y",
        b"application/json\n",
        b"application/json\x00",
        "аpplication/json".encode(),
    ],
)
def test_other_content_types_are_refused(raw: bytes | None) -> None:
    assert not is_json(raw)


@pytest.mark.parametrize(
    ("raw", "json", "stream"),
    [
        (None, True, True),
        (b"", True, True),
        (b" , ,", True, True),
        (b"*/*", True, True),
        (b"application/json, text/event-stream", True, True),
        (b"text/event-stream,application/json", True, True),
        (b"Application/JSON, Text/Event-Stream", True, True),
        (b"application/json", True, False),
        (b"text/event-stream", False, True),
        (b"application/*", True, False),
        (b"text/*", False, True),
        (b"text/html, application/xhtml+xml, */*;q=0.8", True, True),
        (b"text/html", False, False),
        (b"application/jsonx, text/event-streamx", False, False),
        (b"application/json;q=0", False, False),
        (b"application/json;q=0, */*", False, True),
        (b"*/*, application/json; q=0.000", False, True),
        (b"text/*;q=0, */*;q=1", True, False),
        (b"text/event-stream;q=0.1, text/*;q=0", False, True),
        (b"*/*;q=0", False, False),
        (b"*/*;q=0.0, application/json", True, False),
        (b"application/json;q=0.001", True, False),
        (b"application/json;Q=0", False, False),
        (b"application/json ; q=0 ", False, False),
        (b"application/json;charset=utf-8;q=0.5, text/event-stream;v=1", True, True),
        (b"application/json;q=0, application/json", True, False),
        (b"application/json;q=nonsense", True, False),
        (b"application/json;q=", True, False),
        (b"application/json;quality=0", True, False),
        (b"*", False, False),
        (b"*/json", False, False),
        (b"\xff\xfe", False, False),
    ],
)
def test_accept_headers_are_parsed(raw: bytes | None, json: bool, stream: bool) -> None:
    for _ in range(2):
        assert accepts(raw) == (json, stream)


@given(st.binary())
def test_any_bytes_have_an_answer(raw: bytes) -> None:
    assert accepts(raw) in {(True, True), (True, False), (False, True), (False, False)}
    assert is_json(raw) in (True, False)


def test_the_cache_of_accept_headers_is_bounded() -> None:
    for n in range(2 * MOST_KNOWN):
        accepts(b"text/x-%d" % n)
    held = _known.cache_info().currsize
    assert held <= MOST_KNOWN
    before = _known.cache_info()
    assert accepts(b"application/json," + b"x" * LONGEST_KNOWN) == (True, False)
    assert _known.cache_info() == before
