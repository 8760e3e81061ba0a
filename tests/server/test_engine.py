"""The engine with a peer in this process: what a transcript can't show, for it needs a hand on handler or clock."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Coroutine
from typing import Any

import pytest

from longshore import Context, Limits, Server
from memory_link import Memory

SECONDS = 60.0
ENVELOPE = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}


class Peer:
    """A client of either era."""

    def __init__(self, app: Server, *, modern: bool = False) -> None:
        self.link = Memory(app.engine)
        self.modern = modern
        if not modern:
            self.link.put(
                b'{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-11-25",'
                b'"capabilities":{},"clientInfo":{"name":"t","version":"0"}}}'
            )
            self.link._frames.get_nowait()
            self.link.put(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')

    def send(self, method: str, id: int | str | None = None, **params: Any) -> None:
        if self.modern and id is not None:
            params = {**params, "_meta": {**ENVELOPE, **params.get("_meta", {})}}
        message = {"jsonrpc": "2.0", "method": method, "params": params} | ({} if id is None else {"id": id})
        self.link.put(json.dumps(message).encode())

    def call(self, id: int | str, name: str, _meta: dict[str, Any] | None = None, **arguments: Any) -> None:
        extra = {} if _meta is None else {"_meta": _meta}
        self.send("tools/call", id, name=name, arguments=arguments, **extra)

    async def get(self) -> dict[str, Any]:
        message: dict[str, Any] = json.loads(await asyncio.wait_for(self.link.get(), SECONDS))
        return message

    async def turn(self) -> list[dict[str, Any]]:
        """What has come after the loop went round a few times."""
        for _ in range(10):
            await asyncio.sleep(0)
        return [await self.get() for _ in range(self.link.pending())]


def run(body: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(body, SECONDS))


def text_of(message: dict[str, Any]) -> str:
    text: str = message["result"]["content"][0]["text"]
    return text


@pytest.mark.parametrize("modern", [False, True], ids=["handshake", "modern"])
def test_notifications_of_a_thread_are_not_sent_after_a_cancel(modern: bool) -> None:
    async def body() -> None:
        app, said, go = Server("t"), threading.Event(), threading.Event()

        @app.tool
        def talk(ctx: Context) -> str:
            ctx.error("said in time, but not sent")
            ctx.progress(1)
            said.set()
            go.wait(SECONDS)
            ctx.error("said too late")
            return "x"

        peer = Peer(app, modern=modern)
        peer.call(1, "talk", {"progressToken": 1, "io.modelcontextprotocol/logLevel": "debug"})
        await asyncio.sleep(0)
        assert said.wait(SECONDS)  # the loop does not turn meanwhile, so nothing has gone out
        peer.send("notifications/cancelled", requestId=1)
        go.set()
        while app.engine.executor.abandoned:
            await asyncio.sleep(0.001)
        assert await peer.turn() == []

    run(body())


def test_a_body_that_continues_after_its_cancel_sends_nothing() -> None:
    async def body() -> None:
        app, gate = Server("t"), asyncio.Event()

        @app.tool
        async def stubborn(ctx: Context) -> str:
            try:
                await gate.wait()
            except asyncio.CancelledError:
                ctx.error("still here")
                assert ctx.cancelled
            return "too late"

        peer = Peer(app)
        peer.call(1, "stubborn")
        await peer.turn()
        peer.send("notifications/cancelled", requestId=1)
        assert await peer.turn() == []
        assert not app.engine.executor.cancelled_tasks

    run(body())


def test_two_links_with_the_same_ids_do_not_meet() -> None:
    async def body() -> None:
        app, gates = Server("t"), {"a": asyncio.Event(), "b": asyncio.Event()}

        @app.tool
        async def hold(key: str) -> str:
            await gates[key].wait()
            return key

        one, two = Peer(app), Peer(app, modern=True)
        one.call(1, "hold", key="a")
        two.call(1, "hold", key="b")
        await one.turn()
        one.send("notifications/cancelled", requestId=1)
        gates["a"].set()
        gates["b"].set()
        assert text_of(await two.get()) == "b"
        assert await one.turn() == [] and await two.turn() == []

    run(body())


def test_listens_that_we_end_get_their_result_and_then_a_cancel() -> None:
    async def body() -> None:
        app = Server("t")
        peer = Peer(app, modern=True)
        peer.send("subscriptions/listen", 0, notifications={"toolsListChanged": True})
        assert (await peer.get())["method"] == "notifications/subscriptions/acknowledged"
        peer.link.close()
        result, cancelled = await peer.turn()
        assert result["id"] == 0
        assert result["result"]["resultType"] == "complete"
        assert result["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == 0
        assert cancelled == {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 0}}
        app.tool(name="late", run="inline")(lambda: "x")
        assert await peer.turn() == []
        assert not peer.link.session.rows

    run(body())


def test_listens_and_watched_resources_are_bounded() -> None:
    async def body() -> None:
        app = Server("t", limits=Limits(listens=2, subscriptions=3))
        app.resource("r://{x}")(lambda x: x)
        peer = Peer(app, modern=True)
        for id in (1, 2):
            peer.send("subscriptions/listen", id, notifications={"resourceSubscriptions": ["r://a"]})
            assert "method" in await peer.get()
        peer.send("subscriptions/listen", 3, notifications={})
        assert (await peer.get())["error"]["code"] == -32602
        peer.send("notifications/cancelled", requestId=1)
        peer.send("subscriptions/listen", 3, notifications={"resourceSubscriptions": ["r://a", "r://b", "r://c"]})
        assert (await peer.get())["error"]["code"] == -32602
        peer.send("subscriptions/listen", 3, notifications={"resourceSubscriptions": ["r://a", "r://b"]})
        assert (await peer.get())["method"] == "notifications/subscriptions/acknowledged"
        old = Peer(app)
        codes = []
        for number, name in enumerate("abcda"):  # the last one is watched already
            old.send("resources/subscribe", number, uri=f"r://{name}")
            codes.append((await old.get()).get("error", {}).get("code"))
        assert codes == [None, None, None, -32602, None]

    run(body())


def test_every_link_and_each_listen_is_notified_of_a_changed_list_once() -> None:
    async def body() -> None:
        app = Server("t")
        old, other, new, deaf = Peer(app), Peer(app), Peer(app, modern=True), Peer(app, modern=True)
        for id in ("a", "b"):
            new.send("subscriptions/listen", id, notifications={"toolsListChanged": True})
        await new.turn()
        app.tool(name="late", run="inline")(lambda: "x")
        for peer in (old, other):
            assert [m["method"] for m in await peer.turn()] == ["notifications/tools/list_changed"]
        heard = [m["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] for m in await new.turn()]
        assert sorted(heard) == ["a", "b"]
        assert await deaf.turn() == []
        app.remove_tool("late")
        assert len(await old.turn()) == 1

    run(body())


@pytest.mark.parametrize("kind", ["async", "thread"])
def test_a_tool_that_takes_too_long_is_stopped_and_answered_once(kind: str) -> None:
    async def body() -> None:
        app, stop = Server("t"), threading.Event()

        @app.tool(name="async", timeout=0.02)
        async def slow() -> str:
            await asyncio.sleep(60)
            return "x"

        @app.tool(name="thread", timeout=0.02)
        def stuck(ctx: Context) -> str:
            while not ctx.cancelled:
                stop.wait(0.001)
            return "too late"

        peer = Peer(app)
        peer.call(1, kind)
        answer = await peer.get()
        assert answer["result"]["isError"] is True and "0.02 s" in text_of(answer)
        while app.engine.executor.abandoned or app.engine.executor.cancelled_tasks:
            await asyncio.sleep(0.001)
        assert await peer.turn() == []
        assert app.engine.executor.running == 0 and not peer.link.session.rows

    run(body())


def test_a_tool_without_a_timeout_has_none_and_a_resource_has_one_too() -> None:
    async def body() -> None:
        app = Server("t")

        @app.tool(timeout=False)
        async def forever(ctx: Context) -> bool:
            return ctx.remaining == float("inf")

        @app.resource("slow://", timeout=0.02)
        async def slow() -> str:
            await asyncio.sleep(60)
            return "x"

        peer = Peer(app)
        peer.call(1, "forever")
        assert text_of(await peer.get()) == "true"
        peer.send("resources/read", 2, uri="slow://")
        assert (await peer.get())["error"]["code"] == -32603

    run(body())


@pytest.mark.parametrize("run_as", ["inline", "thread"])
@pytest.mark.parametrize(("over", "fits"), [(-1, True), (0, True), (1, False)])
def test_a_result_over_the_frame_limit_is_an_error_that_says_so(run_as: Any, over: int, fits: bool) -> None:
    async def body() -> None:
        app = Server("t", limits=Limits(frame_bytes=4096))
        frame = len(b'{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":""}]}}')
        app.tool(name="big", run=run_as)(lambda: "x" * (4096 - frame + over))
        peer = Peer(app)
        for _ in range(7):  # also when it has joined the fast lane
            peer.call(1, "big")
            answer = await peer.get()
            if fits:
                assert text_of(answer)[:3] == "xxx" and len(text_of(answer)) == 4096 - frame + over
            else:
                assert answer["result"]["isError"] is True and "4,09" in text_of(answer)

    run(body())


def test_no_call_starts_for_a_congested_peer_and_its_notifications_are_bounded() -> None:
    async def body() -> None:
        app, gate = Server("t", limits=Limits(notes=10)), asyncio.Event()

        @app.tool
        async def chatter(ctx: Context) -> str:
            await gate.wait()
            for n in range(1000):
                ctx.info(n)
                ctx.progress(n)
            return "done"

        peer = Peer(app)
        peer.call(1, "chatter", {"progressToken": "p"})
        await peer.turn()
        peer.link.congested = True
        peer.call(2, "chatter")
        await peer.turn()
        assert (app.engine.executor.running, app.engine.executor.queued) == (1, 1)
        gate.set()
        *notes, answer = await peer.turn()
        told, *logs = [note["params"]["data"] for note in notes if note["method"] == "notifications/message"]
        assert told.startswith("990 earlier log messages")
        assert logs == list(range(990, 1000))
        assert [n["params"]["progress"] for n in notes if n["method"] == "notifications/progress"] == [999]
        assert text_of(answer) == "done" and answer["id"] == 1
        peer.link.congested = False
        app.engine.executor.start_queued()
        assert (await peer.turn())[-1]["id"] == 2

    run(body())


def test_a_handler_that_waits_for_the_client_holds_no_place_but_not_any_number_waits() -> None:
    async def body() -> None:
        app = Server("t", limits=Limits(running=1, parked=2))

        @app.tool(replay=True)
        async def ask(ctx: Context) -> str:
            return str((await ctx.elicit("Sure?", key="ok")).value)

        peer = Peer(app)
        peer.send("initialize", "again", protocolVersion="2025-11-25", capabilities={"elicitation": {}}, clientInfo={})
        await peer.get()
        questions = []
        for id in range(1, 4):
            peer.call(id, "ask")
            questions.append((await peer.get())["id"])
        assert app.engine.executor.running == 0
        peer.call(4, "ask")
        assert text_of(await peer.get()).startswith("the server is busy: 0 calls are running and 3 wait")
        for id, question in enumerate(questions, 1):
            answer = {"jsonrpc": "2.0", "id": question, "result": {"action": "accept", "content": {"ok": True}}}
            peer.link.put(json.dumps(answer).encode())
            assert (await peer.get())["id"] == id
        assert not peer.link.session.asked and not peer.link.session.rows

    run(body())


def test_a_peer_that_hangs_up_ends_its_calls_and_only_its() -> None:
    async def body() -> None:
        app, gate = Server("t"), asyncio.Event()

        @app.tool
        async def hold() -> str:
            await gate.wait()
            return "x"

        one, two = Peer(app), Peer(app)
        one.call(1, "hold")
        two.call(1, "hold")
        await one.turn()
        one.link.close()
        gate.set()
        assert text_of(await two.get()) == "x"
        assert await one.turn() == []
        assert not app.engine.executor.live

    run(body())
