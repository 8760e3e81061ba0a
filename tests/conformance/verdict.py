"""What a run of the suite is worth, read from the checks that it wrote down.

The suite's own exit code is lenient: a scenario may pass with nothing but skipped checks. Here every scenario must earn
at least one check of its own, and no check may be skipped, warned of or failed.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

SKIPPED_BY_SUITE = (
    "tasks-status-notifications",
    "sep-2640-skills-directory",
    "sep-2640-skills-enumeration",
    "sep-2640-skills-manifest",
)
"""Extensions whose scenarios the suite skips against a server that does not declare them, or always."""

FREE = "wire-schema-valid"
"""A check that every scenario gets, whatever it did. It can fail a scenario; it can't earn one."""

CHATTER = ("outgoing-request", "incoming-response", "incoming-sse-event", "stream-closed")
"""Notes of the suite on what it saw. Any other note stands for a check that was not made."""

OPTIONAL = {"server-sse-streams-functional": "INFO"}
"""Checks that can't be earned here, by the status that the suite gives them. This one wants lists to be answered by
streams, and says itself that this is optional: we answer in JSON where no stream is needed."""

STATUSES = ("SUCCESS", "FAILURE", "WARNING", "SKIPPED")


class Scenario(NamedTuple):
    """One scenario of one run, and its checks."""

    name: str
    checks: list[dict[str, Any]]

    @property
    def count(self) -> Counter[str]:
        return Counter(check["status"] for check in self.checks)

    @property
    def verdict(self) -> str:
        """failed, warned, skipped or passed: the worst that holds."""
        count = self.count
        if count["FAILURE"]:
            return "failed"
        if count["WARNING"]:
            return "warned"
        earned = any(check["status"] == "SUCCESS" and check["id"] != FREE for check in self.checks)
        return "passed" if earned else "skipped"

    def unearned(self) -> list[str]:
        """Every check that was not earned, with what the suite says of it."""
        lines = [_line(check) for check in self.checks if not _earned(check) and not _optional(check)]
        return lines or ([] if self.verdict == "passed" else ["no check of its own was made"])


def _earned(check: dict[str, Any]) -> bool:
    return check["status"] == "SUCCESS" or (check["status"] == "INFO" and check["id"] in CHATTER)


def _optional(check: dict[str, Any]) -> bool:
    return OPTIONAL.get(check["id"]) == check["status"]


def _line(check: dict[str, Any]) -> str:
    details = check.get("details") or {}
    said = check.get("errorMessage") or details.get("message") or details.get("note") or check.get("description", "")
    return f"{check['status']} {check['id']}: {' '.join(str(said).split())[:300]}"


def read_scenarios(folder: Path) -> list[Scenario]:
    """What one run wrote: `server-<scenario>-<time>/checks.json` each."""
    found = []
    for path in sorted(folder.glob("**/checks.json")):
        name = re.sub(r"-\d{4}-\d\d-\d\dT.*$", "", path.parent.name.removeprefix("server-"))
        found.append(Scenario(name, json.loads(path.read_text())))
    return found


def read_expected(path: Path) -> list[str]:
    """The scenarios of an expected-failures file."""
    return [line.strip()[2:] for line in path.read_text().splitlines() if line.strip().startswith("- ")]


class Result(NamedTuple):
    """One run of the suite."""

    name: str
    expected_scenarios: int
    expected_failures: list[str]
    scenarios: list[Scenario]
    exit_code: int

    def problems(self) -> list[str]:
        """Why this run is not what it must be; empty if it is."""
        lines = []
        if self.exit_code:
            lines.append(f"the suite ended with exit code {self.exit_code}")
        if len(self.scenarios) != self.expected_scenarios:
            lines.append(f"{len(self.scenarios)} scenarios ran, not {self.expected_scenarios}")
        lines += [line for scenario in self.scenarios if not self.excused(scenario) for line in _named(scenario)]
        return lines + [
            f"{each.name}: it was earned, so it is listed in vain" for each in self.scenarios if _earned_in_vain(each)
        ]

    def excused(self, scenario: Scenario) -> bool:
        """An expected failure that failed, or an extension that the suite skipped."""
        if scenario.name in SKIPPED_BY_SUITE:
            return scenario.verdict == "skipped"
        return scenario.name in self.expected_failures and scenario.verdict == "failed"

    def excuses(self) -> list[str]:
        """What was not earned and need not be."""
        excused = [scenario for scenario in self.scenarios if self.excused(scenario) and scenario.unearned()]
        lines = [f"{each.name} ({each.verdict}, {len(each.unearned())} checks)" for each in excused]
        return lines + [
            f"{scenario.name}: {_line(check)}"
            for scenario in self.scenarios
            for check in scenario.checks
            if _optional(check)
        ]


def _earned_in_vain(scenario: Scenario) -> bool:
    """An expected failure that passes is for the suite to find."""
    return scenario.name in SKIPPED_BY_SUITE and scenario.verdict == "passed"


def _named(scenario: Scenario) -> list[str]:
    return [f"{scenario.name}: {line}" for line in scenario.unearned()]


def table(results: list[Result]) -> str:
    """One line for each run: its scenarios, and its checks."""
    head = f"{'':24} {'scenarios':>9} {'passed':>7} {'failed':>7} {'warned':>7} {'skipped':>7}  "
    head += f"{'checks:':>7} {'success':>7} {'failure':>7} {'warning':>7} {'skipped':>7}"
    return "\n".join([head, *(_row(result) for result in results)])


def _row(result: Result) -> str:
    verdicts = Counter(scenario.verdict for scenario in result.scenarios)
    checks = sum((scenario.count for scenario in result.scenarios), Counter[str]())
    left = " ".join(f"{verdicts[verdict]:>7}" for verdict in ("passed", "failed", "warned", "skipped"))
    right = " ".join(f"{checks[status]:>7}" for status in STATUSES)
    return f"{result.name:24} {len(result.scenarios):>9} {left}  {'':7} {right}"
