"""Statements S-122 to S-154: the ContextGraph document, said to the server of its entry point."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from process.conftest import Workshop
from process.peer import Peer, call, failed, modern, notification, request, text_of
from waiting import PATIENCE

from .document import CODES, COMMAND, read
from .test_pages import PAGE

TOOLS = """
import asyncio
from longshore import Contents, Context, EmbeddedResource, Image, Server, ToolError

app = Server("contextgraph-ghost", version="1.0.0")

@app.tool
def refuse() -> str:
    raise ToolError("Query too broad, please be more specific")

@app.tool
async def hold() -> str:
    await asyncio.sleep(600)

@app.tool
def flood() -> str:
    return "x" * (64 << 20)

@app.tool
def pixel() -> Image:
    return Image(data=b"\\x89PNG", mime_type="image/png")

@app.tool
async def count(ctx: Context) -> str:
    print("to stdout")
    await ctx.progress(1, 2)
    return "one\\ntwo"

@app.tool
def note() -> EmbeddedResource:
    return EmbeddedResource(Contents("file:///note.txt", text="noted"))

@app.resource("note://crash")
def crashing() -> str:
    raise RuntimeError("secret")

@app.tool(run="inline")
def crash() -> str:
    raise RuntimeError("secret")
"""


@pytest.fixture
def database(workshop: Workshop) -> Path:
    """The store that `CONTEXTGRAPH_DB` names."""
    path = workshop.folder / "graph" / "context.db"
    path.parent.mkdir()
    workshop.env["CONTEXTGRAPH_DB"] = str(path)
    return path


@pytest.fixture
def server(workshop: Workshop, database: Path) -> Peer:
    """The document's server, after its handshake."""
    peer = workshop.spawn(COMMAND)
    assert peer.ask(read("initialize_request")) == read("initialize_response")
    peer.send(read("initialized"))
    return peer


@pytest.fixture
def tools(workshop: Workshop) -> Peer:
    """A server of its own tools, after the handshake of the document."""
    peer = workshop.serve(TOOLS, "--dialect", "ghost")
    peer.ask(read("initialize_request"))
    peer.send(read("initialized"))
    return peer


def code_of(answer: dict[str, Any]) -> int:
    """The code of an error, which has the fields of the document's example, with data as an object (S-129)."""
    error = answer["error"]
    assert set(answer) == set(read("error")) and set(error) == set(read("error")["error"]), answer
    assert error["message"] and isinstance(error["data"], dict), answer
    code: int = error["code"]
    return code


# -- the examples


def test_the_handshake_of_the_document_is_answered_as_it_says(server: Peer) -> None:
    """S-123, S-127, S-128, S-131, S-132, S-133, S-134, S-135, S-151, S-154: each with its answer."""
    assert server.ask(read("list_request")) == read("list_response")


def test_an_empty_graph_says_so_as_json_text(server: Peer) -> None:
    """S-136, S-137, S-152: content and isError false."""
    answer = server.ask(read("call_request"))
    assert set(answer["result"]) == set(read("call_response")["result"])
    assert answer["result"]["isError"] is False and answer["id"] == 3
    assert json.loads(text_of(answer))["hits"] == []


def test_what_is_known_is_found_in_the_database_of_the_variable(server: Peer, database: Path) -> None:
    """S-136, S-140, S-152: `add_context` is in the list of other peers, and can be called here too."""
    item = {"kind": "decision", "name": "Login", "text": "Authentication patterns: OAuth with PKCE."}
    assert not failed(server.call("add_context", items=[item]))
    answer = server.ask(read("call_request"))
    [hit] = json.loads(text_of(answer))["hits"]
    assert hit["name"] == "Login"
    assert database.is_file()


def test_a_failed_tool_is_a_result_with_is_error(tools: Peer) -> None:
    """S-138."""
    example = read("tool_error")["result"]
    answer = tools.call("refuse")
    assert set(answer["result"]) == set(example) and answer["result"]["isError"] is True
    assert text_of(answer) in example["content"][0]["text"]


def test_the_entry_of_the_document_starts_the_server(workshop: Workshop, tmp_path: Path) -> None:
    """S-140, with our command in the place of its Node server."""
    entry = read("mcp_config")["mcpServers"]["contextgraph-ghost"]
    assert entry["type"] == "stdio"
    workshop.env |= {key: str(tmp_path / "from-config.db") for key in entry["env"]}
    peer = workshop.spawn(COMMAND)
    peer.ask(read("initialize_request"))
    peer.ask(read("call_request"))
    assert (tmp_path / "from-config.db").is_file()


def test_the_entry_of_our_page_starts_the_server_by_its_command_and_args(workshop: Workshop, tmp_path: Path) -> None:
    """S-140: `.mcp.json` as docs/seeds.md has it, with a store of the test."""
    section = PAGE.read_text(encoding="utf-8").partition("\n## ContextGraph\n")[2]
    entry = json.loads(section.partition("```json\n")[2].partition("```")[0])["mcpServers"]["contextgraph-ghost"]
    assert (entry["type"], set(entry["env"])) == ("stdio", {"CONTEXTGRAPH_DB"})
    workshop.env |= {"CONTEXTGRAPH_DB": str(tmp_path / "from-page.db"), "PATH": str(Path(COMMAND).parent)}
    peer = workshop.spawn("/usr/bin/env", entry["command"], *entry.get("args", ()))
    assert peer.ask(read("initialize_request")) == read("initialize_response")
    peer.ask(read("call_request"))
    assert (tmp_path / "from-page.db").is_file()


# -- messages


def test_text_that_is_no_json_is_a_parse_error_without_an_id(server: Peer) -> None:
    """S-143, S-153."""
    for line in (b"hello", b'{"a": "\xff"}', b"{"):
        server.send(line)
        answer = server.receive(lambda frame: frame.get("id", "none") is None, "a parse error")
        assert code_of(answer) == CODES["parse error"]


def test_an_invalid_request_an_unknown_method_and_wrong_parameters_have_their_codes(server: Peer) -> None:
    """S-129, S-144, S-145, S-147, S-154."""
    server.send({"jsonrpc": "1.0", "id": 5, "method": "tools/list"})
    assert code_of(server.answer(5)) == CODES["invalid request"]
    assert code_of(server.ask(request(6, "method/name"))) == CODES["method not found"]
    assert code_of(server.ask(call(7, "query_context"))) == CODES["invalid params"]
    assert code_of(server.ask(call(8, "query_context", query=5))) == CODES["invalid params"]
    assert code_of(server.ask(call(9, "nothing"))) == CODES["invalid params"]
    assert (
        code_of(server.ask(request(10, "tools/call", name="query_context", arguments=[1]))) == CODES["invalid params"]
    )


def test_a_handshake_without_a_version_is_refused(workshop: Workshop) -> None:
    """S-131, S-147."""
    peer = workshop.spawn(COMMAND)
    answer = peer.ask(request(1, "initialize", capabilities={}))  # as in MCP: it is no peer of the dialect yet
    assert answer["error"]["code"] == CODES["invalid params"]


def test_a_notification_is_not_answered(server: Peer) -> None:
    """S-130: whatever it is."""
    server.send(notification("notifications/initialized"), notification("tools/list"), notification("method/name"))
    server.ask(read("list_request"))
    assert [frame["id"] for frame in server.seen if "id" in frame] == [1, 2]


def test_every_line_is_one_message_and_logs_go_to_stderr(tools: Peer) -> None:
    """S-123, S-124, S-142: what a tool prints is no message."""
    answer = tools.call("count")
    assert text_of(answer) == "one\ntwo"
    tools.close_input()
    tools.read_all()
    assert "to stdout" in tools.stderr
    assert all(frame["jsonrpc"] == "2.0" for frame in tools.seen)


def test_a_cancelled_request_is_answered_with_its_code(tools: Peer) -> None:
    """S-148."""
    tools.send(call("held", "hold"))
    tools.send(notification("notifications/cancelled", requestId="held"))
    assert code_of(tools.answer("held")) == CODES["request cancelled"]
    assert not failed(tools.call("count"))


def test_a_result_over_the_limit_is_answered_with_its_code(tools: Peer) -> None:
    """S-149."""
    assert code_of(tools.call("flood")) == CODES["content too large"]
    assert not failed(tools.call("count"))


def test_what_is_found_may_exceed_a_limit_that_is_configured(workshop: Workshop, database: Path) -> None:
    """S-149, C-17: the document's server with `limits.frame_bytes` as its only setting."""
    peer = workshop.spawn(COMMAND, "--set", "limits.frame_bytes=3000")
    peer.ask(read("initialize_request"))
    for n in range(5):
        item = {"kind": "fact", "name": f"Login {n}", "text": f"Authentication pattern {n}: {'detail ' * 80}"}
        assert not failed(peer.call("add_context", items=[item]))
    answer = peer.ask(read("call_request"))
    assert code_of(answer) == CODES["content too large"]
    assert "the limit is 3,000" in answer["error"]["message"]


def test_an_exception_is_a_tool_error_without_its_text(tools: Peer) -> None:
    """S-138. That of a resource is -32603, as in MCP (S-147)."""
    answer = tools.call("crash")
    assert failed(answer) and "secret" not in json.dumps(answer)
    answer = tools.ask(request(2, "resources/read", uri="note://crash"))
    assert code_of(answer) == CODES["internal error"] and "secret" not in json.dumps(answer)


def test_content_has_the_types_of_the_document(tools: Peer) -> None:
    """S-150: an image and a resource; text is in the examples."""
    [image] = tools.call("pixel")["result"]["content"]
    assert image == {"type": "image", "data": "iVBORw==", "mimeType": "image/png"}
    [note] = tools.call("note")["result"]["content"]
    assert note == {"type": "resource", "resource": {"uri": "file:///note.txt", "text": "noted"}}


# -- who gets what


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26"])
def test_handshakes_up_to_2025_03_26_get_the_dialect(workshop: Workshop, database: Path, version: str) -> None:
    """S-132: listChanged is true, for a change of the configuration changes the tools."""
    peer = workshop.spawn(COMMAND)
    result = peer.start(version, roots={})["result"]
    assert result == read("initialize_response")["result"] | {"protocolVersion": version}
    assert [tool["name"] for tool in peer.ask(read("list_request"))["result"]["tools"]] == ["query_context"]


def test_tools_that_never_change_are_declared_so(workshop: Workshop) -> None:
    """S-146."""
    peer = workshop.serve(f"{TOOLS}\napp.catalog.closed = True\n", "--dialect", "ghost")
    assert peer.start("2025-03-26")["result"]["capabilities"] == {"tools": {"listChanged": False}}


@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25"])
def test_later_handshakes_get_mcp(workshop: Workshop, database: Path, version: str) -> None:
    peer = workshop.spawn(COMMAND)
    result = peer.start(version)["result"]
    assert result["protocolVersion"] == version and "resources" in result["capabilities"]
    assert len(peer.ask(read("list_request"))["result"]["tools"]) == 7
    assert "isError" not in peer.ask(read("call_request"))["result"]


def test_a_request_that_names_2026_07_28_gets_mcp(server: Peer) -> None:
    answer = server.ask(modern(request(1, "tools/list")))
    assert len(answer["result"]["tools"]) == 7
    assert failed(server.ask(modern(call(2, "query_context"))))
    assert code_of(server.ask(call(3, "query_context"))) == CODES["invalid params"]


def test_a_peer_of_the_dialect_gets_the_rest_of_its_revision(workshop: Workshop, database: Path) -> None:
    """S-122: resources, prompts, and batches, which only 2025-03-26 has."""
    messages = [read("initialize_request"), read("initialized"), [request(4, "ping"), read("list_request")]]
    ended = workshop.run([COMMAND], *messages, request(5, "resources/list"), request(6, "prompts/list"))
    answers = [json.loads(line) for line in ended.stdout.splitlines()]
    batch = next(answer for answer in answers if isinstance(answer, list))
    assert {answer["id"] for answer in batch} == {4, 2}
    single = {answer["id"]: answer["result"] for answer in answers if isinstance(answer, dict)}
    assert any(each["uri"] == "context://recent" for each in single[5]["resources"])
    assert [each["name"] for each in single[6]["prompts"]] == ["load_context"]


def test_each_request_of_its_peers_is_recorded_once(workshop: Workshop, database: Path) -> None:
    """Its document asks for no telemetry; that of bb-mcp-server is there in every dialect."""
    lines = "".join(f"{json.dumps(read(name))}\n" for name in ("initialize_request", "initialized", "list_request"))
    argv = [COMMAND, "--log-level", "debug", "--set", "server.log_format=json"]
    done = subprocess.run(
        argv, input=lines, cwd=workshop.folder, env=workshop.env, capture_output=True, text=True, timeout=PATIENCE
    )
    records = [json.loads(line) for line in done.stderr.splitlines()]
    for kind in ("request_received", "request_completed"):
        assert [each["method"] for each in records if each["type"] == kind] == ["initialize", "tools/list"]
