"""The streams of sessions and requests: when they are resumed, and for how long."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from client.http.scripted import SECONDS, Got, ScriptedServer, Wire, scripted
from client.http.speaking import attempt, call_ok, done, legacy
from longshore.backoff import Backoff
from longshore.client import Client
from longshore.client.http import RESUME_TRIES
from longshore.client.sse import _BACKOFF, _LEAST_RETRY, _MOST_RETRY, SseParser
from longshore.errors import ConnectionLost
from longshore.limits import Limits


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longshore.client.sse._BACKOFF", Backoff(first=0.001, most=0.02))
    monkeypatch.setattr("longshore.client.sse._LEAST_RETRY", 0.001)


def gets(server: ScriptedServer) -> int:
    return sum(got.method == "GET" for got in server.requests)


def log(data: Any) -> Any:
    return {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": data}}


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize("how", ["close", "cut", "503", "empty"])
async def test_an_unavailable_stream_fails_no_request_and_is_retried(how: str) -> None:
    """Requests go on, and messages of the restored stream are received."""
    back = asyncio.Event()
    heard = asyncio.Event()

    async def get(_: Got, wire: Wire) -> None:
        if back.is_set():
            await wire.stream()
            await wire.event(log("here"))
            await asyncio.sleep(60)
        elif how == "503":
            await wire.answer(503)
        elif how == "empty":
            await wire.stream()
            wire.close()
        else:
            wire.close() if how == "close" else wire.cut()

    async with attempt(legacy(call_ok, get=get), on_log=lambda _: heard.set()) as (client, server):
        await server.until(lambda server: gets(server) > 2 * RESUME_TRIES)
        assert client.connected
        assert (await client.call_tool("x")).text == "ok"
        if how != "empty":
            [note] = client.problems
            assert note.startswith("the stream of the session is not available at the moment")
        back.set()
        async with asyncio.timeout(SECONDS):
            await heard.wait()
        assert sum(b'"initialize"' in got.body for got in server.requests) == 1


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize("before", [0, RESUME_TRIES])
async def test_a_server_that_stays_down_is_lost(before: int) -> None:
    """After a number of failed connections in a row, also if it worked before."""

    async def get(_: Got, wire: Wire) -> None:
        if gets(server) <= before:
            await wire.answer(503)
        else:
            server._server.close()
            wire.cut()

    async with scripted(legacy(call_ok, get=get)) as server, Client(server.url, timeout=SECONDS) as client:
        async with asyncio.timeout(SECONDS):
            while client.connected:
                await asyncio.sleep(0.002)


@pytest.mark.parametrize(
    ("status", "begun", "noted"),
    [(405, False, False), (404, False, False), (405, True, True), (410, False, True), (200, False, True)],
)
@pytest.mark.usefixtures("hurried")
async def test_a_server_that_has_no_stream_is_not_asked_again(status: int, begun: bool, noted: bool) -> None:
    async def get(_: Got, wire: Wire) -> None:
        if begun and gets(server) == 1:
            await wire.stream()
            await wire.send(b": x\n\n")
            wire.close()
        else:
            await wire.answer(status, b"no", "text/plain")

    handler = legacy(call_ok, get=get, session=None)
    async with scripted(handler) as server, Client(server.url, timeout=SECONDS) as client:
        await server.until(lambda server: gets(server) == 1 + begun)
        assert (await client.call_tool("x")).text == "ok"
        if noted:
            async with asyncio.timeout(SECONDS):
                while not client.problems:
                    await asyncio.sleep(0.002)
            assert "has ended" in client.problems[0]
        await asyncio.sleep(0.05)
        assert gets(server) == 1 + begun
        assert bool(client.problems) is noted


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize("named", [False, True])
async def test_an_event_that_is_too_large_is_skipped(named: bool) -> None:
    """It is noted, and later messages are received. An event with an id is not requested again."""
    last: list[str | None] = []
    heard = asyncio.Event()

    async def get(got: Got, wire: Wire) -> None:
        last.append(got.headers.get("last-event-id"))
        await wire.stream()
        if len(last) < 3:
            await wire.event(log("x" * 5000), **({"id": f"e{len(last)}"} if named else {}))
        else:
            await wire.event(log("short"))
        await asyncio.sleep(60)

    options: Any = {"limits": Limits(frame_bytes=2000), "on_log": lambda _: heard.set()}
    async with attempt(legacy(call_ok, get=get), **options) as (client, _):
        async with asyncio.timeout(SECONDS):
            await heard.wait()
        assert last == ([None, "e1", "e2"] if named else [None, None, None])
        assert "more than 2,000 bytes" in " ".join(client.problems)


# -- the stream of a request


async def begin(_: Got, wire: Wire) -> None:
    await wire.stream()
    await wire.event("", id="1")
    wire.close()


@pytest.mark.parametrize("sign", [b"id: 2\ndata:\n\n", b": still at it\n\n"])
@pytest.mark.usefixtures("hurried")
async def test_a_request_waits_while_its_stream_sends_anything(sign: bytes) -> None:
    calls: list[Got] = []

    async def take(got: Got, wire: Wire) -> None:
        calls.append(got)
        await begin(got, wire)

    async def get(got: Got, wire: Wire) -> None:
        if "last-event-id" not in got.headers:
            await wire.answer(405)
            return
        await wire.stream()
        await (wire.send(sign) if gets(server) < 4 * RESUME_TRIES else wire.event(done(calls[0])))
        wire.close()

    async with scripted(legacy(take, get=get)) as server, Client(server.url, timeout=None) as client:
        assert (await client.call_tool("x")).text == "ok"


@pytest.mark.parametrize("how", ["empty", "503"])
@pytest.mark.usefixtures("hurried")
async def test_a_silent_stream_is_resumed_a_bounded_number_of_times(how: str) -> None:
    async def get(got: Got, wire: Wire) -> None:
        if "last-event-id" not in got.headers:
            await wire.answer(405)
        elif how == "503":
            await wire.answer(503)
        else:
            await wire.stream()
            wire.close()

    async with attempt(legacy(begin, get=get), timeout=None) as (client, server):
        with pytest.raises(
            ConnectionLost, match="without a message" if how == "empty" else "could not be resumed.*503"
        ):
            await client.call_tool("x")
        assert sum("last-event-id" in got.headers for got in server.requests) == RESUME_TRIES


def test_delays_double_up_to_a_bound() -> None:
    place = SseParser(1000)
    delays: list[float] = []
    for _ in range(30):
        delays.append(place.delay())
        place.failures += 1
    assert delays[:7] == [_BACKOFF.first * 2**n for n in range(7)]
    assert delays[7:] == [_BACKOFF.most] * 23


@pytest.mark.parametrize(
    ("retry", "delay"),
    [
        ("0", _LEAST_RETRY),
        ("49", _LEAST_RETRY),
        ("50", _LEAST_RETRY),
        ("51", 0.051),
        ("299999", 299.999),
        ("300000", _MOST_RETRY),
        ("300001", _MOST_RETRY),
    ],
)
def test_the_retry_of_the_server_is_used_within_bounds(retry: str, delay: float) -> None:
    place = SseParser(1000)
    place.feed(b"retry: %s\nid: 7\n\n" % retry.encode())
    assert place.delay() == delay
    assert place.last_id == "7"
    place.failures = 99
    assert place.delay() == max(delay, _BACKOFF.most)
