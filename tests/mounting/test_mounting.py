"""Mounted tools, resources and prompts work like our own, over every transport and in every pair of eras."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest

from longshore import Server, Tool, ToolError, ToolFailed
from longshore.client import Client
from longshore.errors import RegistrationError, ServerError
from longshore.telemetry.records import Record, ToolCompleted
from serving import serve
from waiting import is_alive

from .gateway import COMMAND, ERAS, WAYS, behind, gate_to, problems, run, through, until, until_async
from .mounted_server import make_server

every_way = pytest.mark.parametrize("way", WAYS)
theirs = pytest.mark.parametrize("inner", ERAS)
ours = pytest.mark.parametrize("outer", ERAS)


def with_own_tool(gate: Server) -> Server:
    @gate.tool
    def add(a: int) -> str:
        """Our own."""
        return f"ours {a}"

    return gate


@every_way
@theirs
@ours
async def test_everything_is_listed_and_works(way: str, inner: str, outer: str) -> None:
    with behind(way) as target:
        gate = with_own_tool(gate_to(target, inner))
        async with through(gate, outer) as client:
            tools = {tool.name: tool for tool in await client.list_tools()}
            assert next(iter(tools)) == "add"
            sum_ = tools["b_add"]
            assert (sum_.title, sum_.description) == ("Sum", "Add two numbers.")
            assert sum_.annotations == {"readOnlyHint": True}
            assert sum_.input_schema["required"] == ["a", "b"]
            assert sum_.output_schema is not None

            assert await client.call_tool("add", {"a": 1}, returns=str) == "ours 1"
            result = await client.call_tool("b_add", {"a": 1, "b": 2})
            assert result.structured == {"result": 3}
            assert result.text == "3"
            assert (await client.call_tool("b_echo", {"text": "hi"}, meta={"example.org/mark": "m"})).text == "hi m"

            assert {each.uri for each in await client.list_resources()} == {"test://thing"}
            assert {each.uri_template for each in await client.list_templates()} == {"test://parts/{part}"}
            assert (await client.read_resource("test://thing"))[0].text == "it"
            assert (await client.read_resource("test://parts/two"))[0].text == "part two"
            assert [each.name for each in await client.list_prompts()] == ["b_poem"]
            poem = await client.get_prompt("b_poem", {"about": "sea"})
            assert poem.messages[0].content.text == "write about sea"
            assert (await client.complete("b_poem", "about", "se")).values == ["sea", "seal"]


@every_way
@theirs
@ours
async def test_failures_stay_failures(way: str, inner: str, outer: str) -> None:
    with behind(way) as target:
        async with through(gate_to(target, inner), outer) as client:
            with pytest.raises(ToolFailed, match="on purpose"):
                await client.call_tool("b_fail")
            with pytest.raises(ToolFailed, match="invalid arguments"):
                await client.call_tool("b_add", {"a": "x", "b": 2})
            with pytest.raises(ServerError, match="no tool 'b_nothing'"):
                await client.call_tool("b_nothing")
            with pytest.raises(ServerError, match="no resource"):
                await client.read_resource("test://nothing")
            with pytest.raises(ServerError):
                await client.get_prompt("b_poem", {})


@every_way
@theirs
@ours
async def test_progress_and_log_messages_come_through(way: str, inner: str, outer: str) -> None:
    with behind(way) as target:
        steps: list[Any] = []
        logged: list[Any] = []
        gate = gate_to(target, inner)
        async with through(gate, outer, on_log=logged.append, log_level="info") as client:
            await client.list_tools()
            told = await client.call_tool("b_steps", on_progress=lambda *news: steps.append(news))
            assert told.text == "done"
            assert steps[-1] == (3, 3, "step 3")
            await until("the log", lambda: len(logged) == 3)
            assert [(each.level, each.data, each.logger) for each in logged] == [
                ("warning", f"at {n}", "b") for n in (1, 2, 3)
            ]
            assert (await client.call_tool("b_steps")).text == "done"


async def test_log_messages_are_dropped_while_several_callers_are_served() -> None:
    gate = gate_to(make_server(), "legacy")
    mount: Any = gate.catalog.toolsets["b"].toolset
    with serve(gate.asgi(rate=0)) as served:
        begun = asyncio.Event()
        logged: dict[str, list[Any]] = {"ann": [], "bob": []}
        options = {"era": "legacy", "log_level": "info"}
        async with (
            Client(served.url, **options, on_log=logged["ann"].append) as ann,
            Client(served.url, **options, on_log=logged["bob"].append) as bob,
        ):
            waiting = asyncio.ensure_future(ann.call_tool("b_wait", on_progress=lambda *_: begun.set()))
            await begun.wait()
            assert (await bob.call_tool("b_steps")).text == "done"
            waiting.cancel()
            await until("the end of her call", lambda: not mount._calls.requests)
            assert (await bob.call_tool("b_steps")).text == "done"
            await until("the log", lambda: len(logged["bob"]) >= 3)
        assert [each.data for each in logged["bob"]] == ["at 1", "at 2", "at 3"] and not logged["ann"]


@every_way
@theirs
@ours
async def test_a_cancelled_call_is_cancelled_behind_us(way: str, inner: str, outer: str) -> None:
    with behind(way) as target:
        async with through(gate_to(target, inner), outer) as client:
            begun = asyncio.Event()
            call = asyncio.ensure_future(client.call_tool("b_wait", on_progress=lambda *_: begun.set()))
            await begun.wait()
            call.cancel()

            async def cancelled() -> bool:
                return (await client.call_tool("b_counts", returns=dict))["cancelled"] == 1

            await until_async("the cancel", cancelled)


@every_way
@theirs
async def test_our_time_limit_holds_and_ends_the_call_behind_us(way: str, inner: str) -> None:
    with behind(way) as target:
        gate = Server("gate")
        gate.mount(Client(target, era=inner), prefix="b", timeout=0.3)
        async with through(gate) as client:
            await client.list_tools()
            with pytest.raises(ToolFailed, match=r"b_wait did not finish within 0\.3 s"):
                await client.call_tool("b_wait")

            async def cancelled() -> bool:
                return (await client.call_tool("b_counts", returns=dict))["cancelled"] == 1

            await until_async("the cancel", cancelled)


@every_way
@theirs
@ours
async def test_a_new_tool_of_a_mounted_server_notifies_our_clients(way: str, inner: str, outer: str) -> None:
    with behind(way) as target:
        async with through(gate_to(target, inner), outer) as client:
            await client.list_tools()
            async with client.watch(tools=True) as changes:
                await client.call_tool("b_grow")
                async for _ in changes:
                    if "b_grown" in {tool.name for tool in await client.list_tools(fresh=True)}:
                        break
            assert (await client.call_tool("b_grown")).text == "grown"


async def test_calls_are_recorded_like_our_own() -> None:
    gate = gate_to(make_server(), "modern")
    records: list[Record] = []
    gate.listen(records.append)
    async with through(gate) as client:
        await client.call_tool("b_add", {"a": 1, "b": 2})
        await client.call_tool("b_fail", check=False)
    done = [each for each in records if isinstance(each, ToolCompleted)]
    assert [(each.tool, each.outcome) for each in done] == [("b_add", "ok"), ("b_fail", "failed")]


@theirs
async def test_one_server_under_two_names_and_one_behind_two(inner: str) -> None:
    middle = with_own_tool(gate_to(make_server(), inner))
    gate = Server("front")
    told = problems(gate)
    gate.mount(Client(middle, era=inner), prefix="m")
    gate.mount(Client(make_server(), era=inner), prefix="x")
    gate.mount(make_server(), prefix="y")
    async with through(gate) as client:
        names = [tool.name for tool in await client.list_tools()]
        assert [name for name in names if name.endswith("_add")] == ["m_add", "m_b_add", "x_add", "y_add"]
        for name in ("m_b_add", "x_add", "y_add"):
            assert (await client.call_tool(name, {"a": 2, "b": 3})).text == "5"
        assert (await client.call_tool("m_add", {"a": 7})).text == "ours 7"
        assert (await client.read_resource("test://thing"))[0].text == "it"
        assert [each.name for each in await client.list_prompts()] == ["m_b_poem", "x_poem", "y_poem"]
        assert any("test://thing: the name is taken" in text for text in told)
    for each in (middle, gate):
        for holder in each.catalog.toolsets.values():
            await holder.close()


async def test_the_first_mount_owns_a_shared_uri() -> None:
    gate = Server("front")
    slow = Server("slow")

    @slow.resource("test://thing")
    def thing() -> str:
        return "slow"

    gate.mount(slow, prefix="first")
    gate.mount(make_server(), prefix="second")
    second = gate.catalog.toolsets["second"].toolset
    async with through(gate) as client:
        second.supervisor()  # type: ignore[attr-defined]
        await until("the second", lambda: "test://thing" in gate.catalog.resources)
        assert (await client.list_resources())[0].uri == "test://thing"
        assert (await client.read_resource("test://thing"))[0].text == "slow"


async def test_unmounting_removes_the_tools_and_notifies() -> None:
    gate = with_own_tool(gate_to(make_server(), "modern"))
    async with through(gate) as client:
        assert len(await client.list_tools()) > 5
        async with client.watch(tools=True) as changes:
            gate.unmount("b")
            async for _ in changes:
                break
        assert [tool.name for tool in await client.list_tools(fresh=True)] == ["add"]
        with pytest.raises(ServerError, match="no tool"):
            await client.call_tool("b_add", {"a": 1, "b": 2})
        with pytest.raises(ServerError):
            await client.complete("b_poem", "about", "s")
        gate.mount(make_server(), prefix="b")
        assert (await client.call_tool("b_add", {"a": 1, "b": 2})).text == "3"


@theirs
async def test_a_call_in_flight_fails_when_its_server_is_unmounted(inner: str) -> None:
    gate = gate_to(COMMAND, inner)
    async with through(gate) as client:
        pid = (await client.call_tool("b_counts", returns=dict))["pid"]
        begun = asyncio.Event()
        call = asyncio.ensure_future(client.call_tool("b_wait", on_progress=lambda *_: begun.set()))
        await begun.wait()
        gate.unmount("b")
        with pytest.raises(ToolFailed, match="was taken away before it had answered"):
            await call
        await until("its end", lambda: not is_alive(pid))


@every_way
@theirs
@ours
async def test_a_resource_that_is_watched_here_is_watched_there(way: str, inner: str, outer: str) -> None:
    with behind(way) as target:
        async with through(gate_to(target, inner), outer) as client:
            await client.list_resources()
            async with client.watch(uris=["test://thing"]) as changes:

                async def told() -> Any:
                    await client.call_tool("b_touch")  # until the server has been asked to tell, it tells nobody
                    try:
                        async with asyncio.timeout(0.1):
                            return await anext(changes)
                    except TimeoutError:
                        return None

                change = await until_async("the change", told)
                assert change.uri == "test://thing"


async def bare(client: Client, tool: str, arguments: dict[str, Any]) -> Any:
    """A call without the second try that our client makes."""
    return await client._connection.send("tools/call", {"name": tool, "arguments": arguments})


@every_way
@ours
def test_arguments_in_headers_are_checked_here_and_repeated_there(way: str, outer: str) -> None:
    with behind(way) as target:
        gate = gate_to(target, "modern")
        with serve(gate.asgi(rate=0)) as served:

            async def main() -> None:
                async with Client(served.url, era=outer) as client:
                    await client.list_tools()
                    assert (await client.call_tool("b_deploy", {"region": "eu-1", "dry": True})).text == "eu-1 True"
                    assert (await client.call_tool("b_deploy", {"region": "zürich"})).text == "zürich False"
                async with Client(served.url, era=outer) as careless:  # has not listed, so it sends no headers at first
                    if outer == "modern":
                        with pytest.raises(ServerError, match="Mcp-Param-Region is missing"):
                            await bare(careless, "b_deploy", {"region": "eu-1"})
                    assert (await careless.call_tool("b_deploy", {"region": "eu-1"})).text == "eu-1 False"

            run(main)


async def test_a_late_call_does_not_restart_an_unmounted_server() -> None:
    gate = gate_to(COMMAND, "modern")
    async with through(gate) as client:
        await client.list_tools()
        mount: Any = gate.catalog.toolsets["b"].toolset
        gate.unmount("b")
        with pytest.raises(ToolError, match="'b' was unmounted"):
            mount.supervisor()
        await until("its end", lambda: not gate._runtime._closer._closing)


async def test_a_result_says_that_it_is_ours_and_keeps_the_rest() -> None:
    inner = Server("inner")

    def marked(_: Any, __: Any) -> dict[str, Any]:
        return {"content": [], "_meta": {"example.org/mark": 1}}

    inner.add_tool(Tool(name="marked", input_schema={"type": "object"}), marked)
    gate = gate_to(inner, "modern")
    async with through(gate) as client:
        meta = (await client.call_tool("b_marked")).meta
        assert meta["example.org/mark"] == 1
        assert meta["io.modelcontextprotocol/serverInfo"]["name"] == "gate"


async def test_a_mount_while_serving_notifies_the_clients() -> None:
    gate = Server("gate")
    async with through(gate) as client:
        assert await client.list_tools() == []
        async with client.watch(tools=True) as changes:
            gate.mount(make_server(), prefix="late")
            async for _ in changes:
                break
        assert "late_add" in {tool.name for tool in await client.list_tools(fresh=True)}


async def test_a_crash_behind_us_is_a_problem_of_ours() -> None:
    gate, inner = Server("gate"), Server("inner")
    told = problems(gate)

    @inner.tool
    def crash() -> int:
        """Crash."""
        return 1 // 0

    gate.mount(inner, prefix="b")
    async with through(gate) as client:
        with pytest.raises(ToolFailed, match="crash failed unexpectedly"):
            await client.call_tool("b_crash")
        assert any("crash() raised ZeroDivisionError" in each for each in told)


async def test_an_unusable_mount_is_refused_at_registration() -> None:
    gate = Server("gate")
    gate.mount(make_server(), prefix="one")
    for prefix, text in (
        ("", "can't be a prefix"),
        ("a b", "can't be a prefix"),
        ("a.b", "can't be a prefix"),
        ("x" * 25, "can't be a prefix"),
        (None, "can't be a prefix"),
        ("one", "there already"),
        ("one_more", "could give two tools one name"),
    ):
        with pytest.raises(RegistrationError, match=text):
            gate.mount(make_server(), prefix=prefix)  # type: ignore[arg-type]
    with pytest.raises(RegistrationError, match="in itself"):
        gate.mount(gate, prefix="self")
    with pytest.raises(RegistrationError, match="no number of seconds") as wrong:
        gate.mount(make_server(), prefix="two", timeout=-1)
    assert "test_mounting.py" in wrong.value.where  # not in our own files
    with pytest.raises(KeyError, match="no toolset 'three'"):
        gate.unmount("three")
    async with Client(make_server()) as client:
        with pytest.raises(RegistrationError, match="open already"):
            gate.mount(client, prefix="two")


async def test_a_client_is_mounted_once() -> None:
    client = Client(make_server())
    gate = Server("gate")
    gate.mount(client, prefix="one")
    async with through(gate) as caller:
        await caller.list_tools()
        with pytest.raises(RegistrationError, match="open already, or mounted"):
            gate.mount(client, prefix="two")


def test_a_gateway_serves_one_loop_after_the_other() -> None:
    gate = gate_to(make_server(), "legacy")

    async def main() -> None:
        async with Client(gate) as client:
            assert (await client.call_tool("b_add", {"a": 1, "b": 2})).text == "3"

    for _ in range(3):
        run(main)


@pytest.mark.parametrize("target", [{"comand": "x"}, {"command": 3}, {"url": 3}, None, 42, "", "'", [], {}])
def test_a_target_that_leads_nowhere_is_refused_at_once(target: Any) -> None:
    """Else every list of the whole server would fail by it."""
    gate = Server("gate")
    with pytest.raises(RegistrationError, match="give a Server, a Client, a command, a URL or an entry") as wrong:
        gate.mount(target, prefix="x")
    assert "test_mounting.py" in wrong.value.where
    assert not gate.catalog.toolsets


def test_it_can_be_unmounted_when_its_loop_has_closed() -> None:
    gate = gate_to(COMMAND, "legacy")
    told = problems(gate)

    async def main() -> None:
        async with Client(gate) as client:
            assert (await client.call_tool("b_add", {"a": 1, "b": 2})).text == "3"

    run(main)
    gate.unmount("b")
    gate.mount(COMMAND, prefix="b")
    run(main)
    assert told == []


async def test_a_name_freed_by_unmounting_goes_to_the_next_mount() -> None:
    gate, first = Server("gate"), Server("first")
    first.resource("test://thing")(lambda: "first")
    gate.mount(first, prefix="a")
    for prefix in ("b", "c"):
        gate.mount(make_server(prefix), prefix=prefix)
    mounts: Any = {name: holder.toolset for name, holder in gate.catalog.toolsets.items()}
    async with through(gate) as client, client.watch(resources=True) as changes:
        assert (await client.read_resource("test://thing"))[0].text == "first"
        gate.unmount("a")
        await anext(changes)
        assert "test://thing" in {each.uri for each in await client.list_resources(fresh=True)}
        assert (await client.read_resource("test://thing"))[0].text == "it"
        assert gate.catalog.resources["test://thing"].toolset is mounts["b"].holder
        assert "left_out" not in mounts["b"].status()
        assert "test://thing: the name is taken" in mounts["c"].status()["left_out"]


async def test_a_name_freed_by_a_list_change_goes_to_the_next_mount() -> None:
    gate, first = Server("gate"), Server("first")
    first.resource("test://thing")(lambda: "first")
    first.resource("test://other")(lambda: "other")
    gate.mount(first, prefix="a")
    gate.mount(make_server(), prefix="b")
    second = gate.catalog.toolsets["b"]
    async with through(gate) as client:
        assert (await client.read_resource("test://thing"))[0].text == "first"
        del first.catalog.resources["test://thing"]
        first.catalog.changed({"resources"})
        await until(
            "the second's",
            lambda: (thing := gate.catalog.resources.get("test://thing")) and thing.toolset is second,
        )
        assert (await client.read_resource("test://thing"))[0].text == "it"


@pytest.mark.parametrize("turns", range(12))
async def test_unmounting_while_a_list_waits_ends_the_wait(turns: int) -> None:
    """The list is made without it, whatever point it had come to, and nothing that failed is left lying about."""
    left: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, what: left.append(what))
    gate = gate_to(make_server(), "auto")
    gate.mount(make_server(), prefix="c")
    async with through(gate) as client:
        listing = asyncio.ensure_future(client.list_tools())
        for _ in range(turns):
            await asyncio.sleep(0)
        gate.unmount("b")
        assert "c_add" in {tool.name for tool in await listing}
    gc.collect()
    assert left == []
