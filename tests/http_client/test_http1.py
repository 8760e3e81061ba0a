"""Responses in any pieces, and corrupted ones."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counts import count
from longshore.http_client.http1 import HttpConnection
from longshore.http_client.response import ExchangeBroken, HttpResponse
from longshore.http_client.urls import parse_url

ANSWERS = [
    b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nX: y\r\n\r\nabc",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\nT: x\r\n\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 No\r\nContent-Length: 3\r\n\r\nabc",
    b"HTTP/1.1 204 No\r\n\r\n",
    b"HTTP/1.0 200 OK\r\n\r\nabc",
    b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 3\r\n\r\nabc",
    b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\naHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil",
]


class Transport:
    """A fake transport."""

    def __init__(self) -> None:
        self.closed = False

    def write(self, _: bytes) -> None: ...

    def is_closing(self) -> bool:
        return self.closed

    def abort(self) -> None:
        self.closed = True

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def get_write_buffer_size(self) -> int:
        return 0

    def get_extra_info(self, _: str) -> Any:
        return self

    def setsockopt(self, *_: int) -> None: ...


def read(chunks: list[bytes]) -> Any:
    """Status, headers and body of a response in these pieces, or the error; and whether the connection is reusable."""

    async def reading() -> Any:
        freed: list[HttpConnection] = []
        connection = HttpConnection(parse_url("http://a"), lambda _: None, freed.append, lambda _: None)
        transport = Transport()
        connection.connection_made(cast("asyncio.Transport", transport))
        streaming = connection.send(b"", b"")
        for chunk in chunks:
            if chunk and not transport.closed:
                connection.data_received(chunk)
        again = bool(freed) and not transport.closed
        if not transport.closed:
            connection.eof_received()
        connection.connection_lost(None)
        return *await outcome(streaming), again

    async def outcome(streaming: HttpResponse) -> tuple[Any, ...]:
        try:
            await streaming.wait_for_head()
            return streaming.status, streaming.headers, b"".join([chunk async for chunk in streaming])
        except ExchangeBroken as problem:
            return type(problem), None, None

    return asyncio.run(asyncio.wait_for(reading(), 10))


def cut(data: bytes, cuts: list[int]) -> list[bytes]:
    places = [0, *sorted(at % (len(data) + 1) for at in cuts), len(data)]
    return [data[a:b] for a, b in zip(places, places[1:], strict=False)]  # noqa: RUF007


@pytest.mark.parametrize("answer", ANSWERS)
def test_a_response_may_arrive_byte_by_byte(answer: bytes) -> None:
    whole = read([answer])
    assert isinstance(whole[0], int)
    assert read([answer[at : at + 1] for at in range(len(answer))])[:3] == whole[:3]


@given(answer=st.sampled_from(ANSWERS), cuts=st.lists(st.integers(0, 500), max_size=6))
@settings(max_examples=count(60), deadline=None)
def test_the_result_does_not_depend_on_how_the_bytes_are_split(answer: bytes, cuts: list[int]) -> None:
    assert read(cut(answer, cuts))[:3] == read([answer])[:3]


@given(
    answer=st.sampled_from(ANSWERS),
    at=st.integers(0, 200),
    junk=st.binary(max_size=8) | st.sampled_from([b"\r\n", b"\0", b": ", b"\r\n\r\n", b"9" * 30]),
    cuts=st.lists(st.integers(0, 500), max_size=4),
)
@settings(max_examples=count(200), deadline=None)
def test_a_corrupted_response_is_read_or_refused(answer: bytes, at: int, junk: bytes, cuts: list[int]) -> None:
    """Never anything else: no other exception, and no waiting for ever."""
    at %= len(answer)
    spoiled = answer[:at] + junk + answer[at + len(junk) :]
    status, _, _, _ = read(cut(spoiled, cuts))
    assert status is ExchangeBroken or 100 <= status <= 999


def test_a_connection_with_an_unasked_response_is_not_reused() -> None:
    first, *_, doubled = ANSWERS
    assert read([first])[3] is True
    assert read([doubled])[3] is False
    assert read([ANSWERS[5]])[3] is False
