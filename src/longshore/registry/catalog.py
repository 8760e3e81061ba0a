"""The catalog: everything that a server offers, in the order of declaration."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, final

from longshore.errors import RegistrationError
from longshore.registry.source_location import caller
from longshore.registry.tool import Entry, hint

if TYPE_CHECKING:
    from longshore.protocol.dialect import DocumentTool
    from longshore.registry.toolset import Toolset, ToolsetHandle

Part = Literal["tools", "resources", "prompts"]
PART_OF: dict[str, Part] = {"tool": "tools", "resource": "resources", "prompt": "prompts"}


class PendingMounts(Protocol):
    """The mounted servers, some of which may not have been asked yet what they offer."""

    @property
    def pending(self) -> bool:
        """Whether a list made now might lack entries that are about to come."""
        ...

    async def wait(self) -> None:
        """Wait for those entries, for a short time."""
        ...

    def unavailable(self) -> dict[str, str]:
        """The prefixes of the servers that are down, each with the reason."""
        ...

    def placeholder(self, name: str) -> Entry | None:
        """An entry for an unknown tool that may belong to a mounted server."""
        ...


@final
class Catalog:
    """The registered tools, resources and prompts. `changed` is called after every change."""

    def __init__(self) -> None:
        self.tools: dict[str, Entry] = {}
        self.resources: dict[str, Entry] = {}
        self.prompts: dict[str, Entry] = {}
        self.toolsets: dict[str, ToolsetHandle] = {}
        self.pending_mounts: PendingMounts | None = None
        self.changed: Callable[[set[Part]], None] = lambda _: None
        self.check: Callable[[Sequence[Entry]], None] = lambda _: None
        """Refuses tools that break the server's rules, before any of them is added."""
        self.closed = False
        """Whether nothing can be added any more."""
        self.prepare: Callable[[ToolsetHandle], None] = lambda _: None
        """Initialises a toolset that is added while the server runs, before it is added."""
        self.dialect_tools: Mapping[str, DocumentTool] | None = None
        """The tools that a dialect's lists show, each with the form of its result; None: all listed ones."""
        self.trouble = ""
        """Why tools may be missing, for the answer to a call of one: an error in the file that is being edited."""
        self.aliased = False
        """Whether any tool has, or had, an alias."""

    def add(self, entry: Entry, *, replace: bool = False) -> None:
        """Add a tool, a resource or a prompt."""
        there = self._table(entry).get(entry.key)
        self._check((entry,), lambda other: replace and other is there)
        self.changed({self._put(entry, there)})

    def add_completion(self, ref: str, argument: str, entry: Entry) -> None:
        owner = self.prompts.get(ref) or self.resources.get(ref)
        if owner is None:
            from longshore.nearest import nearest

            near = nearest(ref, [*self.prompts, *self.resources])
            fix = f"did you mean {near!r}?" if near else "declare the prompt or resource first"
            raise RegistrationError(str(entry.where), f"{ref!r} is neither a prompt nor a resource template", fix)
        known = owner.parameters
        if argument not in known:
            what = f"{ref!r} has no argument {argument!r}: it takes {', '.join(known) or 'none'}"
            raise RegistrationError(str(entry.where), what, "name one of its arguments")
        owner.completions[argument] = entry
        self.changed(set())  # no list shows it, but its time limit has to be set

    def add_toolset(
        self, toolset: Toolset | type[Toolset], context_type: type, *, replace: bool = False, server: object = None
    ) -> ToolsetHandle:
        """Add everything that a toolset offers, or nothing if one part of it can't be added.

        A class whose `__init__` wants it gets `server`.
        """
        from longshore.registry.toolset import Toolset, ToolsetHandle, make_entries

        given: Any = toolset
        if not issubclass(given if isinstance(given, type) else type(given), Toolset):
            name = getattr(given, "__name__", type(given).__name__)
            raise RegistrationError(caller(), f"{name} is no Toolset", f"write class {name}(Toolset)")
        handle = ToolsetHandle(toolset, server=server)
        if not replace:
            self.check_toolset_name(
                handle.name, f"{caller()} {_class_name(handle.toolset)}", "replace=True, or another name"
            )
        made = list(make_entries(handle, context_type))
        leaving = self.toolsets.get(handle.name)
        self._check(made, lambda there: leaving is not None and there.toolset is leaving)
        self.prepare(handle)
        dropped = self._drop(handle.name)
        self.toolsets[handle.name] = handle
        parts: set[Part] = {PART_OF[kind] for kind, _ in dropped}
        parts.update(self._put(entry, dropped.get((entry.kind, entry.key))) for entry in made)
        self.changed(parts)
        return handle

    def add_declared(self, handle: ToolsetHandle, entries: Sequence[Entry]) -> None:
        """Add a toolset of an index with its entries, which were linted when the index was written."""
        self.check_toolset_name(handle.name)
        self._check(entries, lambda _: False, lint=False)
        self.toolsets[handle.name] = handle
        self.changed({self._put(entry, None) for entry in entries})

    def entries_completed(self) -> None:
        """Have derived facts of the entries made again. No list changes."""
        self.changed(set())

    def add_handle(self, handle: ToolsetHandle) -> None:
        """Add a toolset whose entries come later, by `swap`."""
        self.toolsets[handle.name] = handle
        self.changed(set())

    def check_toolset_name(self, name: str, where: str = "", fix: str = "another name") -> None:
        """Refuse a name that another toolset has."""
        if name in self.toolsets:
            there = self.toolsets[name]
            whose = _class_name(there.toolset) if there.lazy is None else there.lazy.factory
            what = f"a toolset named {name!r} is there already: {whose}"
            raise RegistrationError(where or caller(), what, fix)

    def swap(self, handle: ToolsetHandle, part: Part, made: dict[str, Entry]) -> list[str]:
        """Replace the entries of a toolset. Returns the names that are refused because others have them."""
        table: dict[str, Entry] = getattr(self, part)
        others = {name: entry for name, entry in table.items() if entry.toolset is not handle}
        taken = [name for name in made if name in others and _rank(others[name]) < handle.rank]
        mine = {name: entry for name, entry in made.items() if name not in taken}
        self.aliased = self.aliased or any(entry.aliases for entry in mine.values())
        setattr(self, part, dict(sorted({**others, **mine}.items(), key=lambda item: _rank(item[1]))))
        self.changed({part})
        return taken

    def adopt(self, other: Catalog) -> list[ToolsetHandle]:
        """Replace all declarations by those of another catalog. Mounted servers stay. Gives the toolsets that left."""
        staying = {name: handle for name, handle in self.toolsets.items() if handle.rank}
        leaving = [handle for handle in self.toolsets.values() if not handle.rank]
        for handle in other.toolsets.values():
            self.prepare(handle)
        for part in PART_OF.values():
            mounted = {key: each for key, each in getattr(self, part).items() if _rank(each)}
            setattr(self, part, {**getattr(other, part), **mounted})
        self.toolsets = {**{name: handle for name, handle in other.toolsets.items() if not handle.rank}, **staying}
        self.aliased = self.aliased or other.aliased
        self.changed(set(PART_OF.values()))
        return leaving

    def remove_toolset(self, name: str) -> ToolsetHandle:
        """Remove a toolset and its entries. The caller closes it."""
        handle = self.toolset(name)
        self.changed({PART_OF[kind] for kind, _ in self._drop(name)})
        return handle

    def remove_tool(self, name: str) -> None:
        if name not in self.tools:
            raise KeyError(f"no tool {name!r}{hint(name, self.tools)}")
        del self.tools[name]
        self.changed({"tools"})

    def toolset(self, name: str) -> ToolsetHandle:
        """The handle of the toolset of this name."""
        if name not in self.toolsets:
            raise KeyError(f"no toolset {name!r}{hint(name, self.toolsets)}")
        return self.toolsets[name]

    def offered(self, part: Part) -> dict[str, Entry]:
        """The tools, resources or prompts that are on offer, by name or URI."""
        table: dict[str, Entry] = getattr(self, part)
        return {key: entry for key, entry in tuple(table.items()) if entry.offered}  # another thread may add one

    def entries_of(self, handle: ToolsetHandle) -> list[Entry]:
        """The tools, resources and prompts of a toolset."""
        return [entry for entry in self.entries() if entry.toolset is handle and entry.kind in PART_OF]

    def find_resource(self, uri: str) -> tuple[Entry, dict[str, str]] | None:
        """The resource of a URI on offer, and the values of its variables. A fixed URI wins over a template."""
        fixed = self.resources.get(uri)
        if fixed is not None and fixed.template is None and fixed.offered:
            return fixed, {}
        for entry in tuple(self.resources.values()):  # another thread may add one meanwhile
            values = entry.template.match(uri) if entry.template is not None and entry.offered else None
            if values is not None:
                return entry, values
        return None

    def entries(self) -> Iterator[Entry]:
        """Everything that can be called."""
        for table in (self.tools, self.prompts, self.resources):
            for entry in tuple(table.values()):  # another thread may add one meanwhile
                yield entry
                yield from tuple(entry.completions.values())

    def _table(self, entry: Entry) -> dict[str, Entry]:
        table: dict[str, Entry] = getattr(self, PART_OF[entry.kind])
        return table

    def _check(self, added: Sequence[Entry], leaves: Callable[[Entry], bool], *, lint: bool = True) -> None:
        """Refuse a name that another entry has, but for one that leaves, or that occurs twice."""
        if self.closed:
            raise RegistrationError(caller(), "the tools of this server are fixed", "make a server of your own")
        seen: dict[tuple[str, str], Entry] = {}
        for entry in added:
            twin = seen.setdefault((entry.kind, entry.key), entry)
            there = twin if twin is not entry else self._table(entry).get(entry.key)
            if there is not None and not leaves(there):
                what = f"there is a {entry.kind} {entry.key!r} already, from {there.where}"
                raise RegistrationError(str(entry.where), what, "give it another name, or replace=True")
        tools = [entry for entry in added if entry.kind == "tool"]
        if self.aliased or any(entry.aliases for entry in tools):
            self._check_aliases(tools, leaves)
        if tools and lint:
            self.check(tools)

    def _check_aliases(self, added: Sequence[Entry], leaves: Callable[[Entry], bool]) -> None:
        """Refuse a name that two tools would have, as their name or as an alias."""
        staying = {name: entry for name, entry in self.tools.items() if not leaves(entry)}
        owners = {alias: entry for entry in staying.values() for alias in entry.aliases} | staying
        for entry in added:
            for name in (entry.name, *entry.aliases):
                owner = owners.setdefault(name, entry)
                if owner is not entry:
                    mine = "the name" if name == entry.name else "an alias"
                    theirs = "the name" if name == owner.name else "an alias"
                    what = f"{name!r} is {mine} of {entry.name!r} and {theirs} of {owner.name!r}, from {owner.where}"
                    raise RegistrationError(str(entry.where), what, f"take {name!r} out of one of them")
        self.aliased = True

    def _put(self, entry: Entry, before: Entry | None) -> Part:
        """Add an entry, with the completions that were declared for the one before."""
        if before is not None:
            entry.completions = {**before.completions, **entry.completions}
        self._table(entry)[entry.key] = entry
        return PART_OF[entry.kind]

    def _drop(self, name: str) -> dict[tuple[str, str], Entry]:
        """Remove a toolset and its entries, and return these."""
        handle = self.toolsets.pop(name, None)
        dropped = [] if handle is None else self.entries_of(handle)
        return {(entry.kind, entry.key): self._table(entry).pop(entry.key) for entry in dropped}


def _class_name(thing: object) -> str:
    return f"{type(thing).__module__}.{type(thing).__qualname__}"


def _rank(entry: Entry) -> int:
    return 0 if entry.toolset is None else int(entry.toolset.rank)


def find_alias(tools: Mapping[str, Entry], name: str) -> Entry | None:
    """The tool with this alias. Called only if no tool has this name."""
    return next((entry for entry in tuple(tools.values()) if name in entry.aliases), None)
