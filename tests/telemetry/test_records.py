"""The records of a request, with their outcomes; no arguments or results are in them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

import msgspec
import pytest

from longshore import Ask, Context, Limits, Server, ToolError
from longshore.telemetry.records import (
    LimitReached,
    Problem,
    Record,
    Refused,
    RequestCompleted,
    RequestReceived,
    ToolCompleted,
    ToolInvoked,
    level_of,
)
from memory_link import Memory

PREFIX = "io.modelcontextprotocol/"
ENVELOPE = {PREFIX + "protocolVersion": "2026-07-28", PREFIX + "clientCapabilities": {"elicitation": {}}}
CANARY = "canary-7f3a9c"


def make() -> Server:
    app = Server("recorded", limits=Limits(running=1, parked=1))
    app.gate = threading.Event()  # type: ignore[attr-defined]

    @app.tool(run="inline")
    def inline(text: str) -> str:
        return text

    @app.tool
    def thread(text: str) -> str:
        return text

    @app.tool
    async def later(text: str) -> str:
        return text

    @app.tool
    async def wrong(text: str) -> str:
        raise ToolError(f"can't do {text}")

    @app.tool
    async def broken(text: str) -> str:
        raise RuntimeError(f"it broke at {text}")

    @app.tool(run="inline")
    def broken_inline(text: str) -> str:
        raise RuntimeError(f"it broke at {text}")

    @app.tool(timeout=0.02)
    async def slow(text: str) -> str:
        await asyncio.Event().wait()
        return text

    @app.tool
    async def hang(text: str) -> str:
        await asyncio.Event().wait()
        return text

    @app.tool
    async def asking(text: str, ok: Annotated[bool, Ask("Really {text}?")]) -> str:
        return text

    @app.tool
    async def large(text: str) -> str:
        return text * 20_000_000

    @app.resource("note://{name}")
    async def note(name: str) -> str:
        return name

    @app.prompt
    async def plan(text: str) -> str:
        return text

    return app


def modern(id: int | str, method: str, **params: Any) -> bytes:
    return msgspec.json.encode({"jsonrpc": "2.0", "id": id, "method": method, "params": {**params, "_meta": ENVELOPE}})


def call(id: int | str, tool: str, **arguments: Any) -> bytes:
    return modern(id, "tools/call", name=tool, arguments=arguments)


def record(talk: Callable[[Memory], Awaitable[None]], app: Server | None = None) -> list[Record]:
    """The records that a listener gets during `talk`."""
    app = app or make()
    heard: list[Record] = []
    app.listen(heard.append)

    async def run() -> None:
        link = Memory(app.engine)
        async with asyncio.timeout(20):
            await talk(link)
        link.close()

    asyncio.run(run())
    return heard


def asked(*frames: bytes) -> list[Record]:
    async def talk(link: Memory) -> None:
        for frame in frames:
            link.put(frame)
            await link.get()

    return record(talk)


def shapes(records: list[Record]) -> list[tuple[Any, ...]]:
    """The records without clocks and durations."""
    found: list[tuple[Any, ...]] = []
    for each in records:
        match each:
            case RequestReceived(method=method, id=id):
                found.append(("received", method, id))
            case RequestCompleted(method=method, id=id, outcome=outcome):
                found.append(("completed", method, id, outcome))
            case Refused(why=why, id=id):
                found.append(("refused", why, id))
            case LimitReached(limit=limit, id=id):
                found.append(("limit", limit, id))
            case ToolInvoked(tool=tool, id=id):
                found.append(("invoked", tool, id))
            case ToolCompleted(tool=tool, id=id, outcome=outcome):
                found.append(("tool completed", tool, id, outcome))
            case Problem(level=level):
                found.append(("problem", level))
    return found


def whole(tool: str, outcome: str, *between: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    return [
        ("received", "tools/call", 1),
        ("invoked", tool, 1),
        *between,
        ("tool completed", tool, 1, outcome),
        ("completed", "tools/call", 1, outcome),
    ]


@pytest.mark.parametrize(
    ("tool", "outcome", "limits"),
    [
        ("inline", "ok", []),
        ("thread", "ok", []),
        ("later", "ok", []),
        ("wrong", "failed", []),
        ("slow", "timeout", ["server.timeout"]),
        ("asking", "asked", []),
        ("large", "error", ["limits.frame_bytes"]),
    ],
)
def test_a_call_leaves_four_records_and_one_for_the_limit_that_it_met(
    tool: str, outcome: str, limits: list[str]
) -> None:
    met = [("limit", limit, 1) for limit in limits]
    assert shapes(asked(call(1, tool, text="x"))) == whole(tool, outcome, *met)


@pytest.mark.parametrize("tool", ["broken", "broken_inline"])
def test_an_unexpected_exception_leaves_a_problem_with_its_trace(tool: str) -> None:
    heard = asked(call(1, tool, text="x"))
    assert [shape for shape in shapes(heard) if shape[0] != "problem"] == whole(tool, "failed")
    (problem,) = [each for each in heard if isinstance(each, Problem)]
    assert problem.level == "error"
    assert "RuntimeError" in problem.text
    first, frame, *_ = problem.trace.splitlines()
    assert first.startswith("Traceback")
    assert f'File "{__file__}"' in frame, "the author's first frame, none of ours before it"


def test_times_are_measured() -> None:
    heard = asked(call(1, "slow", text="x"))
    (done,) = [each for each in heard if isinstance(each, ToolCompleted)]
    (request,) = [each for each in heard if isinstance(each, RequestCompleted)]
    assert 0.01 <= done.seconds <= request.seconds + 0.001 < 20  # a timer may be a little early
    assert all(each.at > 1e9 for each in heard)


@pytest.mark.parametrize("tool", ["inline", "later", "thread"])
def test_a_call_with_wrong_arguments_is_refused_and_never_invoked(tool: str) -> None:
    assert shapes(asked(call(1, tool, text=3, more=1))) == [
        ("received", "tools/call", 1),
        ("refused", "invalid_arguments", 1),
        ("completed", "tools/call", 1, "refused"),
    ]


def test_an_unknown_tool_is_refused() -> None:
    assert shapes(asked(call(1, "nobody"))) == [
        ("received", "tools/call", 1),
        ("refused", "unknown_tool", 1),
        ("completed", "tools/call", 1, "refused"),
    ]


def test_a_busy_server_refuses() -> None:
    async def talk(link: Memory) -> None:
        link.put(call(1, "hang", text="x"))
        await asyncio.sleep(0)
        link.put(call(2, "hang", text="x"))
        link.put(call(3, "hang", text="x"))
        assert b"busy" in await link.get()

    heard = shapes(record(talk))
    assert ("completed", "tools/call", 3, "refused") in heard
    assert heard.count(("limit", "limits.running", 3)) == 1
    assert ("invoked", "hang", 3) not in heard


def test_a_cancelled_call_is_completed_as_such() -> None:
    async def talk(link: Memory) -> None:
        link.put(call(1, "hang", text="x"))
        await asyncio.sleep(0)
        link.put(b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}')

    assert shapes(record(talk)) == whole("hang", "cancelled")


@pytest.mark.parametrize(
    ("method", "params", "why"),
    [
        ("server/discover", {}, None),
        ("tools/list", {}, None),
        ("tools/list", {"cursor": "nonsense"}, "invalid_arguments"),
        ("no/such", {}, "unknown_method"),
        ("resources/read", {"uri": "note://a"}, None),
        ("resources/read", {"uri": "nope://a"}, "invalid_arguments"),
        ("prompts/get", {"name": "plan", "arguments": {"text": "x"}}, None),
        ("prompts/get", {"name": "plan"}, "invalid_arguments"),
    ],
)
def test_other_requests_leave_two_records_and_one_for_a_refusal(
    method: str, params: dict[str, Any], why: str | None
) -> None:
    recorded = "unknown" if method == "no/such" else method
    assert shapes(asked(modern("a", method, **params))) == [
        ("received", recorded, "a"),
        *([("refused", why, "a")] if why else []),
        ("completed", recorded, "a", "refused" if why else "ok"),
    ]


def test_no_argument_or_result_is_in_a_record() -> None:
    """Arguments, results, an author's ToolError and questions stay out; the trace of a fault is the exception."""
    tools = ["inline", "thread", "later", "wrong", "slow", "asking"]
    frames = [call(tool, tool, text=CANARY) for tool in tools]
    frames += [call("odd", "inline", text=CANARY, **{CANARY: CANARY}), call("unknown", "inline", value=CANARY)]
    frames += [modern("read", "resources/read", uri=f"note://{CANARY}")]
    frames += [modern("get", "prompts/get", name="plan", arguments={"text": CANARY})]
    heard = asked(*frames)
    assert len(heard) > 2 * len(frames) - 1
    assert CANARY not in repr(heard)


def test_a_masked_exceptions_text_reaches_the_log_only() -> None:
    heard = asked(call(1, "broken", text=CANARY))
    assert [each for each in heard if CANARY in repr(each)] == [each for each in heard if isinstance(each, Problem)]


# -- listeners


def test_a_listener_that_fails_is_dropped_and_the_call_is_answered() -> None:
    app = make()
    heard: list[Record] = []

    def failing(_: Record) -> None:
        raise RuntimeError("a broken sink")

    app.listen(failing)

    async def talk(link: Memory) -> None:
        link.put(call(1, "later", text="x"))
        assert b'"x"' in await link.get()

    heard = record(talk, app)
    assert shapes(heard) == whole("later", "ok")
    assert app.recorder.dropped == 1


def test_a_failing_fallback_fails_nothing_else() -> None:
    app = make()

    def failing(_: Record) -> None:
        raise RuntimeError("a broken sink")

    app.recorder.fallback = lambda: failing

    async def run() -> None:
        link = Memory(app.engine)
        link.put(call(1, "broken_inline", text="x"))
        assert b"failed unexpectedly" in await link.get()

    asyncio.run(run())
    assert app.recorder.dropped == 1


def test_a_listener_can_stop() -> None:
    app = make()
    heard: list[Record] = []
    stop = app.listen(heard.append)
    assert app.recorder.on
    stop()
    assert not app.recorder.on
    stop()

    async def run() -> None:
        link = Memory(app.engine)
        link.put(call(1, "inline", text="x"))
        await link.get()

    asyncio.run(run())
    assert heard == []


def test_a_listener_may_stop_inside_its_callback() -> None:
    app = make()
    heard: list[Record] = []

    def once(each: Record) -> None:
        heard.append(each)
        stop()

    stop = app.listen(once)

    async def run() -> None:
        link = Memory(app.engine)
        link.put(call(1, "inline", text="x"))
        await link.get()

    asyncio.run(run())
    assert shapes(heard) == [("received", "tools/call", 1)]


def test_each_record_has_a_level() -> None:
    assert level_of(RequestReceived(method="m", id=1, at=0.0)) == "debug"
    assert level_of(ToolCompleted(tool="t", id=1, seconds=0.0, outcome="ok", at=0.0)) == "info"
    assert level_of(ToolCompleted(tool="t", id=1, seconds=0.0, outcome="failed", at=0.0)) == "notice"
    assert level_of(Refused(why="rate", at=0.0)) == "notice"
    assert level_of(Problem("error", "x", 0.0)) == "error"


def test_without_a_listener_no_record_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    app = make()

    def forbidden(_: Record) -> None:
        raise AssertionError("a record was made for nobody")

    monkeypatch.setattr(type(app.recorder), "record", lambda self, each: forbidden(each))

    async def run() -> None:
        link = Memory(app.engine)
        for tool in ("inline", "later", "thread", "wrong", "slow"):
            link.put(call(tool, tool, text="x"))
            await link.get()

    asyncio.run(run())


def test_a_context_has_no_access_to_listeners() -> None:
    assert not [name for name in dir(Context) if "record" in name]
