"""One server at run time: its engine, configuration, mounted servers, transports and their end."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, TypeGuard, cast, final

from msgspec import Struct, structs

from longshore import config as configuration
from longshore.config import Config, ForeignConfig
from longshore.config.load import ConfigWatch
from longshore.errors import ConfigError, LifespanFailed, RegistrationError
from longshore.registry.catalog import Catalog
from longshore.registry.source_location import refuse
from longshore.server.engine import Engine
from longshore.server.policy import CALL_TOOL, Admission, Policy
from longshore.telemetry.recorder import Recorder
from longshore.transports.descriptors import is_unattended

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Task

    from longshore.auth.verifiers import TokenVerifier
    from longshore.config.sections import CatalogForm
    from longshore.config.trust import TrustedEdits
    from longshore.mounting.mount import Mounts
    from longshore.protocol.dialect import Dialect
    from longshore.registry.toolset import ToolsetCloser, ToolsetHandle
    from longshore.telemetry.recorder import Listener
    from longshore.telemetry.sinks import Sinks
    from longshore.transports.http.app import HttpApp
    from longshore.transports.http.parts import PartFactory
    from longshore.transports.http_server.supervisor import Served


class ConfigFiles(Struct, frozen=True):
    """The files that settings are written to, and the defaults that hold where these say nothing."""

    project: str
    """The project's file, which need not exist."""
    foreign: ForeignConfig | None
    defaults: Mapping[str, Any]


CONSOLE: Final = "longshore.console.part:make_console"
"""The factory of the console, which is imported only where it is served."""

INDEX: Final = os.path.join(os.path.dirname(__file__), "toolsets", "index.json")
"""What `python -m longshore.builtin` writes of our toolsets, so that a start imports none of them."""
ANSWER_SECONDS: Final = 0.05
"""For the answers to calls that wait for a lifespan which can't be opened, before the process ends."""
FORM_TOOLSETS: Final = {"catalog": CALL_TOOL, "code": "run_code"}
"""The toolsets that find and call tools which are not listed, each with a tool that tells whether it is there."""


@final
class Runtime:
    """Serves the declarations of one `Server`."""

    def __init__(
        self,
        info: dict[str, Any],
        catalog: Catalog,
        recorder: Recorder,
        admission: Admission,
        policy: Policy,
        auth: str | Mapping[str, Any] | TokenVerifier | None,
        defaults: Mapping[str, Any],
        foreign: ForeignConfig | None,
        add_indexed: Callable[..., None],
    ) -> None:
        """`add_indexed` adds toolsets of an index to the server, by path and names."""
        self.policy = policy
        self.mounts: Mounts | None = None
        self._mounted: list[Runtime] = []
        """Those of mounted servers in this process."""
        self._info, self._catalog, self._recorder, self._admission = info, catalog, recorder, admission
        self._verifier = auth if _is_verifier(auth) else None
        self._auth = {} if self._verifier is not None else _auth_flags(auth)
        self._defaults, self._foreign, self._add_indexed = defaults, foreign, add_indexed
        self._given: Mapping[str, Any] | None = None
        """The flags; None: the server has not read any configuration."""
        self._path: str | None = None
        self._watch = ConfigWatch(self._reconfigure, self._refuse_config)
        self._engine: Engine | None = None
        self._made_closer: ToolsetCloser | None = None
        self._sinks: Sinks | None = None
        self.http_parts: list[str] = []
        """The factories of what HTTP serves beside MCP, each as "module:name"."""
        self.serves_beside = False
        """Whether HTTP is served beside stdio."""
        self.acts_on_machine = False
        """Whether its tools act on this machine: see `Server`."""
        self._lifespan_problem: LifespanFailed | None = None
        self.shows_console = False
        """Whether the console is among them, unless the configuration says otherwise."""

    @property
    def engine(self) -> Engine:
        """The engine, made on first use."""
        if self._engine is None:
            self._add_form_toolsets(self.policy.config)
            self._initialise(self._catalog.toolsets.values(), self.policy.config)
            self._catalog.prepare = lambda handle: self._initialise((handle,), self._read(handle))
            self._engine = Engine(
                self._catalog,
                self._info,
                self.policy,
                limits=self.policy.limits,
                recorder=self._recorder,
                dialect=self._load_dialect(),
                before_request=self._watch.check,
            )
            self._catalog.changed = self._engine.changed
        return self._engine

    def _add_form_toolsets(self, config: Config) -> bool:
        """Add the toolsets that find and call tools, if some tools are not to be listed. Raises ConfigError."""
        if not self.policy.uses_forms(config):
            return False
        tools = self._catalog.tools
        missing = [name for name, tool in FORM_TOOLSETS.items() if tool not in tools or not tools[tool].catalog_forms]
        try:
            for name in missing:
                self._add_indexed(INDEX, name)
        except RegistrationError as problem:
            what = "server.catalog needs tools and toolsets of names that are taken here"
            raise ConfigError(f'{what}: {problem.what}; give it another name, or keep catalog = "full"') from None
        return bool(missing)

    def _load_dialect(self) -> Dialect | None:
        name = self.policy.config.server.dialect
        if name is None:
            return None
        from longshore.dialects import load_dialect

        dialect, tools = load_dialect(name), self._catalog.dialect_tools
        return dialect if tools is None else structs.replace(dialect, tools=tools)

    def _initialise(self, handles: Iterable[ToolsetHandle], config: Config) -> None:
        """Initialise the enabled toolsets that were added as classes. Raises ConfigError for all problems at once."""
        problems: list[str] = []
        for handle in handles:
            enabled = configuration.toolset_enabled(config, handle.name, handle.toolset.enabled)
            try:
                if _reads_options(handle, config):
                    options: Any = handle.options_type
                    handle.options = configuration.toolset_options(config, handle.name, options)
                if enabled and not handle.initialised:
                    handle.initialise()
            except ConfigError as problem:
                handle.options = problem
                problems += [str(problem)] if enabled else []
        if problems:
            raise ConfigError("\n".join(problems))

    def toolset_options(self, name: str, options: type[Struct]) -> Struct:
        """The options of a toolset, from the configuration."""
        return configuration.toolset_options(self.policy.config, name, options)

    def renew(self) -> None:
        """Drop the engine with every call, subscription and rate. Declarations stay."""
        if self._engine is not None:
            self._engine.executor.dismiss_threads()
            self._engine = None

    @property
    def admission(self) -> Admission:
        """The standards that tools are checked against."""
        return self._admission

    @property
    def loop(self) -> AbstractEventLoop | None:
        """The open loop that calls run on."""
        loop = self._engine.executor.loop if self._engine is not None else None
        return None if loop is None or loop.is_closed() else loop

    def resource_changed(self, uri: str) -> None:
        """Notify subscribers of a resource. May be called from any thread."""
        engine = self._engine
        if engine is not None:
            engine.executor.post(lambda: engine.resource_changed(uri))

    # -- mounted servers

    def mount(
        self,
        target: Any,
        prefix: str,
        timeout: float | Literal[False] | None,
        form: CatalogForm | None,
        owner: object,
    ) -> None:
        """Mount a server, and connect to it if this one is running."""
        from longshore.mounting.mount import Mounts

        if self.mounts is None:
            self.mounts = Mounts(
                self._catalog, self._recorder, lambda: self.engine, self.policy.time_limit, self.resource_changed
            )
        self.mounts.add(target, prefix, timeout, form, owner)
        if isinstance(runtime := getattr(target, "_runtime", None), Runtime):
            self._mounted.append(runtime)
        self._catalog.pending_mounts = self.mounts
        if self._engine is not None:
            self._add_form_toolsets(self.policy.config)
        loop = None if self._engine is None else self._engine.executor.loop
        if loop is not None and loop.is_running():
            loop.call_soon_threadsafe(self.mounts.start)

    def remove_toolset(self, name: str) -> None:
        """Remove and close a toolset or a mounted server."""
        self.close_removed(self._catalog.remove_toolset(name))
        if self.mounts is not None and self.loop is not None:
            self.engine.executor.post(self.mounts.refit)
        elif self.mounts is not None:
            self.mounts.refit()

    # -- transports

    def serve(
        self,
        reader: int,
        writer: int,
        flags: Mapping[str, Any] | None,
        config_path: str | None,
        http_option: str,
    ) -> None:
        """Serve stdio on two file descriptors, or HTTP where the configuration says so."""
        self._configure(flags, config_path)
        transport = self.policy.config.server.transport
        if http_option and transport not in ("http", "auto"):
            raise ConfigError(f"{http_option} is for HTTP; add --http")
        if transport == "http" or (transport == "auto" and is_unattended(reader)):
            self._serve_http()
        else:
            self._serve_stdio(reader, writer)

    def _serve_stdio(self, reader: int, writer: int) -> None:
        from longshore.transports.process import Process, import_asyncio
        from longshore.transports.stdio import Stdio

        engine, config = self.engine, self.policy.config
        self.policy.report_unavailable(self._recorder)
        self._warn_untrusted()
        process = Process(engine.limits, self._extra_seconds)
        process.install()
        stdio = Stdio(engine, reader, writer, process)
        if any(entry.run != "inline" for entry in engine.tools.values()):
            stdio.when_idle(import_asyncio)
        if config.files or config.untrusted or self.mounts is not None:
            stdio.when_idle(stdio.open_loop)
        used = [entry for entry in engine.tools.values() if entry.shown or not entry.catalog_forms]
        for handle in dict.fromkeys(entry.toolset for entry in used):
            if handle is not None and handle.lazy is not None:
                stdio.when_quiet(handle.import_early)
        stdio.when_looping(self._start_watch)
        if self.policy.lifespan is not None:
            stdio.when_idle(stdio.open_loop)
            stdio.when_looping(partial(self._open_lifespan, end=stdio.end_soon))
        if self.serves_beside:
            from longshore.transports.http_server.beside import HttpBeside

            stdio.when_looping(HttpBeside(self._describe_served(True)).start)
            stdio.when_idle(stdio.open_loop)
        if config.tools or config.toolsets or self.policy.pinned or config.server.tags or config.server.exclude_tags:
            stdio.when_idle(self._warn_unmatched)
        if self._admission.standards is not None:
            stdio.when_idle(self._admission.report)
        try:
            stdio.run()
        finally:
            self._close(process, stdio.cancel_tasks)
        process.leave()
        if self._lifespan_problem is not None:
            raise self._lifespan_problem

    def _open_lifespan(self, loop: AbstractEventLoop, end: Callable[[], object]) -> None:
        """Open the lifespan. If that fails, end serving a moment later: calls that wait for it are answered first."""
        assert self.policy.lifespan is not None

        def opened(task: Task[None]) -> None:
            problem = None if task.cancelled() else task.exception()
            if isinstance(problem, LifespanFailed):
                self._lifespan_problem = problem
                loop.call_later(ANSWER_SECONDS, end)

        loop.create_task(self.policy.lifespan.open()).add_done_callback(opened)

    def serve_http(self, flags: Mapping[str, Any] | None, config_path: str | None) -> None:
        """Serve over HTTP, with as many processes as the configuration says."""
        self._configure(flags, config_path)
        self._serve_http()

    def _serve_http(self) -> None:
        from longshore.transports.http_server.supervisor import serve_http

        if self.policy.config.http.workers > 1 and (stateful := self.policy.stateful_toolsets()):
            raise needs_one_process(stateful, self.policy.config)
        serve_http(self._describe_served(self.acts_on_machine))

    def _describe_served(self, makes_token: bool) -> Served:
        """The parts of this server that HTTP needs."""
        from longshore.transports.http_server.supervisor import Served

        engine = self.engine
        return Served(
            name=self._info["name"],
            engine=engine,
            config=self.policy.config,
            makes_token=makes_token,
            console=self._has_console,
            verifier=self._verifier,
            parts=self._load_parts,
            report=self._report_start,
            watch=self._start_watch,
            close=self._close,
            extra_seconds=self._extra_seconds,
        )

    def asgi(self, config_path: str | None, settings: Mapping[str, Any]) -> HttpApp:
        """MCP over HTTP as an ASGI app."""
        from longshore.transports.http.app import HttpApp

        self._given, self._path = {**self._auth, **http_flags(settings)}, config_path
        self.policy.config = self._watch.load(self._read)
        log_to_stderr(self._recorder, self.policy.config)
        self._open_sinks()
        self._admission.report()
        engine, closing = self.engine, self._catalog.toolsets
        self.policy.report_unavailable(self._recorder)
        self._warn_untrusted()

        async def close() -> None:
            await self._closer.close_all(closing.values())
            if self.policy.lifespan is not None:
                await self.policy.lifespan.close(engine.limits.stop_seconds)
            if self._sinks is not None:
                from asyncio import to_thread

                await to_thread(self._sinks.flush)  # not closed: the app may start again

        parts, verifier = self._load_parts(), self._verifier
        return HttpApp(engine, self.policy.config, on_close=close, parts=parts, verifier=verifier)

    # -- what is served beside MCP

    @property
    def _has_console(self) -> bool:
        console = self.policy.config.http.console
        return self.shows_console if console is None else console

    def _load_parts(self) -> list[PartFactory]:
        """The factories of the parts, imported."""
        from longshore.transports.http.parts import load_factory

        names = [*self.http_parts, *([CONSOLE] if self._has_console else [])]
        return [partial(load_factory(name), self) for name in names]

    # -- configuration

    def _configure(self, flags: Mapping[str, Any] | None, config_path: str | None) -> None:
        self._given, self._path = {**self._auth, **(flags or {})}, config_path
        self.policy.config = self._watch.load(self._read)
        log_to_stderr(self._recorder, self.policy.config)
        self._open_sinks()

    def _open_sinks(self) -> None:
        """Write records where the configuration says, and to stderr in any case."""
        config = self.policy.config
        telemetry = config.telemetry
        self._recorder.keep(values=telemetry.values, traces=False)
        if secrets := _secrets_of(config):
            from longshore.telemetry import known_secrets

            known_secrets.add(secrets)
        if self._sinks is None and telemetry.records and (telemetry.file or telemetry.history or telemetry.otlp):
            from longshore.telemetry.sinks import Sinks

            self._sinks = Sinks(self._recorder, config, self._info["name"], self._info["version"])

    def config_files(self) -> ConfigFiles:
        """The files that settings are written to."""
        return ConfigFiles(configuration.project_file(self._path), self._foreign, self._defaults)

    def try_config(self, path: str | None, foreign_path: str | None) -> Config:
        """The configuration with other files in place of the project's and the other program's. Raises ConfigError."""
        foreign = self._foreign
        if foreign is not None and foreign_path is not None:
            foreign = structs.replace(foreign, path=foreign_path)
        return self._load(self._catalog.toolsets, path, foreign, is_trusted=True)

    def trusted_edits(self) -> TrustedEdits | None:
        """What to ask before a configuration file is changed, and to tell then. None: any may be changed."""
        if not self._needs_trust(self._catalog.toolsets):
            return None
        from longshore.config.trust import TrustedEdits

        return TrustedEdits(configuration.trust_file(), is_in_roots, self.policy.config.server.roots)

    def _needs_trust(self, toolsets: Mapping[str, ToolsetHandle]) -> bool:
        runtimes = [self]
        for runtime in runtimes:  # also those of servers that mount each other
            runtimes += [each for each in runtime._mounted if each not in runtimes]
        mounted = (handle for each in runtimes for handle in each._catalog.toolsets.values())
        return any(each.acts_on_machine for each in runtimes) or any(map(_is_ours, (*toolsets.values(), *mounted)))

    def reload_config(self) -> None:
        """Apply the configuration now if a file has changed, as is done before requests."""
        self._watch.look()

    def _read(self, *added: ToolsetHandle) -> Config:
        """Read the configuration of the toolsets that are there, and of those that are about to be."""

        def load() -> Config:
            toolsets = {**self._catalog.toolsets, **{handle.name: handle for handle in added}}
            return self._load(toolsets, self._path, self._foreign)

        config = load()
        # There may be options of the toolsets that a form of the catalogue has added.
        return load() if self._given is not None and self._add_form_toolsets(config) else config

    def _load(
        self,
        toolsets: Mapping[str, ToolsetHandle],
        path: str | None,
        foreign: ForeignConfig | None,
        is_trusted: bool = False,
    ) -> Config:
        if self._given is None:
            return self.policy.config  # a server in memory
        config = self._load_files(self._given, toolsets, path, foreign, is_trusted)
        if config.server.roots:
            from longshore.server.call_files import read_roots

            read_roots(config)  # raises ConfigError for a root that is no folder
        return config

    def load_config(self, path: str | None) -> Config:
        """The configuration that it would be served with here, without options."""
        return self._load_files({}, self._catalog.toolsets, path, self._foreign)

    def _load_files(
        self,
        flags: Mapping[str, Any],
        toolsets: Mapping[str, ToolsetHandle],
        path: str | None,
        foreign: ForeignConfig | None,
        is_trusted: bool = False,
    ) -> Config:
        return configuration.load(
            flags,
            path=path,
            toolsets=toolsets,
            defaults=self._defaults,
            defaults_name=f"server {self._info['name']}",
            foreign=foreign,
            is_writable=is_in_roots if self._needs_trust(toolsets) and not is_trusted else None,
        )

    def _start_watch(self, loop: Any) -> None:
        """Connect mounted servers, and check the configuration files before requests and every ten seconds."""
        from longshore.transports.process import next_tick

        if self.mounts is not None:
            loop.call_soon(self.mounts.start)
        self._watch.start()

        def tick() -> None:
            loop.call_at(next_tick(loop.time()), tick)
            self._watch.check()
            self.engine.executor.drop_idle_timer()

        loop.call_at(next_tick(loop.time()), tick)

    def _reconfigure(self, old: Config, new: Config) -> None:
        if new.untrusted != old.untrusted:
            self._warn_untrusted(new)
        self.engine.reconfigure(new)
        self._warn_unmatched()
        if configuration.fixed_part(old) != configuration.fixed_part(new):
            later = "limits, eof_grace, log_*, dialect, debug, toolsets' options, telemetry, http, auth and tokens"
            self._recorder.problem("warning", f"the changed configuration holds; {later} follow at the next start")

    def _refuse_config(self, problem: ConfigError) -> None:
        self._recorder.problem("error", f"the changed configuration can't be used, so the old one holds:\n{problem}")

    def _report_start(self, reported: bool) -> None:
        """Report problems of the configuration and the tools, unless another process has reported them."""
        if not reported:
            self._warn_unmatched()
            self._warn_untrusted()
        self._admission.report(reported)
        self.policy.report_unavailable(self._recorder, reported)

    def _warn_untrusted(self, config: Config | None = None) -> None:
        for text in (config or self.policy.config).untrusted.values():
            self._recorder.problem("warning", text)

    def _warn_unmatched(self) -> None:
        config = self.policy.config
        tools = [*self._catalog.tools, *(self.mounts.expected(config.tools) if self.mounts is not None else ())]
        grouped = [entry for entry in self._catalog.tools.values() if entry.group and entry.toolset is not None]
        pinned = [
            name for name in self.policy.pinned if self.mounts is None or name not in self.mounts.expected([name])
        ]
        groups = [(str(entry.toolset.name), entry.group or "") for entry in grouped]
        tags = {tag for entry in self._catalog.tools.values() for tag in entry.tags}
        for line in configuration.unmatched(config, tools, self._catalog.toolsets, groups, pinned, tags):
            self._recorder.problem("warning", line)

    # -- closing

    @property
    def _closer(self) -> ToolsetCloser:
        if self._made_closer is None:
            from longshore.registry.toolset import ToolsetCloser

            self._made_closer = ToolsetCloser(self._recorder.problem)
        return self._made_closer

    def close_removed(self, handle: ToolsetHandle) -> None:
        """Close a toolset that is no longer in the catalog."""
        self._closer.close_removed(handle, self.loop, self.policy.limits.stop_seconds)

    @property
    def _share(self) -> float:
        """The seconds for `stop` of a toolset that does not set its own. Two more shares are for what comes after."""
        return self.engine.limits.stop_seconds / 3

    def _extra_seconds(self, unopened: bool = False) -> float:
        """How much longer than their shares the slowest `stop` may take, of the toolsets that are open, or of all, and
        then the end of the lifespan.
        """
        handles = tuple(self._catalog.toolsets.values())
        own = [each.toolset.stop_seconds or 0.0 for each in handles if unopened or each.needs_closing]
        lifespan, share = self.policy.lifespan, self._share
        after = lifespan.seconds if lifespan is not None and (unopened or lifespan.needs_closing) else None
        return max([share, *own]) - share + max(share, after or 0.0) - share

    def _close(self, process: Any, cancel_tasks: Callable[[], None] = lambda: None) -> None:
        from longshore.transports.process import release_threads

        limits, loop = self.engine.limits, self.engine.executor.loop
        handles = list(self._catalog.toolsets.values())
        if any(handle.needs_closing for handle in handles):
            import asyncio

            loop = loop or asyncio.new_event_loop()
            loop.run_until_complete(self._closer.close_all(handles, self._share))
        if self.policy.lifespan is not None and self.policy.lifespan.needs_closing and loop is not None:
            loop.run_until_complete(self.policy.lifespan.close(self._share))
        cancel_tasks()
        process.end()
        if loop is not None and not loop.is_running():
            if self.mounts is not None:
                self.mounts.let_end(loop)
            loop.close()
        release_threads(process, limits)
        self._admission.report()
        if self._sinks is not None:
            self._sinks.close()


def _secrets_of(config: Config) -> list[str]:
    """The secrets that the configuration holds."""
    auth = config.auth
    found = [
        auth.token,
        auth.introspection_secret,
        config.http.state_key,
        *(each.token for each in config.tokens.values()),
    ]
    return [each for each in found if each]


def log_to_stderr(recorder: Recorder, config: Config) -> Callable[[], None]:
    """Write the log to stderr: every record, or problems alone, as configured. The result ends that."""

    def make() -> Listener:
        from longshore.telemetry.stderr import StderrSink

        sink = StderrSink(config.server.log_level, config.server.log_format)
        recorder.drops["stderr"] = lambda: sink.dropped
        return sink

    def stop() -> None:
        recorder.fallback = None

    if config.telemetry.records and config.server.log_level in ("debug", "info", "notice"):
        return recorder.add(make())
    recorder.fallback = make
    return stop


def is_in_roots(path: str, roots: Sequence[str]) -> bool:
    """The same as in `sandbox.roots`, which a start without a configuration does not import."""
    from longshore.sandbox.roots import is_in_roots

    return is_in_roots(path, roots)


def _is_ours(handle: ToolsetHandle) -> bool:
    """Whether it is one of our toolsets whose tools use the roots."""
    kinds = type(handle.toolset).__mro__  # an author may have made a subclass of ours
    modules = [each.__module__ for each in kinds] if handle.lazy is None else [handle.lazy.factory]
    return handle.toolset.uses_folders and any(module.startswith("longshore.toolsets.") for module in modules)


def _reads_options(handle: ToolsetHandle, config: Config) -> bool:
    """Whether there are options to read. Options of an index only if they may be wrong: reading imports their type."""
    if handle.lazy is None:
        return handle.options_type is not None
    return handle.lazy.needs_options or bool(configuration.toolset_config(config, handle.name).options)


def http_flags(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Keys of `[http]` as flags of the configuration."""
    return {f"http.{name}": value for name, value in settings.items()}


def needs_http(settings: Mapping[str, Any]) -> ConfigError:
    """The error for settings of `run` without `http=True`: the first that is no key of `[http]`, or all of them."""
    from longshore.config.keys import sections

    section = sections()["http"]
    for name in settings:
        if name not in section.keys:
            return ConfigError(f"http.{name}: {section.unknown(name)}")
    return ConfigError(f"run: {', '.join(settings)}: keys of [http] are for HTTP; write app.run(http=True, …)")


def needs_one_process(toolsets: list[str], config: Config) -> ConfigError:
    """The error for several workers with toolsets whose state lives in one process."""
    names, where = ", ".join(map(repr, toolsets)), configuration.origin(config, "http.workers").where
    off = "\n".join(f"    [toolsets.{name}]\n    enabled = false" for name in toolsets)
    return ConfigError(
        f"{where}: http.workers: {config.http.workers} processes can't share the state of {names}. Do one of these:\n"
        "- serve with one process: --workers 1, or in longshore.toml\n"
        "    [http]\n    workers = 1\n"
        f"- switch {names} off, in longshore.toml\n{off}\n"
        f"- serve {names} in a process of its own (--port 9101 --workers 1), "
        "switch it off here as above, and mount it:\n"
        f'    app.mount("http://127.0.0.1:9101/mcp", prefix="{toolsets[0]}")'
    )


def _is_verifier(auth: Any) -> TypeGuard[TokenVerifier]:
    """Whether it checks tokens. Raises RegistrationError for a verifier whose `verify` can't be awaited."""
    verify: Any = getattr(auth, "verify", None)
    if verify is None or isinstance(auth, type):
        return False
    if not verify.__code__.co_flags & 0x80:
        refuse(verify, "verify of a token verifier is async", "async def verify(self, token: str) -> Principal | None")
    return True


def _auth_flags(auth: Any) -> dict[str, Any]:
    if auth is None or isinstance(auth, str):
        return {} if auth is None else {"auth.token": auth}
    if isinstance(auth, Mapping):
        return {f"auth.{key}": value for key, value in cast("Mapping[str, Any]", auth).items()}
    raise TypeError(
        "Server(auth=…) takes a token, keys of [auth] as a dict, or an object with `async def verify`, and this is a "
        f"{'class' if isinstance(auth, type) else type(auth).__name__}; "
        'write auth={"issuer": "https://…", "jwks": "https://…"}: docs/authorization.md has all keys'
    )


def check_no_loop() -> None:
    """Raise if an event loop is running: ours would start at the first call that needs one, and fail then."""
    import sys

    asyncio = sys.modules.get("asyncio")
    if asyncio is not None and asyncio._get_running_loop() is not None:
        raise RuntimeError(
            "app.run() starts an event loop of its own, and one is running here. Call it outside of async code, from "
            "a plain function; in a notebook or a test, connect in memory by Client(app); beside other async code, "
            "give app.asgi() to an ASGI server: await uvicorn.Server(uvicorn.Config(app.asgi())).serve()"
        )


def is_inspected() -> bool:
    """Whether the author's file is loaded to be linted, not to be run."""
    import sys

    lint = sys.modules.get("longshore.registry.tool_lint")
    return lint is not None and lint.is_collecting()
