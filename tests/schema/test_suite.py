"""The required cases of the JSON Schema Test Suite, run by our own validator."""

from pathlib import Path

import pytest

from services import skip

from .suite import run

FOLDER = Path(__file__).parents[2] / ".suite"


@pytest.mark.parametrize(("draft", "least"), [("2020-12", 1200), ("7", 900)])
def test_every_required_case_passes(draft: str, least: int) -> None:
    if not (FOLDER / "installed").is_file():
        skip("the JSON Schema Test Suite is missing; run: make suite")
    count, wrong = run(FOLDER, draft)
    assert wrong == []
    assert count > least
