"""The public Server: what an author declares tools on, and the one place where the rooms are put together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast, final, overload

from longshore import config as configuration
from longshore.config import Config
from longshore.errors import ConfigError, LongshoreError
from longshore.limits import Limits
from longshore.offering import Admission, attempt, limit, offer
from longshore.registry.catalog import Catalog, Part
from longshore.registry.function import check_function, check_uri, read_options, tool_entry
from longshore.registry.tool import Effects, Json, Tool, ToolOptions
from longshore.server.context import Context
from longshore.server.dispatch import Engine
from longshore.telemetry.recorder import Listener, Recorder

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

    from longshore.mounting.mounts import Mounts
    from longshore.protocol.content import Annotations, Icon
    from longshore.registry.lint import Policy
    from longshore.registry.toolset import Toolset
    from longshore.transports.http.app import HttpApp

F = TypeVar("F", bound=Callable[..., Any])


@final
class Server:
    """An MCP server.

    - Declare with `@app.tool`, `@app.resource(uri)`, `@app.prompt`; the functions come back unchanged.
    - `app.add(toolset)`, `app.add_tool(Tool(…), handler)`; all of it also while the server runs.
    - `app.run()` serves stdio until the client leaves, `app.run(http=True)` HTTP.
    - `auth` is who may use it over HTTP: a token, or keys of `[auth]` as a dict. It wins over the configuration's.
    """

    def __init__(
        self,
        name: str,
        *,
        version: str = "0.0.0",
        title: str | None = None,
        description: str | None = None,
        website_url: str | None = None,
        icons: Sequence[Icon] = (),
        instructions: str | None = None,
        limits: Limits | None = None,
        standards: Policy = "warn",
        categories: Sequence[str] | None = None,
        waive: Mapping[str, str] | None = None,
        auth: str | Mapping[str, Any] | None = None,
    ) -> None:
        self.name = name
        self.version = version
        self.instructions = instructions
        self.catalog = Catalog()
        self.recorder = Recorder()
        self.admission = Admission(name, self.catalog, self.recorder, standards, categories, waive)
        self.asks_token = False
        """Whether, served over HTTP where nobody has configured a token, it makes one and asks for that."""
        self.config: Config = configuration.DEFAULT
        self._limits = limits
        self._auth = _auth_flags(auth)
        self._engine: Engine | None = None
        self._mounts: Mounts | None = None
        self._closing: set[Any] = set()
        self._late: set[Any] = set()
        """What closes toolsets and was given up, which has been told."""
        self._fingerprint: tuple[Any, ...] = ()
        self._info: dict[str, Any] = {"name": name, "version": version}
        extra = {"title": title, "description": description, "websiteUrl": website_url, "icons": list(icons) or None}
        self._info.update({key: value for key, value in extra.items() if value is not None})

    # -- declaring

    @overload
    def tool(self, fn: F, /) -> F: ...
    @overload
    def tool(
        self,
        /,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        category: str | None = None,
        tags: Sequence[str] = (),
        effects: Effects | None = None,
        idempotent: bool | None = None,
        open_world: bool | None = None,
        timeout: float | Literal[False] | None = None,
        run: Literal["thread", "inline"] | None = None,
        replay: bool = False,
        examples: Sequence[Any] = (),
        errors: Mapping[str, str] | None = None,
        output_schema: dict[str, Json] | None = None,
        annotations: Mapping[str, Json] | None = None,
        icons: Sequence[Icon] = (),
        meta: Mapping[str, Json] | None = None,
        scopes: Sequence[str] = (),
        help: str | None = None,
        aliases: Sequence[str] = (),
        earlier: Sequence[Callable[..., Any]] = (),
        waive: Mapping[str, str] | None = None,
        replace: bool = False,
    ) -> Callable[[F], F]: ...
    def tool(self, fn: F | None = None, /, *, replace: bool = False, **options: Any) -> F | Callable[[F], F]:
        """Declare a tool. Its parameters, their descriptions and its result follow from the function."""
        check_function(fn, "@app.tool")
        made = read_options(ToolOptions, options, "@app.tool(…)")

        def declare(function: F) -> F:
            attempt(lambda: self.catalog.add_tool(tool_entry(function, made, Context), replace=replace))
            return function

        return declare if fn is None else declare(fn)

    def resource(
        self,
        uri: str,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
        size: int | None = None,
        annotations: Annotations | None = None,
        icons: Sequence[Icon] = (),
        meta: Mapping[str, Json] | None = None,
        timeout: float | Literal[False] | None = None,
        run: Literal["thread", "inline"] | None = None,
        max_age: float = 0.0,
        replace: bool = False,
    ) -> Callable[[F], F]:
        """Declare a resource at a URI, or at all URIs of a template: `@app.resource("weather://{city}/now")`."""
        from longshore.registry.resource import ResourceOptions, make_resource

        check_uri(uri, "@app.resource")
        options = ResourceOptions(
            name=name,
            title=title,
            description=description,
            mime_type=mime_type,
            size=size,
            annotations=annotations,
            icons=icons,
            meta=meta,
            timeout=timeout,
            run=run,
            max_age=max_age,
        )

        def declare(function: F) -> F:
            attempt(lambda: self.catalog.add_resource(make_resource(uri, function, options, Context), replace=replace))
            return function

        return declare

    @overload
    def prompt(self, fn: F, /) -> F: ...
    @overload
    def prompt(
        self,
        /,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        icons: Sequence[Icon] = (),
        meta: Mapping[str, Json] | None = None,
        timeout: float | Literal[False] | None = None,
        run: Literal["thread", "inline"] | None = None,
        replace: bool = False,
    ) -> Callable[[F], F]: ...
    def prompt(self, fn: F | None = None, /, *, replace: bool = False, **options: Any) -> F | Callable[[F], F]:
        """Declare a prompt. Returns a text, a message, or a list of them."""
        from longshore.registry.prompt import PromptOptions, prompt_entry

        check_function(fn, "@app.prompt")
        made = read_options(PromptOptions, options, "@app.prompt(…)")

        def declare(function: F) -> F:
            attempt(lambda: self.catalog.add_prompt(prompt_entry(function, made, Context), replace=replace))
            return function

        return declare if fn is None else declare(fn)

    def completion(self, ref: str, argument: str) -> Callable[[F], F]:
        """Declare what completes an argument of a prompt (by its name) or a hole of a template (by its text)."""
        from longshore.registry.text_arguments import completion_entry

        def declare(function: F) -> F:
            attempt(lambda: self.catalog.add_completion(ref, argument, completion_entry(ref, argument, function)))
            return function

        return declare

    def add_tool(self, tool: Tool, handler: Callable[..., Any], *, replace: bool = False) -> None:
        """The raw level: the author's own schema, a handler of `(arguments, context)`, a whole result."""
        from longshore.registry.raw import raw_entry

        attempt(lambda: self.catalog.add_tool(raw_entry(tool, handler), replace=replace))

    def remove_tool(self, name: str) -> None:
        """Take a tool away."""
        self.catalog.remove_tool(name)

    def add(self, toolset: Toolset, *, replace: bool = False) -> None:
        """Add a toolset, before the start or while the server runs."""
        from longshore.registry.toolset import toolset_name

        old = self.catalog.toolsets.get(toolset_name(toolset))
        attempt(lambda: self.catalog.add_toolset(toolset, Context, replace=replace))
        if old is not None and self.catalog.toolsets.get(old.name) is not old:
            self._close_later(old)

    def remove(self, name: str) -> None:
        """Take a toolset and all its tools away, and close it."""
        self._close_later(self.catalog.remove_toolset(name))
        if self._mounts is not None and self._loop is not None:
            self.engine.executor.post(self._mounts.refit)
        elif self._mounts is not None:
            self._mounts.refit()

    def reload(self, name: str) -> Toolset:
        """Import a toolset's module again and put its class, made without arguments, in the old one's place."""
        import importlib
        import sys

        old = self.catalog.toolset(name)
        cls = type(old.toolset)
        module = importlib.reload(sys.modules[cls.__module__])
        new: Toolset = getattr(module, cls.__name__)()
        self.catalog.add_toolset(new, Context, replace=True)
        self._close_later(old)
        return new

    def mount(self, target: Any, *, prefix: str, timeout: float | Literal[False] | None = None) -> None:
        """Put another MCP server behind this one: its tools appear as `prefix_name`, and calls are passed on.

        `target` is a `Client(…)` that is not open, or whatever a client can be pointed at. It is connected to in the
        background, on its own time, and started again when it dies.
        """
        from longshore.mounting.mounts import Mounts

        if self._mounts is None:
            self._mounts = Mounts(
                self.catalog,
                self.recorder,
                lambda: self.engine.tools,
                self._limit,
                self.resource_changed,
                lambda entry, call: self.engine.guard(entry, call.link, call.frame),
            )
        self._mounts.add(target, prefix, timeout, self)
        self.catalog.pending_mounts = self._mounts
        loop = None if self._engine is None else self._engine.executor.loop
        if loop is not None and loop.is_running():
            loop.call_soon_threadsafe(self._mounts.start)

    def unmount(self, prefix: str) -> None:
        """Take a mounted server and all that it brought away, and end the connection to it."""
        self.remove(prefix)

    def resource_changed(self, uri: str) -> None:
        """Tell whoever watches this resource that it should be read again. May be called from any thread."""
        engine = self._engine
        if engine is not None:
            engine.executor.post(lambda: engine.resource_changed(uri))

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Hear every telemetry record from now on; call the result to stop."""
        from longshore.registry.arity import check_callback

        check_callback(listener, "listener", "record")
        return self.recorder.add(listener)

    # -- running

    @property
    def engine(self) -> Engine:
        """What transports hand messages to. Made when it is first wanted."""
        if self._engine is None:
            limits = configuration.limits_of(self.config, self._limits)
            self._engine = Engine(self.catalog, self._info, limits=limits, recorder=self.recorder)
            self._engine.changed_hook = self._offer
            self.catalog.changed = self._engine.changed
            self._apply(self.config)
        return self._engine

    def renew(self) -> None:
        """Forget every call, subscription and rate, as if nobody had connected yet. What is declared stays."""
        if self._engine is not None:
            self._engine.executor.dismiss_threads()
            self._engine = None

    def run(
        self,
        *,
        http: bool = False,
        host: str | None = None,
        port: int | None = None,
        flags: Mapping[str, Any] | None = None,
        config_path: str | None = None,
        **settings: Any,
    ) -> None:
        """Serve with the configuration that applies here: stdio until the client leaves, or HTTP until a signal.

        `app.run(http=True, port=8000, workers=2)`: `settings` are keys of `[http]`, over what the configuration says.
        """
        if _is_looked_at():
            return  # a file without a guard around this line can be looked at, too
        _check_no_loop()
        import os
        import sys

        from longshore.transports.descriptors import claim

        try:
            given = {
                name: value for name, value in {"host": host, "port": port, **settings}.items() if value is not None
            }
            if http:
                self.serve_http(flags={**_http_flags(given), **(flags or {})}, config_path=config_path)
            elif given:
                raise ConfigError(f"run: {', '.join(given)}: keys of [http] are for HTTP; write app.run(http=True, …)")
            else:
                if os.isatty(0):
                    from longshore.transports.greeting import greet, script

                    greet(self.name, script())
                self.serve(*claim(), flags=flags, config_path=config_path)
        except LongshoreError as problem:
            sys.stderr.write(f"{problem}\n")
            raise SystemExit(problem.exit_code) from None

    def serve(
        self, reader: int, writer: int, *, flags: Mapping[str, Any] | None = None, config_path: str | None = None
    ) -> None:
        """Serve on two file descriptors, as `run` does on stdin and stdout."""
        from longshore.transports.process import Process
        from longshore.transports.settling import import_asyncio, settle_in
        from longshore.transports.stdio import Stdio

        load = self._configure(flags, config_path)
        engine = self.engine
        process = Process(engine.limits)
        process.install()
        stdio = Stdio(engine, reader, writer)
        process.end_soon = stdio.end_soon
        stdio.own_threads = process.threads
        stdio.when_idle(lambda: settle_in(process, stdio))
        if any(entry.run != "inline" for entry in engine.tools.values()):
            stdio.when_idle(import_asyncio)
        if self.config.files or self._mounts is not None:
            stdio.when_idle(stdio.open_loop)
        stdio.when_looping(lambda loop: self._watch(load, loop))
        if self.config.tools or self.config.toolsets:
            stdio.when_idle(self._warn_unmatched)
        if self.admission.standards is not None:
            stdio.when_idle(self.admission.settle)
        try:
            stdio.run()
        finally:
            self._close(process)
        process.leave()

    def serve_http(self, *, flags: Mapping[str, Any] | None = None, config_path: str | None = None) -> None:
        """Serve over HTTP until a signal, with as many processes as the configuration says."""
        from longshore.transports.http_server.server import Served, serve_http

        load = self._configure(flags, config_path)
        served = Served(
            name=self.name,
            engine=self.engine,
            config=self.config,
            asks_token=self.asks_token,
            settle=self._settle,
            watch=lambda loop: self._watch(load, loop),
            close=self._close,
        )
        serve_http(served)

    def _configure(self, flags: Mapping[str, Any] | None, config_path: str | None) -> Callable[[], Config]:
        """Take the configuration over. Gives what loads it again."""

        def load() -> Config:
            return configuration.load({**self._auth, **(flags or {})}, path=config_path)

        self.config = config = load()
        # With no file there was nothing to ask the kernel for; each that comes is a change.
        self._fingerprint = configuration.fingerprint(config) if config.files else (None,) * len(config.watch)
        self._listen_on_stderr()
        return load

    def asgi(self, *, config_path: str | None = None, **settings: Any) -> HttpApp:
        """MCP over HTTP as an ASGI app: mount it in another app, or give it to any ASGI server.

        `settings` are keys of `[http]`, over what the configuration says: `app.asgi(hosts=["mcp.example.com"])`.
        """
        from longshore.transports.http.factory import make_app

        self.config = configuration.load({**self._auth, **_http_flags(settings)}, path=config_path)
        self._listen_on_stderr()
        self.admission.settle()
        http = make_app(self.engine, self.config)
        http.closing = self._close_toolsets
        return http

    async def _close_toolsets(self, seconds: float | None = None) -> None:
        """Close every toolset that was opened, whatever becomes of the others. What takes longer is left."""
        from asyncio import get_running_loop, wait

        holders = [holder for holder in self.catalog.toolsets.values() if holder.needs_closing]
        closing = {get_running_loop().create_task(self._close_one(holder)): holder.name for holder in holders}
        if not closing:
            return
        _, late = await wait(closing, timeout=seconds)
        if late:
            names = ", ".join(sorted(closing[task] for task in late))
            self.recorder.problem("warning", f"not closed within {seconds:.1f} s, so ended as it is: {names}")
            self._late |= late
            for task in late:
                task.cancel()
            await wait(late, timeout=seconds)

    def _listen_on_stderr(self) -> None:
        server = self.config.server

        def make() -> Listener:
            from longshore.telemetry.stderr import StderrSink

            return StderrSink(server.log_level, server.log_format)

        if self.config.telemetry.records and server.log_level in ("debug", "info", "notice"):
            self.recorder.add(make())
        else:
            self.recorder.fallback = make

    def _close(self, process: Any) -> None:
        from longshore.transports.settling import release_threads

        engine = self.engine
        loop = engine.executor.loop
        if any(holder.needs_closing for holder in self.catalog.toolsets.values()):
            import asyncio

            loop = loop or asyncio.new_event_loop()
            loop.run_until_complete(self._close_toolsets(engine.limits.stop_seconds / 3))
        process.end()
        if loop is not None and not loop.is_running():
            if self._mounts is not None:
                self._mounts.let_end(loop)
            loop.close()
        release_threads(process, engine.limits)
        self.admission.settle()

    def _close_later(self, holder: Any) -> None:
        holder.removed = True
        if not holder.needs_closing:
            return
        loop = self._loop
        if loop is None:
            import asyncio
            from threading import Thread

            # On a thread of its own: whoever calls this may have a loop that runs.
            closing = Thread(target=lambda: asyncio.run(self._close_one(holder)), daemon=True)
            closing.start()
            closing.join(configuration.limits_of(self.config, self._limits).stop_seconds)
        else:
            loop.call_soon_threadsafe(lambda: self._closing.add(loop.create_task(self._close_one(holder))))

    @property
    def _loop(self) -> AbstractEventLoop | None:
        """The loop that calls run on, unless there is none yet, or it has closed."""
        loop = self._engine.executor.loop if self._engine is not None else None
        return None if loop is None or loop.is_closed() else loop

    async def _close_one(self, holder: Any) -> None:
        from asyncio import CancelledError, current_task

        try:
            await holder.close()
        except (Exception, CancelledError) as problem:  # a stop that awaits what it has just cancelled raises that
            if current_task() not in self._late:
                self.recorder.problem("error", f"the toolset {holder.name!r} did not close", problem)
        finally:
            self._closing.discard(current_task())

    # -- configuration

    def _apply(self, config: Config) -> None:
        """Have the configuration hold: which tools are offered, and for how long each may run."""
        self.config = config
        engine = self.engine
        engine.replies.expose_errors = config.server.expose_errors
        engine.instructions = config.server.instructions or self.instructions
        engine.form = config.server.schemas
        self._offer(set())

    def _offer(self, _: set[Part]) -> None:
        self.engine.forget()
        self.engine.tools = offer(self.catalog, self.config, self._default_timeout)

    @property
    def _default_timeout(self) -> float:
        return configuration.limits_of(self.config, self._limits).timeout_seconds

    def _limit(self, name: str, toolset: str | None, declared: float | Literal[False] | None) -> float:
        """The seconds that a tool may run which is not in the catalog yet."""
        return limit(self.config, name, toolset, self._default_timeout if declared is None else declared)

    def _watch(self, load: Callable[[], Config], loop: Any) -> None:
        """Check the configuration files before requests other than calls, and every ten seconds.

        A file that can't be used changes nothing but the log.
        """
        from longshore.transports.settling import next_tick

        seen = self._fingerprint
        if self._mounts is not None:
            loop.call_soon(self._mounts.start)

        def look() -> None:
            nonlocal seen
            now = configuration.fingerprint(self.config)
            if now != seen:
                seen = now
                self._reload_config(load)

        def tick() -> None:
            loop.call_at(next_tick(loop.time()), tick)
            look()
            self.engine.executor.rest()

        loop.call_at(next_tick(loop.time()), tick)
        self.engine.before_request = look

    def _settle(self, told: bool) -> None:
        """Tell what is wrong at the start, unless another process has told it."""
        if not told:
            self._warn_unmatched()
        self.admission.settle(told)

    def _warn_unmatched(self) -> None:
        tools = [*self.catalog.tools, *(self._mounts.expected(self.config.tools) if self._mounts is not None else ())]
        for line in configuration.unmatched(self.config, tools, self.catalog.toolsets):
            self.recorder.problem("warning", line)

    def _reload_config(self, load: Callable[[], Config]) -> None:
        try:
            config = load()
        except ConfigError as problem:
            self.recorder.problem("error", f"the changed configuration can't be used, so the old one holds:\n{problem}")
            return
        before, old = set(self.engine.tools), self.config
        self._apply(config)
        self._warn_unmatched()
        if configuration.fixed_part(old) != configuration.fixed_part(config):
            later = "limits, eof_grace, log_*, telemetry, http, auth and tokens follow at the next start"
            self.recorder.problem("warning", f"the changed configuration holds; {later}")
        if set(self.engine.tools) != before or config.server.schemas != old.server.schemas:
            self.engine.changed({"tools"})


def _http_flags(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {f"http.{name}": value for name, value in settings.items()}


def _auth_flags(auth: Any) -> dict[str, Any]:
    if auth is None or isinstance(auth, str):
        return {} if auth is None else {"auth.token": auth}
    if isinstance(auth, Mapping):
        return {f"auth.{key}": value for key, value in cast("Mapping[str, Any]", auth).items()}
    raise TypeError(
        f"Server(auth=…) takes a token, or keys of [auth] as a dict, and this is a {type(auth).__name__}; "
        'write auth={"issuer": "https://…", "jwks": "https://…"}: docs/authorization.md has all keys'
    )


def _check_no_loop() -> None:
    """Raise where an event loop runs already: ours would start at the first call that needs one, and fail then."""
    import sys

    asyncio = sys.modules.get("asyncio")
    if asyncio is not None and asyncio._get_running_loop() is not None:
        raise RuntimeError(
            "app.run() starts an event loop of its own, and one is running here. Call it outside of async code, from "
            "a plain function; in a notebook or a test, connect in memory by Client(app); beside other async code, "
            "give app.asgi() to an ASGI server: await uvicorn.Server(uvicorn.Config(app.asgi())).serve()"
        )


def _is_looked_at() -> bool:
    """Whether somebody has loaded this server to see what is wrong with it, not to run it."""
    import sys

    standards = sys.modules.get("longshore.registry.lint")
    return standards is not None and standards.is_collecting()
