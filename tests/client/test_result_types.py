"""Types of results, and the `_meta` of requests, by era."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from client.test_handshake import PREFIX, connect_to, wire
from longshore import Client
from longshore.errors import BadAnswer, ClientError

SERVING = "for m in log(): serve(m) and reply(m, DONE)"


@pytest.mark.parametrize("kind", ["later", "input_required", "task", 5, None])
@pytest.mark.parametrize("what", ["list", "complete", "discover"])
async def test_a_result_of_an_unknown_kind_is_none(tmp_path: Path, kind: Any, what: str) -> None:
    code = f"""
        for m in log():
            more = {{"resultType": {kind!r}}}
            match m.get("method"):
                case "server/discover": meet(m, **(more if {what == "discover"} else {{}}))
                case "tools/list": reply(m, {{"tools": [TOOL], **more}})
                case _: reply(m, {{"completion": {{"values": []}}, **more}})
    """
    with pytest.raises(ClientError, match="kind"):
        async with connect_to(tmp_path, "modern", code) as client:
            await (client.list_tools() if what == "list" else client.complete("p", "a", "v"))


async def test_a_result_of_the_handshake_era_has_no_kind(tmp_path: Path) -> None:
    code = "for m in log(): serve(m) and 'id' in m and reply(m, dict(DONE, resultType='input_required'))"
    async with connect_to(tmp_path, "legacy", code) as client:
        assert (await client.call_tool("x")).text == "done"
    assert len(wire(tmp_path, "tools/call")) == 1


async def test_roots_change_without_notice_in_the_modern_era(tmp_path: Path) -> None:
    async with connect_to(tmp_path, "modern", SERVING, roots=["/"]) as client:
        await client.call_tool("x")
    assert wire(tmp_path)[-1]["params"]["_meta"][PREFIX + "clientCapabilities"] == {"roots": {}}


async def test_a_caller_says_more_but_unsays_nothing(tmp_path: Path) -> None:
    async with connect_to(tmp_path, "modern", SERVING) as client:
        said = {PREFIX + "protocolVersion": "1999", PREFIX + "clientCapabilities": None, "progressToken": 1}
        await client.call_tool("x", meta={**said, "com.example/mine": True})
    meta = wire(tmp_path)[-1]["params"]["_meta"]
    assert meta[PREFIX + "protocolVersion"] == "2026-07-28" and meta[PREFIX + "clientCapabilities"] == {}
    assert "progressToken" not in meta and meta["com.example/mine"] is True


@pytest.mark.parametrize("name", ["noprefix", "/x", "x/", ""])
def test_an_extension_has_a_prefix(name: str) -> None:
    with pytest.raises(ValueError, match="an extension's name has a prefix"):
        Client(["true"], extensions={name: {}})


async def test_a_task_result_is_an_error_that_names_request(tmp_path: Path) -> None:
    code = "for m in log(): serve(m) and 'id' in m and reply(m, {'resultType': 'task', 'task': {'taskId': 't'}})"
    async with connect_to(tmp_path, "modern", code) as client:
        with pytest.raises(BadAnswer, match="task"):
            await client.call_tool("x")
        assert (await client.request("tools/call", {"name": "x"}))["task"] == {"taskId": "t"}
