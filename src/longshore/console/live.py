"""What the console shows as it happens: records, calls in flight, sessions, frames. Nothing of it runs without a page.

Each page has one stream. What is new is asked for when the page has taken what came before, so a slow page gets larger
gaps, which are counted, and holds up nobody.
"""

from __future__ import annotations

from typing import Any, Final, final

from longshore.console.live_state import LiveState
from longshore.console.rows import to_row
from longshore.console.usage import Usage
from longshore.console.wire_log import WireLog
from longshore.telemetry.feeder import Feeder
from longshore.telemetry.ring import Ring
from longshore.transports.http.event_stream import EventStream
from longshore.transports.http.gate import Denied
from longshore.transports.http.parts import PartHost
from longshore.transports.http.responses import HeaderPairs, Receive, Send
from longshore.wire.codec import encode

MOST_STREAMS: Final = 16
"""Open pages. Each costs the server what it sends."""
STEP_SECONDS: Final = 0.2
"""Between two looks at what is new."""
STEPS_PER_STATE: Final = 3
"""A state is sent with every third look, if it has changed: less than twice a second."""
FIRST_ROWS: Final = 500
"""Records from before the page was opened."""
MOST_ROWS: Final = 250
"""Records of one look. A person reads fewer; the counts of `usage` have all of them."""
_STOP_SECONDS: Final = 0.2


@final
class Live:
    """The streams of one server's pages."""

    def __init__(self, host: PartHost) -> None:
        self._host = host
        self.usage = Usage()
        self.state = LiveState(host, self.usage)
        self._streams: set[EventStream] = set()
        self._ring: Ring | None = None
        self._feeder: Feeder | None = None
        recorder = host.engine.recorder
        if host.config.telemetry.records:
            self._ring = ring = recorder.open_ring(host.config.telemetry.ring)
            self._feeder = Feeder("console", recorder, ring, lambda: self.usage)
            self._feeder.start()

    @property
    def pages(self) -> int:
        """How many streams are open."""
        return len(self._streams)

    def cancel(self, key: str) -> bool:
        """End a call that a state has shown."""
        return self.state.cancel(key)

    def close(self) -> None:
        """End all streams and stop counting."""
        for stream in list(self._streams):
            stream.end()
        if self._feeder is not None:
            self._feeder.stop(_STOP_SECONDS)
            self._feeder = None

    async def follow(self, receive: Receive, send: Send, headers: HeaderPairs, *, records: bool, wire: bool) -> None:
        """Send what happens until the page is gone."""
        if len(self._streams) >= MOST_STREAMS:
            raise Denied(503, f"{MOST_STREAMS} pages are open; close one", ((b"retry-after", b"5"),))
        stream = EventStream(receive, send, headers, self._host.engine.limits.keep_alive_seconds)
        log = WireLog(self._host.engine.tap) if wire else None
        self._streams.add(stream)
        if log is not None:
            log.open()
        try:
            async with stream:
                await self._send_all(stream, _Rows(self._ring, self._host) if records and self._ring else None, log)
        finally:
            self._streams.discard(stream)
            if log is not None:
                log.close()

    async def _send_all(self, stream: EventStream, rows: _Rows | None, log: WireLog | None) -> None:
        before: Any = None
        step = 0
        while not stream.closed.is_set():
            if rows is not None and (found := rows.read()) is not None:
                await stream.send("records", encode(found))
            if step % STEPS_PER_STATE == 0:
                state = self.state.take()
                if state != before:
                    before = state
                    await stream.send("state", encode(state))
            if log is not None and (frames := await log.read()) is not None:
                await stream.send("wire", encode(frames))
            step += 1
            await stream.pause(STEP_SECONDS)


@final
class _Rows:
    """Reads the ring for one page."""

    def __init__(self, ring: Ring, host: PartHost) -> None:
        self._ring, self._recorder = ring, host.engine.recorder
        self._cursor = max(0, ring.last - FIRST_ROWS)
        self._is_first = True

    def read(self) -> dict[str, Any] | None:
        """The latest rows that were not read, and how many were left out. None: there are none."""
        batch = self._ring.since(self._cursor)
        is_first, self._is_first, self._cursor = self._is_first, False, batch.cursor
        if not batch.events:
            return None
        events, offset = batch.events[-(FIRST_ROWS if is_first else MOST_ROWS) :], self._recorder.offset
        # What was before the page's time is not missing.
        dropped = 0 if is_first else batch.dropped + len(batch.events) - len(events)
        return {"dropped": dropped, "records": [to_row(event, offset) for event in events]}
