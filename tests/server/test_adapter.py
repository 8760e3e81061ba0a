"""Dialects in front of the engine, by a dialect that uses every difference that one can have."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine
from typing import Any

import msgspec
import pytest

from longshore import Context, Limits, Server, Toolset, tool
from longshore.protocol.dialect import Dialect, DocumentTool, ToolFailure
from longshore.protocol.revisions import R2411, R2503, R2511, Revision
from longshore.server.engine import Engine
from longshore.server.policy import Policy
from longshore.wire.messages import Fault
from memory_link import Memory

SECONDS = 60.0
ENVELOPE = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
Json = dict[str, Any]


class Harbour(Dialect, frozen=True, kw_only=True):
    def tool(self, listed: Json, available: bool) -> Json:
        return {"name": listed["name"], "available": available}

    def result(self, tool: str, arguments: Json, result: Json) -> Json:
        return {"tool": tool, "result": result["content"][0]["text"]}

    def failed(self, failure: ToolFailure) -> Fault:
        return Fault(-1, failure.kind, {"tool": failure.tool, "text": failure.text})


OPEN = Harbour(
    name="harbour",
    before_handshake=Revision("harbour", R2411, plain=False),
    answers={"ping": {"status": "ok"}},
    batches=True,
    unsolicited=False,
    in_order=True,
    lists_unavailable=True,
    cancelled=Fault(-2, "cancelled"),
)
AFTER_HANDSHAKE = Harbour(name="harbour", revisions={"2025-03-26": Revision("2025-03-26", R2503, plain=False)})


class Crane(Toolset):
    def available(self) -> str:
        return "install a crane"

    @tool
    def lift(self) -> str:
        return ""


class Peer:
    """A peer in this process, of a server that speaks a dialect."""

    def __init__(self, dialect: Dialect, limits: Limits | None = None) -> None:
        self.go = asyncio.Event()
        self.began: list[str] = []
        """The calls that were run."""
        self.app = app = Server("t", limits=limits)

        @app.tool(run="inline")
        def echo(text: str) -> str:
            self.began.append(text)
            return text

        @app.tool
        async def wait(ctx: Context) -> str:
            self.began.append("wait")
            await ctx.progress(1, 2)
            await self.go.wait()
            return "waited"

        @app.tool(run="inline")
        def fail() -> str:
            raise ValueError("secret")

        app.add_toolset(Crane())
        policy = Policy(app.catalog, limits, None)
        info = {"name": "t", "version": "1"}
        self.engine = Engine(app.catalog, info, policy, limits=policy.limits, recorder=app.recorder, dialect=dialect)
        self.link = Memory(self.engine)
        self.engine.executor.adopt_loop(asyncio.get_running_loop())

    def send(self, *messages: Any) -> None:
        for message in messages:
            self.link.put(json.dumps(message).encode())

    async def get(self) -> Any:
        return json.loads(await asyncio.wait_for(self.link.get(), SECONDS))

    async def ask(self, message: Json) -> Any:
        self.send(message)
        return await self.get()


def request(id: int | str, method: str, **params: Any) -> Json:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def call(id: int | str, tool: str, **arguments: Any) -> Json:
    return request(id, "tools/call", name=tool, arguments=arguments)


def run(body: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(body, SECONDS))


def test_a_dialect_without_a_handshake_serves_at_once() -> None:
    async def body() -> None:
        peer = Peer(OPEN)
        assert (await peer.ask(request(1, "ping")))["result"] == {"status": "ok"}
        assert (await peer.ask(call(2, "echo", text="x")))["result"] == {"tool": "echo", "result": "x"}
        listed = (await peer.ask(request(3, "tools/list")))["result"]["tools"]
        assert listed[0] == {"name": "echo", "available": True}
        assert listed[-1] == {"name": "lift", "available": False}
        assert "install a crane" in (await peer.ask(call(4, "lift")))["error"]["data"]["text"]

    run(body())


def test_a_result_has_the_fields_of_the_revision_that_the_dialect_names() -> None:
    """2025-11-25 has no `resultType`, whatever else the dialect does to results."""

    async def body() -> None:
        peer = Peer(Dialect(name="pier", before_handshake=Revision("pier", R2511, plain=False)))
        answer = await peer.ask(call(1, "echo", text="x"))
        assert answer["result"] == {"content": [{"type": "text", "text": "x"}]}

    run(body())


def test_failures_are_rendered_by_the_dialect_with_their_kind() -> None:
    async def body() -> None:
        peer = Peer(OPEN)
        kinds = {"unknown_tool": call(1, "nope"), "invalid_arguments": call(2, "echo"), "execution": call(3, "fail")}
        for kind, message in kinds.items():
            error = (await peer.ask(message))["error"]
            assert (error["code"], error["message"]) == (-1, kind)
            assert error["data"]["tool"] == message["params"]["name"]
            assert "secret" not in error["data"]["text"]

    run(body())


def test_a_result_over_the_limit_is_a_failure_of_the_dialect() -> None:
    async def body() -> None:
        peer = Peer(OPEN, Limits(frame_bytes=1000))
        assert (await peer.ask(call(1, "echo", text="x" * 940)))["error"]["message"] == "too_large"

    run(body())


def test_answers_go_out_in_the_order_of_the_requests() -> None:
    async def body() -> None:
        peer = Peer(OPEN)
        peer.send(call(1, "wait"), call(2, "echo", text="x"), call(3, "nope"), request(4, "ping"), [request(5, "ping")])
        await asyncio.sleep(0)
        assert peer.link.pending() == 0
        peer.go.set()
        answers = [await peer.get() for _ in range(5)]
        assert [each["id"] for each in answers[:4]] == [1, 2, 3, 4]
        assert [each["id"] for each in answers[4]] == [5]

    run(body())


def cancelled(id: int) -> Json:
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}


def test_the_requests_of_a_dialect_in_order_run_one_after_the_other() -> None:
    async def body() -> None:
        peer = Peer(OPEN)
        peer.send(call(1, "wait"), call(2, "echo", text="a"), [call(3, "echo", text="b"), call(4, "echo", text="c")])
        peer.send(call(5, "echo", text="d"))
        await asyncio.sleep(0)
        assert peer.began == ["wait"]
        peer.go.set()
        assert [(await peer.get())["id"] for _ in range(2)] == [1, 2]
        assert [each["id"] for each in await peer.get()] == [3, 4]
        assert (await peer.get())["id"] == 5
        assert peer.began == ["wait", "a", "b", "c", "d"]

    run(body())


def test_the_requests_of_a_batch_run_one_after_the_other_and_are_answered_in_order() -> None:
    async def body() -> None:
        peer = Peer(OPEN)
        peer.send([call(1, "wait"), 7, call(2, "echo", text="a")])
        await asyncio.sleep(0)
        assert (peer.began, peer.link.pending()) == (["wait"], 0)
        peer.go.set()
        assert [each["id"] for each in await peer.get()] == [1, None, 2]

    run(body())


def test_requests_that_wait_may_share_an_id() -> None:
    async def body() -> None:
        peer = Peer(OPEN)
        peer.send(call(1, "wait"), call(1, "echo", text="a"), call(1, "echo", text="b"))
        peer.go.set()
        assert [(await peer.get())["result"]["result"] for _ in range(3)] == ["waited", "a", "b"]

    run(body())


def test_a_request_that_is_cancelled_before_its_turn_is_answered_and_never_runs() -> None:
    async def body() -> None:
        peer = Peer(OPEN)
        peer.send(call(1, "wait"), call(2, "echo", text="a"), [call(3, "echo", text="b")], call(4, "echo", text="c"))
        peer.send(cancelled(2), cancelled(3), cancelled(99))
        peer.go.set()
        assert (await peer.get())["id"] == 1
        refusal = {"code": -2, "message": "cancelled"}
        assert await peer.get() == {"jsonrpc": "2.0", "id": 2, "error": refusal}
        assert await peer.get() == [{"jsonrpc": "2.0", "id": 3, "error": refusal}]
        assert (await peer.get())["id"] == 4
        assert peer.began == ["wait", "c"]

    run(body())


def test_what_waits_is_dropped_with_its_link() -> None:
    async def body() -> None:
        peer = Peer(OPEN)
        peer.send(call(1, "wait"), call(2, "echo", text="a"))
        await asyncio.sleep(0)
        peer.link.close()
        assert not peer.link.session.is_busy
        assert peer.began == ["wait"]

    run(body())


def test_what_waits_when_calls_are_stopped_is_answered_and_never_runs() -> None:
    async def body() -> None:
        peer = Peer(OPEN)
        peer.send(call(1, "wait"), call(2, "echo", text="a"))
        await asyncio.sleep(0)
        peer.engine.executor.stop_all("the end")
        assert (await peer.get())["error"]["data"]["text"] == "wait was stopped: the end"
        assert (await peer.get())["error"]["data"] == {"tool": "echo", "text": "it was not run: the end"}
        assert peer.began == ["wait"]

    run(body())


def test_nothing_that_waits_begins_while_the_peer_does_not_read() -> None:
    async def body() -> None:
        peer = Peer(OPEN)
        peer.send(call(1, "wait"), call(2, "echo", text="a"))
        await asyncio.sleep(0)
        peer.link.congested = True
        peer.go.set()
        assert (await peer.get())["id"] == 1
        peer.send(request(3, "ping"))
        assert peer.began == ["wait"]
        peer.link.congested = False
        peer.link.session.proceed()
        assert [(await peer.get())["id"] for _ in range(2)] == [2, 3]

    run(body())


def test_thousands_of_requests_may_wait() -> None:
    async def body() -> None:
        peer = Peer(OPEN)
        peer.send(call(0, "wait"), *(call(id, "fail") for id in range(1, 5000)))
        peer.go.set()
        assert [(await peer.get())["id"] for _ in range(5000)] == [*range(5000)]

    run(body())


@pytest.mark.parametrize(
    "frame", [b"garbage", b"[]", b"[" + b"1," * 200 + b"1]", b'{"jsonrpc":"1.0","id":2,"method":"x"}']
)
def test_a_refusal_waits_for_earlier_answers_and_holds_no_later_one_up(frame: bytes) -> None:
    async def body() -> None:
        peer = Peer(OPEN)
        for turn in (1, 2):
            peer.send(call(turn, "wait"))
            peer.link.put(frame)
            peer.send(request(3, "ping"))
            await asyncio.sleep(0)
            assert peer.link.pending() == 0 or turn == 2
            peer.go.set()
            assert (await peer.get())["id"] == turn
            assert (await peer.get())["error"]["code"] in (-32700, -32600)
            assert (await peer.get())["result"] == {"status": "ok"}

    run(body())


def test_tools_that_are_off_are_listed_as_unavailable_and_named_in_the_refusal() -> None:
    async def body() -> None:
        peer = Peer(msgspec.structs.replace(OPEN, tools={"wait": DocumentTool(), "echo": DocumentTool()}))
        peer.app.catalog.changed = peer.engine.changed
        peer.engine.policy.set_enabled("echo", False)
        await asyncio.sleep(0)
        listed = (await peer.ask(request(1, "tools/list")))["result"]["tools"]
        assert listed == [{"name": "wait", "available": True}, {"name": "echo", "available": False}]
        assert "it is off" in (await peer.ask(call(2, "echo", text="x")))["error"]["data"]["text"]
        assert (await peer.ask(call(3, "fail")))["error"]["message"] == "execution"

    run(body())


def test_a_handshake_after_bare_requests_gets_mcp_from_then_on() -> None:
    async def body() -> None:
        peer = Peer(OPEN)
        assert (await peer.ask(request(1, "ping")))["result"] == {"status": "ok"}
        for params in ({}, {"protocolVersion": []}):
            assert (await peer.ask(request(2, "initialize", **params)))["error"]["code"] == -32602
        hello = {"protocolVersion": "harbour", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        assert (await peer.ask(request(3, "initialize", **hello)))["result"]["protocolVersion"] == "2025-11-25"
        assert (await peer.ask(request(4, "ping")))["result"] == {}
        assert (await peer.ask(call(5, "fail")))["result"]["isError"] is True

    run(body())


def test_a_cancelled_request_gets_the_answer_that_the_dialect_has_for_it() -> None:
    async def body() -> None:
        peer = Peer(OPEN)
        peer.send(call(1, "wait"), call(2, "echo", text="x"))
        peer.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
        assert (await peer.get())["error"] == {"code": -2, "message": "cancelled"}
        assert (await peer.get())["id"] == 2

    run(body())


def test_progress_is_not_sent_where_nothing_unasked_is() -> None:
    async def body() -> None:
        peer = Peer(OPEN)
        peer.send(request(1, "tools/call", name="wait", arguments={}, _meta={"progressToken": 1}))
        peer.go.set()
        assert (await peer.get())["result"] == {"tool": "wait", "result": "waited"}

    run(body())


@pytest.mark.parametrize("dialect", [OPEN, AFTER_HANDSHAKE], ids=["without a handshake", "after one"])
def test_a_request_with_the_envelope_gets_mcp(dialect: Dialect) -> None:
    async def body() -> None:
        peer = Peer(dialect)
        answer = await peer.ask(request(1, "tools/call", name="fail", arguments={}, _meta=ENVELOPE))
        assert answer["result"]["isError"] is True

    run(body())


@pytest.mark.parametrize(("version", "speaks"), [("2025-03-26", True), ("2025-06-18", False), ("2024-11-05", False)])
def test_a_dialect_of_some_handshakes_leaves_the_others_to_mcp(version: str, speaks: bool) -> None:
    async def body() -> None:
        peer = Peer(AFTER_HANDSHAKE)
        assert (await peer.ask(call(0, "echo", text="x")))["error"]["code"] == -32602
        assert (await peer.ask({"jsonrpc": "1.0", "id": 0, "method": "x"}))["error"]["code"] == -32600
        hello = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        assert (await peer.ask(request(1, "initialize", **hello)))["result"]["protocolVersion"] == version
        result = (await peer.ask(call(2, "echo", text="x")))["result"]
        assert (result == {"tool": "echo", "result": "x"}) is speaks
        peer.send(call(3, "wait"))
        peer.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 3}})
        assert (await peer.ask(request(4, "ping")))["id"] == 4

    run(body())


def test_a_failure_that_the_dialect_does_not_render_is_that_of_mcp() -> None:
    async def body() -> None:
        plain = Dialect(name="plain", before_handshake=OPEN.before_handshake)
        peer = Peer(plain)
        assert (await peer.ask(call(1, "nope")))["error"]["code"] == -32602
        assert (await peer.ask(call(2, "echo")))["result"]["isError"] is True

    run(body())


def test_a_failure_of_the_dialect_itself_is_answered_and_the_next_frame_is_handled() -> None:
    class Broken(Dialect, frozen=True, kw_only=True):
        def result(self, tool: str, arguments: Json, result: Json) -> Json:
            raise KeyError(tool)

    async def body() -> None:
        broken = Broken(**msgspec.structs.asdict(OPEN))
        peer = Peer(broken)
        assert (await peer.ask(call(1, "echo", text="x")))["error"]["code"] == -32603
        assert (await peer.ask(request(2, "ping")))["result"] == {"status": "ok"}

    run(body())
