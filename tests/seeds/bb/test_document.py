"""Statements S-157 to S-200: the document of bb-mcp-server, said to the server of its entry point."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from process.conftest import Workshop
from process.peer import LONGSHORE, Peer, call, initialize, modern, notification, request

from .document import CALL, CALLED, FAILED, INITIALIZE, INITIALIZED, LIST, LISTED, MESSAGES

PAGE = Path(__file__).parents[3] / "docs" / "seeds.md"
COMMAND = str(Path(sys.executable).parent / "bb-mcp-server")
TOOLS = """
import asyncio
from longshore import Context, Image, Server, Tool, ToolError

app = Server("bb-mcp-server", version="0.1.0")

class NullPointerException(Exception): ...

@app.tool
def hello(name: str | None = None) -> str:
    if name is None:
        raise NullPointerException("name cannot be null")
    return f"Hello, {name}!"

@app.tool
def refuse() -> str:
    raise ToolError("not today")

@app.tool
def pixel() -> Image:
    return Image(data=b"\\x89PNG", mime_type="image/png")

@app.tool
async def hold() -> str:
    await asyncio.sleep(600)

@app.tool
async def count(ctx: Context) -> str:
    await ctx.progress(1, 2)
    await ctx.error("half")
    return "counted"

@app.tool(run="inline")
def grow() -> str:
    app.add_tool(Tool(name="new", input_schema={"type": "object"}), lambda arguments, context: "x")
    return "grown"
"""


@pytest.fixture
def server(workshop: Workshop) -> Peer:
    return workshop.spawn(COMMAND)


@pytest.fixture
def tools(workshop: Workshop) -> Peer:
    """A server of its own tools, after the handshake of the document."""
    peer = workshop.serve(TOOLS, "--dialect", "bb")
    peer.ask(INITIALIZE)
    return peer


def error_of(answer: dict[str, Any]) -> dict[str, Any]:
    """The error of an answer, whose message is that of the document's tables."""
    assert "result" not in answer
    error: dict[str, Any] = answer["error"]
    assert error["message"] == MESSAGES[error["code"]]
    return error


def refused(server: Peer, message: Any, id: Any) -> int:
    """The code with which a message is refused."""
    server.send(message)
    answer = server.receive(lambda frame: frame.get("id", "none") == id, f"an answer to {id!r}")
    assert set(answer) == {"jsonrpc", "id", "error"}
    code: int = error_of(answer)["code"]
    return code


# -- the examples


def test_the_session_of_the_document_is_answered_as_it_says(server: Peer) -> None:
    """S-157, S-163, S-169, S-170, S-174, S-178, S-181, S-195: several calls in one session on stdio."""
    assert server.ask(INITIALIZE) == INITIALIZED
    listed = server.ask(LIST)
    [tool] = listed["result"]["tools"]
    assert "`additionalProperties: false`" in PAGE.read_text(encoding="utf-8")  # the one thing that is other
    assert tool["inputSchema"].pop("additionalProperties") is False
    assert listed == LISTED
    assert json.dumps(listed["result"]) == json.dumps(LISTED["result"])  # in the order of the document, too
    assert server.ask(CALL) == CALLED
    assert server.ask(CALL | {"id": "again"})["result"] == CALLED["result"]


def test_a_call_before_the_handshake_is_refused(server: Peer) -> None:
    """S-167, S-175, S-181, S-182, S-183."""
    assert refused(server, LIST, 2) == -32003
    assert refused(server, CALL, 3) == -32003
    server.ask(INITIALIZE)
    assert server.ask(CALL) == CALLED


def test_an_unknown_tool_is_not_found(server: Peer) -> None:
    """S-166, S-179, S-181."""
    server.ask(INITIALIZE)
    error = error_of(server.ask(call(4, "nonexistent")))
    assert error["code"] == -32000
    assert error["data"]["tool"] == "nonexistent"


def test_an_exception_of_a_tool_is_an_execution_failure_with_its_text(tools: Peer) -> None:
    """S-166, S-180, S-186, S-187: the trace only in debug mode."""
    answer = tools.ask(call(3, "hello"))
    expected = FAILED["error"]["data"]
    assert error_of(answer) == FAILED["error"] | {"data": {key: expected[key] for key in ("tool", "error")}}
    assert error_of(tools.ask(call(4, "refuse")))["data"] == {"tool": "refuse", "error": "not today"}
    assert error_of(tools.ask(call(4, "refuse")))["code"] == -32001


def test_debug_mode_adds_the_stack_trace(workshop: Workshop) -> None:
    """S-180, S-187."""
    tools = workshop.serve(TOOLS, "--dialect", "bb", "--debug")
    tools.ask(INITIALIZE)
    data = error_of(tools.ask(call(3, "hello")))["data"]
    assert set(data) == {"tool", "error", "stacktrace"}
    assert 'raise NullPointerException("name cannot be null")' in data["stacktrace"]


# -- messages


def test_text_that_is_no_json_is_a_parse_error(server: Peer) -> None:
    """S-164, S-165, S-185, S-192."""
    assert refused(server, b"{no json", None) == -32700


@pytest.mark.parametrize(
    ("message", "id"),
    [
        ({"method": "tools/list", "id": 1}, 1),
        ({"jsonrpc": "1.0", "method": "tools/list", "id": 1}, 1),
        ({"jsonrpc": 2.0, "method": "tools/list", "id": 1}, 1),
        ({"jsonrpc": "2.0", "id": 1}, 1),
        ({"jsonrpc": "2.0", "method": 7, "id": 1}, 1),
        ({"jsonrpc": "2.0", "method": "tools/list", "id": None}, None),
        ({"jsonrpc": "2.0", "method": "tools/list", "id": [1]}, None),
        ([LIST], None),
        ([], None),
        ("hello", None),
    ],
    ids=lambda value: json.dumps(value)[:40],
)
def test_a_message_of_the_wrong_form_is_an_invalid_request(server: Peer, message: Any, id: Any) -> None:
    """S-158, S-159, S-160, S-162, S-164, S-165, S-192, S-200: arrays are not taken."""
    assert refused(server, json.dumps(message).encode(), id) == -32600


def test_an_unknown_method_is_not_found_before_and_after_the_handshake(server: Peer) -> None:
    """S-157, S-165, S-185, S-193: the method is checked first, then the handshake."""
    for method in ("nope", "ping", "resources/list", "logging/setLevel"):
        assert refused(server, request(method, method), method) == -32601
    server.ask(INITIALIZE)
    assert refused(server, request("ping", "ping"), "ping") == -32601


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"clientInfo": {"name": "c"}},
        {"protocolVersion": "1.0"},
        {"protocolVersion": 1.0, "clientInfo": {"name": "c"}},
        {"protocolVersion": "1.0", "clientInfo": "c"},
        {"protocolVersion": "1.0", "clientInfo": {}},
        {"protocolVersion": "1.0", "clientInfo": {"name": 7}},
        {"protocolVersion": "1.0", "clientInfo": {"name": "c", "version": 1}},
        [],
    ],
    ids=json.dumps,
)
def test_a_handshake_without_its_parameters_is_refused(server: Peer, params: Any) -> None:
    """S-161, S-168, S-171, S-194."""
    message = {"jsonrpc": "2.0", "method": "initialize", "params": params, "id": 1}
    assert refused(server, message, 1) == -32602
    assert refused(server, LIST, 2) == -32003


def test_the_version_of_a_client_is_optional(server: Peer) -> None:
    """S-168."""
    params = {"protocolVersion": "1.0", "clientInfo": {"name": "c"}}
    assert server.ask(INITIALIZE | {"params": params}) == INITIALIZED


def test_the_list_of_tools_needs_no_params(server: Peer) -> None:
    """S-161, S-172, S-173, S-184, S-194."""
    server.ask(INITIALIZE)
    for id, message in enumerate(({"params": {}}, {})):
        answer = server.ask({"jsonrpc": "2.0", "method": "tools/list", "id": f"list-{id}"} | message)
        assert [set(tool) for tool in answer["result"]["tools"]] == [{"name", "description", "inputSchema"}]


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ({"name": "hello"}, -32602),
        ({"name": "hello", "arguments": None}, -32602),
        ({"name": "hello", "arguments": []}, -32602),
        ({"name": 7, "arguments": {}}, -32602),
        ({"arguments": {}}, -32602),
        ({"name": "hello", "arguments": {}}, -32002),
        ({"name": "hello", "arguments": {"name": 42}}, -32002),
        ({"name": "hello", "arguments": {"name": "World", "more": 1}}, -32002),
        ({"name": "nope", "arguments": {}}, -32000),
    ],
    ids=json.dumps,
)
def test_the_parameters_of_a_call_are_checked_in_the_order_of_the_document(
    server: Peer, params: Any, code: int
) -> None:
    """S-176, S-179, S-185, S-193, S-194."""
    server.ask(INITIALIZE)
    assert refused(server, {"jsonrpc": "2.0", "method": "tools/call", "params": params, "id": 5}, 5) == code


def test_ids_are_echoed_as_they_came(server: Peer) -> None:
    """S-162, S-163: strings and numbers, zero and the empty string too."""
    server.ask(INITIALIZE)
    for id in (0, "", -1, "x", 2**53):
        assert server.ask(LIST | {"id": id})["id"] == id


def test_content_other_than_text_has_the_fields_of_its_type(tools: Peer) -> None:
    """S-177."""
    result = tools.ask(call(3, "pixel"))["result"]
    assert result == {"content": [{"type": "image", "data": "iVBORw==", "mimeType": "image/png"}]}


# -- telemetry


def test_every_request_completion_and_invocation_is_on_stderr(server: Peer) -> None:
    """S-188, S-189, S-190, S-191, also of requests that are refused."""
    refused(server, LIST, 2)
    server.ask(INITIALIZE)
    server.ask(CALL)
    refused(server, call("bad", "hello"), "bad")
    refused(server, {"jsonrpc": "1.0", "method": "tools/list", "id": "old"}, "old")
    refused(server, b"{no json", None)
    server.close_input()
    server.process.wait(30)
    records = [json.loads(line) for line in server.stderr.splitlines()]
    received = [(each["method"], each.get("id", "")) for each in records if each["type"] == "request_received"]
    completed = [
        (each["method"], each.get("id", ""), each["outcome"]) for each in records if each["type"] == "request_completed"
    ]
    tools = [(each["tool"], each["outcome"]) for each in records if each["type"] == "tool_completed"]
    requests = [("tools/list", 2), ("initialize", 1), ("tools/call", 3), ("tools/call", "bad")]
    requests += [("unknown", "old"), ("unknown", "")]
    assert received == requests
    assert completed == [
        (*each, outcome)
        for each, outcome in zip(requests, ("refused", "ok", "ok", "refused", "refused", "refused"), strict=True)
    ]
    assert tools == [("hello", "ok")]
    assert all(isinstance(each["at"], float) for each in records)
    seconds = [(each["outcome"], each.get("seconds", 0.0)) for each in records if each["type"].endswith("completed")]
    assert all(took > 0 or (outcome, took) == ("refused", 0.0) for outcome, took in seconds)


# -- what a dated handshake gives on the same server


def test_nothing_unasked_is_sent_to_a_peer_of_the_document(tools: Peer) -> None:
    """S-196, S-197: they are extensions of a later version."""
    tools.ask(request("count", "tools/call", name="count", arguments={}, _meta={"progressToken": 1}))
    tools.ask(call("grow", "grow"))
    tools.ask(LIST)
    assert [set(frame) & {"method"} for frame in tools.seen] == [set()] * len(tools.seen)
    assert tools.ask(INITIALIZE)["result"]["capabilities"]["dynamicToolRegistration"] is True


def test_a_dated_handshake_gets_mcp_with_progress_and_errors_as_results(workshop: Workshop) -> None:
    """S-196, S-197: notifications and progress."""
    peer = workshop.serve(TOOLS, "--dialect", "bb")
    answer = peer.start("2025-11-25")
    assert answer["result"]["protocolVersion"] == "2025-11-25"
    assert answer["result"]["capabilities"]["tools"] == {"listChanged": True}
    peer.ask(request("count", "tools/call", name="count", arguments={}, _meta={"progressToken": 1}))
    assert peer.notice("notifications/progress")["params"]["progress"] == 1
    assert peer.ask(call("refuse", "refuse"))["result"]["isError"] is True
    assert peer.ask(request("ping", "ping"))["result"] == {}
    peer.ask(call("grow", "grow"))
    peer.notice("notifications/tools/list_changed")


def test_a_call_of_a_dated_session_can_be_cancelled(workshop: Workshop) -> None:
    """S-198."""
    peer = workshop.serve(TOOLS, "--dialect", "bb")
    peer.start("2025-11-25")
    peer.send(call("hold", "hold"), notification("notifications/cancelled", requestId="hold"))
    peer.ask(request("ping", "ping"))
    peer.close_input()
    assert peer.process.wait(30) == 0
    assert [frame["id"] for frame in peer.read_all()] == []
    assert "hold" not in [frame.get("id") for frame in peer.seen]


def test_a_batch_is_taken_after_a_handshake_of_2025_03_26(workshop: Workshop) -> None:
    """S-200."""
    peer = workshop.serve(TOOLS, "--dialect", "bb")
    peer.start("2025-03-26")
    peer.send([request(1, "ping"), request(2, "ping")])
    answers = peer.receive(lambda frame: isinstance(frame, list), "the batch's answer")
    assert sorted(each["id"] for each in answers) == [1, 2]  # type: ignore[call-overload]


def test_a_request_that_names_2026_07_28_gets_mcp_at_any_time(server: Peer) -> None:
    for _ in range(2):
        result = server.ask(modern(call("modern", "hello", name="World")))["result"]
        assert result["resultType"] == "complete"
        server.ask(INITIALIZE)


def test_an_unknown_version_gets_a_dated_handshake(server: Peer) -> None:
    assert server.ask(initialize("7.0"))["result"]["protocolVersion"] == "2025-11-25"


def test_a_notification_is_never_answered(server: Peer) -> None:
    """S-196."""
    server.send(notification("notifications/initialized"), notification("nope"))
    server.ask(INITIALIZE)
    assert len(server.seen) == 1


def test_profile_and_command_are_one(workshop: Workshop) -> None:
    peer = workshop.serve(None, "--profile", "bb")
    assert peer.ask(INITIALIZE) == INITIALIZED
    missing = workshop.run([*LONGSHORE, "serve", "--profile", "nope"])
    assert missing.returncode == 2
    assert b"no profile 'nope'; there are" in missing.stderr
