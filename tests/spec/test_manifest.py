"""The manifest and the tests agree: every requirement is shown by tests that exist, and nothing else is claimed."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from .manifest import LEFT_OUT, REQUIREMENTS, ROWS

ROOT = Path(__file__).parents[2]
TRANSCRIPTS = ROOT / "tests" / "transcripts"


@cache
def functions(path: Path) -> frozenset[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def test_every_server_side_requirement_has_a_row_or_a_reason() -> None:
    assert set(REQUIREMENTS) == ROWS.keys() | LEFT_OUT.keys()
    assert not ROWS.keys() & LEFT_OUT.keys()


@pytest.mark.parametrize("requirement", ROWS)
def test_the_tests_of_a_requirement_exist(requirement: str) -> None:
    tests = ROWS[requirement].tests
    assert tests, f"{requirement} is shown by nothing"
    for test in tests:
        path, _, name = test.partition("::")
        assert (ROOT / path).is_file(), f"{requirement}: no file {path}"
        if name:
            assert name in functions(ROOT / path), f"{requirement}: no {name} in {path}"
        else:
            assert path.endswith(".txt"), f"{requirement}: {path} is no transcript, so it needs ::test_name"


def test_every_transcript_shows_some_requirement() -> None:
    claimed = {test for row in ROWS.values() for test in row.tests}
    unclaimed = [f"tests/transcripts/{path.name}" for path in TRANSCRIPTS.glob("*.txt")]
    assert [path for path in unclaimed if path not in claimed] == []


def test_requirement_ids_in_tests_are_in_the_manifest() -> None:
    pattern = re.compile(
        r"\b(?:BASE|LEG|MOD|DUAL|STD|HTTP|HDR|TOOL|RES|PRM|CMP|LOG|PAG|CACHE|MRTR|SUB|PROG|CAN|SAMP|ELI|SCH|AUTH|SEC|TASK"
        r"|EXT|DEP)-\d\d\b"
    )
    for path in (ROOT / "tests").rglob("*.py"):
        if path.parent.name != "spec":
            for found in pattern.findall(path.read_text(encoding="utf-8")):
                assert found in REQUIREMENTS, f"{path}: {found} is no requirement"
