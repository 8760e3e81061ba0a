"""The HTTP client: pooled connections, every framing, and hostile servers."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from pathlib import Path
from typing import Any

import pytest

from client.http.scripted import SECONDS, Got, ScriptedServer, Wire, run, scripted
from longshore.errors import ConnectError
from longshore.http_client.http1 import HEAD_BYTES
from longshore.http_client.pool import HttpClient
from longshore.http_client.response import BUFFERED_BYTES, HttpResponse
from longshore.http_client.urls import parse_url, request_head, without_secrets
from services import free_port, make_certificate

OK = b"HTTP/1.1 200 OK\r\n"


async def echo(got: Got, wire: Wire) -> None:
    await wire.answer(200, got.body or b"-", "text/plain", ("X-Path", got.path))


def fetch_from(raw: bytes, *, then: str = "stay", **how: Any) -> HttpResponse:
    """What `fetch` makes of these bytes, after which the server stays, closes or resets the connection."""
    found: list[HttpResponse] = []

    async def handler(_: Got, wire: Wire) -> None:
        await wire.send(raw)
        if then == "close":
            wire.close()
        elif then == "cut":
            wire.cut()
        else:
            await asyncio.sleep(SECONDS)

    async def test() -> None:
        http = HttpClient()
        async with scripted(handler) as server:
            try:
                found.append(await http.fetch("GET", server.url, **how))
            finally:
                await http.close()

    run(test)
    return found[0]


# -- framing


@pytest.mark.parametrize(
    ("raw", "then", "body"),
    [
        (OK + b"Content-Length: 3\r\n\r\nabc", "stay", b"abc"),
        (OK + b"Content-Length: 0\r\n\r\n", "stay", b""),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1;x=y\r\nc\r\n0\r\n\r\n", "stay", b"abc"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nTrailer: x\r\n\r\n", "stay", b"a"),
        (OK + b"\r\nabc", "close", b"abc"),
        (OK + b"Connection: close\r\n\r\nabc", "close", b"abc"),
        (b"HTTP/1.0 200 OK\r\n\r\nabc", "close", b"abc"),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nab", "stay", b"ab"),
        (b"HTTP/1.1 100 X\r\n\r\nHTTP/1.1 103 X\r\nLink: x\r\n\r\n" + OK + b"Content-Length: 1\r\n\r\na", "stay", b"a"),
        (OK + b"Content-Encoding: identity\r\nContent-Length: 1\r\n\r\na", "stay", b"a"),
        (OK + b"Content-Length: 1\r\n\r\na" + b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil", "stay", b"a"),
    ],
)  # fmt: skip
def test_every_framing_is_read(raw: bytes, then: str, body: bytes) -> None:
    answer = fetch_from(raw, then=then)
    assert (answer.status, answer.body) == (200, body)


@pytest.mark.parametrize("status", [204, 304])
def test_some_statuses_have_no_body(status: int) -> None:
    assert fetch_from(b"HTTP/1.1 %d X\r\nX: y\r\n\r\n" % status).body == b""


def test_response_headers_are_read() -> None:
    answer = fetch_from(OK + b"A: 1\r\na:2 \r\nB: \xe9\r\nContent-Length: 0\r\n\r\n")
    assert (answer.header("a"), answer.header("b"), answer.header("c")) == ("1", "é", None)
    assert [pair for pair in answer.headers if pair[0] == "a"] == [("a", "1"), ("a", "2")]


def test_a_redirect_is_not_followed() -> None:
    answer = fetch_from(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n")
    assert (answer.status, answer.header("location")) == (302, "http://127.0.0.1:1/")


# -- hostile


@pytest.mark.parametrize(
    ("raw", "then", "what"),
    [
        (b"SSH-2.0-OpenSSH_9.6\r\n", "stay", "no HTTP"),
        (b'{"jsonrpc": "2.0"}\n', "stay", "no HTTP"),
        (OK + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab", "stay", "no HTTP"),
        (OK + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n", "stay", "no HTTP"),
        (OK + b"Content-Length: -1\r\n\r\n", "stay", "no HTTP"),
        (OK + b"Content-Length: 99999999999999999999999\r\n\r\n", "stay", "no HTTP"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", "stay", "no HTTP"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n", "stay", "no HTTP"),
        (OK + b"A\0B: x\r\n\r\n", "stay", "no HTTP"),
        (OK + b"Content-Length: 5\r\n\r\nabc", "close", "middle of its answer"),
        (OK + b"Content-Length: 5\r\n\r\nabc", "cut", "middle of its answer"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nabc", "close", "middle of its answer"),
        (OK + b"X: y", "close", "middle of its answer"),
        (b"", "close", "without an answer"),
        (b"", "cut", "without an answer"),
        (OK + b"Content-Encoding: gzip\r\nContent-Length: 1\r\n\r\na", "stay", "compressed"),
        (b"HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n", "stay", "another protocol"),
        (OK + b"X: " + b"y" * HEAD_BYTES + b"\r\n\r\n", "stay", f"{HEAD_BYTES:,} bytes"),
        (OK + b"X: y\r\n" * 20_000, "stay", f"{HEAD_BYTES:,} bytes"),
        (OK + b"X: " + b"y" * (HEAD_BYTES + 100), "stay", f"{HEAD_BYTES:,} bytes"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 5000, "stay", f"{HEAD_BYTES:,} bytes"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n1;" + b"x" * HEAD_BYTES, "stay", f"{HEAD_BYTES:,} bytes"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\n" + b"X: y\r\n" * 20_000, "stay", f"{HEAD_BYTES:,} bytes"),
    ],
)
def test_a_malformed_response_is_refused(raw: bytes, then: str, what: str) -> None:
    with pytest.raises(ConnectError, match=what) as caught:
        fetch_from(raw, then=then)
    assert caught.value.server.startswith("http://127.0.0.1:")


@pytest.mark.parametrize(
    "framing", [b"Content-Length: 101\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n65\r\n", b"\r\n"]
)
def test_the_size_of_a_body_is_bounded(framing: bytes) -> None:
    with pytest.raises(ConnectError, match="more than 100 bytes"):
        fetch_from(OK + framing + b"x" * 101, limit=100)
    assert len(fetch_from(OK + b"Content-Length: 100\r\n\r\n" + b"x" * 100, limit=100).body) == 100


@pytest.mark.parametrize("begin", [b"", OK, OK + b"Content-Length: 100\r\n\r\n"])
def test_a_slow_response_has_a_deadline(begin: bytes) -> None:
    async def drip(_: Got, wire: Wire) -> None:
        await wire.send(begin)
        for _ in range(1000):
            await wire.send(b"x" if begin else b"")
            await asyncio.sleep(0.05)

    async def test() -> None:
        http = HttpClient()
        async with scripted(drip) as server:
            with pytest.raises(ConnectError, match=r"within 0\.3 s"):
                await http.fetch("GET", server.url, seconds=0.3)
            await http.close()

    run(test)


def test_an_unread_body_is_not_buffered_without_bound() -> None:
    """An unread body is not read from the socket either, and no part of it is lost."""

    async def test() -> None:
        stop, sent = asyncio.Event(), 0

        async def flood(_: Got, wire: Wire) -> None:
            nonlocal sent
            await wire.send(OK + b"\r\n")
            while not stop.is_set():
                sent += 65536
                await wire.send(b"x" * 65536)
            wire.close()

        http = HttpClient()
        async with scripted(flood) as server:
            streaming = await http.stream("GET", server.url)
            while streaming._buffered <= BUFFERED_BYTES:
                await asyncio.sleep(0)
            for _ in range(200):
                await asyncio.sleep(0)
            assert streaming._buffered <= BUFFERED_BYTES + (1 << 19)
            stop.set()
            assert sum([len(chunk) async for chunk in streaming]) == sent
            await http.close()

    run(test)


def head(size: int) -> bytes:
    """The head of an answer whose headers count as so many bytes: with what stands between and behind them."""
    names = len("Content-Length: 0\r\n") + len("X: \r\n")
    return OK + b"Content-Length: 0\r\nX: " + b"y" * (size - names) + b"\r\n\r\n"


@pytest.mark.parametrize(("size", "fits"), [(-1, True), (0, True), (1, False)])
def test_the_size_of_a_head_is_bounded(size: int, fits: bool) -> None:
    """Of all that is not body: the first line and the last count too."""
    raw = head(HEAD_BYTES - len(OK) - 2 + size)
    assert len(raw) == HEAD_BYTES + size
    if fits:
        assert fetch_from(raw).status == 200
    else:
        with pytest.raises(ConnectError, match=f"more than {HEAD_BYTES:,} bytes"):
            fetch_from(raw)


@pytest.mark.parametrize(("more", "fits"), [(-1, True), (0, True), (1, False)])
def test_framing_around_a_body_is_bounded(more: int, fits: bool) -> None:
    """A long body may have more of it, in proportion."""
    lines = OK + b"Transfer-Encoding: chunked\r\n\r\n"
    end = b"0\r\n\r\n"
    body = b"x" * 1000
    frame = len(lines) + len(b"3e8;\r\n\r\n") + len(end)
    extension = b"e" * (HEAD_BYTES + 16 * len(body) - frame + more)
    raw = lines + b"3e8;" + extension + b"\r\n" + body + b"\r\n" + end
    if fits:
        assert fetch_from(raw).body == body
    else:
        with pytest.raises(ConnectError, match=f"more than {HEAD_BYTES:,} bytes"):
            fetch_from(raw)


# -- connections


def test_one_connection_serves_request_after_request() -> None:
    async def test() -> None:
        http = HttpClient()
        async with scripted(echo) as server:
            for n in range(20):
                answer = await http.fetch("POST", f"{server.origin}/{n}?a=b", [("X", "y")], b"%d" % n)
                assert (answer.body, answer.header("x-path")) == (b"%d" % n, f"/{n}?a=b")
            assert server.connections == 1
            assert server.requests[0].headers["host"] == f"127.0.0.1:{server.port}"
            assert server.requests[0].headers["accept-encoding"] == "gzip"
            await http.close()

    run(test)


def test_concurrent_requests_have_a_connection_each() -> None:
    async def test() -> None:
        http = HttpClient()
        together = asyncio.Barrier(20)

        async def handler(got: Got, wire: Wire) -> None:
            async with together:
                await echo(got, wire)

        async with scripted(handler) as server:
            answers = await asyncio.gather(*(http.fetch("POST", server.url, (), b"%d" % n) for n in range(20)))
            assert [answer.body for answer in answers] == [b"%d" % n for n in range(20)]
            assert server.connections == 20
            answers = await asyncio.gather(*(http.fetch("POST", server.url, (), b"%d" % n) for n in range(20)))
            assert server.connections == 20
            await http.close()

    run(test)


@pytest.mark.parametrize("blocked", [False, True])
@pytest.mark.parametrize("how", ["close", "cut", "surplus"])
def test_an_idle_connection_that_ended_is_not_used(how: str, blocked: bool) -> None:
    """Also if the loop was blocked and has not noticed yet."""

    async def handler(got: Got, wire: Wire) -> None:
        await echo(got, wire)
        if how == "surplus":
            await wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
        elif how == "close":
            wire.close()
        else:
            wire.cut()

    async def test() -> None:
        http = HttpClient()
        async with scripted(handler) as server:
            for n in range(3):
                answer = await http.fetch("POST", server.url, (), b"%d" % n)
                assert answer.body == b"%d" % n
                if not blocked:
                    await asyncio.sleep(0.05)
            assert server.connections == 3
            await http.close()

    run(test)


def test_a_connection_that_was_idle_for_long_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longshore.http_client.pool.IDLE_SECONDS", -1.0)

    async def test() -> None:
        http = HttpClient()
        async with scripted(echo) as server:
            for _ in range(3):
                await http.fetch("GET", server.url)
            assert server.connections == 3
            await http.close()

    run(test)


@pytest.mark.parametrize(("method", "again"), [("GET", True), ("DELETE", True), ("POST", False)])
def test_a_request_on_a_connection_that_ends_is_repeated_if_repeatable(method: str, again: bool) -> None:
    """GET and DELETE are sent again on a new connection; a POST may have been processed."""

    async def handler(got: Got, wire: Wire) -> None:
        if got.path == "/last" and len(server.requests) == 2:
            wire.close()
        else:
            await echo(got, wire)

    async def test() -> None:
        nonlocal server
        http = HttpClient()
        async with scripted(handler) as server:
            await http.fetch("GET", server.url)
            if again:
                assert (await http.fetch(method, server.origin + "/last")).status == 200
            else:
                with pytest.raises(ConnectError, match="without an answer"):
                    await http.fetch(method, server.origin + "/last")
            assert len(server.requests) == 2 + again
            await http.close()

    server: ScriptedServer
    run(test)


def test_closing_a_response_closes_its_connection() -> None:
    hung_up = asyncio.Event()

    async def handler(_: Got, wire: Wire) -> None:
        await wire.stream()
        try:
            while True:
                await wire.send(b": x\n\n")
                await asyncio.sleep(0.01)
        except ConnectionError:
            hung_up.set()
            raise

    async def test() -> None:
        http = HttpClient()
        async with scripted(handler) as server:
            streaming = await http.stream("GET", server.url)
            assert streaming.status == 200
            async for _ in streaming:
                break
            streaming.close()
            async with asyncio.timeout(SECONDS):
                await hung_up.wait()
            await http.close()
            await http.close()
            with pytest.raises(ConnectError, match="closed"):
                await http.fetch("GET", server.url)

    run(test)


def test_closing_ends_running_requests() -> None:
    async def never(_: Got, __: Wire) -> None:
        await asyncio.sleep(SECONDS)

    async def test() -> None:
        http = HttpClient()
        async with scripted(never) as server:
            fetching = asyncio.ensure_future(http.fetch("GET", server.url))
            await server.until(lambda server: server.requests)
            await http.close()
            with pytest.raises(ConnectError):
                await fetching

    run(test)


def test_cancelling_a_request_closes_its_connection() -> None:
    async def test() -> None:
        left = asyncio.Event()

        async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            fetching.cancel()
            with contextlib.suppress(ConnectionError):
                assert await reader.read() == b""
            writer.close()
            left.set()

        http = HttpClient()
        async with await asyncio.start_server(listen, "127.0.0.1", 0) as server:
            url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
            fetching = asyncio.ensure_future(http.fetch("GET", url))
            with pytest.raises(asyncio.CancelledError):
                await fetching
            async with asyncio.timeout(SECONDS):
                await left.wait()
        await http.close()

    run(test)


# -- unreachable servers


def test_an_unreachable_host_is_explained() -> None:
    port = free_port()

    async def test() -> None:
        http = HttpClient()
        for host in ("127.0.0.1", "localhost"):
            with pytest.raises(ConnectError, match=f"nothing listens at {host} port {port}"):
                await http.fetch("GET", f"http://{host}:{port}/")
        with pytest.raises(ConnectError, match=r"'nobody\.invalid' is not known"):
            await http.fetch("GET", "http://nobody.invalid/")
        await http.close()

    run(test)


def test_a_tls_handshake_that_hangs_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server without TLS does not answer the handshake."""
    monkeypatch.setattr("longshore.http_client.pool.CONNECT_SECONDS", 0.3)

    async def test() -> None:
        http = HttpClient()
        with socket.socket() as deaf:
            deaf.bind(("127.0.0.1", 0))
            deaf.listen()
            with pytest.raises(ConnectError, match=r"no connection within 0\.3 s"):
                await http.fetch("GET", f"https://127.0.0.1:{deaf.getsockname()[1]}/")
        await http.close()

    run(test)


def test_certificates_are_verified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cert, key = make_certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError, ssl.SSLError):
            while await reader.readuntil(b"\r\n\r\n"):
                writer.write(OK + b"Content-Length: 2\r\n\r\nhi")
        writer.close()

    async def test() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
        async with server:
            url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
            http = HttpClient()
            with pytest.raises(ConnectError, match="certificate is not trusted"):
                await http.fetch("GET", url)
            with pytest.raises(ConnectError):
                await http.fetch("GET", url.replace("https", "http"))
            await http.close()
            monkeypatch.setenv("SSL_CERT_FILE", str(cert))
            http = HttpClient()
            for _ in range(2):
                assert (await http.fetch("GET", url)).body == b"hi"
            await http.close()

    run(test)


def test_the_error_for_plain_http_where_tls_is_expected_says_so() -> None:
    async def test() -> None:
        http = HttpClient()

        async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(10)
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            writer.close()

        async with await asyncio.start_server(plain, "127.0.0.1", 0) as server:
            with pytest.raises(ConnectError, match="TLS"):
                await http.fetch("GET", f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/")
        await http.close()

    run(test)


# -- addresses and heads


@pytest.mark.parametrize(
    ("url", "origin", "target"),
    [
        ("http://a", "http://a", "/"),
        ("http://A:80/x", "http://a", "/x"),
        ("https://a:443/x?y#z", "https://a", "/x?y"),
        ("https://a:80/", "https://a:80", "/"),
        ("http://[::1]:9/x", "http://[::1]:9", "/x"),
        ("http://bücher.example/ü?ö=%20", "http://xn--bcher-kva.example", "/%C3%BC?%C3%B6=%20"),
        ("http://a/a b\r\nX: y", "http://a", "/a%20bX:%20y"),
    ],
)
def test_urls_are_parsed(url: str, origin: str, target: str) -> None:
    found = parse_url(url)
    assert (found.origin, found.target) == (origin, target)


@pytest.mark.parametrize(
    "url", ["", "a", "ftp://a", "http://", "http://a:b", "http://[::1", "http://a:99999/", "file:///x"]
)
def test_a_malformed_url_is_refused(url: str) -> None:
    with pytest.raises(ConnectError, match="no URL"):
        parse_url(url)


def test_a_password_in_a_url_is_refused_and_not_shown() -> None:
    with pytest.raises(ConnectError, match="headers= or auth=") as caught:
        parse_url("http://me:secret@a/")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "http://me:secret@a:99999/",
        "http://me:secret@a:b/",
        "http://me:secret/more@a/",
        "http://me:secret?more@a/",
        "http://me:secret#more@a/",
        "http://me:secret@[::1/",
        "http://me:secret@/",
        "ftp://me:secret@a/",
        "me:secret@a",
        "http://me:sec@secret@a:b/",
    ],
)
def test_a_password_in_a_malformed_url_is_not_shown(url: str) -> None:
    with pytest.raises(ConnectError, match=r"no URL|headers= or auth=") as caught:
        parse_url(url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://a/b?key=secret", "http://a/b"),
        ("http://a/b#secret", "http://a/b"),
        ("https://me:secret@a:1/b", "https://a:1/b"),
        ("https://a/@scope/mcp", "https://a/@scope/mcp"),
        ("https://a", "https://a"),
        ("a", "a"),
    ],
)
def test_a_shown_url_has_no_secrets(url: str, shown: str) -> None:
    assert without_secrets(url) == shown


@pytest.mark.parametrize(
    ("url", "private"),
    [
        ("https://a", True),
        ("http://localhost", True),
        ("http://127.0.0.9", True),
        ("http://[::1]", True),
        ("http://a", False),
        ("http://10.0.0.1", False),
        ("http://127.0.0.1.evil.example", False),
    ],
)
def test_https_and_loopback_are_confidential(url: str, private: bool) -> None:
    assert parse_url(url).is_confidential is private


@pytest.mark.parametrize("pair", [("X", "a\r\nY: b"), ("X", "a\nb"), ("X\r\nY", "a"), ("X", "a\0"), ("X", "a\r")])
def test_a_header_with_a_line_break_is_refused(pair: tuple[str, str]) -> None:
    with pytest.raises(ConnectError, match="line break") as caught:
        request_head("GET", parse_url("http://a"), [pair], 0)
    assert pair[1] == "a" or pair[1] not in str(caught.value)
