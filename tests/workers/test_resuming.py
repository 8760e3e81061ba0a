"""A call begun in one process is followed to its end in the other."""

from __future__ import annotations

from typing import Any

import pytest

from posting import Session, call, modern, notice, post_modern
from serving import Exchange

from .processes import Process, Site, at, opened, progress, until, wait_messages

Pair = tuple[Process, Process]


def steps(messages: list[Any]) -> list[Any]:
    """The steps that were told of, and at the end the text of the answer."""
    return [
        message["params"]["progress"] if "params" in message else message["result"]["content"][0]["text"]
        for message in messages
    ]


def begun(session: Session, process: Process, name: str, *, to: int = 6, allowed: int = 0) -> Exchange:
    """A walk that has taken some of its steps."""
    walk = progress(session, "walk", 1, name=name, to=to)
    walk.wait(lambda it: it.events)
    process.do("allow", name=name, steps=allowed)
    wait_messages(walk, allowed)
    return walk


def last(exchange: Exchange) -> str:
    return [event.id for event in exchange.events if event.id][-1]


@pytest.mark.parametrize("cut", [0, 1, 3, 6])
def test_a_call_is_followed_in_the_other_process(pair: Pair, cut: int) -> None:
    """Cut off after some steps; some more are taken while nobody listens, and the rest while the other one sends."""
    a, b = pair
    session = opened(a)
    name = f"walk {session.id}"
    walk = progress(session, "walk", 1, name=name, to=9)
    a.do("allow", name=name, steps=6)
    wait_messages(walk, 6)
    seen = [event for event in walk.events if event.id][: cut + 1]
    walk.drop()
    a.do("allow", name=name, steps=1)
    resumed = at(session, b).get(seen[-1].id)
    wait_messages(resumed, 7 - cut)
    a.do("allow", name=name, steps=3)
    resumed.finish()
    told = [event.message for event in seen if event.data] + resumed.messages
    assert steps(told) == [*range(1, 10), f"{name} walked 9"]
    ids = [event.id for event in seen + resumed.events]
    assert len(set(ids)) == len(ids)


def test_two_followers_each_get_everything(pair: Pair) -> None:
    """A connection that is dead without anybody knowing does not take events from the one that replaced it."""
    a, b = pair
    session = opened(a)
    name = f"walk {session.id}"
    walk = progress(session, "walk", 1, name=name, to=3)
    walk.wait(lambda it: it.events)
    resumed = [at(session, process).get(last(walk)) for process in (a, b, b)]
    for each in resumed:
        each.begin()
    a.do("allow", name=name, steps=4)
    for each in (walk, *resumed):
        assert steps(each.finish().messages)[-1] == f"{name} walked 3"


def test_a_finished_call_can_be_fetched_anywhere(pair: Pair) -> None:
    a, b = pair
    session = opened(a)
    name = f"walk {session.id}"
    walk = progress(session, "walk", 1, name=name, to=2)
    walk.wait(lambda it: it.events)
    first = last(walk)
    walk.drop()
    a.do("allow", name=name, steps=3)
    until(lambda: a.do("befell", what=f"{name} arrived") == "1")
    for process in (b, a, b):
        assert steps(at(session, process).get(first).finish().messages)[-1] == f"{name} walked 2"


def test_a_stream_of_another_session_is_not_sent(pair: Pair) -> None:
    a, _ = pair
    session, other = opened(a), opened(a)
    walk = begun(session, a, f"walk {session.id}", to=1, allowed=1)
    for process in pair:
        assert at(other, process).get(last(walk)).finish().status == 400
    a.do("allow", name=f"walk {session.id}", steps=1)
    assert walk.finish().ended


def test_a_call_of_a_process_that_is_stopped_says_so(fresh: Site) -> None:
    a, b = fresh.start()
    session = opened(a)
    walk = begun(session, a, "walk", allowed=2)
    before = last(walk)
    walk.drop()
    resumed = at(session, b).get(before)
    resumed.begin()
    a.stop()
    [answer] = resumed.finish().messages
    assert answer["id"] == 1 and answer["result"]["isError"]
    assert "shut down" in answer["result"]["content"][0]["text"]
    again = session.get(before).finish()
    assert again.messages == resumed.messages


@pytest.mark.parametrize("resumed_first", [True, False])
def test_a_call_of_a_process_that_was_killed_is_answered_with_an_error(fresh: Site, resumed_first: bool) -> None:
    a, b = fresh.start(odd={"beat": (0.2, 1.0)})
    session = opened(a)
    walk = begun(session, a, "walk", allowed=2)
    after = walk.events[1].id
    walk.drop()
    if resumed_first:
        resumed = at(session, b).get(after).begin()
        a.kill()
    else:
        a.kill()
        resumed = at(session, b).get(after)
    told = resumed.finish().messages
    assert told[0]["params"]["progress"] == 2
    assert told[1]["id"] == 1 and "ended while this request ran" in told[1]["error"]["message"]
    assert len(told) == 2
    assert session.call("echo", text="goes on") == "goes on"


def test_a_process_that_is_killed_while_it_answers_has_answered_or_not(fresh: Site) -> None:
    """Never both: that an answer is the last event is stored together with it."""
    a, b = fresh.start(odd={"beat": (0.2, 1.0)})
    sessions = [opened(a) for _ in range(20)]
    walks = [begun(session, a, f"walk {n}", to=1) for n, session in enumerate(sessions)]
    allowed = [
        post_modern(a, modern(call("allow", {"name": f"walk {n}", "steps": 2}, n)))  # type: ignore[arg-type]
        for n in range(20)
    ]
    allowed[5].finish()
    a.kill()
    resumed = [at(session, b).get(walk.events[0].id) for session, walk in zip(sessions, walks, strict=True)]
    answers = [[each for each in one.finish().messages if "id" in each] for one in resumed]
    assert [len(each) for each in answers] == [1] * 20


def test_a_call_that_outlives_its_events_is_still_followed(fresh: Site) -> None:
    """Events are kept for a while after the last of them. A call that is silent for longer is not forgotten."""
    a, b = fresh.start(limits={"event_seconds": 1.0})
    session = opened(a)
    walk = begun(session, a, "walk", to=2, allowed=1)
    stream = session.get()
    stream.wait(lambda it: it.events)
    after, home = last(walk), last(stream)
    walk.drop()
    other = opened(b)
    done = begun(other, b, "done", to=1, allowed=2)
    until(lambda: at(other, a).get(done.events[0].id).finish().status == 400, "the end of a finished stream's time")
    resumed = at(session, b).get(after).begin()
    a.do("allow", name="walk", steps=2)
    assert steps(resumed.finish().messages) == [2, "walk walked 2"]
    assert session.get(home).begin().status == 200
    assert session.post(notice("notifications/initialized")).finish().status == 202


def test_a_call_is_followed_back_and_forth(pair: Pair) -> None:
    a, b = pair
    session = opened(a)
    name = f"walk {session.id}"
    follower, told = progress(session, "walk", 1, name=name, to=8), []
    follower.wait(lambda it: it.events)
    for n in range(8):
        a.do("allow", name=name)
        wait_messages(follower, 1)
        told += follower.messages
        after = last(follower)
        follower.drop()
        follower = at(session, (b, a)[n % 2]).get(after)
    a.do("allow", name=name)
    assert steps(told + follower.finish().messages) == [*range(1, 9), f"{name} walked 8"]
