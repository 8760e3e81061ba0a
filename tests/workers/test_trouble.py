"""The store fails while the processes serve: what needs it is refused for now, the rest goes on, and all recovers."""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from redis import Redis

from posting import Session, call, modern, notice, post_modern, request
from services import RedisServer
from serving import Exchange

from .processes import Nursery, Process, Site, at, opened, progress, site, until, wait, wait_messages
from .test_modern import accepted, ask
from .test_old import Old
from .test_reaching import listen


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisServer]:
    """A Redis that keeps what it has when it is stopped."""
    server = RedisServer(tmp_path, "--appendonly", "yes", "--appendfsync", "always")
    server.start()
    yield server
    server.stop()


@pytest.fixture
def on_redis(nursery: Nursery, redis: RedisServer, tmp_path: Path) -> Iterator[Site]:
    with site(nursery, redis.url, tmp_path, quiet=False) as made:
        yield made


@pytest.fixture
def on_sqlite(nursery: Nursery, tmp_path: Path) -> Iterator[Site]:
    with site(nursery, f"sqlite:///{tmp_path}/sessions.db", tmp_path, quiet=False) as made:
        yield made


def health(process: Process) -> int:
    answer = process.send("GET", "/health").finish()
    answer.close()
    return answer.status


def inside(process: Process) -> dict[str, int]:
    found: dict[str, int] = process.do("inside")
    return found


def expect_refused(exchange: Exchange) -> None:
    wait(exchange, lambda it: it.ended)
    assert exchange.status == 503, exchange
    assert exchange.headers["retry-after"] == "1"
    assert "try again" in exchange.json["error"]["message"]
    exchange.close()


def needing_the_store(session: Session) -> list[Exchange]:
    """One request of each kind."""
    return [
        session.initialize(),
        session.post(request("ping")),
        session.post(call("echo")),
        session.post(request("logging/setLevel", {"level": "error"})),
        session.post(request("resources/subscribe", {"uri": "note://x"})),
        session.post(notice("notifications/cancelled", {"requestId": 1})),
        session.post({"jsonrpc": "2.0", "id": "longshore-0-1", "result": {}}),
        session.get(),
        session.get("aaaa-1"),
        session.delete(),
        session.server.send("GET", "/sse", [("Accept", "text/event-stream")]),
    ]


def test_redis_is_stopped_and_comes_back(on_redis: Site, redis: RedisServer) -> None:
    a, b = on_redis.start(odd={"beat": (0.3, 2.0)}, limits={"stream_after_seconds": 10.0})
    session, other = opened(a), opened(b)
    stream, heard = session.get().wait(lambda it: it.events), [listen(process) for process in (a, b)]
    old = Old(a)
    old.initialize(a)
    walk = progress(session, "walk", 1, name="walk", to=4)
    a.do("allow", name="walk", steps=2)
    wait_messages(walk, 2)
    late = progress(session, "walk", 2, name="late", to=1)
    until(lambda: a.do("befell", what="late began") == "1")
    asked = accepted(ask(a, "refund", {"order": "F1"}))
    before = inside(b)
    redis.stop()
    for exchange in needing_the_store(session) + needing_the_store(at(other, b)):
        expect_refused(exchange)
    for process in (a, b):
        assert process.do("echo", text="modern") == "modern"
        until(lambda process=process: health(process) == 503, "the failing health")
    message = modern(call("walk", {"name": "m", "to": 1}, 1, progressToken="m"))
    modern_walk = post_modern(a, message)  # type: ignore[arg-type]
    a.do("allow", name="m", steps=2)
    assert len(modern_walk.finish().messages) == 2
    refused = modern(call("refund", {"order": "F1"}, 1), capabilities={"elicitation": {}})
    refused["params"] |= asked
    expect_refused(post_modern(b, refused))  # type: ignore[arg-type]
    a.do("allow", name="walk", steps=3)
    assert [each.get("params", each.get("result")) for each in walk.finish().messages][-1]["content"]
    assert [each["params"]["progress"] for each in walk.messages[:-1]] == [1, 2, 3, 4]
    a.do("allow", name="late", steps=2)
    assert len(late.finish().messages) == 2
    assert old.post(a, request("ping", None, 5)).status == 202
    assert old.messages(2)[1]["id"] == 5
    b.do("touch", uri="note:///here")
    assert wait_messages(heard[1], 2)[1]["params"]["uri"] == "note:///here"
    for _ in range(30):
        expect_refused(session.post(request("ping")))
        expect_refused(at(other, b).initialize())
    redis.start()
    until(lambda: health(a) == health(b) == 200, "both being healthy")
    until(lambda: at(session, b).post(request("ping")).finish().status == 200, "the session in the other process")
    assert at(session, a).call("echo", text="again") == "again"
    assert ask(b, "refund", {"order": "F1"}, **asked)["result"]["content"][0]["text"] == "F1: True"
    until_heard(a, [heard[1], stream])
    b.close_connections()
    until(lambda: no_more(before, inside(b)), lambda: f"no more than {before}; there is {inside(b)}")


def until_heard(process: Process, streams: list[Exchange]) -> None:
    """Changes are told of again. The connections for that come back by themselves, so not the first may be heard."""

    def all_heard() -> bool:
        process.do("grow")
        for each in streams:
            each.read(0.05)
        return all("notifications/tools/list_changed" in str(each.messages) for each in streams)

    until(all_heard, "a change in every stream")


def no_more(before: dict[str, int], now: dict[str, int]) -> bool:
    return all(now[name] <= before[name] for name in before)


def test_redis_that_hangs_holds_nobody_for_long(on_redis: Site, redis: RedisServer) -> None:
    a, b = on_redis.start()
    session = opened(a)
    redis.send_signal(signal.SIGSTOP)
    try:
        waiting = needing_the_store(session)
        assert a.do("echo", text="modern") == "modern"
        for exchange in waiting:
            expect_refused(exchange)
        assert health(a) == 503
    finally:
        redis.send_signal(signal.SIGCONT)
    until(lambda: health(a) == health(b) == 200)
    assert at(session, b).call("echo", text="again") == "again"


def test_a_call_that_another_process_runs_is_not_given_up_because_redis_hung(
    on_redis: Site, redis: RedisServer
) -> None:
    """Heartbeats expire meanwhile, and one process says again that it is there before the other does."""
    [a] = on_redis.start(1, odd={"beat": (1.5, 2.0)})
    [b] = on_redis.start(1, odd={"beat": (0.2, 2.0)})
    session = opened(a)
    walk = progress(session, "walk", 1, name="walk", to=2)
    walk.wait(lambda it: it.events)
    redis.send_signal(signal.SIGSTOP)
    try:
        expect_refused(at(session, b).post(request("ping")))  # which takes as long as the heartbeats last
    finally:
        redis.send_signal(signal.SIGCONT)
    until(lambda: at(session, b).post(request("ping")).finish().status == 200)
    with closing(Redis.from_url(redis.url)) as client:
        client.delete(*client.keys("longshore:value:worker:*"))
    resumed = session.get(walk.events[0].id)
    resumed.begin()
    a.do("allow", name="walk", steps=3)
    assert [each.get("id") for each in resumed.finish().messages] == [None, None, 1]


def test_what_was_said_while_the_connection_was_lost_is_found_out(on_redis: Site, redis: RedisServer) -> None:
    """One process stands still; its subscription is cut, and what the other says meanwhile never reaches it."""
    a, b = on_redis.start(odd={"beat": (0.2, 10.0)})
    session, doomed = opened(a), opened(a)
    stream, ending = (each.get().wait(lambda it: it.events) for each in (session, doomed))
    heard = listen(a)
    os.kill(a.pid, signal.SIGSTOP)
    try:
        with closing(Redis.from_url(redis.url)) as client:
            client.client_kill_filter(_type="pubsub")
            until(lambda: client.client_list(_type="pubsub"), "the other's being back")
        assert at(doomed, b).delete().finish().status == 204
        assert at(session, b).ask("resources/subscribe", {"uri": "note://all"})["result"] == {}
        b.do("grow")
    finally:
        os.kill(a.pid, signal.SIGCONT)
    assert wait(ending, lambda it: it.ended).ended
    for each in (stream, heard):
        wait(each, lambda it: "notifications/tools/list_changed" in str(it.messages))
    a.do("touch", uri="note://all/1")
    wait(stream, lambda it: "note://all/1" in str(it.messages), "the notice of a subscription that was missed")


def test_redis_that_lost_everything(on_redis: Site, redis: RedisServer) -> None:
    """Sessions are gone, and clients are told so. A call that runs is still answered where it is connected."""
    a, b = on_redis.start(odd={"beat": (0.2, 1.0)})
    session = opened(a)
    stream = session.get().wait(lambda it: it.events)
    walks = [progress(session, "walk", n, name=f"walk {n}", to=3) for n in (1, 2)]
    for n, walk in enumerate(walks, 1):
        a.do("allow", name=f"walk {n}", steps=2)
        wait_messages(walk, 2)
    resumed = at(session, b).get(walks[1].events[1].id)
    wait_messages(resumed, 1)
    redis.stop()
    for path in redis.folder.glob("appendonlydir/*"):
        path.unlink()
    redis.start()
    a.do("allow", name="walk 1", steps=2)
    assert wait(walks[0], lambda it: it.ended).messages
    assert wait(resumed, lambda it: it.ended or it.lost)
    until(lambda: session.post(request("ping")).finish().status == 404, "the session's being gone")
    assert at(session, a).post(request("ping")).finish().status == 404
    assert wait(stream, lambda it: it.ended).ended
    again = opened(b)
    assert at(again, a).call("echo", text="new") == "new"


def test_a_process_that_starts_before_its_store(nursery: Nursery, tmp_path: Path) -> None:
    """It is not healthy, and serves as soon as the store is there, each message once."""
    server = RedisServer(tmp_path)
    server.start()
    server.stop()
    with site(nursery, server.url, tmp_path, quiet=False) as made:
        a, b = made.start(odd={"lifespan": False})
        assert [health(process) for process in (a, b)] == [503, 503]
        server.start()
        try:
            until(lambda: health(a) == health(b) == 200)
            heard = [listen(process) for process in (a, b)]
            a.do("touch", uri="note:///1")
            for each in heard:
                wait_messages(each, 2)
            a.do("touch", uri="note:///2")
            for each in heard:
                told = wait_messages(each, 3)
                assert [message["params"].get("uri") for message in told] == [None, "note:///1", "note:///2"]
        finally:
            made.end()
            server.stop()


def test_a_locked_file_holds_nobody_for_ever(on_sqlite: Site, tmp_path: Path) -> None:
    a, b = on_sqlite.start(odd={"patience": 0.5})
    session = opened(a)
    stream = session.get().wait(lambda it: it.events)
    before = inside(a)
    with closing(sqlite3.connect(tmp_path / "sessions.db", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        waiting = [session.initialize(), session.post(request("logging/setLevel", {"level": "error"}))]
        waiting += [at(session, b).initialize(), session.delete()]
        assert a.do("echo", text="modern") == "modern"
        for exchange in waiting:
            expect_refused(exchange)
        assert health(a) == 503
        other.execute("COMMIT")
    until(lambda: health(a) == health(b) == 200)
    assert at(session, b).call("echo", text="again") == "again"
    b.do("grow")
    wait_messages(stream, 1)
    until(lambda: no_more(before, inside(a)), lambda: f"no more than {before}; there is {inside(a)}")


def test_a_deleted_file_is_made_anew(on_sqlite: Site, tmp_path: Path) -> None:
    a, b = on_sqlite.start()
    session = opened(a)
    before = inside(a)
    for path in tmp_path.glob("sessions.db*"):
        if path.is_file():
            path.unlink()

    def usable() -> bool:
        made = Session(a)  # type: ignore[arg-type]
        begun = made.initialize().finish()
        begun.close()
        if begun.status != 200:
            assert begun.status == 503
            return False
        made.id = begun.headers["mcp-session-id"]
        found = at(made, b).post(request("ping")).finish()
        found.close()
        return found.status == 200

    until(usable, "a session that both processes know")
    assert at(session, a).post(request("ping")).finish().status in (200, 404)
    until(lambda: health(a) == health(b) == 200)
    a.close_connections()
    del before["links"]  # there is another session now
    until(lambda: no_more(before, inside(a)), lambda: f"no more than {before}; there is {inside(a)}")


def test_nothing_is_left_behind(fresh: Site) -> None:
    """Sessions, streams, calls that are cut off, moved and cancelled: the same tasks and files as before."""
    a, b = fresh.start()
    round_trip(a, b)
    until(lambda: settled(a, b))
    before = [inside(process) for process in (a, b)]
    for _ in range(10):
        round_trip(a, b)
    until(lambda: settled(a, b))
    until(
        lambda: all(map(no_more, before, [inside(process) for process in (a, b)])),
        lambda: f"no more than {before}; there is {[inside(process) for process in (a, b)]}",
    )


def round_trip(a: Process, b: Process) -> None:
    session = opened(a, {"elicitation": {}})
    name = f"walk {session.id}"
    stream = session.get().wait(lambda it: it.events)
    walk = progress(session, "walk", 1, name=name, to=3)
    asked = session.post(call("refund", {"order": "x"}, 2))
    walk.wait(lambda it: it.events)
    wait_messages(asked, 1)
    walk.drop()
    resumed = at(session, b).get(walk.events[0].id).begin()
    moved = session.get(stream.events[0].id).begin()
    a.do("allow", name=name)
    wait_messages(resumed, 1)
    for exchange in (resumed, moved, stream, asked):
        exchange.drop()
    listening = listen(b)
    listening.drop()
    old = Old(a)
    old.initialize(b)
    old.stream.drop()
    assert session.delete().finish().status == 204
    a.close_connections()
    b.close_connections()


def settled(*processes: Process) -> bool:
    return all(inside(process)["calls"] == 0 for process in processes)
