"""What was acknowledged is there after a restart, however the processes ended."""

from __future__ import annotations

from typing import Any

import pytest

from posting import Session, call, request
from serving import Exchange

from .processes import Site, at, opened, progress, wait_messages


def test_a_session_goes_on_after_both_processes_were_stopped(fresh: Site) -> None:
    a, b = fresh.start()
    session = opened(a, {"elicitation": {}})
    assert at(session, b).ask("logging/setLevel", {"level": "warning"})["result"] == {}
    assert session.ask("resources/subscribe", {"uri": "note://kept"})["result"] == {}
    walk = progress(session, "walk", 1, name="walk", to=2)
    walk.wait(lambda it: it.events)
    b.do("allow", name="walk", steps=3)
    finished = walk.finish().events
    stream = session.get().wait(lambda it: it.events)
    b.do("touch", uri="note://kept")
    heard = wait_messages(stream, 1) and stream.events[-1].id
    for process in (a, b):
        process.begin_to_stop()
    assert stream.finish().ended
    for process in (a, b):
        process.wait_ended()
    c, d = fresh.start()
    assert at(session, c).call("echo", text="goes on") == "goes on"
    assert session.post(call("note_down", {"level": "info", "text": "x"})).finish().type == "application/json"
    for process in (d, c):
        again = at(session, process).get(finished[0].id).finish()
        assert [event.data for event in again.events] == [event.data for event in finished[1:]]
    stream = session.get(heard).begin()
    d.do("touch", uri="note://kept")
    assert wait_messages(stream, 1)[0]["params"]["uri"] == "note://kept"
    asked = session.post(call("refund", {"order": "A1"}, 9))
    [question] = wait_messages(asked, 1)
    answer = {"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": {"ok": True}}}
    assert at(session, d).post(answer).finish().status == 202
    assert asked.finish().messages[-1]["result"]["content"][0]["text"] == "A1: True"


def initialize(site: Site, n: int) -> Any:
    [process] = site.start(1)
    session = Session(process)  # type: ignore[arg-type]
    session.id = session.initialize().finish().headers["mcp-session-id"]
    process.kill()
    return session, lambda: session.ask("ping")["result"] == {}


def set_level(site: Site, n: int) -> Any:
    [process] = site.start(1)
    session = opened(process)
    level = ("debug", "error")[n % 2]
    assert session.ask("logging/setLevel", {"level": level})["result"] == {}
    process.kill()

    def kept() -> bool:
        said = session.post(call("note_down", {"level": "debug", "text": "x"})).finish()
        return len(said.messages) == (2 if level == "debug" else 1)

    return session, kept


def subscribe(site: Site, n: int) -> Any:
    [process] = site.start(1)
    session = opened(process)
    assert session.ask("resources/subscribe", {"uri": f"note://{n}"})["result"] == {}
    process.kill()

    def kept() -> bool:
        stream = session.get().begin()
        session.call("touch", uri=f"note://{n}")
        return bool(wait_messages(stream, 1)[0]["params"]["uri"] == f"note://{n}")

    return session, kept


def receive(site: Site, n: int) -> Any:
    [process] = site.start(1)
    session = opened(process)
    walk = progress(session, "walk", 1, name="walk", to=9)
    process.do("allow", name="walk", steps=1 + n % 4)
    wait_messages(walk, 1 + n % 4)
    process.kill()
    seen = walk.events

    def kept() -> bool:
        again: Exchange = session.get(seen[0].id)
        again.wait(lambda it: len(it.events) >= len(seen) - 1, "the events that the client had")
        return [event.data for event in again.events[: len(seen) - 1]] == [event.data for event in seen[1:]]

    return session, kept


@pytest.mark.parametrize("change", [initialize, set_level, subscribe, receive])
def test_what_was_acknowledged_survives_a_kill(fresh: Site, change: Any) -> None:
    """Five times each, twenty in all: the process is killed as soon as its answer is there."""
    kept = [change(fresh, n) for n in range(5)]
    [process] = fresh.start(1)
    for session, is_kept in kept:
        at(session, process)
        assert is_kept()


def test_a_session_outlives_a_process_that_is_replaced_while_it_is_used(fresh: Site) -> None:
    """As in a rolling restart: one after the other, and the session is served throughout."""
    a, b = fresh.start()
    session = opened(a)
    for n in range(4):
        at(session, b)
        assert session.ask("resources/subscribe", {"uri": f"note://{n}"})["result"] == {}
        a.begin_to_stop()
        assert session.call("echo", text=str(n)) == str(n)
        a.wait_ended()
        [c] = fresh.start(1)
        a, b = b, c
    stream = at(session, b).get().begin()
    for n in range(4):
        b.do("touch", uri=f"note://{n}")
    wait_messages(stream, 4)
    assert session.post(request("ping")).finish().status == 200
