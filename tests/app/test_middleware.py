"""Middleware around calls, reads, prompts and lists: its order, what it may change, and how calls run inside of it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Annotated, Any

import msgspec
import pytest

from longshore import (
    Ask,
    CallResult,
    CallTool,
    Client,
    Contents,
    Context,
    GetPrompt,
    ListEntries,
    ListRequest,
    Message,
    Middleware,
    PromptRequest,
    ReadResource,
    RegistrationError,
    ResourceRequest,
    Server,
    Text,
    Tool,
    ToolError,
    ToolRequest,
)
from longshore.runtime import INDEX
from posting import Session, ask_modern, bearer
from posting import call as calling
from serving import serve
from talk import ERAS, NEWEST, WAIT_SECONDS, Refused, call, converse, result, text, until
from talk import Client as Peer

RUNS = ("inline", "thread", "async", "inline_first")


def block_text(content: list[Any]) -> str:
    """The text of the first block. Those of mounted and raw tools are as the tool sent them."""
    return str(msgspec.to_builtins(content[0])["text"]) if content else ""


class Log(Middleware):
    """Notes what goes in and comes out."""

    def __init__(self, name: str, events: list[Any]) -> None:
        self.name, self.events = name, events

    async def call_tool(self, request: ToolRequest, call_next: CallTool) -> CallResult:
        self.events.append((self.name, request.name, request.arguments))
        try:
            found = await call_next(request)
        except Exception as problem:
            self.events.append((self.name, type(problem).__name__, str(problem)))
            raise
        self.events.append((self.name, "ended", block_text(found.content)))
        return found


def server(*stack: Middleware) -> Server:
    """A server with a tool for each way of running, which multiplies, and one that fails."""
    app = Server("t")
    for run in ("inline", "thread", "inline_first"):

        def plain(a: int, b: int = 2) -> int:
            return a * b

        app.tool(name=run, run=run)(plain)  # type: ignore[call-overload]

    @app.tool(name="async")
    async def coroutine(a: int, b: int = 2) -> int:
        await asyncio.sleep(0)
        return a * b

    @app.tool
    def fail() -> str:
        raise ToolError("no")

    for each in stack:
        app.add_middleware(each)
    return app


class Changing(Middleware):
    """Adds one to the argument `a`, and a text to the result."""

    async def call_tool(self, request: ToolRequest, call_next: CallTool) -> CallResult:
        found = await call_next(request.replace({**request.arguments, "a": request.arguments["a"] + 1}))
        found.content.append(Text("seen"))
        return found


# -- calls


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("revision", ERAS)
def test_the_first_added_is_the_outermost(run: str, revision: str) -> None:
    events: list[Any] = []
    app = server(Log("outer", events), Log("inner", events))
    assert text(call(app, run, {"a": 3}, revision)) == "6"
    assert events == [
        ("outer", run, {"a": 3, "b": 2}),
        ("inner", run, {"a": 3, "b": 2}),
        ("inner", "ended", "6"),
        ("outer", "ended", "6"),
    ]


@pytest.mark.parametrize("run", RUNS)
def test_it_may_change_the_arguments_and_the_result(run: str) -> None:
    found = call(server(Changing()), run, {"a": 3})
    assert [block["text"] for block in found["content"]] == ["8", "seen"]
    assert found["structuredContent"] == {"result": 8}


def test_arguments_may_be_changed_in_place() -> None:
    class InPlace(Middleware):
        async def call_tool(self, request: ToolRequest, call_next: CallTool) -> CallResult:
            request.arguments["b"] = 10
            return await call_next(request)

    assert text(call(server(InPlace()), "thread", {"a": 3})) == "30"


def test_arguments_that_middleware_makes_invalid_fail_the_call_and_name_the_fault() -> None:
    class Wrong(Middleware):
        async def call_tool(self, request: ToolRequest, call_next: CallTool) -> CallResult:
            return await call_next(request.replace({"a": "three"}))

    found = call(server(Wrong()), "thread", {"a": 3})
    assert found["isError"]
    assert text(found).startswith("thread: middleware has made its arguments invalid\na: ")


@pytest.mark.parametrize("revision", ERAS)
def test_it_may_answer_instead_of_the_tool_and_its_answer_is_checked_like_the_tools(revision: str) -> None:
    class Instead(Middleware):
        def __init__(self, answer: Any) -> None:
            self.answer = answer

        async def call_tool(self, request: ToolRequest, call_next: CallTool) -> CallResult:
            return self.answer  # type: ignore[no-any-return]

    good = CallResult([Text("seven")], structured={"result": 7})
    app = server(Instead(good))
    for _ in range(2):  # the same object may be returned again
        found = call(app, "inline", {"a": 3}, revision)
        assert (text(found), found["structuredContent"]) == ("seven", {"result": 7})
    assert good.meta.__class__.__name__ == "UnsetType"
    wrong = call(server(Instead(CallResult([Text("x")], structured={"result": "x"}))), "inline", {"a": 3}, revision)
    assert wrong["isError"]
    assert "invalid result" in text(wrong)


def test_it_may_refuse_a_call_and_sees_how_one_failed() -> None:
    class Refusing(Middleware):
        async def call_tool(self, request: ToolRequest, call_next: CallTool) -> CallResult:
            if request.name == "inline":
                raise ToolError("not today")
            return await call_next(request)

    events: list[Any] = []
    app = server(Log("log", events), Refusing())
    refused, failed = call(app, "inline", {"a": 1}), call(app, "fail")
    assert (text(refused), text(failed)) == ("not today", "no")
    assert refused["isError"] and failed["isError"]
    assert [each for each in events if each[1] == "ToolError"] == [
        ("log", "ToolError", "not today"),
        ("log", "ToolError", "no"),
    ]


def test_it_may_call_the_tool_again() -> None:
    tries: list[int] = []
    app = Server("t")

    @app.tool
    def flaky() -> str:
        tries.append(threading.get_ident())
        if len(tries) < 3:
            raise OSError("try again")
        return "at last"

    class Retry(Middleware):
        async def call_tool(self, request: ToolRequest, call_next: CallTool) -> CallResult:
            for _ in range(2):
                try:
                    return await call_next(request)
                except OSError:
                    pass
            return await call_next(request)

    app.add_middleware(Retry())
    assert text(call(app, "flaky")) == "at last"
    assert len(tries) == 3
    assert threading.get_ident() not in tries


@pytest.mark.parametrize("arguments", [{"a": "x"}, {}, {"a": 1, "c": 2}])
def test_a_call_with_invalid_arguments_or_an_unknown_name_does_not_reach_it(arguments: dict[str, Any]) -> None:
    events: list[Any] = []
    app, bare = server(Log("log", events)), server()
    assert call(app, "thread", arguments) == call(bare, "thread", arguments)
    with pytest.raises(Refused, match="no tool"):
        call(app, "threat", {"a": 1})
    assert events == []


def test_what_it_raises_by_mistake_is_masked() -> None:
    class Broken(Middleware):
        async def call_tool(self, request: ToolRequest, call_next: CallTool) -> CallResult:
            raise KeyError("secret")

    found = call(server(Broken()), "async", {"a": 1})
    assert "failed unexpectedly" in text(found)
    assert "secret" not in text(found)


@pytest.mark.parametrize("run", ["inline", "thread"])
@pytest.mark.parametrize("kind", [StopIteration, SystemExit, KeyboardInterrupt, ValueError])
def test_whatever_a_handler_raises_inside_of_it_the_call_is_answered(run: str, kind: type[BaseException]) -> None:
    app = Server("t")

    @app.tool(run=run)  # type: ignore[call-overload]
    def wrong() -> str:
        raise kind

    app.add_middleware(Log("log", []))
    assert "failed unexpectedly" in text(call(app, "wrong"))


def test_an_inline_tool_inside_of_it_is_told_what_it_can_not_wait_for() -> None:
    """It would get a coroutine otherwise. The middleware itself may wait."""
    folders: list[Any] = []

    class Waiting(Middleware):
        async def call_tool(self, request: ToolRequest, call_next: CallTool) -> CallResult:
            folders.append(await request.context.folders())
            try:
                return await call_next(request)
            finally:
                folders.append(await request.context.folders())

    app = Server("t")
    app.add_middleware(Waiting())

    @app.tool(run="inline")
    def look(ctx: Context) -> str:
        return str(ctx.folders())

    @app.tool(run="inline")
    def keep(ctx: Context) -> str:
        return str(ctx.session.state.get("key"))

    assert "can't wait for the client's roots" in text(call(app, "look"))
    assert "can't wait for the session's state" in text(call(app, "keep"))
    assert len(folders) == 4 and all(folders)


def test_a_raw_tool_runs_inside_of_it_too() -> None:
    events: list[Any] = []
    app = server(Log("log", events))
    schema = {"type": "object", "properties": {"x": {"type": "integer"}}}
    app.add_tool(Tool(name="raw", input_schema=schema), lambda given, _: CallResult([Text(str(given["x"]))]))
    assert text(call(app, "raw", {"x": 5})) == "5"
    assert events == [("log", "raw", {"x": 5}), ("log", "ended", "5")]


def test_middleware_added_while_the_server_runs_holds_from_the_next_call_on() -> None:
    events: list[Any] = []
    app = server()

    async def script(client: Peer) -> None:
        await client.call_tool("inline", a=1)
        app.add_middleware(Log("log", events))
        await client.call_tool("inline", a=2)

    converse(app, script)
    assert events == [("log", "inline", {"a": 2, "b": 2}), ("log", "ended", "4")]


def test_a_tool_added_later_is_inside_of_it() -> None:
    events: list[Any] = []
    app = server(Log("log", events))

    async def script(client: Peer) -> None:
        @app.tool
        def late() -> str:
            return "late"

        await client.call_tool("late")

    converse(app, script)
    assert events == [("log", "late", {}), ("log", "ended", "late")]


def test_questions_are_asked_before_it_and_the_answers_reach_the_tool() -> None:
    events: list[Any] = []
    app = Server("t")

    @app.tool
    def delete(path: str, sure: Annotated[bool, Ask("Delete {path}?")]) -> str:
        return f"{path} {sure}"

    app.add_middleware(Log("log", events))

    async def script() -> str:
        async with Client(app, on_elicit=lambda _: True) as client:
            return (await client.call_tool("delete", {"path": "x"})).text

    assert asyncio.run(asyncio.wait_for(script(), WAIT_SECONDS)) == "x True"
    assert events == [("log", "delete", {"path": "x"}), ("log", "ended", "x True")]


@pytest.mark.parametrize("mode", ["legacy", "modern"])
def test_a_tool_that_asks_in_its_body_runs_again_with_the_middleware_around_it(mode: str) -> None:
    events: list[Any] = []
    app = Server("t")

    @app.tool(replay=True)
    async def order(ctx: Context) -> str:
        answer = await ctx.elicit("How many?", int, key="count")
        return f"{answer.value} ordered"

    app.add_middleware(Log("log", events))

    async def script() -> str:
        async with Client(app, on_elicit=lambda _: 3, era=mode) as client:
            return (await client.call_tool("order")).text

    assert asyncio.run(asyncio.wait_for(script(), WAIT_SECONDS)) == "3 ordered"
    assert events[-1] == ("log", "ended", "3 ordered")
    assert events.count(("log", "order", {})) == (1 if mode == "legacy" else 2)


def test_progress_and_cancellation_pass_through_it_to_a_thread() -> None:
    events: list[Any] = []
    stopped = threading.Event()
    app = Server("t")

    @app.tool
    def work(ctx: Context) -> str:
        ctx.progress(1, 2)
        while not ctx.cancelled:
            stopped.wait(0.001)
        stopped.set()
        return "never sent"

    app.add_middleware(Log("log", events))

    async def script(client: Peer) -> None:
        id = client.send("tools/call", {"name": "work"}, {"progressToken": "p"})
        assert (await client.heard("notifications/progress"))["params"]["progress"] == 1
        client.notify("notifications/cancelled", {"requestId": id})
        await until(stopped.is_set)
        await until(lambda: not app.engine.executor.abandoned)
        assert id not in client.answers

    converse(app, script)
    assert events == [("log", "work", {})]


def test_a_timeout_holds_for_the_tool_and_the_middleware_together() -> None:
    app = Server("t")

    @app.tool(timeout=0.01)
    async def quick() -> str:
        return "done"

    class Slow(Middleware):
        async def call_tool(self, request: ToolRequest, call_next: CallTool) -> CallResult:
            await asyncio.Event().wait()
            return await call_next(request)

    app.add_middleware(Slow())
    assert "did not finish within 0.01 s" in text(call(app, "quick"))


def test_it_reaches_the_lifespan_and_the_principal() -> None:
    @asynccontextmanager
    async def open_state(_: Server) -> AsyncGenerator[str]:
        yield "state"

    app = Server("t", lifespan=open_state, auth="a-token-of-the-tests")
    seen: list[Any] = []

    class Look(Middleware):
        async def call_tool(self, request: ToolRequest, call_next: CallTool) -> CallResult:
            seen.append((request.context.principal.name, request.context.lifespan, request.effects, request.tags))
            return await call_next(request)

    @app.tool(effects="read", tags=["a"], run="inline")
    def look() -> str:
        return "looked"

    app.add_middleware(Look())
    with serve(app.asgi()) as served:
        headers = bearer("a-token-of-the-tests")
        assert ask_modern(served, calling("look"), headers).json["result"]["content"][0]["text"] == "looked"
        session = Session(served, headers=[headers])
        session.open()
        assert session.call("look") == "looked"
    assert seen == [("token", "state", "read", ("a",))] * 2


def test_calls_are_counted_once() -> None:
    app = server(Log("log", []))
    for _ in range(3):
        call(app, "inline", {"a": 1})
    entry = app.catalog.tools["inline"]
    assert app.engine.tools["inline"].calls == 3
    assert entry.wrapped is app.engine.tools["inline"]
    assert app.engine.executor.calls == 3


def test_a_toolset_that_is_imported_by_its_first_call_is_inside_of_it() -> None:
    events: list[Any] = []
    app = Server("t")
    app.add_indexed(INDEX, "discovery")
    app.add_middleware(Log("log", events))
    help_text = text(call(app, "tool_help", {"name": "hello"}))
    assert help_text.startswith("hello")
    assert [each[:2] for each in events] == [("log", "tool_help"), ("log", "ended")]


def test_a_reloaded_file_brings_its_own_middleware() -> None:
    events: list[Any] = []
    app = server(Log("old", events))

    async def script(client: Peer) -> None:
        await client.call_tool("inline", a=1)
        app.adopt(server(Log("new", events)))
        await client.call_tool("inline", a=1)
        app.adopt(server())
        await client.call_tool("inline", a=1)

    converse(app, script)
    assert [name for name, tool, *_ in events if tool == "inline"] == ["old", "new"]


# -- mounted servers and the forms of the catalogue


def test_a_mounted_servers_tools_are_inside_of_it() -> None:
    events: list[Any] = []
    gate = Server("gate")
    gate.mount(Client(server()), prefix="m")
    gate.add_middleware(Log("log", events))
    gate.add_middleware(Changing())

    async def script() -> str:
        async with Client(gate) as client:
            return (await client.call_tool("m_thread", {"a": 3})).text

    assert asyncio.run(asyncio.wait_for(script(), WAIT_SECONDS)) == "8\nseen"
    assert events == [("log", "m_thread", {"a": 3}), ("log", "ended", "8")]


def test_call_tool_runs_it_around_the_tool_that_is_called() -> None:
    events: list[Any] = []
    app = Server("t", catalog="search")

    @app.tool
    def hidden(a: int) -> int:
        """Multiply a number."""
        return 2 * a

    app.add_middleware(Log("log", events))
    found = call(app, "call_tool", {"name": "hidden", "arguments": {"a": 4}})
    assert text(found) == "8"
    assert events == [("log", "hidden", {"a": 4}), ("log", "ended", "8")]


# -- reads, prompts and lists


def offering() -> Server:
    app = Server("t")

    @app.resource("doc://{name}")
    def doc(name: str) -> str:
        return f"text of {name}"

    @app.prompt
    async def greet(who: str) -> str:
        return f"Hello {who}"

    @app.tool(run="inline")
    def one() -> str:
        return "1"

    @app.tool(run="inline")
    def two() -> str:
        return "2"

    return app


class Whole(Middleware):
    """Changes every read, prompt and list."""

    async def read_resource(self, request: ResourceRequest, call_next: ReadResource) -> list[Contents]:
        if request.uri == "doc://own":
            return [Contents(request.uri, text="made here")]
        return [Contents(each.uri, text=str(each.text).upper()) for each in await call_next(request)]

    async def get_prompt(self, request: PromptRequest, call_next: GetPrompt) -> list[Message]:
        found = await call_next(request)
        return [*found, Message("user", f"(asked of {request.name} with {request.arguments})")]

    async def list_entries(self, request: ListRequest, call_next: ListEntries) -> list[dict[str, Any]]:
        found = await call_next(request)
        for each in found:
            each["title"] = f"{request.what} of {request.context.principal.name}"
        return [each for each in found if each["name"] != "one"]


@pytest.mark.parametrize("revision", ERAS)
def test_reads_prompts_and_lists_can_be_changed(revision: str) -> None:
    app = offering()
    app.add_middleware(Whole())
    for uri, expected in (("doc://a", "TEXT OF A"), ("doc://own", "made here")):
        assert result(app, "resources/read", {"uri": uri}, revision)["contents"][0]["text"] == expected
    messages = result(app, "prompts/get", {"name": "greet", "arguments": {"who": "you"}}, revision)["messages"]
    texts = [each["content"]["text"] for each in messages]
    assert texts == ["Hello you", "(asked of greet with {'who': 'you'})"]
    tools = result(app, "tools/list", {}, revision)["tools"]
    assert [(each["name"], each["title"]) for each in tools] == [("two", "tools of local")]
    for method, key, what in (
        ("prompts/list", "prompts", "prompts"),
        ("resources/templates/list", "resourceTemplates", "templates"),
    ):
        assert result(app, method, {}, revision)[key][0]["title"] == f"{what} of local"


class Returning(Middleware):
    """Answers reads and lists with this."""

    def __init__(self, value: Any) -> None:
        self.value = value

    async def read_resource(self, request: ResourceRequest, call_next: ReadResource) -> list[Contents]:
        return self.value  # type: ignore[no-any-return]

    async def list_entries(self, request: ListRequest, call_next: ListEntries) -> list[dict[str, Any]]:
        return self.value  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("method", "params", "value"),
    [
        ("tools/list", {}, None),
        ("tools/list", {}, [{}]),
        ("tools/list", {}, [{"name": 5}]),
        ("tools/list", {}, ["two"]),
        ("resources/read", {"uri": "doc://a"}, None),
        ("resources/read", {"uri": "doc://a"}, "text"),
        ("resources/read", {"uri": "doc://a"}, [{"text": "without a URI"}]),
    ],
)
def test_a_malformed_answer_of_middleware_is_an_error_of_the_server(method: str, params: Any, value: Any) -> None:
    app = offering()
    app.add_middleware(Returning(value))
    with pytest.raises(Refused, match="-32603: "):
        result(app, method, params)


def test_the_other_kinds_of_requests_are_left_as_they_are() -> None:
    app = offering()
    app.add_middleware(Log("log", []))
    app.engine  # noqa: B018 - made on first use
    assert all(entry.wrapped is None for entry in app.catalog.entries() if entry.kind != "tool")
    bare = offering()
    for method in ("tools/list", "prompts/list", "resources/templates/list"):
        assert result(app, method, {}, NEWEST) == result(bare, method, {}, NEWEST)


def test_pages_are_cut_from_the_list_that_middleware_leaves() -> None:
    from longshore import Limits

    app = Server("t", limits=Limits(page=2))
    for name in "abcde":
        app.tool(name=name, run="inline")(lambda: "x")

    class Vowels(Middleware):
        async def list_entries(self, request: ListRequest, call_next: ListEntries) -> list[dict[str, Any]]:
            return [each for each in await call_next(request) if each["name"] != "b"]

    app.add_middleware(Vowels())

    async def script(client: Peer) -> list[list[str]]:
        first = await client.request("tools/list")
        second = await client.request("tools/list", {"cursor": first["nextCursor"]})
        assert "nextCursor" not in second
        return [[each["name"] for each in page["tools"]] for page in (first, second)]

    assert converse(app, script) == [["a", "c"], ["d", "e"]]


# -- what is refused


def test_a_class_or_a_plain_def_is_refused_with_the_fix() -> None:
    class Plain(Middleware):
        def call_tool(self, request: ToolRequest, call_next: CallTool) -> Any:
            return call_next(request)

    app = server()
    with pytest.raises(RegistrationError, match="call_tool of a middleware is async"):
        app.add_middleware(Plain())
    with pytest.raises(RegistrationError, match="is no Middleware object"):
        app.add_middleware(Log)  # type: ignore[arg-type]
