"""A mounted server that is down: calls fail with the reason, it is restarted, and waits are short."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from longshore import Server, ToolFailed
from longshore.client import Client
from longshore.config import Config, ToolConfig, ToolsetConfig
from longshore.errors import ConnectionLost, ServerError
from longshore.limits import Limits
from longshore.mounting.mount import LOGGED
from longshore.mounting.supervisor import stderr_of
from serving import serve

from .gateway import COMMAND, ERAS, SECONDS, gate_to, hostile, problems, run, through, until, until_async
from .mounted_server import make_server

JSON = "application/json"
theirs = pytest.mark.parametrize("inner", ERAS)
ours = pytest.mark.parametrize("outer", ERAS)


def supervisor(gate: Server, prefix: str = "b") -> Any:
    mount: Any = gate.catalog.toolsets[prefix].toolset
    return mount.supervisor()


@theirs
@ours
async def test_a_server_that_dies_in_a_call_is_restarted(inner: str, outer: str) -> None:
    gate = gate_to(COMMAND, inner)
    told = problems(gate)
    async with through(gate, outer) as client:
        first = (await client.call_tool("b_counts", returns=dict))["pid"]
        with pytest.raises(ToolFailed) as lost:
            await client.call_tool("b_die")
        text = lost.value.what
        assert "the mounted server 'b' was lost while it worked on this: it ended with exit code 3" in text
        assert "whether it was done is not known" in text
        assert "I am going" in text

        async def back() -> bool:
            return (await client.call_tool("b_counts", check=False)).is_error is False

        await until_async("the new one", back)
        assert (await client.call_tool("b_counts", returns=dict))["pid"] != first
        await until("the news", lambda: len(told) == 2)
        assert "warning: mounted b: the server is down" in told[0]
        assert "notice: mounted b: the server is back" in told[1]


@theirs
async def test_a_mounted_server_killed_between_calls_serves_the_next(inner: str) -> None:
    gate = gate_to(COMMAND, inner)
    async with through(gate) as client:
        for _ in range(2):
            pid = (await client.call_tool("b_counts", returns=dict))["pid"]
            os.kill(pid, signal.SIGKILL)
            await until("the loss", lambda: supervisor(gate).state != "ready")
            assert (await client.call_tool("b_add", {"a": 1, "b": 2})).text == "3"


@pytest.mark.parametrize("reconnect", [True, False])
@theirs
async def test_watched_resources_are_watched_again_after_a_restart(inner: str, reconnect: bool) -> None:
    gate = gate_to(Client(COMMAND, era=inner, reconnect=reconnect))
    async with through(gate) as client:
        await client.list_resources()
        async with client.watch(uris=["test://thing"]) as changes:

            async def told() -> Any:
                await client.call_tool("b_touch", check=False)
                try:
                    async with asyncio.timeout(0.1):
                        return await anext(changes)
                except TimeoutError:
                    return None

            assert await until_async("the first change", told)
            os.kill((await client.call_tool("b_counts", returns=dict))["pid"], signal.SIGKILL)
            await until("the loss", lambda: supervisor(gate).state != "ready")
            assert await until_async("a change at the new one", told)


@ours
async def test_a_server_that_cannot_be_started_is_explained(outer: str) -> None:
    gate = gate_to(hostile("crash"))
    told = problems(gate)

    @gate.tool
    def own() -> str:
        """Ours."""
        return "ours"

    async with through(gate, outer) as client:
        assert [tool.name for tool in await client.list_tools()] == ["own"]
        assert (await client.call_tool("own")).text == "ours"
        with pytest.raises(ToolFailed) as absent:
            await client.call_tool("b_anything")
        assert "mounted server 'b' has been down for" in absent.value.what
        assert "exit code 7" in absent.value.what
        assert "no key was given" in absent.value.what
        assert len(told) == 1
        assert "warning: mounted b: the server can't be reached" in told[0]
        status = gate.catalog.toolsets["b"].toolset.status()
        assert status["state"] == "absent"
        assert "exit code 7" in status["problem"]


def test_mcp_rest_and_the_command_line_give_the_same_reason() -> None:
    gate = gate_to(hostile("crash"))
    with serve(gate.asgi(rate=0)) as served:

        async def over_mcp() -> tuple[str, str]:
            async with Client(served.url) as client:
                await client.list_tools()
                return (await client.call_tool("b_anything", check=False)).text, client.absent["b"]

        def over_rest() -> str:
            request = Request(served.url.replace("/mcp", "/tools/b_anything"), b"{}", {"Content-Type": JSON})
            with pytest.raises(HTTPError) as refused, urlopen(request, timeout=SECONDS):
                pass
            return str(json.loads(refused.value.read())["error"]["message"])

        def by_command(*argv: str) -> str:
            command = [sys.executable, "-m", "longshore", *argv]
            return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS).stderr

        called, listed = run(over_mcp)
        commands = by_command("call", served.url, "b_anything"), by_command("list", served.url)
        for text in (called, listed, over_rest(), *commands):
            reason = r"mounted server 'b' has been down for \d+ s: it ended with exit code 7; it is .*\n"
            assert re.search(reason + "it last said:\nno key was given", text), text


async def test_the_tools_of_a_lost_server_stay_listed_and_fail_with_the_reason(tmp_path: Path) -> None:
    script = tmp_path / "once.py"
    behind = Path(__file__).with_name("mounted_server.py")
    script.write_text(
        "import os, runpy, sys\n"
        f"if os.path.exists({str(tmp_path / 'gone')!r}): sys.exit('not today')\n"
        f"runpy.run_path({str(behind)!r}, run_name='__main__')\n"
    )
    gate = gate_to([sys.executable, str(script)])
    async with through(gate) as client:
        pid = (await client.call_tool("b_counts", returns=dict))["pid"]
        (tmp_path / "gone").touch()
        os.kill(pid, signal.SIGTERM)
        await until("its absence", lambda: "exit code 1" in getattr(supervisor(gate).problem, "what", ""))
        assert "b_add" in {tool.name for tool in await client.list_tools(fresh=True)}
        with pytest.raises(ToolFailed, match=r"(?s)has been down for.*not today"):
            await client.call_tool("b_add", {"a": 1, "b": 2})
        with pytest.raises(ServerError, match="has been down for"):
            await client.read_resource("test://thing")
        (tmp_path / "gone").unlink()

        async def back() -> bool:
            return (await client.call_tool("b_add", {"a": 1, "b": 2}, check=False)).text == "3"

        await until_async("its return", back)


@ours
async def test_a_silent_mounted_server_delays_only_the_first_list(outer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longshore.mounting.supervisor.FIRST_LIST_SECONDS", 0.3)
    monkeypatch.setattr("longshore.mounting.supervisor.CALL_SECONDS", 0.3)
    gate = gate_to(hostile("never"))
    gate.mount(make_server(), prefix="good")
    async with through(gate, outer) as client:
        assert "good_add" in {tool.name for tool in await client.list_tools()}
        assert not gate.catalog.pending_mounts.pending  # type: ignore[union-attr]
        assert (await client.call_tool("good_add", {"a": 1, "b": 2})).text == "3"
        with pytest.raises(ToolFailed, match="has not answered yet: it was started"):
            await client.call_tool("b_go")


@ours
async def test_a_call_before_the_first_list_waits_for_its_server(outer: str) -> None:
    gate = gate_to(Client(COMMAND))
    async with through(gate, outer, on_elicit=lambda _: "Bob") as client:
        assert (await client.call_tool("b_greet")).text == "hello Bob"
        with pytest.raises(ServerError, match="no tool 'b_nothing'"):
            await client.call_tool("b_nothing")


async def test_a_list_can_be_cancelled_while_it_waits() -> None:
    gate = gate_to(hostile("never"))
    async with through(gate) as client:
        listing = asyncio.ensure_future(client.list_tools())
        await until("the list", lambda: gate.engine.executor.live)
        listing.cancel()
        await until("its end", lambda: not gate.engine.executor.live)


@pytest.mark.parametrize(
    "config",
    [
        Config(tools={"b_add": ToolConfig(enabled=False)}),
        Config(toolsets={"b": ToolsetConfig(enabled=False)}, tools={"b_echo": ToolConfig(enabled=True)}),
    ],
)
async def test_the_configuration_applies_to_mounted_tools(config: Config) -> None:
    gate = Server("gate")
    gate.config = config
    gate.mount(make_server(), prefix="b")
    async with through(gate) as client:
        with pytest.raises(ServerError, match="no tool 'b_add'"):
            await client.call_tool("b_add", {"a": 1, "b": 2})
        names = {tool.name for tool in await client.list_tools()}
        assert "b_add" not in names
        assert "b_echo" in names
        assert (await client.call_tool("b_echo", {"text": "x"})).text == "x"


async def test_a_configured_time_limit_and_size_hold() -> None:
    gate = Server("gate")
    gate.config = Config(
        toolsets={"b": ToolsetConfig(timeout=0.2)}, tools={"b_big": ToolConfig(result_bytes=100, timeout=20.0)}
    )
    gate.mount(make_server(), prefix="b")
    async with through(gate) as client:
        with pytest.raises(ToolFailed, match=r"within 0\.2 s"):
            await client.call_tool("b_wait")
        assert "result_bytes is 100" in (await client.call_tool("b_big", {"size": 1000}, check=False)).text


@pytest.mark.parametrize("reconnect", [True, False])
async def test_a_mounted_server_that_keeps_dying_is_restarted_with_pauses(reconnect: bool, tmp_path: Path) -> None:
    """Not even a caller who keeps calling has it started more often than once in a while, nor a log filled."""
    starts = tmp_path / "starts"
    gate = gate_to(Client(hostile("dies", str(starts)), era="modern", reconnect=reconnect))
    told = problems(gate)
    async with through(gate) as client:

        async def fourth() -> bool:
            await client.call_tool("b_go", check=False)
            return starts.exists() and len(starts.read_text()) >= 4

        await until_async("four starts", fourth)
        assert len(told) == 3
        assert "the server is down again; until it runs for 10 s, nothing more is logged" in told[2]


async def test_calls_cannot_shorten_the_pause_between_two_starts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """So long a pause that nobody sees its end: however often it is called meanwhile, it is not started."""
    monkeypatch.setattr("longshore.mounting.supervisor.LEAST_PAUSE", 3600.0)
    monkeypatch.setattr("longshore.mounting.supervisor.CALL_SECONDS", 0.05)
    starts = tmp_path / "starts"
    gate = gate_to(hostile("dies", str(starts)), "modern")
    async with through(gate) as client:
        for _ in range(20):
            assert (await client.call_tool("b_go", check=False)).is_error
        await until("its first start", starts.exists)
        assert (await client.call_tool("b_go", check=False)).is_error
        assert len(starts.read_text()) == 1


async def test_the_loss_of_a_stable_server_is_logged_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longshore.mounting.supervisor.STEADY_SECONDS", 0.0)
    monkeypatch.setattr("longshore.mounting.supervisor.LEAST_PAUSE", 0.0)
    gate = gate_to(Client(COMMAND))
    told = problems(gate)
    async with through(gate) as client:
        for n in range(3):
            pid = (await client.call_tool("b_counts", returns=dict))["pid"]
            await until("its stay", lambda: supervisor(gate)._failures == 0)
            os.kill(pid, signal.SIGKILL)
            await until("the news", lambda n=n: len(told) == 2 * n + 2 and "is back" in told[-1])


def test_logged_problems_of_one_server_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = gate_to(make_server())
    told = problems(gate)
    mount: Any = gate.catalog.toolsets["b"].toolset
    for n in range(100):
        mount._warn(f"line {n}")
    assert len(told) == LOGGED + 1
    assert "more problems are not logged" in told[-1]
    monkeypatch.setattr("longshore.mounting.mount.LOGGED_SECONDS", -1.0)
    mount._warn("after a while")
    assert told[-1] == "warning: mounted b: after a while"


async def test_calls_that_wait_for_a_down_server_do_not_block_others() -> None:
    gate = Server("gate", limits=Limits(running=2))
    gate.mount(hostile("never"), prefix="b")

    @gate.tool
    async def own() -> str:
        """Ours."""
        return "ours"

    async with through(gate) as client:
        calls = [asyncio.ensure_future(client.call_tool(f"b_x{n}", check=False)) for n in range(8)]
        await until("the calls", lambda: len(gate.engine.executor.live) == 8)
        assert (await client.call_tool("own")).text == "ours"
        assert not any(call.done() for call in calls)
        for call in calls:
            call.cancel()


async def test_calls_that_wait_for_one_server_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longshore.mounting.supervisor.WAITING", 2)
    gate = gate_to(hostile("never"))
    async with through(gate) as client:
        calls = [asyncio.ensure_future(client.call_tool(f"b_x{n}", check=False)) for n in range(2)]
        await until("the calls", lambda: supervisor(gate)._waiting == 2)
        refused = await client.call_tool("b_one_more", check=False)
        assert "has not answered yet" in refused.text
        assert "2 calls wait for it already" in refused.text
        assert not any(call.done() for call in calls)
        for call in calls:
            call.cancel()


async def test_calls_of_an_absent_server_are_counted_together() -> None:
    """Else whoever makes names up calls as often as they like."""
    gate = gate_to(hostile("crash"))
    with serve(gate.asgi(rate=1, burst=2)) as served:
        async with Client(served.url) as client:
            answers = await asyncio.gather(*(client.call_tool(f"b_x{n}", check=False) for n in range(3)))
            assert sum("too often" in answer.text for answer in answers) == 1


@ours
async def test_everything_can_be_asked_for_before_the_server_is_there(outer: str) -> None:
    """Not only tools: many clients read or fill in what they know from before, without a list."""

    async def first(use: Callable[[Client], Awaitable[Any]]) -> Any:
        gate = gate_to(Client(COMMAND))
        async with through(gate, outer) as client:
            return await use(client)

    assert (await first(lambda client: client.read_resource("test://thing")))[0].text == "it"
    assert (await first(lambda client: client.read_resource("test://parts/two")))[0].text == "part two"
    poem = await first(lambda client: client.get_prompt("b_poem", {"about": "sea"}))
    assert poem.messages[0].content.text == "write about sea"
    assert (await first(lambda client: client.complete("b_poem", "about", "su"))).values == ["sun"]
    for use in (
        lambda client: client.read_resource("test://nothing"),
        lambda client: client.get_prompt("b_nothing"),
        lambda client: client.complete("b_nothing", "about", "s"),
    ):
        with pytest.raises(ServerError, match="nothing"):
            await first(use)


async def test_a_resource_that_is_waited_for_has_its_time_limit() -> None:
    inner = Server("inner")

    @inner.resource("test://slow", timeout=60)
    async def slow() -> str:
        """Take long."""
        await asyncio.sleep(60)
        return "never"

    gate = Server("gate")
    gate.mount(inner, prefix="b", timeout=0.2)
    async with through(gate) as client:
        with pytest.raises(ServerError, match=r"within 0\.2 s"):
            await client.read_resource("test://slow")


def test_headers_are_checked_also_for_the_first_call() -> None:
    """Which comes before anybody knows that they have to be."""
    gate = gate_to(Client(COMMAND))
    with serve(gate.asgi(rate=0)) as served:
        prefix = "io.modelcontextprotocol/"
        meta = {f"{prefix}protocolVersion": "2026-07-28", f"{prefix}clientCapabilities": {}}
        params = {"name": "b_deploy", "arguments": {"region": "us-9"}, "_meta": meta}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2026-07-28",
            "Mcp-Method": "tools/call",
            "Mcp-Name": "b_deploy",
            "Mcp-Param-Region": "eu-1",
        }
        for _ in range(2):
            request = Request(served.url, json.dumps(body).encode(), headers)
            with pytest.raises(HTTPError) as refused, urlopen(request, timeout=SECONDS):
                pass
            assert refused.value.code == 400
            assert json.loads(refused.value.read())["error"]["code"] == -32020


async def test_arguments_that_are_none_are_refused_before_the_server_is_there_too() -> None:
    gate = gate_to(Client(COMMAND))
    async with through(gate) as client:
        for _ in range(2):
            answer = await client.request("tools/call", {"name": "b_add", "arguments": [1]})
            assert answer["isError"] is True
            assert "b_add: invalid arguments\narguments must be an object" in answer["content"][0]["text"]


async def test_a_mounted_server_with_slow_lists_counts_as_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longshore.mounting.supervisor.LIST_SECONDS", 0.2)
    gate = gate_to(hostile("slow"))
    async with through(gate) as client:
        with pytest.raises(ToolFailed, match=r"it took more than 0\.2 s over its lists"):
            await client.call_tool("b_go")


@pytest.mark.parametrize(("seconds", "again"), [(0.0, True), (3600.0, False)])
async def test_a_server_that_reports_no_changes_is_relisted(
    seconds: float, again: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("longshore.mounting.supervisor.RELIST_SECONDS", seconds)
    gate = gate_to(hostile("old"), "modern")
    async with through(gate) as client:
        assert [tool.name for tool in await client.list_tools()] == ["b_go1"]
        if again:
            await until("the next list", lambda: gate.catalog.tools and "b_go1" not in gate.catalog.tools)
        else:
            assert supervisor(gate)._expiry({"tools"}) - supervisor(gate)._listed_at == pytest.approx(seconds)


@pytest.mark.parametrize("how", ["refuses", "tells of nothing", "ends", "never says"])
async def test_a_server_that_does_not_report_declared_changes_is_relisted(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It works all the same: its lists are read again at times."""
    monkeypatch.setattr("longshore.mounting.supervisor.RELIST_SECONDS", 0.05)
    monkeypatch.setattr("longshore.mounting.supervisor.SUBSCRIBE_SECONDS", 0.2)
    gate = gate_to(hostile("untold", how), "modern")
    told = problems(gate)
    async with through(gate) as client:
        first = [tool.name for tool in await client.list_tools()]
        assert (await client.call_tool("b_go")).text == "went"
        await until("the next list", lambda: gate.catalog.tools and [*gate.catalog.tools] != first)
        assert len(told) == 1
        assert "notice: mounted b: it does not report changes, so its lists are read again at times: " in told[0]


@pytest.mark.parametrize(("printed", "kept"), [(999, 999), (1000, 1000), (1001, 1000)])
def test_the_last_words_are_cut(printed: int, kept: int) -> None:
    assert stderr_of(ConnectionLost("gone", said="x" * printed)) == "\nit last said:\n" + "x" * kept
