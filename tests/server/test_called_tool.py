"""`call_tool`: the call is the called tool's own, in everything that a client can see."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest
from msgspec import Struct

from longshore import Ask, Context, Header, Server
from longshore.config import Config, ServerConfig, ToolConfig
from longshore.protocol.http_headers import HEADER_MISMATCH, Headers
from longshore.protocol.peer import Principal
from longshore.server.engine import Rates
from longshore.server.link import Link
from longshore.telemetry.records import RequestCompleted, ToolCompleted, ToolInvoked
from posting import call as call_message
from posting import encode, modern, modern_headers
from questions.wire import ERAS, MODERN, Client, accept, run, text


class Point(Struct):
    x: int
    y: int


@pytest.fixture
def app() -> Server:
    app = Server("t", catalog="search")

    @app.tool(aliases=["plus"])
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    @app.tool(run="inline")
    def point(x: int, y: int = 0) -> Point:
        """Make a point."""
        return Point(x, y)

    @app.tool(effects="destroy")
    async def erase(ok: Annotated[bool, Ask("Sure?")]) -> str:
        """Erase everything."""
        return f"erased: {ok}"

    @app.tool(replay=True)
    async def greet(ctx: Context) -> str:
        """Greet somebody."""
        return f"hello {(await ctx.elicit('Who?', str, key='who')).value}"

    @app.tool(timeout=0.2)
    async def hang(ctx: Context) -> str:
        """Never end."""
        await ctx.progress(1, 2)
        await asyncio.get_running_loop().create_future()
        return ""

    @app.tool(scopes=["admin"])
    def secret() -> str:
        """Tell a secret."""
        return "xyzzy"

    @app.tool
    def place(region: Annotated[str, Header("Region")]) -> str:
        """Say where it is."""
        return region

    @app.tool
    def meta(ctx: Context) -> str:
        """Say what came with the request."""
        return json.dumps(ctx.meta.get("example.com/x"))

    return app


eras = pytest.mark.parametrize("era", ERAS)


def through(client: Client, name: Any, arguments: Any = None, **more: Any) -> Any:
    return client.call_tool("call_tool", {"name": name, "arguments": arguments or {}}, **more)


def both(app: Server, era: str, name: str, arguments: Any) -> tuple[Any, Any]:
    """The answers to the same call, made directly and by call_tool, without their ids."""

    async def work() -> tuple[Any, Any]:
        client = Client(app, era)
        answers = [await client.call_tool(name, arguments), await through(client, name, arguments)]
        return answers[0] | {"id": 0}, answers[1] | {"id": 0}

    found: tuple[Any, Any] = run(work())
    return found


@eras
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("add", {"a": 1, "b": 2}),
        ("plus", {"a": 1, "b": 2}),
        ("add", {"a": "one"}),
        ("add", {"a": 1, "b": "2", "c": 3}),
        ("point", {"x": 1}),
        ("point", {"x": 1.0}),
        ("secret", {}),
        ("hang", {}),
        ("meta", {}),
    ],
)
def test_the_answer_is_that_of_a_direct_call(app: Server, era: str, name: str, arguments: Any) -> None:
    direct, called = both(app, era, name, arguments)
    assert called == direct


@eras
def test_a_question_reaches_the_client_and_its_answer_the_tool(app: Server, era: str) -> None:
    async def work() -> list[str]:
        client, said = Client(app, era), []
        for name, answer in (("erase", accept(ok=True)), ("greet", accept(who="Ann"))):
            arguments = {"name": name, "arguments": {}}
            said.append(text(await client.tool("call_tool", arguments, lambda _, __, answer=answer: answer)))
        return said

    assert run(work()) == ["erased: True", "hello Ann"]


def test_a_state_of_a_question_is_for_the_same_call_however_it_is_made(app: Server) -> None:
    async def work() -> tuple[Any, Any]:
        client = Client(app, MODERN)
        state = (await through(client, "greet"))["result"]["requestState"]
        answers = {"requestState": state, "inputResponses": {"who": accept(who="Ann")}}
        direct = await client.call_tool("greet", **answers)
        other = await through(client, "erase", **answers)
        return direct, other

    direct, other = run(work())
    assert text(direct["result"]) == "hello Ann"
    assert other["error"]["message"] == "requestState belongs to another request"


@eras
def test_progress_and_cancellation_are_those_of_the_called_tool(app: Server, era: str) -> None:
    app.config = Config(tools={"hang": ToolConfig(timeout=False)})

    async def work() -> None:
        client = Client(app, era)
        meta: dict[str, Any] = {"progressToken": "p"}
        if era == MODERN:
            prefix = "io.modelcontextprotocol/"
            meta |= {prefix + "protocolVersion": MODERN, prefix + "clientCapabilities": {}}
        params = {"name": "call_tool", "arguments": {"name": "hang"}, "_meta": meta}
        client.put({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params})
        note = await client.get()
        assert note["method"] == "notifications/progress"
        assert note["params"] == {"progressToken": "p", "progress": 1, "total": 2}
        client.put({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}})
        assert text((await through(client, "add", {"a": 1, "b": 1}))["result"]) == "2"
        assert not app.engine.executor.live

    run(work())


def test_the_meta_of_the_request_reaches_the_tool(app: Server) -> None:
    async def work() -> Any:
        client = Client(app, ERAS[0])
        params = {"name": "call_tool", "arguments": {"name": "meta"}, "_meta": {"example.com/x": [1]}}
        client.put({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params})
        return await client.get()

    assert text(run(work())["result"]) == "[1]"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "call_tool: invalid arguments\nname: missing"),
        ({"nam": "add"}, "nam: unknown argument; did you mean name?"),
        ({"name": 3}, "name: expected a string"),
        ({"name": "add", "arguments": [1]}, "arguments: expected an object"),
        ({"name": "add", "arguments": "a=1"}, "arguments: expected an object"),
        ({"name": "add", "a": 1}, "a: unknown argument"),
        ([1], "arguments: expected an object with the arguments of call_tool"),
        (None, "name: missing"),
        ({"name": "call_tool", "arguments": {"name": "add"}}, "call_tool can't call itself"),
        ({"name": "ad", "arguments": {}}, "no tool 'ad'; did you mean 'add'? search_tools finds"),
        ({"name": "zzzzzz", "arguments": {}}, "no tool 'zzzzzz'; search_tools finds"),
    ],
)
@eras
def test_wrong_arguments_of_call_tool_are_explained(app: Server, arguments: Any, said: str, era: str) -> None:
    async def work() -> Any:
        client = Client(app, era)
        return await client.request("tools/call", name="call_tool", arguments=arguments)

    result = run(work())["result"]
    assert result["isError"]
    assert said in text(result)


@pytest.mark.parametrize(
    ("sent", "answer"),
    [('{"a": 1, "b": 2}', "3"), (None, "add: invalid arguments"), ('{"a": ' + "[" * 999, "expected an object")],
)
def test_arguments_may_come_as_a_text_that_holds_an_object(app: Server, sent: Any, answer: str) -> None:
    async def work() -> Any:
        return await Client(app, ERAS[0]).call_tool("call_tool", {"name": "add", "arguments": sent})

    assert answer in text(run(work())["result"])


def test_scopes_of_the_called_tool_are_required(app: Server) -> None:
    async def work() -> list[Any]:
        client = Client(app, ERAS[0])
        client.link.principal = Principal("ann", frozenset({"read"}))
        refused = await through(client, "secret")
        client.link.principal = Principal("ann", frozenset({"admin"}))
        return [refused["error"]["message"], text((await through(client, "secret"))["result"])]

    assert run(work()) == ["secret needs the scope admin", "xyzzy"]


def test_scopes_of_call_tool_itself_are_required_too(app: Server) -> None:
    app.config = Config(server=ServerConfig(catalog="search"), tools={"call_tool": ToolConfig(scopes=["any"])})

    async def work() -> Any:
        client = Client(app, ERAS[0])
        client.link.principal = Principal("ann", frozenset({"admin"}))
        return await through(client, "add", {"a": 1, "b": 2})

    assert run(work())["error"]["message"] == "call_tool needs the scope any"


def post(app: Server, message: Any, **headers: str) -> Any:
    given = {name.lower().encode(): value.encode() for name, value in modern_headers(message)}
    link = Link()
    link.headers = Headers(given | {name.replace("_", "-").encode(): value.encode() for name, value in headers.items()})
    return json.loads(app.engine.handle(encode(message), link) or b"null")


def test_the_header_names_call_tool_and_repeats_no_argument_of_the_called_tool(app: Server) -> None:
    app.tool(name="where", run="inline", description="Say where.")(here)
    message = modern(call_message("call_tool", {"name": "where", "arguments": {"region": "eu"}}))
    assert text(post(app, message)["result"]) == "eu"
    assert post(app, message, mcp_name="where")["error"]["code"] == HEADER_MISMATCH
    direct = modern(call_message("where", {"region": "eu"}))
    assert post(app, direct)["error"]["code"] == HEADER_MISMATCH
    assert text(post(app, direct, mcp_param_region="eu")["result"]) == "eu"


def here(region: Annotated[str, Header("Region")]) -> str:
    return region


def test_a_call_is_recorded_and_counted_as_one_of_the_called_tool(app: Server) -> None:
    seen = list[Any]()
    app.listen(seen.append)
    app.engine.limit_rates(Rates(0.001, 2))

    async def work() -> list[Any]:
        client = Client(app, ERAS[0])
        return [await through(client, "add", {"a": n, "b": n}) for n in range(3)]

    answers = [text(each["result"]) for each in run(work())]
    assert answers[:2] == ["0", "2"]
    assert answers[2].startswith("add was not run: it was called too often")
    calls = [each for each in seen if isinstance(each, (ToolInvoked, ToolCompleted))]
    assert {each.tool for each in calls} == {"add"}
    assert len([each for each in seen if isinstance(each, RequestCompleted) and each.method == "tools/call"]) == 3
    assert app.engine.tools["add"].calls == 2


def test_an_id_in_flight_is_refused(app: Server) -> None:
    app.config = Config(tools={"hang": ToolConfig(timeout=False)})

    async def work() -> Any:
        client = Client(app, ERAS[0])
        params = {"name": "call_tool", "arguments": {"name": "hang"}}
        for _ in range(2):
            client.put({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params})
        answer = await client.get()
        client.put({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}})
        return answer

    assert run(work())["error"]["message"] == "a request with this id is in flight"


def test_a_long_call_in_a_reused_buffer_is_read_whole(app: Server) -> None:
    @app.tool(run="inline")
    def count(words: str) -> int:
        """Count characters."""
        return len(words)

    async def work() -> Any:
        client = Client(app, ERAS[0])
        message = call_message("call_tool", {"name": "count", "arguments": {"words": "x" * (3 << 20)}})
        return app.engine.handle_long(memoryview(bytearray(encode(message))), client.link)

    assert text(json.loads(run(work()))["result"]) == str(3 << 20)


def test_calls_in_a_batch(app: Server) -> None:
    async def work() -> Any:
        client = Client(app, "2025-03-26")
        messages = [
            call_message("call_tool", {"name": "point", "arguments": {"x": 1}}, id=1),
            call_message("call_tool", {"name": "add", "arguments": {"a": 1, "b": 2}}, id=2),
        ]
        client.put(messages)
        return await client.get()

    assert {each["id"]: text(each["result"]) for each in run(work())} == {1: '{"x":1,"y":0}', 2: "3"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    yield tmp_path


def test_the_first_call_imports_the_toolset_of_the_called_tool(folder: Path) -> None:
    from longshore.builtin import make

    (folder / "a.txt").write_text("found me\n")
    app = make()
    app.config = Config(server=ServerConfig(catalog="search"))

    async def work() -> Any:
        return await through(Client(app, ERAS[0], capabilities={}), "fs_read", {"path": "a.txt"})

    assert "found me" in text(run(work())["result"])
