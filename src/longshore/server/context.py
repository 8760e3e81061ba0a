"""What a handler sees of its call. Everything here works from `async def`, from threads and inline."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Generator
from math import inf
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar, final

import msgspec
from msgspec import UNSET, Raw, Struct, field

from longshore.errors import Cancelled
from longshore.protocol.envelope import log_level
from longshore.protocol.peer import Principal
from longshore.protocol.questions import Answers, Elicit, ElicitAnswer, ListRoots, Question, Root, Sample, SampleAnswer
from longshore.protocol.revisions import LOG_LEVELS, PROGRESS_MESSAGE
from longshore.schema.output import OutputMismatch
from longshore.schema.output import encode as encode_data
from longshore.wire.codec import encode
from longshore.wire.messages import Id, Notification

if TYPE_CHECKING:
    from longshore.server.call import Call

T = TypeVar("T")
_INFO = log_level("info")
TRACE_KEYS = ("traceparent", "tracestate", "baggage")


class _Params(Struct):
    meta: dict[str, Any] = field(name="_meta", default={})


class _Frame(Struct):
    params: _Params = field(default_factory=_Params)


_read_frame = msgspec.json.Decoder(_Frame).decode


def wanted_rank(call: Call) -> int | None:
    """From which level on a client wants log messages, as a place in the list of levels; None: it wants none."""
    if call.peer.revision.modern:
        return call.peer.log_level
    peer = call.session.peer
    return _INFO if peer is None or peer.log_level is None else peer.log_level


def _copy(said: dict[str, Any]) -> dict[str, Any]:
    """What a handler does with it must not reach the next request: one record stands for all of a client's."""
    copied: dict[str, Any] = msgspec.to_builtins(said)
    return copied


@final
class _Done:
    """Sent already. May be awaited, so that `ctx.progress(…)` and `await ctx.progress(…)` are both right."""

    def __await__(self) -> Generator[None, None, None]:
        return
        yield


DONE = _Done()


def _written(data: Any) -> Any:
    """Log data as JSON, or as text where it has none: what is said about the work must not fail the work."""
    try:
        return Raw(encode_data(data))
    except OutputMismatch:
        return repr(data)


@final
class Notes:
    """Progress and log messages of one call on their way out: for a slow reader the latest, never an endless queue."""

    __slots__ = ("_call", "_dropped", "_logs", "_posted", "_progress")

    def __init__(self, call: Call) -> None:
        self._call = call
        self._logs: deque[bytes] = deque()
        self._progress: bytes | None = None
        self._posted = False
        self._dropped = 0

    def put(self, frame: bytes, *, progress: bool) -> None:
        if progress:
            self._progress = frame
        else:
            if len(self._logs) >= self._call.executor.limits.notes:
                self._logs.popleft()
                self._dropped += 1
            self._logs.append(frame)
        executor = self._call.executor
        if self._posted:
            pass
        elif executor.on_main:
            self.release()
        elif executor.loop is not None:
            self._posted = True
            executor.loop.call_soon_threadsafe(self.release)

    def release(self) -> None:
        """Send what waits, if the peer takes it."""
        self._posted = False
        link, loop = self._call.link, self._call.executor.loop
        if self._call.ended:
            self._logs.clear()  # it was cancelled, or answered a moment ago: nothing may come after that
            self._progress = None
        while self._logs and not link.congested:
            link.send(self._next())
        if not link.congested:
            self.flush()
        elif loop is not None and not self._call.ended:
            self._posted = True
            loop.call_later(0.05, self.release)

    def flush(self) -> None:
        """Send what waits: the call is about to be answered, and nothing may come after that."""
        send = self._call.link.send
        while self._logs:
            send(self._next())
        if self._progress is not None:
            frame, self._progress = self._progress, None
            send(frame)

    def _next(self) -> bytes:
        if not self._dropped:
            return self._logs.popleft()
        text = f"{self._dropped} earlier log messages of this call were dropped: they came faster than they were read"
        self._dropped = 0
        return encode(Notification("notifications/message", {"level": "warning", "data": text}))


@final
class Context:
    """The call that a handler is running for. Taken by type: any parameter annotated `Context` receives it."""

    __slots__ = ("_call", "_last_progress", "state")

    def __init__(self, call: Call) -> None:
        self._call = call
        self._last_progress = -inf
        self.state: dict[str, Any] = {}
        """Whatever the parts of one call want to share. Gone when the call ends."""

    # -- what is known of the call

    @property
    def request_id(self) -> Id:
        return self._call.id

    @property
    def name(self) -> str:
        """The tool, prompt or resource that was asked for."""
        return self._call.entry.name

    @property
    def revision(self) -> str:
        """The protocol revision that this request speaks, e.g. "2025-11-25"."""
        return self._call.peer.revision.name

    @property
    def client(self) -> dict[str, Any]:
        """What the client calls itself: `name`, `version`, maybe `title`. A label, not an identity."""
        return _copy(self._call.peer.client)

    @property
    def capabilities(self) -> dict[str, Any]:
        """What the client declared that it can do."""
        return _copy(self._call.peer.capabilities)

    @property
    def principal(self) -> Principal:
        """Who this call acts for."""
        return self._call.link.principal

    @property
    def meta(self) -> dict[str, Any]:
        """The request's `_meta`, whole."""
        return _read_frame(self._call.frame).params.meta

    @property
    def trace(self) -> dict[str, str]:
        """The W3C trace context that came with the request, if any."""
        return {key: value for key, value in self.meta.items() if key in TRACE_KEYS}

    # -- time and cancellation

    @property
    def cancelled(self) -> bool:
        """Whether the call has ended without us: cancelled, or out of time. Cheap enough for an inner loop."""
        return self._call.ended

    def check(self) -> None:
        """Raise `Cancelled` if nobody waits for this call any more."""
        if self._call.ended:
            raise Cancelled("this call was cancelled or ran out of time")

    @property
    def remaining(self) -> float:
        """Seconds until the call is stopped; infinite if it has no limit."""
        return self._call.deadline - monotonic()

    @property
    def deadline(self) -> float:
        """When the call is stopped, on the clock of `time.monotonic()`."""
        return self._call.deadline

    # -- telling the client

    def progress(self, done: float, total: float | None = None, message: str | None = None) -> Awaitable[None]:
        """Say how far the work is. `done` must grow; what does not is left out, as is everything if nobody asked."""
        call = self._call
        if call.meta is UNSET or call.meta.progress_token is UNSET or call.ended or done <= self._last_progress:
            return DONE
        self._last_progress = done
        params: dict[str, Any] = {"progressToken": call.meta.progress_token, "progress": done}
        if total is not None:
            params["total"] = total
        if message is not None and call.peer.revision.index >= PROGRESS_MESSAGE:
            params["message"] = message
        self._note(Notification("notifications/progress", params), progress=True)
        return DONE

    def log(self, level: str, data: Any, *, logger: str | None = None) -> Awaitable[None]:
        """Send a log message to the client, if it wants messages of this level."""
        if level not in LOG_LEVELS:
            raise ValueError(f"no log level {level!r}; one of {', '.join(LOG_LEVELS)}")
        rank = log_level(level)
        wanted = wanted_rank(self._call)
        if wanted is None or rank < wanted or self._call.ended:
            return DONE
        if self._call.peer.revision.modern:
            self._call.executor.questions.deprecated("logging")
        params: dict[str, Any] = {"level": level, "data": data if data.__class__ is str else _written(data)}
        if logger is not None:
            params["logger"] = logger
        self._note(Notification("notifications/message", params), progress=False)
        return DONE

    def debug(self, data: Any) -> Awaitable[None]:
        return self.log("debug", data)

    def info(self, data: Any) -> Awaitable[None]:
        return self.log("info", data)

    def warning(self, data: Any) -> Awaitable[None]:
        return self.log("warning", data)

    def error(self, data: Any) -> Awaitable[None]:
        return self.log("error", data)

    def resource_changed(self, uri: str) -> Awaitable[None]:
        """Tell whoever watches this resource that it should be read again."""
        executor = self._call.executor
        executor.post(lambda: executor.resource_changed(uri))
        return DONE

    def close_stream(self, retry: float | None = None) -> Awaitable[None]:
        """Let the client's connection go while the work goes on; it comes back for the answer after `retry` seconds.

        For calls that take minutes, over HTTP with a 2025-11-25 client. Elsewhere it changes nothing.
        """
        executor, link = self._call.executor, self._call.link
        executor.post(lambda: link.close_stream(retry))
        return DONE

    def _note(self, notification: Notification, *, progress: bool) -> None:
        call = self._call
        if call.notes is None:
            call.notes = Notes(call)
        call.notes.put(encode(notification), progress=progress)

    # -- asking the client

    async def ask(self, **questions: Question) -> Answers:
        """Ask several questions at once, each under its own name: `a = await ctx.ask(size=Elicit(…), tone=Sample(…))`.

        Only in a tool declared `replay=True`: in the stateless era the body runs again from its start on each answer.
        """
        return await self._call.executor.questions.ask(self._call, questions)

    async def elicit(self, message: str, type: Any = bool, *, key: str, url: str | None = None) -> ElicitAnswer:
        """Ask the person one thing: a form field or flat record of `type`, or to visit `url`."""
        return (await self.ask(**{key: Elicit(message, type, url=url)}))[key]  # type: ignore[no-any-return]

    async def sample(
        self, prompt: str | list[Any], *, key: str, max_tokens: int = 1000, **options: Any
    ) -> SampleAnswer:
        """Have the client's model answer a prompt. Deprecated by the protocol since 2026-07-28; it still works."""
        return (await self.ask(**{key: Sample(prompt, max_tokens, **options)}))[key]  # type: ignore[no-any-return]

    async def roots(self, *, key: str = "roots") -> list[Root]:
        """The folders that the client says it works in. Deprecated by the protocol since 2026-07-28; it still works."""
        return (await self.ask(**{key: ListRoots()}))[key]  # type: ignore[no-any-return]

    async def once(self, key: str, action: Callable[[], Any]) -> Any:
        """Do something that must not happen twice, and remember its result across the rounds of a question.

        The result travels in the signed `requestState`, so it must be JSON.
        """
        return await self._call.executor.questions.once(self._call, key, action)
