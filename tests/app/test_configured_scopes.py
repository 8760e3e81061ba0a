"""Scopes that the configuration adds to tools, and tools that do the work of others."""

from __future__ import annotations

from typing import Any

import pytest

from longshore import Context, Server, ToolError, Toolset, tool
from longshore.config import DEFAULT
from longshore.config.load import load
from longshore.errors import Forbidden
from longshore.protocol.peer import ANONYMOUS, Principal


class Files(Toolset):
    name = "files"

    @tool(effects="read")
    def look(self) -> str:
        return "seen"

    @tool(effects="destroy", scopes=["admin"])
    def write(self) -> str:
        return "written"

    @tool(effects="destroy")
    def both(self, ctx: Context, action: str) -> str:
        ctx.check_allowed(action)
        return action


def serve(**flags: Any) -> Server:
    app = Server("t")
    app.add_toolset(Files())
    app.config = load(flags or None, environ={}, path="/dev/null") if flags else DEFAULT
    return app


def needed(app: Server) -> dict[str, set[str]]:
    return {name: set(entry.needed) for name, entry in app.engine.tools.items()}


def test_a_tools_own_table_overrides_its_toolsets_and_adds_to_what_it_declares() -> None:
    flags = {"toolsets.files.scopes": "files", "tools.look.scopes": []}
    app = serve(**flags)
    assert needed(app) == {"look": set(), "write": {"admin", "files"}, "both": {"files"}}
    assert needed(serve()) == {"look": set(), "write": {"admin"}, "both": set()}


def test_a_tool_for_others_is_refused_where_they_would_be() -> None:
    policy = serve().engine.policy
    policy.check_allowed("look", ANONYMOUS)
    policy.check_allowed("write", Principal())
    with pytest.raises(Forbidden, match="write needs the scope admin; send a token"):
        policy.check_allowed("write", ANONYMOUS)
    with pytest.raises(Forbidden, match=r"write needs the scope admin$"):
        policy.check_allowed("write", Principal("bob", frozenset({"x"})))
    off = serve(**{"tools.look.enabled": False}).engine.policy
    for name in ("look", "nope"):
        with pytest.raises(ToolError, match=f"{name} is off here"):
            off.check_allowed(name, Principal())
