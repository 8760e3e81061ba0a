"""Calls, answers and events, over pipes and over a websocket."""

from __future__ import annotations

import asyncio
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import is_alive

from longshore.toolsets.browser import pipe
from longshore.toolsets.browser.connection import TOO_LONG, CdpConnection, CdpError, ConnectionClosed
from longshore.toolsets.browser.executable import BrowserUnavailable
from longshore.toolsets.browser.launch import BrowserProcess
from longshore.toolsets.browser.websocket import attach


class Written:
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        self.messages: list[bytes] = []

    def write(self, message: bytes) -> None:
        self.messages.append(message)

    def close(self) -> None:
        pass


async def open_page(connection: CdpConnection) -> str:
    target = (await connection.call("Target.createTarget", {"url": "about:blank"}))["targetId"]
    return str((await connection.call("Target.attachToTarget", {"targetId": target, "flatten": True}))["sessionId"])


async def evaluate(connection: CdpConnection, session: str, expression: str) -> Any:
    asked = {"expression": expression, "returnByValue": True}
    return (await connection.call("Runtime.evaluate", asked, session))["result"]["value"]


async def test_large_messages_go_both_ways(chromium: BrowserProcess) -> None:
    session = await open_page(chromium.connection)
    assert await evaluate(chromium.connection, session, f"'{'x' * 3_000_000}'.length") == 3_000_000
    assert await evaluate(chromium.connection, session, "'ü'.repeat(20_000_000)") == "ü" * 20_000_000


async def test_half_a_surrogate_pair_is_replaced(chromium: BrowserProcess) -> None:
    session = await open_page(chromium.connection)
    assert await evaluate(chromium.connection, session, "'a\\ud83d' + 'b'") == "a\ufffdb"


async def test_a_refused_call_raises(chromium: BrowserProcess) -> None:
    with pytest.raises(CdpError, match=r"Nothing\.nothing"):
        await chromium.connection.call("Nothing.nothing")


async def test_a_handler_that_fails_loses_no_message() -> None:
    problems: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: problems.append(context))
    connection, events = CdpConnection(), []
    connection.listen(None, lambda *_: 1 / 0)  # type: ignore[arg-type, return-value]
    connection.listen(None, lambda method, params: events.append(method))
    connection.receive(b'{"method":"A.b"}')
    assert events == ["A.b"]
    assert isinstance(problems[0]["exception"], ZeroDivisionError)


async def test_a_call_that_timed_out_is_forgotten() -> None:
    connection = CdpConnection()
    connection.open(Written())
    with pytest.raises(TimeoutError):
        await connection.call("A.b", seconds=0)
    assert not connection._waiting
    connection.receive(b'{"id":1,"result":{}}')


async def test_an_answer_that_is_no_json_fails_its_call() -> None:
    connection = CdpConnection()
    connection.open(Written())
    answer = connection.send("A.b")
    connection.receive(b'{"id":1,"result":{"a":')
    with pytest.raises(CdpError, match="decoded"):
        await answer


@pytest.mark.parametrize(("length", "is_cut"), [(999, False), (1000, False), (1001, True), (10_000, True)])
@pytest.mark.parametrize("piece", [7, 100_000])
async def test_a_message_that_is_too_long_costs_only_itself(
    monkeypatch: pytest.MonkeyPatch, length: int, is_cut: bool, piece: int
) -> None:
    monkeypatch.setattr(pipe, "MOST_MESSAGE_BYTES", 1000)
    connection, events = CdpConnection(), list[str]()
    connection.open(Written())
    reading = pipe.PipeTransport(connection)
    connection.listen("S1", lambda method, params: events.append(method))
    answers = connection.send("A.b"), connection.send("A.c")

    def fill(start: str, end: str) -> str:
        return f"{start}{'x' * (length - len(start) - len(end))}{end}\0"

    forged = ',\\"sessionId\\":\\"S2\\"}'
    text = (
        fill('{"method":"A.event","params":{"a":"', f'{forged}"}},"sessionId":"S1"}}')
        + '{"method":"A.small","params":{},"sessionId":"S1"}\0'
        + fill('{"id":1,"result":{"a":"', '"},"sessionId":"S1"}')
        + '{"id":2,"result":{}}\0'
    )
    for at in range(0, len(text), piece):
        reading.data_received(text[at : at + piece].encode())
    assert events == [TOO_LONG if is_cut else "A.event", "A.small"]
    assert await answers[1] == {} and not connection.is_closed
    if is_cut:
        with pytest.raises(CdpError, match="too long"):
            await answers[0]
    else:
        assert "a" in await answers[0]


async def test_a_closed_connection_refuses_calls() -> None:
    connection = CdpConnection()
    connection.open(Written())
    waiting = connection.send("A.b")
    connection.close()
    for future in (waiting, connection.send("A.c")):
        with pytest.raises(ConnectionClosed):
            await future


async def test_attaching_by_port_by_websocket_and_by_profile(
    listening: tuple[subprocess.Popen[bytes], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    process, profile = listening
    port, path = (profile / "DevToolsActivePort").read_text().split()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(profile.parent))
    for url in (f"http://127.0.0.1:{port}", f"http://localhost:{port}/", f"ws://127.0.0.1:{port}{path}", "auto"):
        connection = await attach(url)
        assert "Chrom" in (await connection.call("Browser.getVersion"))["product"]
        session = await open_page(connection)
        assert await evaluate(connection, session, "'x'.repeat(5_000_000)") == "x" * 5_000_000
        connection.close()
        await connection.wait_closed()
        assert is_alive(process.pid)


async def test_a_killed_browser_closes_its_websocket(listening: tuple[subprocess.Popen[bytes], Path]) -> None:
    process, profile = listening
    connection = await attach("http://127.0.0.1:" + (profile / "DevToolsActivePort").read_text().split()[0])
    session = await open_page(connection)
    waiting = connection.send("Runtime.evaluate", {"expression": "new Promise(() => 0)", "awaitPromise": True}, session)
    process.kill()
    with pytest.raises(ConnectionClosed):
        await asyncio.wait_for(waiting, 30)


async def test_attaching_to_nothing_says_how_to_start_a_browser(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with socket.socket() as unused:  # bound, not listening
        unused.bind(("127.0.0.1", 0))
        where = f"127.0.0.1:{unused.getsockname()[1]}"
        for url in (f"http://{where}", f"ws://{where}/devtools/browser/x", "auto"):
            with pytest.raises(
                BrowserUnavailable, match=r"136.*user-data-dir|user-data-dir.*136.*144.*chrome://inspect"
            ):
                await attach(url)


async def test_attaching_to_a_web_server_says_that_it_is_none(serve_pages: Any) -> None:
    with pytest.raises(BrowserUnavailable, match="status 404"):
        await attach(serve_pages({}))


@pytest.mark.parametrize("url", ["", "ftp://127.0.0.1", "127.0.0.1:9222", "http://", "ws://[", "http://h:99999"])
async def test_a_wrong_address_is_refused(url: str) -> None:
    with pytest.raises(BrowserUnavailable, match="no address of a browser"):
        await attach(url)
