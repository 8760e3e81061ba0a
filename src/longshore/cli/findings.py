"""Lint findings as text, as JSON, as Markdown for a pull request, and as SARIF for code hosts and editors."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from hashlib import sha256
from typing import Any, Final
from urllib.parse import quote

from msgspec import Struct
from msgspec.structs import asdict

from longshore import __version__
from longshore.cli.screen import Line, clean, many, short
from longshore.schema.lint.rule import LEVELS, Finding, Level
from longshore.schema.lint.run import find_rule

SHOWN: Final = 1000
"""Findings in the forms for people. JSON has all."""
ROOM: Final = 50_000
"""Characters of the table of findings. GitHub refuses a comment of more than 65,536, and there are two tables."""
WAIVED_ROOM: Final = 10_000
CHARACTERS: Final = 600
"""Characters of one message or fix, for people. Parts of it come from any server."""
SARIF_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_SARIF_LEVELS: Final[dict[Level, str]] = {"error": "error", "warning": "warning", "info": "note"}
_STYLES: Final[dict[Level, str]] = {"error": "bold red", "warning": "yellow", "info": "cyan"}
_MARKS: Final = re.compile(r"([\\`*_{}\[\]<>|~&$])")
_PLACE: Final = re.compile(r"(?P<file>[^\n]{1,4096}?):(?P<line>[1-9][0-9]{0,8})(?: |$)")


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
    waived, hidden = len(report.findings) - len(report.counted), len(report.counted) - len(report.shown)
    text = ", ".join(counts) or "nothing found"
    text += f" in {many(report.tools, 'tool')} ({many(report.tokens, 'token')})"
    text += f"; {waived} waived" if waived else ""
    return text + (f"; {hidden} below --level {report.level}" if hidden else "")


def as_lines(report: Report) -> Iterator[Line]:
    """The findings by tool, the tool with the worst one first."""
    shown, tools = report.shown, dict[str, list[Finding]]()
    for each in shown[:SHOWN]:
        tools.setdefault(each.tool, []).append(each)
    for tool, found in tools.items():
        places = {each.where for each in found}
        place = places.pop() if len(places) == 1 else ""
        yield 0, [(_short(tool or report.server), "bold"), (f"  {place}" if place else "", "dim")]
        for each in found:
            before = "".join(f"{_short(part)}: " for part in ("" if place else each.where, each.path) if part)
            level = (f"{each.level:<7}", _STYLES[each.level])
            yield 2, [level, (f"  {each.rule}  ", "bold"), (before, "dim"), (_short(each.message), "")]
            yield 6, [(f"fix: {_short(each.fix)}", "green")]
        yield 0, []
    if len(shown) > SHOWN:
        yield 0, [(f"… and {len(shown) - SHOWN:,} more: --format json has them all", "dim")]
    yield 0, [(f"{_short(report.server)}: {summary(report)}", "bold" if report.counted else "green")]


def _short(text: str) -> str:
    return short(text, CHARACTERS)


def as_json(report: Report) -> dict[str, Any]:
    """All findings at or above the level, uncut; the counts include the others."""
    waived = len(report.findings) - len(report.counted)
    return {
        "server": report.server,
        "tools": report.tools,
        "tokens": report.tokens,
        "counts": {**{level: report.count(level) for level in LEVELS}, "waived": waived},
        "findings": [asdict(each) for each in report.reported],
    }


# -- Markdown


def as_markdown(report: Report) -> str:
    """A comment: the summary, a table of findings, and a table of waived ones."""
    text = [f"### longshore lint: {escape(_short(report.server))}", "", f"**{escape(summary(report))}**"]
    rows = [
        [
            each.level,
            each.rule,
            " ".join(_code(part) for part in (each.tool, each.path or each.where) if part),
            escape(_short(each.message)),
            escape(_short(each.fix)),
        ]
        for each in report.shown
    ]
    if rows:
        text += ["", *_table(["", "rule", "tool", "finding", "fix"], rows, ROOM)]
    waived = [[each.rule, _code(each.tool), escape(_short(each.waived))] for each in report.reported if each.waived]
    if waived:
        table = _table(["rule", "tool", "why"], waived, WAIVED_ROOM)
        text += ["", "<details><summary>waived</summary>", "", *table, "", "</details>"]
    return "\n".join(text) + "\n"


def _table(titles: list[str], rows: list[list[str]], room: int) -> Iterator[str]:
    """As many rows as there is room for, and the number of the others."""
    yield f"| {' | '.join(titles)} |"
    yield "|---" * len(titles) + "|"
    for number, row in enumerate(rows):
        line = f"| {' | '.join(row)} |"
        room -= len(line) + 1
        if room < 0:
            yield from ("", f"… and {len(rows) - number:,} more.")
            return
        yield line


def escape(text: str) -> str:
    """Text from any server without markup, table cells or @-mentions."""
    return _MARKS.sub(r"\\\1", clean(text)).replace("@", "@\u2060")


def _code(text: str) -> str:
    inner = _short(text).replace("`", "'").replace("|", "\\|")
    return f"`{inner}`" if inner else ""


# -- SARIF


def as_sarif(report: Report) -> dict[str, Any]:
    """SARIF 2.1.0: one run, with the rules that were broken."""
    ids = list(dict.fromkeys(each.rule for each in report.reported))
    driver = {"name": "longshore", "version": __version__, "rules": [_sarif_rule(id) for id in ids]}
    results = [_sarif_result(each, ids.index(each.rule), report) for each in report.reported]
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}


def _sarif_rule(id: str) -> dict[str, Any]:
    rule = find_rule(id)
    assert rule is not None  # it was found by one
    more = f"Evidence: {rule.evidence}\nFix: {rule.fix}\nMore: longshore lint --explain {id}"
    return {
        "id": id,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.why},
        "help": {"text": f"{rule.title}. {rule.why}\n{more}"},
        "defaultConfiguration": {"level": _SARIF_LEVELS[rule.level]},
        "properties": {"tags": list(rule.profiles)},
    }


def _sarif_result(found: Finding, index: int, report: Report) -> dict[str, Any]:
    # The digest does not change when lines move, so that the finding is not reported as new.
    digest = sha256("\0".join((found.tool, found.rule, found.path)).encode("utf-8", "replace")).hexdigest()[:32]
    result: dict[str, Any] = {
        "ruleId": found.rule,
        "ruleIndex": index,
        "level": _SARIF_LEVELS[found.level],
        "message": {"text": f"{found.message}. Fix: {found.fix}" if found.fix else found.message},
        "locations": [_sarif_location(found, report)],
        "partialFingerprints": {"place/v1": digest},
    }
    if found.waived:
        result["suppressions"] = [{"kind": "external", "justification": found.waived}]
    return result


def _sarif_location(found: Finding, report: Report) -> dict[str, Any]:
    """The line in the author's code, or the top of the file: GitHub refuses a result without a location."""
    name = found.tool or report.server
    whole = f"{name}.{found.path}" if found.path else name
    location: dict[str, Any] = {"logicalLocations": [{"name": name, "fullyQualifiedName": whole, "kind": "function"}]}
    known = _PLACE.match(found.where)
    path, line = (known["file"], int(known["line"])) if known is not None else (report.file, 1)
    if path:
        uri = ("file://" if os.path.isabs(path) else "") + quote(os.fsencode(path))
        location["physicalLocation"] = {"artifactLocation": {"uri": uri}, "region": {"startLine": line}}
    return location
