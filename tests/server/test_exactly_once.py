"""A real server under calls that end in every order, walked by hypothesis in both eras at once.

Exactly one answer for each request, none after a cancel, and nothing held at rest.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from counts import count
from longshore import Limits, Server
from memory_link import Memory

SECONDS = 60.0
ENVELOPE = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
IDS = st.sampled_from([7, "7", 1, 2, 3, "a", ""])
Id = int | str


class Gates:
    """What the handlers wait for, opened by the test: for tasks and for threads."""

    def __init__(self) -> None:
        self.outcomes: dict[str, bool] = {}
        self.events: dict[str, asyncio.Event] = {}
        self.thread_events: dict[str, threading.Event] = {}

    def add(self, key: str) -> None:
        self.events[key] = asyncio.Event()
        self.thread_events[key] = threading.Event()

    def open(self, key: str, *, well: bool) -> None:
        self.outcomes.setdefault(key, well)
        self.events[key].set()
        self.thread_events[key].set()

    def result(self, key: str) -> str:
        if not self.outcomes[key]:
            raise RuntimeError(f"secret of {key}")
        return key


def make_server(gates: Gates) -> Server:
    app = Server("t", limits=Limits(running=3, parked=2))

    @app.tool
    async def task(key: str) -> str:
        await gates.events[key].wait()
        return gates.result(key)

    @app.tool
    async def stubborn(key: str) -> str:
        """Takes a turn or two to notice that it was cancelled, and then returns as if nothing were."""
        try:
            await gates.events[key].wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0)
            return "too late"
        return gates.result(key)

    @app.tool
    def thread(key: str) -> str:
        assert gates.thread_events[key].wait(SECONDS)
        return gates.result(key)

    @app.tool(run="inline")
    def inline(key: str) -> str:
        return key

    return app


class ExactlyOnce(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.gates = Gates()
        self.app = make_server(self.gates)
        self.executor = self.app.engine.executor
        self.keys = 0
        self.tools: dict[str, str] = {}
        self.open: dict[tuple[type, Id], str] = {}  # what is in flight, with the key of its gate
        self.cancelled: set[str] = set()
        self.expected: Counter[tuple[type, Id]] = Counter()  # how many answers each id must have got in the end
        self.answers: Counter[tuple[type, Id]] = Counter()
        self.peer: Memory = self.loop.run_until_complete(self._connect())

    async def _connect(self) -> Memory:
        peer = Memory(self.app.engine)
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}}
        peer.put(json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}).encode())
        await asyncio.wait_for(peer.get(), SECONDS)
        return peer

    # -- what a client may do

    @rule(id=IDS, tool=st.sampled_from(["task", "stubborn", "thread"]), modern=st.booleans())
    def call(self, id: Id, tool: str, modern: bool) -> None:
        self.keys += 1
        key = f"k{self.keys}"
        self.gates.add(key)
        self.tools[key] = tool
        free = (type(id), id) not in self.open
        room = self.executor.running < 3 or self.executor.queued < 2
        self.expected[type(id), id] += 1
        [first] = self._send(
            "tools/call", id, {"name": tool, "arguments": {"key": key}}, modern, expect=not (free and room)
        )
        if not free:
            assert first["error"]["code"] == -32600
        elif not room:
            assert first["result"]["isError"] and "busy" in first["result"]["content"][0]["text"]
        else:
            self.open[type(id), id] = key
        self._turn()

    @rule(id=IDS, method=st.sampled_from(["inline", "tools/list", "no/such"]), modern=st.booleans())
    def ask_what_is_answered_at_once(self, id: Id, method: str, modern: bool) -> None:
        taken = (type(id), id) in self.open
        params = {"name": "inline", "arguments": {"key": "x"}} if method == "inline" else {}
        self.expected[type(id), id] += 1
        [answer] = self._send("tools/call" if method == "inline" else method, id, params, modern, expect=True)
        if method == "no/such":
            assert answer["error"]["code"] in (-32601, -32600)
        elif taken:
            assert answer["error"]["code"] == -32600
        else:
            assert "result" in answer

    @precondition(lambda self: self.open)
    @rule(data=st.data(), well=st.booleans())
    def finish(self, data: st.DataObject, well: bool) -> None:
        key = data.draw(st.sampled_from(list(self.open.values())))
        self.gates.open(key, well=well)
        self._turn()

    @precondition(lambda self: self.open)
    @rule(data=st.data(), race=st.booleans())
    def cancel(self, data: st.DataObject, race: bool) -> None:
        """Sometimes in the same turn in which the handler finishes."""
        where = data.draw(st.sampled_from(list(self.open)))
        if race and self.tools[self.open[where]] != "thread":
            self.gates.open(self.open[where], well=True)
        self._put({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": where[1]}})
        if where in self.open:  # else the answer was on its way before the cancel came
            self.cancelled.add(self.open.pop(where))
            self.expected[where] -= 1
        self._turn()

    @rule(id=st.sampled_from([99, "99", None, True, 1.5, {}]))
    def cancel_what_is_not_there(self, id: Any) -> None:
        self._put({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})

    @rule(id=IDS, member=st.sampled_from(["result", "error"]))
    def answer_what_nobody_asked(self, id: Id, member: str) -> None:
        self._put({"jsonrpc": "2.0", "id": id, member: {"code": 1, "message": "x"}})

    # -- how it is done

    def _send(self, method: str, id: Id, params: dict[str, Any], modern: bool, *, expect: bool) -> list[Any]:
        if modern:
            params = {**params, "_meta": ENVELOPE}
        answers = self._put({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        return answers if expect else [None]

    def _put(self, message: dict[str, Any]) -> list[Any]:
        """Send, and give what is answered before anything else can happen."""

        async def put() -> list[Any]:
            self.peer.put(json.dumps(message).encode())
            return [await self._take() for _ in range(self.peer.pending())]

        return self.loop.run_until_complete(put())

    async def _take(self) -> Any:
        message = json.loads(await asyncio.wait_for(self.peer.get(), SECONDS))
        where = type(message["id"]), message["id"]
        self.answers[where] += 1
        text = json.dumps(message)
        assert "secret" not in text and "too late" not in text
        key = self.open.get(where)
        if key is not None and "result" in message and "busy" not in text:
            assert key in self.gates.outcomes, "answered before its handler ended"
            assert bool(message["result"].get("isError")) is not self.gates.outcomes[key]
            del self.open[where]
        return message

    def _turn(self, until: Callable[[], bool] = lambda: True) -> None:
        """Turns of the loop until nothing moves but by us, and something holds: every walk can be repeated."""

        async def turn() -> None:
            deadline = self.loop.time() + SECONDS
            turns = 0
            while turns < 5 or not self._resting() or not until():
                await asyncio.sleep(0 if turns < 5 else 0.0005)
                turns += 1
                while self.peer.pending():
                    await self._take()
                assert self.loop.time() < deadline, "it does not come to rest"

        self.loop.run_until_complete(turn())

    def _resting(self) -> bool:
        """The keys are our own: a thread that has ended drops its call's arguments, at a time of its own."""
        running = [self.open[type(call.id), call.id] for call in self.executor.live if call.running]
        moving = any(key in self.gates.outcomes for key in running)
        return not moving and not (self.executor.queued and self.executor.running < 3)

    @invariant()
    def never_more_answers_than_requests(self) -> None:
        if hasattr(self, "answers"):
            assert all(self.answers[where] <= self.expected[where] for where in self.answers)
            assert self.executor.running <= 3

    def teardown(self) -> None:
        if not hasattr(self, "peer"):
            return
        try:
            for key in [*self.open.values(), *self.cancelled]:
                self.gates.open(key, well=True)
            self._turn(
                until=lambda: not self.open and not self.executor.abandoned and not self.executor.cancelled_tasks
            )
            assert +self.answers == +self.expected
            assert self.executor.running == 0 and self.executor.queued == 0
            assert not self.executor.live and not self.peer.session.rows
            assert self.peer.pending() == 0
        finally:
            for key in self.gates.events:
                self.gates.open(key, well=True)
            self.loop.close()


TestExactlyOnce = ExactlyOnce.TestCase
TestExactlyOnce.settings = settings(max_examples=count(150), stateful_step_count=30, deadline=None)


def test_cancels_that_race_with_ending_threads_lose_and_repeat_no_answer() -> None:
    """The race that a repeatable walk can't hold: the thread ends in the very moment in which its call is cancelled."""

    async def storm() -> None:
        app = Server("t")
        go = threading.Event()

        @app.tool
        def wait() -> str:
            assert go.wait(SECONDS)
            return "x"

        peer = Memory(app.engine)
        for round in range(40):
            go.clear()
            for id in range(20):
                params = {"name": "wait", "_meta": ENVELOPE}
                peer.put(json.dumps({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).encode())
            await asyncio.sleep(0)
            go.set()
            cancelled, answered = set[int](), list[int]()
            for id in range(20):
                if id % 2:
                    while peer.pending():
                        answered.append(json.loads(await peer.get())["id"])
                    if id in peer.session.rows:
                        cancelled.add(id)
                    note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}
                    peer.put(json.dumps(note).encode())
                    await asyncio.sleep(0)
            while len(answered) + len(cancelled) < 20:
                answered.append(json.loads(await asyncio.wait_for(peer.get(), SECONDS))["id"])
            assert sorted([*answered, *cancelled]) == list(range(20)), f"round {round}"
            assert not peer.session.rows and not app.engine.executor.live and app.engine.executor.running == 0
        deadline = asyncio.get_running_loop().time() + SECONDS
        while app.engine.executor.abandoned:
            assert asyncio.get_running_loop().time() < deadline
            await asyncio.sleep(0.001)
        assert peer.pending() == 0

    asyncio.run(storm())
