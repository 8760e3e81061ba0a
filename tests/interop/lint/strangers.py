"""What servers of others list, as they said it and as it was kept."""

from __future__ import annotations

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from longshore.client import Client
from longshore.schema.standards.subject import Surface
from waiting import PATIENCE

from ..client.peers import command

HERE = Path(__file__).parent
STRANGERS = ("everything", "filesystem", "memory", "playwright")


async def _visit(peer: str, folder: str) -> dict[str, Any]:
    arguments = {"filesystem": [folder], "playwright": ["--headless"]}.get(peer, [])
    env = {"MEMORY_FILE_PATH": f"{folder}/memory.jsonl"}
    async with asyncio.timeout(PATIENCE), Client(command(peer, *arguments), env=env, timeout=PATIENCE) as client:
        tools = [tool.record for tool in await client.list_tools()]
        return {"name": peer, "instructions": client.server.instructions, "tools": tools}


async def _visit_all() -> list[dict[str, Any]]:
    with TemporaryDirectory() as folder:
        return await asyncio.gather(*(_visit(peer, folder) for peer in STRANGERS))


def fetch() -> dict[str, dict[str, Any]]:
    """What each lists now, all asked at once. The instructions of one name the folder that it is installed in."""
    return {each["name"]: each for each in asyncio.run(_visit_all())}


def kept(kind: str, peer: str) -> Any:
    """What is checked in: of the `lists` or of the `findings`."""
    return msgspec.json.decode((HERE / kind / f"{peer}.json").read_bytes())


def keep(kind: str, peer: str, value: Any) -> None:
    text = msgspec.json.format(msgspec.json.encode(value), indent=2)
    (HERE / kind / f"{peer}.json").write_bytes(text + b"\n")


def surface(listed: dict[str, Any]) -> Surface:
    return Surface(name=listed["name"], tools=tuple(listed["tools"]), instructions=listed["instructions"])
