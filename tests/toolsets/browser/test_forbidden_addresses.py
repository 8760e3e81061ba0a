"""BR-1, BR-2 and BR-3: no page reaches an address or a scheme that it may not, whichever way it tries."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
from pathlib import Path
from typing import Any

import pytest

from longshore import Client
from longshore.errors import ToolFailed

from .attacking import answer, ask, attacked, processes_of
from .browsing import Site, serve

METADATA = [
    "http://169.254.169.254/latest/meta-data/",
    "http://2852039166/",
    "http://0xa9fea9fe/",
    "http://0251.0376.0251.0376/",
    "http://169.254.43518/",
    "http://[::ffff:169.254.169.254]/",
    "http://[::ffff:a9fe:a9fe]/",
    "http://[64:ff9b::a9fe:a9fe]/",
    "http://[fd00:ec2::254]/",
    "http://user:pass@169.254.169.254/",
    "http:\\\\169.254.169.254\\",
    "HTTP://METADATA.google.internal/",
    "http://metadata.google.internal./",
    "http://①⑥⑨.254.169.254/",
    "http://169。254。169。254/",
    "http://100.100.100.200/",
    " http://169.254.169.254/ ",
    "ht\ntp://169.254.\t169.254/",
]
PRIVATE = [
    "http://10.0.0.1/",
    "http://192.168.1.1/",
    "http://172.16.0.1/",
    "http://0/",
    "http://0.0.0.0/",
    "http://[fd12::1]/",
    "http://[::ffff:10.0.0.1]/",
    "http://167772161/",
    "http://100.64.0.1/",
]
SCHEMES = [
    "file:///etc/passwd",
    "FILE:/etc/passwd",
    "chrome://version",
    "view-source:http://127.0.0.1/",
    "data:text/html,x",
    "javascript:alert(1)",
    "java\nscript:alert(1)",
    "blob:http://127.0.0.1/x",
    "filesystem:http://127.0.0.1/temporary/x",
    "about:config",
    "about:srcdoc",
    "devtools://devtools/bundled/inspector.html",
    "chrome-extension://abc/x.html",
    "ftp://127.0.0.1/",
    "ws://127.0.0.1/",
    "mailto:a@example.org",
    "",
]


REFUSALS = ("blocked", "private", "can't be opened", "no scheme", "no URL")


async def test_br_1_and_br_3_every_spelling_is_refused_by_every_tool_that_takes_a_url() -> None:
    async with attacked({}, private_addresses=False) as (client, _):
        for url in [*METADATA, *PRIVATE, *SCHEMES]:
            for name, arguments in (("navigate", {}), ("tabs", {"action": "new"}), ("open", {})):
                said = await answer(client, name, **arguments, url=url)
                assert any(word in said for word in REFUSALS), said
            with pytest.raises(ToolFailed):
                await client.call_tool("browser", {"url": url})
        assert "no browser is open" in await ask(client, "tabs")


async def test_br_1_loopback_stays_open_by_its_own_names() -> None:
    async with attacked({}, private_addresses=False) as (client, site):
        for host in ("127.0.0.1", "localhost", "2130706433", "0x7f.1"):
            assert "all is well" in await ask(client, "navigate", url=site.url("/fine", host))


WAYS = """<title>ways</title><body><script>
const at = "http://HOST/", later = [];
const ends = (thing) => new Promise((done) => { thing.onload = thing.onerror = () => done(); });
const put = (tag, fields) => {
  const made = Object.assign(document.createElement(tag), fields);
  later.push(ends(made));
  document.body.append(made);
};
const wrapped = (code) => URL.createObjectURL(new Blob([code]));
put("img", {src: at + "image"});
put("script", {src: at + "script"});
put("iframe", {src: at + "iframe"});
put("link", {rel: "stylesheet", href: at + "style"});
put("link", {rel: "preload", as: "image", href: at + "preload"});
put("iframe", {srcdoc: `<meta http-equiv=refresh content="0;url=${at}refresh">`});
put("iframe", {src: "/to-frame"});
later.push(fetch(at + "fetch", {mode: "no-cors"}).catch(() => 0));
later.push(fetch("/to-fetch", {mode: "no-cors"}).catch(() => 0));
const request = new XMLHttpRequest();
later.push(new Promise((done) => { request.onloadend = done; }));
request.open("POST", at + "xhr");
request.send("x");
const socket = new WebSocket("ws://HOST/socket");
later.push(new Promise((done) => { socket.onclose = done; }));
const source = new EventSource(at + "events");
later.push(new Promise((done) => { source.onerror = () => done(source.close()); }));
const worker = new Worker(wrapped(`fetch("${at}worker", {mode: "no-cors"}).catch(() => 0).then(() => postMessage(1))`));
later.push(new Promise((done) => { worker.onmessage = done; }));
const importing = new Worker(wrapped(`try { importScripts("${at}imported") } catch {} postMessage(1)`));
later.push(new Promise((done) => { importing.onmessage = done; }));
navigator.sendBeacon(at + "beacon", "x");
later.push(navigator.serviceWorker.register("/service-worker.js").then((made) => new Promise((done) => {
  navigator.serviceWorker.onmessage = done;
  navigator.serviceWorker.ready.then((ready) => ready.active.postMessage(1));
})).catch(() => 0));
window.tried = Promise.all(later).then(() => "tried");
</script>"""
SERVICE_WORKER = """onmessage = (event) => event.waitUntil(
  fetch("http://HOST/service", {mode: "no-cors"}).catch(() => 0).then(() => event.source.postMessage(1)));"""
REACHED = {
    *("/image", "/script", "/iframe", "/style", "/preload", "/refresh", "/fetch", "/xhr", "/socket", "/events"),
    *("/worker", "/imported", "/beacon", "/service", "/popup", "/form", "/clicked", "/scripted", "/framed", "/fetched"),
    *("/301", "/302", "/303", "/307", "/308", "/meta"),
}


async def try_every_way(client: Client, site: Site, host: str) -> None:
    site.pages = {path: text.replace("HOST", host) for path, text in site.pages.items()}
    site.headers["/service-worker.js"] = "content-type: text/javascript\r\n"
    for path, status, to in (
        ("/to-frame", 302, "/framed"),
        ("/to-fetch", 307, "/fetched"),
        *((f"/to-{each}", each, f"/{each}") for each in (301, 302, 303, 307, 308)),
    ):
        site.statuses[path], site.headers[path] = f"{status} Moved", f"location: http://{host}{to}\r\n"
    await ask(client, "navigate", url=site.url("/ways"))
    assert "tried" in await ask(client, "evaluate", script="window.tried", timeout_ms=30_000)
    for path in ("to-301", "to-302", "to-303", "to-307", "to-308", "meta", "scripted"):
        await answer(client, "navigate", url=site.url(f"/{path}"))
        await answer(client, "wait", url=host, timeout_ms=5000)
    await ask(client, "navigate", url=site.url("/click"))
    await ask(client, "click", text="popup")
    await ask(client, "click", text="form")
    await ask(client, "navigate", url=site.url("/click"))
    await ask(client, "click", text="link")


ATTACKS = {
    "/ways": WAYS,
    "/service-worker.js": SERVICE_WORKER,
    "/to-frame": "",
    "/to-fetch": "",
    **{f"/to-{status}": "" for status in (301, 302, 303, 307, 308)},
    "/meta": "<meta http-equiv=refresh content='0;url=http://HOST/meta'>",
    "/scripted": "<script>location = 'http://HOST/scripted'</script>",
    "/click": "<button onclick=\"window.open('http://HOST/popup')\">popup</button><a href='http://HOST/clicked'>link</a>"
    "<form action='http://HOST/form' method=post><button>form</button></form>",
}


@pytest.mark.parametrize("rules", ["none", "blocked", "allowed"])
async def test_br_1_no_way_leads_to_a_forbidden_origin(rules: str) -> None:
    """Without rules, all of them do: so these are ways."""
    async with serve({}) as other:
        host = f"localhost:{other.port}"
        options: dict[str, Any] = {
            "none": {},
            "blocked": {"blocked_origins": [host]},
            "allowed": {"allowed_origins": ["127.0.0.1"]},
        }[rules]
        async with attacked(dict(ATTACKS), **options) as (client, site):
            await try_every_way(client, site, host)
            if rules == "none":
                assert set(other.asked) - {"/favicon.ico"} == REACHED
            else:
                assert other.connections == 0
                assert "origins" in await answer(client, "navigate", url=f"http://{host}/")


async def test_br_1_a_redirect_to_metadata_or_a_private_address_says_why_it_was_refused() -> None:
    async with attacked({"/meta": "", "/private": "", "/secure": ""}, private_addresses=False) as (client, site):
        for path, address in (("/meta", "169.254.169.254"), ("/private", "10.0.0.1")):
            site.statuses[path], site.headers[path] = "302 Found", f"location: http://{address}/\r\n"
            shown = await answer(client, "navigate", url=site.url(path))
            assert "can't be loaded: " in shown and ("always blocked" in shown or "private address" in shown), shown
        site.statuses["/secure"], site.headers["/secure"] = "302 Found", "location: https://10.0.0.1/\r\n"
        assert "private address" in await answer(client, "navigate", url=site.url("/secure"))


async def test_br_1_rules_hold_after_the_network_process_was_killed() -> None:
    async with serve({}) as other, attacked({}, blocked_origins=[f"localhost:{other.port}"]) as (client, site):
        await ask(client, "navigate", url=site.url("/fine"))
        (network,) = processes_of("network.mojom.NetworkService")
        os.kill(network, signal.SIGKILL)
        script = f"fetch('http://localhost:{other.port}/', {{mode: 'no-cors'}}).then(() => 'got', () => 'failed')"
        for _ in range(3):
            await answer(client, "evaluate", script=script)
        assert other.connections == 0


async def test_br_2_a_name_that_flips_to_a_forbidden_address_is_not_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    names: list[str] = []
    usual = asyncio.BaseEventLoop.getaddrinfo

    async def resolve(loop: asyncio.BaseEventLoop, host: Any, port: Any, **options: Any) -> Any:
        if host != "flips.test":
            return await usual(loop, host, port, **options)
        names.append(host)
        address = "127.0.0.1" if len(names) == 1 else "127.0.0.2"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", resolve)
    secret = await asyncio.start_server(lambda _, writer: (seen.append(1), writer.close())[1], "127.0.0.2", 0)
    seen: list[int] = []
    port = secret.sockets[0].getsockname()[1]
    page = "<title>first</title><p>harmless"
    async with attacked({"/": page}, blocked_origins=["127.0.0.2"]) as (client, site):
        # The same port at both addresses, as an attacker has it.
        first = await asyncio.start_server(site.answer, "127.0.0.1", port)
        assert "harmless" in await ask(client, "navigate", url=f"http://flips.test:{port}/")
        fetched = await ask(client, "evaluate", script="fetch('/secret').then((r) => r.text(), () => 'failed')")
        assert "Longshore refused" in fetched or "failed" in fetched
        assert "is one of the blocked origins" in await answer(
            client, "navigate", url=f"http://flips.test:{port}/secret"
        )
        first.close()
    secret.close()
    assert len(names) >= 2 and seen == []


async def test_br_3_no_page_gets_to_another_scheme(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("hunter2")
    for each in (tmp_path, *tmp_path.parents[:2]):
        each.chmod(0o755)  # the browser's user could read it
    targets = [f"file://{secret}", "chrome://version", f"view-source:file://{secret}", "data:text/html,hunter%32"]
    body = "<script>const t = TARGETS</script><p>still here" + "".join(
        f"<a id=a{n} href='{url}'>link{n}</a><button onclick='window.open(t[{n}])'>open{n}</button>"
        f"<form action='{url}' method=post><button>form{n}</button></form>"
        f"<button onclick='location=t[{n}]'>script{n}</button>"
        f"<iframe src='{url if n < 3 else ''}'></iframe>"
        for n, url in enumerate(targets)
    )
    async with attacked({"/": body.replace("TARGETS", json.dumps(targets)), "/to": ""}) as (client, site):
        for n, target in enumerate(targets):
            site.statuses["/to"], site.headers["/to"] = "302 Found", f"location: {target}\r\n"
            shown = await answer(client, "navigate", url=site.url("/to"))
            assert "hunter2" not in shown, shown
            for button in ("link", "open", "form", "script"):
                await ask(client, "navigate", url=site.url("/"), tab_id="t1")
                shown = await answer(client, "click", text=f"{button}{n}", tab_id="t1")
                assert "hunter2" not in shown, shown
            for tab in (line.split()[0] for line in (await ask(client, "tabs")).splitlines()[2:-1]):
                assert "hunter2" not in await answer(client, "read", tab_id=tab, format="html")
        addresses = [line.split() for line in (await ask(client, "tabs")).splitlines()[2:-1]]
        assert all(any(word.startswith(("http://", "about:blank")) for word in words) for words in addresses), addresses
