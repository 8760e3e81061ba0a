"""A peer in the same process."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from longshore import Server
from memory_link import Memory

META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}


def frame(id: int, method: str, **params: Any) -> bytes:
    return msgspec.json.encode({"jsonrpc": "2.0", "id": id, "method": method, "params": {**params, "_meta": META}})


def make() -> tuple[Server, list[str]]:
    app, events = Server("memory"), list[str]()

    @app.tool
    async def hang() -> str:
        events.append("begun")
        try:
            await asyncio.Event().wait()
        finally:
            events.append("stopped")
        return ""

    @app.tool
    def double(n: int) -> int:
        return 2 * n

    return app, events


def test_frames_go_in_and_come_out() -> None:
    async def run() -> None:
        link = Memory(make()[0].engine)
        for n in range(20):
            link.put(frame(n, "tools/call", name="double", arguments={"n": n}))
        async with asyncio.timeout(20):
            answers = [msgspec.json.decode(await link.get()) for _ in range(20)]
        assert {a["id"]: a["result"]["structuredContent"]["result"] for a in answers} == {n: 2 * n for n in range(20)}
        assert link.pending() == 0

    asyncio.run(run())


def test_hanging_up_stops_the_calls_of_this_peer_alone() -> None:
    async def run() -> None:
        app, events = make()
        one, other = Memory(app.engine), Memory(app.engine)
        one.put(frame(1, "tools/call", name="hang"))
        other.put(frame(1, "tools/call", name="hang"))
        async with asyncio.timeout(20):
            while len(events) < 2:
                await asyncio.sleep(0)
            one.close()
            while "stopped" not in events:
                await asyncio.sleep(0)
        assert events == ["begun", "begun", "stopped"]
        assert one.pending() == 0
        assert app.engine.executor.running == 1
        other.close()

    asyncio.run(run())


def test_hanging_up_ends_listens_with_their_result() -> None:
    async def run() -> None:
        link = Memory(make()[0].engine)
        link.put(frame(1, "subscriptions/listen", notifications={"toolsListChanged": True}))
        link.close()
        async with asyncio.timeout(20):
            frames = [msgspec.json.decode(await link.get()) for _ in range(3)]
        assert frames[1]["id"] == 1
        assert frames[1]["result"]["resultType"] == "complete"

    asyncio.run(run())
