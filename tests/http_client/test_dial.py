"""Connecting to a host that has several addresses."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import uvloop

from client.http.scripted import SECONDS, Got, Wire, scripted
from longshore.errors import ConnectError
from longshore.http_client.dial import _trusting
from longshore.http_client.pool import HttpClient
from services import free_port

Lookup = list[tuple[Any, ...]]


class Named:
    """A loop that resolves one name to several addresses."""

    async def getaddrinfo(self, host: str, port: int, **more: Any) -> Lookup:
        if host != "several.test":
            return await super().getaddrinfo(host, port, **more)  # type: ignore[misc,no-any-return]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, port)) for each in ("127.0.0.2", "127.0.0.1")]


class Plain(Named, asyncio.SelectorEventLoop): ...


class Fast(Named, uvloop.Loop): ...


LOOPS = [Plain, Fast]


async def hello(_: Got, wire: Wire) -> None:
    await wire.answer(200, b"hello", "text/plain")


@contextmanager
def silent(port: int) -> Iterator[None]:
    """An address that accepts no connection: its queue is full."""
    filling: list[socket.socket] = []
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.2", port))
        deaf.listen(0)
        for _ in range(4):
            wire = socket.socket()
            wire.setblocking(False)
            wire.connect_ex(("127.0.0.2", port))
            filling.append(wire)
        try:
            yield
        finally:
            for wire in filling:
                wire.close()


def run_on(make: Any, test: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(SECONDS):
            await test()

    with asyncio.Runner(loop_factory=make) as runner:
        runner.run(bounded())


@pytest.mark.parametrize("make", LOOPS)
@pytest.mark.parametrize("first", ["silent", "refusing"])
def test_the_next_address_is_tried_if_the_first_does_not_answer(
    make: Any, first: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("longshore.http_client.pool.CONNECT_SECONDS", 2.0)

    async def test() -> None:
        async with scripted(hello) as server:
            http = HttpClient()
            url = f"http://several.test:{server.port}/"
            if first == "silent":
                with silent(server.port):
                    assert (await http.fetch("GET", url)).body == b"hello"
            else:
                assert (await http.fetch("GET", url)).body == b"hello"
            await http.close()

    run_on(make, test)


@pytest.mark.parametrize("make", LOOPS)
def test_the_error_is_the_last_if_no_address_answers(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longshore.http_client.pool.CONNECT_SECONDS", 0.5)
    port = free_port()

    async def test() -> None:
        http = HttpClient()
        with pytest.raises(ConnectError, match=f"nothing listens at several.test port {port}"):
            await http.fetch("GET", f"http://several.test:{port}/")
        with silent(port), pytest.raises(ConnectError, match=r"no connection within 0\.5 s|nothing listens"):
            await http.fetch("GET", f"http://several.test:{port}/")
        with pytest.raises(ConnectError, match=r"'nobody\.invalid' is not known"):
            await http.fetch("GET", "http://nobody.invalid/")
        await http.close()

    run_on(make, test)


@pytest.mark.parametrize("make", LOOPS)
def test_a_connection_has_tcp_keep_alive(make: Any) -> None:
    async def test() -> None:
        async with scripted(hello) as server:
            http = HttpClient()
            await http.fetch("GET", server.url)
            [connection] = http._live
            wire = connection._transport.get_extra_info("socket")  # type: ignore[union-attr]
            assert wire.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            if hasattr(socket, "TCP_KEEPIDLE"):
                assert wire.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 30
            await http.close()

    run_on(make, test)


@pytest.mark.parametrize("make", LOOPS)
def test_a_connection_is_not_reused_while_a_request_is_still_being_sent(make: Any) -> None:
    """The server answered early. The rest of the request would precede the next one."""
    connections = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await reader.readuntil(b"\r\n\r\n")
        status = b"413 X" if connections == 1 else b"200 OK"
        writer.write(b"HTTP/1.1 %s\r\nContent-Length: 2\r\n\r\nok" % status)
        if connections == 1:
            writer.transport.pause_reading()  # type: ignore[attr-defined]
            await over.wait()
        writer.transport.abort()

    async def test() -> None:
        nonlocal over
        over = asyncio.Event()
        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
            http = HttpClient()
            assert (await http.fetch("POST", url, (), b"x" * 30_000_000)).status == 413
            assert (await http.fetch("POST", url, (), b"hi")).status == 200
            assert connections == 2
            over.set()
            await http.close()

    over: Any = None
    run_on(make, test)


def test_the_trust_store_is_loaded_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    _trusting.cache_clear()

    async def ask() -> None:
        http = HttpClient()
        with pytest.raises(ConnectError):
            await http.fetch("GET", f"https://127.0.0.1:{free_port()}/")
        await http.close()

    for _ in range(3):
        asyncio.run(ask())
    assert _trusting.cache_info().misses == 1
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))
    asyncio.run(ask())
    assert _trusting.cache_info().misses == 2
    _trusting.cache_clear()
