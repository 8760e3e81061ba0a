"""The manifests and the tests agree: every requirement is shown by tests that exist, and nothing else is claimed."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from .bb import BB_REQUIREMENTS, BB_ROWS
from .brooklyn import BROOKLYN_LEFT_OUT, BROOKLYN_REQUIREMENTS, BROOKLYN_ROWS
from .browseros import BROWSEROS_LEFT_OUT, BROWSEROS_REQUIREMENTS, BROWSEROS_ROWS
from .client import CLIENT_LEFT_OUT, CLIENT_REQUIREMENTS, CLIENT_ROWS
from .ghost import GHOST_LEFT_OUT, GHOST_REQUIREMENTS, GHOST_ROWS
from .manifest import LEFT_OUT, REQUIREMENTS, ROWS, Row
from .standards import STANDARD_LEFT_OUT, STANDARD_REQUIREMENTS, STANDARD_ROWS

ROOT = Path(__file__).parents[2]
TRANSCRIPTS = ROOT / "tests" / "transcripts"
SIDES = {
    "server": (REQUIREMENTS, ROWS, LEFT_OUT),
    "client": (CLIENT_REQUIREMENTS, CLIENT_ROWS, CLIENT_LEFT_OUT),
    "standards": (STANDARD_REQUIREMENTS, STANDARD_ROWS, STANDARD_LEFT_OUT),
    "brooklyn": (BROOKLYN_REQUIREMENTS, BROOKLYN_ROWS, BROOKLYN_LEFT_OUT),
    "bb": (BB_REQUIREMENTS, BB_ROWS, {}),
    "ghost": (GHOST_REQUIREMENTS, GHOST_ROWS, GHOST_LEFT_OUT),
    "browseros": (BROWSEROS_REQUIREMENTS, BROWSEROS_ROWS, BROWSEROS_LEFT_OUT),
}
HOUSE_TESTS = {
    test
    for id, row in STANDARD_ROWS.items()
    for test in row.tests
    if id.startswith("HOUSE") and not test.startswith("tests/seeds/")
}
"""They show a statement of Brooklyn's standards for every server, and name none."""
EVERY_ROW = [(f"{id} of the {side}", row) for side, (_, rows, _) in SIDES.items() for id, row in rows.items()]

LINES = {
    "BASE": 14,
    "LEG": 6,
    "MOD": 15,
    "DUAL": 5,
    "STD": 6,
    "HTTP": 23,
    "HDR": 9,
    "TOOL": 11,
    "RES": 5,
    "PRM": 2,
    "CMP": 2,
    "LOG": 4,
    "PAG": 2,
    "CACHE": 3,
    "MRTR": 7,
    "SUB": 5,
    "PROG": 1,
    "CAN": 4,
    "SAMP": 3,
    "ELI": 7,
    "ROOT": 1,
    "TASK": 1,
    "TEXT": 6,
    "EXT": 1,
    "APP": 1,
    "SCH": 4,
    "AUTH": 13,
    "SEC": 4,
    "DEP": 1,
}
"""How many lines the checklist has on each subject."""
BOTH_SIDES = {
    *("BASE-01", "BASE-02", "BASE-03", "BASE-05", "BASE-06", "BASE-07", "BASE-08", "BASE-09", "BASE-10", "BASE-13"),
    *("BASE-14", "LEG-03", "LEG-04", "LEG-05", "MOD-15", "STD-01", "STD-06", "HTTP-05", "HDR-03", "PROG-01", "CAN-01"),
    *("CAN-02", "TASK-01", "EXT-01", "SCH-01", "SCH-02", "SCH-03", "SCH-04", "DEP-01"),
}
CLIENTS = (
    "tests/client/",
    "tests/http_client/",
    "tests/interop/client/",
    "tests/conformance/",
    "tests/cli/test_client_",
)
"""Where there is a client that is ours."""


@cache
def functions(path: Path) -> dict[str, str]:
    """The functions of a file, with their docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    defs = [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    return {node.name: ast.get_docstring(node) or "" for node in defs}


@pytest.mark.parametrize("side", SIDES)
def test_every_requirement_has_a_row_or_a_reason(side: str) -> None:
    requirements, rows, left_out = SIDES[side]
    assert len(requirements) == len(set(requirements))
    assert set(requirements) == rows.keys() | left_out.keys()
    assert not rows.keys() & left_out.keys()


def test_every_statement_of_the_five_documents_has_a_test_or_a_reason_on_the_page() -> None:
    """S-1 to S-200, each in the manifest of one document."""
    documents = [SIDES[side] for side in ("brooklyn", "browseros", "ghost", "bb")]
    stated = [id for requirements, _, _ in documents for id in requirements]
    assert sorted(stated, key=lambda id: int(id.removeprefix("S-"))) == [f"S-{n}" for n in range(1, 201)]
    page = (ROOT / "docs" / "seeds.md").read_text(encoding="utf-8")
    for _, rows, left_out in documents:
        assert [id for id in left_out if f"\n| {id} | " not in page] == []
        assert all(row.tests for row in rows.values())


def test_every_line_of_the_checklist_binds_somebody() -> None:
    lines = {f"{subject}-{n:02}" for subject, most in LINES.items() for n in range(1, most + 1)}
    assert {*REQUIREMENTS, *CLIENT_REQUIREMENTS} == lines
    assert {*REQUIREMENTS} & {*CLIENT_REQUIREMENTS} == BOTH_SIDES


def test_both_sides_say_the_same_of_a_line_that_binds_both() -> None:
    for id in ROWS.keys() & CLIENT_ROWS.keys():
        ours, theirs = ROWS[id], CLIENT_ROWS[id]
        assert (ours.level, ours.revisions) == (theirs.level, theirs.revisions), id


@pytest.mark.parametrize(("requirement", "row"), EVERY_ROW, ids=[name for name, _ in EVERY_ROW])
def test_the_tests_of_a_requirement_exist(requirement: str, row: Row) -> None:
    assert row.tests, f"{requirement} is shown by nothing"
    assert len(row.tests) == len(set(row.tests)), f"{requirement} names a test twice"
    for test in row.tests:
        path, _, name = test.partition("::")
        assert (ROOT / path).is_file(), f"{requirement}: no file {path}"
        if name:
            assert name.startswith("test_"), f"{requirement}: {name} is no test"
            assert name in functions(ROOT / path), f"{requirement}: no {name} in {path}"
        else:
            assert path.endswith(".txt"), f"{requirement}: {path} is no transcript, so it needs ::test_name"


@pytest.mark.parametrize("side", ["bb", "brooklyn", "browseros", "ghost"])
def test_the_tests_of_a_document_say_which_statements_they_show(side: str) -> None:
    for requirement, row in SIDES[side][1].items():
        for test in row.tests:
            path, _, name = test.partition("::")
            said = functions(ROOT / path)[name]
            assert test in HOUSE_TESTS or re.search(rf"\b{requirement}\b", said), f"{test} does not name {requirement}"


@pytest.mark.parametrize("requirement", CLIENT_ROWS)
def test_what_a_client_does_is_shown_with_a_client(requirement: str) -> None:
    for test in CLIENT_ROWS[requirement].tests:
        assert test.startswith(CLIENTS), f"{requirement}: {test} is about something else"


def test_every_transcript_shows_some_requirement() -> None:
    claimed = {test for row in ROWS.values() for test in row.tests}
    unclaimed = [f"tests/transcripts/{path.name}" for path in TRANSCRIPTS.glob("*.txt")]
    assert [path for path in unclaimed if path not in claimed] == []


def test_requirement_ids_in_tests_are_in_a_manifest() -> None:
    pattern = re.compile(rf"\b(?:{'|'.join(LINES)})-\d\d\b")
    known = {*REQUIREMENTS, *CLIENT_REQUIREMENTS}
    for path in (ROOT / "tests").rglob("*.py"):
        if path.parent.name != "spec":
            for found in pattern.findall(path.read_text(encoding="utf-8")):
                assert found in known, f"{path}: {found} is no requirement"
