"""The handler's view of its call. All of it works from `async def`, from threads and inline."""

from __future__ import annotations

from _thread import get_ident
from collections import deque
from collections.abc import Awaitable, Callable, Generator
from math import inf
from time import monotonic
from typing import TYPE_CHECKING, Any, Generic, cast, final

import msgspec
from msgspec import UNSET, Raw, Struct, field

from longshore.errors import Cancelled, ToolError
from longshore.protocol.peer import Principal, log_level
from longshore.protocol.questions import (
    AnswersByName,
    Elicit,
    ElicitAnswer,
    ListRoots,
    Question,
    Root,
    Sample,
    SampleAnswer,
)
from longshore.protocol.revisions import LOG_LEVELS, PROGRESS_MESSAGE
from longshore.schema.output import OutputMismatch
from longshore.schema.output import encode as encode_data
from longshore.wire.codec import encode
from longshore.wire.messages import Id, Notification

if TYPE_CHECKING:
    # mypy and pyright bundle its stub, so nothing is imported: `Context` alone means `Context[Any]` to them.
    from typing_extensions import TypeVar

    from longshore.files import Parts
    from longshore.protocol.content import ResourceLink
    from longshore.server.call import Call
    from longshore.server.call_files import Folders
    from longshore.server.session_state import CallSession

    LifespanState = TypeVar("LifespanState", default=Any)
else:
    from typing import TypeVar

    LifespanState = TypeVar("LifespanState")

_INFO = log_level("info")
TRACE_KEYS = ("traceparent", "tracestate", "baggage")


class _Params(Struct):
    meta: dict[str, Any] = field(name="_meta", default={})


class _Frame(Struct):
    params: _Params = field(default_factory=_Params)


_read_frame = msgspec.json.Decoder(_Frame).decode


def wanted_rank(call: Call) -> int | None:
    """The lowest rank of log messages that the client wants; None: none."""
    if call.peer.revision.modern:
        return call.peer.log_level
    peer = call.session.peer
    return _INFO if peer is None or peer.log_level is None else peer.log_level


def _copy(record: dict[str, Any]) -> dict[str, Any]:
    """A copy for the handler: the record itself is shared by all requests of a client."""
    copied: dict[str, Any] = msgspec.to_builtins(record)
    return copied


@final
class _Done:
    """An awaitable that is done, so that `ctx.progress(…)` and `await ctx.progress(…)` both work."""

    def __await__(self) -> Generator[None, None, None]:
        return
        yield


DONE = _Done()


def _written(data: Any) -> Any:
    """Log data as JSON, else as text: logging must not fail the call."""
    try:
        return Raw(encode_data(data))
    except OutputMismatch:
        return repr(data)


@final
class CallNotifications:
    """Outgoing progress and log notifications of one call. For a slow reader only the latest are held."""

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
        elif executor.main_thread == get_ident():
            self.release()
        else:
            self._posted = True
            executor.call_threadsafe(self.release)

    def release(self) -> None:
        """Send what is held, unless the peer is congested."""
        self._posted = False
        link, loop = self._call.link, self._call.executor.loop
        if self._call.ended:
            self._logs.clear()  # cancelled or answered: nothing may follow
            self._progress = None
        while self._logs and not link.congested:
            link.send(self._next())
        if not link.congested:
            self.flush()
        elif loop is not None and not self._call.ended:
            self._posted = True
            loop.call_later(0.05, self.release)

    def flush(self) -> None:
        """Send what is held, before the call is answered: nothing may follow the answer."""
        send = self._call.link.send
        while self._logs:
            send(self._next())
        if self._progress is not None:
            frame, self._progress = self._progress, None
            send(frame)

    def _next(self) -> bytes:
        if not self._dropped:
            return self._logs.popleft()
        text = f"{self._dropped} earlier log messages of this call were dropped: the client reads too slowly"
        self._dropped = 0
        return encode(Notification("notifications/message", {"level": "warning", "data": text}))


@final
class Context(Generic[LifespanState]):
    """The call that a handler is running for. Taken by type: any parameter annotated `Context` receives it.

    `Context[Database]` says what the server's lifespan yields, for type checkers.
    """

    __slots__ = ("_call", "_last_progress", "reported", "state")

    def __init__(self, call: Call) -> None:
        self._call = call
        self._last_progress = -inf
        self.reported: tuple[float, float | None, str | None] | None = None
        """The progress that was reported last, also where the client does not want to know."""
        self.state: dict[str, Any] = {}
        """Free for the parts of one call to share values. Dropped when the call ends."""

    def __class_getitem__(cls, _: Any) -> Any:
        return cls  # parameters are found by this class

    @property
    def lifespan(self) -> LifespanState:
        """What the server's `lifespan` yields."""
        found = self._call.executor.policy.lifespan
        if found is None:
            raise AttributeError("this server has no lifespan: give it one, Server(…, lifespan=open_state)")
        return cast("LifespanState", found.value)

    @property
    def session(self) -> CallSession:
        """The client's session: `ctx.session.state` keeps values between its calls.

        Raises ToolError if the client has none, as those of 2026-07-28 over HTTP.
        """
        from longshore.server.session_state import CallSession

        return CallSession(self._call)

    # -- the request

    @property
    def call(self) -> Call:
        """The record of the call, for parts of the framework."""
        return self._call

    @property
    def request_id(self) -> Id:
        """The id that the client gave the request."""
        return self._call.id

    @property
    def name(self) -> str:
        """The name of the tool, prompt or resource."""
        return self._call.entry.name

    @property
    def revision(self) -> str:
        """The protocol revision of this request, e.g. "2025-11-25"."""
        return self._call.peer.revision.name

    @property
    def client(self) -> dict[str, Any]:
        """The client's `name`, `version` and maybe `title`. A label, not an identity."""
        return _copy(self._call.peer.client)

    @property
    def capabilities(self) -> dict[str, Any]:
        """The client's declared capabilities."""
        return _copy(self._call.peer.capabilities)

    @property
    def principal(self) -> Principal:
        """The user that this call acts for."""
        return self._call.link.principal

    def check_allowed(self, tool: str) -> None:
        """Raise unless another tool is on offer and its scopes are granted: for a tool that does that one's work."""
        self._call.executor.policy.check_allowed(tool, self.principal)

    @property
    def meta(self) -> dict[str, Any]:
        """The request's `_meta`, whole."""
        return _read_frame(self._call.frame).params.meta

    @property
    def trace(self) -> dict[str, str]:
        """The W3C trace context of the request, if any. Longshore's own clients carry it on with their calls."""
        if self._call.trace is not None:
            from longshore.telemetry.trace import to_meta

            return to_meta(self._call.trace)
        return {key: value for key, value in self.meta.items() if key in TRACE_KEYS}

    # -- time and cancellation

    @property
    def may_block(self) -> bool:
        """Whether this call may wait for a disk or another machine: it runs on a thread."""
        return self._call.thread

    @property
    def cancelled(self) -> bool:
        """Whether the call was cancelled or has timed out. Cheap enough for an inner loop."""
        return self._call.ended

    def raise_if_cancelled(self) -> None:
        """Raise `Cancelled` if the call was cancelled or has timed out."""
        if self._call.ended:
            raise Cancelled("this call was cancelled or ran out of time")

    @property
    def remaining(self) -> float:
        """Seconds until the deadline; infinite without one."""
        return self._call.deadline - monotonic()

    @property
    def deadline(self) -> float:
        """The deadline, on the clock of `time.monotonic()`."""
        return self._call.deadline

    # -- notifications

    def progress(self, done: float, total: float | None = None, message: str | None = None) -> Awaitable[None]:
        """Report progress, if the client asked for it. `done` must grow; other values are dropped."""
        call = self._call
        self.reported = done, total, message
        if call.meta is UNSET or call.meta.progress_token is UNSET or call.ended or done <= self._last_progress:
            return DONE
        self._last_progress = done
        params: dict[str, Any] = {"progressToken": call.meta.progress_token, "progress": done}
        if total is not None:
            params["total"] = total
        if message is not None and call.peer.revision.index >= PROGRESS_MESSAGE:
            params["message"] = message
        self._notify(Notification("notifications/progress", params), progress=True)
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
            self._call.executor.warn_deprecated("logging")
        params: dict[str, Any] = {"level": level, "data": data if data.__class__ is str else _written(data)}
        if logger is not None:
            params["logger"] = logger
        self._notify(Notification("notifications/message", params), progress=False)
        return DONE

    def debug(self, data: Any) -> Awaitable[None]:
        """Log at the level debug."""
        return self.log("debug", data)

    def info(self, data: Any) -> Awaitable[None]:
        """Log at the level info."""
        return self.log("info", data)

    def warning(self, data: Any) -> Awaitable[None]:
        """Log at the level warning."""
        return self.log("warning", data)

    def error(self, data: Any) -> Awaitable[None]:
        """Log at the level error."""
        return self.log("error", data)

    def resource_changed(self, uri: str) -> Awaitable[None]:
        """Notify subscribers of this resource that it should be read again."""
        executor = self._call.executor
        executor.post(lambda: executor.resource_changed(uri))
        return DONE

    def close_stream(self, retry: float | None = None) -> Awaitable[None]:
        """Close the client's connection; the client reconnects for the answer after `retry` seconds.

        For calls that take minutes, over HTTP with a 2025-11-25 client. Elsewhere it has no effect.
        """
        executor, link = self._call.executor, self._call.link
        executor.post(lambda: link.close_stream(retry))
        return DONE

    def _notify(self, notification: Notification, *, progress: bool) -> None:
        call = self._call
        if call.notifications is None:
            call.notifications = CallNotifications(call)
        call.notifications.put(encode(notification), progress=progress)

    # -- files

    def folders(self) -> Folders:
        """The folders that this call may touch: the server's roots, narrowed by those of the client.

        `await ctx.folders()` in `async def`, plain `ctx.folders()` on a thread: the client may have to be asked. Raises
        ToolError if there are none, WouldBlock on the serving thread if something has to be waited for.
        """
        call = self._call
        if call.entry.run == "inline":
            raise ToolError(f"{call.entry.name} can't wait for the client's roots; leave out run=\"inline\"")
        if call.entry.tries_inline and not call.thread:
            return call.executor.files.known_folders(call)
        if call.executor.main_thread == get_ident():
            return cast("Folders", call.executor.files.folders(call))  # awaited, it is one
        return call.executor.files.wait_for_folders(call)

    def save_artifact(
        self, name: str, data: bytes | str | Parts, mime_type: str | None = None, description: str | None = None
    ) -> ResourceLink:
        """Store a file for the caller, who reads it by the link within a day. The tool is declared `artifacts=True`.

        It writes to the disk: in `async def`, save large data by `await asyncio.to_thread(ctx.save_artifact, …)`.
        """
        return self._call.executor.files.save(self._call, name, data, mime_type, description)

    # -- questions

    async def ask(self, **questions: Question) -> AnswersByName:
        """Ask several questions at once, each under its own name: `a = await ctx.ask(size=Elicit(…), tone=Sample(…))`.

        Only in a tool declared `replay=True`: in the stateless era the body runs again from its start on each answer.
        """
        return await self._call.executor.questions.ask(self._call, questions)

    async def elicit(self, message: str, type: Any = bool, *, key: str, url: str | None = None) -> ElicitAnswer:
        """Ask the person for one form field or flat record of `type`, or to visit `url`."""
        return (await self.ask(**{key: Elicit(message, type, url=url)}))[key]  # type: ignore[no-any-return]

    async def sample(
        self, prompt: str | list[Any], *, key: str, max_tokens: int = 1000, **options: Any
    ) -> SampleAnswer:
        """Have the client's model answer a prompt. Deprecated by the protocol since 2026-07-28; it still works."""
        return (await self.ask(**{key: Sample(prompt, max_tokens, **options)}))[key]  # type: ignore[no-any-return]

    async def roots(self, *, key: str = "roots") -> list[Root]:
        """The folders that the client works in. Deprecated by the protocol since 2026-07-28; it still works."""
        return (await self.ask(**{key: ListRoots()}))[key]  # type: ignore[no-any-return]

    async def once(self, key: str, action: Callable[[], Any]) -> Any:
        """Run an action once, and store its result across the rounds of a question.

        The result travels in the signed `requestState`, so it must be JSON.
        """
        return await self._call.executor.questions.once(self._call, key, action)
