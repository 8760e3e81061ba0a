"""Reading streams of events, over as many connections as it takes.

A stream of the handshake era outlives its connection: the server may close it to be visited again later, or it may
break. Either way it goes on after the last event that had an id.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, final

from longshore.client.http.endpoint import STREAM, answered, media_type, read_refusal, refuse
from longshore.client.http.events import Events
from longshore.client.http.exchange import Broken, Streaming, Unreachable
from longshore.client.http.place import Place
from longshore.errors import ClientError, ConnectionLost, HttpRefused
from longshore.wire.messages import Id

VISITS: Final = 6
"""Visits in a row that lead nowhere, before a stream is given up: about a quarter of a minute."""
_END_SECONDS: Final = 1.0
"""After the answer, for the stream to end. Then its connection can be used again."""
_TRANSIENT: Final = frozenset((409, 429, 500, 502, 503, 504))


@final
class Reader:
    """Reads for one channel. `get` asks for a stream, from after an event on or from now on.

    `hear` gets messages, and the request whose stream they came on, None if it is nobody's.
    """

    def __init__(
        self, get: Callable[[str], Awaitable[Streaming]], hear: Callable[[bytes, Id | None], None], most: int
    ) -> None:
        self._get = get
        self._hear = hear
        self._most = most

    async def follow(self, streaming: Streaming, id: Id, *, resumable: bool) -> None:
        """Read until the answer to a request has come. Raises ConnectionLost, TooLong."""
        place = Place()
        while not await self._read(streaming, place, id):
            if not resumable or not place.last_id:
                raise ConnectionLost("the stream ended before the answer came")
            await asyncio.sleep(place.delay())
            try:
                streaming = await self._visit(place)
            except (HttpRefused, Unreachable, Broken) as problem:
                what = f"the stream broke before the answer came, and could not be taken up again ({problem.what})"
                raise ConnectionLost(what) from problem

    async def listen(self, begun: Callable[[], None]) -> None:
        """Read what belongs to no request, for ever. Returns if the server has no such stream.

        Calls `begun` when there is one. Raises Unreachable, Broken if the server is gone.
        """
        place = Place()
        while True:
            try:
                streaming = await self._visit(place)
            except HttpRefused:
                return
            begun()
            await self._read(streaming, place, None)
            await asyncio.sleep(place.delay())

    async def _visit(self, place: Place) -> Streaming:
        """The stream from where it was left. Raises HttpRefused, Unreachable, Broken."""
        for left in reversed(range(VISITS)):
            try:
                streaming = await self._get(place.last_id)
                if streaming.status == 200 and media_type(streaming) == STREAM:
                    return streaming
                refuse(await read_refusal(streaming))
            except (HttpRefused, Unreachable, Broken) as problem:
                if not left or (isinstance(problem, HttpRefused) and problem.status not in _TRANSIENT):
                    raise
            place.failures += 1
            await asyncio.sleep(place.delay())
        raise AssertionError("the last visit returns or raises")

    async def _read(self, streaming: Streaming, place: Place, id: Id | None) -> bool:
        """Read one connection to its end. True: the answer to the request came."""
        events = Events(self._most)
        heard = done = False
        try:
            async for chunk in streaming:
                for event in events.feed(chunk):
                    heard = True
                    if event.kind == "message":
                        done = done or (id is not None and id in answered(event.data))
                        self._hear(event.data, id)
                if done:
                    await _let_end(streaming)
                    return True
        except Broken:
            pass
        finally:
            place.keep(events)
            await streaming.aclose()
        place.failures = 0 if heard else place.failures + 1
        return False


async def _let_end(streaming: Streaming) -> None:
    """Nothing more is to come. Whoever does not end the stream loses the connection."""
    try:
        async with asyncio.timeout(_END_SECONDS):
            async for _ in streaming:
                pass
    except (TimeoutError, Broken):
        pass


def gone(problem: ClientError) -> ConnectionLost:
    """What a stream that can't be had any more says of its server."""
    return ConnectionLost(f"it can't be reached any more ({problem.what})")
