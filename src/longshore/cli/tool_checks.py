"""The checks of `longshore doctor TARGET` of a list of tools: what each client makes of them."""

from __future__ import annotations

from collections.abc import Iterator

from longshore.cli.check import Check
from longshore.cli.screen import many, short
from longshore.schema.lint.clients import CLIENTS
from longshore.schema.lint.run import find_rule, lint
from longshore.schema.lint.tool_list import ToolList
from longshore.schema.lint.view import ClientView, view_as


def check_tools(server: ToolList) -> Iterator[Check]:
    """What each client makes of the tools."""
    counted = many(len(server.tools), "tool")
    worst = list[Check]()
    for name in CLIENTS:
        view = view_as(server, name)
        if view.fails or view.is_refused:
            worst.append(_useless(view))
        elif lost := [tool.name for tool in view.tools if tool.is_lost]:
            mark = next(mark for mark in view.all_marks() if mark.costs)
            what = f"{many(len(lost), 'tool')} of {len(server.tools)} lost, such as {short(lost[0], 60)}: {mark.what}"
            worst.append(Check(f"tools in {view.title}", "failed", what, _fix_of(mark.rule)))
    yield Check("tools", "ok" if server.tools else "missing", f"{counted} listed")
    yield from worst
    errors = [each for each in lint(server) if each.level == "error"]
    if errors and not worst:
        what = f"{many(len(errors), 'error')}, such as {errors[0].tool}: {errors[0].message}"
        yield Check("lint", "failed", what, errors[0].fix)
    elif not worst:
        yield Check("lint", "ok", "no client drops or refuses a tool")


def _useless(view: ClientView) -> Check:
    """A client in which none of the tools can be used."""
    costs = "list" if view.fails else "request"
    tool, mark = next(
        ((tool.name, mark) for tool in view.tools for mark in tool.marks if mark.costs == costs),
        ("", next((mark for mark in view.marks if mark.costs == costs), view.all_marks()[0])),
    )
    lost = "all tools are lost" if view.fails else "no request gets through"
    where = f"{short(tool, 60)} {mark.path}".strip()
    return Check(f"tools in {view.title}", "failed", f"{lost}: {where}: {mark.what}", _fix_of(mark.rule))


def _fix_of(rule: str) -> str:
    found = find_rule(rule)
    return f"{found.fix} (longshore lint --explain {rule})" if found is not None else "see `longshore lint`"
