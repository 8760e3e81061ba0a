"""A connection to a browser in the Chrome DevTools Protocol: calls, answers and events, over any transport."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol, final

from msgspec import DecodeError, Struct, field
from msgspec.json import Decoder, Encoder

TOO_LONG: Final = "Longshore.messageTooLong"
"""The method of the event that replaces one that was too long."""
CALL_SECONDS: Final = 30.0
"""A browser answers in milliseconds. A browser that takes longer hangs."""

Params = dict[str, Any]
EventHandler = Callable[[str, Params], None]
"""Gets an event's method and parameters. It runs on the event loop and must not block."""


class Transport(Protocol):
    """Carries whole messages. Calls `CdpConnection.receive` for each, and `CdpConnection.end` once when it closes."""

    def write(self, message: bytes) -> None: ...
    def close(self) -> None: ...


class CdpError(Exception):
    """The browser refused a call."""

    def __init__(self, method: str, message: str, code: int = 0) -> None:
        super().__init__(f"{method}: {message}")
        self.method, self.message, self.code = method, message, code


class ConnectionClosed(Exception):
    """The browser closed the connection: it ended, crashed or was killed."""


class _Refusal(Struct, frozen=True):
    message: str = ""
    code: int = 0


class _Message(Struct, frozen=True):
    """An answer, which has an id, or an event, which has a method."""

    id: int | None = None
    method: str = ""
    params: Params = {}
    session: str | None = field(name="sessionId", default=None)
    result: Params = {}
    error: _Refusal | None = None


_decoder: Final = Decoder(_Message)
_encoder: Final = Encoder()


@final
class CdpConnection:
    """Sends calls and passes events to handlers. `session` is a target's id in flat mode, None the browser itself."""

    def __init__(self) -> None:
        self._transport: Transport | None = None
        self._last_id = 0
        self._waiting: dict[int, tuple[str, asyncio.Future[Params]]] = {}
        self._handlers: dict[str | None, list[EventHandler]] = {}
        self._closed = asyncio.Event()

    def open(self, transport: Transport) -> None:
        """Use this transport from now on."""
        self._transport = transport

    @property
    def is_closed(self) -> bool:
        return self._closed.is_set()

    async def wait_closed(self) -> None:
        await self._closed.wait()

    def send(
        self, method: str, params: Mapping[str, Any] | None = None, session: str | None = None
    ) -> asyncio.Future[Params]:
        """Send a call without waiting, so that several go out in one write. Await the future for the answer."""
        future: asyncio.Future[Params] = asyncio.get_running_loop().create_future()
        if self._transport is None or self.is_closed:
            _fail(future, ConnectionClosed("the browser has ended"))
            return future
        self._last_id += 1
        message: dict[str, Any] = {"id": self._last_id, "method": method, "params": params or {}}
        if session is not None:
            message["sessionId"] = session
        self._waiting[self._last_id] = method, future
        self._transport.write(_encoder.encode(message))
        return future

    async def call(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        session: str | None = None,
        seconds: float = CALL_SECONDS,
    ) -> Params:
        """Call and await the answer. Raises CdpError, ConnectionClosed, or TimeoutError."""
        future = self.send(method, params, session)
        try:
            async with asyncio.timeout(seconds):
                return await future
        except (TimeoutError, asyncio.CancelledError):
            self._forget(future)
            raise

    def listen(self, session: str | None, handler: EventHandler) -> Callable[[], None]:
        """Pass the events of a session to this handler. Returns the function that stops it."""
        handlers = self._handlers.setdefault(session, [])
        handlers.append(handler)

        def stop() -> None:
            if handler in handlers:
                handlers.remove(handler)
            if not handlers:
                self._handlers.pop(session, None)

        return stop

    def close(self) -> None:
        """Close the transport. Calls that wait for an answer raise ConnectionClosed."""
        if self._transport is not None:
            self._transport.close()
        self.end()

    # -- called by the transport

    def receive(self, data: bytes | bytearray | memoryview | str) -> None:
        """One message from the browser."""
        try:
            message = _decoder.decode(data)
        except (DecodeError, UnicodeDecodeError, RecursionError):
            message = _decode_leniently(data)
        if message.id is None:
            self._hand_out(message)
            return
        self._answer(message.id, message)

    def receive_ends(self, start: bytes | bytearray, end: bytes | bytearray) -> None:
        """The beginning and end of a message that was too long. An event is replaced by one that reports it."""
        if answered := re.match(rb'\{"id":(\d+)', start):
            number = int(answered[1])
            self._answer(number, _Message(number, error=_Refusal("its answer is too long")))
        elif sent := re.search(rb'"sessionId":"([^"\\]+)"\}$', end):
            self._hand_out(_Message(method=TOO_LONG, session=sent[1].decode()))

    def _answer(self, number: int, message: _Message) -> None:
        method, future = self._waiting.pop(number, ("", None))
        if future is None or future.done():
            return
        if message.error is None:
            future.set_result(message.result)
        else:
            _fail(future, CdpError(method, message.error.message, message.error.code))

    def _hand_out(self, event: _Message) -> None:
        for handler in tuple(self._handlers.get(event.session, ())):
            try:
                handler(event.method, event.params)
            except Exception as problem:  # an error in one handler must not lose the messages after this one
                context = {"message": f"a handler of {event.method} failed", "exception": problem}
                asyncio.get_running_loop().call_exception_handler(context)

    def _forget(self, future: asyncio.Future[Params]) -> None:
        """Drop a call whose result is not awaited any more, and its answer."""
        for number, (_, waiting) in self._waiting.items():
            if waiting is future:
                del self._waiting[number]
                return

    def end(self) -> None:
        """The transport has closed."""
        if self.is_closed:
            return
        self._closed.set()
        waiting, self._waiting = self._waiting, {}
        for _, future in waiting.values():
            if not future.done():
                _fail(future, ConnectionClosed("the browser has ended"))


def _fail(future: asyncio.Future[Params], problem: Exception) -> None:
    future.set_exception(problem)
    future.exception()  # if it is not awaited any more, asyncio would log it


def _decode_leniently(data: bytes | bytearray | memoryview | str) -> _Message:
    """Decode a message with unpaired surrogates, which the text of pages may contain, as U+FFFD."""
    import json

    text = data if isinstance(data, str) else bytes(data).decode("utf-8", "replace")
    try:
        plain = json.dumps(json.loads(text), ensure_ascii=False)
        return _decoder.decode(re.sub("[\ud800-\udfff]", "\ufffd", plain))
    except (ValueError, RecursionError):
        found = re.match(r'\{"id":(\d+)', text)
        return _Message(id=int(found[1]) if found else None, error=_Refusal("its answer can't be decoded"))
