"""Middleware and session state of tools that code calls."""

from __future__ import annotations

import pytest

from longshore import CallResult, CallTool, Client, Context, Middleware, Server, ToolRequest
from longshore.toolsets.code.options import CodeOptions
from longshore.toolsets.code.tools import Code

from .codes import ERAS, run


class Names(Middleware):
    def __init__(self) -> None:
        self.seen: list[str] = []

    async def call_tool(self, request: ToolRequest, call_next: CallTool) -> CallResult:
        self.seen.append(request.name)
        return await call_next(request)


@pytest.mark.parametrize("era", ERAS)
async def test_code_and_the_tools_that_it_calls_run_inside_of_middleware_and_share_the_session(era: str) -> None:
    app, names = Server("code", catalog="code"), Names()
    app.add_toolset(Code(CodeOptions(), app))
    app.add_middleware(names)

    @app.tool
    async def remember(number: int, ctx: Context) -> int:
        """Remember a number."""
        await ctx.session.state.set("number", number)
        return number

    @app.tool
    def recall(ctx: Context) -> int:
        """Recall the number."""
        return int(ctx.session.state.get("number", 0))

    async with Client(app, era=era) as client:
        assert await run(client, "tools.remember(number=5)\nprint(tools.recall())") == "5"
        assert (await client.call_tool("recall")).text == "5"
    assert names.seen == ["run_code", "remember", "recall", "recall"]
