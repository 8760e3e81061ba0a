"""Attaching to a browser that somebody else started: only to pages that are asked for, none of which we close."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import is_alive

from longshore import Client
from longshore.errors import ToolError
from longshore.toolsets.browser import origins
from longshore.toolsets.browser.browser import Attachment, Browser
from longshore.toolsets.browser.browsers import Browsers
from longshore.toolsets.browser.connection import CdpConnection
from longshore.toolsets.browser.options import BrowserOptions
from longshore.toolsets.browser.websocket import attach
from waiting import PATIENCE

from .attacking import answer
from .browsing import Site, serve
from .test_tools import app, ask, refusal

Listening = tuple[subprocess.Popen[bytes], Path]
PAGES = {
    "/": "<title>Inbox</title><button onclick=\"this.textContent = 'Read'\">Open</button><input type=file>",
    "/other": "<title>Other</title><h1>Other</h1><button onclick=\"window.open('/')\">Popup</button>",
    "/busy": "<title>Busy</title><h1>Busy</h1>",
    "/file": "content",
}


class User:
    """The user of the browser, who opens pages in it and sees what is open."""

    def __init__(self, connection: CdpConnection, site: Site, address: str) -> None:
        self.connection, self.site, self.address = connection, site, address

    async def open(self, path: str) -> str:
        """Open a page and wait until it has loaded. Returns its target."""
        made = await self.connection.call("Target.createTarget", {"url": self.site.url(path)})
        while not await self.title(made["targetId"]):
            await asyncio.sleep(0.05)
        return str(made["targetId"])

    async def title(self, target: str) -> str:
        """The title of a page, empty until it has loaded: the browser shows the URL before."""
        info = (await self.connection.call("Target.getTargetInfo", {"targetId": target}))["targetInfo"]
        return info["title"] if f"<title>{info['title']}</title>" in "".join(PAGES.values()) else ""

    async def inspect(self, target: str) -> str:
        """Attach to a page, as a DevTools window does. Returns the session."""
        made = await self.connection.call("Target.attachToTarget", {"targetId": target, "flatten": True})
        return str(made["sessionId"])

    async def titles(self) -> list[str]:
        """The titles of all pages with one."""
        found = (await self.connection.call("Target.getTargets", {"filter": [{"type": "page"}]}))["targetInfos"]
        return sorted(info["title"] for info in found if info["url"].startswith("http"))

    async def attached(self) -> int:
        """How many pages somebody is attached to."""
        found = (await self.connection.call("Target.getTargets", {"filter": [{"type": "page"}]}))["targetInfos"]
        return sum(bool(info["attached"]) for info in found)

    async def see(self, titles: list[str]) -> None:
        """Wait until exactly these are open."""
        while await self.titles() != titles:
            await asyncio.sleep(0.05)


@asynccontextmanager
async def attached(listening: Listening, **options: Any) -> AsyncIterator[tuple[Client, User]]:
    """A client, and the user of a browser that runs."""
    _, profile = listening
    address = "http://127.0.0.1:" + (profile / "DevToolsActivePort").read_text().split()[0]
    async with serve(PAGES) as site:
        site.headers["/file"] = "content-type: application/x-thing\r\ncontent-disposition: attachment\r\n"
        connection = await attach(address)
        async with Client(app(**options)) as client:
            yield client, User(connection, site, address)
        connection.close()


def id_of(listed: str, url: str) -> str:
    """The id in the list of the page at a URL."""
    return next(line.split()[0] for line in listed.splitlines() if f" {url} " in line)


async def test_pages_are_listed_and_only_the_named_one_is_attached_to(listening: Listening) -> None:
    async with attached(listening) as (client, user):
        await user.open("/")
        await user.open("/other")
        listed = await ask(client, "open", connect=user.address)
        assert "\nb1 (current): 0 tabs, attached\n" in listed and "chrome://" not in listed
        assert await user.attached() == 0
        inbox = id_of(listed, user.site.url())
        assert f"{inbox} http" in await ask(client, "tabs")  # an id stays
        assert "button,focused Read" in await ask(client, "click", text="Open", tab_id=inbox)
        assert await user.attached() == 1
        assert f"{inbox} (current)" in (again := await ask(client, "tabs")) and "b1 (current): 1 tabs" in again
        assert again.count(f" {user.site.url()} ") == 1
        assert "left open" in await ask(client, "tabs", action="close", tab_id=inbox)
        assert await user.attached() == 0
        assert id_of(await ask(client, "tabs"), user.site.url()) == inbox
        assert f"b1 {inbox} is the current tab" in await ask(client, "tabs", action="select", tab_id=inbox)


async def test_a_configured_address_is_attached_to_at_the_first_use(
    listening: Listening, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHROME_PATH", "/absent")  # no browser need be installed here
    async with attached(listening) as (_, user), Client(app(connect=user.address)) as client:
        before = await user.titles()
        await ask(client, "navigate", url=user.site.url())
        assert len(await user.titles()) == len(before) + 1


async def test_closing_leaves_the_browser_and_closes_only_our_tabs(listening: Listening) -> None:
    async with attached(listening) as (client, user):
        await user.open("/")
        listed = await ask(client, "open", connect=user.address)
        await ask(client, "click", text="Open", tab_id=id_of(listed, user.site.url()))
        await ask(client, "tabs", action="new", url=user.site.url("/other"))
        await user.see(["Inbox", "Other"])
        assert "stays open" in await ask(client, "close")
        await user.see(["Inbox"])
        assert is_alive(listening[0].pid)
        assert await ask(client, "tabs") == "no browser is open; browser_navigate opens one"


async def test_our_tabs_are_closed_when_the_server_stops(listening: Listening) -> None:
    async with attached(listening) as (_, user):
        await user.open("/")
        async with Client(app()) as other:
            assert "Other" in await ask(other, "open", connect=user.address, url=user.site.url("/other"))
            await user.see(["Inbox", "Other"])
        await user.see(["Inbox"])


async def test_a_popup_of_a_users_page_is_not_closed_by_us(listening: Listening) -> None:
    async with attached(listening) as (client, user):
        await user.open("/other")
        listed = await ask(client, "open", connect=user.address)
        assert "opened tab" in await ask(client, "click", text="Popup", tab_id=id_of(listed, user.site.url("/other")))
        async with asyncio.timeout(PATIENCE):
            while (await ask(client, "tabs")).count(user.site.url()) != 2:  # the popup may still load
                await asyncio.sleep(0.05)
        await ask(client, "close")
        await user.see(["Inbox", "Other"])


async def test_a_page_that_hangs_is_an_error_and_stays_open(listening: Listening) -> None:
    async with attached(listening) as (client, user):
        target = await user.open("/busy")
        await user.open("/")
        session = await user.inspect(target)
        endless = user.connection.send("Runtime.evaluate", {"expression": "for (;;);"}, session)
        listed = await ask(client, "open", connect=user.address)
        busy = id_of(listed, user.site.url("/busy"))
        assert "discarded or hangs" in await refusal(client, "snapshot", tab_id=busy)
        assert "Open" in await ask(client, "snapshot", tab_id=id_of(listed, user.site.url()))
        await user.connection.call("Runtime.terminateExecution", {}, session)
        await asyncio.wait({endless}, timeout=30)
        assert "Busy" in await ask(client, "snapshot", tab_id=busy)


def signal_renderers(browser: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """Send a signal to the processes of the browser's pages."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if os.getpgid(int(folder.name)) == browser.pid and b"--type=renderer" in (folder / "cmdline").read_bytes():
                os.kill(int(folder.name), number)
        except OSError:
            pass  # it has ended


async def test_a_page_that_gets_stuck_is_left_and_not_replaced(listening: Listening) -> None:
    async with attached(listening) as (client, user):
        await user.open("/")
        inbox = id_of(await ask(client, "open", connect=user.address), user.site.url())
        await ask(client, "snapshot", tab_id=inbox)
        signal_renderers(listening[0], signal.SIGSTOP)
        try:
            assert "does not answer" in await refusal(client, "evaluate", script="1", timeout_ms=500)
            assert "it was stuck; browser_tabs lists" in await refusal(client, "snapshot")
            assert "discarded or hangs" in await refusal(client, "snapshot", tab_id=inbox)
        finally:
            signal_renderers(listening[0], signal.SIGCONT)
        assert await user.titles() == ["Inbox"]
        assert "Open" in await ask(client, "snapshot", tab_id=inbox)


async def test_a_crashed_page_of_the_user_is_not_replaced(listening: Listening) -> None:
    async with attached(listening) as (client, user):
        target = await user.open("/")
        inbox = id_of(await ask(client, "open", connect=user.address), user.site.url())
        waiting = asyncio.create_task(refusal(client, "evaluate", script="new Promise(() => 0)", tab_id=inbox))
        while not await user.attached():
            await asyncio.sleep(0.05)
        session = await user.inspect(target)
        crash = user.connection.send("Page.crash", {}, session)
        assert "browser_tabs lists what is open" in await waiting
        crash.cancel()
        assert "browser_tabs lists what is open" in await refusal(client, "snapshot")
        await user.connection.call("Page.reload", {}, session)
        while not await user.title(target):
            await asyncio.sleep(0.05)
        assert "Open" in await ask(client, "snapshot", tab_id=inbox)


async def test_an_ended_browser_is_reported_once_and_then_one_of_ours_is_used(listening: Listening) -> None:
    async with attached(listening) as (client, user):
        await ask(client, "open", connect=user.address, url=user.site.url())
        call = asyncio.create_task(refusal(client, "evaluate", script="new Promise(() => 0)"))
        await asyncio.wait({call}, timeout=0.5)
        os.killpg(listening[0].pid, signal.SIGKILL)
        assert "the browser ended; browser_tabs lists what is open" in await call
        assert "\nb1: the browser that it was attached to has ended\n" in await ask(client, "tabs")
        assert "b1 was attached to has ended" in await refusal(client, "snapshot")
        assert "[b2 t1 " in await ask(client, "navigate", url=user.site.url())


async def test_uploads_have_their_own_path_and_downloads_are_the_users(
    listening: Listening, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "photo.png").write_bytes(b"png")
    async with attached(listening) as (client, user):
        await ask(client, "open", connect=user.address, url=user.site.url())
        answer = await client.call_tool("browser_files", {"paths": ["photo.png"], "selector": "input"})
        assert "photo.png" in answer.text
        assert "absent.png" in await refusal(client, "files", paths=["absent.png"], selector="input")
        assert "is a download" in await ask(client, "navigate", url=user.site.url("/file"))
        assert "where its settings say" in await refusal(client, "files")


async def test_a_browser_of_another_machine_gets_no_files() -> None:
    browser = Browser(Attachment(CdpConnection(), is_local=False), isolated=False)
    with pytest.raises(ToolError, match="another machine"):
        Browsers(BrowserOptions()).upload_folder(browser)


async def test_a_context_of_another_client_is_not_listed(listening: Listening) -> None:
    async with attached(listening) as (client, user):
        context = (await user.connection.call("Target.createBrowserContext"))["browserContextId"]
        theirs = {"url": user.site.url("/other"), "browserContextId": context}
        await user.connection.call("Target.createTarget", theirs)
        await user.open("/")
        await user.see(["Inbox", "Other"])
        listed = await ask(client, "open", connect=user.address)
        assert "Inbox" in listed and "Other" not in listed


@pytest.mark.parametrize(
    "options",
    [
        {"allowed_origins": ["example.com"]},
        {"blocked_origins": ["example.com"]},
        {"private_addresses": False},
        {"attach": False},
    ],
)
async def test_br_1_rules_that_can_not_be_enforced_refuse_to_attach(options: dict[str, Any]) -> None:
    async with Client(app(**options)) as client:
        said = await refusal(client, "open", connect="http://127.0.0.1:1")
        assert (
            f"{'origin rules' if 'attach' not in options else 'switched off'}" in said and "leave connect out" in said
        )
        assert await ask(client, "tabs") == "no browser is open; browser_navigate opens one"


async def test_the_configured_browser_is_attached_to_also_where_callers_may_name_none() -> None:
    async with Client(app(attach=False, connect="http://127.0.0.1:1")) as client:
        assert "switched off" not in await refusal(client, "navigate", url="about:blank")
        assert "switched off" in await refusal(client, "open", connect="http://127.0.0.1:2")


@pytest.mark.parametrize(
    "address",
    [
        "http://169.254.169.254",
        "ws://169.254.169.254/devtools/browser/x",
        "http://metadata.google.internal:80",
        "http://0xa9fea9fe/",
        "http://[::ffff:169.254.169.254]:9222",
    ],
)
async def test_br_3_a_metadata_address_is_not_attached_to(address: str) -> None:
    async with Client(app()) as client:
        said = await refusal(client, "open", connect=address)
        assert "always blocked; nothing was requested" in said


async def test_a_name_that_resolves_to_a_metadata_address_is_not_attached_to(monkeypatch: pytest.MonkeyPatch) -> None:
    async def resolve(host: str, port: int) -> list[str]:
        return ["127.0.0.1", "169.254.169.254"]

    monkeypatch.setattr("longshore.toolsets.browser.browsers.resolve_name", resolve)
    async with Client(app()) as client:
        assert "always blocked" in await refusal(client, "open", connect="http://evil.test:9222")


@asynccontextmanager
async def answering(head: str) -> AsyncIterator[tuple[int, list[str]]]:
    """A server that answers all requests with this head, and the first lines of the requests."""
    asked = list[str]()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append((await reader.readuntil(b"\r\n\r\n")).decode().partition("\r\n")[0])
        writer.write(f"HTTP/1.1 {head}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".encode())
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1], asked
    finally:
        server.close()


@pytest.mark.parametrize("scheme", ["ws", "http"])
async def test_a_redirect_to_another_address_is_not_followed(scheme: str) -> None:
    async with (
        answering("404 Not Found") as (port, asked),
        answering(f"302 Found\r\nlocation: {scheme}://127.0.0.1:{port}/latest/meta-data/") as (hop, hops),
        Client(app()) as client,
    ):
        assert "302" in await refusal(client, "open", connect=f"{scheme}://127.0.0.1:{hop}/devtools/browser/x")
        assert len(hops) == 1 and asked == []


@pytest.mark.parametrize("scheme", ["ws", "http"])
async def test_br_2_the_address_that_was_checked_is_connected_to(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def resolve(host: str, port: int) -> list[str]:
        return ["127.0.0.2", "127.0.0.1"]  # nobody listens at the first

    monkeypatch.setattr("longshore.toolsets.browser.browsers.resolve_name", resolve)
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    async with answering("404 Not Found") as (port, asked), Client(app()) as client:
        assert "404" in await refusal(client, "open", connect=f"{scheme}://evil.test:{port}/x")  # no resolver has it
        assert len(asked) == 1


@pytest.mark.parametrize("scheme", ["ws", "http"])
async def test_a_name_that_no_resolver_knows_is_not_resolved_again(
    scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def resolve(host: str, port: int) -> list[str]:
        raise OSError

    monkeypatch.setattr("longshore.toolsets.browser.browsers.resolve_name", resolve)
    async with answering("404 Not Found") as (port, asked), Client(app()) as client:
        assert "no address" in await refusal(client, "open", connect=f"{scheme}://localhost:{port}/x")
        assert asked == []


METADATA = (
    "http://metadata.google.internal:PORT/secret",
    "http://169.254.169.254:PORT/secret",
    "http://[::a9fe:a9fe]/",
)


@pytest.mark.parametrize("address", METADATA)
async def test_br_1_no_page_of_an_attached_browser_reaches_a_metadata_service(
    listening: Listening, address: str
) -> None:
    async with attached(listening) as (client, user):
        address = address.replace("PORT", str(user.site.port))
        user.site.pages["/secret"] = "secret"
        user.site.statuses["/hop"], user.site.headers["/hop"] = "302 Found", f"location: {address}\r\n"
        user.site.pages["/hop"] = ""
        user.site.pages["/metadata"] = f"<title>ours</title><iframe src={address}></iframe><a href={address}>go</a>"
        await ask(client, "open", connect=user.address)
        assert "link go" in await ask(client, "navigate", url=user.site.url("/metadata"))
        worker = f"postMessage(0); onmessage = () => fetch('{address}').catch(() => 0).then(postMessage)"
        for script in (
            f"fetch('{address}').catch(() => 0)",
            "fetch('/hop').catch(() => 0)",
            "window.answer = () => new Promise((done) => { worker.onmessage = done }); 0",
            f"window.worker = new Worker(URL.createObjectURL(new Blob([`{worker}`]))); answer()",
            "worker.postMessage(0); answer()",
        ):
            await ask(client, "evaluate", script=script)
        assert "inspector" in await ask(client, "click", text="go")
        assert "don't allow it" in await refusal(client, "navigate", url=user.site.url("/hop"))
        assert "/secret" not in user.site.asked and "/hop" in user.site.asked


@pytest.mark.parametrize("script", ["location = 'http://elsewhere.test:PORT/secret'", "fetch('/secret')"])
async def test_br_2_a_page_that_reaches_a_metadata_service_by_another_name_is_left(
    listening: Listening, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    """127.0.0.9 stands for one: no address that is one can be served here."""
    networks = (*origins._METADATA_NETWORKS, ip_network("127.0.0.9/32"))
    async with attached(listening) as (client, user):
        user.site.pages = {"/secret": "<p>classified", "/": "<title>ours</title>"}
        user.site.headers["/secret"] = "content-type: text/html\r\naccess-control-allow-origin: *\r\n"
        async with await asyncio.start_server(user.site.answer, "127.0.0.9", 0) as service:
            port = service.sockets[0].getsockname()[1]
            await ask(client, "open", connect=user.address)
            await ask(client, "navigate", url=f"http://elsewhere.test:{port}/")
            monkeypatch.setattr(origins, "_METADATA_NETWORKS", networks)
            told = await answer(client, "evaluate", script=script.replace("PORT", str(port)))
            told += await answer(client, "wait", url="about:blank") + await ask(client, "read")
    assert "elsewhere.test, which resolves to 127.0.0.9, is a link-local or cloud metadata address" in told
    assert "classified" not in told and "ours" not in told


async def test_c_26_a_browser_is_not_shared_with_another_principal(listening: Listening) -> None:
    _, profile = listening
    port = (profile / "DevToolsActivePort").read_text().split()[0]
    browsers = Browsers(BrowserOptions())
    try:
        first = await browsers.attach("alice", f"http://127.0.0.1:{port}", None)
        for is_closed in (False, True):
            if is_closed:
                await browsers.close("alice", first)  # her logins are still in it
            with pytest.raises(ToolError, match="another principal has attached to this browser"):
                await browsers.attach("bob", f"http://localhost:{port}", None)
            assert not browsers.all("bob")
        assert await browsers.attach("alice", f"http://localhost:{port}", None)
    finally:
        await browsers.close_all()


async def test_headless_has_no_meaning_for_a_browser_that_runs() -> None:
    async with Client(app()) as client:
        assert "leave headless out" in await refusal(client, "open", connect="auto", headless=True)
        assert "no address of a browser" in await refusal(client, "open", connect="ftp://x")
