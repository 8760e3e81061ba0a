"""How many sessions there are, and for how long: nothing that was refused leaves a trace, nothing idle stays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from longshore import Limits
from longshore.errors import StoreError
from posting import LEGACY, Session, call, encode, request
from serving import Exchange, Served, eventually

from .fixture import Rig, rigged

REFUSED = 1000


def traces(rig: Rig) -> tuple[int, ...]:
    """What sessions leave in the process: records, unpacked ones, links that hear notices, calls."""
    return rig.stored(), len(rig.sessions), len(rig.links), len(rig.executor.live)


def settled(rig: Rig, server: Served) -> tuple[int, ...]:
    """The traces, without what the store will free when it is next used."""
    server.do(rig.app.store.check)
    return server.look(lambda: traces(rig))


def refusals() -> list[tuple[Any, list[tuple[str, str]], int]]:
    """Handshakes that fail, each in another way."""
    good = request("initialize", {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {}}, 1)
    return [
        (request("initialize", {"protocolVersion": 7}, 1), [], 200),
        (request("initialize", None, 1), [], 200),
        (request("initialize", {"protocolVersion": LEGACY, "capabilities": []}, 1), [], 200),
        (good | {"id": None}, [], 400),
        (good, [("Content-Type", "text/plain")], 415),
        (good, [("Accept", "text/html")], 406),
        (good, [("Host", "evil.example")], 421),
        (good, [("Origin", "http://evil.example")], 403),
        (good, [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "initialize")], 404),
        (good, [("MCP-Protocol-Version", "v999")], 400),
        (good, [("Mcp-Session-Id", "unknown")], 404),
        ([good], [], 400),
        (request("tools/list", {}, 1), [], 400),
        (call("hold"), [("Mcp-Session-Id", "unknown")], 404),
    ]


def test_a_refused_request_leaves_nothing_behind() -> None:
    with rigged() as (rig, server):
        kinds = refusals()
        connection = server.connect()
        for n in range(REFUSED):
            message, headers, status = kinds[n % len(kinds)]
            answer = connection.send("POST", "/mcp", headers, encode(message)).finish()
            assert answer.status == status, answer
            assert "mcp-session-id" not in answer.headers
        for verb in ("GET", "DELETE"):
            assert server.send(verb, "/mcp", [("Mcp-Session-Id", "unknown")]).finish().status == 404
        assert server.look(lambda: traces(rig)) == (0, 0, 0, 0)


def test_a_handshake_whose_session_can_not_be_stored_leaves_nothing_behind() -> None:
    with rigged() as (rig, server):

        async def fail(*_: Any) -> None:
            raise StoreError("here", "it is full", "make room")

        server.look(lambda: setattr(rig.app.store, "set", fail))
        answer = Session(server).initialize().finish()
        assert (answer.status, answer.headers["retry-after"]) == (503, "1")
        assert "mcp-session-id" not in answer.headers
        assert "it is full" in server.take_problem("a request failed because the store did")
        server.look(lambda: delattr(rig.app.store, "set"))
        assert server.look(lambda: traces(rig)) == (0, 0, 0, 0)
        assert Session(server).open().call("echo", text="on") == "on"


def test_a_session_that_is_not_used_for_its_time_is_forgotten() -> None:
    with rigged(session_ttl=2.0) as (rig, server):
        followed, stream = in_time(server, lambda session: session.get().begin())
        _, held = in_time(server, lambda session: held_call(rig, server, session))
        left = [Session(server).open(ready=False) for _ in range(20)]
        eventually(lambda: settled(rig, server)[:2] == (2, 2), "the end of the idle ones")
        assert [status(each) for each in left] == [404] * 20
        idle = Session(server).open(ready=False)  # another lifetime
        server.until(lambda: idle.id not in rig.sessions, "the end of another")
        assert not stream.drain().ended  # who is connected is not idle
        assert status(followed) == 200
        server.look(rig.gate.set)
        assert held.finish().status == 200
        stream.drop()
        eventually(lambda: settled(rig, server) == (0, 0, 0, 0), "the end of everything")


def in_time(server: Served, connect: Callable[[Session], Exchange]) -> tuple[Session, Exchange]:
    """A session and a connection to it: on a busy machine a short life can end between the two, so again."""
    while True:
        session = Session(server).open(ready=False)
        exchange = connect(session)
        if exchange.status != 404:
            return session, exchange


def held_call(rig: Rig, server: Served, session: Session) -> Exchange:
    exchange = session.post(call("hold"))
    eventually(lambda: server.look(lambda: rig.befell["held"]) or (exchange.read(0.0) and exchange.status))
    return exchange


def status(session: Session) -> int:
    return session.post(request("ping")).finish().status


def test_a_session_that_is_used_lives_on() -> None:
    with rigged(session_ttl=2.0) as (rig, server):
        used, idle = Session(server).open(), Session(server).open()
        gone = 0
        while gone < 2:  # more than one lifetime
            assert status(used) == 200
            if server.look(lambda idle=idle: idle.id not in rig.sessions):
                gone += 1
                idle = Session(server).open(ready=False)


def used(server: Served) -> Session:
    session = Session(server).open()
    assert status(session) == 200
    return session


def test_sessions_that_were_never_used_make_room_before_all_others() -> None:
    with rigged(Limits(sessions=5)) as (rig, server):
        kept = [used(server) for _ in range(3)]
        listening = Session(server).open()
        stream = listening.get().begin()
        flood = [Session(server).open() for _ in range(20)]
        assert server.look(rig.stored) == 5
        assert [status(each) for each in flood] == [404] * 19 + [200]
        assert [status(each) for each in (*kept, listening)] == [200] * 4
        stream.drop()


def test_a_session_never_makes_room_for_itself() -> None:
    with rigged(Limits(sessions=2)) as (rig, server):
        in_order = rig.app.store.find

        async def newest_first(prefix: str) -> dict[str, bytes]:  # Redis may say so of two in one millisecond
            return dict(reversed((await in_order(prefix)).items()))

        server.look(lambda: setattr(rig.app.store, "find", newest_first))
        sessions = [Session(server).open() for _ in range(5)]
        assert status(sessions[-1]) == 200
        assert server.look(rig.stored) == 2


def test_the_one_that_was_unused_for_longest_makes_room() -> None:
    with rigged(Limits(sessions=5)) as (rig, server):
        sessions = [used(server) for _ in range(5)]
        assert server.look(rig.stored) == 5
        stream = sessions[0].get().begin()
        held = sessions[0].post(call("hold"))
        server.until(lambda: rig.befell["held"])
        assert [status(each) for each in sessions[1:]] == [200] * 4
        sessions[0].delete().finish()
        stream.finish()
        held.finish()
        sessions.append(used(server))
        assert server.look(rig.stored) == 5
        sessions.append(used(server))
        assert server.look(rig.stored) == 5
        assert [status(each) for each in sessions] == [404, 404, 200, 200, 200, 200, 200]
        assert server.look(lambda: len(rig.links)) == 5


def test_a_session_that_makes_room_ends_with_its_streams_and_calls() -> None:
    with rigged(Limits(sessions=2)) as (rig, server):
        first = Session(server).open()
        stream = first.get().begin()
        held = first.post(call("hold"))
        server.until(lambda: rig.befell["held"])
        for _ in range(2):
            used(server)
        stream.finish()
        assert held.finish().body == b""
        assert rig.befell["cancelled"] == 1
        assert status(first) == 404


def test_only_so_many_are_kept_unpacked_and_the_rest_is_read_again() -> None:
    with rigged(Limits(live_sessions=3)) as (rig, server):
        sessions = [Session(server).open() for _ in range(10)]
        assert server.look(lambda: traces(rig)) == (10, 3, 3, 0)
        sessions[0].ask("logging/setLevel", {"level": "error"})
        sessions[1].ask("resources/subscribe", {"uri": "note://a"})
        for session in sessions:
            assert session.call("echo", text=session.id) == session.id
        assert server.look(lambda: len(rig.sessions)) == 3
        stream = sessions[1].get().begin()  # what it asked for was not forgotten
        sessions[5].call("touch", uri="note://a")
        stream.wait(lambda it: it.messages)
        quiet = sessions[0].post(call("chatter", {"messages": 3, "size": 1}))
        server.until(lambda: rig.befell["chattered"])
        server.look(lambda: (rig.gate.set(), rig.step.set()))
        assert quiet.finish().type == "application/json"
        for session in sessions[2:]:
            assert status(session) == 200
        assert server.look(lambda: sessions[1].id in rig.sessions), "somebody follows it"


def test_streams_of_one_session_are_bounded() -> None:
    with rigged(Limits(streams=2, stream_after_seconds=0.01)) as (rig, server):
        session = Session(server).open()
        loud = [session.post(call("hold_loudly", id=n, progressToken=n)).begin() for n in range(2)]
        third = session.post(call("hold_loudly", id=3, progressToken=3))
        server.until(lambda: rig.befell["held"] == 3)
        server.look(rig.gate.set)
        assert [it.finish().type for it in loud] == ["text/event-stream"] * 2
        assert third.finish().json["result"]["content"][0]["text"] == "released"


def open_and_leave(server: Served) -> str:
    session = Session(server).open()
    session.call("later", text="x")
    session.post(call("count", {"to": 2}, progressToken=1)).finish()
    session.delete().finish()
    return session.id


def test_sessions_that_came_and_went_leave_nothing_behind() -> None:
    with rigged() as (rig, server):
        for _ in range(100):
            open_and_leave(server)
        assert server.look(lambda: traces(rig)) == (0, 0, 0, 0)
