"""Tools with run="inline_first": answered on the serving thread, or on another one if they raise WouldBlock there."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from longshore import Context, RegistrationError, Server, Tool, ToolError, Toolset, WouldBlock, tool
from longshore.telemetry.records import RequestCompleted, ToolCompleted, ToolInvoked

from .test_engine import Peer, run, text_of


def make(records: list[Any] | None = None) -> Server:
    app = Server("t")
    if records is not None:
        app.listen(records.append)

    @app.tool(run="inline_first")
    def where(ctx: Context, wait: bool = False, fail: bool = False) -> str:
        if fail:
            raise ToolError("no")
        if wait and not ctx.may_block:
            raise WouldBlock
        return "serving" if threading.current_thread() is threading.main_thread() else "other"

    return app


@pytest.mark.parametrize("modern", [False, True])
def test_a_call_that_waits_for_nothing_is_answered_at_once(modern: bool) -> None:
    async def body() -> None:
        app = make()
        peer = Peer(app, modern=modern)
        peer.call(1, "where")
        assert peer.link.pending() == 1, "it was answered before the next turn of the loop"
        assert text_of(await peer.get()) == "serving"
        assert app.engine.executor.threads == 0

    run(body())


@pytest.mark.parametrize("modern", [False, True])
def test_a_call_that_would_block_runs_again_on_a_thread(modern: bool) -> None:
    async def body() -> None:
        app = make()
        peer = Peer(app, modern=modern)
        peer.call(1, "where", wait=True)
        assert text_of(await peer.get()) == "other"
        assert app.engine.executor.threads == 1
        assert not app.engine.executor.live and not app.engine.executor.running

    run(body())


def test_either_way_a_call_is_counted_and_recorded_once() -> None:
    async def body() -> None:
        records = list[Any]()
        app = make(records)
        peer = Peer(app)
        for id, arguments in enumerate(({}, {"wait": True}, {"fail": True})):
            records.clear()
            peer.call(id, "where", **arguments)
            await peer.get()
            for kind in (ToolInvoked, ToolCompleted, RequestCompleted):
                assert len([each for each in records if isinstance(each, kind)]) == 1, (arguments, kind)
            assert app.engine.executor.calls == app.engine.tools["where"].calls == id + 1

    run(body())


def test_an_error_on_the_serving_thread_is_the_answer() -> None:
    async def body() -> None:
        app = make()
        peer = Peer(app)
        peer.call(1, "where", fail=True)
        assert text_of(await peer.get()) == "no"
        assert app.engine.executor.threads == 0

    run(body())


def test_arguments_are_checked_before_either_way() -> None:
    async def body() -> None:
        peer = Peer(make())
        peer.call(1, "where", wait=[])
        assert "invalid arguments" in text_of(await peer.get())

    run(body())


def test_a_raw_tool_and_one_of_a_toolset_have_the_same_ways() -> None:
    class Wheres(Toolset):
        name = "wheres"

        def start(self) -> None:
            self.started = True

        @tool(run="inline_first")
        def of_toolset(self, ctx: Context) -> str:
            if not ctx.may_block:
                raise WouldBlock
            return f"other {self.started}"

    def of_raw(_: dict[str, Any], ctx: Context) -> dict[str, Any]:
        if not ctx.may_block:
            raise WouldBlock
        return {"content": [{"type": "text", "text": "other"}]}

    async def body() -> None:
        app = Server("t")
        app.add_toolset(Wheres())
        app.add_tool(Tool(name="of_raw", input_schema={"type": "object"}, run="inline_first"), of_raw)
        peer = Peer(app)
        peer.call(1, "of_raw")
        assert text_of(await peer.get()) == "other"
        for id in (2, 3):
            peer.call(id, "of_toolset")
            assert text_of(await peer.get()) == "other True"

    run(body())


def test_an_inline_tool_that_would_block_has_failed() -> None:
    async def body() -> None:
        app = Server("t")

        @app.tool(run="inline")
        def never() -> str:
            raise WouldBlock

        peer = Peer(app)
        peer.call(1, "never")
        assert "never failed unexpectedly" in text_of(await peer.get())

    run(body())


def test_it_is_for_tools_that_are_plain_functions() -> None:
    app = Server("t")
    with pytest.raises(RegistrationError, match="is for def"):

        @app.tool(run="inline_first")
        async def waits() -> str:
            return ""

    with pytest.raises(RegistrationError, match="is no way to run it"):

        @app.prompt(run="inline_first")
        def asks() -> str:
            return ""
