"""docs/lint-rules.md is made of the rules. To write it anew: `python tests/schema/lint/test_page.py`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from longshore.cli.rules import show_example
from longshore.schema.kinds import is_array, is_object
from longshore.schema.lint.rule import Rule
from longshore.schema.lint.rules import RULES

PAGE = Path(__file__).parents[3] / "docs/lint-rules.md"
LINE_CHARS = 100
"""Characters of a line of an example."""

HEAD = """# The rules

[`longshore lint`](lint.md) checks these rules; `longshore lint --explain W21` prints one. Ids begin with E if MCP or a
client refuses a tool, with W if something is lost or guessed, and with I or B for the Brooklyn standard, which a team
chooses. One demand of that standard is no rule: it wants `input_schema` on the wire, where MCP has `inputSchema`.
"""


def render() -> str:
    """The whole page."""
    return "\n".join((HEAD, *_table(), *(line for rule in RULES for line in _section(rule))))


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
    for word, surface in (("Bad", rule.bad), ("Good", rule.good)) if rule.bad.tools else ():
        yield f"\n{word}:\n\n```json\n{_lay_out(show_example(surface))}\n```"


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


def test_the_page_is_what_the_rules_say() -> None:
    assert PAGE.read_text(encoding="utf-8") == render() + "\n"


if __name__ == "__main__":
    PAGE.write_text(render() + "\n", encoding="utf-8")
