"""A session begun on one process is served by the other, and what one changes the other knows."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from longshore.stores import Store, open_store
from longshore.transports.http.sessions import session_key
from posting import Session, call, request
from serving import Exchange

from .processes import Process, Site, at, opened, progress, until, wait_messages

Pair = tuple[Process, Process]


def level(session: Session, told: str) -> list[str]:
    """Which of two log messages of a call reach the client."""
    answer = session.post(call("note_down", {"level": told, "text": told}, told)).finish()
    return [each["params"]["data"] for each in answer.messages[:-1]]


def test_a_session_is_served_by_either_process(pair: Pair) -> None:
    a, b = pair
    session = opened(a)
    at(session, b)
    assert "echo" in {tool["name"] for tool in session.ask("tools/list")["result"]["tools"]}
    assert session.call("echo", text="hi") == "hi"
    assert session.call("process") == str(b.pid)
    assert session.ask("ping")["result"] == {}
    at(session, a)
    assert session.call("process") == str(a.pid)


def test_what_one_process_changes_the_other_knows(pair: Pair) -> None:
    a, b = pair
    session = opened(a)
    assert level(session, "info") == ["info"]
    assert at(session, b).ask("logging/setLevel", {"level": "error"})["result"] == {}
    assert until(lambda: level(at(session, a), "warning") == [], "the level in the process that did not set it")
    assert level(session, "error") == ["error"]
    assert session.ask("logging/setLevel", {"level": "debug"})["result"] == {}
    assert until(lambda: level(at(session, b), "debug") == ["debug"], "the level in the other process")


def test_a_subscription_made_elsewhere_holds_where_the_stream_is(pair: Pair) -> None:
    a, b = pair
    session = opened(a)
    stream = session.get().begin()
    at(session, b)
    for uri in ("note://one", "note://two"):
        assert session.ask("resources/subscribe", {"uri": uri})["result"] == {}
    for process, uri in ((a, "note://one"), (b, "note://two"), (b, "note://three"), (a, "note://one/part")):
        process.do("touch", uri=uri)
    heard = {each["params"]["uri"] for each in wait_messages(stream, 3)}
    assert heard == {"note://one", "note://two", "note://one/part"}
    assert session.ask("resources/unsubscribe", {"uri": "note://one"})["result"] == {}
    a.do("touch", uri="note://one")
    b.do("touch", uri="note://two")
    assert wait_messages(stream, 4)[3]["params"]["uri"] == "note://two"


def test_changes_made_in_both_processes_at_once_are_all_kept(pair: Pair) -> None:
    a, b = pair
    session = opened(a)
    at(session, b).ask("ping")
    sent: list[Exchange] = []
    for n in range(20):
        at(session, (a, b)[n % 2])
        sent.append(session.post(request("resources/subscribe", {"uri": f"note://{n}"}, n)))
    assert all(each.finish().json["result"] == {} for each in sent)
    stream = at(session, a).get().begin()
    for n in range(20):
        b.do("touch", uri=f"note://{n}")
    assert [each["params"]["uri"] for each in wait_messages(stream, 20)] == [f"note://{n}" for n in range(20)]


def test_the_other_process_ends_a_session(pair: Pair) -> None:
    a, b = pair
    session = opened(a)
    stream = session.get().begin()
    walk = progress(session, "walk", 1, name=f"end {session.id}", to=5)
    a.do("allow", name=f"end {session.id}")
    wait_messages(walk, 1)
    assert at(session, b).call("echo", text="hi") == "hi"
    assert session.delete().finish().status == 204
    assert stream.finish().ended
    assert [each.get("method") for each in walk.finish().messages] == ["notifications/progress"]
    until(lambda: a.do("befell", what=f"end {session.id} cancelled") == "1", "the cancelled call")
    for process in pair:
        assert at(session, process).post(request("ping")).finish().status == 404
        assert session.get().finish().status == 404
        assert session.delete().finish().status == 404


def test_an_ended_session_does_not_come_back(pair: Pair) -> None:
    """A change that is on its way while the session ends must not make it anew."""
    a, b = pair
    for n in range(20):
        session = opened(a)
        at(session, b).ask("ping")
        late = [session.post(request("resources/subscribe", {"uri": f"note://{m}"}, m)) for m in range(3)]
        ended = at(session, a).delete()
        late += [session.post(request("resources/subscribe", {"uri": f"note://{m}"}, m)) for m in range(3, 6)]
        assert ended.finish().status == 204
        assert {each.finish().status for each in late} <= {200, 404}, n
        for process in pair:
            assert at(session, process).post(request("ping")).finish().status == 404


def test_the_session_of_another_caller_is_unknown_in_either_process(fresh: Site, tmp_path: Path) -> None:
    config = tmp_path / "longshore.toml"
    config.write_text("".join(f'[tokens.{name}]\ntoken = "{name * 8}"\n' for name in ("alice", "bob")))
    a, b = fresh.start(config_path=str(config))
    alice, bob = ([("Authorization", f"Bearer {name * 8}")] for name in ("alice", "bob"))
    session = opened(a, headers=alice)
    stream = session.get().wait(lambda it: it.events)
    assert at(session, b).call("echo", text="hers") == "hers"
    session.extra = bob
    for process in (b, a):
        at(session, process)
        assert session.post(request("ping")).finish().status == 404
        assert session.post(call("echo")).finish().status == 404
        assert session.get().finish().status == 404
        assert session.get(stream.events[0].id).finish().status == 404
        assert session.delete().finish().status == 404
    session.extra = []
    assert session.post(request("ping")).finish().status == 401
    session.extra = alice
    assert session.call("echo", text="still hers") == "still hers"
    assert not stream.drain().ended


def test_an_idle_session_ends_in_both_and_a_used_one_in_neither(fresh: Site) -> None:
    a, b = fresh.start(session_ttl=6.0)
    idle, used, followed, late = opened(a), opened(a), opened(a), opened(a)
    begun = time.monotonic()
    at(idle, b).ask("ping")
    stream = at(followed, b).get().begin()

    def gone() -> bool:
        assert at(used, a).ask("ping")["result"] == {}
        if late.server is a and time.monotonic() - begun > 3.0:
            assert at(late, b).ask("ping")["result"] == {}
        return stored(fresh, idle) is None

    until(gone, "the end of the idle session")
    for process in (a, b):
        assert at(idle, process).post(request("ping")).finish().status == 404
        assert at(used, process).ask("ping")["result"] == {}
        assert at(followed, process).ask("ping")["result"] == {}
        assert at(late, process).ask("ping")["result"] == {}
    assert not stream.drain().ended


def stored(site: Site, session: Session) -> Any:
    """The session's record, looked at without using it."""
    return in_store(site, lambda store: store.get(session_key(session.id)))


def in_store(site: Site, use: Callable[[Store], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        store = open_store(site.store)
        try:
            return await use(store)
        finally:
            await store.close()

    return asyncio.run(main())


def test_a_session_that_ended_elsewhere_is_not_served_also_if_the_notice_was_lost(fresh: Site) -> None:
    [process] = fresh.start(1)
    session = opened(process)
    assert session.ask("ping")["result"] == {}
    in_store(fresh, lambda store: store.delete(session_key(session.id)))
    assert session.post(request("ping")).finish().status == 404


def used(process: Process) -> Session:
    session = opened(process)
    assert session.ask("ping")["result"] == {}
    return session


def test_a_flood_of_handshakes_at_one_process_ends_no_session_that_another_one_uses(fresh: Site) -> None:
    a, b = fresh.start(limits={"sessions": 3})
    sessions = [at(opened(a), b) for _ in range(2)]
    assert [session.ask("ping")["result"] for session in sessions] == [{}, {}]
    for _ in range(10):
        opened(a)
    for process in (a, b):
        assert [at(each, process).post(request("ping")).finish().status for each in sessions] == [200, 200]


def test_the_bound_of_sessions_holds_across_processes(fresh: Site) -> None:
    a, b = fresh.start(limits={"sessions": 3})
    first = opened(a)
    stream = first.get().begin()
    sessions = [used(process) for _ in range(4) for process in (a, b)]
    assert stream.finish().ended
    for process in (a, b):
        assert at(first, process).post(request("ping")).finish().status == 404
        there = [at(session, process).post(request("ping")).finish().status for session in sessions]
        assert there == [404] * 5 + [200] * 3


def test_a_session_that_makes_room_ends_where_its_stream_is(fresh: Site) -> None:
    a, b = fresh.start(limits={"sessions": 2})
    first = opened(a)
    stream = first.get().begin()
    for _ in range(2):
        used(b)
    assert stream.finish().ended
