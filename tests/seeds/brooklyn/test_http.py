"""`brooklyn web start`: the same form over HTTP and as lines, for peers without a handshake."""

from __future__ import annotations

import json
from collections.abc import Iterator

import httpx2
import pytest

from http_process.serverproc import ServerProcess, start
from http_process.test_lines import Lines
from interop.http_peer import connect_to
from interop.peer import ERAS, run
from posting import Session, ask_modern, call, request
from seeds.browseros.test_port import bearer, post

from .document import COMMAND, LIST, STATUS, read
from .test_document import TOOLS, error_of, object_of


class _WithToken(httpx2.AsyncHTTPTransport):
    """Sends the token with every request."""

    def __init__(self, token: str) -> None:
        super().__init__()
        self._token = token

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        request.headers["Authorization"] = f"Bearer {self._token}"
        return await super().handle_async_request(request)


WEB = (COMMAND, "web", "start", "--port", "0")
FAILING = call("navigate_to_url", {"url": "file:///"})


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with start(None, argv=WEB) as process:
        yield process


def test_a_bare_post_is_answered_in_the_form_of_the_document_and_begins_no_session(server: ServerProcess) -> None:
    """S-5, S-15, S-17, S-27."""
    status, answer, headers = post(server, STATUS, bearer(server))
    assert status == 200 and object_of(answer)["name"] == "brooklyn"
    assert "mcp-session-id" not in headers
    status, answer, headers = post(server, FAILING, bearer(server))
    assert (status, error_of(answer)["code"]) == (200, -32603)
    assert "mcp-session-id" not in headers


def test_headers_may_be_missing_where_nothing_depends_on_them(server: ServerProcess) -> None:
    """S-16, S-29, C-31: lenient about headers that are missing, not about a client that takes no JSON."""
    for accept in ([], [("Accept", "application/json")], [("Accept", "*/*")]):
        assert post(server, STATUS, bearer(server), *accept)[0] == 200
    assert post(server, STATUS, bearer(server), ("Accept", "text/plain"))[0] == 406
    assert post(server, STATUS, bearer(server), ("Origin", "https://evil.example"))[0] == 403


def test_without_the_token_nobody_gets_anything(server: ServerProcess) -> None:
    assert post(server, STATUS)[0] == 401


def test_lists_have_the_key_of_the_document(server: ServerProcess) -> None:
    """S-87, S-88, S-92: sessions and requests of 2026-07-28 have both keys."""
    tools = post(server, LIST, bearer(server))[1]["result"]["tools"]
    assert tools[1]["name"] == "launch_browser"
    assert all("input_schema" in each and "inputSchema" not in each for each in tools)
    session = Session(server, headers=[bearer(server)]).open()  # type: ignore[arg-type]
    dated = json.loads(session.post(request("tools/list")).finish().body)["result"]["tools"]
    modern = json.loads(ask_modern(server, request("tools/list"), bearer(server)).body)["result"]["tools"]  # type: ignore[arg-type]
    assert all(each["inputSchema"] == each["input_schema"] for each in [*dated, *modern])


def test_the_rest_endpoint_shows_the_key_of_mcp(server: ServerProcess) -> None:
    """S-89, S-90."""
    exchange = server.send("GET", "/tools", [bearer(server)]).finish()
    tools = json.loads(exchange.body)["tools"]
    assert tools and all("inputSchema" in each and "input_schema" not in each for each in tools)


def test_the_failures_of_a_tool_are_the_error_of_the_document_over_http_too() -> None:
    """S-17, S-19."""
    with start(TOOLS, "--dialect", "brooklyn") as process:
        assert post(process, read("call_request"))[:2] == (200, read("error_response"))
        assert post(process, call("link"))[1]["result"]["content"] == [read("resource_link")]
        assert post(process, call("count", {}, progressToken=1))[1]["result"]["content"][0]["text"] == "counted"


def test_a_caller_without_the_scopes_of_a_tool_is_refused() -> None:
    """C-19: as in MCP over HTTP."""
    config = """
    [auth]
    mode = "optional"
    [tools.launch_browser]
    scopes = ["browse"]
    """
    with start(TOOLS, "--dialect", "brooklyn", config=config) as process:
        assert post(process, read("call_request"))[0] == 403
        assert post(process, call("count"))[0] == 200


def test_lines_are_answered_in_the_form_of_the_document() -> None:
    """S-13: on the port, where they are switched on."""
    with start(None, argv=(*WEB, "--lines", "--auth", "optional")) as process, Lines(process) as lines:
        lines.say(STATUS, FAILING | {"id": 2})
        assert object_of(lines.answer(1))["success"] is True
        assert error_of(lines.answer(2))["code"] == -32603


@pytest.mark.parametrize("mode", ERAS)
def test_the_official_client_gets_mcp(server: ServerProcess, mode: str) -> None:
    async def main() -> None:
        async with connect_to(server.url, mode, wire=_WithToken(server.token)) as client:
            assert "browser_navigate" in [tool.name for tool in (await client.list_tools()).tools]
            assert (await client.call_tool("navigate_to_url", {"url": "file:///"})).is_error

    run(main)
