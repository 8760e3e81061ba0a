"""The docs page about the rules: `python -m longshore.schema.lint.page > docs/lint-rules.md`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from longshore.schema.kinds import is_array, is_object
from longshore.schema.lint.rule import Rule
from longshore.schema.lint.rules import RULES
from longshore.schema.lint.tool_list import ToolList

SHOWN_CHARS: Final = 120
"""Characters of a text in an example."""
LINE_CHARS: Final = 100
"""Characters of a line of an example."""
SHOWN_TOOLS: Final = 2
"""Tools of an example."""

_HEAD: Final = """# The rules

[`longshore lint`](lint.md) checks these rules; `longshore lint --explain W21` prints one. Ids begin with E if MCP or a
client refuses a tool, with W if something is lost or guessed, and with I or B for the Brooklyn standard, which a team
chooses. One demand of that standard is no rule: it wants `input_schema` on the wire, where MCP has `inputSchema`.
"""


def render() -> str:
    """The whole page."""
    return "\n".join((_HEAD, *_table(), *(line for rule in RULES for line in _section(rule))))


def _table() -> Iterator[str]:
    yield "| | level | for | what must hold | `--fix` |\n|---|---|---|---|---|"
    for rule in RULES:
        mends = "mends it" if rule.mend is not None else ""
        link = f"[{rule.id}](#{rule.id.lower()})"
        yield f"| {link} | {rule.level} | {', '.join(rule.profiles)} | {_escape(rule.title)} | {mends} |"


def _escape(text: str) -> str:
    return text.replace("|", "\\|")


def _section(rule: Rule) -> Iterator[str]:
    yield f"\n## {rule.id}\n"
    yield f"**{rule.title}.** {rule.why}\n"
    yield f"- Level: {rule.level}, for {', '.join(rule.profiles)}"
    yield f"- Evidence: {rule.evidence}"
    yield f"- Fix: {rule.fix}"
    yield f"- {'Mended by `--fix`' if rule.mend is not None else 'Not mended by `--fix`'}"
    for word, surface in (("Bad", rule.bad), ("Good", rule.good)):
        yield f"\n{word}:\n\n```json\n{_lay_out(show_example(surface))}\n```"


def show_example(surface: ToolList) -> Any:
    """An example as JSON: its tools as listed, and their declarations."""
    shown: dict[str, Any] = {} if surface.name == "example" else {"server": surface.name}
    if surface.instructions is not None:
        shown["instructions"] = _shorten(surface.instructions)
    if surface.categories is not None:
        shown["categories"] = list(surface.categories)
    for facts in surface.declared.values():
        shown |= {"category": facts.category, "examples": list(facts.examples), "errors": dict(facts.errors)}
    tools = [_shorten(tool) for tool in surface.tools[:SHOWN_TOOLS]]
    if len(surface.tools) > SHOWN_TOOLS:
        tools.append(f"… {len(surface.tools) - SHOWN_TOOLS} more")
    return tools[0] if not shown and len(tools) == 1 else {**shown, "tools": tools}


def _lay_out(value: Any, indent: int = 0) -> str:
    """JSON with each part on one line if it fits."""
    text = json.dumps(value, ensure_ascii=False)
    if len(text) + indent <= LINE_CHARS or not (is_object(value) or is_array(value)):
        return text
    inner = " " * (indent + 2)
    if is_object(value):
        parts = [f"{inner}{json.dumps(name)}: {_lay_out(each, indent + 2)}" for name, each in value.items()]
        return "{\n" + ",\n".join(parts) + f"\n{' ' * indent}}}"
    return "[\n" + ",\n".join(f"{inner}{_lay_out(each, indent + 2)}" for each in value) + f"\n{' ' * indent}]"


def _shorten(value: Any) -> Any:
    if isinstance(value, str) and len(value) > SHOWN_CHARS:
        return f"{value[:SHOWN_CHARS]}… ({len(value):,} characters)"
    if is_object(value):
        return {name: _shorten(each) for name, each in value.items()}
    return [_shorten(each) for each in value] if is_array(value) else value


if __name__ == "__main__":
    print(render())
