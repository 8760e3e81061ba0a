"""The browser's way back: the listener on loopback, what knocks at it, and a process with a browser command."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from longshore.client.auth import loopback
from longshore.client.auth.loopback import MOST_FIELDS, LoopbackListener
from longshore.errors import AuthorizationError
from longshore.http_client.pool import HttpClient

from .conftest import run
from .oauth_servers import AuthorizationServer, ProtectedServer

PROGRAM = """
import asyncio, sys
from longshore.client import Client
from longshore.client.auth import FileStorage, OAuth

async def main():
    auth = OAuth(storage=FileStorage(sys.argv[2]))
    async with Client(sys.argv[1], auth=auth, era="2025-11-25", timeout=20) as client:
        print((await client.call_tool("hello")).text)

asyncio.run(main())
"""

EXAMPLE = Path(__file__).parents[3] / "examples" / "clients" / "signing_in.py"
BROWSER = """#!{python}
import sys, urllib.request
page = urllib.request.urlopen(sys.argv[1], timeout=10).read().decode()
open({saw!r}, "a").write(page)
"""


def log_in(tmp_path: Path, server: ProtectedServer) -> subprocess.CompletedProcess[str]:
    browser = tmp_path / "browser"
    browser.write_text(BROWSER.format(python=sys.executable, saw=str(tmp_path / "saw.html")))
    browser.chmod(0o700)
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM, server.mcp, str(tmp_path / "oauth.json")],
        env={**os.environ, "BROWSER": str(browser)},
        capture_output=True,
        text=True,
        timeout=40,
        check=False,
    )


def test_the_browser_comes_back_to_the_listener(
    authority: AuthorizationServer, server: ProtectedServer, tmp_path: Path
) -> None:
    done = log_in(tmp_path, server)
    assert (done.returncode, done.stdout) == (0, "hello\n"), done.stderr
    said = f"longshore: {server.mcp} wants a login at {authority.issuer}; to log in, open this page"
    assert f"{said} (within 5 minutes):\n{authority.issuer}/authorize?" in done.stderr
    assert "You may close this window" in (tmp_path / "saw.html").read_text()
    [asked] = [each.query for each in authority.asked if each.path == "/authorize"]
    back = urlsplit(asked["redirect_uri"])
    assert (back.hostname, back.path) == ("127.0.0.1", "/callback")


def test_the_registered_port_is_used_again(
    authority: AuthorizationServer, server: ProtectedServer, tmp_path: Path
) -> None:
    assert log_in(tmp_path, server).returncode == 0
    authority.tokens.clear()
    authority.refresh_tokens.clear()
    assert log_in(tmp_path, server).returncode == 0
    assert authority.count("/register") == 1 and authority.count("/authorize") == 2


def test_a_port_in_use_leads_to_another_registration(
    authority: AuthorizationServer, server: ProtectedServer, tmp_path: Path
) -> None:
    assert log_in(tmp_path, server).returncode == 0
    authority.tokens.clear()
    authority.refresh_tokens.clear()
    [back] = next(iter(authority.clients.values()))["redirect_uris"]
    with socket.create_server(("127.0.0.1", urlsplit(back).port or 0)):
        assert log_in(tmp_path, server).returncode == 0
    assert authority.count("/register") == 2
    records = json.loads((tmp_path / "oauth.json").read_bytes())
    [registered] = [record for key, record in records.items() if key.startswith("client ")]
    assert registered["redirect"] != back and "refresh" not in registered


async def _knock(listener: LoopbackListener, target: str, method: str = "GET") -> tuple[int, bytes]:
    http = HttpClient()
    try:
        answer = await http.fetch(method, listener.uri.removesuffix("/callback") + target)
        return answer.status, answer.body
    finally:
        await http.close()


def test_other_requests_do_not_end_the_login(capfd: pytest.CaptureFixture[str]) -> None:
    async def work() -> None:
        listener = await LoopbackListener.open(None, None)
        coming = asyncio.ensure_future(listener.follow("https://as.example/authorize", "right", "it wants a login"))
        await asyncio.sleep(0)
        port = urlsplit(listener.uri).port
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
        for noise in (b"\x16\x03\x01\x00", b"GET / HTTP/1.1\r\nX: " + b"y" * 70_000, b"nonsense\r\n\r\n"):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(noise)
            writer.close()
        assert (await _knock(listener, "/favicon.ico"))[0] == 404
        assert (await _knock(listener, "/callback?code=x&state=wrong"))[0] == 400
        assert (await _knock(listener, "/callback"))[0] == 400
        assert (await _knock(listener, "/callback?state=right", "POST"))[0] == 400
        assert not coming.done()
        status, page = await _knock(listener, "/callback?code=<b>&state=right")
        assert status == 200 and b"<b>" not in page and b"may close" in page
        assert (await coming).endswith("/callback?code=%3Cb%3E&state=right")
        await listener.close()
        for _, writer in silent:
            writer.close()
        with pytest.raises(OSError):
            await asyncio.open_connection("127.0.0.1", port)

    run(work)
    said = capfd.readouterr().err
    assert said.startswith("longshore: it wants a login; to log in, open") and "https://as.example/authorize" in said


async def _send(listener: LoopbackListener, head: bytes) -> bytes:
    """The first line of the answer; empty if the connection was dropped."""
    reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(listener.uri).port)
    try:
        writer.write(head)
        return await reader.readline()
    except ConnectionError:
        return b""
    finally:
        writer.close()


def _bounds(target: str) -> dict[str, tuple[bytes, bytes]]:
    """By bound: a request right at it, and one beyond."""
    begin = f"GET {target} HTTP/1.1\r\nX: ".encode()
    room, fields = loopback._MOST_BYTES - len(begin), MOST_FIELDS - 2
    return {
        "bytes": (begin + b"y" * room + b"\r\n\r\n", begin + b"y" * (room + 1) + b"\r\n\r\n"),
        "fields": (
            f"GET {target}{'&x=y' * fields} HTTP/1.1\r\n\r\n".encode(),
            f"GET {target}{'&x=y' * (fields + 1)} HTTP/1.1\r\n\r\n".encode(),
        ),
    }


@pytest.mark.parametrize(("bound", "answer"), [("bytes", b""), ("fields", b"HTTP/1.1 400 Bad Request\r\n")])
def test_the_size_of_a_request_is_bounded(bound: str, answer: bytes, capfd: pytest.CaptureFixture[str]) -> None:
    async def work() -> None:
        listener = await LoopbackListener.open(None, None)
        coming = asyncio.ensure_future(listener.follow("https://as.example/authorize", "right", "it wants a login"))
        await asyncio.sleep(0)
        fits, beyond = _bounds("/callback?code=x&state=right")[bound]
        assert await _send(listener, beyond) == answer and not coming.done()
        assert await _send(listener, fits) == b"HTTP/1.1 200 OK\r\n"
        await coming
        await listener.close()

    run(work)


@pytest.mark.parametrize("over", [-1, 0, 1])
def test_the_number_of_connections_is_bounded(over: int) -> None:
    async def work() -> None:
        listener = await LoopbackListener.open(None, None)
        port = urlsplit(listener.uri).port
        others = loopback._MOST_CONNECTIONS + over - 1
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(others)]
        answer = await _send(listener, b"GET / HTTP/1.1\r\n\r\n")
        assert answer == (b"" if over > 0 else b"HTTP/1.1 404 Not Found\r\n")
        for _, writer in silent:
            writer.close()
        await listener.close()

    run(work)


def test_a_login_without_a_person_times_out(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("longshore.client.auth.loopback.SECONDS", 0.05)

    async def work() -> None:
        listener = await LoopbackListener.open(None, None)
        with pytest.raises(AuthorizationError, match="no one logged in"):
            await listener.follow("https://as.example/authorize", "right", "it wants a login")
        await listener.close()

    run(work)


def test_a_redirect_uri_whose_port_is_in_use_is_an_error() -> None:
    async def work() -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            uri = f"http://127.0.0.1:{taken.getsockname()[1]}/back"
            with pytest.raises(AuthorizationError, match="free the port or give another redirect_uri="):
                await LoopbackListener.open(uri, None)

    run(work)


def test_the_listener_supports_ipv6() -> None:
    async def work() -> None:
        try:
            with socket.create_server(("::1", 0), family=socket.AF_INET6) as free:
                port = free.getsockname()[1]
        except OSError:
            pytest.skip("this machine has no IPv6")
        listener = await LoopbackListener.open(None, f"http://[::1]:{port}/back")
        await listener.close()
        assert listener.uri == f"http://[::1]:{port}/back"

    run(work)


def test_the_example_signs_in(authority: AuthorizationServer, server: ProtectedServer, tmp_path: Path) -> None:
    browser = tmp_path / "browser"
    browser.write_text(BROWSER.format(python=sys.executable, saw=str(tmp_path / "saw.html")))
    browser.chmod(0o700)
    done = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLE), server.mcp],
        env={**os.environ, "BROWSER": str(browser), "XDG_CONFIG_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=40,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "['hello']\n"), done.stderr
    assert (tmp_path / "longshore" / "oauth.json").stat().st_mode & 0o777 == 0o600
    [asked] = [each.query for each in authority.asked if each.path == "/authorize"]
    assert asked["scope"] == "tools"
