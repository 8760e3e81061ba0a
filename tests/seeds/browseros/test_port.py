"""Port 9100 of BrowserOS's document: lines, bare POSTs, MCP and REST on one port, and what needs a token there."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from http_process.serverproc import ServerProcess, start
from http_process.test_lines import Lines
from interop.http_peer import connect_to
from interop.peer import ERAS, run
from posting import Session, ask_modern, call, encode, request
from services import skip
from trusting import Trusting
from waiting import PATIENCE

from .document import SERVER, TITLE, error_of, read

PING, LIST = read("ping_request.json"), read("list_request.json")
JSON = ("Content-Type", "application/json")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("root")
    (folder / "a.txt").write_text("hello")
    return folder


@pytest.fixture(scope="module")
def server(root: Path) -> Iterator[ServerProcess]:
    with start(None, argv=(*SERVER, "--set", "http.port=0", "--root", str(root))) as process:
        yield process


def post(server: ServerProcess, message: Any, *headers: tuple[str, str]) -> tuple[int, Any, dict[str, str]]:
    body = message if isinstance(message, bytes) else encode(message)
    exchange = server.send("POST", "/mcp", headers, body).finish()
    return exchange.status, json.loads(exchange.body or b"null"), exchange.headers


def bearer(server: ServerProcess) -> tuple[str, str]:
    return "Authorization", f"Bearer {server.token}"


WRITE = call("filesystem", {"action": "write", "path": "b.txt", "content": "x"})
RUN = call("terminal", {"command": "echo hi"})
READ = call("filesystem", {"action": "read", "path": "a.txt"})


# -- bare POSTs


def test_a_bare_post_is_answered_in_the_form_of_the_document_and_begins_no_session(server: ServerProcess) -> None:
    """S-31, S-45, S-69."""
    assert post(server, PING)[:2] == (200, read("ping_response.json"))
    status, answer, headers = post(server, LIST)
    assert (status, answer) == (200, read("list_response.json"))
    assert "mcp-session-id" not in headers
    status, answer, headers = post(server, READ)
    assert (status, answer["result"]["result"]["success"]) == (200, True)
    assert "mcp-session-id" not in headers


def test_no_session_is_stored_for_bare_posts(tmp_path: Path) -> None:
    """The store holds what handshakes have begun, and nothing else."""
    path = tmp_path / "sessions.db"
    with start(None, argv=(*SERVER, "--set", "http.port=0", "--set", f"http.store=sqlite:///{path}")) as server:
        for _ in range(3):
            post(server, LIST)
        post(server, [PING])
        post(server, {"jsonrpc": "2.0", "method": "notifications/x"})
        with sqlite3.connect(path) as store:
            keys = [str(row) for table in tables(store) for row in store.execute(f"SELECT * FROM {table}")]
        assert not [key for key in keys if "session:" in key]
        Session(server).open()  # type: ignore[arg-type]
        with sqlite3.connect(path) as store:
            keys = [str(row) for table in tables(store) for row in store.execute(f"SELECT * FROM {table}")]
        assert [key for key in keys if "session:" in key]


def tables(store: Any) -> list[str]:
    return [name for (name,) in store.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]


@pytest.mark.parametrize(
    ("message", "status", "code"),
    [
        (b"{no json", 400, -32700),
        (b"", 400, -32700),
        ({"jsonrpc": "1.0", "method": "ping", "id": 1}, 400, -32600),
        (request("nope"), 200, -32601),
        (call("nope"), 200, -32000),
        (call("browser"), 200, -32602),
    ],
    ids=["no JSON", "empty", "not 2.0", "method", "tool", "arguments"],
)
def test_errors_of_bare_posts_have_the_codes_of_the_document(
    server: ServerProcess, message: Any, status: int, code: int
) -> None:
    """S-37, S-72."""
    found, answer, headers = post(server, message)
    assert (found, error_of(answer)["code"]) == (status, code)
    assert "mcp-session-id" not in headers


def test_a_bare_notification_and_a_bare_batch(server: ServerProcess) -> None:
    """S-33."""
    notified = {"jsonrpc": "2.0", "method": "notifications/x"}
    assert post(server, notified)[:2] == (202, None)
    assert post(server, [notified])[:2] == (202, None)
    assert post(server, [PING, notified])[:2] == (200, [read("ping_response.json")])


def test_a_request_that_names_a_dated_version_is_no_bare_one(server: ServerProcess) -> None:
    status, answer, _ = post(server, PING, ("MCP-Protocol-Version", "2025-06-18"))
    assert (status, answer["error"]["code"]) == (400, -32600)


def test_a_client_that_hangs_up_cancels_its_bare_call(tmp_path: Path) -> None:
    """Nobody can come back for the answer."""
    source = """
    import asyncio
    from longshore import Server
    app = Server("mine")
    ended = asyncio.Event()

    @app.tool
    async def hold() -> str:
        try:
            await asyncio.sleep(600)
        finally:
            ended.set()

    @app.tool
    async def wait() -> str:
        await ended.wait()
        return "ended"
    """
    with start(source, "--dialect", "browseros") as server:
        connection = server.connect()
        connection.send("POST", "/mcp", [JSON], encode(call("hold")))
        post(server, PING)
        connection.close()
        assert post(server, call("wait"))[1]["result"] == {"tool": "wait", "result": "ended"}


# -- everyone else


def test_handshakes_and_envelopes_get_mcp(server: ServerProcess) -> None:
    """S-31, S-71: and with it streams of events."""
    session = Session(server).open()  # type: ignore[arg-type]
    assert "hello" in session.call("fs_read", paths=["a.txt"])
    answer = ask_modern(server, call("fs_read", {"paths": ["a.txt"]}))  # type: ignore[arg-type]
    assert answer.status == 200


def test_a_dated_session_gets_a_stream_of_events() -> None:
    """S-71: what comes before an answer makes it a stream, on the same port."""
    source = """
    from longshore import Context, Server
    app = Server("mine")

    @app.tool
    async def count(ctx: Context) -> str:
        await ctx.progress(1, 2)
        return "counted"
    """
    with start(source, "--dialect", "browseros") as server:
        answer = Session(server).open().post(call("count", {}, progressToken=1)).finish()  # type: ignore[arg-type]
        assert answer.type == "text/event-stream"
        assert [each.get("method") for each in answer.messages] == ["notifications/progress", None]
        assert post(server, call("count", {}, progressToken=1))[1]["result"] == {"tool": "count", "result": "counted"}


@pytest.mark.parametrize("mode", ERAS)
def test_the_official_client_gets_mcp(server: ServerProcess, mode: str) -> None:
    async def main() -> None:
        async with connect_to(server.url, mode) as client:
            assert "fs_read" in [tool.name for tool in (await client.list_tools()).tools]

    run(main)


def rest(server: ServerProcess, tool: str, arguments: Any, *headers: tuple[str, str]) -> tuple[int, Any]:
    exchange = server.send("POST", f"/tools/{tool}", [JSON, *headers], encode(arguments)).finish()
    return exchange.status, json.loads(exchange.body)


def test_rest_has_the_tools_with_http_statuses(server: ServerProcess) -> None:
    """S-69, S-72."""
    exchange = server.send("GET", "/tools").finish()
    assert "fs_read" in [each["name"] for each in json.loads(exchange.body)["tools"]]
    assert rest(server, "filesystem", {"action": "read", "path": "a.txt"})[0] == 200
    assert rest(server, "filesystem", {"action": "fly"})[0] == 400
    assert rest(server, "nope", {})[0] == 404
    assert rest(server, "filesystem", {"action": "read", "path": "nope"})[0] == 500
    assert rest(server, "terminal", {"command": "true"})[0] == 403


# -- lines


def test_lines_are_answered_one_for_one_in_order(server: ServerProcess) -> None:
    """S-71, S-80."""
    with Lines(server) as lines:
        lines.say(PING, LIST, READ, call("nope", id=3))
        assert lines.hear() == read("ping_response.json")
        assert lines.hear() == read("list_response.json")
        assert lines.hear()["result"]["tool"] == "filesystem"
        assert lines.hear()["error"]["code"] == -32000


@pytest.mark.parametrize("blanks", [b"\n", b" ", b"\r\n\t "])
def test_blanks_before_the_first_line_are_skipped(server: ServerProcess, blanks: bytes) -> None:
    with Lines(server) as lines:
        lines.say(blanks)
        lines.say(blanks, PING)
        assert lines.hear() == read("ping_response.json")


def test_an_empty_line_before_http_is_skipped(server: ServerProcess) -> None:
    with Lines(server) as lines:
        lines.say(b"\r\n")
        lines.say(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % server.port)
        assert lines.wire.recv(1 << 16).startswith(b"HTTP/1.1 200")


def test_lines_end_with_the_first_that_is_not_json(server: ServerProcess) -> None:
    """C-29."""
    with Lines(server) as lines:
        lines.say(PING, b"POST /mcp HTTP/1.1\n", PING)
        assert lines.hear() == read("ping_response.json")
        assert lines.hear()["error"]["code"] == -32700
        assert lines.hear() is None


def test_an_idle_connection_is_closed_unless_its_peer_has_made_a_handshake() -> None:
    """S-80: nc without -N waits for that."""
    argv = (*SERVER, "--set", "http.port=0", "--set", "limits.idle_seconds=0.3")
    with start(None, argv=argv) as server, Lines(server) as dated, Lines(server) as bare:
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        dated.say(request("initialize", hello, 1))
        assert dated.hear()["result"]["protocolVersion"] == "2025-11-25"
        bare.say(PING)
        assert bare.hear() == read("ping_response.json")
        assert bare.hear() is None
        dated.say(request("ping", {}, 2))
        assert dated.hear()["result"] == {}


# -- permission


@pytest.mark.parametrize(
    "message", [WRITE, RUN, call("fs_write", {"path": "x", "content": "y"}), call("terminal_list")]
)
def test_writes_and_the_terminal_need_a_token(server: ServerProcess, message: Any) -> None:
    """S-38, S-73, C-45."""
    status, answer, _ = post(server, message)
    assert status == 403
    error = error_of(answer)
    assert error["code"] == -32003
    assert "send a token" in error["message"]
    with Lines(server) as lines:
        lines.say(message)
        assert lines.hear()["error"]["code"] == -32003


EDIT = {"path": "a.txt", "edits": [{"old": "hello", "new": "changed"}]}
CHANGES = [
    call("filesystem", {"action": "append", "path": "a.txt", "content": "more"}),
    call("filesystem", {"action": "copy", "path": "a.txt", "to": "copy.txt"}),
    call("filesystem", {"action": "move", "path": "a.txt", "to": "moved.txt"}),
    call("filesystem", {"action": "mkdir", "path": "made"}),
    call("filesystem", {"action": "delete", "path": "a.txt"}),
    call("fs_edit", EDIT),
    call("fs_move", {"path": "a.txt", "to": "moved.txt"}),
    call("fs_delete", {"path": "a.txt"}),
]


@pytest.mark.parametrize("message", CHANGES, ids=lambda each: json.dumps(each["params"])[:60])
def test_a_change_of_files_without_a_token_is_refused_and_changes_nothing(
    server: ServerProcess, root: Path, message: Any
) -> None:
    """S-38, S-73, C-45."""
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    folders = {path for path in root.rglob("*") if path.is_dir()}
    status, answer, _ = post(server, message)
    assert (status, error_of(answer)["code"]) == (403, -32003)
    with Lines(server) as lines:
        lines.say(message)
        assert error_of(lines.hear())["code"] == -32003
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before
    assert {path for path in root.rglob("*") if path.is_dir()} == folders


def test_a_page_is_loaded_without_a_token(server: ServerProcess, page: str) -> None:
    """S-73, C-45: over HTTP and by lines."""
    message = call("browser", {"url": page})
    status, answer, _ = post(server, message)
    assert (status, answer["result"]["result"]["title"]) == (200, TITLE)
    with Lines(server) as lines:
        lines.say(message)
        assert lines.hear()["result"]["result"]["status"] == "success"


def test_with_a_token_they_are_done(server: ServerProcess) -> None:
    """S-73."""
    assert post(server, WRITE, bearer(server))[1]["result"]["result"]["success"] is True
    assert "hi" in post(server, RUN, bearer(server))[1]["result"]["result"]["output"]
    assert post(server, RUN, ("X-API-Key", server.token))[0] == 200
    assert rest(server, "terminal", {"command": "true"}, bearer(server))[0] == 200


def test_a_browser_may_have_the_token_in_a_cookie(server: ServerProcess) -> None:
    """S-73."""
    exchange = server.send("POST", "/auth/cookie", [bearer(server)]).finish()
    cookie = exchange.headers["set-cookie"].partition(";")[0]
    own = ("Sec-Fetch-Site", "same-origin")
    assert post(server, RUN, ("Cookie", cookie), own)[0] == 200
    assert post(server, RUN, ("Cookie", cookie))[0] == 403
    assert server.send("POST", "/auth/cookie").finish().status == 401


def test_a_wrong_token_is_refused_at_once(server: ServerProcess) -> None:
    assert post(server, PING, ("Authorization", "Bearer wrong-wrong-wrong-wrong"))[0] == 401


def test_mcp_peers_need_the_token_too(server: ServerProcess) -> None:
    answer = ask_modern(server, RUN)  # type: ignore[arg-type]
    assert answer.status == 403


def test_pages_of_other_sites_get_nothing(server: ServerProcess) -> None:
    """S-73."""
    assert post(server, LIST, ("Origin", "https://evil.example"))[0] == 403
    assert post(server, LIST, ("Host", "evil.example"))[0] == 421


def test_the_configuration_can_grant_them(tmp_path: Path, trust: Trusting) -> None:
    """C-45."""
    grants = "[toolsets.terminal]\nscopes = []\n[tools.fs_write]\nscopes = []\n"
    (tmp_path / "longshore.toml").write_text(grants)
    trust(tmp_path / "longshore.toml")
    argv = (*SERVER, "--set", "http.port=0", "--config", str(tmp_path / "longshore.toml"), "--root", str(tmp_path))
    state = {"XDG_STATE_HOME": os.environ["XDG_STATE_HOME"]}
    with start(None, argv=argv, env=state) as server, Lines(server) as lines:
        lines.say(RUN, WRITE | {"id": 2}, call("filesystem", {"action": "delete", "path": "b.txt"}, 3))
        assert "hi" in lines.hear()["result"]["result"]["output"]
        assert lines.hear()["result"]["result"]["success"] is True
        assert lines.hear()["error"]["code"] == -32003


@pytest.fixture
def address() -> str:
    """An address of this machine beyond loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))  # sends nothing
        found: str = probe.getsockname()[0]
    if found.startswith("127."):
        skip("this machine has no address beyond loopback", by_kernel=True)
    return found


def ask_from_beyond(address: str, server: ServerProcess, host: str, *headers: str) -> bytes:
    """The status line for a ping that does not come from loopback."""
    body = encode(PING)
    length = f"Content-Length: {len(body)}"
    head = "\r\n".join(["POST /mcp HTTP/1.1", f"Host: {host}", ":".join(JSON), length, *headers])
    with socket.create_connection((address, server.port), PATIENCE) as wire:
        wire.sendall(f"{head}\r\n\r\n".encode() + body)
        return wire.recv(1 << 16).partition(b"\r\n")[0]


def test_beyond_loopback_every_caller_needs_the_token(address: str) -> None:
    """S-74: and lines are not taken."""
    options = ("--set", "http.port=0", "--set", "http.host=0.0.0.0", "--set", f"http.hosts={address}")
    with start(None, argv=(*SERVER, *options)) as server:
        assert b" 401 " in ask_from_beyond(address, server, address)
        assert b" 200 " in ask_from_beyond(address, server, address, "Authorization: Bearer " + server.token)
        assert post(server, PING)[0] == 401
        with Lines(server) as lines:
            lines.say(PING)
            assert lines.wire.recv(1 << 16).startswith(b"HTTP/1.1 400")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "0.0.0.0"])
def test_a_caller_beyond_loopback_does_not_pass_for_a_local_one(address: str, host: str) -> None:
    """S-74: local callers are known by their address, not by the host that they name."""
    with start(None, argv=(*SERVER, "--set", "http.port=0", "--set", "http.host=0.0.0.0")) as server:
        assert ask_from_beyond(address, server, f"{host}:{server.port}").split()[1] in (b"401", b"421")
        assert post(server, PING)[0] == 200


def test_lines_are_not_taken_from_beyond_loopback(address: str) -> None:
    """S-74."""
    with start(None, argv=(*SERVER, "--set", "http.port=0", "--set", "http.host=0.0.0.0")) as server:
        with socket.create_connection((address, server.port), PATIENCE) as wire:
            wire.sendall(encode(PING) + b"\n")
            assert wire.recv(1 << 16).startswith(b"HTTP/1.1 400")
        with Lines(server) as lines:
            lines.say(PING)
            assert lines.hear() == read("ping_response.json")


@pytest.mark.parametrize(
    "name",
    ["Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "x-forwarded-proto", "X-Real-IP", "CF-Connecting-IP"],
)
def test_a_request_that_was_passed_on_needs_the_token(server: ServerProcess, name: str) -> None:
    """S-74: it comes from loopback, and its caller may be anywhere."""
    assert post(server, PING, (name, "203.0.113.9"))[0] == 401
    assert post(server, PING, (name, "203.0.113.9"), bearer(server))[0] == 200


def test_callers_may_not_attach_to_a_browser_that_already_runs(server: ServerProcess) -> None:
    """Its pages and logins are the user's."""
    answer = post(server, call("browser_open", {"connect": "auto"}))[1]
    assert "toolsets.browser.attach" in error_of(answer)["message"]


@pytest.mark.parametrize("given", ["variable", "flag"])
def test_an_empty_list_grants_a_toolset_also_by_a_variable_or_a_flag(given: str) -> None:
    """C-45."""
    argv, env = (*SERVER, "--set", "http.port=0"), {"LONGSHORE_TOOLSETS_TERMINAL_SCOPES": "[]"}
    if given == "flag":
        argv, env = (*argv, "--set", "toolsets.terminal.scopes=[]"), {}
    with start(None, argv=argv, env=env) as server:
        assert post(server, RUN)[1]["result"]["tool"] == "terminal"


@pytest.mark.parametrize(
    "key", ["public_url=https://mcp.example.com", "hosts=mcp.example.com", "origins=https://a.example"]
)
def test_where_others_come_by_way_of_this_machine_the_token_is_required(key: str) -> None:
    """S-74: the requests of a proxy, and of a web page, come from loopback too."""
    with start(None, argv=(*SERVER, "--set", "http.port=0", "--set", f"http.{key}")) as server:
        assert post(server, PING)[0] == 401
        assert post(server, PING, bearer(server))[0] == 200
