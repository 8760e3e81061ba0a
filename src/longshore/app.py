"""The public `Server`: authors declare tools on it, and it puts the packages together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Never, TypeVar, Unpack, final, overload

from longshore.errors import LongshoreError
from longshore.registry.catalog import Catalog
from longshore.registry.function import check_form, check_uri, read_options, tool_entry, unknown_option
from longshore.registry.tool import Options, Tool, ToolOptions
from longshore.runtime import Runtime, check_no_loop, http_flags, is_inspected, needs_http
from longshore.server.context import Context
from longshore.server.policy import Admission, Policy, declare
from longshore.telemetry.recorder import Recorder

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager, AbstractContextManager

    from longshore.auth.verifiers import TokenVerifier
    from longshore.config import Config, ForeignConfig
    from longshore.config.sections import CatalogForm
    from longshore.limits import Limits
    from longshore.protocol.content import Icon
    from longshore.registry.resource import ResourceKeywords
    from longshore.registry.tool import Entry, OptionKeywords, ToolKeywords
    from longshore.registry.tool_lint import LintPolicy
    from longshore.registry.toolset import Toolset
    from longshore.server.engine import Engine
    from longshore.server.lifespan import Lifespan
    from longshore.server.middleware import Middleware
    from longshore.telemetry.recorder import Listener
    from longshore.transports.http.app import HttpApp

    LifespanFactory = Callable[["Server"], AbstractAsyncContextManager[Any] | AbstractContextManager[Any]]
    """Makes the context manager of a server's lifespan."""

F = TypeVar("F", bound=Callable[..., Any])


@final
class Server:
    """An MCP server.

    - Declare with `@app.tool`, `@app.resource(uri)`, `@app.prompt`; the functions come back unchanged.
    - `app.add_toolset(toolset)`, `app.add_tool(Tool(…), handler)`; all of it also while the server runs.
    - `app.run()` serves stdio until the client disconnects, `app.run(http=True)` HTTP.
    - `auth` says who may use it over HTTP: a token, keys of `[auth]` as a dict, or a `TokenVerifier`. It overrides the
      configuration.
    - `lifespan` is called with the server and returns a context manager; `ctx.lifespan` is what that yields. It is
      entered before the first call and left when the process ends, within `lifespan_seconds`.
    - `defaults` are configuration that files, variables and flags override: `{"server.timeout": 5}`.
    - `catalog` says how tools are listed: "full"; "search" or "code", where tools that find and call them stand in for
      them. `pinned` names tools that are listed in any case. The configuration overrides both.
    - `foreign` is the configuration of a program that the server replaces, which is read too.
    - `name`, `version`, `title`, `description`, `website_url` and `icons` are what clients show; `instructions` they
      may give to the model.
    - `limits` replaces the default limits. `standards` says what happens to a tool that breaks a lint rule: "warn",
      "refuse" or "off"; `waive` names rules that do not apply, with reasons; `categories` are the allowed categories.
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
        auth: str | Mapping[str, Any] | TokenVerifier | None = None,
        catalog: CatalogForm | None = None,
        pinned: Sequence[str] | None = None,
        lifespan: LifespanFactory | None = None,
        lifespan_seconds: float | None = None,
        defaults: Mapping[str, Any] | None = None,
        foreign: ForeignConfig | None = None,
        **unknown: Never,
    ) -> None:
        for option in unknown:
            raise unknown_option(option, Server.__init__.__kwdefaults__ or (), "Server")
        self.name = name
        self.version = version
        self.defaults: Mapping[str, Any] = defaults or {}
        self.foreign = foreign
        self.catalog = Catalog()
        self.recorder = Recorder()
        self.admission = Admission(name, self.catalog, self.recorder, standards, categories, waive)
        info: dict[str, Any] = {"name": name, "version": version}
        extra = {"title": title, "description": description, "websiteUrl": website_url, "icons": list(icons) or None}
        info.update({key: value for key, value in extra.items() if value is not None})
        check_form(catalog, "Server")
        policy = Policy(
            self.catalog, limits, instructions, catalog, pinned, self._read_lifespan(lifespan, lifespan_seconds)
        )
        self._runtime = Runtime(
            info,
            self.catalog,
            self.recorder,
            self.admission,
            policy,
            auth,
            self.defaults,
            foreign,
            self.add_indexed,
        )

    def _read_lifespan(self, make: LifespanFactory | None, seconds: float | None) -> Lifespan | None:
        if make is None:
            return None
        from longshore.server.lifespan import Lifespan

        return Lifespan(make, self, seconds, self.recorder.problem, self.catalog.entries_completed)

    # -- declaring

    @overload
    def tool(self, fn: F, /) -> F: ...
    @overload
    def tool(self, /, *, replace: bool = False, **options: Unpack[ToolKeywords]) -> Callable[[F], F]: ...
    def tool(self, fn: F | None = None, /, *, replace: bool = False, **options: Any) -> F | Callable[[F], F]:
        """Declare a tool. Its parameters, their descriptions and its result follow from the function."""
        made = read_options(ToolOptions, options, "@app.tool", fn)
        add: Callable[[F], F] = self._adding(lambda function: tool_entry(function, made, Context), replace)
        return add if fn is None else add(fn)

    def resource(self, uri: str, *, replace: bool = False, **options: Unpack[ResourceKeywords]) -> Callable[[F], F]:
        """Declare a resource at a URI, or at all URIs of a template: `@app.resource("weather://{city}/now")`."""
        from longshore.registry.resource import ResourceOptions, resource_entry

        check_uri(uri, "@app.resource")
        made = read_options(ResourceOptions, options, "@app.resource")
        return self._adding(lambda function: resource_entry(uri, function, made, Context), replace)

    @overload
    def prompt(self, fn: F, /) -> F: ...
    @overload
    def prompt(self, /, *, replace: bool = False, **options: Unpack[OptionKeywords]) -> Callable[[F], F]: ...
    def prompt(self, fn: F | None = None, /, *, replace: bool = False, **options: Any) -> F | Callable[[F], F]:
        """Declare a prompt. The function returns a text, a message, or a list of them."""
        from longshore.registry.prompt import prompt_entry

        made = read_options(Options, options, "@app.prompt", fn)
        add: Callable[[F], F] = self._adding(lambda function: prompt_entry(function, made, Context), replace)
        return add if fn is None else add(fn)

    def _adding(self, make: Callable[[Any], Entry], replace: bool) -> Callable[[F], F]:
        """A decorator that adds the entry of a function, and returns the function unchanged."""

        def add(function: F) -> F:
            declare(lambda: self.catalog.add(make(function), replace=replace))
            return function

        return add

    def completion(self, ref: str, argument: str) -> Callable[[F], F]:
        """Declare a completion for an argument of a prompt (by name) or a variable of a resource template (by URI)."""
        from longshore.registry.prompt import completion_entry

        def add(function: F) -> F:
            declare(lambda: self.catalog.add_completion(ref, argument, completion_entry(ref, argument, function)))
            return function

        return add

    def add_tool(self, tool: Tool, handler: Callable[..., Any], *, replace: bool = False) -> None:
        """Add a raw tool: the author's own schema, a handler of `(arguments, context)`, a whole result."""
        from longshore.registry.raw import raw_entry

        declare(lambda: self.catalog.add(raw_entry(tool, handler), replace=replace))

    def remove_tool(self, name: str) -> None:
        """Remove a tool."""
        self.catalog.remove_tool(name)

    def add_toolset(self, toolset: Toolset | type[Toolset], *, replace: bool = False) -> None:
        """Add a toolset, before the start or while the server runs.

        A class is initialised with its `Options`, when the configuration has been read; an instance is taken as it is.
        """
        before = list(self.catalog.toolsets.values())
        declare(lambda: self.catalog.add_toolset(toolset, Context, replace=replace, server=self))
        for old in before:
            if self.catalog.toolsets.get(old.name) is not old:
                self._runtime.close_removed(old)

    def add_indexed(self, path: str, *names: str) -> None:
        """Add the toolsets of an index, or those of these names. Each is imported when one of its tools is called."""
        from longshore.registry.toolset_index import LazyToolset, read_index

        for indexed in read_index(path):
            if not names or indexed.name in names:
                options, changed = self._runtime.toolset_options, self.catalog.entries_completed
                lazy = LazyToolset(indexed, Context, self, options, changed)
                self.catalog.add_declared(lazy.handle, lazy.entries)

    def remove_toolset(self, name: str) -> None:
        """Remove a toolset with all its tools, and close it."""
        self._runtime.remove_toolset(name)

    def enable(self, name: str) -> None:
        """Offer a tool or a toolset from now on, until the configuration changes. May be called from any thread."""
        self._runtime.policy.set_enabled(name, True)

    def disable(self, name: str) -> None:
        """Stop offering a tool or a toolset, as `enable` does. Calls in flight finish, and a toolset is not stopped."""
        self._runtime.policy.set_enabled(name, False)

    def adopt(self, other: Server) -> None:
        """Replace all declarations by those of another server, while this one runs. Sessions and the lifespan stay.

        Clients are notified that the lists have changed. Toolsets that were open are closed. Raises ConfigError if a
        toolset of the other server can't be initialised: then nothing is changed.
        """
        for handle in other.catalog.toolsets.values():
            handle.move(self)
        self._runtime.policy.adopt_middleware(other._runtime.policy)
        for old in self.catalog.adopt(other.catalog):
            self._runtime.close_removed(old)

    def reload(self, name: str) -> Toolset:
        """Import a toolset's module again, and replace the toolset by a new one.

        A toolset that was added as a class or from an index is made as at the start, an instance without arguments.
        """
        import importlib
        import sys

        old = self.catalog.toolset(name)
        if old.lazy is not None:
            old.lazy.load_now()
        cls = type(old.toolset)
        module = importlib.reload(sys.modules[cls.__module__])
        new: Any = getattr(module, cls.__name__)
        made: Toolset | type[Toolset] = new if old.by_class else new(self) if old.takes_server else new()
        handle = self.catalog.add_toolset(made, Context, replace=True, server=self)
        self._runtime.close_removed(old)
        return handle.toolset

    def mount(
        self,
        target: Any,
        *,
        prefix: str,
        timeout: float | Literal[False] | None = None,
        catalog: CatalogForm | None = None,
    ) -> None:
        """Mount another MCP server: its tools appear as `prefix_name`, and calls of them are passed on.

        `target` is a `Client(…)` that is not open, or anything that a client can connect to. The server is connected
        in the background, and started again when it dies. `catalog` says how its tools are listed, if otherwise than
        the server's own.
        """
        check_form(catalog, "mount")
        self._runtime.mount(target, prefix, timeout, catalog, self)

    def unmount(self, prefix: str) -> None:
        """Remove a mounted server with all that it offers, and close the connection to it."""
        self.remove_toolset(prefix)

    def add_middleware(self, middleware: Middleware) -> None:
        """Run middleware around requests, inside of those that were added before: the first one is the outermost."""
        self._runtime.policy.add_middleware(middleware)
        self.catalog.entries_completed()

    def resource_changed(self, uri: str) -> None:
        """Notify subscribers of this resource that it should be read again. May be called from any thread."""
        self._runtime.resource_changed(uri)

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Pass every telemetry record to a listener from now on; call the result to stop."""
        from longshore.registry.function import check_callback

        check_callback(listener, "listener", "record")
        return self.recorder.add(listener)

    def add_http_part(self, factory: str) -> None:
        """Serve something beside MCP over HTTP. `factory` is "module:name", imported when HTTP is served.

        It is called with the server's runtime and a `PartHost`, and makes an `HttpPart`.
        """
        self._runtime.http_parts.append(factory)

    def serve_http_beside_stdio(self) -> None:
        """Serve HTTP too, where stdio is served: with a token, on the configured port or a free one."""
        self._runtime.serves_beside = True

    def show_console(self) -> None:
        """Serve the web console at /console of HTTP, unless the configuration says otherwise."""
        self._runtime.shows_console = True

    # -- running

    @property
    def config(self) -> Config:
        """The configuration that applies now."""
        return self._runtime.policy.config

    @config.setter
    def config(self, config: Config) -> None:
        self._runtime.policy.config = config

    @property
    def acts_on_machine(self) -> bool:
        """Whether its tools act on this machine, so that nobody else may reach it and tools may not configure it.

        HTTP asks for a token then, also if none is configured. Configuration files that tools can write count only as
        the user has trusted them; so they do on every server with our toolsets for files, commands and browsers.
        """
        return self._runtime.acts_on_machine

    @acts_on_machine.setter
    def acts_on_machine(self, acts: bool) -> None:
        self._runtime.acts_on_machine = acts

    def load_config(self, path: str | None = None) -> Config:
        """The configuration that it would be served with here, without options. `path` replaces the project's file."""
        return self._runtime.load_config(path)

    @property
    def engine(self) -> Engine:
        """The engine that transports pass messages to, made on first use."""
        return self._runtime.engine

    def renew(self) -> None:
        """Drop every call, subscription and rate, as if no client had connected yet. Declarations stay."""
        self._runtime.renew()

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
        if is_inspected():
            return  # so that a file can be linted that calls run() without a guard around it
        check_no_loop()
        import os
        import sys

        from longshore.transports.descriptors import claim

        try:
            given = {
                name: value for name, value in {"host": host, "port": port, **settings}.items() if value is not None
            }
            if http:
                self.serve_http(flags={**http_flags(given), **(flags or {})}, config_path=config_path)
            elif given:
                raise needs_http(given)
            else:
                if os.isatty(0):
                    from longshore.transports.greeting import greet, script

                    greet(self.name, script())
                self.serve(*claim(), flags=flags, config_path=config_path)
        except LongshoreError as problem:
            sys.stderr.write(f"{problem}\n")
            raise SystemExit(problem.exit_code) from None

    def serve(
        self,
        reader: int,
        writer: int,
        *,
        flags: Mapping[str, Any] | None = None,
        config_path: str | None = None,
        http_option: str = "",
    ) -> None:
        """Serve on two file descriptors, as `run` does on stdin and stdout; over HTTP if the configuration says so.

        `http_option` names what was given for HTTP alone. It is refused where the configuration rules HTTP out.
        """
        self._runtime.serve(reader, writer, flags, config_path, http_option)

    def serve_http(self, *, flags: Mapping[str, Any] | None = None, config_path: str | None = None) -> None:
        """Serve over HTTP until a signal, with as many processes as the configuration says."""
        self._runtime.serve_http(flags, config_path)

    def asgi(self, *, config_path: str | None = None, **settings: Any) -> HttpApp:
        """MCP over HTTP as an ASGI app: mount it in another app, or give it to any ASGI server.

        `settings` are keys of `[http]`, and override the configuration: `app.asgi(hosts=["mcp.example.com"])`.
        """
        return self._runtime.asgi(config_path, settings)
