"""Clients that leave at every point of a request: the server goes on, and nothing of theirs stays."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from longshore import Limits
from posting import LEGACY, Json, Session, ask_modern, call, encode, modern, modern_headers, notice, request
from serving import SECONDS, Pairs, Served, request_head

from .fixture import BOTH, UVICORN, Rig, rigged

QUICK = Limits(stream_after_seconds=0.0, keep_alive_seconds=0.001)
POINTS = 40
Ask = tuple[str, str, list[tuple[str, str]], Any]
"""Verb, path, headers and message."""


def modern_ask(message: Json) -> Ask:
    message = modern(message)
    return "POST", "/mcp", list(modern_headers(message)), message


def legacy_ask(id: str, message: Any) -> Ask:
    return "POST", "/mcp", [("Mcp-Session-Id", id), ("MCP-Protocol-Version", LEGACY)], message


def initialize() -> Json:
    return request("initialize", {"protocolVersion": LEGACY, "capabilities": {}}, "init")


TOKEN = {"progressToken": 1}
ASKS: dict[str, Callable[[str], Ask]] = {
    "modern inline": lambda _: modern_ask(call("echo")),
    "modern async": lambda _: modern_ask(call("later")),
    "modern thread": lambda _: modern_ask(call("threaded")),
    "modern stream": lambda _: modern_ask(call("count", {"to": 9}, **TOKEN)),
    "modern hold": lambda _: modern_ask(call("hold")),
    "modern hold, loud": lambda _: modern_ask(call("hold_loudly", **TOKEN)),
    "modern spin": lambda _: modern_ask(call("spin")),
    "modern listen": lambda _: modern_ask(request("subscriptions/listen", {"notifications": {}})),
    "modern refusal": lambda _: modern_ask(request("no/such")),
    "legacy handshake": lambda _: ("POST", "/mcp", [], initialize()),
    "legacy inline": lambda id: legacy_ask(id, call("echo")),
    "legacy async": lambda id: legacy_ask(id, call("later")),
    "legacy stream": lambda id: legacy_ask(id, call("count", {"to": 9}, **TOKEN)),
    "legacy hold": lambda id: legacy_ask(id, call("hold", id="h")),
    "legacy hold, loud": lambda id: legacy_ask(id, call("hold_loudly", id="h", **TOKEN)),
    "legacy poll": lambda id: legacy_ask(id, call("poll", id="h", **TOKEN)),
    "legacy note": lambda id: legacy_ask(id, notice("notifications/initialized")),
    "legacy get": lambda id: ("GET", "/mcp", [("Mcp-Session-Id", id)], None),
    "legacy delete": lambda id: ("DELETE", "/mcp", [("Mcp-Session-Id", id)], None),
    "old stream": lambda _: ("GET", "/sse", [], None),
}


class Driver:
    """Runs the app without a server, one turn of the loop at a time, and leaves whenever it is told to."""

    def __init__(self, rig: Rig, ask: Ask) -> None:
        verb, path, headers, message = ask
        pairs = [("host", "localhost"), ("content-type", "application/json"), *headers]
        self._scope = {
            "type": "http",
            "method": verb,
            "path": path,
            "scheme": "http",
            "server": ("127.0.0.1", 80),
            "query_string": b"",
            "headers": [(name.lower().encode(), value.encode()) for name, value in pairs],
        }
        self._body = b"" if message is None else encode(message)
        self._read = 0
        self._left = asyncio.Event()
        self.raises = False
        self.sent: list[Any] = []
        self.task = asyncio.create_task(rig.app(self._scope, self.receive, self.send))

    async def receive(self) -> Any:
        await asyncio.sleep(0)
        if self._read < 2 and not self._left.is_set():
            self._read += 1
            half = len(self._body) // 2
            part = self._body[:half] if self._read == 1 else self._body[half:]
            return {"type": "http.request", "body": part, "more_body": self._read == 1}
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def send(self, event: Any) -> None:
        await asyncio.sleep(0)
        if self._left.is_set() and self.raises:
            raise OSError("the client is gone")
        self.sent.append(event)

    def leave(self) -> None:
        self._left.set()


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(SECONDS):
        while not condition():
            await asyncio.sleep(0.001)


async def hang_up(driver: Driver) -> None:
    driver.leave()
    await driver.task


async def hang_up_on_a_strict_server(driver: Driver) -> None:
    """One whose `send` raises once the client is gone, as ASGI 2.4 has it."""
    driver.raises = True
    driver.leave()
    await driver.task


async def cancel(driver: Driver) -> None:
    """As a middleware or a server may, when the client has left."""
    driver.task.cancel()
    await asyncio.wait([driver.task])


def traces(rig: Rig, idle: set[Any]) -> dict[str, Any]:
    """What a client may leave behind."""
    tasks = [str(task) for task in asyncio.all_tasks() - idle]
    streams = [stream for live in rig.sessions.values() for stream in live.streams.values()]
    return {
        "calls": [call.entry.name for call in rig.executor.live],
        "running": rig.executor.running,
        "listens": len(rig.listens),
        "old streams": len(rig.app.sse.open),
        "pinned": [live.busy for live in rig.sessions.values() if live.busy],
        "followers": [stream.id for stream in streams if stream.followers],
        "tasks": tasks,
    }


NOTHING = {"calls": [], "running": 0, "listens": 0, "old streams": 0, "pinned": [], "followers": [], "tasks": []}


@UVICORN
@pytest.mark.parametrize("leave", [hang_up, hang_up_on_a_strict_server, cancel])
@pytest.mark.parametrize("kind", ASKS)
def test_a_client_that_leaves_at_any_turn_leaves_nothing_behind(
    kind: str, leave: Callable[[Driver], Awaitable[None]]
) -> None:
    problems: list[str] = []

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: problems.append(str(context)))
        rig = Rig(QUICK, rate=0)
        rig.server.listen(lambda it: problems.append(str(it)) if getattr(it, "level", "") == "error" else None)
        await rig.app.start()
        for point in range(POINTS):
            driver = Driver(rig, ("POST", "/mcp", [], initialize()))
            await driver.task
            id = dict(driver.sent[0]["headers"])[b"mcp-session-id"].decode()
            idle = asyncio.all_tasks()
            driver = Driver(rig, ASKS[kind](id))
            await turns(point)
            if not driver.task.done():
                await asyncio.wait_for(leave(driver), SECONDS)
            if kind.startswith("legacy"):
                rig.gate.set()  # who hangs up takes nothing back here
                rig.step.set()
            await until(lambda idle=idle: traces(rig, idle) == NOTHING)
            rig.gate.clear()
            rig.step.clear()
        again = Driver(rig, modern_ask(call("echo")))
        await again.task
        assert again.sent[0]["status"] == 200
        await rig.app.shut(0)
        await rig.app.close()

    asyncio.run(main())
    assert problems == []


@UVICORN
def test_one_that_leaves_as_it_comes_back_for_an_answer_holds_nothing_up() -> None:
    async def main() -> None:
        rig = Rig(rate=0)
        await rig.app.start()
        driver = Driver(rig, ("POST", "/mcp", [], initialize()))
        await driver.task
        id = dict(driver.sent[0]["headers"])[b"mcp-session-id"].decode()
        held = Driver(rig, legacy_ask(id, call("hold_loudly", **TOKEN)))
        await until(lambda: rig.befell["held"])
        [stream] = rig.sessions[id].streams.values()
        before = set(stream.followers)
        again = Driver(rig, ("GET", "/mcp", [("Mcp-Session-Id", id), ("Last-Event-ID", f"{stream.id}-0")], None))
        await hang_up_on_a_strict_server(again)
        assert stream.followers == before
        rig.gate.set()
        await held.task
        gone = ("GET", "/mcp", [("Mcp-Session-Id", id), ("Last-Event-ID", f"{stream.id}-0")], None)
        await hang_up_on_a_strict_server(Driver(rig, gone))  # the same where nobody writes it any more
        assert rig.app.cluster._followers == {}
        await rig.app.shut(0)
        await rig.app.close()

    asyncio.run(asyncio.wait_for(main(), SECONDS))


# -- the same over real sockets, byte by byte


def cut(server: Served, ask: Ask, at: int) -> None:
    """Send so many bytes of a request and leave."""
    verb, path, headers, message = ask
    body = None if message is None else encode(message)
    data = request_head(server.port, verb, path, headers, body) + (body or b"")
    connection = server.connect()
    connection.write(data[: len(data) * at // 20])
    connection.close()


@BOTH
@pytest.mark.parametrize("kind", ASKS)
def test_a_request_that_is_cut_at_any_byte_harms_nobody(kind: str) -> None:
    with rigged(QUICK) as (rig, server):
        session = Session(server).open()
        for at in range(21):
            if kind == "legacy delete":
                session = Session(server).open()
            cut(server, ASKS[kind](session.id), at)
            server.settle(3)
        assert ask_modern(server, call("echo")).status == 200
        server.look(lambda: (rig.gate.set(), rig.step.set()))
        server.until(lambda: rig.step.set() or not rig.executor.live, "the end of every call")
        server.until(lambda: not any(live.busy for live in rig.sessions.values()), "the end of every connection")
        server.until(lambda: not rig.listens and not rig.app.sse.open, "the end of every listen")


@BOTH
@pytest.mark.parametrize("tool", ["count", "hold_loudly"])
def test_a_modern_response_that_is_cut_at_any_byte_harms_nobody(tool: str) -> None:
    headers: Pairs
    with rigged(QUICK) as (rig, server):
        message = modern(call(tool, {"to": 30} if tool == "count" else {}, **TOKEN))
        headers = modern_headers(message)
        for at in range(0, 400, 20):
            exchange = server.connect().send("POST", "/mcp", headers, encode(message))
            while len(exchange.raw) < at:
                if not exchange.read(SECONDS, 1):
                    break
            exchange.drop()
        server.until(lambda: not rig.executor.live, "the end of every call")
        assert rig.befell["held"] == rig.befell["cancelled"]
        assert ask_modern(server, call("echo")).status == 200
