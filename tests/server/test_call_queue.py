"""Places and waiting room, shared by callers: what one of them leaves to the others, and whose turn it is."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Coroutine
from typing import Annotated, Any

from longshore import Ask, Limits, Server

from .test_engine import Peer, text_of
from .test_engine import run as run_bounded


def run(body: Callable[[Busy], Coroutine[Any, Any, None]], **limits: Any) -> None:
    """Run a test, and end the calls that it leaves behind."""

    async def to_the_end() -> None:
        busy = Busy(**limits)
        try:
            await body(busy)
        finally:
            busy.executor.stop_all("the test has ended")
            await asyncio.gather(*busy.executor.cancelled_tasks, return_exceptions=True)

    run_bounded(to_the_end())


class Busy:
    """A server whose one tool holds its place until it is let go, and says whose turn it was."""

    def __init__(self, **limits: Any) -> None:
        self.app = Server("t", limits=Limits(**limits))
        self.began: list[str] = []
        self.places = asyncio.Semaphore(0)

        @self.app.tool(timeout=False)
        async def hold(who: str, pad: str = "") -> str:
            self.began.append(who)
            await self.places.acquire()
            return who

    @property
    def executor(self) -> Any:
        return self.app.engine.executor

    def caller(self, owner: str, session: str = "") -> Caller:
        return Caller(self, owner, session)

    async def free(self, count: int) -> list[str]:
        """End so many calls. Who began in their places?"""
        before = len(self.began)
        for _ in range(count):
            self.places.release()
            for _ in range(10):
                await asyncio.sleep(0)
        return self.began[before:]


class Caller(Peer):
    """One session of an owner."""

    def __init__(self, busy: Busy, owner: str, session: str) -> None:
        super().__init__(busy.app)
        self.link.caller = owner, session
        self.name = owner + session
        self.numbers = itertools.count()

    async def hold(self, count: int, pad: str = "") -> list[str]:
        """Call so often. What was refused, and why?"""
        for _ in range(count):
            self.call(f"{self.name} {next(self.numbers)}", "hold", who=self.name, pad=pad)
        return [text_of(answer) for answer in await self.turn()]


def test_one_session_leaves_a_quarter_of_the_places_and_the_next_caller_starts_at_once() -> None:
    async def body(busy: Busy) -> None:
        await busy.caller("ann").hold(20)
        assert (busy.executor.running, busy.executor.queued) == (6, 14)
        await busy.caller("bob").hold(1)
        assert busy.began[-1] == "bob" and busy.executor.running == 7

    run(body, running=8)


def test_the_sessions_of_one_owner_leave_an_eighth_of_the_places() -> None:
    async def body(busy: Busy) -> None:
        for session in ("1", "2", "3", "4"):
            await busy.caller("ann", session).hold(64)
        assert busy.executor.running == 56
        await busy.caller("bob").hold(1)
        assert busy.began[-1] == "bob"

    run(body, running=64)


def test_a_peer_that_is_alone_takes_every_place() -> None:
    async def body(busy: Busy) -> None:
        alone = busy.caller("")
        alone.link.caller = None
        await alone.hold(9)
        assert (busy.executor.running, busy.executor.queued) == (8, 1)

    run(body, running=8)


def test_free_places_go_round_by_owner_and_then_by_session() -> None:
    async def body(busy: Busy) -> None:
        first = busy.caller("ann", "1")
        await first.hold(5)
        await busy.caller("ann", "2").hold(2)
        await busy.caller("bob").hold(2)
        assert await busy.free(8) == ["ann1", "bob", "ann2", "bob", "ann1", "ann2", "ann1", "ann1"]
        assert busy.executor.queued == 0

    run(body, running=1)


def test_in_a_full_queue_the_newest_call_of_the_caller_with_the_most_is_refused() -> None:
    async def body(busy: Busy) -> None:
        ann, bob = busy.caller("ann"), busy.caller("bob")
        [text] = await ann.hold(6)
        assert "busy" in text
        assert await bob.hold(1) == []
        refused = [answer["id"] for answer in await ann.turn()]
        assert refused == ["ann 4"]
        assert len(await bob.hold(2)) == 1  # the first makes it two for each; then nobody has more than bob
        assert sorted(await busy.free(4)) == ["ann", "ann", "bob", "bob"]

    run(body, running=1, parked=4)


def test_in_a_full_waiting_room_sessions_of_one_owner_give_way_to_each_other() -> None:
    async def body(busy: Busy) -> None:
        first, second = busy.caller("ann", "1"), busy.caller("ann", "2")
        await first.hold(5)
        assert await second.hold(1) == []
        assert [answer["id"] for answer in await first.turn()] == ["ann1 4"]

    run(body, running=1, parked=4)


def test_large_frames_give_way_to_small_ones() -> None:
    async def body(busy: Busy) -> None:
        ann, bob = busy.caller("ann"), busy.caller("bob")
        await ann.hold(3, "x" * 30_000)
        assert busy.executor.queued == 2
        assert await bob.hold(1, "x" * 20_000) == []
        assert [answer["id"] for answer in await ann.turn()] == ["ann 2"]
        await busy.free(3)
        assert busy.executor._held == 0

    run(body, running=1, held_bytes=100_000)


def test_calls_that_wait_for_their_client_give_way_too() -> None:
    async def body(busy: Busy) -> None:
        app = busy.app

        @app.tool
        async def refund(ok: Annotated[bool, Ask("Really?")]) -> str:
            return str(ok)

        ann, bob = asking(app, "ann"), asking(app, "bob")
        for id in range(4):
            ann.call(id, "refund")
        questions = [message for message in await ann.turn() if "method" in message]
        assert len(questions) == 4 and len(app.engine.executor.live) == 4
        bob.call("b", "refund")
        assert [message["method"] for message in await bob.turn()] == ["elicitation/create"]
        [refused] = [message for message in await ann.turn() if message.get("id") == 3]
        assert "busy" in text_of(refused)

    run(body, running=2, parked=2)


def test_calls_that_wait_for_their_client_do_not_give_way_to_one_that_needs_waiting_room() -> None:
    """Refusing them would free none of it."""

    async def body(busy: Busy) -> None:
        app = busy.app

        @app.tool
        async def refund(ok: Annotated[bool, Ask("Really?")]) -> str:
            return str(ok)

        ann, bob, carl = asking(app, "ann"), busy.caller("bob"), busy.caller("carl")
        for id in range(8):
            ann.call(id, "refund")
        assert [message["method"] for message in await ann.turn()] == ["elicitation/create"] * 8
        assert await carl.hold(1, "x" * 30_000) == []
        assert await carl.hold(1, "x" * 60_000) == []
        assert (busy.executor.running, busy.executor.queued) == (1, 1)
        assert await bob.hold(1, "x" * 20_000) == []
        assert [answer["id"] for answer in await carl.turn()] == ["carl 1"]
        assert await ann.turn() == []

    run(body, running=1, parked=10, held_bytes=100_000)


def asking(app: Server, owner: str) -> Peer:
    """A session that can be asked."""
    peer = Peer(app, modern=True)
    peer.modern = False
    peer.send(
        "initialize",
        "i",
        protocolVersion="2025-11-25",
        capabilities={"elicitation": {}},
        clientInfo={"name": "t", "version": "0"},
    )
    peer.link._frames.get_nowait()
    peer.send("notifications/initialized")
    peer.link.caller = owner, ""
    return peer


def test_callers_that_have_no_call_are_forgotten() -> None:
    async def body(busy: Busy) -> None:
        turns = busy.executor._queue
        for number in range(3000):
            turns.caller((f"owner {number}", ""))
        assert len(turns._callers) <= 1024 and len(turns._owners) <= 1024

    run(body, running=4)
