"""The public Client: any MCP server, over any transport, in either era."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, Self, TypedDict, TypeVar, Unpack, final, overload

from msgspec import Struct

from longshore import __version__
from longshore.client.channel import CLIENT_LIMITS, TransportOptions
from longshore.client.handlers import RequestHandlers, Roots, check_callbacks, check_roots
from longshore.client.models import (
    Change,
    Completion,
    LogMessage,
    PromptInfo,
    PromptResult,
    ResourceInfo,
    Result,
    ServerInfo,
    TemplateInfo,
    ToolInfo,
    as_type,
    read_completion,
    read_contents,
    read_object,
    read_prompt,
    read_result,
)
from longshore.client.negotiate import ClientHello
from longshore.client.reconnecting_session import DEFAULT, ConnectionOptions, ReconnectingSession
from longshore.client.server_lists import Cache, ServerLists
from longshore.client.session import Headers, Progress
from longshore.client.targets import find
from longshore.client.watches import Watch
from longshore.errors import ClientError, ServerError, ToolFailed
from longshore.limits import Limits
from longshore.protocol.content import Contents
from longshore.protocol.http_headers import HEADER_MISMATCH
from longshore.protocol.revisions import LOG_LEVELS, R2506, R2607

T = TypeVar("T")
Send = Callable[..., Awaitable[T]]
Arguments = Mapping[str, Any] | None


class CallOptions(TypedDict, total=False):
    """Options of `call_tool`."""

    timeout: Any
    """Seconds, in place of the client's `timeout`; None for no limit."""
    on_progress: Progress | None
    """Called with each report: `(progress, total, message)`."""
    check: bool
    """False: a failed call returns its result, and does not raise ToolFailed."""
    meta: Mapping[str, Any] | None
    """Additional `_meta` of the request."""


class Relay(Struct, frozen=True):
    """A gateway's part in a client that it owns.

    `ask` answers the server's questions for which the client has no handler, or raises Unanswerable; `log` gets its log
    messages. The gateway reconnects, not the client.
    """

    capabilities: Mapping[str, Any]
    """The questions that a server may ask, in addition to those that the client has handlers for."""
    ask: Callable[[str, Mapping[str, Any]], Awaitable[Any]]
    log: Callable[[LogMessage], Any]


@final
class Client:
    """A client of one server.

    `target` is a `Server`, a command line, a URL, or an entry of `mcpServers`. Use it as `async with Client(…) as c`,
    or `open` and `close` it, from any task.

    - `era`: "auto" finds out what the server speaks; "modern", "legacy" or a revision's name tries only that.
    - `timeout`: seconds for connecting and for each answer; progress restarts them. None: no limit.
    - `name`: what errors call the server. `env`, `cwd`: of a child process. `headers`, `auth`: of a URL; `auth` is a
      token or an `Authorizer`.
    - `reconnect`: whether a lost connection is made again. `cache`: whether lists are cached as long as the server
      allows. `validate`: whether results are checked against the tool's output schema.
    - `on_elicit`, `on_sample`, `roots`: answer what servers ask; a kind without a handler is not declared.
      `sample_tools`: whether `on_sample` can have the model use tools that the server offers it.
    - `on_log`, `on_change`: get log messages and changes. `log_level`: the lowest level that is wanted.
    - `relay`: for gateways, see `Relay`.
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
        relay: Relay | None = None,
    ) -> None:
        self._arguments = dict(locals())
        del self._arguments["self"]
        callbacks = {"on_elicit": on_elicit, "on_sample": on_sample, "roots": roots}
        check_callbacks({**callbacks, "on_log": on_log, "on_change": on_change})
        _check_level(log_level)
        self.limits = limits or CLIENT_LIMITS
        self.timeout = timeout
        self.resends = reconnect
        """Whether a request may be sent again after a lost connection."""
        self._validate, self._caching = validate, cache
        self._taken = False
        ask = None if relay is None else relay.ask
        self.handlers = RequestHandlers(on_elicit, on_sample, roots, sample_tools=sample_tools, relay=ask)
        self.capabilities = self.handlers.capabilities()
        """The capabilities that the client declares itself."""
        if extensions:
            self.capabilities["extensions"] = _check_extensions(extensions)
        declared = self.capabilities if relay is None else {**relay.capabilities, **self.capabilities}
        self._cache = Cache()
        self._connection = ReconnectingSession(
            find(target, TransportOptions(env, cwd, headers, auth, self.limits)),
            ClientHello(era, declared, client_info or {"name": "longshore", "version": __version__}),
            ConnectionOptions(
                name=name,
                timeout=timeout,
                reconnect=reconnect and relay is None,
                limits=self.limits,
                on_log=relay.log if on_log is None and relay is not None else on_log,
                on_change=on_change,
                log_level=log_level,
            ),
            self.handlers,
            self._cache,
        )
        self.listing = ServerLists(self._connection.ask, self._connection.bad_answer, self._cache)
        self.name = self._connection.name

    # -- the connection

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self) -> None:
        """Connect. Raises ConnectError; a client that is open stays as it is."""
        if self._taken:
            raise ClientError("this client is mounted: its gateway opens it", self.name)
        await self._connection.open()

    async def close(self) -> None:
        """End the connection and everything that belongs to it."""
        try:
            await self._connection.watches.close()
        finally:  # also when this is cancelled: a child must not be left
            try:
                await self._connection.close()
            finally:
                await self.handlers.close()

    @property
    def server(self) -> ServerInfo:
        """The server's name, capabilities and revision. Known from the first connection on."""
        return self._connection.server

    @property
    def connected(self) -> bool:
        """Whether there is a connection now. A lost one is opened again when it is needed."""
        return self._connection.connected

    def stderr_tail(self) -> str:
        """The last lines that a child process printed on its stderr."""
        current = self._connection.current
        return "" if current is None else current.channel.stderr_tail()

    @property
    def left_out(self) -> list[str]:
        """Entries that were left out of lists, and why."""
        return list(self.listing.problems)

    @property
    def problems(self) -> list[str]:
        """Problems with the server's messages, and the entries that were left out of lists."""
        current = self._connection.current
        return [*self.listing.problems, *self.absent.values(), *(() if current is None else current.notes)]

    @property
    def absent(self) -> dict[str, str]:
        """Servers mounted behind this one that were not connected when its tools were listed: the reasons by prefix."""
        return dict(self.listing.absent)

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
        """Send any request and return its result as a plain object, even one that only asks for input.

        `safe`: the request may be sent again after a lost connection.
        """
        _check_progress(on_progress)

        async def send(headers: Headers = (), safe: bool = safe) -> Any:
            raw = await self._connection.send(
                method, params, timeout=timeout, progress=on_progress, headers=headers, safe=safe
            )
            return self._connection.read(read_object, raw)

        if method != "tools/call" or params is None:
            return await send()
        name = str(params.get("name"))
        safe = safe or (self.listing.repeatable(name) and "requestState" not in params)
        return await self._send_call(name, params.get("arguments") or {}, send, safe)

    async def _send_call(self, name: str, arguments: Any, send: Send[T], safe: bool) -> T:
        """Call a tool; again with the headers of a new list if those that repeat its arguments were refused."""
        try:
            return await send(self.listing.headers(name, arguments), safe)
        except ServerError as problem:
            if problem.code != HEADER_MISMATCH:
                raise
        await self.list_tools(fresh=True)
        return await send(self.listing.headers(name, arguments), False)

    async def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Send any notification, as soon as the server takes it."""
        session = await self._connection.session()
        if session.channel.congested:
            await session.wait_until_writable(method, self.timeout, session.clock.now())
        session.notify(method, params)

    # -- tools

    async def list_tools(self, *, fresh: bool = False) -> list[ToolInfo]:
        """All tools, from the cache where the server allows that, unless `fresh`."""
        session = await self._connection.session()
        if not self.server.can("tools"):
            return []
        by_header = session.channel.shared and session.envelope is not None
        return await self.listing.all_tools(by_header=by_header, fresh=fresh or not self._caching)

    @overload
    async def call_tool(
        self, name: str, arguments: Arguments = None, *, returns: type[T], **options: Unpack[CallOptions]
    ) -> T: ...
    @overload
    async def call_tool(
        self, name: str, arguments: Arguments = None, *, returns: None = None, **options: Unpack[CallOptions]
    ) -> Result: ...
    async def call_tool(
        self,
        name: str,
        arguments: Arguments = None,
        *,
        returns: Any = None,
        timeout: Any = DEFAULT,
        on_progress: Progress | None = None,
        check: bool = True,
        meta: Mapping[str, Any] | None = None,
    ) -> Any:
        """Call a tool. `returns` is the type of its result; a failed call raises ToolFailed, unless `check=False`."""
        _check_progress(on_progress)
        given: Mapping[str, Any] = {} if arguments is None else arguments
        params: dict[str, Any] = {"name": name, "arguments": given}
        if meta:
            params["_meta"] = {key: value for key, value in meta.items() if key != "progressToken"}  # ours to give

        def send(headers: Headers, safe: bool) -> Awaitable[dict[str, Any]]:
            return self._connection.complete(
                "tools/call", params, timeout=timeout, progress=on_progress, headers=headers, safe=safe
            )

        record = await self._send_call(name, given, send, self.listing.repeatable(name))
        result = self._connection.read(read_result, record)
        if result.is_error:
            if check:
                failed = ToolFailed(result.text or "the tool failed without a word", result)
                raise self._connection.locate(failed)
        elif self._validate:
            self.listing.check(name, result)
        return result if returns is None else self._connection.read(lambda each: as_type(each, returns), result)

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
        await self._connection.session()
        if not self.server.can(capability):
            return []
        return await self.listing.all(method, fresh=fresh or not self._caching)

    def pages(self, method: str) -> AsyncIterator[list[dict[str, Any]]]:
        """A list page by page, as it comes: `tools/list`, `resources/list`, `prompts/list` …"""
        return self.listing.pages(method, fresh=not self._caching)

    async def read_resource(self, uri: str, *, timeout: Any = DEFAULT, fresh: bool = False) -> list[Contents]:
        """Read a resource."""
        key = ("resources/read", uri)
        now = asyncio.get_running_loop().time
        record = None if fresh or not self._caching else self._cache.get(key, now())
        if record is None:
            since = self._cache.changes
            record = await self._connection.complete(
                "resources/read",
                {"uri": uri},
                timeout=timeout,
                safe=True,
                store=lambda record: self._cache.put(key, record, now(), since),
            )
        return self._connection.read(read_contents, record)

    async def get_prompt(
        self, name: str, arguments: Mapping[str, str] | None = None, *, timeout: Any = DEFAULT
    ) -> PromptResult:
        """Get a prompt with its arguments filled in."""
        params: dict[str, Any] = {"name": name}
        if arguments:
            params["arguments"] = dict(arguments)
        record = await self._connection.complete("prompts/get", params, timeout=timeout, safe=True)
        return self._connection.read(read_prompt, record)

    async def complete(
        self, ref: str, argument: str, value: str, context: Mapping[str, str] | None = None
    ) -> Completion:
        """Possible values of an argument of a prompt (`ref` is its name) or of a template (its URI)."""
        revision = (await self._connection.session()).revision
        if revision is not None and R2506 <= revision.index < R2607 and not self.server.can("completions"):
            raise self._connection.locate(ClientError("the server completes nothing: it has no completions"))
        is_uri = "://" in ref or "{" in ref  # not by a colon alone: prompts are named `team:review`, too
        about = {"type": "ref/resource", "uri": ref} if is_uri else {"type": "ref/prompt", "name": ref}
        params: dict[str, Any] = {"ref": about, "argument": {"name": argument, "value": value}}
        if context:
            params["context"] = {"arguments": dict(context)}
        return self._connection.read(read_completion, await self._connection.ask("completion/complete", params))

    # -- the rest

    async def ping(self) -> None:
        """Check that the server answers. The modern era has no ping, so `server/discover` is sent."""
        session = await self._connection.session()
        await self._connection.send("server/discover" if session.envelope is not None else "ping", None, safe=True)

    async def set_log_level(self, level: str) -> None:
        """Set the lowest level of the server's log messages that is wanted."""
        _check_level(level)
        await self._connection.set_log_level(level)

    async def set_roots(self, roots: Sequence[Any]) -> None:
        """Work in other folders than before. A server of the handshake era is notified."""
        check_roots(roots)
        session = await self._connection.session()
        if self.handlers.roots is None:
            raise ClientError("roots were not offered when the connection was made; give the client roots=", self.name)
        self.handlers.roots = roots
        if session.envelope is None:
            session.notify("notifications/roots/list_changed")

    def watch(
        self, *, tools: bool = False, resources: bool = False, prompts: bool = False, uris: Sequence[str] = ()
    ) -> Watch:
        """Watch for changes: `async with client.watch(tools=True) as changes: async for change in changes: …`."""
        kinds = [kind for kind, wanted in (("tools", tools), ("resources", resources), ("prompts", prompts)) if wanted]
        return Watch(self._connection.watches, kinds, uris)


def take_over(client: Client, relay: Relay) -> Client:
    """A client with the same settings, for a gateway. The given one can't be opened from then on."""
    if client._taken or not client._connection.closed:  # pyright: ignore[reportPrivateUsage]
        raise ClientError("the client is open or relayed already", client.name)
    client._taken = True  # pyright: ignore[reportPrivateUsage]
    arguments: dict[str, Any] = {**client._arguments, "relay": relay}  # pyright: ignore[reportPrivateUsage]
    return Client(**arguments)


def _check_progress(on_progress: Progress | None) -> None:
    if on_progress is not None:
        check_callbacks({"on_progress": on_progress})


def _check_level(level: str | None) -> None:
    if level is not None and level not in LOG_LEVELS:
        raise ValueError(f"no log level {level!r}; one of {', '.join(LOG_LEVELS)}")


def _check_extensions(extensions: Mapping[str, Any]) -> dict[str, Any]:
    for name in extensions:
        if not all(name.partition("/")):
            raise ValueError(f"an extension's name has a prefix, such as 'com.example/{name.strip('/')}', not {name!r}")
    return dict(extensions)
