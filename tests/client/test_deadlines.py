"""Deadlines stop while a user answers a question or logs in."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pytest

from client.scripted import script
from longshore import Ask, ConnectError, Server
from longshore.client import Channel, Client
from longshore.client.channel import ChannelEvents, FrameInfo
from longshore.client.session import CAP
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
            return (await client.call_tool("refund")).text

    for era in ("legacy", "modern"):
        assert asyncio.run(work(era)) == "True"


ASKS = """
for m in calls():
    ask("q", "elicitation/create", message="?", requestedSchema={})
    sys.stdin.readline()
"""


async def test_the_time_that_a_person_takes_does_not_count_afterwards_either(tmp_path: Path) -> None:
    """They are done before the time is up; the server still has the whole of what was left."""

    async def think(_: Any) -> bool:
        await asyncio.sleep(0.7)
        return True

    command = script(tmp_path, ASKS + "    time.sleep(0.6); reply(m, DONE)")
    async with Client(command, era="legacy", on_elicit=think) as client:
        assert (await client.call_tool("x", timeout=1.0)).text == "done"


async def test_time_for_an_answer_does_not_count_against_the_progress_cap(tmp_path: Path) -> None:
    timeout = 2 * TIMEOUT  # a busy machine may bring progress late

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
        assert (await client.call_tool("x", timeout=timeout, on_progress=lambda *_: None)).text == "done"


class Login(Channel):
    """A person logs in for `login` seconds after each request; the answer takes `work` seconds more."""

    label = "login"

    def __init__(self, login: float, work: float, events: ChannelEvents) -> None:
        super().__init__(events)
        self._login, self._work = login, work
        self._tasks = Tasks()

    def send(self, frame: bytes, info: FrameInfo) -> None:
        if info.id is not None:
            self._tasks.start(self._answer(info))

    async def _answer(self, info: FrameInfo) -> None:
        self.events.on_login(True)
        await asyncio.sleep(self._login)
        self.events.on_login(False)
        await asyncio.sleep(self._work)
        result = GREETING if info.method == "initialize" else {"content": []}
        self.events.on_frame(msgspec.json.encode({"jsonrpc": "2.0", "id": info.id, "result": result}))

    async def close(self) -> None:
        await self._tasks.end()


GREETING = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "login", "version": "1"}}


async def test_the_time_of_a_login_does_not_count() -> None:
    """Neither while it lasts, nor afterwards: for connecting and for a call."""
    async with Client(lambda events: Login(0.9, 0.4, events), era="legacy", timeout=1.0) as client:
        await client.call_tool("x")
    slow = Client(lambda events: Login(0.1, 60, events), era="legacy", timeout=0.3)
    with pytest.raises(ConnectError, match=r"within 0\.3 s"):
        await slow.open()
