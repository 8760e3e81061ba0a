"""The judge of the suite's runs is itself judged: what may fail is pinned, and nothing unearned can hide."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from .verdict import (
    FREE,
    SKIPPED_BY_SUITE,
    Client,
    Result,
    Scenario,
    read_expected,
    read_fallen,
    read_scenarios,
    table,
)

HERE = Path(__file__).parent
TASKS = [
    "tasks-lifecycle",
    "tasks-capability-negotiation",
    "tasks-wire-fields",
    "tasks-request-state-removal",
    "tasks-mrtr-input",
    "tasks-request-headers",
    "tasks-dispatch-and-envelope",
    "tasks-required-task-error",
    "tasks-mrtr-composition",
]
PASSED = {"id": "passed", "status": "SUCCESS"}


def plain_lines(name: str) -> list[str]:
    return [line for line in (HERE / name).read_text().splitlines() if not line.startswith("#")]


def scenario(name: str, *statuses: str, **more: Any) -> Scenario:
    checks = [{"id": f"{name}-{n}", "status": status, "description": "…"} for n, status in enumerate(statuses)]
    return Scenario(name, [*checks, {"id": FREE, "status": more.get("wire", "SUCCESS")}])


def result(*scenarios: Scenario, exit_code: int = 0, expected: int | None = None) -> Result:
    return Result("a run", len(scenarios) if expected is None else expected, TASKS, list(scenarios), exit_code)


def test_exactly_the_nine_scenarios_of_the_tasks_extension_may_fail() -> None:
    assert plain_lines("expected-failures.yml") == ["server:", *(f"  - {name}" for name in TASKS)]
    assert read_expected(HERE / "expected-failures.yml") == TASKS
    assert len(set(TASKS)) == 9


def test_nothing_may_fail_elsewhere() -> None:
    assert plain_lines("no-failures.yml") == ["server: []", "client: []"]
    assert read_expected(HERE / "no-failures.yml") == []


def test_only_extensions_may_be_skipped() -> None:
    assert all(name.startswith(("tasks-status-", "sep-2640-skills-", "sep-2640-client-")) for name in SKIPPED_BY_SUITE)
    assert not set(SKIPPED_BY_SUITE) & set(TASKS)


def test_the_suite_is_pinned_and_names_no_registry() -> None:
    wanted = json.loads((HERE / "package.json").read_text())
    assert wanted["dependencies"] == {"@modelcontextprotocol/conformance": "0.2.0-alpha.12"}
    lock = json.loads((HERE / "package-lock.json").read_text())
    packages = {name: package for name, package in lock["packages"].items() if name}
    assert packages["node_modules/@modelcontextprotocol/conformance"]["version"] == "0.2.0-alpha.12"
    assert all("resolved" not in package and package["integrity"] for package in packages.values())


def test_a_run_in_which_everything_was_earned() -> None:
    assert result(scenario("ping", "SUCCESS")).problems() == []


@pytest.mark.parametrize("status", ["FAILURE", "WARNING", "SKIPPED", "INFO", "NEW"])
def test_a_check_that_is_no_success_is_a_problem(status: str) -> None:
    [problem] = result(scenario("ping", "SUCCESS", status)).problems()
    assert problem.startswith(f"ping: {status} ping-1")


def test_a_note_on_what_was_seen_is_no_check() -> None:
    seen = Scenario("polling", [{"id": "stream-closed", "status": "INFO"}, {"id": "x", "status": "SUCCESS"}])
    assert result(seen).problems() == []


def test_a_scenario_that_only_the_free_check_passed_is_a_problem() -> None:
    assert result(scenario("ping")).problems() == ["ping: no check of its own was made"]
    assert result(Scenario("ping", [])).problems() == ["ping: no check of its own was made"]


def test_the_free_check_can_fail_a_scenario() -> None:
    assert len(result(scenario("ping", "SUCCESS", wire="FAILURE")).problems()) == 1


def test_a_lost_scenario_and_an_exit_code_are_problems() -> None:
    assert result(scenario("ping", "SUCCESS"), expected=2).problems() == ["1 scenarios ran, not 2"]
    assert result(scenario("ping", "SUCCESS"), exit_code=1).problems() == ["the suite ended with exit code 1"]


def test_what_is_excused_is_named() -> None:
    run = result(scenario("tasks-lifecycle", "FAILURE", "SUCCESS"), scenario(SKIPPED_BY_SUITE[0], "SKIPPED"))
    assert run.problems() == []
    assert run.excuses() == [
        "tasks-lifecycle (failed, 1 checks)",
        "tasks-status-notifications (skipped, 1 checks)",
    ]


def test_an_optional_check_is_named_and_its_failure_is_not_excused() -> None:
    def streams(status: str) -> Result:
        return result(Scenario("s", [{"id": "server-sse-streams-functional", "status": status}, PASSED]))

    assert streams("INFO").problems() == []
    assert streams("INFO").excuses() == ["s: INFO server-sse-streams-functional: "]
    assert streams("SUCCESS").excuses() == []
    assert streams("FAILURE").problems() and streams("WARNING").problems()


def test_an_excuse_holds_only_for_what_it_says() -> None:
    assert result(scenario("tasks-lifecycle", "SUCCESS", "SKIPPED")).problems(), "it did not fail"
    assert result(scenario(SKIPPED_BY_SUITE[0], "FAILURE")).problems(), "it was not skipped"
    assert result(scenario(SKIPPED_BY_SUITE[0], "SUCCESS")).problems(), "it was earned"


def test_the_checks_are_read_as_the_suite_writes_them(tmp_path: Path) -> None:
    folder = tmp_path / "server-tools-call-image-2026-11-15T11-20-00-000Z"
    folder.mkdir()
    (folder / "checks.json").write_text(json.dumps([{"id": "a", "status": "SUCCESS"}]))
    [found] = read_scenarios(tmp_path)
    assert (found.name, found.verdict, found.client) == ("tools-call-image", "passed", None)


def test_what_a_client_printed_is_read_with_its_checks(tmp_path: Path) -> None:
    folder = tmp_path / "auth" / "iss-supported-2026-11-15T11-20-00-000Z"
    folder.mkdir(parents=True)
    (folder / "checks.json").write_text(json.dumps([PASSED]))
    (folder / "stdout.txt").write_text("done in 2026-07-28\n")
    (folder / "stderr.txt").write_text("")
    [found] = read_scenarios(tmp_path)
    assert found == Scenario("auth/iss-supported", [PASSED], Client("done in 2026-07-28\n", ""))
    assert result(found).problems() == []


@pytest.mark.parametrize("out", ["done in 2025-11-25\n", "a line\nrefused: it names another issuer\n"])
def test_a_client_that_came_to_its_end(out: str) -> None:
    assert result(Scenario("auth/x", [PASSED], Client(out, ""))).problems() == []


@pytest.mark.parametrize(
    ("out", "err", "said"),
    [
        ("", "", "did not come to its end; it said ''"),
        ("done in 2025-11-25\nand then", "", "did not come to its end; it said 'and then'"),
        ("nothing done: skills are not spoken", "", "did not come to its end"),
        ("", "Traceback\nConnectError: nobody is there\n", "complained: ConnectError: nobody is there"),
        ("done in 2025-11-25\n", "ResourceWarning: unclosed\n", "complained: ResourceWarning: unclosed"),
    ],
)
def test_a_client_that_did_not_is_a_problem_whatever_the_suite_says(out: str, err: str, said: str) -> None:
    [problem] = result(Scenario("tools_call", [PASSED], Client(out, err))).problems()
    assert problem.startswith(f"tools_call: the client {said}")


def test_a_client_that_never_connected_earns_nothing() -> None:
    """What the suite wrote down of one that did nothing, and let pass."""
    idle = Client("", "")
    shaken = Scenario("initialize", [], idle)
    skipped = Scenario("http-standard-headers", [{"id": "x", "status": "SKIPPED"}], idle)
    problems = result(shaken, skipped).problems()
    assert "initialize: no check of its own was made" in problems
    assert "http-standard-headers: SKIPPED x: " in problems
    assert sum("did not come to its end" in line for line in problems) == 2


def test_headers_of_requests_that_a_revision_does_not_have_are_named_and_no_others() -> None:
    def skipped(name: str) -> Result:
        return result(Scenario("s", [{"id": "h", "name": name, "status": "SKIPPED"}, PASSED]))

    assert skipped("ClientMcpMethodHeader_initialize").problems() == []
    assert skipped("ClientMcpMethodHeader_initialize").excuses() == ["s: SKIPPED h: "]
    assert skipped("ClientMcpMethodHeader_tools_call").problems()


def test_a_client_that_the_suite_forgave_is_a_problem(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(
        "Starting\n\nClient exited with code 1\n\nStderr:\n…\nClient timed out after 30000ms\n✓ a: 1 passed\n"
    )
    assert read_fallen(log) == ("Client exited with code 1", "Client timed out after 30000ms")
    run = result(scenario("a", "SUCCESS"))._replace(fallen=read_fallen(log))
    assert run.problems() == list(read_fallen(log))


def test_the_table_counts_scenarios_and_checks() -> None:
    run = result(scenario("a", "SUCCESS", "WARNING"), scenario("b", "SUCCESS"), scenario("c", "SKIPPED"))
    numbers = table([run]).splitlines()[1].removeprefix("a run").split()
    assert numbers == ["3", "1", "0", "1", "1", "5", "0", "1", "1"]
