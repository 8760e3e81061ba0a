"""bb-mcp-server over HTTP and as lines on its port, with real MCP clients on the same process."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from http_process.serverproc import ServerProcess, start
from http_process.test_lines import Lines
from interop.http_peer import connect_to
from interop.peer import ERAS, run, text
from longshore import SyncClient
from posting import Session, ask_modern, call, encode, request

from .document import CALL, CALLED, INITIALIZE, INITIALIZED, LIST
from .test_document import COMMAND, TOOLS


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with start(None, argv=(COMMAND, "--http", "--port", "0", "--lines")) as process:
        yield process


def post(server: ServerProcess, message: Any, *headers: tuple[str, str]) -> tuple[int, Any, dict[str, str]]:
    body = message if isinstance(message, bytes) else encode(message)
    exchange = server.send("POST", "/mcp", headers, body).finish()
    return exchange.status, json.loads(exchange.body), exchange.headers


def test_the_handshake_gives_a_session_that_the_document_is_spoken_in(server: ServerProcess) -> None:
    status, answer, headers = post(server, INITIALIZE)
    assert (status, answer) == (200, INITIALIZED)
    session = ("Mcp-Session-Id", headers["mcp-session-id"])
    assert post(server, CALL, session)[:2] == (200, CALLED)
    assert post(server, CALL, session, ("MCP-Protocol-Version", "1.0"))[:2] == (200, CALLED)
    status, answer, _ = post(server, call("nonexistent", id=4), session)
    assert (status, answer["error"]["code"]) == (200, -32000)


@pytest.mark.parametrize(
    ("message", "code"),
    [(LIST, -32003), (CALL, -32003), (request("ping"), -32601), (b"{no json", -32700), ([LIST], -32600)],
    ids=["list", "call", "unknown method", "no JSON", "array"],
)
def test_a_request_without_a_session_is_refused_with_the_code_of_the_document(
    server: ServerProcess, message: Any, code: int
) -> None:
    status, answer, headers = post(server, message)
    assert (status, answer["error"]["code"]) == (400, code)
    assert "mcp-session-id" not in headers


def test_lines_on_the_port_speak_the_document(server: ServerProcess) -> None:
    with Lines(server) as lines:
        lines.say(LIST)
        assert lines.hear()["error"]["code"] == -32003
        lines.say(INITIALIZE, CALL)
        assert [lines.hear(), lines.hear()] == [INITIALIZED, CALLED]


def test_dated_clients_get_mcp_from_the_same_process(server: ServerProcess) -> None:
    assert Session(server).open().call("hello", name="World") == "Hello, World!"  # type: ignore[arg-type]
    assert ask_modern(server, call("hello", {"name": "World"})).status == 200  # type: ignore[arg-type]
    with SyncClient(server.url) as client:
        assert client.call_tool("hello", {"name": "World"}).text == "Hello, World!"


@pytest.mark.parametrize("mode", ERAS)
def test_the_official_client_gets_mcp_from_the_same_process(server: ServerProcess, mode: str) -> None:
    async def main() -> None:
        async with connect_to(server.url, mode) as client:
            assert text(await client.call_tool("hello", {"name": "World"})) == "Hello, World!"
            assert (await client.call_tool("hello", {})).is_error

    run(main)


def test_a_dated_session_gets_a_stream_of_what_comes_before_the_answer() -> None:
    """S-199."""
    with start(TOOLS, "--dialect", "bb") as server:
        session = Session(server).open()  # type: ignore[arg-type]
        answer = session.post(call("count", {}, progressToken=1)).finish()
        assert answer.type == "text/event-stream"
        assert answer.messages[0]["method"] == "notifications/progress"
        assert answer.messages[-1]["result"]["content"][0]["text"] == "counted"


def test_a_stored_session_ends_where_the_dialect_is_no_longer_spoken(tmp_path: Path) -> None:
    store = ("--store", f"sqlite:///{tmp_path}/sessions.db")
    with start(TOOLS, "--dialect", "bb", *store) as server:
        session = ("Mcp-Session-Id", post(server, INITIALIZE)[2]["mcp-session-id"])
    with start(TOOLS, "--dialect", "bb", *store) as server:
        assert post(server, call("refuse"), session)[1]["error"]["code"] == -32001
    with start(TOOLS, *store) as server:
        status, answer, _ = post(server, LIST, session)
        assert (status, answer["error"]["code"]) == (404, -32600)


def test_rest_does_not_know_the_dialect(server: ServerProcess) -> None:
    exchange = server.send("POST", "/tools/nope", [("Content-Type", "application/json")], b"{}").finish()
    assert exchange.status == 404
    assert json.loads(exchange.body)["error"]["kind"] == "unknown_tool"
