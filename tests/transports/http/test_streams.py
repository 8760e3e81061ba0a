"""Streams of the handshake era: the session's own, and those that are cut and taken up again."""

from __future__ import annotations

from typing import Any

import pytest

from longshore import Limits
from posting import HANDSHAKES, LEGACY, Session, call, encode, modern, modern_headers, notice
from serving import SECONDS, Event, Exchange, eventually

from .fixture import rigged

TOKEN = {"progressToken": "t"}
CUTS = 40


def seen(exchange: Exchange) -> list[Event]:
    """The events that carry something."""
    return [event for event in exchange.events if event.data]


def watch(session: Session, uri: str = "note://a") -> None:
    assert session.ask("resources/subscribe", {"uri": uri})["result"] == {}


# -- the session's own stream


@pytest.mark.parametrize("version", HANDSHAKES)
def test_the_stream_is_primed_where_clients_know_what_that_means(version: str) -> None:
    with rigged(Limits(retry_seconds=0.5)) as (_, server):
        session = Session(server, version).open()
        watch(session)
        stream = session.get().begin()
        session.call("touch", uri="note://a")
        stream.wait(seen)
        first = stream.events[0]
        if version == LEGACY:
            assert (first.data, first.retry, bool(first.id)) == ("", 500, True)
        else:
            assert first.message["method"] == "notifications/resources/updated"


def test_notices_wait_for_a_client_that_opens_its_stream_late_but_not_without_end() -> None:
    with rigged() as (_, server):
        session = Session(server).open()
        watch(session)
        for _ in range(130):
            session.call("touch", uri="note://a")
        session.call("grow")
        stream = session.get().wait(lambda it: len(seen(it)) == 100)
        assert seen(stream)[-1].message["method"] == "notifications/tools/list_changed"


def test_before_the_client_is_ready_it_is_told_nothing() -> None:
    with rigged() as (_, server):
        session = Session(server).open(ready=False)
        stream = session.get().begin()
        session.call("grow")
        assert session.post(notice("notifications/initialized")).finish().status == 202
        session.call("shrink")
        stream.wait(seen)
        server.settle()
        assert len(seen(stream.drain())) == 1


def test_of_two_streams_the_newest_is_the_one() -> None:
    with rigged() as (_, server):
        session = Session(server).open()
        watch(session)
        first = session.get().begin()
        session.call("touch", uri="note://a")
        first.wait(seen)
        second = session.get().begin()
        first.finish()
        session.call("touch", uri="note://a")
        second.wait(seen)
        assert (len(seen(first)), len(seen(second))) == (1, 1)
        third = session.get().begin()
        second.finish()
        third.drop()
        server.settle()
        assert session.call("echo", text="on") == "on"


def test_what_was_missed_on_the_stream_is_sent_again_once() -> None:
    with rigged() as (_, server):
        session = Session(server).open()
        watch(session)
        stream = session.get().begin()
        heard: list[str] = []
        for _round in range(4):
            session.call("touch", uri="note://a")
            session.call("touch", uri="note://a")
            stream.wait(seen)  # of two, one at least
            stream.drop()
            heard += [event.id for event in seen(stream)]
            session.call("touch", uri="note://a")
            last = stream.events[-1].id
            stream = session.get(last).begin()
        stream.wait(lambda it: len(heard) + len(seen(it)) == 12)
        server.settle()
        heard += [event.id for event in seen(stream.drain())]
        assert heard == sorted(set(heard), key=lambda id: int(id.rpartition("-")[2]))
        assert len(heard) == 12


def test_a_silent_stream_shows_signs_of_life() -> None:
    with rigged(Limits(keep_alive_seconds=0.01)) as (_, server):
        session = Session(server).open()
        session.get().wait(lambda it: it.comments >= 3)


NO_STREAM = ("", "x", "-", "0", "-1", "x-1")
NO_POSITION = ("{id}-", "{id}-x", "{id}--1", "{id}-1.0", "{id}-+1", "{id}-99999999999999999")


def test_an_event_that_nobody_sent_is_refused() -> None:
    with rigged() as (_, server):
        session = Session(server).open()
        stream = session.get().wait(lambda it: it.events)
        name = stream.events[0].id.rpartition("-")[0]
        for last in (*NO_STREAM, *NO_POSITION):
            answer = session.get(last.format(id=name)).finish()
            assert answer.status == 400, last
        assert not stream.drain().lost
        assert session.call("echo", text="on") == "on"


def test_an_event_of_the_future_does_not_keep_a_stream_from_ending() -> None:
    with rigged() as (rig, server):
        session = Session(server).open()
        held = session.post(call("hold_loudly", **TOKEN)).wait(lambda it: it.events)
        ahead = session.get(held.events[0].id.rpartition("-")[0] + "-999").begin()
        server.look(rig.gate.set)
        held.finish()
        ahead.finish()


# -- taking up an answer


def cut_and_resume(session: Session, at: int) -> list[Any] | None:
    """The messages of a call whose response is cut after so many bytes. None: it was cut before there was an id."""
    cut = session.post(call("count", {"to": 6}, at, **TOKEN))  # with an id of its own: the one before may still run
    while len(cut.raw) < at:
        assert cut.read(SECONDS, 1)
    cut.drop()
    ids = [event.id for event in cut.events if event.id]
    if not ids:
        return None
    *notes, answer = cut.messages + session.get(ids[-1]).finish().messages
    assert answer["id"] == at
    return [*notes, answer["result"]]


def test_an_answer_that_is_cut_anywhere_is_taken_up_and_comes_whole_and_once() -> None:
    with rigged() as (rig, server):
        session = Session(server).open()
        uncut = session.post(call("count", {"to": 6}, **TOKEN)).finish()
        *notes, answer = uncut.messages
        assert len(notes) == 6
        total, begun = len(uncut.raw), uncut.raw.index(b"data: \r\n\r\n") + len(b"data: \r\n\r\n")
        resumed = 0
        for n in range(CUTS + 1):
            at = total * n // CUTS
            messages = cut_and_resume(session, at)
            if messages is not None:
                assert messages == [*notes, answer["result"]], f"cut at byte {at} of {total}"
                resumed += 1
            else:
                assert at < begun + len(b"\r\n"), f"no id by byte {at}"
        assert resumed >= CUTS * 3 // 4
        server.until(lambda: not rig.sessions[session.id].streams, "the end of the streams")


@pytest.mark.parametrize("cut_after", range(6))
def test_a_call_goes_on_while_its_client_is_away(cut_after: int) -> None:
    with rigged() as (rig, server):
        session = Session(server).open()
        first = session.post(call("walk", {"to": 5}, **TOKEN)).wait(lambda it: it.events)
        for n in range(cut_after):
            first.wait(lambda it, n=n: len(seen(it)) == n + 1)
            server.look(rig.step.set)
        first.drop()
        for n in range(cut_after, 5):
            server.until(lambda n=n: rig.befell["walked"] == n + 1)
            if n == 3:  # come back in the middle of it, see a bit, and leave again
                last = [event.id for event in first.events][-1]
                second = session.get(last).wait(lambda it: len(seen(first)) + len(seen(it)) >= 4)
                second.drop()
                first.body += second.body
            server.look(rig.step.set)
        rest = session.get([event.id for event in first.events][-1]).finish()
        messages = first.messages + rest.messages
        assert [it["params"]["progress"] for it in messages[:-1]] == [1, 2, 3, 4, 5]
        assert messages[-1]["result"]["content"][0]["text"] == "walked to 5"


def test_a_question_that_was_missed_is_asked_again_and_answered() -> None:
    with rigged() as (_, server):
        session = Session(server).open({"elicitation": {}})
        asking = session.post(call("refund", {"order": "A9"})).wait(lambda it: it.events)
        asking.drop()
        again = session.get(asking.events[0].id).wait(seen)
        assert again.messages[0]["method"] == "elicitation/create"
        answer = {"action": "accept", "content": {"ok": True}}
        assert session.post({"jsonrpc": "2.0", "id": again.messages[0]["id"], "result": answer}).finish().status == 202
        assert again.finish().messages[-1]["result"]["content"][0]["text"] == "A9: True"


def test_a_call_that_is_cancelled_while_its_client_is_away_ends_its_stream_without_an_answer() -> None:
    with rigged() as (rig, server):
        session = Session(server).open()
        held = session.post(call("hold_loudly", id="h", **TOKEN)).wait(seen)
        held.drop()
        again = session.get(held.events[0].id).wait(seen)
        assert session.post(notice("notifications/cancelled", {"requestId": "h"})).finish().status == 202
        assert [it["method"] for it in again.finish().messages] == ["notifications/progress"]
        assert rig.befell["cancelled"] == 1
        assert session.call("echo", text="on") == "on"


def test_two_that_take_up_the_same_answer_both_get_it() -> None:
    with rigged() as (rig, server):
        session = Session(server).open()
        first = session.post(call("walk", {"to": 1}, **TOKEN)).wait(seen)
        others = [session.get(first.events[0].id).wait(seen) for _ in range(2)]
        server.look(rig.step.set)
        for exchange in (first, *others):
            assert len(exchange.finish().messages) == 2


def test_what_is_kept_is_bounded_and_has_its_time() -> None:
    with rigged(Limits(events=3, event_seconds=2.0)) as (_, server):
        session = Session(server).open()
        events = session.post(call("count", {"to": 9}, **TOKEN)).finish().events
        kept = session.get(events[0].id).finish().messages
        assert kept == [event.message for event in events[-3:]]
        eventually(lambda: session.get(events[0].id).finish().status == 400, "the end of its time")


# -- sent away to come back


def resume(session: Session, so_far: list[Event]) -> Exchange:
    return session.get([event.id for event in so_far if event.id][-1]).begin()


def test_a_tool_may_send_its_client_away_again_and_again() -> None:
    with rigged() as (rig, server):
        session = Session(server).open()
        exchange = session.post(call("poll", {"times": 3, "retry": 0.25}, **TOKEN))
        events: list[Event] = []
        for _ in range(3):
            exchange.finish()
            assert 250 in [event.retry for event in exchange.events], exchange
            events += exchange.events
            exchange = resume(session, events)
            server.look(rig.step.set)
        events += exchange.finish().events
        messages = [event.message for event in events if event.data]
        assert [it["params"]["progress"] for it in messages[:-1]] == [1, 2, 3]
        assert messages[-1]["result"]["content"][0]["text"] == "polled"
        assert rig.befell["closed"] == 3


def test_a_client_that_does_not_know_to_come_back_is_not_sent_away() -> None:
    with rigged() as (rig, server):
        for version in ("2025-03-26", "2025-06-18"):
            session = Session(server, version).open()
            exchange = session.post(call("poll", {"times": 2}, **TOKEN)).wait(seen)
            server.look(rig.step.set)
            exchange.wait(lambda it: len(seen(it)) == 2)
            server.look(rig.step.set)
            assert exchange.finish().messages[-1]["result"]["content"][0]["text"] == "polled"
        body = modern(call("poll", **TOKEN))
        exchange = server.send("POST", "/mcp", modern_headers(body), encode(body)).wait(seen)
        server.look(rig.step.set)
        assert len(exchange.finish().messages) == 2


# -- readers that fall behind

SMALL = Limits(output_bytes=50_000, notes=10_000)


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_a_reader_that_was_behind_and_caught_up_hears_what_is_said_next(era: str) -> None:
    with rigged(SMALL) as (rig, server):
        message = call("chatter", {"messages": 60, "size": 10_000})
        session = Session(server).open()
        headers = session.headers
        if era == "modern":
            message = modern(message, logLevel="info")
            headers = list(modern_headers(message))
        slow = server.connect(buffer=4096).send("POST", "/mcp", headers, encode(message))
        server.until(lambda: rig.befell["chattered"])
        slow.wait(lambda it: len(seen(it)) == 60, "what was said")
        server.look(rig.gate.set)
        slow.wait(lambda it: seen(it)[-1].message["params"]["data"] == "last", "what is said next")
        server.look(rig.step.set)
        assert slow.finish().messages[-1]["result"]["content"][0]["text"] == "chattered"


def test_notices_do_not_pile_up_for_a_stream_that_nobody_reads() -> None:
    with rigged(SMALL) as (rig, server):
        session = Session(server).open()
        uri = "note://" + "a" * 8000
        watch(session, uri)
        stalled = server.connect(buffer=4096).send("GET", "/mcp", [*session.headers, ("Accept", "text/event-stream")])
        stalled.begin()
        live = server.look(lambda: rig.sessions[session.id])
        follower = server.look(lambda: live.notifications.follower)
        assert follower is not None
        most = 0
        for _ in range(2000):
            session.call("touch", uri=uri)
            most = max(most, server.look(lambda: follower.bytes))
            if server.look(lambda: follower.closed):
                break
        assert follower.closed
        assert most < 5 * SMALL.output_bytes
        last = [event.id for event in stalled.finish().events][-1]
        again = session.get(last).wait(seen)
        assert int(seen(again)[0].id.rpartition("-")[2]) == int(last.rpartition("-")[2]) + 1
