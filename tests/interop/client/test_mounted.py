"""Servers of others behind one of ours: what callers of either era find there, and that it comes back when killed."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from longshore import Server
from longshore.client import Client
from waiting import PATIENCE

from .peers import children, command, serving

ERAS = ("modern", "legacy")
OTHERS: set[str] = set()
"""Processes that were ours before a test began."""


@asynccontextmanager
async def behind(target: Any, **options: Any) -> AsyncIterator[tuple[Client, Client]]:
    """Clients of both eras, of a server of ours that has another one mounted, which ends with the block."""
    gate = Server("gate")
    gate.mount(Client(target, timeout=PATIENCE), prefix="b")
    modern, legacy = (Client(gate, era=era, timeout=PATIENCE, **options) for era in ERAS)
    try:
        async with modern, legacy:
            yield modern, legacy
    finally:
        await gate.catalog.toolsets["b"].close()


def run(work: Callable[[], Awaitable[None]]) -> None:
    async def within() -> None:
        async with asyncio.timeout(2 * PATIENCE):
            await work()

    OTHERS.clear()
    OTHERS.update(children())
    asyncio.run(within())


async def offered(client: Client, name: str) -> None:
    """Wait until a tool is listed: it may take longer to start than a list waits."""
    while name not in {tool.name for tool in await client.list_tools(fresh=True)}:
        await asyncio.sleep(0.02)


async def killed(client: Client, tool: str, arguments: dict[str, Any]) -> None:
    """Kill the server, and have the next one answer the same."""
    before = (await client.call_tool(tool, arguments)).content
    [old] = children() - OTHERS
    os.kill(int(old), signal.SIGKILL)
    while (await client.call_tool(tool, arguments, check=False)).content != before:
        await asyncio.sleep(0.02)
    assert old not in children()


def name_them(question: Any) -> dict[str, Any]:
    return {"name": "Ann"} if "name" in question.schema["properties"] else {}


def test_the_server_that_has_everything() -> None:
    async def main() -> None:
        asked: list[str] = []

        def answer(question: Any) -> dict[str, Any]:
            asked.append(question.message)
            return name_them(question)

        async def visit(client: Client) -> None:
            steps: list[Any] = []
            await offered(client, "b_trigger-elicitation-request")
            assert (await client.call_tool("b_echo", {"message": "hi"})).text == "Echo: hi"
            assert {each.uri_template.rpartition("/")[0] for each in await client.list_templates()} == {
                "demo://resource/dynamic/text",
                "demo://resource/dynamic/blob",
            }
            assert "b_simple-prompt" in {each.name for each in await client.list_prompts()}
            work = {"duration": 0.1, "steps": 2}
            await client.call_tool(
                "b_trigger-long-running-operation", work, on_progress=lambda *step: steps.append(step)
            )
            assert steps[-1][:2] == (2, 2)
            asked.clear()
            done = await client.call_tool("b_trigger-elicitation-request")
            assert len(asked) == 1
            assert asked[0].startswith("[b] ")
            assert "User provided the requested information" in done.text

        async with behind(command("everything", "stdio"), on_elicit=answer) as clients:
            for client in clients:
                await visit(client)
            await killed(clients[0], "b_echo", {"message": "again"})
            assert (await clients[1].call_tool("b_echo", {"message": "too"})).text == "Echo: too"

    run(main)


def test_the_memory_server(tmp_path: Path) -> None:
    async def main() -> None:
        env = {**os.environ, "MEMORY_FILE_PATH": str(tmp_path / "memory.json")}
        target = {"command": command("memory")[0], "args": command("memory")[1:], "env": env}
        async with behind(target) as clients:
            people: list[dict[str, Any]] = []
            for client, name in zip(clients, ("Ann", "Bob"), strict=True):
                await offered(client, "b_create_entities")
                people.append({"name": name, "entityType": "person", "observations": ["sails"]})
                await client.call_tool("b_create_entities", {"entities": people[-1:]})
                assert (await client.call_tool("b_read_graph", {})).structured["entities"] == people
            await killed(clients[1], "b_read_graph", {})

    run(main)


async def visit_python(client: Client) -> None:
    steps: list[Any] = []
    await offered(client, "b_add")
    assert (await client.call_tool("b_add", {"a": 1, "b": 2})).text == "3"
    await client.call_tool("b_steps", on_progress=lambda *step: steps.append(step))
    assert steps[-1][:2] == (2, 3)
    assert (await client.call_tool("b_greet")).text == "hello Ann Ann"
    assert (await client.read_resource("test://thing"))[0].text == "it"


def test_the_official_python_server_over_http() -> None:
    with serving("official", "http") as server:

        async def main() -> None:
            async with behind(server.url, on_elicit=name_them) as clients:
                for client in clients:
                    await visit_python(client)
                server.kill()
                for client in clients:
                    gone = await client.call_tool("b_add", {"a": 1, "b": 2}, check=False)
                    assert gone.is_error
                    assert "mounted server 'b'" in gone.text
                await asyncio.to_thread(server.start)
                for client in clients:
                    while (await client.call_tool("b_add", {"a": 1, "b": 2}, check=False)).text != "3":
                        await asyncio.sleep(0.02)

        run(main)


def test_fastmcp() -> None:
    async def main() -> None:
        async with behind(command("fast", "stdio"), on_elicit=name_them) as clients:
            for client in clients:
                await visit_python(client)
            await killed(clients[0], "b_add", {"a": 2, "b": 3})

    run(main)
