"""The official client over HTTP: everything that it does over stdio, and features of HTTP.

All tests of the other modules here that don't depend on pipes are run again, over streamable HTTP in both eras, and all
of this twice: on uvicorn as anybody runs it, and on our own server with its fast lane.
"""

from collections.abc import Iterator
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ClientMessageMetadata

from longshore import Limits
from posting import Session
from serving import OWN
from transports.http.fixture import rigged

from . import http_peer, test_features, test_questions, test_tools
from .http_peer import Wire, connect_old, connect_to
from .peer import ERAS, LEGACY, MODERN, run, text

pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
both_eras = pytest.mark.parametrize("mode", ERAS)

SHARED = (test_features, test_questions, test_tools)
ON_PIPES = {"test_a_cancelled_call_is_stopped_and_never_answered": "it reads the client's pipe; see below"}
for _module in SHARED:
    _tests = {name: test for name, test in vars(_module).items() if name.startswith("test_") and name not in ON_PIPES}
    assert not _tests.keys() & globals().keys(), "two tests of one name"
    globals().update(_tests)


@pytest.fixture(autouse=True, params=["uvicorn", "longshore"])
def over_http(request: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for module in SHARED:
        monkeypatch.setattr(module, "connect", http_peer.connect)
    token = OWN.set(request.param == "longshore")
    yield
    OWN.reset(token)


RETRY_SOON = Limits(retry_seconds=0.001)


@both_eras
@pytest.mark.parametrize("tool", ["hold_loudly", "spin"])
def test_a_cancelled_call_is_stopped(mode: str, tool: str) -> None:
    """By a notification in one era, by hanging up in the other."""

    async def main() -> None:
        with rigged() as (rig, server):
            async with connect_to(server.url, mode) as client:
                async with anyio.create_task_group() as group:
                    group.start_soon(client.call_tool, tool)
                    while not (rig.befell["held"] or rig.befell["spun"]):
                        await anyio.sleep(0.001)
                    group.cancel_scope.cancel()
                while not rig.befell["cancelled"]:
                    await anyio.sleep(0.001)
                assert text(await client.call_tool("echo", {"text": "on"})) == "on"

    run(main)


# -- the session


def test_the_session_ends_with_the_client() -> None:
    async def main() -> None:
        with rigged() as (rig, server):
            wire = Wire()
            async with connect_to(server.url, LEGACY, wire=wire) as client:
                await client.call_tool("echo", {"text": "x"})
                assert server.look(rig.stored) == 1
            assert wire.asked[-1][0] == "DELETE"
            assert server.look(lambda: (rig.stored(), len(rig.sessions), len(rig.links))) == (0, 0, 0)

    run(main)


def test_a_modern_client_leaves_no_session() -> None:
    async def main() -> None:
        with rigged() as (rig, server):
            wire = Wire()
            async with connect_to(server.url, "auto", wire=wire) as client:
                assert client.protocol_version == MODERN
                await client.call_tool("echo", {"text": "x"})
            assert {method for method, _ in wire.asked} == {"POST"}
            assert not any("mcp-session-id" in headers for _, headers in wire.asked)
            assert server.look(rig.stored) == 0

    run(main)


def test_a_client_whose_session_was_ended_is_told_so() -> None:
    async def main() -> None:
        with rigged() as (_, server):
            wire = Wire()
            async with connect_to(server.url, LEGACY, wire=wire) as client:
                await client.call_tool("echo", {"text": "x"})
                other = Session(server)
                other.id = wire.asked[-1][1]["mcp-session-id"]
                assert other.delete().finish().status == 204
                with pytest.raises(MCPError, match="no such session"):
                    await client.call_tool("echo", {"text": "x"})

    run(main)


# -- taking up what was cut


def results(seen: list[float]) -> Any:
    async def progressed(progress: float, total: float | None, message: str | None) -> None:
        seen.append(progress)

    return progressed


@pytest.mark.parametrize("cuts", [(60,), (200,), (330,), (700,), (1000,), (60, 1), (330, 20)])
def test_a_call_whose_connection_is_cut_is_taken_up_by_the_client_itself(cuts: tuple[int, ...]) -> None:
    """A second cut comes before its first event: this client gives up after two, and forgets what came between."""

    async def main() -> None:
        with rigged(RETRY_SOON) as (rig, server):
            wire, seen = Wire(*cuts), list[float]()
            async with connect_to(server.url, "2025-11-25", wire=wire) as client:
                result = await client.call_tool("count", {"to": 8}, progress_callback=results(seen))
                assert text(result) == "counted to 8"
                assert seen == [1, 2, 3, 4, 5, 6, 7, 8]
            assert len(wire.resumed()) >= 1
            assert wire.cuts == []
            assert rig.executor.calls == 1

    run(main)


def test_a_call_goes_on_while_the_connection_is_down() -> None:
    async def main() -> None:
        with rigged(RETRY_SOON) as (rig, server):
            wire, seen = Wire(250), list[float]()
            async with connect_to(server.url, "2025-11-25", wire=wire) as client:
                async with anyio.create_task_group() as group:

                    async def go_on() -> None:
                        for n in range(1, 6):
                            while rig.befell["walked"] < n:
                                await anyio.sleep(0.001)
                            server.look(rig.step.set)

                    group.start_soon(go_on)
                    result = await client.call_tool("walk", {"to": 5}, progress_callback=results(seen))
                assert text(result) == "walked to 5"
                assert seen == [1, 2, 3, 4, 5]
            assert len(wire.resumed()) >= 1

    run(main)


def test_another_client_takes_up_a_call_by_its_token() -> None:
    async def main() -> None:
        with rigged(RETRY_SOON) as (rig, server):
            tokens, seen, later = list[str](), list[float](), list[float]()
            call = types.CallToolRequest(params=types.CallToolRequestParams(name="walk", arguments={"to": 3}))

            async def keep(token: str) -> None:
                tokens.append(token)

            first = Wire()

            async def begin() -> None:
                metadata = ClientMessageMetadata(on_resumption_token_update=keep)
                await client.session.send_request(
                    call, types.CallToolResult, metadata=metadata, progress_callback=results(seen)
                )

            async with (
                connect_to(server.url, "2025-11-25", wire=first, keep=True) as client,
                anyio.create_task_group() as group,
            ):
                group.start_soon(begin)
                while not seen:
                    await anyio.sleep(0.001)
                group.cancel_scope.cancel()
            headers = first.asked[-1][1]
            for n in range(1, 4):
                server.until(lambda n=n: rig.befell["walked"] >= n)
                server.look(rig.step.set)
            second = Session(server)
            second.id = headers["mcp-session-id"]
            rest = second.get(tokens[-1]).finish()
            later += [it["params"]["progress"] for it in rest.messages if "method" in it]
            assert seen + later == [1, 2, 3]
            assert rest.messages[-1]["result"]["content"][0]["text"] == "walked to 3"

    run(main)


def test_a_client_takes_up_its_own_call_by_a_token() -> None:
    async def main() -> None:
        with rigged(RETRY_SOON) as (_, server):
            tokens: list[str] = []
            call = types.CallToolRequest(
                params=types.CallToolRequestParams(name="count", arguments={"to": 3}, _meta={"progressToken": "t"})
            )

            async def keep(token: str) -> None:
                tokens.append(token)

            async with connect_to(server.url, "2025-11-25") as client:
                metadata = ClientMessageMetadata(on_resumption_token_update=keep)
                done = await client.session.send_request(call, types.CallToolResult, metadata=metadata)
                assert len(tokens) == 5  # the one that primed it, three steps, the answer
                for token in tokens[:-1]:
                    again = ClientMessageMetadata(resumption_token=token)
                    assert await client.session.send_request(call, types.CallToolResult, metadata=again) == done

    run(main)


def test_a_tool_sends_the_client_away_and_it_comes_back() -> None:
    async def main() -> None:
        with rigged(RETRY_SOON) as (rig, server):
            wire, seen = Wire(), list[float]()
            async with connect_to(server.url, "2025-11-25", wire=wire) as client:
                async with anyio.create_task_group() as group:

                    async def go_on() -> None:
                        for n in range(1, 4):
                            while len(wire.resumed()) < n:
                                await anyio.sleep(0.001)
                            server.look(rig.step.set)

                    group.start_soon(go_on)
                    arguments = {"times": 3, "retry": 0.005}
                    result = await client.call_tool("poll", arguments, progress_callback=results(seen))
                assert text(result) == "polled"
                assert seen == [1, 2, 3]

    run(main)


# -- 2024-11-05


def test_the_client_of_2024_lists_calls_and_hears() -> None:
    async def main() -> None:
        changed, seen, logged = anyio.Event(), list[float](), list[Any]()

        async def heard(message: Any) -> None:
            if isinstance(message, types.ToolListChangedNotification):
                changed.set()

        async def log(message: types.LoggingMessageNotificationParams) -> None:
            logged.append(message.data)

        async with connect_old(message_handler=heard, logging_callback=log) as client:
            assert client.protocol_version == "2024-11-05"
            assert {"echo", "add"} <= {tool.name for tool in (await client.list_tools()).tools}
            assert text(await client.call_tool("add", {"a": 1, "b": 2})) == "3"
            await client.call_tool("count", {"to": 3}, progress_callback=results(seen))
            assert seen == [1, 2, 3]
            await client.set_logging_level("info")
            await client.call_tool("chat")
            await client.call_tool("grow")
            await changed.wait()
            assert logged == [{"step": 1}, "careful"]
            assert text(await client.call_tool("bonus")) == "bonus"

    run(main)


@pytest.mark.parametrize("version", ["2024-11-05", "2025-06-18"])
def test_the_client_of_2024_is_asked(version: str) -> None:
    async def main() -> None:
        person = test_questions.Person(test_questions.agree)
        async with connect_old(version, **person.callbacks) as client:
            assert text(await client.call_tool("title", {"topic": "sea"})) == "Boats and Ropes"
            assert text(await client.call_tool("where")) == "file:///work"

    run(main)
