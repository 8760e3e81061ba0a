"""What `longshore lint --fix` prints: the tools with every fault mended that can be without changing what they mean."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from msgspec.structs import replace

from longshore.schema.kinds import is_object
from longshore.schema.standards.linting import lint
from longshore.schema.standards.rule import Profile, Rule
from longshore.schema.standards.rules import RULES
from longshore.schema.standards.subject import Surface

ROUNDS: Final = 3
"""One mending may uncover another fault; more often than this they only undo each other."""


def mend(
    surface: Surface, profiles: Collection[Profile], waived: Mapping[str, str]
) -> tuple[Surface, dict[str, list[str]]]:
    """The surface mended, and which rules that was for, tool by tool. What is waived stays as it is."""
    done: dict[str, list[str]] = {}
    mended = tuple(_mend_tool(tool, surface, profiles, waived, done) for tool in surface.tools)
    return replace(surface, tools=mended), done


def _mend_tool(
    tool: Any,
    surface: Surface,
    profiles: Collection[Profile],
    waived: Mapping[str, str],
    done: dict[str, list[str]],
) -> Any:
    for _ in range(ROUNDS):
        before = tool
        for rule in _broken(tool, surface, profiles, waived) if is_object(tool) else ():
            assert rule.mend is not None
            after = rule.mend(tool)
            if after != tool:
                done.setdefault(str(tool.get("name", "")), []).append(rule.id)
                tool = after
        if tool == before:
            break
    return tool


def _broken(tool: Any, surface: Surface, profiles: Collection[Profile], waived: Mapping[str, str]) -> list[Rule]:
    """The rules that this tool breaks, and that can mend it."""
    alone = replace(surface, tools=(tool,))
    ids = {each.rule for each in lint(alone, profiles=profiles, waived=waived) if not each.waived}
    return [rule for rule in RULES if rule.id in ids and rule.mend is not None]
