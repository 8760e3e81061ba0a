"""Whether this process can do its work, for whoever decides to send it some.

The answer comes of a real call, as of a tool that nobody is offered, and a real round trip of the store. It is found
out once a second at most, because the path is open to everybody and a round trip may be a write.
"""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import TYPE_CHECKING, Final, final

from msgspec import Raw

from longshore.protocol.envelope import OWN_ENVELOPE
from longshore.protocol.peer import Peer
from longshore.protocol.revisions import MODERN, REVISIONS
from longshore.registry.function import tool_entry
from longshore.registry.tool import ToolOptions
from longshore.server.call import Call
from longshore.server.context import Context
from longshore.server.link import Link
from longshore.transports.http.answers import JSON_TYPE, Receive, Send, reply
from longshore.wire.codec import ErrorFrame, encode

if TYPE_CHECKING:
    from longshore.transports.http.app import HttpApp
    from longshore.transports.http.request import Request

FRESH_SECONDS: Final = 1.0
"""For so long an answer stands: asking often must not cost more than asking."""
CHECK_SECONDS: Final = 2.0
"""A store that takes longer is as good as none."""

CALL_SECONDS: Final = 5.0
"""A call that does nothing takes a millisecond. One that is not back by then is stuck."""

_DISCOVER: Final = b'{"jsonrpc":"2.0","id":0,"method":"server/discover","params":{"_meta":%s}}' % OWN_ENVELOPE
_ARGUMENTS: Final = Raw(b'{"word":"all is well"}')
_ANSWER: Final = b'"text":"all is well"'
_CALLER: Final = Peer(REVISIONS[MODERN[-1]], {}, {})


async def health(word: str) -> str:
    """Say it again. A tool like any other, but in no catalog."""
    return word


class _Probe(Link):
    """Where the answer to our own call goes."""

    __slots__ = ("answered",)

    def __init__(self) -> None:
        super().__init__()
        self.answered: asyncio.Future[bytes | None] = asyncio.get_running_loop().create_future()

    def answer(self, frame: bytes | None) -> None:
        if not self.answered.done():
            self.answered.set_result(frame)


@final
class Health:
    """The health of one process. What fails is named; why it does is for the log, since anybody may ask."""

    def __init__(self, app: HttpApp) -> None:
        self._app = app
        self._look: asyncio.Task[list[str]] | None = None
        self._looked_at = 0.0
        self._known: list[str] = []
        self._entry = tool_entry(health, ToolOptions(), Context)
        self._entry.limit = CALL_SECONDS

    async def serve(self, request: Request, _: Receive, send: Send) -> None:
        """GET /health."""
        headers = (JSON_TYPE, (b"cache-control", b"no-store"), *request.extra)
        if self._app.stopping:
            await reply(send, 503, encode({"status": "stopping"}), headers)
            return
        failed = await self._latest()
        if failed:
            await reply(send, 503, encode({"status": "failing", "failed": failed}), headers)
        elif self._full:
            await reply(send, 503, encode({"status": "busy"}), (*headers, (b"retry-after", b"1")))
        else:
            await reply(send, 200, encode({"status": "busy" if self._crowded else "ok"}), headers)

    async def _latest(self) -> list[str]:
        """What fails, by the last look if it is fresh. Who asks while one is taken shares it."""
        look, now = self._look, monotonic()
        if look is None or look.cancelled() or (look.done() and now - self._looked_at >= FRESH_SECONDS):
            self._looked_at = now
            self._look = look = asyncio.get_running_loop().create_task(self._look_now())
        return await asyncio.shield(look)

    async def _look_now(self) -> list[str]:
        problems: dict[str, Exception | None] = {}
        if not (self._engine_answers() and (self._crowded or await self._call_runs())):
            problems["engine"] = None
        if self._out_of_threads():
            problems["threads"] = None
        try:
            async with asyncio.timeout(CHECK_SECONDS):
                await self._app.store.check()
        except Exception as problem:
            problems["store"] = problem
        self._tell(problems)
        return list(problems)

    def _engine_answers(self) -> bool:
        frame = self._app.engine.handle(_DISCOVER, Link())
        return frame is not None and not isinstance(frame, ErrorFrame)

    async def _call_runs(self) -> bool:
        """Whether a call gets through: decoded, run as a task, rendered and answered."""
        executor, probe = self._app.engine.executor, _Probe()
        call = Call(executor, probe, probe.session, _CALLER, 0, "tools/call", self._entry, _ARGUMENTS, b"")
        probe.session.begin(call.id, call)
        counted = executor.calls
        executor.submit(call)
        executor.calls = counted  # it is nobody's call
        await asyncio.wait([probe.answered], timeout=CALL_SECONDS)
        self._app.engine.hang_up(probe)
        return probe.answered.done() and _ANSWER in (probe.answered.result() or b"")

    @property
    def _crowded(self) -> bool:
        """Whether a call would have to wait for a place. Ours would only make others wait, and tell nothing."""
        executor = self._app.engine.executor
        return executor.running >= executor.limits.running or executor.parked > 0

    @property
    def _full(self) -> bool:
        """Whether a call would be refused, because too many wait."""
        executor = self._app.engine.executor
        return self._crowded and executor.parked >= executor.limits.parked

    def _out_of_threads(self) -> bool:
        """Whether calls that were given up hold every thread, so that `def` tools are refused until a restart."""
        executor = self._app.engine.executor
        return 0 < executor.limits.abandoned <= executor.abandoned

    def _tell(self, problems: dict[str, Exception | None]) -> None:
        """Put into the log what has begun to fail; what still does was said before."""
        for name, problem in problems.items():
            if name not in self._known:
                self._app.engine.recorder.problem("error", f"not healthy: the {name} failed its check", problem)
        self._known = list(problems)
