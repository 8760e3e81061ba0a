"""The era without sessions: a question that one process asks is answered at the other, once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from counts import count
from posting import Json, call, modern, post_modern

from .processes import STATE_KEY, Nursery, Process, Site, site

Pair = tuple[Process, Process]


def ask(process: Process, tool: str, arguments: Json, **more: Any) -> Any:
    """One round of a call that asks."""
    message = modern(call(tool, arguments, 1), capabilities={"elicitation": {}, "sampling": {}})
    message["params"] |= more
    answer = post_modern(process, message).finish()  # type: ignore[arg-type]
    assert answer.status == 200, answer
    return answer.messages[-1]


def accepted(asked: Any) -> Json:
    assert asked["result"]["resultType"] == "input_required", asked
    answers = {"ok": {"action": "accept", "content": {"ok": True}}}
    return {"requestState": asked["result"]["requestState"], "inputResponses": answers}


def test_a_question_asked_by_one_is_answered_at_the_other(pair: Pair) -> None:
    a, b = pair
    answer = accepted(ask(a, "refund", {"order": "B7"}))
    done = ask(b, "refund", {"order": "B7"}, **answer)
    assert done["result"]["content"][0]["text"] == "B7: True"
    for process in pair:
        again = ask(process, "refund", {"order": "B7"}, **answer)
        assert again["error"]["code"] == -32602 and "used already" in again["error"]["message"]
    assert [process.do("befell", what="B7 refunded") for process in pair] == ["0", "1"]


def test_an_answer_sent_to_both_at_once_is_used_once(pair: Pair) -> None:
    for n in range(count(5)):
        order = f"C{n}"
        message = modern(call("refund", {"order": order}, 1), capabilities={"elicitation": {}})
        message["params"] |= accepted(ask(pair[0], "refund", {"order": order}))
        sent = [post_modern(process, message) for process in (*pair, *pair)]  # type: ignore[arg-type]
        answers = [each.finish().messages[-1] for each in sent]
        assert sorted("result" in each for each in answers) == [False, False, False, True]
        assert sum(int(process.do("befell", what=f"{order} refunded")) for process in pair) == 1


def test_an_answer_is_used_once_across_a_restart(fresh: Site) -> None:
    [a] = fresh.start(1)
    answer = accepted(ask(a, "refund", {"order": "D1"}))
    a.kill()
    [b] = fresh.start(1)
    assert ask(b, "refund", {"order": "D1"}, **answer)["result"]["content"][0]["text"] == "D1: True"
    b.kill()
    [c] = fresh.start(1)
    assert "used already" in ask(c, "refund", {"order": "D1"}, **answer)["error"]["message"]


def test_on_one_host_the_key_lies_in_the_store(nursery: Nursery, tmp_path: Path) -> None:
    with site(nursery, f"sqlite:///{tmp_path}/sessions.db", tmp_path) as made:
        a, b = made.start(state_key=None)
        answer = accepted(ask(a, "refund", {"order": "E1"}))
        assert "result" in ask(b, "refund", {"order": "E1"}, **answer)
        [c] = made.start(1, state_key="another " + STATE_KEY)
        answer = accepted(ask(a, "refund", {"order": "E2"}))
        assert "not one of ours" in ask(c, "refund", {"order": "E2"}, **answer)["error"]["message"]
