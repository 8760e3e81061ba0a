"""Resources, prompts, completion, progress, logs, cancellation and changes, through the official client."""

import base64
import json
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp.client import stdio as client_stdio
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import ResourceUpdated, ToolsListChanged

from .peer import ERAS, LEGACY, MODERN, connect, run, text
from .server import PIXEL

both_eras = pytest.mark.parametrize("mode", ERAS)
pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")


# -- resources


@both_eras
def test_the_client_lists_resources_and_templates(mode: str) -> None:
    async def main() -> None:
        async with connect(mode) as client:
            listed = {str(resource.uri): resource for resource in (await client.list_resources()).resources}
            assert set(listed) == {"note://welcome", "blob://logo"}
            assert listed["note://welcome"].title == "Welcome"
            assert listed["blob://logo"].mime_type == "image/png"
            templates = (await client.list_resource_templates()).resource_templates
            assert [template.uri_template for template in templates] == ["item://{sku}"]

    run(main)


@both_eras
def test_the_client_reads_texts_bytes_and_templates(mode: str) -> None:
    async def main() -> None:
        async with connect(mode) as client:
            note = (await client.read_resource("note://welcome")).contents[0]
            assert isinstance(note, types.TextResourceContents)
            assert (note.text, note.mime_type) == ("hello", "text/plain")
            logo = (await client.read_resource("blob://logo")).contents[0]
            assert isinstance(logo, types.BlobResourceContents)
            assert base64.b64decode(logo.blob) == PIXEL
            item = (await client.read_resource("item://cup")).contents[0]
            assert isinstance(item, types.TextResourceContents)
            assert json.loads(item.text) == {"sku": "cup", "stock": 3}

    run(main)


@both_eras
@pytest.mark.parametrize("uri", ["nothing://here", "item://lamp"])
def test_a_missing_resource_is_an_error_that_names_it(mode: str, uri: str) -> None:
    async def main() -> None:
        async with connect(mode) as client:
            with pytest.raises(MCPError) as problem:
                await client.read_resource(uri)
            assert problem.value.code == (-32002 if mode == LEGACY else -32602)
            assert problem.value.error.data["uri"] == uri

    run(main)


def test_a_subscriber_of_the_handshake_era_hears_of_a_change() -> None:
    async def main() -> None:
        send, receive = anyio.create_memory_object_stream[Any](10)

        async def heard(message: Any) -> None:
            if isinstance(message, types.ResourceUpdatedNotification):
                await send.send(str(message.params.uri))

        async with send, receive, connect(LEGACY, message_handler=heard) as client:
            await client.subscribe_resource("item://cup")
            await client.call_tool("touch", {"uri": "item://bowl"})
            await client.call_tool("touch", {"uri": "item://cup"})
            assert await receive.receive() == "item://cup"
            await client.unsubscribe_resource("item://cup")
            await client.call_tool("touch", {"uri": "item://cup"})
            await client.send_ping()
            assert receive.statistics().current_buffer_used == 0

    run(main)


def test_a_listener_of_the_modern_era_hears_of_what_it_asked_for() -> None:
    async def main() -> None:
        async with connect("auto") as client:
            async with client.listen(resource_subscriptions=["item://cup"], tools_list_changed=True) as events:
                assert events.honored.tools_list_changed
                assert events.honored.resource_subscriptions == ["item://cup"]
                await client.call_tool("touch", {"uri": "item://bowl"})
                await client.call_tool("touch", {"uri": "item://cup"})
                assert await anext(events) == ResourceUpdated(uri="item://cup")
                await client.call_tool("grow")
                assert await anext(events) == ToolsListChanged()
            assert text(await client.call_tool("echo", {"text": "on"})) == "on"

    run(main)


# -- prompts and completion


@both_eras
def test_the_client_lists_and_gets_prompts(mode: str) -> None:
    async def main() -> None:
        async with connect(mode) as client:
            prompt = (await client.list_prompts()).prompts[0]
            assert (prompt.name, prompt.title, prompt.description) == ("review", "Review", "Review some code.")
            assert prompt.arguments is not None
            assert [(a.name, a.required) for a in prompt.arguments] == [("code", True), ("tone", False)]
            got = await client.get_prompt("review", {"code": "x = 1", "tone": "strict"})
            assert [m.role for m in got.messages] == ["user", "assistant"]
            first = got.messages[0].content
            assert isinstance(first, types.TextContent)
            assert first.text == "Review in a strict tone: x = 1"

    run(main)


@both_eras
@pytest.mark.parametrize("arguments", [{}, {"code": "x", "tone": "rude"}, {"code": "x", "volume": "11"}])
def test_wrong_prompt_arguments_are_refused(mode: str, arguments: dict[str, str]) -> None:
    async def main() -> None:
        async with connect(mode) as client:
            with pytest.raises(MCPError) as problem:
                await client.get_prompt("review", arguments)
            assert problem.value.code == -32602

    run(main)


@both_eras
def test_the_client_completes_arguments(mode: str) -> None:
    async def main() -> None:
        async with connect(mode) as client:
            template = types.ResourceTemplateReference(uri="item://{sku}")
            done = await client.complete(template, {"name": "sku", "value": "c"})
            assert done.completion.values == ["cup", "cap"]
            prompt = types.PromptReference(name="review")
            done = await client.complete(prompt, {"name": "tone", "value": "s"})
            assert done.completion.values == ["strict"]
            done = await client.complete(prompt, {"name": "code", "value": "x"}, context_arguments={"tone": "kind"})
            assert done.completion.values == ["x-kind"]

    run(main)


# -- while a call runs


@both_eras
@pytest.mark.parametrize("tool", ["count", "count_on_a_thread"])
def test_progress_grows_and_ends_with_the_call(mode: str, tool: str) -> None:
    async def main() -> None:
        seen: list[tuple[float, float | None]] = []

        async def progressed(progress: float, total: float | None, message: str | None) -> None:
            seen.append((progress, total))

        async with connect(mode) as client:
            await client.call_tool(tool, {"to": 3}, progress_callback=progressed)
            assert seen
            assert seen == sorted(set(seen))
            assert seen[-1] == (3, 3)

    run(main)


@both_eras
def test_log_messages_come_from_the_level_that_the_client_wants(mode: str) -> None:
    async def main() -> None:
        seen: list[tuple[str, Any]] = []

        async def logged(message: types.LoggingMessageNotificationParams) -> None:
            seen.append((message.level, message.data))

        async with connect(mode, logging_callback=logged, log_level="info") as client:
            if mode == LEGACY:
                await client.set_logging_level("info")
            await client.call_tool("chat")
            await client.call_tool("echo", {"text": "flush"})
            assert seen == [("info", {"step": 1}), ("warning", "careful")]

    run(main)


def test_a_modern_client_that_wants_no_log_gets_none() -> None:
    async def main() -> None:
        seen: list[Any] = []

        async def logged(message: Any) -> None:
            seen.append(message)

        async with connect(MODERN, logging_callback=logged) as client:
            await client.call_tool("chat")
            await client.call_tool("echo", {"text": "flush"})
            assert seen == []

    run(main)


@both_eras
@pytest.mark.parametrize("tool", ["wait", "spin"])
def test_a_cancelled_call_is_stopped_and_never_answered(mode: str, tool: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[Any] = []
    parse = client_stdio._parse_line

    def parse_and_keep(line: str) -> Any:
        lines.append(json.loads(line))
        return parse(line)

    monkeypatch.setattr(client_stdio, "_parse_line", parse_and_keep)

    async def main() -> None:
        started = anyio.Event()

        async def progressed(progress: float, total: float | None, message: str | None) -> None:
            started.set()

        async with connect(mode) as client:
            async with anyio.create_task_group() as group:

                async def call() -> None:
                    await client.call_tool(tool, progress_callback=progressed)

                group.start_soon(call)
                await started.wait()
                before = len(lines)
                group.cancel_scope.cancel()
            cancelled = lines[before - 1]["params"]["progressToken"]  # this client uses the request's id
            assert text(await client.call_tool("await_event", {"name": tool})) == "true"
            await client.call_tool("echo", {"text": "flush"})
            assert len(lines) > before
            assert all("id" in line and line["id"] != cancelled for line in lines[before:])

    run(main)


# -- changes


def test_a_toolset_added_at_run_time_is_announced_and_callable_in_the_handshake_era() -> None:
    async def main() -> None:
        changed = anyio.Event()

        async def heard(message: Any) -> None:
            if isinstance(message, types.ToolListChangedNotification):
                changed.set()

        async with connect(LEGACY, message_handler=heard) as client:
            before = {tool.name for tool in (await client.list_tools()).tools}
            await client.call_tool("grow")
            await changed.wait()
            after = {tool.name for tool in (await client.list_tools()).tools}
            assert after - before == {"bonus"}
            assert text(await client.call_tool("bonus")) == "bonus"
            await client.call_tool("shrink")
            with pytest.raises(MCPError, match="no tool"):
                await client.call_tool("bonus")

    run(main)


def test_a_toolset_added_at_run_time_is_announced_to_modern_listeners() -> None:
    async def main() -> None:
        async with connect("auto") as client:
            before = {tool.name for tool in (await client.list_tools()).tools}
            async with client.listen(tools_list_changed=True) as events:
                await client.call_tool("grow")
                assert await anext(events) == ToolsListChanged()
                after = {tool.name for tool in (await client.list_tools()).tools}
                assert after - before == {"bonus"}
                assert text(await client.call_tool("bonus")) == "bonus"

    run(main)
