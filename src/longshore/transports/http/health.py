"""Whether this process can do its work, for whoever decides to send it some.

The answer comes of a real request to the engine and a real round trip of the store. It is found out once a second at
most, because the path is open to everybody and a round trip may be a write.
"""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import TYPE_CHECKING, Final, final

from longshore.protocol.envelope import PREFIX
from longshore.protocol.revisions import MODERN
from longshore.server.link import Link
from longshore.transports.http.answers import JSON_TYPE, Send, reply
from longshore.wire.codec import ErrorFrame, encode

if TYPE_CHECKING:
    from longshore.transports.http.app import HttpApp
    from longshore.transports.http.request import Request

FRESH_SECONDS: Final = 1.0
"""For so long an answer stands: asking often must not cost more than asking."""
CHECK_SECONDS: Final = 2.0
"""A store that takes longer is as good as none."""

_PROBE: Final = encode(
    {
        "jsonrpc": "2.0",
        "id": "health",
        "method": "server/discover",
        "params": {"_meta": {f"{PREFIX}protocolVersion": MODERN[-1], f"{PREFIX}clientCapabilities": {}}},
    }
)


@final
class Health:
    """The health of one process. What fails is named; why it does is for the log, since anybody may ask."""

    def __init__(self, app: HttpApp) -> None:
        self._app = app
        self._look: asyncio.Task[list[str]] | None = None
        self._looked_at = 0.0
        self._known: list[str] = []

    async def serve(self, request: Request, send: Send) -> None:
        """GET /health."""
        headers = (JSON_TYPE, (b"cache-control", b"no-store"), *request.extra)
        if self._app.stopping:
            await reply(send, 503, encode({"status": "stopping"}), headers)
            return
        failed = await self._latest()
        if failed:
            await reply(send, 503, encode({"status": "failing", "failed": failed}), headers)
        else:
            await reply(send, 200, encode({"status": "ok"}), headers)

    async def _latest(self) -> list[str]:
        """What fails, by the last look if it is fresh. Who asks while one is taken shares it."""
        look, now = self._look, monotonic()
        if look is None or look.cancelled() or (look.done() and now - self._looked_at >= FRESH_SECONDS):
            self._looked_at = now
            self._look = look = asyncio.get_running_loop().create_task(self._look_now())
        return await asyncio.shield(look)

    async def _look_now(self) -> list[str]:
        problems: dict[str, Exception | None] = {}
        if not self._engine_answers():
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
        frame = self._app.engine.handle(_PROBE, Link())
        return frame is not None and not isinstance(frame, ErrorFrame)

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
