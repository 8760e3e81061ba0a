"""Toolsets that are declared from an index: their modules are imported when one of their tools is first called.

An index is a JSON file that `longshore.toolsets.index` writes from the code. It holds what a server shows and decides
before that call, so a start pays for one typed decode, whatever libraries are behind the tools.
"""

from __future__ import annotations

from _thread import allocate_lock
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, final

import msgspec
from msgspec import Raw, Struct

from longshore.errors import ConfigError, RegistrationError, ToolError
from longshore.registry.tool import Effects, Entry, Run, report_problem
from longshore.registry.toolset import Toolset, ToolsetHandle, arguments_of, make_entries

Post = Callable[[Callable[[], None]], object]
"""Runs an action on the serving thread. Raises RuntimeError if its loop has closed."""


class IndexedEntry(Struct, kw_only=True, omit_defaults=True):
    """The facts about a tool, resource or prompt that a server needs before its first call, named as in `Entry`."""

    kind: Literal["tool", "resource", "prompt"]
    name: str
    run: Run
    uri: str = ""
    max_age: float = 0.0
    timeout: float | bool | None = None
    replay: bool = False
    effects: Effects | None = None
    idempotent: bool | None = None
    category: str | None = None
    tags: tuple[str, ...] = ()
    examples: tuple[Any, ...] = ()
    errors: dict[str, str] = {}
    help: str | None = None
    aliases: tuple[str, ...] = ()
    listed: bool = True
    catalog_forms: tuple[Literal["search", "code"], ...] = ()
    artifacts: bool = False
    group: str | None = None
    waived: dict[str, str] = {}
    documented: bool = False
    scopes: tuple[str, ...] = ()
    asks: bool = False
    """Whether it asks the client for something before its body."""
    choices: dict[str, tuple[str, ...]] = {}
    """The arguments of a prompt or a template, with the values that their types allow."""
    record: Raw
    """What lists show, decoded when it is listed."""


class IndexedToolset(Struct, kw_only=True, omit_defaults=True):
    """A toolset, and how it is made: `factory` is `module:name` of what takes its options, or else the server.

    A factory that takes two arguments gets the options and the server.
    """

    name: str
    factory: str
    options: str = ""
    """`module:name` of the Struct of its options, which needs none of the libraries behind it."""
    needs_options: bool = False
    """Whether one of them has to be set."""
    variables: dict[str, str] = {}
    """Variables beside our own that set an option, each with the option's name."""
    extra: str = ""
    """The extra of our package that installs the libraries behind it."""
    available: str = ""
    """`module:name` of its `available`, which is asked before the import, with an object that has its `options`."""
    watches: bool = False
    """Whether it wants to know which of its resources are watched."""
    flags: dict[str, Any] = {}
    """The class attributes of `FLAGS`, where they are not those of every toolset."""
    entries: list[IndexedEntry]


FLAGS: Final = ("stateful", "enabled", "stop_seconds", "uses_folders")
"""Class attributes of toolsets that a server reads before the import."""
COPIED: Final = tuple(
    name for name in IndexedEntry.__struct_fields__ if name not in ("scopes", "asks", "choices", "record")
)
"""Fields that an entry has as they are in the index."""
LOADED: Final = (
    "where", "decode", "invoke", "render", "explain", "asked", "parameters", "keeps_frame", "typed_result",
    "tries_inline", "authored", "alias_migrations",
)  # fmt: skip
"""Fields that only the code knows. An entry gets them when its toolset has been imported."""


def read_index(path: str) -> list[IndexedToolset]:
    """The toolsets of an index."""
    with open(path, "rb") as file:
        return msgspec.json.decode(file.read(), type=list[IndexedToolset])


@final
class _NotImported(Toolset):
    """Stands for a toolset that has not been imported. It overrides `start`, so it does not count as ready."""

    def __init__(self, lazy: LazyToolset, flags: Mapping[str, Any]) -> None:
        self._lazy = lazy
        self.__dict__.update(flags)

    def available(self) -> str | None:
        return self._lazy.available()

    def start(self) -> None:
        raise AssertionError("a toolset is imported before it is started")


@final
class LazyToolset:
    """A toolset of an index: its entries, and how to import it once for concurrent calls.

    `options` makes its options; a factory without any takes `server`. `changed` is called when entries are complete.
    """

    def __init__(
        self,
        indexed: IndexedToolset,
        context_type: type,
        server: object,
        options: Callable[[str, type[Struct]], Struct],
        changed: Callable[[], None],
    ) -> None:
        self.handle = ToolsetHandle(_NotImported(self, indexed.flags), indexed.name, lazy=self)
        self.handle.is_told_of_watches = indexed.watches
        if not indexed.available:
            self.handle.assume_available()
        self.entries = [self._declare(each, indexed) for each in indexed.entries]
        self.handle.variables = indexed.variables
        self.factory, self.needs_options = indexed.factory, indexed.needs_options
        self._available, self._options_path, self._extra = indexed.available, indexed.options, indexed.extra
        self._context_type, self._server, self._options, self._changed = context_type, server, options, changed
        self._lock, self._importing = allocate_lock(), allocate_lock()
        self._made: tuple[ToolsetHandle, list[Entry]] | None = None
        """The imported toolset and its entries, before the serving thread takes them over."""
        self._waiting: list[tuple[Post, Callable[[BaseException | None], None]]] = []

    def options_type(self) -> type[Struct] | None:
        """The Struct of its options, imported without the toolset."""
        return import_name(self._options_path) if self._options_path else None

    def available(self) -> str | None:
        """The answer of the toolset's `available`, without importing the toolset."""
        if not self._available:
            return None
        from types import SimpleNamespace

        found: str | None = import_name(self._available)(SimpleNamespace(options=self._make_options()))
        return found

    def _make_options(self) -> Struct | None:
        kind = self.options_type()
        return None if kind is None else self._options(self.handle.name, kind)

    def load(self, post: Post, then: Callable[[BaseException | None], None]) -> None:
        """Import the toolset on a thread; then run `then(problem)` by `post`. Concurrent callers share the import."""
        from threading import Thread  # here: the first thread to import it counts as the main thread

        with self._lock:
            self._waiting.append((post, then))
            first = len(self._waiting) == 1
        if first:
            Thread(target=self._load, daemon=True).start()

    def load_now(self) -> None:
        """Import the toolset on this thread."""
        self._fill(*self._make())

    def _load(self) -> None:
        problem: BaseException | None = None
        try:
            made = self._make()
        except BaseException as raised:  # a module may raise anything, and each caller must be answered
            made, problem = None, raised
        with self._lock:
            waiting, self._waiting = self._waiting, []
        for post, then in waiting:
            try:
                post(lambda then=then: self._deliver(made, problem, then))  # type: ignore[misc]
            except RuntimeError:
                pass  # the caller's loop has closed

    def _deliver(
        self,
        made: tuple[ToolsetHandle, list[Entry]] | None,
        problem: BaseException | None,
        then: Callable[[BaseException | None], None],
    ) -> None:
        try:
            if made is not None:
                self._fill(*made)
        except Exception as raised:
            problem = raised
        then(problem)

    def _make(self) -> tuple[ToolsetHandle, list[Entry]]:
        with self._importing:
            self._made = self._made or self._import()
            return self._made

    def _import(self) -> tuple[ToolsetHandle, list[Entry]]:
        """Import the module and make the toolset and its entries. May run on any thread."""
        import importlib

        if not self.handle.check_available():  # a start has not waited for that
            raise ToolError(f"the toolset {self.handle.name!r} is unavailable: {self.handle.unavailable}")
        try:
            options, make = self._make_options(), import_name(self.factory)
            given = (self._server,) if options is None else arguments_of(make, options, self._server)
            handle = ToolsetHandle(make(*given))
        except ImportError as problem:
            importlib.invalidate_caches()  # it may be installed before the next call
            raise ToolError(self._missing(problem)) from problem
        except ConfigError as problem:  # it was disabled at the start
            raise ToolError(f"the toolset {self.handle.name!r} can't be loaded: {problem}") from problem
        made = list(make_entries(handle, self._context_type))
        if {(each.kind, each.key) for each in made} != {(each.kind, each.key) for each in self.entries}:
            what = f"{self.factory} offers other things than the index says"
            raise RegistrationError(self.factory, what, "write the index again")
        return handle, made

    def _missing(self, problem: ImportError) -> str:
        what = f"the toolset {self.handle.name!r} can't be loaded: "
        what += f"the module {problem.name!r} is not installed" if problem.name else "a library behind it is broken"
        fix = f"pip install 'longshore[{self._extra}]'" if self._extra else "install it"
        return f"{what}; {fix} and call again, no restart is needed"

    def _fill(self, handle: ToolsetHandle, made: Sequence[Entry]) -> None:
        """Complete the entries. On the serving thread: a call must not see half of it."""
        if self.handle.lazy is None:
            return
        found = {(each.kind, each.key): each for each in made}
        for entry in self.entries:
            real = found[entry.kind, entry.key]
            for name in LOADED:
                setattr(entry, name, getattr(real, name))
        self.handle.imported(handle)
        self._changed()

    def _declare(self, indexed: IndexedEntry, toolset: IndexedToolset) -> Entry:
        record = indexed.record
        return Entry(
            where=f"{toolset.factory}.{indexed.name}",
            decode=_undecoded,
            invoke=_not_imported,
            render=_not_imported,
            explain=report_problem,
            describe=lambda: msgspec.json.decode(record, type=dict[str, Any]),
            toolset=self.handle,
            template=_LazyTemplate(indexed.uri) if "{" in indexed.uri else None,
            asked=(indexed.asks,) if indexed.asks else (),
            parameters={name: Literal[values] if values else str for name, values in indexed.choices.items()},
            scopes=frozenset(indexed.scopes),
            **{name: getattr(indexed, name) for name in COPIED},
        )


@final
class _LazyTemplate:
    """A URI template that is read when it is first used: a start matches no URI."""

    def __init__(self, uri: str) -> None:
        self._uri = uri

    def __getattr__(self, name: str) -> Any:
        from longshore.registry.resource import Template

        template = Template(self._uri)
        self.__dict__["match"] = template.match
        return getattr(template, name)


def _undecoded(raw: Any) -> Any:
    """The `decode` of an entry that is not complete: the arguments are decoded after the import."""
    return raw


def _not_imported(*_: Any) -> Any:
    raise AssertionError("a toolset is imported before its tools run")


def import_name(path: str) -> Any:
    """Import the object that `module:name` names; the name may be dotted."""
    import importlib
    from operator import attrgetter

    module, _, name = path.partition(":")
    return attrgetter(name)(importlib.import_module(module))


# -- writing


def index_flags(toolset: Toolset) -> dict[str, Any]:
    """The class attributes that a server reads before the import."""
    found = {name: getattr(toolset, name, None) for name in FLAGS}
    return {name: value for name, value in found.items() if value != getattr(Toolset, name, None)}


def index_entries(entries: Sequence[Entry]) -> Iterator[IndexedEntry]:
    """The index records of entries. Raises RegistrationError for one that it can't declare."""
    for entry in entries:
        if entry.headers:
            what = f"{entry.name!r} repeats an argument in a header, which is checked before its toolset is imported"
            raise RegistrationError(str(entry.where), what, "leave Header out, or add the toolset without an index")
        yield IndexedEntry(
            scopes=tuple(sorted(entry.scopes)),
            asks=bool(entry.asked),
            choices={name: _choices(kind) for name, kind in entry.parameters.items()},
            record=Raw(msgspec.json.encode(entry.describe())),
            **{name: getattr(entry, name) for name in COPIED},
        )


def _choices(kind: Any) -> tuple[str, ...]:
    from longshore.registry.prompt import choices

    return tuple(choices(kind) or ())
