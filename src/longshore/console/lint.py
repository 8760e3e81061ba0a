"""The linter's findings about the tools on offer, and what each client makes of these tools."""

from __future__ import annotations

from typing import Any, Final

from longshore.schema.lint.clients import CLIENTS
from longshore.schema.lint.rule import COMMON, PROFILES
from longshore.schema.lint.run import lint
from longshore.schema.lint.tool_list import ToolList
from longshore.schema.lint.view import ClientView, view_as
from longshore.server.engine import Engine

MOST_FINDINGS: Final = 500
MOST_EFFECTS: Final = 50
"""Of one client; `longshore lint --as` has all."""


def describe(server: ToolList, engine: Engine) -> dict[str, Any]:
    """The findings and the clients' views."""
    config = engine.policy.config.lint
    profiles: Any = config.profiles or (COMMON if server.categories is None else PROFILES)
    waived = {rule: str(reason) for rule, reason in config.waive.items()}
    findings = [each for each in lint(server, profiles=profiles, waived=waived) if not each.waived]
    return {
        "tools": len(server.tools),
        "profiles": list(profiles),
        "more": max(0, len(findings) - MOST_FINDINGS),
        "findings": [
            {
                "level": each.level,
                "rule": each.rule,
                "tool": each.tool,
                "path": each.path,
                "text": each.message,
                "fix": each.fix,
            }
            for each in findings[:MOST_FINDINGS]
        ],
        "views": {client: _describe_view(view_as(server, client)) for client in CLIENTS},
    }


def _describe_view(view: ClientView) -> dict[str, Any]:
    effects = [
        {"tool": tool.name, "what": mark.what, "path": mark.path, "rule": mark.rule, "costs": mark.costs}
        for tool in view.tools
        for mark in tool.marks
    ]
    whole = [
        {"tool": "", "what": mark.what, "path": mark.path, "rule": mark.rule, "costs": mark.costs}
        for mark in view.marks
    ]
    listed = [*whole, *effects]
    return {
        "title": view.title,
        "tokens": view.tokens,
        "tools": len(view.tools),
        "lost": [tool.name for tool in view.tools if tool.is_lost],
        "renamed": {tool.name: tool.sent for tool in view.tools if not tool.is_lost and tool.sent != tool.name},
        "fails": view.fails,
        "is_refused": view.is_refused,
        "effects": listed[:MOST_EFFECTS],
        "more": max(0, len(listed) - MOST_EFFECTS),
    }
