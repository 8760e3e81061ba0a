"""Recall over dialogues in a file of LoCoMo's form."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from benchmarks.claim import Figure
from benchmarks.context_dialogues import OR, OURS, OWN, measure, measure_dialogues, read_dialogues, recall
from benchmarks.environment import ROOT
from benchmarks.load import Session


def turn(id_: str, speaker: str, text: str) -> dict[str, str]:
    return {"dia_id": id_, "speaker": speaker, "text": text}


DIALOGUE: dict[str, Any] = {
    "sample_id": "x",
    "conversation": {
        "speaker_a": "Ann",
        "session_10": [turn("D10:1", "Ann", "My sister is called Olga.")],
        "session_2_date_time": "1 May 2026",
        "session_2": [turn("D2:1", "Ann", "I play the cello."), turn("D2:2", "Bob", "I sold the boat.")],
    },
    "qa": [
        {
            "question": "Which instrument does Ann play, a cello?",
            "answer": "cello",
            "evidence": ["D2:1"],
            "category": 1,
        },
        {"question": "Who sold a boat?", "evidence": ["D2:2; D2:1", "D99:1"], "category": 2},
        {"question": "Who has a boat now?", "evidence": ["D2:2"], "category": 5},
        {"question": "Nothing shows it?", "evidence": [], "category": 3},
    ],
}


def test_sessions_are_in_order_and_questions_without_evidence_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "d.json").write_text(json.dumps([DIALOGUE]))
    [dialogue] = read_dialogues(tmp_path / "d.json")
    assert [each.id for each in dialogue.turns] == ["D2:1", "D2:2", "D10:1"]
    assert dialogue.turns[0].text == "1 May 2026 Ann: I play the cello."
    assert [sorted(question.evidence) for question in dialogue.questions] == [["D2:1"], ["D2:1", "D2:2"]]
    claims = {claim.name: claim for claim in measure_dialogues([dialogue])}
    assert claims["context_dialogues_1"].figures[OURS].median == 0.75
    assert claims["context_dialogues_10"].figures[OURS].median == 1.0


def test_our_own_dialogues_have_evidence_for_each_question_and_can_miss_their_target() -> None:
    dialogues = read_dialogues(OWN)
    assert sum(len(dialogue.questions) for dialogue in dialogues) == 69
    assert not any(dialogue.left_out for dialogue in dialogues)
    claim = measure(Session(quick=True))[-1]
    [target] = claim.targets
    verdict = claim.judge(target)
    assert (target.of, target.against) == (OURS, OR) and verdict is not None
    claim.figures[OURS] = Figure((0.9 * claim.figures[OR].median,))
    missed = claim.judge(target)
    assert missed is not None and not missed.met


def test_recall_is_the_share_of_the_evidence() -> None:
    assert recall(frozenset(("a", "b")), ["a", "x", "b"], 2) == 0.5


@pytest.mark.parametrize("text", ['{"a": 1}', "[]", "no json"])
def test_another_file_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "d.json").write_text(text)
    command = [sys.executable, "-m", "benchmarks.context_dialogues", str(tmp_path / "d.json")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=50)
    assert done.returncode == 1 and "d.json: no" in done.stderr
