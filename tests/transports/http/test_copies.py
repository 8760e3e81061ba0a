"""The copy of a session that a process has unpacked: there is one while anybody depends on it, and it is as stored."""

from __future__ import annotations

import asyncio
import gc
import weakref
from math import inf
from typing import Any

import pytest

from longshore import Limits
from longshore.transports.http.sessions import Record, decode_record, session_key
from posting import Session, call, encode, notice, request
from serving import Served, eventually

from .fixture import Rig, rigged
from .test_sessions import in_time, status, traces

ONE = Limits(live_sessions=1)


def crowded(server: Served) -> tuple[Session, Session]:
    """A session that stays unpacked because somebody listens, so that the other is one too many."""
    listening = Session(server).open()
    listening.get().begin()
    return listening, Session(server).open({"elicitation": {}})


def record(rig: Rig, server: Served, session: Session) -> Record:
    raw = server.do(lambda: rig.app.store.get(session_key(session.id)))
    assert raw is not None
    return decode_record(raw)


def padded(bytes: int) -> dict[str, Any]:
    """Capabilities that take their room."""
    return {"experimental": {"pad": {"x": "x" * bytes}}}


# -- one copy


def test_an_answer_finds_the_call_that_asked_however_many_sessions_there_are() -> None:
    with rigged(ONE) as (_, server):
        _, session = crowded(server)
        asking = session.post(call("refund", {"order": "A9"})).wait(lambda it: it.messages)
        answer = {"action": "accept", "content": {"ok": True}}
        question = asking.messages[0]["id"]
        assert session.post({"jsonrpc": "2.0", "id": question, "result": answer}).finish().status == 202
        assert asking.finish().messages[-1]["result"]["content"][0]["text"] == "A9: True"


def test_a_call_is_cancelled_and_a_session_ended_however_many_there_are() -> None:
    with rigged(ONE) as (rig, server):
        _, session = crowded(server)
        held = session.post(call("hold", id="h"))
        server.until(lambda: rig.befell["held"])
        assert session.post(notice("notifications/cancelled", {"requestId": "h"})).finish().status == 202
        held.finish()
        assert rig.befell["cancelled"] == 1
        stream = session.get().begin()
        assert session.delete().finish().status == 204
        stream.finish()
        assert server.look(lambda: len(rig.links)) == 1


def test_a_session_that_is_being_looked_up_is_not_packed_meanwhile() -> None:
    with rigged(ONE) as (rig, server):
        _, session = crowded(server)
        other = Session(server).open()  # in its place
        go_on = hold_up(rig, server, "touch", session)
        asking = session.post(call("refund", {"order": "A9"}))
        server.until(lambda: session.id in rig.sessions, "the one that is looked up")
        assert status(other) == 200
        server.look(go_on.set)
        asking.wait(lambda it: it.messages)
        answer = {"action": "accept", "content": {"ok": True}}
        question = asking.messages[0]["id"]
        assert session.post({"jsonrpc": "2.0", "id": question, "result": answer}).finish().status == 202
        assert asking.finish().messages[-1]["result"]["content"][0]["text"] == "A9: True"


def hold_up(rig: Rig, server: Served, what: str, session: Session) -> asyncio.Event:
    """Have the store be slow with one session, until the event is set."""
    go_on, at_once = asyncio.Event(), getattr(rig.app.store, what)

    async def slowly(key: str, *rest: Any) -> Any:
        if key == session_key(session.id):
            await go_on.wait()
        return await at_once(key, *rest)

    server.look(lambda: setattr(rig.app.store, what, slowly))
    return go_on


def test_a_session_that_is_used_while_others_are_looked_at_is_not_forgotten() -> None:
    with rigged() as (rig, server):
        busy, used = Session(server).open(), Session(server).open()
        held = busy.post(call("hold"))
        server.until(lambda: rig.befell["held"])
        held.drop()
        server.until(lambda: not rig.sessions[busy.id].busy)
        assert status(used) == 200  # so that it is looked at after the other
        lives = server.look(lambda: [rig.sessions[each.id] for each in (busy, used)])
        go_on = hold_up(rig, server, "get", busy)
        for live in lives:
            live.used = -inf
        sweep = server.look(lambda: asyncio.get_running_loop().create_task(rig.app.sessions.sweep()))
        server.settle()
        assert status(used) == 200
        server.look(go_on.set)
        server.until(sweep.done)
        assert server.look(lambda: list(rig.sessions.values())) == lives
        server.look(rig.gate.set)


# -- a record that is not there any more


def test_a_record_that_expired_while_nobody_was_connected_stays_gone() -> None:
    with rigged() as (rig, server):
        session = Session(server).open()
        server.do(lambda: rig.app.store.delete(session_key(session.id)))
        assert session.post(request("resources/subscribe", {"uri": "note://a"})).finish().status == 404
        assert server.look(lambda: traces(rig)) == (0, 0, 0, 0)


# -- how large a record may be


def size_of_a_record(pad: int) -> int:
    with rigged() as (rig, server):
        session = Session(server).open(padded(pad))
        return server.look(lambda: len(rig.sessions[session.id].raw))


@pytest.mark.parametrize("spare", [1, 0, -1])
def test_what_a_handshake_brings_is_bounded(spare: int) -> None:
    most = size_of_a_record(1000) + spare
    with rigged(Limits(session_bytes=most)) as (rig, server):
        answer = Session(server).initialize(padded(1000)).finish()
        if spare >= 0:
            assert answer.status == 200
            return
        assert answer.status == 413
        assert answer.json["error"]["code"] == -32602
        assert f"{most + 1:,} bytes and may take {most:,}" in answer.json["error"]["message"]
        assert "mcp-session-id" not in answer.headers
        assert server.look(lambda: traces(rig)) == (0, 0, 0, 0)


@pytest.mark.parametrize("spare", [1, 0, -1])
def test_what_a_session_watches_is_bounded(spare: int) -> None:
    uri = "note://" + "a" * 100
    with rigged(Limits(session_bytes=size_of_a_record(1000) + len(uri) + 2 + spare)) as (rig, server):  # 2: its length
        session = Session(server).open(padded(1000))
        answer = session.post(request("resources/subscribe", {"uri": uri})).finish()
        assert answer.status == (200 if spare >= 0 else 413)
        watched = [uri] if spare >= 0 else []
        assert record(rig, server, session).subscriptions == watched
        assert server.look(lambda: list(rig.sessions[session.id].session.subscriptions)) == watched
        assert session.call("echo", text="on") == "on"


# -- what is stored, and what is let go


def test_two_changes_in_one_turn_are_both_stored() -> None:
    with rigged() as (rig, server):
        session = Session(server).open()
        assert session.ask("resources/subscribe", {"uri": "note://a"})["result"] == {}
        connections = [server.connect() for _ in range(2)]
        for connection in connections:  # or they would not be taken in the same turn
            assert connection.send("POST", "/mcp", session.headers, encode(request("ping"))).finish().status == 200
        changes = [("resources/subscribe", "note://b"), ("resources/unsubscribe", "note://a")]
        bodies = [encode(request(method, {"uri": uri})) for method, uri in changes]
        pairs = list(zip(connections, bodies, strict=True))
        sent = server.look(lambda: [each.send("POST", "/mcp", session.headers, body) for each, body in pairs])
        assert [each.finish().json["result"] for each in sent] == [{}, {}]
        assert record(rig, server, session).subscriptions == ["note://b"]


def test_a_session_that_has_ended_is_freed_at_once() -> None:
    with rigged() as (rig, server):
        session = Session(server).open()
        stream = session.get().wait(lambda it: it.events)
        live = server.look(lambda: weakref.ref(rig.sessions[session.id]))
        gc.collect()
        gc.disable()
        try:
            assert session.delete().finish().status == 204
            stream.finish()
            eventually(lambda: live() is None, "the end of the session without the collector")
        finally:
            gc.enable()


# -- looking after them


def test_sessions_are_looked_after_although_that_failed_once() -> None:
    with rigged(session_ttl=2.0) as (rig, server):
        _, stream = in_time(server, lambda session: session.get().begin())

        async def fail(*_: Any) -> bool:
            del rig.app.store.touch
            raise ValueError("something odd")

        server.look(lambda: setattr(rig.app.store, "touch", fail))
        server.until(lambda: "touch" not in vars(rig.app.store), "the failure")
        idle = Session(server).open(ready=False)
        server.until(lambda: idle.id not in rig.sessions, "the end of an idle session")
        assert "something odd" in server.take_problem("sessions could not be swept")
        assert not stream.drain().ended
