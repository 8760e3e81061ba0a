"""Rules about a server as a whole: how many tools it lists, and what the list costs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from longshore.schema.output import count_tokens
from longshore.schema.standards.rule import Fault, Profile, Rule, fault
from longshore.schema.standards.subject import Surface, example

TOOLS: Final[tuple[tuple[int, str, tuple[Profile, ...]], ...]] = (
    (40, "older Cursor takes 40", ("cursor",)),
    (50, "Windsurf takes 50", ("cursor",)),
    (80, "Cursor takes 80", ("cursor",)),
    (128, "VS Code takes 128 in a request, of all servers together", ("vscode",)),
)
"""How many tools clients take, and what happens to the rest: nothing, they are not there."""

LIST_TOKENS: Final = 20_000
"""Tokens of a list of tools that is too long for anybody: a tenth of a context of 200,000."""


def _check_size(surface: Surface) -> Iterator[Fault]:
    count, tokens = len(surface.tools), count_tokens(surface.tools)
    passed = [(says, profiles) for most, says, profiles in TOOLS if count > most]
    for profile in ("cursor", "vscode"):
        if told := [says for says, profiles in passed if profile in profiles]:
            message = f"{count} tools, about {tokens:,} tokens: {', '.join(told)}"
            yield fault(message, "tools", profiles=(profile,))
    if tokens > LIST_TOKENS:
        yield fault(f"the list of {count} tools costs about {tokens:,} tokens in every conversation", "tools")


def _many(count: int) -> Surface:
    tool = example({}).tools[0]
    return Surface(tools=tuple({**tool, "name": f"get_weather_{number}"} for number in range(count)))


RULES: Final[tuple[Rule, ...]] = (
    Rule(
        id="W28",
        title="A server lists at most 40 tools and costs at most 20,000 tokens",
        level="warning",
        profiles=("claude", "openai", "gemini", "vscode", "cursor"),
        why="Clients leave out the tools above their number, and every tool costs its tokens in every conversation.",
        evidence="Cursor took 40, later 80 (Snowflake-Labs/mcp #77), Windsurf 50 (go-mcp-mysql #3), VS Code 128 in a "
        "request (vscode-copilot-release #11653)",
        fix="List fewer tools: merge those that are alike, split the server, or let the operator choose toolsets.",
        good=_many(2),
        bad=_many(TOOLS[0][0] + 1),
        whole=_check_size,
    ),
)
