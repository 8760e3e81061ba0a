"""What is kept of streams that have ended: for a while, and not without end."""

from __future__ import annotations

import pytest

from longshore import Limits
from longshore.transports.http.streams import FinishedStreams
from posting import Session, call
from serving import Event, Exchange

from .fixture import UVICORN, Rig, rigged


def counted(session: Session, id: int) -> list[Event]:
    """A call whose answer came as a stream, to its end."""
    return session.post(call("count", {"to": 3}, id, progressToken="t")).finish().events


def again(session: Session, events: list[Event]) -> Exchange:
    return session.get(events[0].id).finish()


def logs(rig: Rig) -> int:
    return len(rig.app.store._logs)  # type: ignore[attr-defined]


def size_of_a_log() -> int:
    with rigged() as (rig, server):
        counted(Session(server).open(), 1)
        return server.until(lambda: rig.app.sessions._finished.bytes)


@pytest.mark.parametrize("spare", [1, 0, -1])
def test_the_oldest_that_ended_make_room(spare: int) -> None:
    with rigged(Limits(kept_bytes=2 * size_of_a_log() + spare)) as (rig, server):
        session = Session(server).open()
        held = session.post(call("hold_loudly", id=9, progressToken="t")).wait(lambda it: it.messages)
        first, second = counted(session, 1), counted(session, 2)
        server.until(lambda: logs(rig) == (3 if spare >= 0 else 2))
        assert again(session, first).status == (200 if spare >= 0 else 400)
        third = counted(session, 3)
        server.until(lambda: logs(rig) == (3 if spare >= 0 else 2))
        assert again(session, first).status == 400
        assert again(session, second).status == (200 if spare >= 0 else 400)
        assert len(again(session, third).messages) == 4
        held.drop()  # it has not ended, so it is still there
        resumed = session.get(held.events[0].id).begin()
        server.look(rig.gate.set)
        assert resumed.finish().messages[-1]["result"]["content"][0]["text"] == "released"


def test_what_was_kept_of_a_session_goes_with_it() -> None:
    with rigged() as (rig, server):
        session, other = Session(server).open(), Session(server).open()
        for each in (session, session, other):
            events = counted(each, 1)
        server.until(lambda: logs(rig) == 3)
        assert session.delete().finish().status == 204
        assert server.look(lambda: logs(rig)) == 1
        assert len(again(other, events).messages) == 4


@UVICORN
def test_only_the_events_that_are_kept_count() -> None:
    with rigged(Limits(events=2)) as (rig, server):
        counted(Session(server).open(), 1)
        whole = size_of_a_log()
        assert 0 < server.until(lambda: rig.app.sessions._finished.bytes) < whole


@UVICORN
def test_what_has_expired_is_not_counted() -> None:
    kept = FinishedStreams(Limits(kept_bytes=100, event_seconds=0.0))
    for n in range(10):
        assert kept.add(f"events:s:{n}", 60) == []
        assert kept.bytes == 0
    assert kept.take("s") == []


@UVICORN
def test_one_that_is_taken_up_after_its_end_counts_as_a_whole_and_as_new() -> None:
    kept = FinishedStreams(Limits(kept_bytes=100))
    assert kept.add("events:s:a", 40) == kept.add("events:s:b", 40) == []
    assert kept.add("events:s:a", 20) == []
    assert kept.bytes == 100
    assert kept.add("events:t:c", 1) == ["events:s:b"]
    assert kept.take("s") == ["events:s:a"]
    assert kept.bytes == 1
