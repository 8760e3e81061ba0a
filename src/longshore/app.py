"""The public `Server`: authors declare tools on it, and it puts the packages together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Unpack, cast, final, overload

from longshore import config as configuration
from longshore.config import Config
from longshore.config.watch import ConfigWatch
from longshore.errors import ConfigError, LongshoreError
from longshore.limits import Limits
from longshore.registry.catalog import Catalog
from longshore.registry.function import check_function, check_uri, read_options, tool_entry
from longshore.registry.tool import Tool, ToolOptions
from longshore.server.context import Context
from longshore.server.engine import Engine
from longshore.server.policy import Admission, Policy, declare
from longshore.telemetry.recorder import Listener, Recorder

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

    from longshore.mounting.mount import Mounts
    from longshore.protocol.content import Icon
    from longshore.registry.decorator_keywords import PromptKeywords, ResourceKeywords, ToolKeywords
    from longshore.registry.tool_lint import LintPolicy
    from longshore.registry.toolset import Toolset, ToolsetCloser, ToolsetHandle
    from longshore.transports.http.app import HttpApp

F = TypeVar("F", bound=Callable[..., Any])


@final
class Server:
    """An MCP server.

    - Declare with `@app.tool`, `@app.resource(uri)`, `@app.prompt`; the functions come back unchanged.
    - `app.add(toolset)`, `app.add_tool(Tool(…), handler)`; all of it also while the server runs.
    - `app.run()` serves stdio until the client disconnects, `app.run(http=True)` HTTP.
    - `auth` says who may use it over HTTP: a token, or keys of `[auth]` as a dict. It overrides the configuration.
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
        standards: LintPolicy = "warn",
        categories: Sequence[str] | None = None,
        waive: Mapping[str, str] | None = None,
        auth: str | Mapping[str, Any] | None = None,
    ) -> None:
        self.name = name
        self.version = version
        self.catalog = Catalog()
        self.recorder = Recorder()
        self.admission = Admission(name, self.catalog, self.recorder, standards, categories, waive)
        self.asks_token = False
        """Whether it makes a token and asks for it, where HTTP is served without a configured one."""
        self._policy = Policy(self.catalog, limits, instructions)
        self._watch = ConfigWatch(self._reconfigure, self._refuse_config)
        self._auth = _auth_flags(auth)
        self._engine: Engine | None = None
        self._mounts: Mounts | None = None
        self._made_closer: ToolsetCloser | None = None
        self._info: dict[str, Any] = {"name": name, "version": version}
        extra = {"title": title, "description": description, "websiteUrl": website_url, "icons": list(icons) or None}
        self._info.update({key: value for key, value in extra.items() if value is not None})

    # -- declaring

    @overload
    def tool(self, fn: F, /) -> F: ...
    @overload
    def tool(self, /, *, replace: bool = False, **options: Unpack[ToolKeywords]) -> Callable[[F], F]: ...
    def tool(self, fn: F | None = None, /, *, replace: bool = False, **options: Any) -> F | Callable[[F], F]:
        """Declare a tool. Its parameters, their descriptions and its result follow from the function."""
        check_function(fn, "@app.tool")
        made = read_options(ToolOptions, options, "@app.tool(…)")

        def add(function: F) -> F:
            declare(lambda: self.catalog.add_tool(tool_entry(function, made, Context), replace=replace))
            return function

        return add if fn is None else add(fn)

    def resource(self, uri: str, *, replace: bool = False, **options: Unpack[ResourceKeywords]) -> Callable[[F], F]:
        """Declare a resource at a URI, or at all URIs of a template: `@app.resource("weather://{city}/now")`."""
        from longshore.registry.resource import ResourceOptions, make_resource

        check_uri(uri, "@app.resource")
        made = read_options(ResourceOptions, options, "@app.resource(…)")

        def add(function: F) -> F:
            declare(lambda: self.catalog.add_resource(make_resource(uri, function, made, Context), replace=replace))
            return function

        return add

    @overload
    def prompt(self, fn: F, /) -> F: ...
    @overload
    def prompt(self, /, *, replace: bool = False, **options: Unpack[PromptKeywords]) -> Callable[[F], F]: ...
    def prompt(self, fn: F | None = None, /, *, replace: bool = False, **options: Any) -> F | Callable[[F], F]:
        """Declare a prompt. The function returns a text, a message, or a list of them."""
        from longshore.registry.prompt import PromptOptions, prompt_entry

        check_function(fn, "@app.prompt")
        made = read_options(PromptOptions, options, "@app.prompt(…)")

        def add(function: F) -> F:
            declare(lambda: self.catalog.add_prompt(prompt_entry(function, made, Context), replace=replace))
            return function

        return add if fn is None else add(fn)

    def completion(self, ref: str, argument: str) -> Callable[[F], F]:
        """Declare a completion for an argument of a prompt (by name) or a variable of a resource template (by URI)."""
        from longshore.registry.text_arguments import completion_entry

        def add(function: F) -> F:
            declare(lambda: self.catalog.add_completion(ref, argument, completion_entry(ref, argument, function)))
            return function

        return add

    def add_tool(self, tool: Tool, handler: Callable[..., Any], *, replace: bool = False) -> None:
        """Add a raw tool: the author's own schema, a handler of `(arguments, context)`, a whole result."""
        from longshore.registry.raw import raw_entry

        declare(lambda: self.catalog.add_tool(raw_entry(tool, handler), replace=replace))

    def remove_tool(self, name: str) -> None:
        """Remove a tool."""
        self.catalog.remove_tool(name)

    def add(self, toolset: Toolset, *, replace: bool = False) -> None:
        """Add a toolset, before the start or while the server runs."""
        from longshore.registry.toolset import toolset_name

        old = self.catalog.toolsets.get(toolset_name(toolset))
        declare(lambda: self.catalog.add_toolset(toolset, Context, replace=replace))
        if old is not None and self.catalog.toolsets.get(old.name) is not old:
            self._close_removed(old)

    def remove(self, name: str) -> None:
        """Remove a toolset with all its tools, and close it."""
        self._close_removed(self.catalog.remove_toolset(name))
        if self._mounts is not None and self._loop is not None:
            self.engine.executor.post(self._mounts.refit)
        elif self._mounts is not None:
            self._mounts.refit()

    def reload(self, name: str) -> Toolset:
        """Import a toolset's module again, and replace the toolset by a new one, made without arguments."""
        import importlib
        import sys

        old = self.catalog.toolset(name)
        cls = type(old.toolset)
        module = importlib.reload(sys.modules[cls.__module__])
        new: Toolset = getattr(module, cls.__name__)()
        self.catalog.add_toolset(new, Context, replace=True)
        self._close_removed(old)
        return new

    def mount(self, target: Any, *, prefix: str, timeout: float | Literal[False] | None = None) -> None:
        """Mount another MCP server: its tools appear as `prefix_name`, and calls of them are passed on.

        `target` is a `Client(…)` that is not open, or anything that a client can connect to. The server is connected
        in the background, and started again when it dies.
        """
        from longshore.mounting.mount import Mounts

        if self._mounts is None:
            self._mounts = Mounts(
                self.catalog,
                self.recorder,
                lambda: self.engine.tools,
                self._policy.time_limit,
                self.resource_changed,
                lambda entry, call: self.engine.guard(entry, call.link, call.frame),
            )
        self._mounts.add(target, prefix, timeout, self)
        self.catalog.pending_mounts = self._mounts
        loop = None if self._engine is None else self._engine.executor.loop
        if loop is not None and loop.is_running():
            loop.call_soon_threadsafe(self._mounts.start)

    def unmount(self, prefix: str) -> None:
        """Remove a mounted server with all that it offers, and close the connection to it."""
        self.remove(prefix)

    def resource_changed(self, uri: str) -> None:
        """Notify subscribers of this resource that it should be read again. May be called from any thread."""
        engine = self._engine
        if engine is not None:
            engine.executor.post(lambda: engine.resource_changed(uri))

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Pass every telemetry record to a listener from now on; call the result to stop."""
        from longshore.registry.arity import check_callback

        check_callback(listener, "listener", "record")
        return self.recorder.add(listener)

    # -- running

    @property
    def config(self) -> Config:
        return self._policy.config

    @config.setter
    def config(self, config: Config) -> None:
        self._policy.config = config

    @property
    def engine(self) -> Engine:
        """The engine that transports pass messages to, made on first use."""
        if self._engine is None:
            self._engine = Engine(
                self.catalog,
                self._info,
                self._policy,
                limits=self._policy.limits,
                recorder=self.recorder,
                before_request=self._watch.check,
            )
            self.catalog.changed = self._engine.changed
        return self._engine

    def renew(self) -> None:
        """Drop every call, subscription and rate, as if no client had connected yet. Declarations stay."""
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
        """Serve with the configuration that applies here: stdio until the client disconnects, or HTTP until a signal.

        `app.run(http=True, port=8000, workers=2)`: `settings` are keys of `[http]`, and override the configuration.
        """
        if _is_inspected():
            return  # so that a file can be linted that calls run() without a guard around it
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
        from longshore.transports.process import Process, import_asyncio
        from longshore.transports.stdio import Stdio

        self._configure(flags, config_path)
        engine = self.engine
        process = Process(engine.limits)
        process.install()
        stdio = Stdio(engine, reader, writer, process)
        if any(entry.run != "inline" for entry in engine.tools.values()):
            stdio.when_idle(import_asyncio)
        if self.config.files or self._mounts is not None:
            stdio.when_idle(stdio.open_loop)
        stdio.when_looping(self._start_watch)
        if self.config.tools or self.config.toolsets:
            stdio.when_idle(self._warn_unmatched)
        if self.admission.standards is not None:
            stdio.when_idle(self.admission.report)
        try:
            stdio.run()
        finally:
            self._close(process)
        process.leave()

    def serve_http(self, *, flags: Mapping[str, Any] | None = None, config_path: str | None = None) -> None:
        """Serve over HTTP until a signal, with as many processes as the configuration says."""
        from longshore.transports.http_server.server import Served, serve_http

        self._configure(flags, config_path)
        served = Served(
            name=self.name,
            engine=self.engine,
            config=self.config,
            asks_token=self.asks_token,
            settle=self._report_start,
            watch=self._start_watch,
            close=self._close,
        )
        serve_http(served)

    def asgi(self, *, config_path: str | None = None, **settings: Any) -> HttpApp:
        """MCP over HTTP as an ASGI app: mount it in another app, or give it to any ASGI server.

        `settings` are keys of `[http]`, and override the configuration: `app.asgi(hosts=["mcp.example.com"])`.
        """
        from longshore.transports.http.factory import make_app

        self.config = configuration.load({**self._auth, **_http_flags(settings)}, path=config_path)
        self._log_to_stderr()
        self.admission.report()
        return make_app(
            self.engine, self.config, on_close=lambda: self._closer.close_all(self.catalog.toolsets.values())
        )

    # -- configuration

    def _configure(self, flags: Mapping[str, Any] | None, config_path: str | None) -> None:
        self.config = self._watch.load(lambda: configuration.load({**self._auth, **(flags or {})}, path=config_path))
        self._log_to_stderr()

    def _log_to_stderr(self) -> None:
        server = self.config.server

        def make() -> Listener:
            from longshore.telemetry.stderr import StderrSink

            return StderrSink(server.log_level, server.log_format)

        if self.config.telemetry.records and server.log_level in ("debug", "info", "notice"):
            self.recorder.add(make())
        else:
            self.recorder.fallback = make

    def _start_watch(self, loop: Any) -> None:
        """Connect mounted servers, and check the configuration files before requests and every ten seconds."""
        from longshore.transports.process import next_tick

        if self._mounts is not None:
            loop.call_soon(self._mounts.start)
        self._watch.start()

        def tick() -> None:
            loop.call_at(next_tick(loop.time()), tick)
            self._watch.check()
            self.engine.executor.drop_idle_timer()

        loop.call_at(next_tick(loop.time()), tick)

    def _reconfigure(self, old: Config, new: Config) -> None:
        self.engine.reconfigure(new)
        self._warn_unmatched()
        if configuration.fixed_part(old) != configuration.fixed_part(new):
            later = "limits, eof_grace, log_*, telemetry, http, auth and tokens follow at the next start"
            self.recorder.problem("warning", f"the changed configuration holds; {later}")

    def _refuse_config(self, problem: ConfigError) -> None:
        self.recorder.problem("error", f"the changed configuration can't be used, so the old one holds:\n{problem}")

    def _report_start(self, reported: bool) -> None:
        """Report problems of the configuration and the tools, unless another process has reported them."""
        if not reported:
            self._warn_unmatched()
        self.admission.report(reported)

    def _warn_unmatched(self) -> None:
        tools = [*self.catalog.tools, *(self._mounts.expected(self.config.tools) if self._mounts is not None else ())]
        for line in configuration.unmatched(self.config, tools, self.catalog.toolsets):
            self.recorder.problem("warning", line)

    # -- closing

    @property
    def _loop(self) -> AbstractEventLoop | None:
        """The open loop that calls run on."""
        loop = self._engine.executor.loop if self._engine is not None else None
        return None if loop is None or loop.is_closed() else loop

    @property
    def _closer(self) -> ToolsetCloser:
        if self._made_closer is None:
            from longshore.registry.toolset import ToolsetCloser

            self._made_closer = ToolsetCloser(self.recorder.problem)
        return self._made_closer

    def _close_removed(self, handle: ToolsetHandle) -> None:
        self._closer.close_removed(handle, self._loop, self._policy.limits.stop_seconds)

    def _close(self, process: Any) -> None:
        from longshore.transports.process import release_threads

        limits, loop = self.engine.limits, self.engine.executor.loop
        handles = list(self.catalog.toolsets.values())
        if any(handle.needs_closing for handle in handles):
            import asyncio

            loop = loop or asyncio.new_event_loop()
            loop.run_until_complete(self._closer.close_all(handles, limits.stop_seconds / 3))
        process.end()
        if loop is not None and not loop.is_running():
            if self._mounts is not None:
                self._mounts.let_end(loop)
            loop.close()
        release_threads(process, limits)
        self.admission.report()


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


def _is_inspected() -> bool:
    """Whether the file is loaded to be linted, not to be run."""
    import sys

    lint = sys.modules.get("longshore.registry.tool_lint")
    return lint is not None and lint.is_collecting()
