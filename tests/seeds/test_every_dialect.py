"""What holds in every dialect of the documents: records of each request, and -32603 for a failure of the server."""

from __future__ import annotations

import json
from typing import Any

import pytest

from process.conftest import Workshop
from process.conftest import workshop as workshop
from process.peer import Peer, call, notification, request
from waiting import eventually

from .bb.document import INITIALIZE
from .ghost.document import read

SOURCE = """
import asyncio
from longshore import Server, ToolError

app = Server("mine")

@app.tool
def succeed() -> str:
    return "done"

@app.tool
def fail() -> str:
    raise ToolError("not today")

@app.tool(timeout=0.1)
async def hang() -> None:
    await asyncio.sleep(600)

@app.tool
async def wait() -> None:
    await asyncio.sleep(600)
"""
BROKEN = """
from longshore.server import methods

def fail(*_):
    raise RuntimeError("secret")

methods._METHODS["tools/list"] = methods._METHODS["tools/list"]._replace(run=fail)
"""
HANDSHAKES: dict[str, Any] = {
    "brooklyn": None,
    "browseros": None,
    "ghost": read("initialize_request"),
    "bb": INITIALIZE,
}
OUTCOMES = {"succeed": "ok", "fail": "failed", "hang": "timeout", "wait": "cancelled"}


def serve(workshop: Workshop, dialect: str, source: str, *options: str) -> Peer:
    peer = workshop.serve(source, "--dialect", dialect, *options)
    if (handshake := HANDSHAKES[dialect]) is not None:
        peer.ask(handshake)
    return peer


def records(peer: Peer) -> list[dict[str, Any]]:
    """The whole lines of the log."""
    return [json.loads(line) for line in peer.stderr.splitlines(keepends=True) if line.endswith("\n")]


@pytest.mark.parametrize("dialect", HANDSHAKES)
def test_a_call_is_recorded_from_its_request_to_its_end(workshop: Workshop, dialect: str) -> None:
    """S-188 to S-191, which every dialect has."""
    peer = serve(workshop, dialect, SOURCE, "--log-level", "debug")
    for tool in ("succeed", "fail", "hang"):
        peer.ask(call(tool, tool))
    peer.send(call("wait", "wait"))
    eventually(
        "the call", lambda: any(each["type"] == "tool_invoked" and each["tool"] == "wait" for each in records(peer))
    )
    peer.send(notification("notifications/cancelled", requestId="wait"))
    peer.ask(request("last", "tools/list"))
    peer.close_input()
    peer.wait()
    for tool, outcome in OUTCOMES.items():
        mine = [each for each in records(peer) if each.get("id") == tool and each["type"] != "limit_reached"]
        found = [(each["type"], each.get("method"), each.get("tool"), each.get("outcome")) for each in mine]
        assert found == [
            ("request_received", "tools/call", tool, None),
            ("tool_invoked", "tools/call", tool, None),
            ("tool_completed", "tools/call", tool, outcome),
            ("request_completed", "tools/call", tool, outcome),
        ]
        assert all(each["seconds"] > 0 for each in mine if each["type"].endswith("_completed"))


@pytest.mark.parametrize(
    ("dialect", "error"),
    [
        ("brooklyn", {"message": "the server failed; its log says how"}),
        ("browseros", {"message": "Internal error: the server failed; its log says how"}),
        ("ghost", {"message": "the server failed; its log says how", "data": {}}),
        ("bb", {"message": "Internal error", "data": {"error": "the server failed; its log says how"}}),
    ],
)
def test_a_failure_of_the_server_is_an_internal_error(workshop: Workshop, dialect: str, error: dict[str, Any]) -> None:
    """S-37, S-147, S-165: of the server, not of a tool; the next request is answered."""
    peer = serve(workshop, dialect, SOURCE + BROKEN)
    assert peer.ask(request(1, "tools/list"))["error"] == {"code": -32603, **error}
    assert "error" not in peer.ask(call(2, "succeed"))
