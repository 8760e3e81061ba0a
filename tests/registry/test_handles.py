"""Open things belong to the principal that opened them, and are closed when they are idle or too many."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longshore import ToolError
from longshore.registry.handles import HandleTable

IDLE = 100.0


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Closed(list[Any]):
    """What was closed, in order."""

    async def close(self, value: Any) -> None:
        await asyncio.sleep(0)
        self.append(value)


def table(quota: int = 3, close_tool: str = "close_terminal") -> tuple[HandleTable[str], Clock, Closed]:
    clock, closed = Clock(), Closed()
    made = HandleTable[str](
        "terminal", closed.close, quota=quota, idle_seconds=IDLE, close_tool=close_tool, clock=clock
    )
    return made, clock, closed


async def test_ids_are_short_and_counted_for_each_principal() -> None:
    terminals, _, _ = table()
    assert [terminals.add("ann", "a"), terminals.add("ann", "b"), terminals.add("bob", "c")] == ["t1", "t2", "t1"]
    assert terminals.get("ann", "t1") == "a" and terminals.get("bob", "t1") == "c"
    assert terminals.all("ann") == {"t1": "a", "t2": "b"} and terminals.all("cid") == {}


async def test_an_id_is_not_given_again_after_its_thing_was_closed() -> None:
    terminals, clock, closed = table()
    first = terminals.add("ann", "a")
    await terminals.remove("ann", first)
    clock.now += IDLE - 1
    assert terminals.add("ann", "b") == "t2" and closed == ["a"]


async def test_the_thing_of_another_principal_is_refused_as_an_unknown_one_is() -> None:
    terminals, _, closed = table()
    terminals.add("ann", "a")
    terminals.add("ann", "b")
    terminals.add("bob", "c")
    for ask in (terminals.get, lambda owner, id: terminals.use(owner, id).__enter__()):
        with pytest.raises(ToolError, match=r"^no terminal 't2'; yours are t1$"):
            ask("bob", "t2")
        with pytest.raises(ToolError, match=r"^no terminal 't9'; yours are t1, t2$"):
            ask("ann", "t9")
    with pytest.raises(ToolError, match=r"^no terminal 't1'; you have no open terminal$"):
        await terminals.remove("cid", "t1")
    with pytest.raises(ToolError, match=rf"^no terminal '{'x' * 40}'; yours"):
        terminals.get("ann", "x" * 1000)
    assert closed == []


@pytest.mark.parametrize(("opened", "refused"), [(2, False), (3, True)])
async def test_the_quota_holds_for_each_principal(opened: int, refused: bool) -> None:
    terminals, _, closed = table(quota=3)
    for number in range(opened):
        terminals.add("ann", str(number))
    if refused:
        with pytest.raises(ToolError) as caught:
            terminals.add("ann", "extra")
        assert str(caught.value) == (
            "you have 3 terminals open, the most that you may have: t1, t2, t3; close one with close_terminal first "
            "(one that is not used for 1.66667 min is closed)"
        )
        with pytest.raises(ToolError):
            terminals.check_quota("ann")
    else:
        terminals.check_quota("ann")
        terminals.add("ann", "extra")
    terminals.add("bob", "b")
    await terminals.expire()
    assert closed == (["extra"] if refused else [])


async def test_a_place_is_free_again_when_a_thing_was_removed_or_became_idle() -> None:
    terminals, clock, closed = table(quota=1)
    await terminals.remove("ann", terminals.add("ann", "a"))
    terminals.add("ann", "b")
    clock.now += IDLE
    assert terminals.add("ann", "c") == "t3"
    await terminals.expire()
    assert closed == ["a", "b"] and terminals.all("ann") == {"t3": "c"}


@pytest.mark.parametrize(("seconds", "is_open"), [(IDLE - 1, True), (IDLE, False), (IDLE + 1, False)])
async def test_what_is_not_used_for_the_idle_time_is_closed(seconds: float, is_open: bool) -> None:
    terminals, clock, closed = table()
    terminals.add("ann", "a")
    clock.now += seconds
    await terminals.expire()
    assert (terminals.all("ann") == {"t1": "a"}) is is_open
    assert closed == ([] if is_open else ["a"])


@pytest.mark.parametrize(("seconds", "is_open"), [(IDLE - 1, True), (IDLE, False), (IDLE + 1, False)])
async def test_an_idle_thing_can_not_be_had_although_nothing_has_closed_it_yet(seconds: float, is_open: bool) -> None:
    terminals, clock, _ = table()
    terminals.add("ann", "a")
    clock.now += seconds
    if is_open:
        assert terminals.get("ann", "t1") == "a"
    else:
        with pytest.raises(ToolError):
            terminals.get("ann", "t1")


async def test_every_use_begins_the_idle_time_again() -> None:
    terminals, clock, closed = table()
    terminals.add("ann", "a")
    for _ in range(3):
        clock.now += IDLE - 1
        terminals.get("ann", "t1")
    with terminals.use("ann", "t1"):
        clock.now += 10 * IDLE
        await terminals.expire()
        assert terminals.get("ann", "t1") == "a"
        clock.now += 10 * IDLE
    clock.now += IDLE - 1
    await terminals.expire()
    assert closed == []
    clock.now += 1
    await terminals.expire()
    assert closed == ["a"]


async def test_a_thing_that_two_calls_use_is_idle_when_the_last_has_ended() -> None:
    terminals, clock, closed = table()
    terminals.add("ann", "a")
    with terminals.use("ann", "t1"):
        with terminals.use("ann", "t1"):
            pass
        clock.now += IDLE
        await terminals.expire()
        assert closed == []
    clock.now += IDLE
    await terminals.expire()
    assert closed == ["a"]


async def test_idle_things_are_closed_though_nobody_asks() -> None:
    ended = asyncio.Event()
    terminals = HandleTable[asyncio.Event]("terminal", lambda event: event.set(), idle_seconds=0.001)
    terminals.add("ann", ended)
    await asyncio.wait_for(ended.wait(), 60)
    assert terminals.all("ann") == {}


async def test_a_close_that_fails_is_reported_to_the_loop_and_fails_no_other_call() -> None:
    told: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))

    def close(value: str) -> None:
        raise OSError(value)

    clock = Clock()
    terminals = HandleTable[str]("terminal", close, idle_seconds=IDLE, clock=clock)
    terminals.add("ann", "a")
    clock.now += IDLE
    await terminals.expire()
    assert [(each["message"], str(each["exception"])) for each in told] == [("a terminal was not closed in order", "a")]
    with pytest.raises(OSError, match="b"):
        await terminals.remove("ann", terminals.add("ann", "b"))


async def test_a_cancelled_removal_closes_the_thing_all_the_same() -> None:
    begun, let, closed = asyncio.Event(), asyncio.Event(), list[str]()

    async def close(value: str) -> None:
        begun.set()
        await let.wait()
        closed.append(value)

    terminals = HandleTable[str]("terminal", close)
    removal = asyncio.create_task(terminals.remove("ann", terminals.add("ann", "a")))
    await begun.wait()
    removal.cancel()
    let.set()
    await terminals.expire()
    assert closed == ["a"] and terminals.all("ann") == {}


async def test_close_all_closes_everything_once_and_accepts_nothing_more() -> None:
    terminals, clock, closed = table()
    for owner, value in (("ann", "a"), ("ann", "b"), ("bob", "c")):
        terminals.add(owner, value)
    clock.now += IDLE
    with pytest.raises(ToolError):
        terminals.get("bob", "t1")  # begins to close it
    await terminals.close_all()
    assert sorted(closed) == ["a", "b", "c"]
    with pytest.raises(ToolError, match="no terminal can be opened: the server is stopping"):
        terminals.add("ann", "d")
    await terminals.close_all()
    assert sorted(closed) == ["a", "b", "c", "d"]


async def test_close_all_calls_every_close_and_raises_the_first_error() -> None:
    closed: list[str] = []

    def close(value: str) -> None:
        closed.append(value)
        if value == "a":
            raise OSError(value)

    terminals = HandleTable[str]("terminal", close)
    terminals.add("ann", "a")
    terminals.add("bob", "b")
    with pytest.raises(OSError, match="a"):
        await terminals.close_all()
    assert closed == ["a", "b"]


STEPS = st.lists(
    st.tuples(st.sampled_from(["add", "get", "remove", "wait"]), st.sampled_from(["ann", "bob"]), st.integers(1, 5)),
    max_size=40,
)


@given(STEPS)
def test_whatever_is_done_nobody_has_more_than_the_quota_and_nothing_is_lost(steps: list[Any]) -> None:
    async def run() -> None:
        terminals, clock, closed = table(quota=2)
        added: list[str] = []
        for step, owner, number in steps:
            try:
                match step:
                    case "add":
                        added.append(f"{owner} {len(added)}")
                        terminals.add(owner, added[-1])
                    case "get":
                        assert terminals.get(owner, f"t{number}").startswith(owner)
                    case "remove":
                        await terminals.remove(owner, f"t{number}")
                    case _:
                        clock.now += number * IDLE / 4
            except ToolError:
                pass
            assert all(len(terminals.all(each)) <= 2 for each in ("ann", "bob"))
        await terminals.expire()
        left = [*terminals.all("ann").values(), *terminals.all("bob").values()]
        assert sorted(closed + left) == sorted(added)
        await terminals.close_all()
        assert sorted(closed) == sorted(added)

    asyncio.run(run())
