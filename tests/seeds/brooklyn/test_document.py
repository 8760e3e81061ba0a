"""Statements S-2 to S-30: Brooklyn's protocol guide, said to the server of its entry point on stdio."""

from __future__ import annotations

import json
import re
import subprocess
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest

from process.conftest import Workshop
from process.peer import Peer, call, failed, initialize, modern, notification, request, text_of
from seeds.browseros.conftest import page as page
from services import need_command
from toolsets.browser.conftest import browser_path as browser_path
from toolsets.browser.conftest import serve_pages as serve_pages
from waiting import PATIENCE

from . import document
from .document import LIST, SERVER, STATUS, read

TOOLS = """
import asyncio
from longshore import CallResult, Context, Image, ResourceLink, Server, Text, Tool, ToolError

app = Server("mine")

@app.tool
def launch_browser(headless: bool = True, browserType: str = "chromium") -> str:
    raise ToolError("Browser launch timeout")

@app.tool
def give() -> dict[str, object]:
    return {"success": True, "browserId": "browser-123", "metadata": {"tabs": [1, 2], "title": "Pläne \\u2028 {}"}}

@app.tool
def link() -> ResourceLink:
    return ResourceLink(
        "file:///path/to/resource", "Filename", mime_type="text/plain", description="Resource description"
    )

@app.tool
def picture() -> Image:
    return Image(data=b"\\x89PNG", mime_type="image/png")

def shaped(arguments, ctx):
    return CallResult([Text("one"), Image(b"\\x89PNG"), Text("two")], {"success": True}, meta={"mine/key": 1})

app.add_tool(Tool(name="shaped", input_schema={"type": "object"}), shaped)

@app.tool(timeout=0.1)
async def hold() -> str:
    await asyncio.sleep(600)

@app.tool
def crash() -> str:
    raise ValueError("secret")

@app.tool
def flood() -> str:
    return "x" * (64 << 20)

@app.tool
async def count(ctx: Context) -> str:
    print("to stdout")
    await ctx.progress(1, 2)
    await ctx.error("half")
    return "counted"

@app.tool(run="inline")
def grow() -> str:
    app.disable("give")
    return "changed"
"""


@pytest.fixture
def server(workshop: Workshop) -> Peer:
    """`brooklyn mcp start`, in a folder of its own."""
    return workshop.spawn(*SERVER)


@pytest.fixture
def tools(workshop: Workshop) -> Peer:
    """A server of other tools, in the dialect."""
    return workshop.serve(TOOLS, "--dialect", "brooklyn")


def object_of(answer: dict[str, Any]) -> dict[str, Any]:
    """The object that a Brooklyn tool returned: one item of text in an answer that has nothing else."""
    assert set(answer) == {"jsonrpc", "id", "result"} and set(answer["result"]) == {"content"}, answer
    [item] = answer["result"]["content"]
    assert set(item) == {"type", "text"} and item["type"] == "text"
    found: dict[str, Any] = json.loads(item["text"])
    return found


def error_of(answer: dict[str, Any]) -> dict[str, Any]:
    assert set(answer) == {"jsonrpc", "id", "error"}, answer
    error: dict[str, Any] = answer["error"]
    return error


# -- the examples


def test_a_browser_is_launched_as_the_document_shows(server: Peer, browser_path: str) -> None:
    """S-2, S-3, S-5, S-6, S-7, S-8, S-14, S-24, S-25, S-27, S-30."""
    answer, example = server.ask(read("call_request")), read("call_response")
    found, shown = object_of(answer), object_of(example)
    assert answer["id"] == example["id"]
    assert found.keys() >= shown.keys() and found["success"] is shown["success"]
    assert isinstance(found["browserId"], str)
    assert server.call("close_browser", browserId=found["browserId"])


def test_the_tools_own_object_is_never_the_result(server: Peer) -> None:
    """S-4, S-24: the document's example of what is wrong."""
    wrong = read("raw_response")["result"]
    assert "success" in wrong and "content" not in wrong
    assert not set(server.ask(STATUS)["result"]) & set(wrong)


def test_the_piped_line_of_the_document_is_answered_and_logs_go_to_stderr(workshop: Workshop) -> None:
    """S-12, S-20, S-21, S-30: without initialize, at level debug."""
    script = document.text_of("manual_test.sh")
    env = document.with_scripts(workshop.env)
    done = subprocess.run(
        ["sh", "-eu", "-c", script], cwd=workshop.folder, env=env, capture_output=True, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stderr
    [line] = done.stdout.splitlines()
    found = object_of(json.loads(line))
    assert (found["success"], found["name"]) == (True, "brooklyn")
    records = [json.loads(line) for line in done.stderr.splitlines()]
    assert "request_received" in [each["type"] for each in records if each["level"] == "debug"]


def test_the_line_of_the_document_is_the_one_that_is_tested_elsewhere() -> None:
    assert json.dumps(STATUS, separators=(",", ":")) in document.text_of("manual_test.sh")


def test_a_failed_tool_is_the_error_of_the_document(tools: Peer) -> None:
    """S-19."""
    assert tools.ask(read("call_request")) == read("error_response")


def test_each_kind_of_content_is_as_the_document_shows(tools: Peer) -> None:
    """S-6, S-8, S-9, S-10."""
    assert tools.call("link")["result"]["content"] == [read("resource_link")]
    [picture] = tools.call("picture")["result"]["content"]
    assert picture == read("image") | {"data": "iVBORw=="}
    assert set(tools.call("count")["result"]["content"][0]) == set(read("text"))


def test_a_screenshot_is_text_an_image_and_a_link_that_can_be_read(server: Peer, page: str) -> None:
    """S-7, S-9, S-10, S-104: all without a handshake."""
    assert json.loads(text_of(server.call("navigate_to_url", 1, url=page)))["status"] == 200
    said, picture, link = server.call("take_screenshot", 2, returnFormat="base64_thumbnail")["result"]["content"]
    assert picture.keys() == read("image").keys() and picture["mimeType"] == read("image")["mimeType"]
    assert link["type"] == "resource_link" and link.keys() >= read("resource_link").keys() - {"description"}
    found = json.loads(said["text"])
    assert (found["success"], found["uri"], found["name"]) == (True, link["uri"], link["name"])
    [contents] = server.ask(request(3, "resources/read", uri=link["uri"]))["result"]["contents"]
    assert b64decode(contents["blob"]).startswith(b"\x89PNG")


def test_an_object_becomes_the_content_that_the_documents_function_makes(tools: Peer, tmp_path: Path) -> None:
    """S-7, S-18: its function, with types stripped, is run on the same object."""
    program = re.sub(r": (?:any|MCPToolResponse)\b", "", document.text_of("to_mcp_response.ts"))
    result = tools.call("give")["result"]
    given = json.loads(result["content"][0]["text"])
    assert given.keys() == set(re.findall(r"(\w+): ", document.text_of("tool_result.ts")))
    path = tmp_path / "program.mjs"
    path.write_text(f"{program}\nconsole.log(JSON.stringify(toMCPResponse({json.dumps(given)})));\n")
    argv = [need_command("node", "nodejs"), str(path)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert result["content"] == json.loads(done.stdout)["content"]


# -- results and failures


def test_a_result_that_has_the_form_of_mcp_is_not_changed(tools: Peer) -> None:
    """S-26."""
    assert tools.call("shaped")["result"] == {
        "content": [
            {"type": "text", "text": "one"},
            {"type": "image", "data": "iVBORw==", "mimeType": "image/png"},
            {"type": "text", "text": "two"},
        ],
        "structuredContent": {"success": True},
        "_meta": {"mine/key": 1},
    }


def test_every_failure_of_a_tool_that_ran_is_the_documents_error(tools: Peer) -> None:
    """S-19, C-6, C-18: a time limit too, as in its example; the text of an exception is masked."""
    for id, (name, says) in enumerate({"crash": "crash", "hold": "0.1 s", "flood": "bytes"}.items()):
        error = error_of(tools.call(name, id))
        assert (error["code"], error["message"]) == (-32603, "Tool execution failed")
        assert error["data"].keys() == {"toolName", "error"} and error["data"]["toolName"] == name
        assert says in error["data"]["error"] and "secret" not in json.dumps(error)


def test_a_call_that_reaches_no_tool_is_answered_as_in_mcp(tools: Peer) -> None:
    """S-11, C-9, C-10: of which the documents say nothing."""
    assert error_of(tools.call("nothing"))["code"] == -32602
    wrong = tools.call("launch_browser", headless="yes")
    assert failed(wrong) and "headless" in text_of(wrong)
    assert error_of(tools.ask(request(1, "tools/call", name=7)))["code"] == -32602
    assert failed(tools.ask(request(2, "tools/call", name="give", arguments=[1])))


# -- the status


def test_the_status_says_whether_the_server_works(workshop: Workshop) -> None:
    """S-30: with what is unavailable, and more for detail=full; teams are not there."""
    server = workshop.spawn(*SERVER, "--set", "toolsets.browser.path=/no/such/browser")
    found = object_of(server.ask(STATUS))
    assert (found["success"], found["status"]) == (True, "degraded")
    assert "/no/such/browser" in found["unavailable"]["browser"]
    assert found["tools"] == 4 and found["uptimeSeconds"] >= 0
    full = object_of(server.call("brooklyn_status", detail="full"))
    assert full["server"]["version"] == found["version"]
    assert "no teams" in object_of(server.call("brooklyn_status", detail="teams"))["notice"]


def test_the_status_can_be_asked_of_the_built_in_server_and_is_in_no_list_there(workshop: Workshop) -> None:
    server = workshop.serve()
    server.start()
    names = [tool["name"] for tool in server.ask(LIST)["result"]["tools"]]
    assert "brooklyn_status" not in names
    assert json.loads(text_of(server.call("brooklyn_status")))["name"] == "longshore"


# -- messages


def test_lines_may_come_in_pieces_and_several_at_once(server: Peer) -> None:
    """S-11, S-13."""
    line = json.dumps(STATUS).encode() + b"\n"
    assert server.process.stdin is not None
    for piece in (line[:20], line[20:50], line[50:] + line.replace(b'"id": 1', b'"id": 2')):
        server.process.stdin.write(piece)
        server.process.stdin.flush()
    assert object_of(server.answer(1))["success"] and object_of(server.answer(2))["success"]


def test_nothing_but_messages_goes_to_stdout_and_nothing_unasked(tools: Peer) -> None:
    """S-12: neither what a tool prints, nor its log, nor changes of the list."""
    assert text_of(tools.call("count")) == "counted"
    tools.call("grow")
    tools.close_input()
    tools.read_all()
    assert "to stdout" in tools.stderr
    assert all("method" not in frame for frame in tools.seen)


def test_progress_and_log_messages_come_where_they_are_asked_for(tools: Peer) -> None:
    """S-11."""
    asked = call(1, "count")
    asked["params"]["_meta"] = {"progressToken": "mine"}
    assert text_of(tools.ask(asked)) == "counted"
    assert tools.notice("notifications/progress")["params"]["progressToken"] == "mine"
    assert tools.ask(request(2, "logging/setLevel", level="error"))["result"] == {}
    tools.call("count", 3)
    assert tools.notice("notifications/message")["params"]["data"] == "half"


def test_a_notification_is_not_answered(server: Peer) -> None:
    """S-11."""
    server.send(notification("tools/list"), notification("brooklyn/unknown"))
    server.ask(STATUS)
    assert [frame["id"] for frame in server.seen] == [1]


@pytest.mark.parametrize(
    ("message", "code", "id"),
    [
        (b"{no json", -32700, None),
        ({"jsonrpc": "1.0", "method": "tools/list", "id": 1}, -32600, 1),
        ({"jsonrpc": "2.0", "method": "tools/list", "id": None}, -32600, None),
        ([STATUS], -32600, None),
        (request(1, "brooklyn/unknown"), -32601, 1),
        ({"jsonrpc": "2.0", "method": "tools/list", "params": [1], "id": 1}, -32602, 1),
    ],
    ids=["no JSON", "not 2.0", "null id", "batch", "method", "array params"],
)
def test_malformed_messages_have_the_codes_of_json_rpc(server: Peer, message: Any, code: int, id: Any) -> None:
    """S-11, S-29: stdio is strict."""
    server.send(message)
    answer = server.receive(lambda frame: frame.get("id", "none") == id, "the error")
    assert error_of(answer)["code"] == code


def test_the_rest_of_mcp_is_there_without_a_handshake(server: Peer) -> None:
    """S-11: resources, by which the link of a screenshot is read, and ping."""
    assert server.ask(request(1, "ping"))["result"] == {}
    templates = server.ask(request(2, "resources/templates/list"))["result"]["resourceTemplates"]
    assert any(each["uriTemplate"].startswith("artifact:") for each in templates)


# -- who gets what


def test_a_handshake_gets_mcp(server: Peer) -> None:
    """S-11, S-86, S-87: the standard list, with the schema under both keys; a failed tool is a result."""
    server.ask(STATUS)
    for version in ("2024-11-05", "2025-11-25"):
        assert server.ask(initialize(version))["result"]["protocolVersion"] == version
        listed = server.ask(LIST)["result"]["tools"]
        assert "browser_navigate" in [tool["name"] for tool in listed]
        assert "launch_browser" not in [tool["name"] for tool in listed]
        assert all(tool["inputSchema"] == tool["input_schema"] for tool in listed)
        assert failed(server.call("navigate_to_url", url="file:///"))


def test_a_request_that_names_2026_07_28_gets_mcp(server: Peer) -> None:
    assert server.ask(modern(call(1, "brooklyn_status")))["result"]["resultType"] == "complete"
    assert failed(server.ask(modern(call(2, "navigate_to_url", url="file:///"))))
    assert error_of(server.ask(call(3, "navigate_to_url", url="file:///")))["code"] == -32603


def test_profile_and_command_are_one(workshop: Workshop) -> None:
    """S-21."""
    mine, theirs = workshop.serve(None, "--profile", "brooklyn"), workshop.spawn(*SERVER)
    assert mine.ask(initialize())["result"] == theirs.ask(initialize())["result"]
    assert mine.ask(LIST) == theirs.ask(LIST)
