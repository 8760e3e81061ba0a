"""HTTP_PROXY, HTTPS_PROXY and NO_PROXY, with a real proxy, and TLS through it."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import uvloop

from client.http.scripted import Got, Wire, run, scripted
from client.http.speaking import call_ok, modern
from longshore.client import Client
from longshore.errors import ConnectError
from longshore.http_client.dial import find_proxy
from longshore.http_client.http1 import Proxy as FoundProxy
from longshore.http_client.pool import HttpClient
from longshore.http_client.response import Unreachable
from longshore.http_client.urls import parse_url
from services import free_port, make_certificate

from .proxy import Proxy, proxying


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "request_method"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


async def hello(got: Got, wire: Wire) -> None:
    await wire.answer(200, f"{got.path} {got.headers['host']}".encode(), "text/plain")


@asynccontextmanager
async def tls_server(folder: Path) -> AsyncIterator[tuple[int, Path]]:
    """A TLS server with a certificate for mcp.test; gives its port and the file of its own CA."""
    cert, key = make_certificate(folder, "mcp.test")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError, ssl.SSLError):
            while head := await reader.readuntil(b"\r\n\r\n"):
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n" + head.split(b" ")[1].ljust(8))
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    try:
        yield server.sockets[0].getsockname()[1], cert
    finally:
        server.close()
        await server.wait_closed()


def test_an_http_url_goes_to_the_proxy_whole_and_its_connection_is_reused(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        http = HttpClient()
        async with scripted(hello) as server, proxying(Proxy()) as proxy:
            monkeypatch.setenv("HTTP_PROXY", proxy.url)
            for _ in range(2):
                answer = await http.fetch("POST", f"http://mcp.test:{server.port}/x", (), b"body")
                assert answer.body.endswith(f"/x mcp.test:{server.port}".encode())
                assert server.requests[-1].body == b"body"
            assert proxy.targets == [f"POST http://mcp.test:{server.port}/x"]  # it copies what follows
            assert server.requests[1].path == f"http://mcp.test:{server.port}/x"
            assert server.connections == 1
            assert server.requests[0].headers.get("proxy-authorization") is None
            await http.close()

    run(test)


@pytest.mark.parametrize("loop", [asyncio.SelectorEventLoop, uvloop.new_event_loop])
def test_an_https_url_goes_through_a_tunnel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loop: type[asyncio.SelectorEventLoop]
) -> None:
    async def test() -> None:
        http = HttpClient()
        async with tls_server(tmp_path) as (port, ca), proxying(Proxy()) as proxy:
            monkeypatch.setenv("https_proxy", proxy.url)
            with pytest.raises(Unreachable, match="certificate is not trusted"):
                await http.fetch("GET", f"https://mcp.test:{port}/a")
            monkeypatch.setenv("SSL_CERT_FILE", str(ca))
            for path in ("/a", "/b"):
                assert (await http.fetch("GET", f"https://mcp.test:{port}{path}")).body.strip() == path.encode()
            with pytest.raises(Unreachable, match="certificate is not trusted"):
                await http.fetch("GET", f"https://other.test:{port}/a")
            assert proxy.targets == [f"CONNECT {host}.test:{port}" for host in ("mcp", "mcp", "other")]
            await http.close()

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(asyncio.wait_for(test(), 30))


def test_an_mcp_client_uses_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        async with scripted(modern(call_ok)) as server, proxying(Proxy()) as proxy:
            monkeypatch.setenv("HTTP_PROXY", proxy.url)
            async with Client(f"http://mcp.test:{server.port}/mcp", timeout=10) as client:
                assert (await client.call_tool("x")).text == "ok"
            assert proxy.heads

    run(test)


def test_the_proxy_gets_user_and_password_and_the_server_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test() -> None:
        http = HttpClient()
        basic = "Basic bWU6YSBzZWNyZXQ="
        proxy = Proxy(authorization=basic)
        async with scripted(hello) as server, tls_server(tmp_path) as (port, ca), proxying(proxy):
            monkeypatch.setenv("SSL_CERT_FILE", str(ca))
            monkeypatch.setenv("ALL_PROXY", proxy.url)
            with pytest.raises(Unreachable, match=r"HTTP status 407\); give user and password"):
                await http.fetch("GET", f"https://mcp.test:{port}/")
            assert (await http.fetch("GET", f"http://mcp.test:{server.port}/")).status == 407
            monkeypatch.setenv("ALL_PROXY", f"http://me:a%20secret@127.0.0.1:{proxy.port}")
            await http.close()
            http = HttpClient()
            assert (await http.fetch("GET", f"https://mcp.test:{port}/")).status == 200
            assert (await http.fetch("GET", f"http://mcp.test:{server.port}/")).status == 200
            assert "proxy-authorization" not in server.requests[-1].headers
            await http.close()

    run(test)


@pytest.mark.parametrize(
    ("said", "what"),
    [
        ("HTTP/1.1 403 Forbidden\r\n\r\n", r"does not connect to mcp.test:443 \(HTTP status 403\)"),
        ("SSH-2.0-OpenSSH_9.6\r\n\r\n", "no HTTP"),
        ("", "no HTTP"),
        ("HTTP/1.1 200 OK\r\n\r\nevil", "no HTTP"),
        ("HTTP/1.1 200 OK\r\nX: " + "y" * 20_000, "no HTTP"),
    ],
)
def test_a_proxy_that_refuses_or_speaks_no_http_leaves_the_request_unsent(
    monkeypatch: pytest.MonkeyPatch, said: str, what: str
) -> None:
    async def test() -> None:
        http = HttpClient()
        proxy = Proxy(refuse=said or "\0")
        async with proxying(proxy):
            monkeypatch.setenv("HTTPS_PROXY", proxy.url)
            with pytest.raises(Unreachable, match=what):
                await http.fetch("POST", "https://mcp.test/", (), b"x")
        await http.close()

    run(test)


def test_a_proxy_that_is_down_is_named_in_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    monkeypatch.setenv("HTTPS_PROXY", f"127.0.0.1:{port}")

    async def test() -> None:
        http = HttpClient()
        with pytest.raises(Unreachable, match=f"the proxy 127.0.0.1:{port} can't be reached"):
            await http.fetch("GET", "https://mcp.test/")
        await http.close()

    run(test)


@pytest.mark.parametrize("given", ["socks5://me:secret@p:1", "https://p:1", "http://", "http://p:x", "http://[::1"])
def test_a_proxy_of_another_kind_is_refused(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setenv("HTTPS_PROXY", given)
    with pytest.raises(ConnectError, match=r"HTTPS_PROXY names .*give the proxy as http://host:port") as caught:
        find_proxy(parse_url("https://a.example"))
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("excepted", "url", "used"),
    [
        ("", "http://a.example", True),
        ("*", "http://a.example", False),
        ("a.example", "http://a.example", False),
        ("A.Example", "http://a.example.", False),
        ("example", "http://a.example", False),
        (".example", "http://a.example", False),
        ("*.example", "http://a.example", False),
        ("a.example", "http://ba.example", True),
        ("b.example, a.example", "http://a.example", False),
        ("a.example:81", "http://a.example", True),
        ("a.example:81", "http://a.example:81", False),
        ("10.0.0.0/8", "http://10.1.2.3", False),
        ("10.0.0.0/8", "http://11.1.2.3", True),
        ("fd00::/8", "http://[fd00::1]", False),
        ("fd00::1", "http://[fd00::1]", False),
        ("[fd00::1]:80", "http://[fd00::1]", False),
        (".", "http://a.example", True),
        (",", "http://a.example", True),
        ("", "http://localhost:9100", False),
        ("", "http://127.0.0.1", False),
        ("", "http://[::1]", False),
    ],
)
def test_which_hosts_are_reached_through_the_proxy(
    monkeypatch: pytest.MonkeyPatch, excepted: str, url: str, used: bool
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "p:3128")
    monkeypatch.setenv("NO_PROXY", excepted)
    assert find_proxy(parse_url(url)) == (FoundProxy("p", 3128) if used else None)


def test_in_a_cgi_program_a_request_header_can_not_name_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://evil:1")
    monkeypatch.setenv("REQUEST_METHOD", "GET")
    assert find_proxy(parse_url("http://a.example")) is None
    monkeypatch.setenv("http_proxy", "http://good:1")
    assert find_proxy(parse_url("http://a.example")) == FoundProxy("good", 1)
