"""Statements of BrowserOS's document on requests and answers, said to the server of its entry point on stdio."""

from __future__ import annotations

import json
from typing import Any

import pytest

from process.conftest import Workshop
from process.peer import Peer, call, modern, notification, request

from .document import SERVER, TITLE, error_of, read

TOOLS = """
import asyncio
from longshore import Context, Image, Server, ToolError

app = Server("mine")
go = asyncio.Event()

@app.tool
async def wait(ctx: Context) -> str:
    await ctx.progress(1, 2)
    await ctx.error("half")
    await go.wait()
    return "waited"

@app.tool
async def release() -> str:
    go.set()
    return "ok"

@app.tool(timeout=0.1)
async def hold() -> str:
    await asyncio.sleep(600)

@app.tool
def refuse() -> str:
    raise ToolError("not today")

@app.tool
def crash() -> str:
    raise ValueError("secret")

@app.tool(replay=True)
async def ask(ctx: Context) -> str:
    return str(await ctx.elicit("really?", bool, key="really"))

@app.tool
def add(a: int, b: int) -> int:
    return a + b

@app.tool
def pair() -> list[int]:
    return [1, 2]

@app.tool
def person() -> dict[str, str]:
    return {"name": "x"}

@app.tool
def pixel() -> Image:
    return Image(data=b"\\x89PNG", mime_type="image/png")

@app.tool(run="inline")
def grow() -> str:
    app.disable("pair")
    return "changed"
"""


@pytest.fixture
def tools(workshop: Workshop) -> Peer:
    """A server of other tools, in the dialect."""
    return workshop.serve(TOOLS, "--dialect", "browseros")


def result_of(answer: dict[str, Any]) -> Any:
    assert set(answer) == {"jsonrpc", "id", "result"}, answer
    return answer["result"]


# -- the examples


def test_the_tools_are_listed_as_the_document_shows(server: Peer) -> None:
    """S-39, S-40, S-41, S-45."""
    assert server.ask(read("list_request.json")) == read("list_response.json")


def test_a_ping_is_answered_as_the_document_shows(server: Peer) -> None:
    """S-44, S-45."""
    assert server.ask(read("ping_request.json")) == read("ping_response.json")


def test_a_page_is_loaded_as_the_document_shows(server: Peer, page: str) -> None:
    """S-34, S-35, S-42, S-43, S-45."""
    answer, example = server.ask(read("browser_request.json", page)), read("browser_response.json", page)
    shown, found = example["result"].pop("result"), result_of(answer).pop("result")
    assert answer == example
    assert {key: found[key] for key in shown} == shown
    first = server.ask(read("call_request.json", page))["result"]
    assert first["tool"] == "browser"
    assert first["result"]["title"] == TITLE
    assert "\nFor use in examples\n" in first["result"]["content"]  # between the lines that label a page's text


def test_the_load_of_a_page_is_waited_for_unless_the_call_says_otherwise(server: Peer, hanging: str) -> None:
    """S-42: the load does not end while the page's image is not there."""
    given = server.ask(call(1, "browser", url=hanging, wait_for_load=False))["result"]["result"]
    assert (given["status"], given["title"]) == ("success", TITLE)
    assert "still loads" not in given["content"]
    waited = server.ask(call(2, "browser", url=hanging))["result"]["result"]
    assert f"still loads: GET {hanging}/never" in waited["content"]


def test_a_page_that_is_an_error_of_its_site_is_no_success(server: Peer, page: str) -> None:
    """S-43."""
    found = server.ask(call(1, "browser", url=f"{page}missing"))["result"]["result"]
    assert found["status"] == "HTTP status 404"


def test_an_unknown_tool_is_answered_as_the_document_shows(server: Peer) -> None:
    """S-36, S-38."""
    assert server.ask(call("1", "invalid_tool")) == read("error_response.json")


def test_the_file_tool_says_that_it_succeeded_and_where(workshop: Workshop) -> None:
    """S-51."""
    server = workshop.spawn(*SERVER, "--root", str(workshop.folder))
    done = server.ask(call(1, "filesystem", action="write", path="a.txt", content="hello"))["result"]
    assert done["tool"] == "filesystem"
    assert done["result"] | {"content": ""} == {"success": True, "path": "a.txt", "content": ""}
    assert (workshop.folder / "a.txt").read_text() == "hello"
    assert "hello" in server.ask(call(2, "filesystem", action="read", path="a.txt"))["result"]["result"]["content"]
    assert error_of(server.ask(call(3, "filesystem", action="read", path="nope")))["code"] == -32001
    assert error_of(server.ask(call(4, "filesystem", action="fly", path="a")))["code"] == -32602


def test_the_terminal_runs_commands_for_who_started_the_server(server: Peer) -> None:
    """S-41, S-73: stdio callers are trusted."""
    done = server.ask(call(1, "terminal", command="echo from the shell"))["result"]
    assert done["tool"] == "terminal"
    assert "from the shell" in done["result"]["output"]


def test_a_command_beyond_the_timeout_of_its_call_is_a_timeout(server: Peer) -> None:
    """S-38: with what it had printed."""
    error = error_of(server.ask(call(1, "terminal", command="echo begun; sleep 600", timeout=0.5)))
    assert error["code"] == -32002
    assert "did not end within 0.5 s (its timeout). It had printed:\nbegun\n" in error["message"]


@pytest.mark.parametrize("last", [5, 20_000, 4_000_000])
def test_the_output_of_a_command_is_always_a_text(server: Peer, last: int) -> None:
    """S-41: what is left out can be read by a tool that the same peer may call."""
    output = server.ask(call(1, "terminal", command=f"seq 1 {last}"))["result"]["result"]["output"]
    assert output.startswith("1\n2\n") and f"\n{last}\n[c1: exit code 0" in output
    assert ("terminal_read id=c1 cursor=0" in output) is (last > 5)
    rest = server.ask(request(2, "tools/call", name="terminal_read", arguments={"id": "c1", "cursor": 0}))
    assert rest["result"]["result"].startswith("1\n2\n")


def test_a_tool_that_is_off_is_listed_as_unavailable(workshop: Workshop) -> None:
    """S-40, S-67."""
    server = workshop.spawn(*SERVER, "--set", "toolsets.terminal.enabled=false")
    listed = server.ask(read("list_request.json"))["result"]["tools"]
    assert listed == [
        {"name": "browser", "available": True},
        {"name": "filesystem", "available": True},
        {"name": "terminal", "available": False},
    ]
    error = error_of(server.ask(call(1, "terminal", command="true")))
    assert (error["code"], error["message"]) == (-32000, "Tool not found: terminal")
    assert error["data"]["available_tools"] == ["browser", "filesystem"]
    assert "it is off" in error["data"]["reason"]


def test_a_tool_of_the_document_does_not_do_what_is_off(workshop: Workshop) -> None:
    """C-28: both kinds of tools do the same work, so what holds for one holds for the other."""
    off = [f"tools.{name}.enabled=false" for name in ("fs_delete", "terminal_run", "browser_navigate")]
    server = workshop.spawn(
        *SERVER, "--root", str(workshop.folder), *(part for each in off for part in ("--set", each))
    )
    (workshop.folder / "a.txt").write_text("")
    calls = {
        "fs_delete": call(1, "filesystem", action="delete", path="a.txt"),
        "terminal_run": call(2, "terminal", command="true"),
        "browser_navigate": call(3, "browser", url="http://127.0.0.1:1/"),
    }
    for name, message in calls.items():
        assert f"{name} is off here" in error_of(server.ask(message))["message"]
    assert (workshop.folder / "a.txt").exists()


def test_a_tool_that_can_not_run_here_is_listed_as_unavailable(workshop: Workshop) -> None:
    """S-40."""
    server = workshop.spawn(*SERVER, "--set", "toolsets.browser.path=/no/such/browser")
    listed = server.ask(read("list_request.json"))["result"]["tools"]
    assert listed[0] == {"name": "browser", "available": False}


# -- JSON-RPC


def test_ids_are_echoed_as_they_came(server: Peer) -> None:
    """S-33, S-34."""
    for id in ("1", 1, 0, "", -1, "x", 2**53):
        assert server.ask(read("ping_request.json") | {"id": id})["id"] == id


@pytest.mark.parametrize(
    ("message", "code", "id"),
    [
        (b"{no json", -32700, None),
        ({"method": "ping", "id": 1}, -32600, 1),
        ({"jsonrpc": "1.0", "method": "ping", "id": 1}, -32600, 1),
        ({"jsonrpc": "2.0", "id": 1}, -32600, 1),
        ({"jsonrpc": "2.0", "method": 7, "id": 1}, -32600, 1),
        ({"jsonrpc": "2.0", "method": "ping", "id": None}, -32600, None),
        ({"jsonrpc": "2.0", "method": "ping", "id": 1.5}, -32600, None),
        ("hello", -32600, None),
        ([], -32600, None),
        ({"jsonrpc": "2.0", "method": "nope", "id": 1}, -32601, 1),
        ({"jsonrpc": "2.0", "method": "resources/list", "id": 1}, -32601, 1),
        ({"jsonrpc": "2.0", "method": "ping", "params": [], "id": 1}, -32602, 1),
        ({"jsonrpc": "2.0", "method": "tools/list", "params": "x", "id": 1}, -32602, 1),
        ({"jsonrpc": "2.0", "method": "tools/call", "id": 1}, -32602, 1),
        ({"jsonrpc": "2.0", "method": "tools/call", "params": {"name": 7}, "id": 1}, -32602, 1),
        (
            {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "browser", "arguments": []}, "id": 1},
            -32602,
            1,
        ),
        (call(1, "browser"), -32602, 1),
        (call(1, "browser", url=7), -32602, 1),
        (call(1, "browser", url="x", more=1), -32602, 1),
        (call(1, "nope"), -32000, 1),
    ],
    ids=lambda value: json.dumps(value)[:60] if not isinstance(value, bytes) else str(value),
)
def test_errors_have_the_codes_and_names_of_the_tables(server: Peer, message: Any, code: int, id: Any) -> None:
    """S-33, S-37, S-72."""
    server.send(message)
    answer = server.receive(lambda frame: frame.get("id", "none") == id, "the error")
    assert error_of(answer)["code"] == code


def test_the_failures_of_tools_have_their_codes(tools: Peer) -> None:
    """S-38, C-18."""
    refused = error_of(tools.ask(call(1, "refuse")))
    assert (refused["code"], refused["message"]) == (-32001, "Tool execution error: not today")
    crashed = error_of(tools.ask(call(2, "crash")))
    assert crashed["code"] == -32001
    assert "secret" not in crashed["message"]
    late = error_of(tools.ask(call(3, "hold")))
    assert late["code"] == -32002
    assert "0.1 s" in late["message"]
    assert error_of(tools.ask(call(4, "ask")))["code"] == -32003


def test_notifications_are_not_answered(server: Peer) -> None:
    """S-33."""
    server.send(
        notification("notifications/initialized"), notification("nope"), notification("ping"), [notification("x")]
    )
    server.ask(read("ping_request.json"))
    assert len(server.seen) == 1


def test_a_batch_is_answered_by_one_array(server: Peer) -> None:
    """S-33, C-14."""
    hello = request(4, "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={})
    server.send([request(1, "ping"), notification("x"), call(2, "nope"), 7, hello, [request(5, "ping")]])
    answers: Any = server.receive(lambda frame: isinstance(frame, list), "the batch's answer")
    assert answers[0] == {"jsonrpc": "2.0", "id": 1, "result": {"status": "ok"}}
    assert [(each["id"], error_of(each)["code"]) for each in answers[1:]] == [
        (2, -32000),
        (None, -32600),
        (4, -32600),
        (None, -32600),
    ]


def test_a_cancelled_request_is_answered_too(tools: Peer) -> None:
    """S-33: one answer each. The document has no cancellation, and so no answer that does not come."""
    tools.send(
        call(1, "wait"),
        notification("notifications/cancelled", requestId=1),
        [call(2, "wait"), request(3, "ping")],
        notification("notifications/cancelled", requestId=2),
    )
    assert error_of(tools.answer(1)) == {"code": -32001, "message": "Tool execution error: the call was cancelled"}
    both: Any = tools.receive(lambda frame: isinstance(frame, list), "the batch's answer")
    assert sorted(each["id"] for each in both) == [2, 3]


def test_answers_come_in_the_order_of_the_requests(tools: Peer) -> None:
    """S-54, C-35: a client may read one line for each that it wrote. What names 2026-07-28 is not of the dialect."""
    tools.send(call(1, "wait"), request(2, "ping"), b"no json", [request(4, "ping")], call(5, "add", a=1, b=2))
    tools.send(modern(call("go", "release")))
    tools.receive(lambda frame: isinstance(frame, dict) and frame["id"] == 5, "the last answer")
    seen = [each["id"] if isinstance(each, dict) else "batch" for each in tools.seen]
    assert sorted(seen, key=lambda id: id == "go") == [1, 2, None, "batch", 5, "go"]


def test_nothing_unasked_is_ever_sent(tools: Peer) -> None:
    """S-54, C-35: neither progress, nor log messages, nor changed lists."""
    tools.send(request(1, "tools/call", name="wait", arguments={}, _meta={"progressToken": 1}))
    tools.ask(modern(call("go", "release")))
    tools.ask(call(2, "grow"))
    tools.ask(request(3, "tools/list"))
    assert sorted((each["id"] for each in tools.seen), key=str) == [1, 2, 3, "go"]


@pytest.mark.parametrize(
    ("tool", "arguments", "value"),
    [
        ("add", {"a": 1, "b": 2}, 3),
        ("pair", {}, [1, 2]),
        ("person", {}, {"name": "x"}),
        ("release", {}, "ok"),
        ("pixel", {}, [{"type": "image", "data": "iVBORw==", "mimeType": "image/png"}]),
    ],
)
def test_the_result_is_the_value_of_the_tool(tools: Peer, tool: str, arguments: Any, value: Any) -> None:
    """S-35, S-48."""
    assert result_of(tools.ask(call(1, tool, **arguments))) == {"tool": tool, "result": value}


# -- everyone else


def test_a_handshake_gets_mcp_with_full_listings_and_errors_as_results(server: Peer) -> None:
    """S-53: as Claude Desktop talks to it."""
    assert server.ask(read("ping_request.json"))["result"] == {"status": "ok"}
    assert server.start("2025-06-18")["result"]["protocolVersion"] == "2025-06-18"
    tools = {each["name"]: each for each in server.ask(request(1, "tools/list"))["result"]["tools"]}
    assert {"fs_read", "terminal_run", "browser_navigate"} <= tools.keys()
    assert all({"name", "description", "inputSchema"} <= each.keys() for each in tools.values())
    assert server.ask(call(2, "fs_read", paths=["nope"]))["result"]["isError"] is True
    assert server.ask(request(3, "ping"))["result"] == {}


def test_a_request_that_names_2026_07_28_gets_mcp_at_any_time(server: Peer) -> None:
    for turn in range(2):
        result = server.ask(modern(call(f"modern {turn}", "filesystem", action="info")))["result"]
        assert result["resultType"] == "complete"
        assert server.ask(read("ping_request.json"))["result"] == {"status": "ok"}


def test_profile_and_module_are_one(workshop: Workshop) -> None:
    """S-52."""
    peer = workshop.serve(None, "--profile", "browseros")
    assert peer.ask(read("list_request.json")) == read("list_response.json")
