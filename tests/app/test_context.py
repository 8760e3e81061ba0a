"""What a handler sees of its call: inline, on a thread and as a coroutine, in both eras."""

from __future__ import annotations

import asyncio
import threading
from math import inf
from typing import Any

import pytest

from longshore import Cancelled, Context, Server
from longshore.protocol.revisions import NAMES
from talk import ERAS, NEWEST, NEWEST_LEGACY, PREFIX, WAIT_SECONDS, Client, Refused, call, converse, text, until

RUNS = ("inline", "thread", "async")


def server(body: Any, run: str, **options: Any) -> Server:
    """A server with one tool `work` that does `body(ctx)`, in each way of running."""
    app = Server("t")

    def plain(ctx: Context) -> str:
        return str(body(ctx))

    async def coroutine(ctx: Context) -> str:
        await asyncio.sleep(0)
        return str(body(ctx))

    app.tool(name="work", run=None if run == "async" else run, **options)(coroutine if run == "async" else plain)  # type: ignore[call-overload]
    return app


# -- who calls


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("revision", NAMES)
def test_the_context_knows_the_request_the_client_and_the_principal(run: str, revision: str) -> None:
    seen: dict[str, Any] = {}

    def body(ctx: Context) -> str:
        seen.update(
            id=ctx.request_id,
            name=ctx.name,
            revision=ctx.revision,
            client=ctx.client,
            capabilities=ctx.capabilities,
            principal=ctx.principal.name,
            state=ctx.state,
            trace=ctx.trace,
            own=ctx.meta["example.com/own"],
        )
        ctx.state["x"] = 1
        return "ok"

    async def script(client: Client) -> None:
        client.capabilities = {"roots": {}}
        await client.open()
        meta = {"traceparent": "00-ab-cd-01", "tracestate": "v=1", "example.com/own": [1], "baggage": "b=2"}
        for _ in range(6):  # the later ones come through the fast lane
            seen.clear()
            id = client.send("tools/call", {"name": "work", "arguments": {}}, meta)
            await client.response(id)
            assert seen == {
                "id": id,
                "name": "work",
                "revision": revision,
                "client": {"name": "tests", "version": "1"},
                "capabilities": {"roots": {}},
                "principal": "local",
                "state": {"x": 1},
                "trace": {"traceparent": "00-ab-cd-01", "tracestate": "v=1", "baggage": "b=2"},
                "own": [1],
            }

    converse(server(body, run), script, revision)


def test_a_request_without_meta_has_an_empty_one() -> None:
    assert text(call(server(lambda ctx: (ctx.meta, ctx.trace), "inline"), "work")) == "({}, {})"


def test_the_state_of_a_call_is_its_own() -> None:
    def body(ctx: Context) -> int:
        ctx.state["calls"] = ctx.state.get("calls", 0) + 1
        return int(ctx.state["calls"])

    async def script(client: Client) -> None:
        assert [text(await client.call_tool("work")) for _ in range(3)] == ["1", "1", "1"]

    converse(server(body, "thread"), script)


# -- time


@pytest.mark.parametrize("run", RUNS[1:])
@pytest.mark.parametrize(("timeout", "low", "high"), [(5000, 4900, 5000), (None, 10, 30), (False, inf, inf)])
def test_a_call_knows_how_long_it_has(run: str, timeout: Any, low: float, high: float) -> None:
    seen: list[float] = []

    def body(ctx: Context) -> str:
        import time

        seen.append(ctx.remaining)
        seen.append(ctx.deadline - time.monotonic())
        return "ok"

    assert text(call(server(body, run, timeout=timeout), "work")) == "ok"
    assert len(seen) == 2 and all(low <= left <= high for left in seen), seen


# -- progress and log


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("revision", NAMES)
def test_progress_goes_out_before_the_answer_and_only_grows(run: str, revision: str) -> None:
    def body(ctx: Context) -> str:
        for done in (1, 2, 2, 1.5, 3):
            ctx.progress(done, 3, f"step {done}")
        return "ok"

    async def script(client: Client) -> None:
        for token in ("p", 7):
            id = client.send("tools/call", {"name": "work", "arguments": {}}, {"progressToken": token})
            await client.response(id)
            steps = [note["params"] for note in client.notes]
            assert all(step["progressToken"] == token and step["total"] == 3 for step in steps)
            done = [step["progress"] for step in steps]
            assert done[-1] == 3 and done == sorted(set(done))
            assert all(("message" in step) is (revision != NAMES[0]) for step in steps)
            client.notes.clear()

    converse(server(body, run), script, revision)


@pytest.mark.parametrize("run", RUNS)
def test_without_a_token_there_is_no_progress(run: str) -> None:
    async def script(client: Client) -> None:
        await client.call_tool("work")
        assert client.notes == []

    converse(server(lambda ctx: ctx.progress(1), run), script)


def test_progress_and_log_may_be_awaited_or_not() -> None:
    app = Server("t")

    @app.tool
    async def work(ctx: Context) -> str:
        await ctx.progress(1)
        ctx.progress(2)
        await ctx.info("a")
        ctx.warning("b")
        await ctx.log("error", {"c": 1}, logger="mine")
        ctx.error("d")
        await ctx.resource_changed("a://b")
        return "ok"

    async def script(client: Client) -> None:
        await client.request("tools/call", {"name": "work"}, {"progressToken": 1})
        assert [note["params"].get("progress") for note in client.notes if "progress" in note["params"]] == [1, 2]
        logs = [note["params"] for note in client.notes if note["method"] == "notifications/message"]
        assert logs == [
            {"level": "info", "data": "a"},
            {"level": "warning", "data": "b"},
            {"level": "error", "data": {"c": 1}, "logger": "mine"},
            {"level": "error", "data": "d"},
        ]

    converse(app, script)


def chatter(ctx: Context) -> str:
    for level in ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"):
        ctx.log(level, level)
    ctx.debug("debug")
    return "ok"


@pytest.mark.parametrize("run", RUNS)
def test_a_handshake_client_gets_logs_from_info_or_its_set_level(run: str) -> None:
    async def script(client: Client) -> None:
        await client.call_tool("work")
        assert next(note["params"]["data"] for note in client.notes) == "info"
        for level, count in (("debug", 9), ("critical", 3), ("emergency", 1)):
            client.notes.clear()
            assert await client.request("logging/setLevel", {"level": level}) == {}
            await client.call_tool("work")
            assert len(client.notes) == count
        with pytest.raises(Refused) as caught:
            await client.request("logging/setLevel", {"level": "loud"})
        assert caught.value.code == -32602

    converse(server(chatter, run), script)


@pytest.mark.parametrize("run", RUNS)
def test_a_modern_client_gets_logs_at_the_level_of_each_request(run: str) -> None:
    async def script(client: Client) -> None:
        await client.call_tool("work")
        assert client.notes == []
        for level, count in (("debug", 9), ("error", 4)):
            await client.request("tools/call", {"name": "work"}, {PREFIX + "logLevel": level})
            assert len(client.notes) == count
            client.notes.clear()
        with pytest.raises(Refused) as caught:
            await client.request("tools/call", {"name": "work"}, {PREFIX + "logLevel": "loud"})
        assert caught.value.code == -32602

    converse(server(chatter, run), script, NEWEST)


@pytest.mark.parametrize("run", RUNS)
def test_log_data_may_be_anything_and_never_fails_the_call(run: str) -> None:
    import pydantic

    class User(pydantic.BaseModel):
        name: str

    def body(ctx: Context) -> str:
        ctx.info(User(name="u"))
        ctx.info({"at": object()})
        ctx.info({1, 2} - {2})
        return "ok"

    async def script(client: Client) -> None:
        assert text(await client.call_tool("work")) == "ok"
        model, odd, numbers = [note["params"]["data"] for note in client.notes]
        assert model == {"name": "u"} and numbers == [1]
        assert "object" in str(odd)

    converse(server(body, run), script)


def test_an_unknown_level_is_the_authors_mistake() -> None:
    answer = call(server(lambda ctx: ctx.log("loud", 1), "thread"), "work")
    assert answer["isError"] is True


# -- cancellation


def test_a_cancelled_def_sees_the_cancel_and_gets_no_answer() -> None:
    app = Server("t")
    started, ended = threading.Event(), threading.Event()
    seen: list[Any] = []

    @app.tool
    def work(ctx: Context) -> str:
        started.set()
        try:
            while True:  # ends when `check` raises
                ctx.raise_if_cancelled()
        except Cancelled:
            seen.append(ctx.cancelled)
            raise
        finally:
            ended.set()

    async def script(client: Client) -> None:
        id = client.send("tools/call", {"name": "work"})
        assert await asyncio.to_thread(started.wait, WAIT_SECONDS)
        client.notify("notifications/cancelled", {"requestId": id})
        assert await asyncio.to_thread(ended.wait, WAIT_SECONDS)
        assert seen == [True]
        await client.request("tools/list")  # whatever was to come would have come before this
        assert client.answers == {} and client.notes == []

    converse(app, script)


def test_a_cancelled_coroutine_is_stopped_where_it_waits() -> None:
    app = Server("t")
    seen: list[str] = []

    @app.tool
    async def work(ctx: Context) -> str:
        seen.append("started")
        try:
            await asyncio.Event().wait()
        finally:
            seen.append(f"cancelled: {ctx.cancelled}")
            ctx.progress(1)
            ctx.info("too late")
        return "never"

    async def script(client: Client) -> None:
        id = client.send("tools/call", {"name": "work"}, {"progressToken": 1})
        await until(lambda: seen == ["started"])
        client.notify("notifications/cancelled", {"requestId": id})
        await until(lambda: seen == ["started", "cancelled: True"])
        await client.request("tools/list")
        assert client.answers == {} and client.notes == []

    converse(app, script)


@pytest.mark.parametrize("run", RUNS)
def test_a_call_without_a_cancel_is_not_cancelled(run: str) -> None:
    def body(ctx: Context) -> bool:
        ctx.raise_if_cancelled()
        return ctx.cancelled

    assert text(call(server(body, run), "work")) == "False"


# -- at run time, from threads


def in_thread(action: Any) -> None:
    thread = threading.Thread(target=action)
    thread.start()
    thread.join(WAIT_SECONDS)
    assert not thread.is_alive()


@pytest.mark.parametrize("revision", ERAS)
def test_the_client_is_notified_when_a_thread_adds_or_removes_tools(revision: str) -> None:
    app = Server("t")

    async def names(client: Client) -> list[str]:
        return [tool["name"] for tool in (await client.request("tools/list"))["tools"]]

    async def script(client: Client) -> None:
        if client.modern:
            client.send("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
            await client.heard("notifications/subscriptions/acknowledged")
        assert await names(client) == []
        await asyncio.to_thread(in_thread, lambda: app.tool(name="late")(lambda: "x"))
        await client.heard("notifications/tools/list_changed")
        assert await names(client) == ["late"]
        assert text(await client.call_tool("late")) == "x"
        await asyncio.to_thread(in_thread, lambda: app.remove_tool("late"))
        await client.heard("notifications/tools/list_changed")
        assert await names(client) == []
        with pytest.raises(Refused):
            await client.call_tool("late")

    converse(app, script, revision)


def test_many_threads_may_declare_at_once() -> None:
    app = Server("t")

    async def script(client: Client) -> None:
        def declare(thread: int) -> None:
            for n in range(25):
                app.tool(name=f"t{thread}_{n}")(lambda: "x")
                app.resource(f"a{thread}://{n}/{{x}}")(lambda x: x)

        jobs = [asyncio.to_thread(declare, thread) for thread in range(8)]
        gathered = asyncio.gather(*jobs)
        while not gathered.done():
            await client.request("tools/list")
            with pytest.raises(Refused):
                await client.request("resources/read", {"uri": "none://x"})
        await gathered
        await client.request("tools/list")
        assert len((await client.request("tools/list"))["tools"]) == 200

    converse(app, script)


def test_resource_changed_may_be_called_from_any_thread() -> None:
    app = Server("t")
    app.resource("a://b")(lambda: "x")

    async def script(client: Client) -> None:
        await client.request("resources/subscribe", {"uri": "a://b"})
        await asyncio.to_thread(in_thread, lambda: app.resource_changed("a://b"))
        assert (await client.heard("notifications/resources/updated"))["params"] == {"uri": "a://b"}

    converse(app, script)


def test_clients_are_notified_of_prompts_added_later() -> None:
    app = Server("t")
    app.prompt(name="first")(lambda: "x")

    async def script(client: Client) -> None:
        app.prompt(name="second")(lambda: "x")
        await client.heard("notifications/prompts/list_changed")
        assert len((await client.request("prompts/list"))["prompts"]) == 2

    converse(app, script, NEWEST_LEGACY)


def test_a_server_may_be_talked_to_from_one_event_loop_after_another() -> None:
    app = server(lambda ctx: "ok", "thread")

    @app.tool(timeout=0.05)
    async def slow() -> None:
        await asyncio.Event().wait()

    for _ in range(3):
        assert text(call(app, "work")) == "ok"
        assert "did not finish" in text(call(app, "slow"))


def test_a_handler_can_not_change_the_client_info_of_other_requests() -> None:
    """One record stands for all requests of a client that says the same of itself in each."""
    app = Server("careless")

    @app.tool
    async def take(ctx: Context) -> str:
        """Change what it was given."""
        name = ctx.client.pop("name", "gone")
        declared = ctx.capabilities
        had = sorted(declared["elicitation"])
        declared["elicitation"].clear()
        return f"{name} {had}"

    async def main() -> None:
        from longshore.client import Client as OurClient

        for era in ("modern", "legacy"):
            async with OurClient(app, era=era, on_elicit=lambda _: True) as client:
                first = (await client.call_tool("take")).text
                assert first == "longshore ['form', 'url']"
                assert (await client.call_tool("take")).text == first

    asyncio.run(main())
