"""The official client with Brooklyn's server, at every revision."""

from __future__ import annotations

import json

import pytest

from interop.peer import HANDSHAKES, MODERN, connect, failed, run, text

from .document import SERVER


@pytest.mark.parametrize("mode", [*HANDSHAKES, MODERN])
def test_the_official_client_calls_the_tools_by_both_names(mode: str) -> None:
    """S-11: other keys in the list, such as input_schema, are no hindrance."""

    async def main() -> None:
        async with connect(mode, argv=list(SERVER)) as client:
            assert "browser_navigate" in [tool.name for tool in (await client.list_tools()).tools]
            assert json.loads(text(await client.call_tool("brooklyn_status", {})))["success"] is True
            assert "http" in failed(await client.call_tool("navigate_to_url", {"url": "file:///"}))

    run(main)
