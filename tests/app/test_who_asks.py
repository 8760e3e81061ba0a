"""A list is the same for whoever asks: what a client calls itself changes no schema."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from longshore import Server, Tool
from talk import ERAS, PREFIX, WAIT_SECONDS, Client

EITHER = {"type": "object", "properties": {"a": {}}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}


async def ask(app: Server, name: str, revision: str) -> dict[str, Any]:
    client, info = Client(app, revision), {"name": name, "version": "1"}
    try:
        async with asyncio.timeout(WAIT_SECONDS):
            if not client.modern:
                hands = {"protocolVersion": revision, "capabilities": {}, "clientInfo": info}
                await client.request("initialize", hands)
                client.notify("notifications/initialized")
                return await client.request("tools/list")
            return await client.request("tools/list", meta={PREFIX + "clientInfo": info})
    finally:
        client.close()


@pytest.mark.parametrize("revision", ERAS)
def test_the_name_of_a_client_changes_no_list(revision: str) -> None:
    app = Server("who")
    waived = {"E04": "the test is about it"}
    app.add_tool(Tool(name="either", description="Take one", input_schema=EITHER, waive=waived), lambda *_: "")
    names = ("tests", "claude-code", "codex-mcp-client", "gemini-cli-mcp-client", "Visual Studio Code", "cursor-vscode")
    lists = [asyncio.run(ask(app, name, revision)) for name in names]
    assert lists == [lists[0]] * len(names)
    assert lists[0]["tools"][0]["inputSchema"] == EITHER
