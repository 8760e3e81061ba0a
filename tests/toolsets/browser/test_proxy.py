"""The browser's proxy: what it refuses, which address it connects to, and that a real Chromium can't get around it."""

from __future__ import annotations

import asyncio
import json
import re
import socket
from base64 import b64encode
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from hashlib import sha1
from typing import Any

import pytest

from longshore.toolsets.browser.connection import CdpConnection
from longshore.toolsets.browser.launch import LaunchOptions, launch
from longshore.toolsets.browser.origins import Origin, OriginRules
from longshore.toolsets.browser.proxy import HEAD_BYTES, OriginProxy

SECONDS = 60.0
METADATA = "169.254.169.254"


class Server:
    """Pages by path, redirects by path, and a websocket at /socket that greets. It records the paths and hosts."""

    def __init__(self) -> None:
        self.pages: dict[str, str] = {"/": "<h1>home</h1>"}
        self.redirects: dict[str, str] = {}
        self.seen: list[tuple[str, str]] = []
        self.port = 0

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := (await reader.readuntil(b"\r\n\r\n")).decode():
                headers = {name.lower(): value for name, value in re.findall(r"\r\n([^:]+): ([^\r]*)", head)}
                path = head.split()[1]
                self.seen.append((path, headers["host"]))
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                if path == "/socket":
                    key = headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
                    accept = b64encode(sha1(key.encode()).digest()).decode()
                    writer.write(
                        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                        f"Sec-WebSocket-Accept: {accept}\r\n\r\n".encode()
                        + b"\x81\x05hello"
                    )
                    await reader.read()
                    return
                self._write(writer, path, body)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def _write(self, writer: asyncio.StreamWriter, path: str, body: bytes) -> None:
        status, extra = "200 OK", "Access-Control-Allow-Origin: *\r\n"
        if path in self.redirects:
            status, extra = "302 Found", f"{extra}Location: {self.redirects[path]}\r\n"
        answer = self.pages.get(path, "").encode() + body
        head = f"HTTP/1.1 {status}\r\nContent-Type: text/html\r\n{extra}Content-Length: {len(answer)}\r\n\r\n"
        writer.write(head.encode() + answer)


class Names:
    """A resolver. A name has one answer after the other; the last one stays."""

    def __init__(self, **answers: list[list[str]]) -> None:
        self._answers = {name.replace("_", "."): answer for name, answer in answers.items()}
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        answers = self._answers.get(host)
        if not answers:
            raise socket.gaierror(socket.EAI_NONAME, "no such name")
        return answers.pop(0) if len(answers) > 1 else answers[0]


@asynccontextmanager
async def serving(*hosts: str) -> AsyncIterator[tuple[Server, ...]]:
    """Servers at these loopback addresses, all at the same port."""
    made: list[tuple[Server, asyncio.Server]] = []
    port = 0
    for host in hosts or ("127.0.0.1",):
        server = Server()
        listener = await asyncio.start_server(server.answer, host, port)
        port = server.port = listener.sockets[0].getsockname()[1]
        made.append((server, listener))
    try:
        yield tuple(server for server, _ in made)
    finally:
        for _, listener in made:
            listener.close()


@asynccontextmanager
async def proxying(rules: OriginRules | None = None, *args: Any, **options: Any) -> AsyncIterator[OriginProxy]:
    proxy = OriginProxy(rules or OriginRules(), *args, **options)
    await proxy.open()
    try:
        yield proxy
    finally:
        await proxy.close()


async def dial(proxy: OriginProxy) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", int(proxy.url.rpartition(":")[2]))


async def ask(proxy: OriginProxy, request: str | bytes, whole: bool = False) -> str:
    """The answer to a request: its head, or all until the proxy closes."""
    reader, writer = await dial(proxy)
    writer.write(request.encode() if isinstance(request, str) else request)
    async with asyncio.timeout(SECONDS):
        answer = await (reader.read() if whole else reader.readuntil(b"\r\n\r\n"))
    writer.close()
    return answer.decode()


def get(url: str) -> str:
    return f"GET {url} HTTP/1.1\r\nHost: x\r\nProxy-Connection: keep-alive\r\n\r\n"


# -- without a browser


async def test_a_plain_request_is_passed_on_with_the_host_of_its_url() -> None:
    async with serving() as (server,), proxying() as proxy:
        assert (await ask(proxy, get(f"http://user@127.0.0.1:{server.port}/a?b=1"))).startswith("HTTP/1.1 200")
        assert server.seen == [("/a?b=1", f"127.0.0.1:{server.port}")]


async def test_requests_of_one_connection_are_each_checked() -> None:
    async with serving() as (server,), proxying(resolve=Names(meta_test=[[METADATA]])) as proxy:
        reader, writer = await dial(proxy)
        async with asyncio.timeout(SECONDS):
            for body in ("one", "three"):
                url = f"http://127.0.0.1:{server.port}/"
                writer.write(f"POST {url} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
                assert (await reader.readuntil(body.encode())).startswith(b"HTTP/1.1 200")
            writer.write(get("http://meta.test/").encode())
            answer = (await reader.read()).decode()
        writer.close()
        assert answer.startswith("HTTP/1.1 403") and "always blocked" in answer
        assert len(server.seen) == 2


@pytest.mark.parametrize(
    ("request_text", "status"),
    [
        ("GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 400),
        ("GET https://example.com/ HTTP/1.1\r\n\r\n", 400),
        ("GET file:///etc/passwd HTTP/1.1\r\n\r\n", 400),
        ("CONNECT example.com HTTP/1.1\r\n\r\n", 400),
        ("CONNECT http://example.com:80/ HTTP/1.1\r\n\r\n", 400),
        ("nonsense\r\n\r\n", 400),
        ("GET http://a.test/ HTTP/1.1\r\n folded\r\n\r\n", 400),
        ("POST http://a.test/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 411),
        ("POST http://a.test/ HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
        ("POST http://a.test/ HTTP/1.1\r\nContent-Length: +1\r\n\r\n", 400),
        (f"CONNECT {METADATA}:80 HTTP/1.1\r\n\r\n", 403),
        ("CONNECT [::ffff:a9fe:a9fe]:443 HTTP/1.1\r\n\r\n", 403),
        ("GET http://metadata.google.internal/ HTTP/1.1\r\n\r\n", 403),
    ],
)
async def test_what_is_refused(request_text: str, status: int) -> None:
    async with proxying(resolve=Names()) as proxy:
        answer = await ask(proxy, request_text, whole=True)
        assert answer.startswith(f"HTTP/1.1 {status} ") and "Longshore refused this request: " in answer


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://unknown.test/", "there is no such host"),
        ("http://empty.test/", "there is no such host"),
        ("http://127.0.0.1:CLOSED/", "the connection was refused; is the server running"),
        ("http://localhost:CLOSED/", "the connection was refused; is the server running"),
    ],
)
async def test_what_can_not_be_reached_says_why_and_is_not_called_refused(url: str, reason: str) -> None:
    with closing(socket.socket()) as unused:
        unused.bind(("127.0.0.1", 0))
        url = url.replace("CLOSED", str(unused.getsockname()[1]))
        async with proxying(resolve=Names(empty_test=[[]])) as proxy:
            answer = await ask(proxy, get(url), whole=True)
            assert answer.startswith("HTTP/1.1 502 ") and f"can't be reached: {reason}" in answer
            assert "Longshore refused" not in answer and reason in str(proxy.reason_for(url))


async def test_a_reason_is_forgotten_when_the_origin_is_reached() -> None:
    names = Names(late_test=[[], ["127.0.0.1"]])
    async with serving() as (server,), proxying(resolve=names) as proxy:
        url = f"http://late.test:{server.port}/"
        assert (await ask(proxy, get(url))).startswith("HTTP/1.1 502")
        assert proxy.reason_for(url) is not None
        assert (await ask(proxy, get(url))).startswith("HTTP/1.1 200")
        assert proxy.reason_for(url) is None


@pytest.mark.parametrize(("size", "status"), [(HEAD_BYTES, 200), (HEAD_BYTES + 5, 431)])
async def test_the_head_of_a_request_is_bounded(size: int, status: int) -> None:
    async with serving() as (server,), proxying() as proxy:
        head = f"GET http://127.0.0.1:{server.port}/ HTTP/1.1\r\nHost: x\r\nProxy-Authorization: "
        answer = await ask(proxy, head + "x" * (size - len(head) - 4) + "\r\n\r\n")
        assert answer.startswith(f"HTTP/1.1 {status} ")


async def test_a_name_is_resolved_once_and_the_checked_address_is_used() -> None:
    names = Names(flips_test=[["127.0.0.1"], ["127.0.0.2"]])
    rules = OriginRules(blocked=("127.0.0.2",))
    async with serving("127.0.0.1", "127.0.0.2") as (first, second), proxying(rules, names) as proxy:
        url = f"http://flips.test:{first.port}/"
        assert (await ask(proxy, get(url))).startswith("HTTP/1.1 200")
        assert names.asked == ["flips.test"]
        assert (await ask(proxy, get(url))).startswith("HTTP/1.1 403")
        assert (len(first.seen), second.seen) == (1, [])
        assert "which resolves to 127.0.0.2, is one of the blocked origins" in str(proxy.reason_for(url))


@pytest.mark.parametrize("addresses", [["127.0.0.1"], ["::ffff:127.0.0.1"], ["0.0.0.0"]])
async def test_a_name_that_flips_to_loopback_is_refused_even_if_it_is_allowed(addresses: list[str]) -> None:
    rules = OriginRules(allowed=("rebound.test",), private=False)
    refused: list[tuple[Origin, str]] = []
    names = Names(rebound_test=[addresses])
    async with serving() as (server,), proxying(rules, names, lambda *each: refused.append(each)) as proxy:
        assert (await ask(proxy, get(f"http://rebound.test:{server.port}/"))).startswith("HTTP/1.1 403")
        assert (await ask(proxy, f"CONNECT rebound.test:{server.port} HTTP/1.1\r\n\r\n")).startswith("HTTP/1.1 403")
        assert server.seen == []
        assert [origin.host for origin, _ in refused] == ["rebound.test"] * 2
        assert all("is a private address" in reason for _, reason in refused)


async def test_one_forbidden_address_among_others_refuses_the_name() -> None:
    names = Names(mixed_test=[["127.0.0.1", "127.0.0.2"]])
    rules = OriginRules(blocked=("127.0.0.2",))
    async with serving("127.0.0.1", "127.0.0.2") as (first, second), proxying(rules, names) as proxy:
        assert (await ask(proxy, get(f"http://mixed.test:{first.port}/"))).startswith("HTTP/1.1 403")
        assert first.seen == second.seen == []


async def test_localhost_is_not_resolved_and_the_proxy_does_not_call_itself() -> None:
    async with serving() as (server,), proxying(OriginRules(private=False), Names()) as proxy:
        assert (await ask(proxy, get(f"http://a.localhost:{server.port}/"))).startswith("HTTP/1.1 200")
        for host in ("127.0.0.1", "localhost"):
            own = proxy.url.replace("127.0.0.1", host)
            assert "is the browser's own proxy" in await ask(proxy, get(f"{own}/"), whole=True)


async def test_connections_are_bounded_and_end_with_the_proxy() -> None:
    async with serving() as (server,), proxying(most_connections=1) as proxy:
        reader, writer = await dial(proxy)
        writer.write(f"CONNECT 127.0.0.1:{server.port} HTTP/1.1\r\n\r\n".encode())
        async with asyncio.timeout(SECONDS):
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
            assert "503" in await ask(proxy, get(f"http://127.0.0.1:{server.port}/"))
            await proxy.close()
            assert await reader.read() == b"" and proxy.connections == 0
        writer.close()


async def test_an_idle_tunnel_is_closed() -> None:
    async with serving() as (server,), proxying(idle_seconds=0.05) as proxy:
        answer = await ask(proxy, f"CONNECT 127.0.0.1:{server.port} HTTP/1.1\r\n\r\n", whole=True)
        assert answer.startswith("HTTP/1.1 200")


async def test_reasons_are_bounded() -> None:
    async with proxying(resolve=Names()) as proxy:
        for port in range(1, 71):
            await ask(proxy, f"CONNECT {METADATA}:{port} HTTP/1.1\r\n\r\n")
        assert proxy.reason_for(f"http://{METADATA}:6/") is None
        assert "always blocked" in str(proxy.reason_for(f"https://{METADATA}:7/"))


# -- a real Chromium


class Page:
    """A tab, driven by the protocol alone."""

    def __init__(self, connection: CdpConnection, session: str) -> None:
        self._connection, self._session = connection, session

    async def goto(self, url: str) -> str:
        """Navigate; the error, if any."""
        loaded = asyncio.Event()
        stop = self._connection.listen(
            self._session, lambda method, _: loaded.set() if method == "Page.loadEventFired" else None
        )
        answer = await self._connection.call("Page.navigate", {"url": url}, self._session, SECONDS)
        if "errorText" not in answer:
            async with asyncio.timeout(SECONDS):
                await loaded.wait()
        stop()
        return str(answer.get("errorText", ""))

    async def run(self, script: str) -> Any:
        params = {"expression": script, "awaitPromise": True, "returnByValue": True}
        answer = await self._connection.call("Runtime.evaluate", params, self._session, SECONDS)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")


@asynccontextmanager
async def browsing(path: str, proxy: OriginProxy, context: dict[str, str] | None = None) -> AsyncIterator[Page]:
    """A tab of a browser that uses the proxy, in a context of its own if that has parameters."""
    process = await launch(LaunchOptions(executable=path, proxy=proxy.url))
    try:
        made = {} if context is None else await process.connection.call("Target.createBrowserContext", context)
        target = await process.connection.call("Target.createTarget", {"url": "about:blank", **made})
        params = {"targetId": target["targetId"], "flatten": True}
        session = (await process.connection.call("Target.attachToTarget", params))["sessionId"]
        await process.connection.call("Page.enable", None, session)
        yield Page(process.connection, session)
    finally:
        await process.end()


SOCKET = """new Promise(done => {
    const socket = new WebSocket(%s);
    socket.onmessage = event => done(event.data);
    socket.onerror = () => done("refused");
})"""
IMAGE = """new Promise(done => {
    const image = new Image();
    image.onload = () => done("loaded");
    image.onerror = () => done("refused");
    image.src = %s;
})"""
WORKER = """new Promise(done => {
    const code = `fetch(${JSON.stringify(%s)}, {mode: "no-cors"})
        .then(() => postMessage("reached"), () => postMessage("refused"))`;
    const worker = new Worker(URL.createObjectURL(new Blob([code])));
    worker.onmessage = event => done(event.data);
})"""
FETCH = "fetch(%s).then(answer => answer.status, () => 'refused')"


async def test_chromium_reaches_nothing_that_the_rules_forbid(browser_path: str) -> None:
    """One browser for all ways to a forbidden address: a start takes a second."""
    names = Names(site_test=[["127.0.0.1"]], meta_test=[[METADATA]], secret_test=[["127.0.0.1"]])
    refused: set[str] = set()
    async with (
        serving() as (server,),
        proxying(OriginRules(blocked=("secret.test",)), names, lambda origin, _: refused.add(origin.host)) as proxy,
        browsing(browser_path, proxy) as page,
    ):
        site, secret, meta = (f"http://{name}.test:{server.port}" for name in ("site", "secret", "meta"))
        server.redirects = {"/to-secret": f"{secret}/page", "/to-meta": f"http://{METADATA}/", "/hop": "/to-secret"}
        assert await page.goto(f"{site}/") == ""

        for url in (f"{secret}/page", f"{meta}/", f"http://{METADATA}/", f"{site}/to-secret", f"{site}/hop"):
            await page.goto(url)
            assert "Longshore refused" in await page.run("document.body.innerText"), url
        for url in (f"https://secret.test:{server.port}/", f"https://{METADATA}/"):
            assert await page.goto(url) == "net::ERR_TUNNEL_CONNECTION_FAILED"
            assert proxy.reason_for(url)

        await page.goto(f"{site}/")
        for url in (f"{secret}/fetched", f"{meta}/", f"http://{METADATA}/", f"{site}/to-secret", f"{site}/to-meta"):
            assert await page.run(FETCH % json.dumps(url)) in (403, "refused"), url
            assert await page.run(IMAGE % json.dumps(url)) == "refused", url
        assert await page.run(WORKER % json.dumps(f"https://secret.test:{server.port}/")) == "refused"
        for host in (f"secret.test:{server.port}", f"meta.test:{server.port}", METADATA):
            assert await page.run(SOCKET % json.dumps(f"ws://{host}/socket")) == "refused", host
        assert {host.partition(":")[0] for _, host in server.seen} == {"site.test"}
        assert refused == {"secret.test", "meta.test", METADATA}


async def test_chromium_uses_the_proxy_for_loopback_and_for_websockets(browser_path: str) -> None:
    async with serving() as (server,), proxying() as proxy, browsing(browser_path, proxy) as page:
        for host in ("127.0.0.1", "localhost"):
            assert await page.goto(f"http://{host}:{server.port}/") == ""
            assert await page.run("document.body.innerText") == "home"
            assert await page.run(SOCKET % json.dumps(f"ws://{host}:{server.port}/socket")) == "hello"
        assert proxy.connections > 0
    rules = OriginRules(blocked=("127.0.0.1", "localhost"))
    async with serving() as (server,), proxying(rules) as proxy, browsing(browser_path, proxy) as page:
        for host in ("127.0.0.1", "localhost", "2130706433", "0177.0.0.1", "[::ffff:127.0.0.1]", "127.1"):
            await page.goto(f"http://{host}:{server.port}/")
            assert "blocked origins" in await page.run("document.body.innerText"), host
        assert server.seen == []


@pytest.mark.parametrize("names_proxy", [False, True])
async def test_a_context_of_its_own_uses_the_proxy_too(browser_path: str, names_proxy: bool) -> None:
    async with serving() as (server,), proxying(OriginRules(blocked=("127.0.0.1",))) as proxy:
        context = {"proxyServer": proxy.url, "proxyBypassList": "<-loopback>"} if names_proxy else {}
        async with browsing(browser_path, proxy, context) as page:
            await page.goto(f"http://127.0.0.1:{server.port}/")
            assert "blocked origins" in await page.run("document.body.innerText")
            assert await page.run(SOCKET % json.dumps(f"ws://127.0.0.1:{server.port}/socket")) == "refused"
        assert server.seen == []


async def test_a_page_whose_name_flips_can_not_reach_loopback(browser_path: str) -> None:
    names = Names(flips_test=[["127.0.0.1"], ["127.0.0.2"]])
    rules = OriginRules(blocked=("127.0.0.2",))
    async with (
        serving("127.0.0.1", "127.0.0.2") as (first, second),
        proxying(rules, names) as proxy,
        browsing(browser_path, proxy) as page,
    ):
        await page.goto(f"http://flips.test:{first.port}/")
        # A websocket has a connection of its own, so the name is resolved and checked again.
        assert await page.run(SOCKET % json.dumps(f"ws://flips.test:{first.port}/socket")) == "refused"
        assert first.seen and second.seen == []
