"""Code that calls the servers of others, which are mounted in one of ours that lists its tools in form `code`."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from longshore import Server
from longshore.client import Client
from waiting import PATIENCE

from .peers import command, leaving_nothing

LISTED = {"search_tools", "tool_api", "run_code"}

FILES = """
tools.files_write_file(path=folder + "/poem.txt", content="roses are red")
found = tools.files_read_text_file(path=folder + "/poem.txt")
print(found)
try:
    tools.files_read_text_file(path="/etc/hostname")
except ToolError as problem:
    print(str(problem).split(" - ")[0])
"""
MEMORY = """
word = found["content"].split()[0]
tools.memory_create_entities([{"name": word, "entityType": "flower", "observations": [found["content"]]}])
print([each["observations"] for each in tools.memory_search_nodes(query=word)["entities"]])
"""
EVERYTHING = """
import asyncio
sums = await asyncio.gather(*[tools.all_get_sum(a=n, b=1) for n in range(3)])
print(*sums, sep="\\n")
print(tools["all_get-structured-content"](location="Chicago")["temperature"])
image = tools.all_get_tiny_image().media[0]
print(image.mime_type, image.data[:4])
image
"""


@asynccontextmanager
async def ending(gate: Server) -> AsyncIterator[None]:
    """End the mounted servers and the code after the block."""
    try:
        yield
    finally:
        await asyncio.gather(*[handle.close() for handle in gate.catalog.toolsets.values()])


async def run(client: Client, code: str) -> str:
    return (await client.call_tool("run_code", {"code": code, "session": "s"})).text


async def begun(client: Client, names: list[str]) -> str:
    """The stubs of tools, as soon as the servers that have them are connected."""
    while True:
        answer = await client.call_tool("tool_api", {"names": names}, check=False)
        if not answer.is_error:
            return answer.text
        await asyncio.sleep(0.02)


def test_code_calls_three_servers_of_npm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(os.path.realpath(tmp_path))
    monkeypatch.chdir(folder)
    memory = {"MEMORY_FILE_PATH": str(folder / "memory.jsonl")}

    async def main() -> None:
        gate = Server("gate", catalog="code")
        gate.mount(Client(command("filesystem", str(folder)), timeout=PATIENCE), prefix="files")
        gate.mount(Client(command("memory"), env=memory, timeout=PATIENCE), prefix="memory")
        gate.mount(Client(command("everything"), timeout=PATIENCE), prefix="all")
        async with asyncio.timeout(2 * PATIENCE), ending(gate), Client(gate, timeout=PATIENCE) as client:
            stubs = await begun(client, ["files_read_text_file", "memory_create_entities", "all_get-sum"])
            assert "def all_get_sum(a: float, b: float)" in stubs
            assert {tool.name for tool in await client.list_tools()} == LISTED
            hits = (await client.call_tool("search_tools", {"query": "add two numbers", "limit": 1})).text
            assert hits.startswith("all_get-sum(a, b)")
            text = await run(client, f"folder = {str(folder)!r}\n{FILES}")
            assert text.startswith("{'content': 'roses are red'}\nAccess denied")
            assert (folder / "poem.txt").read_text() == "roses are red"
            assert "[['roses are red']]" in await run(client, MEMORY)
            assert json.loads((folder / "memory.jsonl").read_text())["name"] == "roses"
            assert (await run(client, EVERYTHING)).splitlines()[:4] == [
                *[f"The sum of {n} and 1 is {n + 1}." for n in range(3)],
                "36",
            ]

    with leaving_nothing():
        asyncio.run(main())
