"""The public Client: any MCP server, over any transport, in either era. It outlives its connections: see `Line`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar, final, overload

from longshore import __version__
from longshore.client.answering import Answering, Roots, check_callbacks, check_roots
from longshore.client.cache import Cache
from longshore.client.channel import CLIENT_LIMITS
from longshore.client.era import Wish
from longshore.client.hearing import Hearing
from longshore.client.line import DEFAULT, Line
from longshore.client.listing import Listing
from longshore.client.pending import Progress
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
from longshore.client.relay import Relaying
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
from longshore.client.session import Session
from longshore.client.targets import Way, find
from longshore.client.watches import Watches
from longshore.client.watching import Watch
from longshore.errors import BadAnswer, ClientError, ServerError, ToolFailed
from longshore.limits import Limits
from longshore.protocol.content import Contents
from longshore.protocol.http_headers import HEADER_MISMATCH
from longshore.protocol.peer import PREFIX
from longshore.protocol.revisions import LOG_LEVELS, R2506, R2607

T = TypeVar("T")
Headers = tuple[tuple[str, str], ...]


@final
class Client:
    """A client of one server.

    `target` is a `Server`, a command line, a URL, or an entry of `mcpServers`. Use it as `async with Client(…) as c`,
    or `open` and `close` it, from any task.

    - `era`: "auto" finds out, "modern" and "legacy" insist, a revision's name pins that.
    - `timeout`: seconds for connecting and for each answer; progress begins them anew. None: for ever.
    - `on_elicit`, `on_sample`, `roots`: how to answer what servers ask; what is not given is not offered.
      `sample_tools`: whether `on_sample` can have the model use tools that the server offers it.
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
        sample_tools: bool = False,
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
        callbacks = {"on_elicit": on_elicit, "on_sample": on_sample, "roots": roots}
        check_callbacks({**callbacks, "on_log": on_log, "on_change": on_change})
        self.limits = limits or CLIENT_LIMITS
        self.timeout = timeout
        self._validate = validate
        self._caching = cache
        self._answering = Answering(on_elicit, on_sample, roots, sample_tools=sample_tools)
        self._cache = Cache()
        self._listing = Listing(self._ask_list, self._cache)
        capabilities = self._answering.capabilities()
        if extensions:
            capabilities["extensions"] = _check_extensions(extensions)
        info = client_info or {"name": "longshore", "version": __version__}
        self._line = Line(
            find(target, Way(env, cwd, headers, auth, self.limits)),
            Wish(era, capabilities, info),
            name=name,
            timeout=timeout,
            reconnect=reconnect,
            limits=self.limits,
            answering=self._answering,
            opened=self._opened,
        )
        self.name = self._line.name
        self._watches = Watches(self._line, on_change)
        self._hearing = Hearing(self._cache, self._watches, on_log, self._answering.cancelled)
        self._hearing.log_level = _checked_level(log_level)
        self._line.heard = self._hearing.hear
        self._line.lost = self._watches.lost
        self.relaying = Relaying(self._line, self._answering, self._hearing, self._listing)
        """For who stands between the server and its real client."""

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
        await self._line.open()

    async def close(self) -> None:
        """End the connection and everything that belongs to it."""
        try:
            await self._watches.close()
        finally:  # also when this is cancelled: a child must not be left
            try:
                await self._line.close()
            finally:
                await self._answering.close()

    @property
    def server(self) -> ServerInfo:
        """Who the server is. Known from the first connection on."""
        return self._line.server

    @property
    def connected(self) -> bool:
        """Whether there is a connection now. One that is lost is made anew when it is needed."""
        return self._line.connected

    def said(self) -> str:
        """The last that a child process printed beside the protocol, on its stderr."""
        return self._line.said()

    @property
    def left_out(self) -> list[str]:
        """Entries that were left out of lists, and why."""
        return self.relaying.left_out

    @property
    def problems(self) -> list[str]:
        """What was odd about the server: entries that were left out of lists, messages that made no sense."""
        return [*self._listing.problems, *self.absent.values(), *self._line.notes]

    @property
    def absent(self) -> dict[str, str]:
        """Servers mounted behind this one that were down when its tools were listed: by their prefix, why."""
        return dict(self._listing.absent)

    async def _opened(self, session: Session, again: bool) -> None:
        """A connection was made: bring it to where the last one was."""
        self._cache.clear()
        level = self._hearing.log_level  # it may be another by now than at first
        if level is not None:
            if session.envelope is not None:
                session.envelope = {**session.envelope, PREFIX + "logLevel": level}
            elif self.server.can("logging"):
                await self._set_level(session, level)
        await self._watches.opened(session, self.server, again)

    async def _set_level(self, session: Session, level: str) -> None:
        """A server that will not be told may log all the same: no reason to do without it."""
        try:
            await session.request("logging/setLevel", {"level": level}, timeout=self.timeout)
        except ClientError as problem:
            if session.gone is not None:
                raise
            session.note(f"the level of its log could not be set: {problem.what}")

    # -- requests

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        timeout: Any = DEFAULT,
        on_progress: Progress | None = None,
        safe: bool = False,
    ) -> Any:
        """Send any request; gives its result as a plain object, also one that only asks for input.

        `safe`: sending it twice does no harm, so it may be sent again where the connection was lost.
        """
        if on_progress is not None:
            check_callbacks({"on_progress": on_progress})
        if method != "tools/call" or params is None:
            raw = await self._line.send(method, params, timeout=timeout, progress=on_progress, safe=safe)
            return self._line.read(read_object, raw)
        name = str(params.get("name"))
        safe = safe or (self._listing.repeatable(name) and "requestState" not in params)
        given: Any = params.get("arguments") or {}
        headers = self._listing.headers(name, given)
        send, read = self._line.send, self._line.read
        try:
            raw = await send(method, params, timeout=timeout, progress=on_progress, headers=headers, safe=safe)
            return read(read_object, raw)
        except ServerError as problem:
            headers = await self._other_headers(problem, name, given)
        return read(read_object, await send(method, params, timeout=timeout, progress=on_progress, headers=headers))

    async def _other_headers(self, problem: ServerError, name: str, given: Any) -> Headers:
        """Those that repeat a call's arguments by a new list, if it was refused for them. Raises any other problem."""
        if problem.code != HEADER_MISMATCH:
            raise problem
        await self.list_tools(fresh=True)
        return self._listing.headers(name, given)

    async def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Send any notification, as soon as the server takes it."""
        session = await self._line.session()
        if session.stalled:
            await session.clear(method, self.timeout)
        session.notify(method, params)

    # -- tools

    async def list_tools(self, *, fresh: bool = False) -> list[ToolInfo]:
        """All tools. What the server lets us keep is not asked for again, unless `fresh`."""
        session = await self._line.session()
        if not self.server.can("tools"):
            return []
        try:
            return await self._listing.all_tools(by_header=_by_header(session), fresh=fresh or not self._caching)
        except BadAnswer as problem:
            raise self._line.place(problem) from None

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
        timeout: Any = DEFAULT,
        on_progress: Progress | None = None,
        check: bool = True,
        meta: Mapping[str, Any] | None = None,
    ) -> Any:
        """Call a tool. `returns` is the type to make of its result; a result that says it failed raises ToolFailed.

        With `check=False` a failure is given back as a result like any other.
        """
        if on_progress is not None:
            check_callbacks({"on_progress": on_progress})
        given: Mapping[str, Any] = {} if arguments is None else arguments
        params: dict[str, Any] = {"name": name, "arguments": given}
        if meta:
            params["_meta"] = {key: value for key, value in meta.items() if key != "progressToken"}  # ours to give
        record = await self._call(name, given, params, timeout, on_progress)
        try:
            result = read_result(record)
            if result.is_error:
                if check:
                    raise ToolFailed(result.text or "the tool failed without a word", result)
            elif self._validate:
                self._listing.check(name, result)
            return result if returns is None else as_type(result, returns)
        except (BadAnswer, ToolFailed) as problem:
            raise self._line.place(problem) from None

    async def _call(
        self, name: str, given: Mapping[str, Any], params: dict[str, Any], timeout: Any, progress: Progress | None
    ) -> dict[str, Any]:
        safe = self._listing.repeatable(name)
        headers = self._listing.headers(name, given)
        complete = self._line.complete
        try:
            return await complete("tools/call", params, timeout=timeout, progress=progress, headers=headers, safe=safe)
        except ServerError as problem:
            headers = await self._other_headers(problem, name, given)
        return await complete("tools/call", params, timeout=timeout, progress=progress, headers=headers)

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
        await self._line.session()
        if not self.server.can(capability):
            return []
        try:
            return await self._listing.all(method, fresh=fresh or not self._caching)
        except BadAnswer as problem:
            raise self._line.place(problem) from None

    async def _ask_list(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        return await self._line.ask(method, params)

    async def pages(self, method: str) -> AsyncIterator[list[dict[str, Any]]]:
        """A list page by page, as it comes: `tools/list`, `resources/list`, `prompts/list` …"""
        try:
            async for page in self._listing.pages(method, fresh=not self._caching):
                yield page
        except BadAnswer as problem:
            raise self._line.place(problem) from None

    async def read(self, uri: str, *, timeout: Any = DEFAULT, fresh: bool = False) -> list[Contents]:
        """Read a resource."""
        key = ("resources/read", uri)
        now = asyncio.get_running_loop().time
        kept = None if fresh or not self._caching else self._cache.get(key, now())
        if kept is not None:
            return self._line.read(read_contents, kept)
        since = self._cache.changes
        record = await self._line.complete(
            "resources/read",
            {"uri": uri},
            timeout=timeout,
            safe=True,
            keep=lambda record: self._cache.put(key, record, now(), since),
        )
        return self._line.read(read_contents, record)

    async def prompt(
        self, name: str, arguments: Mapping[str, str] | None = None, *, timeout: Any = DEFAULT
    ) -> PromptResult:
        """Fill a prompt in."""
        params: dict[str, Any] = {"name": name}
        if arguments:
            params["arguments"] = dict(arguments)
        return self._line.read(
            read_prompt, await self._line.complete("prompts/get", params, timeout=timeout, safe=True)
        )

    async def complete(
        self, ref: str, argument: str, value: str, context: Mapping[str, str] | None = None
    ) -> Completion:
        """What an argument of a prompt (`ref` is its name) or of a template (its URI) could be."""
        revision = (await self._line.session()).revision
        if revision is not None and R2506 <= revision.index < R2607 and not self.server.can("completions"):
            raise self._line.place(ClientError("the server completes nothing: it has no completions"))
        is_uri = "://" in ref or "{" in ref  # not by a colon alone: prompts are named `team:review`, too
        about = {"type": "ref/resource", "uri": ref} if is_uri else {"type": "ref/prompt", "name": ref}
        params: dict[str, Any] = {"ref": about, "argument": {"name": argument, "value": value}}
        if context:
            params["context"] = {"arguments": dict(context)}
        return self._line.read(read_completion, await self._line.ask("completion/complete", params))

    # -- the rest

    async def ping(self) -> None:
        """See whether the server answers. In the modern era there is no ping, so it is asked who it is."""
        session = await self._line.session()
        await self._line.send("server/discover" if session.envelope is not None else "ping", None, safe=True)

    async def set_log_level(self, level: str) -> None:
        """From which level on the server's log is wanted."""
        _checked_level(level)
        session = await self._line.session()
        self._hearing.log_level = level
        if session.envelope is None:
            if self.server.can("logging"):  # who can't be told may log all the same
                await self._line.send("logging/setLevel", {"level": level}, safe=True)
        else:
            session.envelope = {**session.envelope, PREFIX + "logLevel": level}

    async def set_roots(self, roots: Sequence[Any]) -> None:
        """Work in other folders than before. A server of the handshake era is told."""
        check_roots(roots)
        session = await self._line.session()
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
        return self._watches.make(kinds, uris)


def _checked_level(level: str | None) -> str | None:
    if level is not None and level not in LOG_LEVELS:
        raise ValueError(f"no log level {level!r}; one of {', '.join(LOG_LEVELS)}")
    return level


def _by_header(session: Session) -> bool:
    return session.channel.shared and session.envelope is not None


def _check_extensions(extensions: Mapping[str, Any]) -> dict[str, Any]:
    for name in extensions:
        if not all(name.partition("/")):
            raise ValueError(f"an extension's name has a prefix, such as 'com.example/{name.strip('/')}', not {name!r}")
    return dict(extensions)
