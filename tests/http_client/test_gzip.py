"""Compressed responses: decompressed as they arrive, and bounded by the limit of their reader."""

from __future__ import annotations

import asyncio
import gzip
import zlib

import pytest

from client.http.scripted import Got, Wire, run, scripted
from client.http.speaking import done, legacy, modern
from longshore.client import Client
from longshore.errors import ConnectError
from longshore.http_client.pool import HttpClient
from longshore.http_client.response import GUNZIP_BYTES, ExchangeBroken, HttpResponse, ResponseTooLarge

GZIP = ("Content-Encoding", "gzip")
TEXT = b"".join(b"%d " % n for n in range(100_000))


def fetch(body: bytes, *headers: tuple[str, str], limit: int = 1 << 20, size: int = 0) -> HttpResponse:
    """Fetch a response with this body, sent in pieces of `size` bytes."""
    found: list[HttpResponse] = []

    async def handler(_: Got, wire: Wire) -> None:
        if not size:
            await wire.answer(200, body, "text/plain", *headers)
            return
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers)
        await wire.send(f"HTTP/1.1 200 OK\r\n{lines}Content-Length: {len(body)}\r\n\r\n".encode())
        for at in range(0, len(body), size):
            await wire.send(body[at : at + size])
            await asyncio.sleep(0)

    async def test() -> None:
        http = HttpClient()
        async with scripted(handler) as server:
            try:
                found.append(await http.fetch("GET", server.url, limit=limit))
            finally:
                await http.close()

    run(test)
    return found[0]


@pytest.mark.parametrize("size", [0, 1000])
@pytest.mark.parametrize("encoding", ["gzip", "GZIP", "x-gzip"])
def test_a_compressed_body_is_decompressed(encoding: str, size: int) -> None:
    assert fetch(gzip.compress(TEXT), ("Content-Encoding", encoding), size=size).body == TEXT


def test_a_compressed_body_may_have_several_members() -> None:
    assert fetch(gzip.compress(b"a") + gzip.compress(b"") + gzip.compress(b"b"), GZIP).body == b"ab"


def test_an_empty_body_needs_no_compressed_data() -> None:
    assert fetch(b"", GZIP).body == b""


@pytest.mark.parametrize(("more", "fits"), [(-1, True), (0, True), (1, False)])
def test_the_limit_counts_decompressed_bytes(more: int, fits: bool) -> None:
    limit = 3 * GUNZIP_BYTES
    body = gzip.compress(b"x" * (limit + more))
    assert len(body) < 2000
    if fits:
        assert len(fetch(body, GZIP, limit=limit).body) == limit + more
    else:
        with pytest.raises(ResponseTooLarge, match=f"more than {limit:,} bytes"):
            fetch(body, GZIP, limit=limit)


def test_a_bomb_is_refused_before_it_expands(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    real = zlib.decompressobj

    class Counted:
        def __init__(self, wbits: int) -> None:
            self._stream = real(wbits)

        def decompress(self, data: bytes, most: int) -> bytes:
            found = self._stream.decompress(data, most)
            made.append(len(found))
            return found

        def __getattr__(self, name: str) -> object:
            return getattr(self._stream, name)

    monkeypatch.setattr("longshore.http_client.response.zlib.decompressobj", Counted)
    bomb = gzip.compress(bytes(200 << 20), 9)
    with pytest.raises(ResponseTooLarge):
        fetch(bomb, GZIP, limit=1 << 20)
    assert sum(made) <= (1 << 20) + GUNZIP_BYTES and max(made) <= GUNZIP_BYTES


@pytest.mark.parametrize(
    ("body", "what"),
    [
        (b"no gzip", "can't be decompressed"),
        (gzip.compress(TEXT)[:-20], "ended in the middle"),
        (gzip.compress(TEXT)[:-8] + bytes(8), "can't be decompressed"),
        (gzip.compress(b"a") + b"junk", "can't be decompressed"),
    ],
    ids=["no gzip", "cut", "wrong checksum", "junk at the end"],
)
def test_broken_compressed_data_is_an_error(body: bytes, what: str) -> None:
    with pytest.raises(ExchangeBroken, match=what):
        fetch(body, GZIP)


@pytest.mark.parametrize("encoding", ["br", "deflate", "gzip, gzip", "zstd"])
def test_an_encoding_that_was_not_requested_is_refused(encoding: str) -> None:
    with pytest.raises(ConnectError, match=r"encoded as .*which was not requested"):
        fetch(b"x", ("Content-Encoding", encoding))


@pytest.mark.parametrize("era", ["modern", "legacy"])
def test_a_call_may_be_answered_by_compressed_json(era: str) -> None:
    async def take(got: Got, wire: Wire) -> None:
        import json

        await wire.answer(200, gzip.compress(json.dumps(done(got)).encode()), "application/json", GZIP)

    async def test() -> None:
        handler = modern(take) if era == "modern" else legacy(take)
        async with scripted(handler) as server, Client(server.url, timeout=10) as client:
            assert (await client.call_tool("x")).text == "ok"

    run(test)


def test_events_of_a_compressed_stream_arrive_as_they_are_flushed() -> None:
    """A server that compresses its stream flushes after each event."""
    import json

    async def take(got: Got, wire: Wire) -> None:
        squeeze = zlib.compressobj(wbits=31)

        def event(message: object) -> bytes:
            data = squeeze.compress(f"data: {json.dumps(message)}\n\n".encode())
            return data + squeeze.flush(zlib.Z_SYNC_FLUSH)

        await wire.stream(GZIP)
        await wire.send(event({"jsonrpc": "2.0", "method": "notifications/message", "params": {}}))
        await asyncio.sleep(0.01)
        await wire.send(event(done(got)))
        await asyncio.sleep(0.1)
        wire.close()

    async def test() -> None:
        async with scripted(modern(take)) as server, Client(server.url, timeout=10) as client:
            assert (await client.call_tool("x")).text == "ok"

    run(test)
