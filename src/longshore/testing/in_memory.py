"""Connections for the length of one test.

A server object outlives the tests that use it, but the event loop of a test does not. So toolsets that a test opens are
closed with its last connection, on its loop; the next test opens them again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final, final
from weakref import WeakKeyDictionary

from msgspec import Struct

from longshore.app import Server
from longshore.client.channel import ChannelEvents
from longshore.client.client import Client
from longshore.client.handlers import ElicitQuestion
from longshore.client.memory import MemoryChannel
from longshore.client.targets import Target
from longshore.registry.function import check_callback
from longshore.registry.toolset import ToolsetHandle


@asynccontextmanager
async def connect(target: Any, **options: Any) -> AsyncGenerator[Client]:
    """`async with connect(app) as client: …`. `options` are those of `Client`."""
    async with Client(in_memory(target), **options) as client:
        yield client


class _InMemory(Target, frozen=True):
    """A server of this process. `SyncClient` reads `engine` to see whether waiting for it would block."""

    engine: Any = None


def in_memory(target: Any) -> Any:
    """A `Server` as a target that closes its toolsets with its last connection; any other target unchanged."""
    if not isinstance(target, Server):
        return target
    return _InMemory(target.name, (lambda events: _TestChannel(target, events),), engine=target.engine)


class _LoopUse(Struct):
    """The connections to a server on one loop, and the toolsets that were open before them."""

    loop: asyncio.AbstractEventLoop
    were_open: set[ToolsetHandle]
    connections: int = 0


_USES: Final[WeakKeyDictionary[Server, _LoopUse]] = WeakKeyDictionary()


@final
class _TestChannel(MemoryChannel):
    def __init__(self, server: Server, events: ChannelEvents) -> None:
        super().__init__(server, events)
        self._server, self._executor = server, server.engine.executor
        self._use: _LoopUse | None = None

    async def open(self) -> None:
        were_open = {holder for holder in self._server.catalog.toolsets.values() if holder.ready}
        await super().open()
        loop = asyncio.get_running_loop()
        if self._executor.loop is not loop:
            return  # another connection owns the server's loop and closes its toolsets
        use = _USES.get(self._server)
        if use is None or use.loop is not loop or not use.connections:
            use = _USES[self._server] = _LoopUse(loop, were_open)
        use.connections += 1
        self._use = use

    async def close(self) -> None:
        await super().close()
        use, self._use = self._use, None
        if use is None:
            return
        use.connections -= 1
        if not use.connections:
            for holder in list(self._server.catalog.toolsets.values()):
                if holder not in use.were_open and not holder.removed:
                    await holder.close()
                    holder.ready = holder.stateless


@final
class Answers:
    """Answers to a server's questions, one for each, in order; for `on_elicit=`.

    Each is what `on_elicit` may return: True (yes, with the defaults of the form; a single box is ticked), a dict or a
    single value (what is filled in), False (no), None (neither); or a function of the question that returns one of
    these.
    """

    def __init__(self, *answers: Any) -> None:
        self.asked: list[ElicitQuestion] = []
        """Every question that came."""
        self._left: deque[Any] = deque()
        self._unanswered: list[str] = []
        self.add(*answers)

    def add(self, *answers: Any) -> None:
        """Append answers."""
        for answer in answers:
            if callable(answer):
                check_callback(answer, "answer", "question")
        self._left.extend(answers)

    def __call__(self, question: ElicitQuestion) -> Any:
        self.asked.append(question)
        if not self._left:
            self._unanswered.append(question.message)
            raise AssertionError(f"the server asks {question.message!r}, and there is no answer left; add one")
        answer = self._left.popleft()
        return answer(question) if callable(answer) else answer

    def verify(self) -> None:
        """Raise AssertionError if a question had no answer, which a server may hide from its caller, or vice versa."""
        if self._unanswered:
            asked = ", ".join(repr(message) for message in self._unanswered)
            raise AssertionError(
                f"the server asked {asked}, and there was no answer left; give one by mcp_answers.add(…)"
            )
        if self._left:
            left = ", ".join(repr(answer)[:100] for answer in self._left)
            raise AssertionError(f"the server never asked for what is left of the answers: {left}")
