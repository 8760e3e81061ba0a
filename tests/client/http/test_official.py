"""The client against the official SDK's server, a process of its own, over each of its HTTP transports."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from client.http.scripted import SECONDS
from longshore.client import Client
from longshore.errors import CallTimeout, ServerError, ToolFailed

HERE = Path(__file__).parent
KINDS = ("http", "json", "stateless", "sse")
ERAS = ("auto", "2025-03-26", "2025-11-25")


@contextmanager
def official(kind: str) -> Iterator[str]:
    argv = [sys.executable, str(HERE / "official.py"), kind]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            port = process.stdout.readline().strip()
            assert port, "the official server did not start"
            yield f"http://127.0.0.1:{port}/{'sse' if kind == 'sse' else 'mcp'}"
        finally:
            process.kill()
            process.wait(SECONDS)


@pytest.fixture(scope="module")
def urls() -> Iterator[dict[str, str]]:
    """One server of each kind, for all tests here."""
    with ExitStack() as stack:
        yield {kind: stack.enter_context(official(kind)) for kind in KINDS}


def ways(kinds: Sequence[str], eras: Sequence[str] = ERAS) -> Any:
    return pytest.mark.parametrize(("kind", "era"), [(kind, era) for kind in kinds for era in eras])


@ways(KINDS)
async def test_everything_once(urls: dict[str, str], kind: str, era: str) -> None:
    async with Client(urls[kind], era=era) as client:
        newest = "2025-11-25" if kind == "sse" else "2026-07-28"
        assert client.server.revision == (newest if era == "auto" else era)
        assert (client.server.name, client.server.instructions) == ("official", "Be kind.")
        assert "add" in [tool.name for tool in await client.list_tools()]
        assert (await client.call_tool("add", {"a": 1, "b": 2})).text == "3"
        assert (await client.read_resource("test://thing"))[0].text == "it"  # type: ignore[union-attr]
        assert (await client.get_prompt("poem", {"about": "x"})).messages[0].content.text == "write about x"  # type: ignore[union-attr]
        with pytest.raises(ToolFailed, match="Error executing tool"):
            await client.call_tool("fail")
        with pytest.raises((ServerError, ToolFailed)):
            await client.call_tool("nothing")
        await client.ping()
        assert len((await client.call_tool("big", {"size": 2_000_000})).text) == 2_000_000
        results = await asyncio.gather(*(client.call_tool("add", {"a": n, "b": 1}, returns=int) for n in range(50)))
        assert results == [n + 1 for n in range(50)]
        assert [note for note in client.problems if "deprecate" not in note] == []
        assert len(client.problems) == (kind == "sse")


@ways(["http", "stateless", "sse"])  # a JSON answer has no place for it
async def test_progress(urls: dict[str, str], kind: str, era: str) -> None:
    async with Client(urls[kind], era=era) as client:
        seen: list[Any] = []
        assert (await client.call_tool("steps", on_progress=lambda *step: seen.append(step))).text == "done"
        assert seen == [(at, 3.0, f"step {at}") for at in range(3)]


@pytest.mark.parametrize(("kind", "era"), [("http", "2025-11-25"), ("sse", "2025-11-25"), ("sse", "auto")])
async def test_a_question(urls: dict[str, str], kind: str, era: str) -> None:
    async with Client(urls[kind], era=era, on_elicit=lambda _: {"name": "Ann"}) as client:
        assert (await client.call_tool("greet")).text == "hello Ann"


@ways(["http", "sse"])  # elsewhere it does not tell its handlers
async def test_giving_up(urls: dict[str, str], kind: str, era: str) -> None:
    async with Client(urls[kind], era=era) as client:
        before = await client.call_tool("how_many_cancelled", returns=int)
        with pytest.raises(CallTimeout):
            await client.call_tool("wait", timeout=0.3)
        async with asyncio.timeout(SECONDS):
            while await client.call_tool("how_many_cancelled", returns=int) != before + 1:
                await asyncio.sleep(0.02)
