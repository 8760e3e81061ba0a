"""Lint findings as SARIF 2.1.0, which code hosts and editors show beside the code."""

from __future__ import annotations

import os
import re
from hashlib import sha256
from typing import Any, Final
from urllib.parse import quote

from longshore import __version__
from longshore.cli.findings import Report
from longshore.cli.rules import find
from longshore.schema.lint.rule import Finding, Level, Rule

SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS: Final[dict[Level, str]] = {"error": "error", "warning": "warning", "info": "note"}
_PLACE = re.compile(r"(?P<file>[^\n]{1,4096}?):(?P<line>[1-9][0-9]{0,8})(?: |$)")


def as_sarif(report: Report) -> dict[str, Any]:
    """One run, with the rules that were broken."""
    ids = list(dict.fromkeys(each.rule for each in report.reported))
    driver = {"name": "longshore", "version": __version__, "rules": [_rule(id) for id in ids]}
    results = [_result(each, ids, report) for each in report.reported]
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(id: str) -> dict[str, Any]:
    rule = find(id)
    assert rule is not None  # it was found by one
    return {
        "id": id,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.why},
        "help": {"text": _help(rule)},
        "defaultConfiguration": {"level": _LEVELS[rule.level]},
        "properties": {"tags": list(rule.profiles)},
    }


def _help(rule: Rule) -> str:
    more = f"longshore lint --explain {rule.id}"
    return f"{rule.title}. {rule.why}\nEvidence: {rule.evidence}\nFix: {rule.fix}\nMore: {more}"


def _result(found: Finding, ids: list[str], report: Report) -> dict[str, Any]:
    made: dict[str, Any] = {
        "ruleId": found.rule,
        "ruleIndex": ids.index(found.rule),
        "level": _LEVELS[found.level],
        "message": {"text": f"{found.message}. Fix: {found.fix}" if found.fix else found.message},
        "locations": [_location(found, report)],
        "partialFingerprints": {"place/v1": _fingerprint(found)},
    }
    if found.waived:
        made["suppressions"] = [{"kind": "external", "justification": found.waived}]
    return made


def _location(found: Finding, report: Report) -> dict[str, Any]:
    name = ".".join(part for part in (found.tool or report.server, found.path) if part)
    logical = {"name": found.tool or report.server, "fullyQualifiedName": name, "kind": "function"}
    place: dict[str, Any] = {"logicalLocations": [logical]}
    physical = _physical(found.where, report.file)
    return place | ({"physicalLocation": physical} if physical else {})


def _physical(where: str, file: str) -> dict[str, Any] | None:
    """The line in the author's code, or the top of the file: GitHub refuses a result without a location."""
    known = _PLACE.match(where)
    path, line = (known["file"], int(known["line"])) if known is not None else (file, 1)
    return {"artifactLocation": {"uri": _uri(path)}, "region": {"startLine": line}} if path else None


def _uri(path: str) -> str:
    return ("file://" if os.path.isabs(path) else "") + quote(os.fsencode(path))


def _fingerprint(found: Finding) -> str:
    """A digest that does not change when lines move, so that the finding is not reported as new."""
    return sha256("\0".join((found.tool, found.rule, found.path)).encode("utf-8", "replace")).hexdigest()[:32]
