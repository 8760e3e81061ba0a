"""Reading streams of events, over as many connections as it takes.

A stream of the handshake era outlives its connection: the server may close it to be visited again later, or it may
break. Either way it goes on after the last event that had an id.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, final

from longshore.client.http.endpoint import STREAM, answered, media_type, read_refusal, refuse
from longshore.client.http.events import Events, TooLong
from longshore.client.http.place import Place
from longshore.errors import ClientError, ConnectionLost, HttpRefused
from longshore.http_client.response import ExchangeBroken, HttpResponse, Unreachable
from longshore.wire.messages import Id

VISITS: Final = 6
"""Visits in a row that lead nowhere, before it is given up to wait for an answer, or to look for a server that can't be
reached: about a quarter of a minute. A server that is there is visited for as long as the session lasts."""
_END_SECONDS: Final = 1.0
"""After the answer, for the stream to end. Then its connection can be used again."""
_TRANSIENT: Final = frozenset((409, 429, 500, 502, 503, 504))
_NONE: Final = frozenset((404, 405))
"""How servers say that they have no stream for a session."""


@final
class Reader:
    """Reads for one channel. `get` asks for a stream, from after an event on or from now on.

    `hear` gets messages, and the request whose stream they came on, None if it is nobody's.
    """

    def __init__(
        self,
        get: Callable[[str], Awaitable[HttpResponse]],
        hear: Callable[[bytes, Id | None], None],
        note: Callable[[str], None],
        most: int,
    ) -> None:
        self._get = get
        self._hear = hear
        self._note = note
        self._most = most

    async def follow(self, streaming: HttpResponse, id: Id, *, resumable: bool) -> None:
        """Read until the answer to a request has come. Raises ConnectionLost, TooLong."""
        place = Place()
        while not await self._read(streaming, place, id):
            if not resumable or not place.last_id:
                raise ConnectionLost("the stream ended before the answer came")
            if place.failures >= VISITS:
                raise ConnectionLost(f"the stream ended before the answer came, {VISITS} times without a word")
            streaming = await self._take_up(place)

    async def _take_up(self, place: Place) -> HttpResponse:
        """The stream of a request again. Raises ConnectionLost."""
        while True:
            await asyncio.sleep(place.delay())
            try:
                return await self._visit(place)
            except (HttpRefused, Unreachable, ExchangeBroken) as problem:
                if _is_final(problem) or place.failures >= VISITS:
                    what = f"the stream broke before the answer came, and could not be taken up again ({problem.what})"
                    raise ConnectionLost(what) from problem

    async def listen(self, begun: Callable[[], None]) -> None:
        """Read what belongs to no request, for ever. Returns if the server has no such stream.

        Calls `begun` when there is one. Raises Unreachable if the server is gone.
        """
        place, missed = Place(), 0
        while True:
            try:
                streaming = await self._visit(place)
                missed = 0
                begun()
                await self._read(streaming, place, None)
            except Unreachable:
                missed += 1
                if missed >= VISITS:
                    raise
            except (HttpRefused, ExchangeBroken) as problem:
                missed = 0
                if self._is_end(place, problem):
                    return
            except TooLong as problem:
                place.failures += 1
                self._note(f"the stream of the session held {problem}, which was passed over")
            await asyncio.sleep(place.delay())

    def _is_end(self, place: Place, problem: ClientError) -> bool:
        """Whether the server will not give us the stream of the session, whenever we ask."""
        if isinstance(problem, HttpRefused) and _is_final(problem):
            if place.begun or problem.status not in _NONE:
                self._note(f"the stream of the session is at its end ({problem.what})")
            return True
        if place.failures == VISITS:
            self._note(f"the stream of the session can't be had at the moment ({problem.what})")
        return False

    async def _visit(self, place: Place) -> HttpResponse:
        """The stream from where it was left. Raises HttpRefused, Unreachable, ExchangeBroken."""
        try:
            streaming = await self._get(place.last_id)
            if streaming.status != 200 or media_type(streaming) != STREAM:
                refuse(await read_refusal(streaming))
        except (HttpRefused, Unreachable, ExchangeBroken):
            place.failures += 1
            raise
        place.begun = True
        return streaming

    async def _read(self, streaming: HttpResponse, place: Place, id: Id | None) -> bool:
        """Read one connection to its end. True: the answer to the request came."""
        events = Events(self._most)
        heard = done = False
        try:
            async for chunk in streaming:
                heard = True  # a comment or an id alone is a sign of life too
                for event in events.feed(chunk):
                    if event.kind == "message":
                        done = done or (id is not None and id in answered(event.data))
                        self._hear(event.data, id)
                if done:
                    await let_end(streaming)
                    return True
        except ExchangeBroken:
            pass
        finally:
            place.keep(events)
            streaming.close()
        place.failures = 0 if heard else place.failures + 1
        return False


async def let_end(streaming: HttpResponse) -> None:
    """Nothing more is to come. Whoever does not end the stream loses the connection."""
    try:
        async with asyncio.timeout(_END_SECONDS):
            async for _ in streaming:
                pass
    except (TimeoutError, ExchangeBroken):
        pass
    finally:
        streaming.close()


def _is_final(problem: ClientError) -> bool:
    """Whether another visit would lead nowhere either."""
    return isinstance(problem, HttpRefused) and problem.status not in _TRANSIENT


def gone(problem: ClientError) -> ConnectionLost:
    """What a stream that can't be had any more says of its server."""
    return ConnectionLost(f"it can't be reached any more ({problem.what})")
