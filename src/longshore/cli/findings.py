"""Lint findings as text, as JSON, and as Markdown for a pull request."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import asdict

from longshore.cli.screen import Line, clean, many, short
from longshore.schema.lint.rule import LEVELS, Finding, Level

SHOWN: Final = 1000
"""Findings in the forms for people. JSON has all."""
ROOM: Final = 50_000
"""Characters of the table of findings. GitHub refuses a comment of more than 65,536, and there are two tables."""
WAIVED_ROOM: Final = 10_000
CHARACTERS: Final = 600
"""Characters of one message or fix, for people. Parts of it come from any server."""
_STYLES: Final[dict[Level, str]] = {"error": "bold red", "warning": "yellow", "info": "cyan"}
_MARKS = re.compile(r"([\\`*_{}\[\]<>|~&$])")


class Report(Struct, frozen=True, kw_only=True):
    """The findings of one server."""

    server: str
    tools: int
    tokens: int
    findings: tuple[Finding, ...]
    """With waived ones, the worst first."""
    level: Level = "info"
    """The least severe level that is shown."""
    file: str = ""
    """The file with the tools, if known."""

    @property
    def counted(self) -> list[Finding]:
        """The findings that are not waived."""
        return [each for each in self.findings if not each.waived]

    @property
    def waived(self) -> list[Finding]:
        return [each for each in self.findings if each.waived]

    @property
    def reported(self) -> list[Finding]:
        """The findings at or above `level`, with waived ones."""
        levels = LEVELS[: LEVELS.index(self.level) + 1]
        return [each for each in self.findings if each.level in levels]

    @property
    def shown(self) -> list[Finding]:
        return [each for each in self.reported if not each.waived]

    def count(self, level: Level) -> int:
        return sum(each.level == level for each in self.counted)


def summary(report: Report) -> str:
    """One line: the number of findings of each level, of tools and tokens."""
    counts = [many(report.count(level), level) for level in LEVELS if report.count(level)]
    hidden = len(report.counted) - len(report.shown)
    text = ", ".join(counts) or "nothing found"
    text += f" in {many(report.tools, 'tool')} ({many(report.tokens, 'token')})"
    text += f"; {len(report.waived)} waived" if report.waived else ""
    return text + (f"; {hidden} below --level {report.level}" if hidden else "")


# -- for people


def lines(report: Report) -> Iterator[Line]:
    """The findings by tool, the tool with the worst one first."""
    shown = report.shown
    for tool, found in _by_tool(shown[:SHOWN]).items():
        places = {each.where for each in found}
        place = next(iter(places)) if len(places) == 1 else ""
        yield 0, [(_short(tool or report.server), "bold"), (f"  {place}" if place else "", "dim")]
        for each in found:
            yield from _finding_lines(each, "" if place else each.where)
        yield 0, []
    if len(shown) > SHOWN:
        yield 0, [(f"… and {len(shown) - SHOWN:,} more: --format json has them all", "dim")]
    yield 0, [(f"{_short(report.server)}: {summary(report)}", "bold" if report.counted else "green")]


def _finding_lines(found: Finding, where: str) -> Iterator[Line]:
    before = "".join(f"{_short(part)}: " for part in (where, found.path) if part)
    level = (f"{found.level:<7}", _STYLES[found.level])
    yield 2, [level, (f"  {found.rule}  ", "bold"), (before, "dim"), (_short(found.message), "")]
    yield 6, [(f"fix: {_short(found.fix)}", "green")]


def _by_tool(found: Iterable[Finding]) -> dict[str, list[Finding]]:
    tools: dict[str, list[Finding]] = {}
    for each in found:
        tools.setdefault(each.tool, []).append(each)
    return tools


def _short(text: str) -> str:
    return short(text, CHARACTERS)


# -- for programs


def as_json(report: Report) -> dict[str, Any]:
    """All findings at or above the level, uncut; the counts include the others."""
    return {
        "server": report.server,
        "tools": report.tools,
        "tokens": report.tokens,
        "counts": {**{level: report.count(level) for level in LEVELS}, "waived": len(report.waived)},
        "findings": [asdict(each) for each in report.reported],
    }


# -- for a pull request


def as_markdown(report: Report) -> str:
    """A comment: the summary, a table of findings, and a table of waived ones."""
    text = [f"### longshore lint: {escape(_short(report.server))}", "", f"**{escape(summary(report))}**"]
    if shown := report.shown:
        text += ["", *_table(["", "rule", "tool", "finding", "fix"], shown, _row, ROOM)]
    if waived := [each for each in report.reported if each.waived]:
        table = _table(["rule", "tool", "why"], waived, _waived_row, WAIVED_ROOM)
        text += ["", "<details><summary>waived</summary>", "", *table, "", "</details>"]
    return "\n".join(text) + "\n"


def _table(titles: list[str], found: list[Finding], row: Callable[[Finding], list[str]], room: int) -> Iterator[str]:
    """As many rows as there is room for, and the number of the others."""
    yield f"| {' | '.join(titles)} |"
    yield "|---" * len(titles) + "|"
    for number, each in enumerate(found):
        line = f"| {' | '.join(row(each))} |"
        room -= len(line) + 1
        if room < 0:
            yield from ("", f"… and {len(found) - number:,} more.")
            return
        yield line


def _row(found: Finding) -> list[str]:
    place = " ".join(_code(part) for part in (found.tool, found.path or found.where) if part)
    return [found.level, found.rule, place, escape(_short(found.message)), escape(_short(found.fix))]


def _waived_row(found: Finding) -> list[str]:
    return [found.rule, _code(found.tool), escape(_short(found.waived))]


def escape(text: str) -> str:
    """Text from any server without markup, table cells or @-mentions."""
    return _MARKS.sub(r"\\\1", clean(text)).replace("@", "@\u2060")


def _code(text: str) -> str:
    inner = _short(text).replace("`", "'").replace("|", "\\|")
    return f"`{inner}`" if inner else ""
