"""How many of the turns that answer a question are found in dialogues.

    python -m benchmarks.context_dialogues                  # those of dialogues.json
    python -m benchmarks.context_dialogues locomo10.json    # those of a file of LoCoMo's form that you have

`dialogues.json` has four conversations of four sessions each. They were invented, with their questions, before any was
searched for, and nothing of the ranking is chosen on them. Public sets are not in this repository: they may not be
redistributed.

A file is a list of conversations: `conversation` has sessions (`session_1`, `session_1_date_time`, ...) of turns with
`dia_id`, `speaker` and `text`, and `qa` has questions with the `dia_id`s of their `evidence`. Each conversation is
searched by itself. A question's recall is the share of its evidence among the first n turns; questions of category 5
have no answer and are left out.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.claim import Claim, Target
from benchmarks.context_corpus import Function, Search, counting, full_text
from benchmarks.environment import HERE
from benchmarks.load import Session, progress
from benchmarks.report import print_claim
from longshore.toolsets.context.records import NewItem, NewLink, NewSource, Query
from longshore.toolsets.context.store import Store, open_store

OURS, OR, GREP = "longshore", "FTS5, any word", "grep, words counted"
DEPTHS = (1, 5, 10)
OWN = HERE / "dialogues.json"
UNANSWERABLE = 5
_SESSION = re.compile(r"session_(\d+)")
_TURN = re.compile(r"D\d+:\d+")


@dataclass(frozen=True)
class Turn:
    id: str
    session: int
    text: str


@dataclass(frozen=True)
class Question:
    text: str
    evidence: frozenset[str]


@dataclass(frozen=True)
class Dialogue:
    turns: list[Turn]
    questions: list[Question]
    left_out: int  # questions without an answer, or whose evidence is no turn


def read_dialogues(path: Path) -> list[Dialogue]:
    """The dialogues of a file. Raises KeyError, TypeError or ValueError for another form."""
    return [_dialogue(each) for each in json.loads(path.read_text(encoding="utf-8"))]


def _dialogue(data: dict[str, Any]) -> Dialogue:
    turns = list(_turns(data["conversation"]))
    known = {turn.id for turn in turns}
    questions = list[Question]()
    for each in data["qa"]:
        evidence = frozenset(_TURN.findall(" ".join(each.get("evidence") or ()))) & known
        if evidence and each.get("category") != UNANSWERABLE:
            questions.append(Question(each["question"], evidence))
    return Dialogue(turns, questions, len(data["qa"]) - len(questions))


def _turns(conversation: dict[str, Any]) -> Iterator[Turn]:
    numbers = sorted(int(match[1]) for key in conversation if (match := _SESSION.fullmatch(key)))
    for number in numbers:
        date = conversation.get(f"session_{number}_date_time", "")
        for turn in conversation[f"session_{number}"]:
            shown = f" [{turn['blip_caption']}]" if turn.get("blip_caption") else ""
            yield Turn(turn["dia_id"], number, f"{date} {turn['speaker']}: {turn['text']}{shown}")


def fill(store: Store, turns: Sequence[Turn]) -> dict[int, int]:
    """Turns as nodes, each linked with the one before it in its session; and for each node, the turn's number."""
    items = list[NewItem]()
    for before, turn in zip([None, *turns], turns, strict=False):
        follows = before is not None and before.session == turn.session
        links = (NewLink(to=before.id, relation="follows"),) if before is not None and follows else ()
        items.append(NewItem(kind="episode", name=turn.id, text=turn.text, links=links))
    added = [each for start in range(0, len(items), 500) for each in store.add(items[start : start + 500], NewSource())]
    return {each.node: number for number, each in enumerate(added)}


def find_all(dialogue: Dialogue, folder: Path) -> dict[str, list[list[str]]]:
    """By contestant: the ids of the ten best turns for each question."""
    functions = [Function(f"session {turn.session}", turn.id, turn.text, "", frozenset()) for turn in dialogue.turns]
    store = open_store(str(folder / "context.db"))
    numbers = fill(store, dialogue.turns)

    def ours(text: str) -> list[int]:
        return [numbers[hit.node.id] for hit in store.query(Query(text=text)).hits]

    any_word, _ = full_text(str(folder / "fts.db"), functions)
    searches: dict[str, Search] = {OURS: ours, OR: any_word, GREP: counting(functions)}
    found = {
        name: [[dialogue.turns[n].id for n in search(question.text)] for question in dialogue.questions]
        for name, search in searches.items()
    }
    store.close()
    return found


def recall(evidence: frozenset[str], found: Sequence[str], depth: int) -> float:
    return len(evidence.intersection(found[:depth])) / len(evidence)


def measure(session: Session) -> list[Claim]:
    """The claims of our own dialogues, which take a second."""
    return measure_dialogues(read_dialogues(OWN))


def measure_dialogues(dialogues: Sequence[Dialogue]) -> list[Claim]:
    left_out = sum(dialogue.left_out for dialogue in dialogues)
    dialogues = [dialogue for dialogue in dialogues if dialogue.questions]
    questions = [question for dialogue in dialogues for question in dialogue.questions]
    turns = sum(len(dialogue.turns) for dialogue in dialogues)
    found: dict[str, list[list[str]]] = {OURS: [], OR: [], GREP: []}
    for number, dialogue in enumerate(dialogues):
        progress(f"dialogue {number + 1} of {len(dialogues)}")
        with TemporaryDirectory() as folder:
            for name, answers in find_all(dialogue, Path(folder)).items():
                found[name] += answers
    progress("")
    claims = list[Claim]()
    for depth in DEPTHS:
        title = f"Recall at {depth}: {len(questions):,} questions about {turns:,} turns of {len(dialogues)} dialogues"
        claim = Claim(f"context_dialogues_{depth}", title, "share", base=OR)
        for name, answers in found.items():
            shares = [recall(q.evidence, ids, depth) for q, ids in zip(questions, answers, strict=True)]
            claim.add(name, [statistics.fmean(shares)])
        claim.notes.append(f"{left_out:,} questions were left out: they have no answer, or their evidence is no turn.")
        claims.append(claim)
    claims[-1].targets = [Target(OURS, 1.0, against=OR, at_most=False)]
    return claims


def main() -> int:
    parser = argparse.ArgumentParser(description="Recall of the turns that answer questions about dialogues.")
    parser.add_argument(
        "file", type=Path, nargs="?", default=OWN, help="a file of LoCoMo's form, such as locomo10.json"
    )
    path: Path = parser.parse_args().file
    try:
        dialogues = read_dialogues(path)
    except OSError as problem:
        print(f"{path}: {problem.strerror}", file=sys.stderr)
        return 1
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        print(f"{path}: not a file of LoCoMo's form: {problem!r}", file=sys.stderr)
        return 1
    if not any(dialogue.questions for dialogue in dialogues):
        print(f"{path}: no question has evidence", file=sys.stderr)
        return 1
    for claim in measure_dialogues(dialogues):
        print_claim(claim)
    return 0


if __name__ == "__main__":
    sys.exit(main())
