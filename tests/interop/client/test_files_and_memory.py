"""Our client against the official TypeScript servers of files and of memory. Both have stdio alone."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from longshore.client import Change, SyncClient
from longshore.errors import ToolFailed
from longshore.protocol.content import Audio, EmbeddedResource, Image
from waiting import PATIENCE

from .peers import command, leaving_nothing
from .talk import Talk, hold

GRAPH = "memory://knowledge-graph"


# -- files


async def is_shut_in(talk: Talk, folder: Path) -> None:
    """What it may touch are the roots that we gave, which it has asked for by itself."""

    async def allowed() -> str:
        return (await talk.call("list_allowed_directories")).text

    async with asyncio.timeout(PATIENCE):
        while str(folder) not in await allowed():
            await asyncio.sleep(0.01)
    with pytest.raises(ToolFailed, match="Access denied"):
        await talk.call("read_text_file", path="/etc/hostname")
    other = folder / "inner"
    await talk.client.set_roots([str(other)])
    async with asyncio.timeout(PATIENCE):
        while str(other) not in await allowed():
            await asyncio.sleep(0.01)
    with pytest.raises(ToolFailed, match="Access denied"):
        await talk.call("list_directory", path=str(folder))


async def write_and_read(talk: Talk, folder: Path) -> None:
    inner, poem = folder / "inner", str(folder / "inner" / "poem.txt")
    await talk.call("create_directory", path=str(inner))
    await talk.call("write_file", path=poem, content="roses are red\nviolets are blue\n")
    assert Path(poem).read_text().startswith("roses")
    result = await talk.call("read_text_file", path=poem, head=1)
    assert (result.text, result.structured) == ("roses are red", {"content": "roses are red"})
    assert (await talk.call("read_file", path=poem, tail=2)).text.strip() == "violets are blue"
    edits = [{"oldText": "blue", "newText": "grüne"}]
    assert "+violets are grüne" in (await talk.call("edit_file", path=poem, edits=edits)).text
    await talk.call("move_file", source=poem, destination=str(inner / "ode.txt"))
    both = [str(inner / "ode.txt"), str(inner / "absent.txt")]
    several = (await talk.call("read_multiple_files", paths=both)).text
    assert "grüne" in several and "ENOENT" in several
    with pytest.raises(ToolFailed, match="ENOENT"):
        await talk.call("read_text_file", path=poem)
    with pytest.raises(ToolFailed, match=r"[Ii]nvalid"):
        await talk.call("read_text_file")


async def look_around(talk: Talk, folder: Path) -> None:
    path = str(folder)
    assert "[DIR] inner" in (await talk.call("list_directory", path=path)).text
    assert "[DIR] inner" in (await talk.call("list_directory_with_sizes", path=path, sortBy="size")).text
    assert "ode.txt" in (await talk.call("directory_tree", path=path)).text
    assert "ode.txt" in (await talk.call("search_files", path=path, pattern="**/ode*")).text
    assert "isFile: true" in (await talk.call("get_file_info", path=str(folder / "inner" / "ode.txt"))).text


async def media(talk: Talk, folder: Path) -> None:
    for name, kind in (("a.png", Image), ("b.wav", Audio), ("c.bin", EmbeddedResource)):
        data = os.urandom(999)
        (folder / name).write_bytes(data)
        [block] = (await talk.call("read_media_file", path=str(folder / name))).content
        assert isinstance(block, kind)
        assert (block.resource.blob if isinstance(block, EmbeddedResource) else block.data) == data


async def much_at_once(talk: Talk, folder: Path) -> None:
    text = "é" * 2_000_000
    await talk.call("write_file", path=str(folder / "big.txt"), content=text)
    assert (await talk.call("read_text_file", path=str(folder / "big.txt"))).text == text
    for n in range(50):
        (folder / f"{n}.txt").write_text(str(n))
    read = await asyncio.gather(*(talk.call("read_text_file", path=str(folder / f"{n}.txt")) for n in range(50)))
    assert [each.text for each in read] == [str(n) for n in range(50)]


def test_files(tmp_path: Path) -> None:
    async def everything(talk: Talk) -> None:
        assert talk.client.server.revision == "2025-11-25"
        await talk.client.list_tools()  # each promises an output schema, to which its results are held
        for chapter in (write_and_read, look_around, media, much_at_once, is_shut_in):
            await chapter(talk, tmp_path)

    hold(
        Talk("filesystem-stdio", command("filesystem", str(tmp_path)), roots=[str(tmp_path)]),
        everything,
        Talk.called_all,
    )


# -- memory


async def remember(talk: Talk) -> None:
    assert talk.client.server.revision == "2025-11-25"
    await talk.client.list_tools()
    people: list[dict[str, Any]] = [
        {"name": name, "entityType": "person", "observations": [f"{name} is here"]} for name in ("Ann", "Bo")
    ]
    await talk.call("create_entities", entities=people)
    knows = {"from": "Ann", "to": "Bo", "relationType": "knows"}
    await talk.call("create_relations", relations=[knows])
    seen = {"entityName": "Ann", "contents": ["likes tea"]}
    await talk.call("add_observations", observations=[seen])
    graph = (await talk.call("read_graph")).structured
    assert [each["name"] for each in graph["entities"]] == ["Ann", "Bo"] and graph["relations"] == [knows]
    assert len((await talk.call("search_nodes", query="tea")).structured["entities"]) == 1
    assert len((await talk.call("open_nodes", names=["Bo"])).structured["entities"]) == 1
    with pytest.raises(ToolFailed, match="Nobody not found"):
        await talk.call("add_observations", observations=[{"entityName": "Nobody", "contents": []}])
    graphs = await asyncio.gather(*(talk.call("read_graph") for _ in range(50)))
    assert all(each.structured == graph for each in graphs)


async def forget(talk: Talk) -> None:
    """Whoever subscribed is told of each change."""
    async with talk.client.watch(uris=[GRAPH]) as watch, asyncio.timeout(PATIENCE):
        await talk.call("delete_observations", deletions=[{"entityName": "Ann", "observations": ["likes tea"]}])
        assert await anext(watch) == Change("resource", GRAPH)
        await talk.call("delete_relations", relations=[{"from": "Ann", "to": "Bo", "relationType": "knows"}])
        assert await anext(watch) == Change("resource", GRAPH)
        await talk.call("delete_entities", entityNames=["Bo"])
    [graph] = await talk.client.read_resource(GRAPH)
    assert "Ann" in str(graph.text) and "Bo" not in str(graph.text)


def test_memory(tmp_path: Path) -> None:
    env = {"MEMORY_FILE_PATH": str(tmp_path / "memory.jsonl")}
    hold(Talk("memory-stdio", command("memory"), env=env), remember, forget, Talk.called_all)
    with leaving_nothing(), SyncClient(command("memory"), env=env, timeout=PATIENCE) as client:  # as a script would
        assert [each["name"] for each in client.call_tool("read_graph").structured["entities"]] == ["Ann"]
        assert client.server.name == "memory-server"
