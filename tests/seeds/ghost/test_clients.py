"""The official client with the ContextGraph server, at every revision."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from interop.peer import HANDSHAKES, MODERN, connect, failed, run, text

from .document import COMMAND

TOOLS = {mode: 1 if mode <= "2025-03-26" else 7 for mode in (*HANDSHAKES, MODERN)}


@pytest.mark.parametrize("mode", TOOLS)
def test_the_official_client_remembers_and_asks(tmp_path: Path, mode: str) -> None:
    """S-127, S-151."""
    database = tmp_path / "context.db"

    async def main() -> None:
        async with connect(mode, argv=[COMMAND], env={"CONTEXTGRAPH_DB": str(database)}) as client:
            listed = (await client.list_tools()).tools
            assert len(listed) == TOOLS[mode] and "query_context" in [tool.name for tool in listed]
            item = {"kind": "fact", "name": "Port", "text": "The server listens on port 9100."}
            await client.call_tool("add_context", {"items": [item]})
            [hit] = json.loads(text(await client.call_tool("query_context", {"query": "port"})))["hits"]
            assert hit["name"] == "Port"
            assert "nothing" in failed(await client.call_tool("get_context", {"ids": ["nothing"]}))

    run(main)
