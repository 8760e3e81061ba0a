"""`from browseros.mcp import …`: the document's server and unit tests, and what they leave open."""

from __future__ import annotations

import asyncio
import functools
import gc
import json
import os
import subprocess
import sys
import threading
from typing import Any

import pytest

from browseros.mcp import (
    JsonRpcError,
    JsonRpcErrorCode,
    JsonRpcRequest,
    JsonRpcResponse,
    MCPJsonRpcServer,
    create_stdio_server,
)
from longshore.errors import RegistrationError
from process.conftest import Workshop
from process.peer import PYTHON, call, initialize, modern, request
from waiting import eventually

from .document import EXAMPLES, NAMES, error_of, read


@pytest.fixture
def server() -> MCPJsonRpcServer:
    made = MCPJsonRpcServer()
    made.add_tool("echo", lambda params: {"echo": params})
    return made


def ask(server: MCPJsonRpcServer, message: Any) -> Any:
    return json.loads(server.handle_request(json.dumps(message)))


def test_the_unit_tests_of_the_document_pass(workshop: Workshop) -> None:
    """S-46, S-49, S-78, S-79."""
    argv = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", str(EXAMPLES / "unit_tests.py")]
    done = subprocess.run(argv, cwd=workshop.folder, env=workshop.env, capture_output=True, text=True, timeout=120)
    assert ".. " in done.stdout and done.returncode == 0, done.stdout + done.stderr


def test_the_server_of_the_document_serves_stdin_until_it_ends(workshop: Workshop) -> None:
    """S-46, S-47, S-48, S-49, S-50, S-51, S-82: with debug=True each request is on stderr."""
    path = workshop.write((EXAMPLES / "python_server.py").read_text())
    calls = [
        call("1", "browser", url="x"),
        call("2", "filesystem", action="read", path="y"),
        request("3", "tools/list"),
    ]
    done = workshop.run([*PYTHON, str(path)], *calls)
    assert done.returncode == 0
    answers = [json.loads(line)["result"] for line in done.stdout.splitlines()]
    assert answers == [
        {"tool": "browser", "result": {"title": "Page Title", "url": "x"}},
        {"tool": "filesystem", "result": {"success": True, "path": "y"}},
        {"tools": [{"name": "browser", "available": True}, {"name": "filesystem", "available": True}]},
    ]
    records = [json.loads(line) for line in done.stderr.splitlines()]
    assert [each["id"] for each in records if each["type"] == "request_received"] == ["1", "2", "3"]


@pytest.mark.parametrize("handler", [5, None, "echo", {"a": 1}])
def test_what_can_not_be_called_is_refused_at_once(server: MCPJsonRpcServer, handler: Any) -> None:
    """S-49."""
    with pytest.raises(TypeError, match="can't be called; pass a function that takes one dict"):
        server.add_tool("x", handler)
    assert [each["name"] for each in ask(server, request(1, "tools/list"))["result"]["tools"]] == ["echo"]


def test_it_is_also_a_standard_mcp_server(workshop: Workshop) -> None:
    """C-22: a description and a schema are made up."""
    path = workshop.write((EXAMPLES / "python_server.py").read_text())
    peer = workshop.spawn(*PYTHON, str(path))
    peer.ask(initialize())
    tools = peer.ask(request(1, "tools/list"))["result"]["tools"]
    assert [each["name"] for each in tools] == ["browser", "filesystem"]
    assert tools[0]["inputSchema"] == {"type": "object"}
    assert peer.ask(call(2, "browser", url="x"))["result"]["structuredContent"] == {"title": "Page Title", "url": "x"}


def test_the_variables_hold_for_it_too(workshop: Workshop) -> None:
    """S-64, S-65."""
    workshop.env["BROWSEROS_MCP_TIMEOUT"] = "0.2"
    workshop.env["BROWSEROS_MCP_DEBUG"] = "true"
    source = """
    import threading
    from browseros.mcp import create_stdio_server
    server = create_stdio_server()
    server.add_tool("hold", lambda params: threading.Event().wait(600))
    server.run()
    """
    done = workshop.run([*PYTHON, str(workshop.write(source))], call("1", "hold"))
    assert error_of(json.loads(done.stdout))["code"] == -32002
    assert b"request_received" in done.stderr


@pytest.mark.parametrize(
    "value", [None, True, 7, 1.5, "text", "", [], [1, {"result": 2}], {}, {"result": 2}, {"result": {"result": 2}}, "7"]
)
def test_the_result_is_what_the_handler_returned(server: MCPJsonRpcServer, value: Any) -> None:
    """S-35, S-48."""
    server.add_tool("give", lambda params: value)
    assert ask(server, call("1", "give"))["result"] == {"tool": "give", "result": value}


def test_a_handler_may_be_async(server: MCPJsonRpcServer) -> None:
    async def later(params: dict[str, Any]) -> dict[str, Any]:
        await asyncio.sleep(0)
        return params

    server.add_tool("later", later)
    assert ask(server, call("1", "later", a=1))["result"]["result"] == {"a": 1}


def test_what_a_handler_raises_is_an_execution_error(server: MCPJsonRpcServer) -> None:
    """S-38."""
    server.add_tool("fail", lambda params: params["missing"])
    server.add_tool("odd", lambda params: object())
    for name in ("fail", "odd"):
        assert error_of(ask(server, call("1", name)))["code"] == -32001


def test_a_notification_gives_an_empty_text(server: MCPJsonRpcServer) -> None:
    """S-33."""
    assert server.handle_request('{"jsonrpc":"2.0","method":"tools/list"}') == ""
    assert server.handle_request(" \n") == ""


def test_in_memory_too_the_log_goes_to_stderr(workshop: Workshop) -> None:
    """S-75: "check stderr"."""
    source = """
    from browseros.mcp import MCPJsonRpcServer
    server = MCPJsonRpcServer(debug={debug})
    server.add_tool("divide", lambda params: 1 / 0)
    print(server.handle_request('{"jsonrpc":"2.0","method":"tools/call","params":{"name":"divide"},"id":"1"}'))
    """
    for debug in (True, False):
        done = workshop.run([*PYTHON, str(workshop.write(source.replace("{debug}", str(debug))))])
        reference = error_of(json.loads(done.stdout))["message"].rpartition("error ")[2]
        assert reference in done.stderr.decode()
        assert b"ZeroDivisionError" in done.stderr
        assert (b"request_received" in done.stderr) is debug


@pytest.mark.timeout(120)
def test_a_request_that_an_async_tool_would_wait_for_for_ever_is_an_error(server: MCPJsonRpcServer) -> None:
    again = json.dumps(call("2", "echo", a=1))

    async def blocking(params: dict[str, Any]) -> Any:
        return server.handle_request(again)

    async def on_a_thread(params: dict[str, Any]) -> Any:
        return json.loads(await asyncio.to_thread(server.handle_request, again))

    server.add_tool("blocking", blocking)
    server.add_tool("on_a_thread", on_a_thread)
    server.add_tool("plain", lambda params: json.loads(server.handle_request(again)))
    assert error_of(ask(server, call("1", "blocking")))["code"] == -32001
    for name in ("plain", "on_a_thread"):
        inner = ask(server, call("1", name))["result"]["result"]
        assert inner["result"] == {"tool": "echo", "result": {"echo": {"a": 1}}}


@pytest.mark.timeout(120)
def test_a_listen_ends_at_once_in_memory(server: MCPJsonRpcServer) -> None:
    listen = modern(request(9, "subscriptions/listen", notifications={"toolsListChanged": True}))
    assert ask(server, listen)["result"]["resultType"] == "complete"


def test_a_server_that_serves_stdin_answers_no_request_in_memory(workshop: Workshop) -> None:
    source = """
    from browseros.mcp import MCPJsonRpcServer
    server = MCPJsonRpcServer()
    text = '{"jsonrpc":"2.0","method":"ping","id":"1"}'
    async def inner(params):
        try:
            return server.handle_request(text)
        except RuntimeError as problem:
            return str(problem)
    server.add_tool("inner", inner)
    assert server.handle_request(text)
    server.run()
    assert server.handle_request(text)
    """
    done = workshop.run([*PYTHON, str(workshop.write(source))], call("1", "inner"))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["result"]["result"].startswith("run() serves this server")


def test_a_server_that_is_no_longer_used_leaves_no_thread_and_no_descriptor() -> None:
    def use() -> None:
        for _ in range(10):
            server = MCPJsonRpcServer()
            server.add_tool("echo", lambda params: params)
            assert "result" in ask(server, call("1", "echo"))

    use()
    gc.collect()
    eventually("the threads to end", lambda: not [t for t in threading.enumerate() if t.name == "browseros-mcp"])
    before = threading.active_count(), len(os.listdir("/proc/self/fd"))
    use()
    gc.collect()
    eventually("all to be freed", lambda: (threading.active_count(), len(os.listdir("/proc/self/fd"))) <= before)


def test_a_handler_may_return_a_coroutine_or_be_an_object_with_an_async_call(server: MCPJsonRpcServer) -> None:
    async def later(params: dict[str, Any]) -> int:
        await asyncio.sleep(0)
        return 5

    class Later:
        async def __call__(self, params: dict[str, Any]) -> int:
            return await later(params)

    handlers: list[Any] = [lambda params: later(params), Later(), functools.partial(later)]
    for handler in handlers:
        server.add_tool("later", handler, replace=True)
        assert ask(server, call("1", "later"))["result"]["result"] == 5


def test_the_error_for_a_wrong_tool_names_the_place_of_its_handler(server: MCPJsonRpcServer) -> None:
    for name in ("my tool", "echo"):
        with pytest.raises(RegistrationError) as caught:
            server.add_tool(name, lambda params: params)
        assert "test_python_api.py" in caught.value.where
        assert "jsonrpc_server" not in str(caught.value)


def test_text_that_is_no_request_gives_an_error(server: MCPJsonRpcServer) -> None:
    """S-37."""
    assert error_of(json.loads(server.handle_request("{")))["code"] == -32700
    assert error_of(json.loads(server.handle_request('{"jsonrpc":"2.0","id":1,"method":"\ud800"}')))["code"] == -32700
    assert error_of(json.loads(server.handle_request("7")))["code"] == -32600
    assert ask(server, [request(1, "ping")]) == [{"jsonrpc": "2.0", "id": 1, "result": {"status": "ok"}}]


def test_requests_may_come_from_many_threads_and_within_a_running_loop(server: MCPJsonRpcServer) -> None:
    answers: list[Any] = []
    threads = [threading.Thread(target=lambda n=n: answers.append(ask(server, call(n, "echo", n=n)))) for n in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)

    async def main() -> Any:
        return ask(server, read("ping_request.json"))

    assert sorted(each["result"]["result"]["echo"]["n"] for each in answers) == [*range(8)]
    assert asyncio.run(main()) == read("ping_response.json")


def test_a_name_that_is_taken_is_refused_unless_it_is_to_be_replaced(server: MCPJsonRpcServer) -> None:
    """C-41."""
    with pytest.raises(RegistrationError):
        server.add_tool("echo", lambda params: 1)
    server.add_tool("echo", lambda params: 2, replace=True)
    assert ask(server, call("1", "echo"))["result"]["result"] == 2
    assert [*server.tools] == ["echo"]


def test_create_stdio_server_makes_an_empty_server() -> None:
    """S-47."""
    assert ask(create_stdio_server(debug=True), read("list_request.json"))["result"] == {"tools": []}


def test_messages_are_read_and_written_as_json_has_them() -> None:
    """S-46."""
    example = read("call_request.json")
    assert JsonRpcRequest.from_dict(example).to_dict() == example
    assert JsonRpcRequest(method="ping").to_dict() == {"jsonrpc": "2.0", "method": "ping"}
    with pytest.raises(TypeError):
        JsonRpcRequest(method="ping", params=[1])  # type: ignore[arg-type]
    answer = read("error_response.json")
    response = JsonRpcResponse.from_dict(answer)
    assert isinstance(response.error, JsonRpcError)
    assert response.error.code == JsonRpcErrorCode.TOOL_NOT_FOUND
    assert response.to_dict() == answer
    assert {code.value for code in JsonRpcErrorCode} == set(NAMES)


def test_an_unknown_name_of_the_package_is_an_attribute_error() -> None:
    import browseros.mcp

    with pytest.raises(AttributeError, match="nope"):
        browseros.mcp.nope  # noqa: B018
