"""What is said to one process reaches the call, the stream or the listener that the other one holds."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from counts import count
from posting import Session, call, modern, notice, post_modern, request
from serving import Exchange

from .processes import Process, at, opened, progress, until, wait_messages

Pair = tuple[Process, Process]
LISTS = {"toolsListChanged": True, "resourceSubscriptions": ["note://"]}


def response(question: Any, result: Any) -> Any:
    return {"jsonrpc": "2.0", "id": question["id"], "result": result}


def listen(process: Process) -> Exchange:
    """A modern subscription that is acknowledged."""
    message = modern(request("subscriptions/listen", {"notifications": LISTS}, "L"))
    opened = post_modern(process, message)  # type: ignore[arg-type]
    wait_messages(opened, 1)
    return opened


def numbers(messages: list[Any]) -> list[int]:
    """Which parts of a resource were told of."""
    return [
        int(each["params"]["uri"].rpartition("/")[2])
        for each in messages
        if each["method"] == "notifications/resources/updated"
    ]


def test_a_question_of_one_process_is_answered_at_the_other(pair: Pair) -> None:
    a, b = pair
    session = opened(a, {"elicitation": {}, "sampling": {}})
    asked = [session.post(call("refund", {"order": "A9"}, 1)), session.post(call("title", {}, 2))]
    questions = [wait_messages(each, 1)[0] for each in asked]
    assert [each["method"] for each in questions] == ["elicitation/create", "sampling/createMessage"]
    answers: list[Any] = [
        {"action": "accept", "content": {"ok": True}},
        {"role": "assistant", "content": {"type": "text", "text": "Harbour"}, "model": "m"},
    ]
    at(session, b)
    for question, answer in zip(questions, answers, strict=True):
        assert session.post(response(question, answer)).finish().status == 202
    texts = [each.finish().messages[-1]["result"]["content"][0]["text"] for each in asked]
    assert texts == ["A9: True", "Harbour"]


def test_a_question_that_is_followed_elsewhere_is_answered_there(pair: Pair) -> None:
    a, b = pair
    session = opened(a, {"elicitation": {}})
    asked = session.post(call("refund", {"order": "A9"}, 1))
    asked.wait(lambda it: it.events)
    first = asked.events[0].id
    asked.drop()
    resumed = at(session, b).get(first)
    [question] = wait_messages(resumed, 1)
    assert session.post(response(question, {"action": "decline"})).finish().status == 202
    assert "decline" in resumed.finish().messages[-1]["result"]["content"][0]["text"]


def test_a_call_is_cancelled_through_the_other_process(pair: Pair) -> None:
    a, b = pair
    session = opened(a)
    name = f"walk {session.id}"
    walk = progress(session, "walk", "w", name=name, to=3)
    walk.wait(lambda it: it.events)
    at(session, b)
    assert session.post(notice("notifications/cancelled", {"requestId": "x"})).finish().status == 202
    assert session.post(notice("notifications/cancelled", {"requestId": "w"})).finish().status == 202
    assert walk.finish().messages == []
    until(lambda: a.do("befell", what=f"{name} cancelled") == "1", "the cancelled call")
    assert at(session, a).call("echo", text="goes on") == "goes on"


def test_roots_that_change_at_one_process_are_asked_for_again_by_the_other(pair: Pair) -> None:
    a, b = pair
    session = opened(a, {"roots": {"listChanged": True}})

    def is_asked() -> bool:
        """Whether a call at `a` asks for the roots, which are then answered."""
        calling = at(session, a).post(call("where")).wait(lambda it: b"roots/list" in it.raw or b"result" in it.raw)
        if is_asking := b"roots/list" in calling.raw:
            answer = response(calling.messages[0], {"roots": [{"uri": "file:///"}]})
            assert session.post(answer).finish().status == 202
        calling.finish()
        return is_asking

    assert is_asked()
    assert not is_asked()
    assert at(session, b).post(notice("notifications/roots/list_changed")).finish().status == 202
    until(is_asked, "a second question")
    assert not is_asked()


def test_a_question_of_a_call_that_has_no_stream_comes_on_the_sessions_own_elsewhere(pair: Pair) -> None:
    a, b = pair
    session = opened(a, {"elicitation": {}})
    stream = at(session, b).get().wait(lambda it: it.events)
    asked = at(session, a).post(call("refund", {"order": "J1"}, 1), ("Accept", "application/json"))
    [question] = wait_messages(stream, 1)
    answer = {"action": "accept", "content": {"ok": True}}
    assert at(session, b).post(response(question, answer)).finish().status == 202
    assert asked.finish().json["result"]["content"][0]["text"] == "J1: True"


def test_a_question_comes_on_a_stream_that_was_opened_again_without_a_word_of_the_old_one(pair: Pair) -> None:
    a, b = pair
    session = opened(a, {"elicitation": {}})
    session.get().wait(lambda it: it.events).drop()
    for order in ("K1", "K2"):
        stream = at(session, a).get().wait(lambda it: it.events)
        asked = at(session, b).post(call("refund", {"order": order}, order), ("Accept", "application/json"))
        [question] = wait_messages(stream, 1)  # that of this order: the one before was sent already
        assert order in question["params"]["message"]
        answer = {"action": "accept", "content": {"ok": True}}
        assert session.post(response(question, answer)).finish().status == 202
        assert asked.finish().json["result"]["content"][0]["text"] == f"{order}: True"
        stream.drop()


def test_a_batch_carries_answers_to_the_other_process(pair: Pair) -> None:
    a, b = pair
    session = Session(a, "2025-03-26").open({"elicitation": {}, "sampling": {}})  # type: ignore[arg-type]
    asked = session.post(call("title", {}, 1))
    [question] = wait_messages(asked, 1)
    answer = {"role": "assistant", "content": {"type": "text", "text": "Quay"}, "model": "m"}
    together = at(session, b).post([request("ping", None, 7), response(question, answer)]).finish()
    assert together.messages == [[{"jsonrpc": "2.0", "id": 7, "result": {}}]]
    assert asked.finish().messages[-1]["result"]["content"][0]["text"] == "Quay"


@pytest.mark.parametrize("begun_at", [0, 1])
def test_changes_in_either_process_reach_the_sessions_stream(pair: Pair, begun_at: int) -> None:
    session = opened(pair[begun_at])
    stream = at(session, pair[1]).get().wait(lambda it: it.events)
    assert at(session, pair[0]).ask("resources/subscribe", {"uri": "note://all"})["result"] == {}
    for n, process in enumerate((*pair, *pair)):
        process.do("touch", uri=f"note://all/{n}")
        wait_messages(stream, n + 1)
    assert numbers(stream.messages) == [0, 1, 2, 3]
    for n, process in enumerate(pair):
        process.do("grow")
        told = wait_messages(stream, 5 + n)
    assert [each["method"] for each in told[4:]] == ["notifications/tools/list_changed"] * 2


def test_changes_in_one_process_reach_the_listens_of_both(pair: Pair) -> None:
    listens = [listen(process) for process in pair]
    for n, process in enumerate(pair):
        process.do("touch", uri=f"note:///{n}")
        process.do("grow")
        for each in listens:
            told = wait_messages(each, 1 + 2 * (n + 1))
            assert {message["method"] for message in told[-2:]} == {
                "notifications/resources/updated",
                "notifications/tools/list_changed",
            }
            assert all(message["params"]["_meta"] for message in told)
    for each in listens:
        assert len(each.messages) == 5


def test_notices_before_the_first_stream_wait_for_it_wherever_it_is_opened(pair: Pair) -> None:
    a, b = pair
    session = opened(a)
    assert session.ask("resources/subscribe", {"uri": "note://all"})["result"] == {}
    a.do("touch_many", uri="note://all", first=1, last=3)
    a.do("touch_many", uri="note://all", first=4, last=4)
    stream = at(session, b).get()
    b.do("touch_many", uri="note://all", first=5, last=5)
    stream.wait(lambda it: 5 in numbers(it.messages) and len(it.messages) >= 5)
    assert sorted(numbers(stream.messages)) == [1, 2, 3, 4, 5]


def test_a_stream_that_moves_loses_nothing_and_repeats_nothing(pair: Pair) -> None:
    """The client comes back to the other process each time, while changes go on in both of them."""
    session = opened(pair[0])
    assert session.ask("resources/subscribe", {"uri": "note://all"})["result"] == {}
    stream, told = session.get(), list[Any]()
    stream.wait(lambda it: it.events)
    seen, sent = stream.events[-1].id, 0
    for turn in range(16):
        pair[turn % 3 % 2].do("touch_many", uri="note://all", first=sent + 1, last=sent + 5)
        sent += 5
        if turn % 4:
            stream.read(0.01)
        told += stream.messages
        seen = ([event.id for event in stream.events if event.id] or [seen])[-1]
        stream.drop()
        stream = at(session, pair[(turn + 1) % 2]).get(seen).begin()
    pair[0].do("touch", uri="note://all/0")
    stream.wait(lambda it: 0 in numbers(it.messages), "the last change")
    stream.wait(lambda it: len(told) + len(it.messages) > sent, "every change")
    assert sorted(numbers(told + stream.messages)) == list(range(sent + 1))


def test_a_stream_opened_anew_elsewhere_ends_the_old_one(pair: Pair) -> None:
    a, b = pair
    session = opened(a)
    assert session.ask("resources/subscribe", {"uri": "note://all"})["result"] == {}
    streams = [session.get().wait(lambda it: it.events)]
    for turn in range(1, 6):
        pair[turn % 2].do("touch", uri=f"note://all/{turn}")
        wait_messages(streams[-1], 1)
        streams.append(at(session, pair[turn % 2]).get().wait(lambda it: it.events))
        assert streams[-2].finish().ended
    b.do("touch", uri="note://all/6")
    wait_messages(streams[-1], 1)
    assert [numbers(stream.messages) for stream in streams] == [[1], [2], [3], [4], [5], [6]]
    old = session.get(streams[0].events[0].id).finish()
    assert numbers(old.messages) == [1]
    assert not streams[-1].drain().ended


def test_two_streams_opened_at_once_leave_one(pair: Pair) -> None:
    for _ in range(count(10)):
        session = opened(pair[0])
        assert session.ask("resources/subscribe", {"uri": "note://all"})["result"] == {}
        streams = [at(session, process).get() for process in pair]
        for stream in streams:
            stream.wait(lambda it: it.events)
        until(partial(one_ended, streams), "the end of one of them")
        [left] = [stream for stream in streams if not stream.ended]
        pair[0].do("touch", uri="note://all/1")
        assert numbers(wait_messages(left, 1)) == [1]
        assert one_ended(streams)


def one_ended(streams: list[Exchange]) -> bool:
    for stream in streams:
        stream.read(0)
    return sum(stream.ended for stream in streams) == 1
