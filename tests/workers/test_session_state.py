"""What calls keep in their session is there in every process, and ends with the session."""

from __future__ import annotations

import asyncio

from longshore.stores import open_store
from longshore.transports.http.sessions import session_key, state_key
from posting import call as calling

from .processes import Process, Site, at, opened

Pair = tuple[Process, Process]


def test_what_one_process_keeps_the_other_finds(pair: Pair) -> None:
    a, b = pair
    session = opened(a)
    assert session.call("kept", key="color") == "nothing"
    assert session.call("keep", key="color", value="blue") == str(a.pid)
    assert at(session, b).call("kept", key="color") == "blue"
    assert session.call("keep", key="size", value="7") == str(b.pid)
    at(session, a)
    assert (session.call("kept", key="color"), session.call("kept", key="size")) == ("blue", "7")


def test_sessions_do_not_see_each_others_values(pair: Pair) -> None:
    a, b = pair
    one, other = opened(a), opened(b)
    one.call("keep", key="color", value="blue")
    assert other.call("kept", key="color") == "nothing"
    assert at(one, b).call("kept", key="color") == "blue"


def test_changes_of_several_keys_at_once_are_all_kept(pair: Pair) -> None:
    a, b = pair
    session = opened(a)
    at(session, b).ask("ping")
    sent = [at(session, pair[n % 2]).post(calling("keep", {"key": f"k{n}", "value": str(n)}, n)) for n in range(12)]
    for each in sent:
        assert not each.finish().messages[-1]["result"].get("isError")
    at(session, a)
    assert [session.call("kept", key=f"k{n}") for n in range(12)] == [str(n) for n in range(12)]


def test_it_ends_with_the_session(fresh: Site) -> None:
    [process] = fresh.start(1)
    session = opened(process)
    session.call("keep", key="color", value="blue")
    key = state_key(session.id)

    async def stored() -> tuple[bytes | None, bytes | None]:
        store = open_store(fresh.store)
        try:
            return await store.get(session_key(session.id)), await store.get(key)
        finally:
            await store.close()

    assert all(asyncio.run(stored()))
    assert session.delete().finish().status == 204
    assert asyncio.run(stored()) == (None, None)
