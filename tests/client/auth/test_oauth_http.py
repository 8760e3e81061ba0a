"""A server outside can't have us connect to our own network by a name of its choice.

The resolver is the test's, and the connections are real.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from longshore.client.auth.oauth_http import OAuthHttp, OAuthResponse, UrlPolicy, is_internal
from longshore.errors import AuthorizationError
from longshore.http_client.dial import NotAllowed
from longshore.http_client.pool import HttpClient
from services import make_certificate

from .conftest import run


@pytest.mark.parametrize(
    ("host", "inside"),
    [
        ("64:ff9b::7f00:1", True),
        ("64:ff9b::a9fe:a9fe", True),
        ("64:ff9b::808:808", False),
        ("64:ff9b:1::808:808", True),
        ("2002:7f00:1::", True),
        ("2002:a00:1::1", True),
        ("2002:808:808::1", False),
        ("::127.0.0.1", True),
        ("::", True),
        ("fec0::1", True),
        ("ff02::1", True),
        ("224.0.0.1", True),
        ("100.64.0.1", True),
        ("0.0.0.0", True),
        ("1.1", False),
        ("ip6-localhost", True),
        ("IP6-Loopback.", True),
        ("localhost.localdomain", True),
        ("2606:4700::1111", False),
        ("8.8.8.8", False),
        ("as.example", False),
    ],
)
def test_which_hosts_are_internal(host: str, inside: bool) -> None:
    assert is_internal(host) is inside


Names = dict[str, list[list[str]]]


@contextmanager
def resolving(monkeypatch: pytest.MonkeyPatch, names: Names) -> Iterator[list[str]]:
    """A resolver for these names: each lookup gives the next list of addresses."""
    asked: list[str] = []
    real = socket.getaddrinfo

    def look_up(host: Any, port: Any, *args: Any, **options: Any) -> Any:
        if host not in names:
            return real(host, port, *args, **options)
        asked.append(host)
        found = names[host].pop(0) if len(names[host]) > 1 else names[host][0]
        return [each for address in found for each in real(address, port, *args, **options)]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    yield asked


class InternalServer:
    """A TLS server in our own network. `names` are in its certificate."""

    def __init__(self, folder: Path, *names: str) -> None:
        self.connections = 0
        self.certificate, key = make_certificate(folder, *names)
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._tls.load_cert_chain(self.certificate, key)

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", 0, ssl=self._tls)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def close(self) -> None:
        self._server.close()
        await self._server.wait_closed()
        knocking = asyncio.all_tasks() - {asyncio.current_task()}  # handshakes that came to nothing
        if knocking:
            await asyncio.wait(knocking, timeout=10)


async def fetch(server: str, url: str, issuer: str | None = None, peer: str = "") -> OAuthResponse:
    """Fetch a URL that a server named, which had answered from the address `peer`."""
    policy = UrlPolicy(server, issuer)
    policy.note_peer(peer)
    async with OAuthHttp(policy) as http:
        return await http.get(url, "the token_endpoint")


def with_internal_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, work: Any, *names: str) -> InternalServer:
    """Run the work with an internal server whose certificate is trusted."""
    internal = InternalServer(tmp_path, *names)

    async def with_server() -> None:
        await internal.open()
        monkeypatch.setenv("SSL_CERT_FILE", str(internal.certificate))
        try:
            await work(internal)
        finally:
            await internal.close()

    run(with_server)
    return internal


INSIDE = [["127.0.0.1"]]


@pytest.mark.parametrize("address", ["127.0.0.1", "::ffff:127.0.0.1", "10.255.255.1", "169.254.169.254", "::1"])
def test_a_name_that_resolves_to_an_internal_address_is_refused(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    """The server is outside, so the URLs that it names must be too. No connection is made to find that out."""
    tried: list[str] = []

    async def connect(self: Any, make: Any, host: str, *args: Any, **options: Any) -> None:
        tried.append(host)
        raise OSError("unreachable")

    monkeypatch.setattr(asyncio.BaseEventLoop, "create_connection", connect)
    monkeypatch.setattr(asyncio.SelectorEventLoop, "sock_connect", connect)

    async def work() -> None:
        with pytest.raises(AuthorizationError, match=r"the token_endpoint 'https://as.test/x'.*name it by issuer="):
            await fetch("https://mcp.test/mcp", "https://as.test/x")

    with resolving(monkeypatch, {"as.test": [[address]], "mcp.test": [["9.9.9.9"]]}):
        run(work)
    assert tried == []


def test_no_connection_is_made_to_an_internal_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(internal: InternalServer) -> None:
        with pytest.raises(AuthorizationError, match="which a server outside has no reason to name"):
            await fetch("https://9.9.9.9/mcp", f"https://as.test:{internal.port}/x")

    with resolving(monkeypatch, {"as.test": INSIDE}):
        assert with_internal_server(tmp_path, monkeypatch, work, "as.test").connections == 0


def test_an_internal_server_may_name_internal_urls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(internal: InternalServer) -> None:
        found = await fetch("https://mcp.test/mcp", f"https://as.test:{internal.port}/x", peer="127.0.0.1")
        assert found.status == 200

    with resolving(monkeypatch, {"as.test": INSIDE}):
        with_internal_server(tmp_path, monkeypatch, work, "as.test")


@pytest.mark.parametrize(
    ("server", "peer"), [("http://mcp.test/mcp", "127.0.0.1"), ("https://mcp.test/mcp", "9.9.9.9")]
)
def test_a_server_that_did_not_answer_over_tls_from_an_internal_address_may_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: str, peer: str
) -> None:
    """Without TLS, any machine at an internal address could have answered for the name."""

    async def work(internal: InternalServer) -> None:
        with pytest.raises(AuthorizationError, match="has no reason to name"):
            await fetch(server, f"https://as.test:{internal.port}/x", peer=peer)

    with resolving(monkeypatch, {"as.test": INSIDE}):
        with_internal_server(tmp_path, monkeypatch, work, "as.test")


def test_the_peer_of_a_response_is_the_address_of_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(internal: InternalServer) -> None:
        http = HttpClient()
        assert (await http.fetch("GET", f"https://as.test:{internal.port}/")).peer == "127.0.0.1"
        await http.close()

    with resolving(monkeypatch, {"as.test": INSIDE}):
        with_internal_server(tmp_path, monkeypatch, work, "as.test")


def test_an_issuer_that_the_caller_names_may_be_internal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(internal: InternalServer) -> None:
        place = f"https://as.test:{internal.port}"
        found = await fetch("https://9.9.9.9/mcp", f"{place}/token", f"{place}/realm")
        assert found.status == 200

    with resolving(monkeypatch, {"as.test": INSIDE}):
        with_internal_server(tmp_path, monkeypatch, work, "as.test")


def test_a_name_is_looked_up_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The allowed address is the one that is connected to, although the name resolves to another one later."""
    tried: list[str] = []

    def allow(address: str) -> bool:
        tried.append(address)
        return address == "127.0.0.2"

    async def work() -> None:
        http = HttpClient(allow=allow)
        listener = socket.create_server(("127.0.0.1", 0))
        try:
            with listener, pytest.raises(Exception, match="nothing listens"):
                await http.fetch("GET", f"http://as.test:{listener.getsockname()[1]}/", seconds=10)
        finally:
            await http.close()

    with resolving(monkeypatch, {"as.test": [["127.0.0.2"], ["127.0.0.1"]]}) as asked:
        run(work)
    assert asked == ["as.test"] and tried == ["127.0.0.2"]


def test_of_several_addresses_the_allowed_one_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(internal: InternalServer) -> None:
        http = HttpClient(allow=lambda address: address == "127.0.0.1")
        try:
            assert (await http.fetch("GET", f"https://as.test:{internal.port}/")).status == 200
            with pytest.raises(NotAllowed, match=r"the name 'other.test' stands for 127.0.0.2"):
                await http.fetch("GET", f"https://other.test:{internal.port}/")
        finally:
            await http.close()

    with resolving(monkeypatch, {"as.test": [["127.0.0.2", "127.0.0.1"]], "other.test": [["127.0.0.2", "127.0.0.3"]]}):
        with_internal_server(tmp_path, monkeypatch, work, "as.test")
