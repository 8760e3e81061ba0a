"""What a run of the suite is worth, read from the checks that it wrote down.

The suite's own exit code is lenient: a scenario may pass with nothing but skipped checks, and a client that crashed or
never came may pass too. Here every scenario must earn at least one check of its own, no check may be skipped, warned of
or failed, and a client must say that it came to the end that was meant.
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
    "sep-2640-client-no-prefetch",
    "sep-2640-client-verify-digest",
    "sep-2640-client-verify-frontmatter",
    "sep-2640-client-verify-size",
)
"""Extensions whose scenarios the suite skips with a server or a client that does not speak them, or always."""

FREE = "wire-schema-valid"
"""A check that every scenario gets, whatever it did. It can fail a scenario; it can't earn one."""

CHATTER = (
    "outgoing-request",
    "incoming-response",
    "incoming-sse-event",
    "stream-closed",
    "incoming-request",
    "outgoing-response",
    "outgoing-sse-event",
    "outgoing-stream-close",
    "incoming-auth-request",
    "outgoing-auth-response",
    "scope-retry-auth-attempt",
    "server-info",
)
"""Notes of the suite on what it saw or did. Any other note stands for a check that was not made."""

OPTIONAL = {
    # Wants lists to be answered by streams, and says itself that this is optional: we answer in JSON where we can.
    "server-sse-streams-functional": "INFO",
    # Of requests that the revision of this very scenario does not have.
    "ClientMcpMethodHeader_initialize": "SKIPPED",
    "ClientMcpMethodHeader_notifications_initialized": "SKIPPED",
}
"""Checks that can't be earned here, by id or name, and the status that the suite gives them."""

ENDS = ("done in ", "refused: ")
"""How the last line begins that a client prints who came to the end that the scenario is about."""

STATUSES = ("SUCCESS", "FAILURE", "WARNING", "SKIPPED")


class Client(NamedTuple):
    """What a client printed."""

    out: str
    err: str

    def problem(self) -> str | None:
        """Why it can't be said that it did what it should."""
        if self.err.strip():
            return f"the client complained: {self.err.strip().splitlines()[-1][:300]}"
        last = self.out.strip().rpartition("\n")[2]
        return None if last.startswith(ENDS) else f"the client did not come to its end; it said {last[:100]!r}"


class Scenario(NamedTuple):
    """One scenario of one run, and its checks."""

    name: str
    checks: list[dict[str, Any]]
    client: Client | None = None
    """Who played it, where a client is judged."""

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

    def missed(self) -> list[str]:
        """Every check that was not earned, with what the suite says of it."""
        return [_line(check) for check in self.checks if not _earned(check) and not _optional(check)]

    def unearned(self) -> list[str]:
        """Why this scenario does not count; empty if it does."""
        lines = self.missed() or ([] if self.verdict == "passed" else ["no check of its own was made"])
        problem = self.client.problem() if self.client is not None else None
        return lines if problem is None else [*lines, problem]


def _earned(check: dict[str, Any]) -> bool:
    return check["status"] == "SUCCESS" or (check["status"] == "INFO" and check["id"] in CHATTER)


def _optional(check: dict[str, Any]) -> bool:
    return check["status"] in (OPTIONAL.get(check["id"]), OPTIONAL.get(check.get("name", "")))


def _line(check: dict[str, Any]) -> str:
    details = check.get("details") or {}
    said = check.get("errorMessage") or details.get("message") or details.get("note") or check.get("description", "")
    return f"{check['status']} {check['id']}: {' '.join(str(said).split())[:300]}"


def read_scenarios(folder: Path) -> list[Scenario]:
    """What one run wrote: `[server-]<scenario>-<time>/checks.json` each, and of a client what it printed."""
    found = []
    for path in sorted(folder.glob("**/checks.json")):
        name = re.sub(r"-\d{4}-\d\d-\d\dT.*$", "", path.parent.relative_to(folder).as_posix())
        found.append(Scenario(name.removeprefix("server-"), json.loads(path.read_text()), _read_client(path.parent)))
    return found


def _read_client(folder: Path) -> Client | None:
    out, err = folder / "stdout.txt", folder / "stderr.txt"
    return Client(out.read_text(), err.read_text()) if out.exists() else None


def read_fallen(log: Path) -> tuple[str, ...]:
    """What a run's log says of clients that crashed or were late, which the suite itself forgives."""
    return tuple(re.findall(r"^Client (?:exited with code|timed out after) .*$", log.read_text(), re.MULTILINE))


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
    fallen: tuple[str, ...] = ()
    """What the suite says of clients that ended badly; not which."""

    def problems(self) -> list[str]:
        """Why this run is not what it must be; empty if it is."""
        lines = []
        if self.exit_code:
            lines.append(f"the suite ended with exit code {self.exit_code}")
        if len(self.scenarios) != self.expected_scenarios:
            lines.append(f"{len(self.scenarios)} scenarios ran, not {self.expected_scenarios}")
        lines += self.fallen
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
        lines = [f"{each.name} ({each.verdict}, {len(each.missed())} checks)" for each in excused]
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
    head = f"{'':32} {'scenarios':>9} {'passed':>7} {'failed':>7} {'warned':>7} {'skipped':>7}  "
    head += f"{'checks:':>7} {'success':>7} {'failure':>7} {'warning':>7} {'skipped':>7}"
    return "\n".join([head, *(_row(result) for result in results)])


def _row(result: Result) -> str:
    verdicts = Counter(scenario.verdict for scenario in result.scenarios)
    checks = sum((scenario.count for scenario in result.scenarios), Counter[str]())
    left = " ".join(f"{verdicts[verdict]:>7}" for verdict in ("passed", "failed", "warned", "skipped"))
    right = " ".join(f"{checks[status]:>7}" for status in STATUSES)
    return f"{result.name:32} {len(result.scenarios):>9} {left}  {'':7} {right}"
