"""The public Client: any MCP server, over any transport, in either era.

The client outlives its connections. Each is a `Session` over a channel; when one is lost, the next request that needs
it makes another, and a request that was under way is sent again if that can do no harm: it only reads, the tool says
that it may be repeated, or it surely never arrived.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar, cast, final, overload

from msgspec import Raw

from longshore import __version__
from longshore.client.answering import Answering, Roots, Unanswerable
from longshore.client.cache import Cache
from longshore.client.channel import CLIENT_LIMITS, Channel
from longshore.client.era import Wish
from longshore.client.hearing import Hearing
from longshore.client.listing import Listing
from longshore.client.opening import Opening
from longshore.client.records import (
    Change,
    Completion,
    LogMessage,
    PromptInfo,
    ResourceInfo,
    ServerInfo,
    TemplateInfo,
    ToolInfo,
)
from longshore.client.results import (
    PromptResult,
    Result,
    as_type,
    read_completion,
    read_contents,
    read_object,
    read_prompt,
    read_result,
)
from longshore.client.session import Progress, Session
from longshore.client.targets import Way, find
from longshore.client.watching import Watch
from longshore.errors import BadAnswer, ClientError, ConnectError, ConnectionLost, ServerError, ToolFailed
from longshore.limits import Limits
from longshore.protocol.content import Contents
from longshore.protocol.envelope import PREFIX
from longshore.protocol.headers import HEADER_MISMATCH

T = TypeVar("T")

ROUNDS = 16
"""Rounds of questions that one request may take."""
_WAITS = (0.05, 0.3, 1.0)
"""Before a request is sent again that did not arrive: the server may just be starting."""
_DEFAULT: Any = object()


@final
class Client:
    """A client of one server.

    `target` is a `Server`, a command line, a URL, or an entry of `mcpServers`. Use it as `async with Client(…) as c`,
    or `open` and `close` it, from any task.

    - `era`: "auto" finds out, "modern" and "legacy" insist, a revision's name pins that.
    - `timeout`: seconds for connecting and for each answer; progress begins them anew. None: for ever.
    - `on_elicit`, `on_sample`, `roots`: how to answer what servers ask; what is not given is not offered.
    - `on_log`, `on_change`: told what servers tell. `log_level`: from which level on.
    """

    def __init__(
        self,
        target: Any,
        *,
        name: str | None = None,
        era: str = "auto",
        timeout: float | None = 60.0,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        headers: Mapping[str, str] | None = None,
        auth: Any = None,
        on_elicit: Callable[..., Any] | None = None,
        on_sample: Callable[..., Any] | None = None,
        roots: Roots | None = None,
        on_log: Callable[[LogMessage], Any] | None = None,
        on_change: Callable[[Change], Any] | None = None,
        log_level: str | None = None,
        client_info: Mapping[str, Any] | None = None,
        extensions: Mapping[str, Any] | None = None,
        reconnect: bool = True,
        cache: bool = True,
        validate: bool = True,
        limits: Limits | None = None,
    ) -> None:
        self.limits = limits or CLIENT_LIMITS
        self.timeout = timeout
        self._target = find(target, Way(env, cwd, headers, auth, self.limits))
        self.name = name or self._target.name
        self._validate = validate
        self._caching = cache
        self._reconnect = reconnect
        self._answering = Answering(on_elicit, on_sample, roots)
        self._cache = Cache()
        self._listing = Listing(self._ask_list, self._cache)
        self._on_change = on_change
        self._hearing = Hearing(self._cache, on_log, on_change, self._answering.cancelled)
        self._log_level = log_level
        capabilities = self._answering.capabilities()
        if extensions:
            capabilities["extensions"] = dict(extensions)
        info = client_info or {"name": "longshore", "version": __version__}
        self._wish = Wish(era, capabilities, info, log_level)
        self._opening: Opening | None = None
        self._background: set[asyncio.Task[Any]] = set()

    # -- the connection

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def open(self) -> None:
        """Connect. Raises ConnectError; a client that is open stays as it is."""
        if self._opening is None or self._opening.closed:
            self._cache.clear()
            self._opening = Opening(
                self._target, self._wish, self.timeout, self._reconnect, self._make_session, self._opened
            )
        try:
            await self._opening.session()
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """End the connection and everything that belongs to it."""
        opening = self._opening
        if opening is None:
            return
        for watch in list(self._hearing.watches):
            watch.end(ConnectionLost("the client was closed", self.name))
        for task in list(self._background):
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        await opening.close()
        await self._answering.close()

    @property
    def server(self) -> ServerInfo:
        """Who the server is. Known from the first connection on."""
        if self._opening is None or self._opening.server is None:
            raise ConnectError("the client is not open; write `async with Client(…)`", self.name)
        return self._opening.server

    @property
    def connected(self) -> bool:
        """Whether there is a connection now. One that is lost is made anew when it is needed."""
        opening = self._opening
        return opening is not None and opening.current is not None and opening.current.gone is None

    @property
    def problems(self) -> list[str]:
        """What was odd about the server: entries that were left out of lists, messages that made no sense."""
        opening = self._opening
        notes = [] if opening is None or opening.current is None else list(opening.current.notes)
        return [*self._listing.problems, *notes]

    def _make_session(self, channel: Channel) -> Session:
        return Session(channel, self.limits, self._hearing.hear, self._answering.take, self._lost)

    async def _session(self) -> Session:
        opening = self._opening
        if opening is None:
            raise ConnectError("the client is not open; write `async with Client(…)`", self.name)
        current = opening.current
        return current if current is not None and current.gone is None else await opening.session()

    async def _opened(self, session: Session, again: bool) -> None:
        """A connection was made: bring it to where the last one was."""
        modern = session.envelope is not None
        if self._log_level is not None and not modern and self.server.can("logging"):
            await session.request("logging/setLevel", {"level": self._log_level}, timeout=self.timeout)
        if again:
            self._cache.clear()
            for watch in list(self._hearing.watches):
                await watch.start(session)
                watch.missed()
        elif self._on_change is not None and modern:
            self._start_background_watch()

    def _lost(self, _: Session) -> None:
        """The connection is gone. Whoever watches would never ask for another, so one is made for them."""
        if self._hearing.watches and self._reconnect and not self._is_closed:
            self._spawn(self._revive())

    @property
    def _is_closed(self) -> bool:
        return self._opening is None or self._opening.closed

    async def _revive(self) -> None:
        try:
            await self._session()
        except ClientError as problem:
            for watch in list(self._hearing.watches):
                watch.end(problem)

    def _spawn(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    # -- requests

    async def request(self, method: str, params: Mapping[str, Any] | None = None, *, timeout: Any = _DEFAULT) -> Any:
        """Send any request; gives its result as a plain object."""
        return read_object(await self._send(method, params, timeout=timeout))

    async def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Send any notification."""
        (await self._session()).notify(method, params)

    async def _send(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        *,
        timeout: Any = _DEFAULT,
        progress: Progress | None = None,
        headers: tuple[tuple[str, str], ...] = (),
        safe: bool = False,
    ) -> Raw:
        """Send a request, and again where the connection was lost and that does no harm."""
        seconds = self.timeout if timeout is _DEFAULT else timeout
        tries = 0
        while True:
            session = await self._session()
            try:
                return await session.request(method, params, timeout=seconds, progress=progress, headers=headers)
            except ConnectionLost as lost:
                again = lost.unsent or (safe and tries == 0)
                if not again or not self._reconnect or self._is_closed or tries == len(_WAITS):
                    raise
            await asyncio.sleep(_WAITS[tries])
            tries += 1

    async def _complete(
        self,
        method: str,
        params: dict[str, Any],
        *,
        timeout: Any = _DEFAULT,
        progress: Progress | None = None,
        headers: tuple[tuple[str, str], ...] = (),
        safe: bool = False,
    ) -> dict[str, Any]:
        """Send a request that may be answered with questions; answer them, and ask again with the answers."""
        extra: dict[str, Any] = {}
        for attempt in range(ROUNDS):
            raw = await self._send(
                method, params | extra, timeout=timeout, progress=progress, headers=headers, safe=safe and not extra
            )
            record = read_object(raw)
            kind = record.get("resultType", "complete")
            if kind == "complete":
                return record
            if kind != "input_required":
                raise BadAnswer(f"a result of a kind that was not agreed on: {str(kind)[:50]!r}", self.name)
            extra = await self._answer(record, attempt)
        raise BadAnswer(f"{method} was answered with questions {ROUNDS} times", self.name)

    async def _answer(self, record: dict[str, Any], attempt: int) -> dict[str, Any]:
        questions, state = record.get("inputRequests"), record.get("requestState")
        extra: dict[str, Any] = {}
        if isinstance(questions, dict) and questions:
            try:
                extra["inputResponses"] = await self._answering.answer_all(cast("dict[str, Any]", questions))
            except Unanswerable as problem:
                raise problem.at(self.name) from None
        elif state is None:
            raise BadAnswer("it asks for input without saying which", self.name)
        else:
            await asyncio.sleep(min(_WAITS[-1], _WAITS[0] * 2**attempt))  # it has too much to do: later
        if state is not None:
            extra["requestState"] = state
        return extra

    # -- tools

    async def list_tools(self, *, fresh: bool = False) -> list[ToolInfo]:
        """All tools. What the server lets us keep is not asked for again, unless `fresh`."""
        session = await self._session()
        if not self.server.can("tools"):
            return []
        return await self._listing.all_tools(by_header=_by_header(session), fresh=fresh or not self._caching)

    @overload
    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        returns: type[T],
        timeout: Any = ...,
        on_progress: Progress | None = ...,
        check: bool = ...,
        meta: Mapping[str, Any] | None = ...,
    ) -> T: ...
    @overload
    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        returns: None = None,
        timeout: Any = ...,
        on_progress: Progress | None = ...,
        check: bool = ...,
        meta: Mapping[str, Any] | None = ...,
    ) -> Result: ...
    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        returns: Any = None,
        timeout: Any = _DEFAULT,
        on_progress: Progress | None = None,
        check: bool = True,
        meta: Mapping[str, Any] | None = None,
    ) -> Any:
        """Call a tool. `returns` is the type to make of its result; a result that says it failed raises ToolFailed.

        With `check=False` a failure is given back as a result like any other.
        """
        given: Mapping[str, Any] = {} if arguments is None else arguments
        params: dict[str, Any] = {"name": name, "arguments": given}
        if meta:
            params["_meta"] = dict(meta)
        result = read_result(await self._call(name, given, params, timeout, on_progress))
        if result.is_error:
            if check:
                raise ToolFailed(result.text or "the tool failed without a word", result, self.name)
        elif self._validate:
            self._listing.check(name, result)
        return result if returns is None else as_type(result, returns)

    async def _call(
        self, name: str, given: Mapping[str, Any], params: dict[str, Any], timeout: Any, progress: Progress | None
    ) -> dict[str, Any]:
        safe = self._listing.repeatable(name)
        headers = self._listing.headers(name, given)
        try:
            return await self._complete(
                "tools/call", params, timeout=timeout, progress=progress, headers=headers, safe=safe
            )
        except ServerError as problem:
            if problem.code != HEADER_MISMATCH:
                raise
        await self.list_tools(fresh=True)  # which arguments go into headers is not what we knew
        headers = self._listing.headers(name, given)
        return await self._complete("tools/call", params, timeout=timeout, progress=progress, headers=headers)

    # -- resources, prompts, completion

    async def list_resources(self, *, fresh: bool = False) -> list[ResourceInfo]:
        """All resources."""
        return await self._list("resources/list", "resources", fresh)

    async def list_templates(self, *, fresh: bool = False) -> list[TemplateInfo]:
        """All templates of resources."""
        return await self._list("resources/templates/list", "resources", fresh)

    async def list_prompts(self, *, fresh: bool = False) -> list[PromptInfo]:
        """All prompts."""
        return await self._list("prompts/list", "prompts", fresh)

    async def _list(self, method: str, capability: str, fresh: bool) -> list[Any]:
        await self._session()
        if not self.server.can(capability):
            return []
        return await self._listing.all(method, fresh=fresh or not self._caching)

    async def _ask_list(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        return read_object(await self._send(method, params, safe=True))

    def pages(self, method: str) -> AsyncIterator[list[dict[str, Any]]]:
        """A list page by page, as it comes: `tools/list`, `resources/list`, `prompts/list` …"""
        return self._listing.pages(method, fresh=not self._caching)

    async def read(self, uri: str, *, timeout: Any = _DEFAULT, fresh: bool = False) -> list[Contents]:
        """Read a resource."""
        key = ("resources/read", uri)
        now = asyncio.get_running_loop().time
        kept = None if fresh or not self._caching else self._cache.get(key, now())
        if kept is not None:
            return read_contents(kept)
        record = await self._complete("resources/read", {"uri": uri}, timeout=timeout, safe=True)
        self._cache.put(key, record, now())
        return read_contents(record)

    async def prompt(
        self, name: str, arguments: Mapping[str, str] | None = None, *, timeout: Any = _DEFAULT
    ) -> PromptResult:
        """Fill a prompt in."""
        params: dict[str, Any] = {"name": name}
        if arguments:
            params["arguments"] = dict(arguments)
        return read_prompt(await self._complete("prompts/get", params, timeout=timeout, safe=True))

    async def complete(
        self, ref: str, argument: str, value: str, context: Mapping[str, str] | None = None
    ) -> Completion:
        """What an argument of a prompt (`ref` is its name) or of a template (its URI) could be."""
        about = {"type": "ref/resource", "uri": ref} if "://" in ref else {"type": "ref/prompt", "name": ref}
        params: dict[str, Any] = {"ref": about, "argument": {"name": argument, "value": value}}
        if context:
            params["context"] = {"arguments": dict(context)}
        return read_completion(read_object(await self._send("completion/complete", params, safe=True)))

    # -- the rest

    async def ping(self) -> None:
        """See whether the server answers. In the modern era there is no ping, so it is asked who it is."""
        session = await self._session()
        await self._send("server/discover" if session.envelope is not None else "ping", None, safe=True)

    async def set_log_level(self, level: str) -> None:
        """From which level on the server's log is wanted."""
        session = await self._session()
        self._log_level = level
        if session.envelope is None:
            await self._send("logging/setLevel", {"level": level}, safe=True)
        else:
            session.envelope[PREFIX + "logLevel"] = level

    async def set_roots(self, roots: Sequence[Any]) -> None:
        """Work in other folders than before. A server of the handshake era is told."""
        session = await self._session()
        if self._answering.roots is None:
            raise ClientError("roots were not offered when the connection was made; give the client roots=", self.name)
        self._answering.roots = roots
        if session.envelope is None:
            session.notify("notifications/roots/list_changed")

    def watch(
        self, *, tools: bool = False, resources: bool = False, prompts: bool = False, uris: Sequence[str] = ()
    ) -> Watch:
        """Hear of changes: `async with client.watch(tools=True) as changes: async for change in changes: …`."""
        kinds = [kind for kind, wanted in (("tools", tools), ("resources", resources), ("prompts", prompts)) if wanted]
        return Watch(self, kinds, uris)

    async def begin_watch(self, watch: Watch) -> None:
        """For `Watch`."""
        session = await self._session()
        self._hearing.watches.add(watch)
        try:
            await watch.start(session)
        except BaseException:
            self._hearing.watches.discard(watch)
            raise

    async def end_watch(self, watch: Watch) -> None:
        """For `Watch`."""
        self._hearing.watches.discard(watch)
        if self.connected:
            await watch.stop(await self._session())

    def listen_ended(self, watch: Watch) -> None:
        """For `Watch`: the server ended its subscription, or the stream broke."""
        if watch in self._hearing.watches and not self._is_closed and self.connected:
            self._spawn(self._listen_again(watch))

    async def _listen_again(self, watch: Watch) -> None:
        problem: ClientError | None = None
        for seconds in _WAITS:
            await asyncio.sleep(seconds)
            try:
                await watch.start(await self._session())
                watch.missed()
                return
            except ClientError as again:
                problem = again
        watch.end(problem or ConnectionLost("the subscription ended", self.name))

    def _start_background_watch(self) -> None:
        kinds = [kind for kind in ("tools", "resources", "prompts") if self.server.can(kind, "listChanged")]
        if kinds:
            self._spawn(self._watch_for_ever(Watch(self, kinds, ())))

    async def _watch_for_ever(self, watch: Watch) -> None:
        try:
            async with watch:
                async for _ in watch:
                    pass  # Hearing has called on_change
        except ClientError:
            return


def _by_header(session: Session) -> bool:
    return session.channel.shared and session.envelope is not None
