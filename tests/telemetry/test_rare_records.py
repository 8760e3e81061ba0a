"""Records of rare events: processes, quotas, the sessions of a dialect, and calls that a call makes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from longshore import Client, Context, Server
from longshore.builtin import make
from longshore.config import load
from longshore.errors import ToolFailed
from longshore.registry.handles import HandleTable
from longshore.telemetry.events import expand
from longshore.telemetry.records import (
    LimitReached,
    ProcessEnded,
    ProcessStarted,
    Record,
    RequestCompleted,
    SessionOpened,
)
from memory_link import Memory

ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


def use(
    app: Server, *calls: tuple[str, dict[str, Any]]
) -> tuple[list[ProcessStarted], list[ProcessEnded], list[Record]]:
    """What is recorded of processes during these calls and the end of the server."""
    records: list[Record] = []
    app.listen(records.append)

    async def run() -> None:
        async with asyncio.timeout(120), Client(app) as client:
            for tool, arguments in calls:
                await client.call_tool(tool, arguments)

    asyncio.run(run())
    started = [each for each in records if isinstance(each, ProcessStarted)]
    ended = [each for each in records if isinstance(each, ProcessEnded)]
    return started, ended, records


def test_a_command_is_recorded_at_its_start_and_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    started, ended, _ = use(make(), ("terminal_run", {"command": "exit 3"}))
    assert [each.kind for each in started] == [each.kind for each in ended] == ["command"]
    assert started[0].pid == ended[0].pid
    assert (started[0].principal, ended[0].code) == ("local", 3)
    assert 0 < ended[0].seconds < 120


def test_a_browser_is_recorded_at_its_start_and_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    started, ended, _ = use(make(), ("browser_open", {}))
    assert [(each.kind, each.pid) for each in started] == [(each.kind, each.pid) for each in ended]
    assert [each.kind for each in started] == ["browser"]


def test_a_quota_that_was_met_is_recorded() -> None:
    app = Server("pages")
    table: HandleTable[object] = HandleTable("page", lambda _: None, quota=1)

    @app.tool
    async def open(ctx: Context) -> str:
        return table.add(ctx.principal.name, object())

    records: list[Record] = []
    app.listen(records.append)

    async def run() -> None:
        async with asyncio.timeout(60), Client(app) as client:
            await client.call_tool("open")
            with pytest.raises(ToolFailed):
                await client.call_tool("open")
        await table.close_all()

    asyncio.run(run())
    assert [(each.limit, each.tool) for each in records if isinstance(each, LimitReached)] == [("quota", "open")]


def test_a_dialects_peer_is_recorded_with_its_dialect_and_session() -> None:
    app = Server("bb")

    @app.tool(run="inline")
    def add(a: int, b: int) -> int:
        return a + b

    app.config = load({"server.dialect": "bb"}, environ={})
    records: list[Any] = []
    app.listen(records.append)

    async def run() -> None:
        link = Memory(app.engine)
        hello = {"protocolVersion": "1.0", "capabilities": {}, "clientInfo": {"name": "old", "version": "2"}}
        for number, (method, params) in enumerate(
            [("initialize", hello), ("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}}), ("no/such", {})]
        ):
            link.put(msgspec.json.encode({"jsonrpc": "2.0", "id": number, "method": method, "params": params}))
            async with asyncio.timeout(60):
                await link.get()

    asyncio.run(run())
    (opened,) = [each for each in records if isinstance(each, SessionOpened)]
    assert (opened.dialect, opened.client) == ("bb", "old 2")
    completed = [each for each in records if isinstance(each, RequestCompleted)]
    assert [(each.method, each.outcome) for each in completed] == [
        ("initialize", "ok"),
        ("tools/call", "ok"),
        ("unknown", "refused"),
    ]
    assert {(each.dialect, each.session) for each in completed} == {("bb", opened.session)}


def test_calls_that_a_call_makes_name_it() -> None:
    """A link whose source is an inner one, as that of calls which a program makes inside of a call."""
    app = Server("inner")

    @app.tool(run="inline")
    def add(a: int, b: int) -> int:
        return a + b

    ring = app.recorder.open_ring(100)

    async def run() -> None:
        link = Memory(app.engine)
        link.source = link.describe().inner("outer-7")
        params = {"name": "add", "arguments": {"a": 1, "b": 2}, "_meta": ENVELOPE}
        link.put(msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}))
        assert b'"3"' in await link.get()

    asyncio.run(run())
    records: list[Any] = [each for event in ring.since(0).events for each in expand(event, 0.0)]
    assert [each.parent for each in records] == ["outer-7"] * 4
