"""Clocks: what a server owes us is not late while it waits for us."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pytest

from client.odd import run, script
from longshore import Ask, ConnectError, Server
from longshore.client import Channel, Client
from longshore.client.channel import About
from longshore.client.pending import CAP
from longshore.client.tasks import Tasks

TIMEOUT = 0.2


def test_a_person_may_take_longer_than_an_answer() -> None:
    app = Server("slow-people")

    @app.tool
    def refund(ok: Annotated[bool, Ask("Refund?")]) -> str:
        return str(ok)

    async def think(_: Any) -> dict[str, bool]:
        await asyncio.sleep(4 * TIMEOUT)
        return {"ok": True}

    async def work(era: str) -> str:
        async with asyncio.timeout(20), Client(app, era=era, timeout=TIMEOUT, on_elicit=think) as client:
            return (await client.call("refund")).text

    for era in ("legacy", "modern"):
        assert asyncio.run(work(era)) == "True"


ASKS = """
for m in calls():
    ask("q", "elicitation/create", message="?", requestedSchema={})
    sys.stdin.readline()
"""


def test_the_time_that_a_person_takes_does_not_count_afterwards_either(tmp_path: Path) -> None:
    """They are done before the time is up; the server still has the whole of what was left."""

    async def test() -> None:
        async def think(_: Any) -> bool:
            await asyncio.sleep(0.7)
            return True

        command = script(tmp_path, ASKS + "    time.sleep(0.6); reply(m, DONE)")
        async with Client(command, era="legacy", on_elicit=think) as client:
            assert (await client.call("x", timeout=1.0)).text == "done"

    run(test)


def test_nor_against_the_most_that_progress_can_add(tmp_path: Path) -> None:
    timeout = 2 * TIMEOUT  # a busy machine may bring progress late

    async def test() -> None:
        async def think(_: Any) -> bool:
            await asyncio.sleep(CAP * timeout + 0.3)
            return True

        code = """
    token = m["params"]["_meta"]["progressToken"]
    for n in range(6):
        time.sleep(0.05)
        notify("notifications/progress", progressToken=token, progress=n)
    reply(m, DONE)
"""
        async with Client(script(tmp_path, ASKS + code), era="legacy", on_elicit=think) as client:
            assert (await client.call("x", timeout=timeout, on_progress=lambda *_: None)).text == "done"

    run(test)


class Login(Channel):
    """Where a person logs in for a while, after each request; it is answered a while later."""

    logs_in = True

    def __init__(self, login: float, work: float) -> None:
        super().__init__()
        self.where = "login"
        self._login, self._work = login, work
        self._waiting = False
        self._tasks = Tasks()

    @property
    def waiting(self) -> bool:
        return self._waiting

    def send(self, frame: bytes, about: About) -> None:
        if about.id is not None:
            self._tasks.start(self._answer(about))

    async def _answer(self, about: About) -> None:
        self._waiting = True
        await asyncio.sleep(self._login)
        self._waiting = False
        await asyncio.sleep(self._work)
        result = GREETING if about.method == "initialize" else {"content": []}
        self.hear(msgspec.json.encode({"jsonrpc": "2.0", "id": about.id, "result": result}))

    async def close(self) -> None:
        await self._tasks.end()


GREETING = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "login", "version": "1"}}


def test_the_time_of_a_login_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither while it lasts, nor afterwards: for connecting and for a call."""
    monkeypatch.setattr("longshore.client.clock.LOOK_SECONDS", 0.02)
    monkeypatch.setattr("longshore.client.session.LOOK_SECONDS", 0.02)

    async def test() -> None:
        async with Client(lambda: Login(0.9, 0.4), era="legacy", timeout=1.0) as client:
            await client.call("x")
        slow = Client(lambda: Login(0.1, 60), era="legacy", timeout=0.3)
        with pytest.raises(ConnectError, match=r"within 0\.3 s"):
            await slow.open()

    run(test)
