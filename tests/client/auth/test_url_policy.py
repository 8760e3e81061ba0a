"""What names stand for: a server outside can't have us knock at our own network by a name of its choice.

The resolver is the test's, and the connections are real.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from longshore.client.auth.oauth_http import OAuthHttp, OAuthResponse
from longshore.client.auth.url_policy import UrlPolicy, is_internal
from longshore.errors import AuthorizationError
from longshore.http_client.dial import NotAllowed
from longshore.http_client.pool import HttpClient

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
    """Names as the world may know them: each time it is asked for, one stands for the next of its addresses."""
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


class Door:
    """A place that speaks TLS, in our own network. `names` are on its certificate."""

    def __init__(self, folder: Path, *names: str) -> None:
        self.knocks = 0
        self._names = ",".join(f"DNS:{name}" for name in names)
        self.certificate, self._key = folder / f"{names[0]}.pem", folder / f"{names[0]}.key"

    async def open(self) -> Door:
        made = [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-days",
            "1",
        ]
        place = ["-subj", "/CN=door", "-addext", f"subjectAltName={self._names}"]
        files = ["-keyout", str(self._key), "-out", str(self.certificate)]
        await asyncio.to_thread(subprocess.run, [*made, *place, *files], check=True, capture_output=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, self._key)
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", 0, ssl=context)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.knocks += 1
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


def doors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, work: Any, *names: str) -> Door:
    """Run the work with a door open, whose certificate is trusted."""
    door = Door(tmp_path, *names)

    async def with_door() -> None:
        await door.open()
        monkeypatch.setenv("SSL_CERT_FILE", str(door.certificate))
        try:
            await work(door)
        finally:
            await door.close()

    run(with_door)
    return door


INSIDE = [["127.0.0.1"]]


@pytest.mark.parametrize("address", ["127.0.0.1", "::ffff:127.0.0.1", "10.255.255.1", "169.254.169.254", "::1"])
def test_a_name_that_resolves_to_an_internal_address_is_refused(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    """The server itself is outside, so that what it names must be too. Nobody connects to find that out."""
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
    async def work(door: Door) -> None:
        with pytest.raises(AuthorizationError, match="which a server outside has no reason to name"):
            await fetch("https://9.9.9.9/mcp", f"https://as.test:{door.port}/x")

    with resolving(monkeypatch, {"as.test": INSIDE}):
        assert doors(tmp_path, monkeypatch, work, "as.test").knocks == 0


def test_an_internal_server_may_name_internal_urls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(door: Door) -> None:
        found = await fetch("https://mcp.test/mcp", f"https://as.test:{door.port}/x", peer="127.0.0.1")
        assert found.status == 200

    with resolving(monkeypatch, {"as.test": INSIDE}):
        doors(tmp_path, monkeypatch, work, "as.test")


@pytest.mark.parametrize(
    ("server", "peer"), [("http://mcp.test/mcp", "127.0.0.1"), ("https://mcp.test/mcp", "9.9.9.9")]
)
def test_a_server_that_did_not_answer_over_tls_from_an_internal_address_may_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: str, peer: str
) -> None:
    """Without TLS, any machine at an internal address could have answered for the name."""

    async def work(door: Door) -> None:
        with pytest.raises(AuthorizationError, match="has no reason to name"):
            await fetch(server, f"https://as.test:{door.port}/x", peer=peer)

    with resolving(monkeypatch, {"as.test": INSIDE}):
        doors(tmp_path, monkeypatch, work, "as.test")


def test_the_peer_of_a_response_is_the_address_of_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(door: Door) -> None:
        http = HttpClient()
        assert (await http.fetch("GET", f"https://as.test:{door.port}/")).peer == "127.0.0.1"
        await http.close()

    with resolving(monkeypatch, {"as.test": INSIDE}):
        doors(tmp_path, monkeypatch, work, "as.test")


def test_an_issuer_that_the_caller_names_may_be_internal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(door: Door) -> None:
        place = f"https://as.test:{door.port}"
        found = await fetch("https://9.9.9.9/mcp", f"{place}/token", f"{place}/realm")
        assert found.status == 200

    with resolving(monkeypatch, {"as.test": INSIDE}):
        doors(tmp_path, monkeypatch, work, "as.test")


def test_a_name_is_looked_up_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was allowed is what is connected to, though the name stands for something else a moment later."""
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
    async def work(door: Door) -> None:
        http = HttpClient(allow=lambda address: address == "127.0.0.1")
        try:
            assert (await http.fetch("GET", f"https://as.test:{door.port}/")).status == 200
            with pytest.raises(NotAllowed, match=r"the name 'other.test' stands for 127.0.0.2"):
                await http.fetch("GET", f"https://other.test:{door.port}/")
        finally:
            await http.close()

    with resolving(monkeypatch, {"as.test": [["127.0.0.2", "127.0.0.1"]], "other.test": [["127.0.0.2", "127.0.0.3"]]}):
        doors(tmp_path, monkeypatch, work, "as.test")
