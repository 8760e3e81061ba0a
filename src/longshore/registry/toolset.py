"""Toolsets: tools that share state. The state is opened when one of them is first used."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar, Unpack, cast, final, overload

from msgspec import Struct

from longshore.errors import ConfigError, RegistrationError, ToolError
from longshore.registry.function import check_callback, check_uri, read_arity, read_options, tool_entry
from longshore.registry.source_location import caller, refuse
from longshore.registry.tool import Entry, Options, ToolOptions

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future

    from longshore.registry.resource import ResourceKeywords
    from longshore.registry.tool import OptionKeywords, ToolKeywords
    from longshore.registry.toolset_index import LazyToolset
    from longshore.registry.views import View
    from longshore.registry.watch_hooks import Spawn, WatchHooks

F = TypeVar("F", bound=Callable[..., Any])
_MARK = "__longshore__"
_HOOKS: dict[str, tuple[str, ...]] = {
    "start": (),
    "stop": (),
    "available": (),
    "warm_up": (),
    "check_watch": ("uri",),
    "watched": ("uri",),
    "unwatched": ("uri",),
}
"""The methods that the server calls, and their parameters."""


class Toolset:
    """A group of tools with state on `self`.

    - Methods marked with `@tool`, `@resource(…)` and `@prompt` are what it offers.
    - `start` is called once, when one of them is first used; `stop` when the toolset is removed or the server ends.
      Both may be `def` or `async def`.
    - `status` returns what `server_status` shows of it, `views` what it has open, for the console.
    - `Options` is the Struct that `[toolsets.NAME]`, variables and flags fill. `app.add_toolset` of the class calls
      `__init__` with it when the configuration has been read, before anything starts; without `Options`, with nothing.
      If it takes a second argument, that is the server.
    - `watched(uri)` is called when the first client begins to watch one of its resources, `unwatched(uri)` when the
      last has ceased. `check_watch(uri)` is called before each watch, and refuses it by raising ToolError. All three
      may be `def` or `async def`.
    - `warm_up` is called when a toolset of an index was imported while the client was silent. It may block; what it
      prepares, the first call need not. Nothing may depend on it.
    - `available` returns None, or why it can't run here and what to install or set. It is asked once, before anything
      is offered; a toolset that can't run is neither listed nor started.
    """

    name: ClassVar[str] = ""
    """The name that configuration and lists have it by."""
    Options: ClassVar[type[Struct] | None] = None
    """The record of its options."""
    enabled: ClassVar[bool] = True
    """False: its tools are off until `[toolsets.NAME] enabled = true`."""
    stateful: ClassVar[bool] = False
    """Whether its state lives in one process, so that `--workers` above 1 is refused."""
    stop_seconds: ClassVar[float | None] = None
    """How long `stop` may take before it is cancelled. None: its share of `limits.stop_seconds`."""
    uses_folders: ClassVar[bool] = False
    """Whether its tools touch the server's folders (`ctx.folders()`): `hello` and `server_status` then name them."""

    def available(self) -> str | None:
        """Why it can't run here, and what to install or set; None if it can."""
        return None

    def warm_up(self) -> None:
        """Prepare what the first call would have to, while the client is silent."""

    def start(self) -> Awaitable[None] | None:
        """Open its state: called once, before anything of it is used."""
        return None

    def stop(self) -> Awaitable[None] | None:
        """Close its state: called when it is removed or the server ends."""
        return None

    def check_watch(self, uri: str) -> Awaitable[None] | None:  # noqa: ARG002
        """Called before a client subscribes to one of its resources. Raises ToolError to refuse it."""
        return None

    def watched(self, uri: str) -> Awaitable[None] | None:  # noqa: ARG002
        """Called when the first client subscribes to one of its resources."""
        return None

    def unwatched(self, uri: str) -> Awaitable[None] | None:  # noqa: ARG002
        """Called when the last subscription to one of its resources has ended."""
        return None

    def status(self) -> dict[str, Any]:
        """What `server_status` shows of it."""
        return {}

    def views(self) -> Sequence[View]:
        """What it has open, for the console."""
        return ()


class Mark(Struct, frozen=True):
    """The declaration that a decorator attaches to a method."""

    kind: Literal["tool", "resource", "prompt"]
    options: Any
    uri: str = ""


@overload
def tool(fn: F, /) -> F: ...
@overload
def tool(**options: Unpack[ToolKeywords]) -> Callable[[F], F]: ...
def tool(fn: F | None = None, /, **options: Any) -> F | Callable[[F], F]:
    """Mark a method of a toolset as a tool, with the options of `@app.tool`."""
    return cast(F, _marking(fn, Mark("tool", read_options(ToolOptions, options, "@tool", fn))))


@overload
def prompt(fn: F, /) -> F: ...
@overload
def prompt(**options: Unpack[OptionKeywords]) -> Callable[[F], F]: ...
def prompt(fn: F | None = None, /, **options: Any) -> F | Callable[[F], F]:
    """Mark a method of a toolset as a prompt, with the options of `@app.prompt`."""
    return cast(F, _marking(fn, Mark("prompt", read_options(Options, options, "@prompt", fn))))


def resource(uri: str, **options: Unpack[ResourceKeywords]) -> Callable[[F], F]:
    """Mark a method of a toolset as a resource, with the options of `@app.resource`."""
    from longshore.registry.resource import ResourceOptions

    check_uri(uri, "@resource")
    made = read_options(ResourceOptions, options, "@resource")
    return cast(Callable[[F], F], _marking(None, Mark("resource", made, uri)))


def _marking(fn: Callable[..., Any] | None, mark: Mark) -> Any:
    def attach(function: Any) -> Any:
        setattr(function, _MARK, mark)
        return function

    return attach if fn is None else attach(fn)


def make_entries(handle: ToolsetHandle, context_type: type) -> Iterator[Entry]:
    """The entries of the marked methods, in the order in which they are written."""
    cls = type(handle.toolset)
    seen: set[str] = set()
    for name in [name for each in reversed(cls.__mro__) for name in each.__dict__]:
        # Not by `getattr` of the toolset: the attribute may be a property with side effects.
        written: Any = next(each.__dict__[name] for each in cls.__mro__ if name in each.__dict__)
        mark = getattr(written, _MARK, None) or getattr(getattr(written, "__func__", None), _MARK, None)
        if name in seen or not isinstance(mark, Mark):
            continue
        seen.add(name)
        try:
            entry = _make_entry(mark, getattr(handle.toolset, name), context_type)
        except RegistrationError as problem:
            from longshore.registry.tool_lint import collect

            if not collect(problem):
                raise
            continue
        entry.toolset = handle
        yield entry


def _make_entry(mark: Mark, method: Any, context_type: type) -> Entry:
    if mark.kind == "tool":
        return tool_entry(method, mark.options, context_type)
    if mark.kind == "prompt":
        from longshore.registry.prompt import prompt_entry

        return prompt_entry(method, mark.options, context_type)
    from longshore.registry.resource import resource_entry

    return resource_entry(mark.uri, method, mark.options, context_type)


@final
class ToolsetHandle:
    """A toolset in a server: whether its state is open, and how to open it once for concurrent calls."""

    def __init__(
        self,
        toolset: Toolset | type[Toolset],
        name: str = "",
        *,
        lazy: LazyToolset | None = None,
        watch: Callable[[frozenset[str]], None] | None = None,
        server: object = None,
    ) -> None:
        """A class is allocated only, so that its methods can be declared; `initialise` follows.

        `watch` takes the resources of it that clients watch, in place of the hooks of the toolset.
        """
        self.initialised = isinstance(toolset, Toolset)
        self.by_class = not self.initialised
        """Whether it is made from its class and the configuration."""
        self.takes_server = False
        """Whether it is made with the server: one of an index without options."""
        self.toolset = toolset = toolset if isinstance(toolset, Toolset) else toolset.__new__(toolset)
        self.name = name or toolset_name(toolset)
        self._server = server
        self.lazy = lazy
        """How to import a toolset that is declared from an index; None once it is imported."""
        self._options_type = type(toolset).Options if self.by_class else None
        self.options: Struct | ConfigError | None = None
        """What `initialise` gives to the toolset, or why there is nothing to give."""
        self.variables: Mapping[str, str] = {} if self._options_type is None else _read_variables(self)
        """Variables beside our own that set an option, each with the option's name."""
        self.stateless = self.initialised and type(toolset).start is Toolset.start
        """Whether there is nothing to open, so that it is always ready."""
        self.ready = self.stateless
        own = [name for name in _HOOKS if getattr(type(toolset), name) is not getattr(Toolset, name)]
        for hook in own:
            check_callback(getattr(toolset, hook), hook, *_HOOKS[hook])
        self.is_told_of_watches = watch is not None or "watched" in own or "unwatched" in own
        self._watch = watch
        self._hooks: WatchHooks | None = None
        _check_seconds(toolset)
        self.unavailable = ""
        """Why it can't run here, and what to install or set. Empty if it can; `check_available` sets it."""
        self.availability_error: Exception | None = None
        """The exception that `available` raised."""
        self.is_checked = self.initialised and type(toolset).available is Toolset.available
        """Whether `unavailable` is known."""
        if _is_coroutine_function(toolset.available):
            refuse(toolset.available, "available is asked before anything runs, so it can't be async", "def available")
        self.rank = 0
        """Of two equal names, that of the lower rank wins. Each mounted server has its own rank, all others 0."""
        self.catalog_form: Literal["full", "search", "code"] | None = None
        """How its tools are listed, as its author chose; None: as the server's."""
        self.removed = False
        """A call that comes after the removal must not open the state again."""
        self._opening: Future[None] | None = None

    @property
    def options_type(self) -> type[Struct] | None:
        """The Struct that the configuration fills. The options of an instance are its author's."""
        return self._options_type if self.lazy is None else self.lazy.options_type()

    def move(self, server: object) -> None:
        """Belong to another server from now on."""
        self._server = server

    def initialise(self) -> None:
        """Call `__init__` of a toolset that was added as a class, with its options. Raises ConfigError."""
        call: Callable[..., None] = self.toolset.__init__  # type: ignore[misc]
        if isinstance(self.options, ConfigError):
            raise self.options
        try:
            call() if self.options_type is None else call(*arguments_of(call, self.options, self._server))
        except Exception as problem:
            from longshore.registry.source_location import raised_at

            what = f"{type(problem).__name__}: {problem}, at {raised_at(problem, type(self.toolset).__init__)}"
            raise ConfigError(f"the toolset {self.name!r} could not be initialised: {what}") from problem
        self.initialised = True
        self.ready = self.stateless = type(self.toolset).start is Toolset.start

    def imported(self, other: ToolsetHandle) -> None:
        """Take over the toolset of another handle, in place of the one that stood for it."""
        self.toolset, self.stateless, self.ready, self.lazy = other.toolset, other.stateless, other.ready, None
        self._options_type = type(other.toolset).Options
        self.by_class, self.takes_server = self._options_type is not None, self._options_type is None
        self.is_told_of_watches = other.is_told_of_watches

    def import_early(self) -> None:
        """Import a toolset of an index, so that the first call need not wait for it. A call reports its problems."""
        if self.lazy is not None and self.check_available():
            try:
                self.lazy.load_now()
                self.toolset.warm_up()
            except Exception:  # noqa: S110
                pass

    def check_available(self) -> bool:
        """Ask the toolset, once, whether it can run here. A toolset whose `initialise` fails can't run."""
        if not self.is_checked:
            self.is_checked = True
            try:
                if not self.initialised:  # it was disabled at the start
                    self.initialise()
                self.unavailable = self.toolset.available() or ""
            except ConfigError as problem:
                self.unavailable = str(problem)
            except Exception as problem:
                self.availability_error = problem
                self.unavailable = f"{type(problem).__name__}: {problem}"
        return not self.unavailable

    def assume_available(self) -> None:
        """Do not ask the toolset whether it can run here: it is only described."""
        self.is_checked = True

    def set_watched(self, uris: frozenset[str], spawn: Spawn, report: Callable[..., None]) -> None:
        """Take the resources of it that clients of this process watch. Hooks are run by `spawn`."""
        if self._watch is not None:
            self._watch(uris)
        elif self.is_told_of_watches:
            if self._hooks is None:
                from longshore.registry.watch_hooks import WatchHooks

                self._hooks = WatchHooks(self, report)
            self._hooks.watch(uris, spawn)

    @property
    def checks_watches(self) -> bool:
        """Whether the toolset may refuse watches. Of one that is not imported yet that is not known."""
        if self.lazy is not None:
            return self.is_told_of_watches
        return type(self.toolset).check_watch is not Toolset.check_watch

    async def check_watch(self, uri: str) -> None:
        """Start the toolset and ask it whether a client may watch one of its resources. Raises what it raises."""
        await self.open()
        if self.checks_watches:
            await begin_call(self.toolset.check_watch, uri)

    async def open(self) -> None:
        """Open the state. Concurrent callers await the same future; after a failure the next caller tries again."""
        from asyncio import ensure_future, shield

        if self.ready:
            return
        if self.removed:
            raise ToolError(f"the toolset {self.name!r} was removed")
        if self._opening is None:
            self._opening = ensure_future(self._open())
        await shield(self._opening)

    async def _open(self) -> None:
        try:
            if self.lazy is not None:
                await self._import(self.lazy)
            await begin_call(self.toolset.start)
            self.ready = True
        finally:
            self._opening = None

    async def _import(self, lazy: LazyToolset) -> None:
        """Import a toolset that is declared from an index, for a watch: a call imports it before."""
        from asyncio import get_running_loop

        loop = get_running_loop()
        done: Future[None] = loop.create_future()

        def finish(problem: BaseException | None) -> None:
            if not done.done():
                done.set_result(None) if problem is None else done.set_exception(problem)

        lazy.load(loop.call_soon_threadsafe, finish)
        await done

    async def close(self) -> None:
        """Close the state if it is open, or as soon as it has opened."""
        from asyncio import shield

        if self._opening is not None:
            try:
                await shield(self._opening)
            except Exception:
                return  # it was never opened, and the callers of `open` got the error
        if self._hooks is not None:
            await self._hooks.finish()
        if self.ready and type(self.toolset).stop is not Toolset.stop:
            self.ready = False
            await begin_call(self.toolset.stop)

    @property
    def needs_closing(self) -> bool:
        is_open = (self.ready and not self.unavailable) or self._opening is not None
        stops = is_open and type(self.toolset).stop is not Toolset.stop
        return stops or (self._hooks is not None and bool(self._hooks.told))


def arguments_of(make: Callable[..., Any], options: Struct | None, server: object) -> tuple[object, ...]:
    """The arguments of a toolset's `__init__`: its options and, if it takes a second one, the server."""
    takes = read_arity(make.__init__)[1] - 1 if isinstance(make, type) else read_arity(make)[1]  # type: ignore[misc]
    return (options, server) if 1 < takes < inf else (options,)


def begin_call(method: Callable[..., Awaitable[None] | None], *given: Any) -> Future[None]:
    """Call a method of a toolset: a blocking one off the loop, on a thread that can't hold the process at its end."""
    from asyncio import ensure_future, get_running_loop

    if _is_coroutine_function(method):
        return ensure_future(_await_method(cast("Callable[..., Awaitable[None]]", method), given))
    from threading import Thread

    loop = get_running_loop()
    done: Future[None] = loop.create_future()

    def finish(problem: BaseException | None) -> None:
        if not done.done():
            done.set_result(None) if problem is None else done.set_exception(problem)

    def work() -> None:
        problem: BaseException | None = None
        try:
            method(*given)
        except SystemExit as raised:
            problem = _exit_problem(raised)
        except BaseException as raised:
            problem = raised
            if isinstance(raised, StopIteration) or not isinstance(raised, Exception):
                # A future takes no StopIteration, and a KeyboardInterrupt would end the loop.
                problem = RuntimeError(f"{method.__name__} raised {type(raised).__name__}")
                problem.__cause__ = raised
        try:
            loop.call_soon_threadsafe(finish, problem)
        except RuntimeError:
            pass  # the loop has closed meanwhile

    Thread(target=work, daemon=True).start()
    return done


async def _await_method(method: Callable[..., Awaitable[None]], given: tuple[Any, ...]) -> None:
    try:
        await method(*given)  # called here: the task may be cancelled before it begins, and nothing is left unawaited
    except SystemExit as raised:
        raise _exit_problem(raised) from raised


def _exit_problem(raised: SystemExit) -> RuntimeError:
    """The failure that stands for an exit: in a task it would end the event loop, and the calls in it unanswered."""
    return RuntimeError(f"it called sys.exit({raised.code!r})")


def _is_coroutine_function(method: Callable[..., Any]) -> bool:
    code = getattr(getattr(method, "__func__", method), "__code__", None)
    return code is not None and bool(code.co_flags & 0x80)


def _check_seconds(toolset: Toolset) -> None:
    """Refuse a deadline of `stop` that is no number of seconds."""
    seconds: Any = toolset.stop_seconds
    if seconds is not None and not (isinstance(seconds, (int, float)) and 0 < seconds < inf):
        what = f"stop_seconds = {seconds!r} is no number of seconds"
        raise RegistrationError(f"{caller()} {type(toolset).__qualname__}", what, "stop_seconds = 5.0")


def toolset_name(toolset: Toolset) -> str:
    """The declared name, else the class's in snake case."""
    return toolset.name or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", type(toolset).__name__).lower()


def _read_variables(handle: ToolsetHandle) -> dict[str, str]:
    """The second variables of a toolset's options. Raises RegistrationError for options that can't be configured."""
    from longshore.registry.options import RESERVED, second_variables

    record: Any = handle.options_type
    if not (isinstance(record, type) and issubclass(record, Struct)):
        where = f"{type(handle.toolset).__module__}.{type(handle.toolset).__qualname__}.Options"
        raise RegistrationError(where, f"{record!r} is no Struct", "class NotesOptions(msgspec.Struct, frozen=True)")
    where = f"{record.__module__}.{record.__qualname__}"
    taken = sorted(RESERVED.intersection(record.__struct_fields__))
    if taken:
        what = f"the toolset {handle.name!r} has an option {taken[0]!r}, which is a setting of every toolset"
        raise RegistrationError(where, what, "give the option another name")
    try:
        return second_variables(record)
    except (NameError, TypeError) as problem:
        raise RegistrationError(
            where, f"its types can't be read: {problem}", "import them outside of TYPE_CHECKING"
        ) from None


class ToolsetCloser:
    """Closes the toolsets of one server. `report` is the recorder's `problem`."""

    def __init__(self, report: Callable[..., None]) -> None:
        self._report = report
        self._closing: set[Any] = set()
        self._late: set[Any] = set()
        """Tasks that did not end in time, which was reported."""

    async def close_all(self, handles: Iterable[ToolsetHandle], seconds: float | None = None) -> None:
        """Close toolsets concurrently. After `seconds`, or its own deadline, each is cancelled."""
        from asyncio import gather

        await gather(*(self._close_within(handle, seconds) for handle in handles if handle.needs_closing))

    async def _close_within(self, handle: ToolsetHandle, seconds: float | None) -> None:
        from asyncio import get_running_loop, wait

        own = handle.toolset.stop_seconds or seconds
        closing = get_running_loop().create_task(self._close(handle))
        _, late = await wait([closing], timeout=own)
        if late:
            self._report("warning", f"not closed within {own:.1f} s, so ended as it is: {handle.name}")
            self._late.add(closing)
            closing.cancel()
            await wait([closing], timeout=seconds or own)

    def close_removed(self, handle: ToolsetHandle, loop: AbstractEventLoop | None, seconds: float) -> None:
        """Close a toolset that was removed: on the server's loop, or without one on a thread, for at most `seconds`."""
        handle.removed = True
        if not handle.needs_closing:
            return
        if loop is not None:

            def begin() -> None:
                task = loop.create_task(self._close_within(handle, None))
                self._closing.add(task)
                task.add_done_callback(self._closing.discard)

            loop.call_soon_threadsafe(begin)
            return
        import asyncio
        from threading import Thread

        # The caller's own thread may have a running loop.
        closing = Thread(target=lambda: asyncio.run(self._close(handle)), daemon=True)
        closing.start()
        closing.join(handle.toolset.stop_seconds or seconds)

    async def _close(self, handle: ToolsetHandle) -> None:
        from asyncio import CancelledError, current_task

        try:
            await handle.close()
        except (Exception, CancelledError) as problem:  # a `stop` that awaits a task it has cancelled raises that
            if current_task() not in self._late:
                self._report("error", f"the toolset {handle.name!r} did not close", problem)
