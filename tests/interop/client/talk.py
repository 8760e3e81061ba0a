"""A client of ours whose handlers can be looked into, connected one way or another."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from longshore.client import Change, Client, ElicitQuestion, LogMessage, Result
from waiting import PATIENCE

from .peers import command, leaving_nothing, serving

ROOT = "file:///somewhere"


class Talk:
    """What was told and asked, and how the next question is answered."""

    def __init__(self, way: str, target: Any, era: str = "auto", roots: Any = (ROOT,), **options: Any) -> None:
        self.way, self.era = way, era
        self.logs: list[LogMessage] = []
        self.changes: list[Change] = []
        self.questions: list[ElicitQuestion] = []
        self.answer: Any = {"name": "Ann"}
        self.called: set[str] = set()
        self.client = Client(
            target,
            era=era,
            timeout=PATIENCE,
            on_elicit=self._elicit,
            on_sample=self._sample,
            roots=roots,
            on_log=self.logs.append,
            on_change=self.changes.append,
            **options,
        )

    def _elicit(self, question: ElicitQuestion) -> Any:
        self.questions.append(question)
        return self.answer

    async def _sample(self, params: dict[str, Any]) -> str:
        await asyncio.sleep(0)
        return f"{params['messages'][0]['content']['text']} Something."

    async def call(self, name: str, /, **arguments: Any) -> Result:
        """Call a tool, and remember that it was."""
        self.called.add(name)
        return await self.client.call_tool(name, arguments)

    async def until(self, what: str, check: Callable[[], Any]) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                while not check():
                    await asyncio.sleep(0.005)
        except TimeoutError:
            raise AssertionError(f"not within {PATIENCE:g} s: {what}") from None

    async def called_all(self) -> None:
        assert {tool.name for tool in await self.client.list_tools()} == self.called


Chapter = Callable[[Talk], Awaitable[None]]


def converse(way: str, era: str, *chapters: Chapter, **options: Any) -> None:
    """Hold a whole conversation with a server of others. `way` is the peer and the transport; nothing is left of it."""
    peer, transport = way.split("-")
    if transport == "stdio":
        hold(Talk(way, command(peer, "stdio"), era, **options), *chapters)
        return
    with serving(peer, transport) as server:
        hold(Talk(way, server.url, era, **options), *chapters)


def hold(talk: Talk, *chapters: Chapter) -> None:
    async def connect() -> None:
        async with asyncio.timeout(2 * PATIENCE), talk.client:
            for chapter in chapters:
                await chapter(talk)
            # The one is old and said to be; the official server of the handshake era tells without saying that it does.
            known = ("HTTP+SSE", "they may go unheard")
            odd = [text for text in talk.client.problems if not any(each in text for each in known)]
            assert not odd, odd

    with leaving_nothing():
        asyncio.run(connect())
