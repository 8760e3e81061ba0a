"""Trace context: read from `_meta` in both eras, and carried on by mounts and clients; with spans as our own span."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from longshore import Client, Context, Server
from longshore.telemetry.events import expand
from longshore.telemetry.records import TraceContext
from longshore.telemetry.trace import BAGGAGE_CHARACTERS, STATE_CHARACTERS, parse, to_meta

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
PARENT = f"00-{TRACE}-{SPAN}-01"
META = {"traceparent": PARENT, "tracestate": "congo=t61rcWkgMzE", "baggage": "user=ann"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "00",
        PARENT.upper().replace("00-", "00-", 1),
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE[:-1]}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-01-more",
        f" {PARENT}",
        f"{PARENT}\n",
    ],
)
def test_a_malformed_parent_is_ignored(text: str) -> None:
    assert parse(text) is None


def test_a_parent_of_a_later_version_is_read() -> None:
    assert parse(f"01-{TRACE}-{SPAN}-01-more") == TraceContext(TRACE, SPAN)


@pytest.mark.parametrize(("more", "kept"), [(-1, True), (0, True), (1, False)])
def test_state_and_baggage_have_limits(more: int, kept: bool) -> None:
    state, baggage = "s" * (STATE_CHARACTERS + more), "b" * (BAGGAGE_CHARACTERS + more)
    found = parse(PARENT, state, baggage)
    assert found is not None
    assert (found.state, found.baggage) == ((state, baggage) if kept else ("", ""))


def test_what_is_read_is_written_again() -> None:
    found = parse(PARENT, META["tracestate"], META["baggage"])
    assert found is not None
    assert to_meta(found) == META


# -- through servers


def inner() -> tuple[Server, list[dict[str, Any]]]:
    """A server whose tools note the `_meta` that they were called with."""
    app, seen = Server("inner"), list[dict[str, Any]]()

    @app.tool
    async def note(ctx: Context) -> str:
        seen.append({key: value for key, value in ctx.meta.items() if key in META})
        return "noted"

    return app, seen


def outer(target: Server, era: str) -> Server:
    """A server that mounts another, and has tools of each kind that call it as a client."""
    app = Server("outer")
    app.mount(Client(target, era=era), prefix="inner")

    @app.tool
    async def asks() -> str:
        async with Client(target, era=era) as client:
            await client.call_tool("note")
        return "asked"

    @app.tool
    def asks_on_a_thread() -> str:
        return asyncio.run(ask())

    async def ask() -> str:
        async with Client(inner_of_thread, era=era) as client:
            await client.call_tool("note")
        return "asked"

    inner_of_thread = target
    return app


def converse(app: Server, era: str, work: Callable[[Client], Awaitable[Any]]) -> None:
    async def run() -> None:
        async with asyncio.timeout(60), Client(app, era=era) as client:
            await work(client)

    asyncio.run(run())


ERAS = ["legacy", "modern"]


@pytest.mark.parametrize("theirs", ERAS)
@pytest.mark.parametrize("ours", ERAS)
def test_without_spans_the_context_is_carried_on_as_it_is(ours: str, theirs: str) -> None:
    target, seen = inner()
    app = outer(target, theirs)

    async def work(client: Client) -> None:
        for tool in ("inner_note", "asks"):
            await client.call_tool(tool, meta=META)
            await client.call_tool(tool)
            await client.call_tool(tool, meta={"traceparent": "nonsense"})

    converse(app, ours, work)
    assert seen == [META, {}, {}, META, {}, {}]


@pytest.mark.parametrize("era", ERAS)
def test_a_tool_on_a_thread_carries_it_on_too(era: str) -> None:
    target, seen = inner()
    app = outer(target, era)

    async def work(client: Client) -> None:
        await client.call_tool("asks_on_a_thread", meta=META)
        await client.call_tool("asks_on_a_thread")

    converse(app, era, work)
    assert seen == [META, {}]


@pytest.mark.parametrize("era", ERAS)
def test_with_spans_what_is_carried_on_names_our_span(era: str) -> None:
    target, seen = inner()
    app = outer(target, era)
    app.recorder.keep(values=False, traces=True)
    ring = app.recorder.open_ring(1000)

    async def work(client: Client) -> None:
        for tool in ("inner_note", "asks"):
            await client.call_tool(tool, meta=META)
        await client.call_tool("asks")

    converse(app, era, work)
    records = [each for event in ring.since(0).events for each in expand(event, 0.0)]
    calls = [each for each in records if type(each).__name__ == "RequestCompleted" and each.method == "tools/call"]
    spans = [each.trace_context for each in calls]
    assert [each.parent_id for each in spans] == [SPAN, SPAN, ""]
    assert [each.trace_id == TRACE for each in spans] == [True, True, False]
    assert seen == [to_meta(each) for each in spans]
    assert len({each.span_id for each in spans} - {SPAN}) == 3


def test_the_callers_own_context_comes_before_that_of_the_call() -> None:
    target, seen = inner()
    app, own = Server("own"), {"traceparent": f"00-{'1' * 32}-{'2' * 16}-00"}

    @app.tool
    async def asks() -> str:
        async with Client(target) as client:
            await client.call_tool("note", meta=own)
        return "asked"

    converse(app, "modern", lambda client: client.call_tool("asks", meta=META))
    assert seen[0]["traceparent"] == own["traceparent"]
