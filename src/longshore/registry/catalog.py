"""The catalog: everything that a server offers, in the order of declaration."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, final

from longshore.errors import RegistrationError
from longshore.registry.source_location import caller
from longshore.registry.tool import Entry

if TYPE_CHECKING:
    from longshore.registry.resource import Resource
    from longshore.registry.toolset import Mark, Toolset, ToolsetHandle

Part = Literal["tools", "resources", "prompts"]


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

    def watch(self, uris: set[str]) -> None:
        """Watch these resources for clients; some of them may belong to mounted servers."""
        ...

    def placeholder(self, name: str) -> Entry | None:
        """An entry for an unknown tool that may belong to a mounted server."""
        ...


@final
class Catalog:
    """The registered tools, resources, prompts and completions. `changed` is called after every change."""

    def __init__(self) -> None:
        self.tools: dict[str, Entry] = {}
        self.resources: dict[str, Resource] = {}
        self.prompts: dict[str, Entry] = {}
        self.completions: dict[tuple[str, str], Entry] = {}
        self.toolsets: dict[str, ToolsetHandle] = {}
        self.pending_mounts: PendingMounts | None = None
        self.changed: Callable[[set[Part]], None] = lambda _: None
        self.check: Callable[[Sequence[Entry]], None] = lambda _: None
        """Refuses tools that break the server's rules, before any of them is added."""
        self.aliased = False
        """Whether any tool has, or had, an alias."""

    def add_tool(self, entry: Entry, *, replace: bool = False) -> None:
        if replace or entry.name not in self.tools:
            self._check_aliases((entry,), lambda there: there.name == entry.name)
            self.check((entry,))
        self._put(self.tools, entry.name, entry, replace)
        self.changed({"tools"})

    def add_prompt(self, entry: Entry, *, replace: bool = False) -> None:
        self._put(self.prompts, entry.name, entry, replace)
        self.changed({"prompts"})

    def add_resource(self, resource: Resource, *, replace: bool = False) -> None:
        if resource.uri in self.resources and not replace:
            _refuse_twice(resource.entry.where, f"resource {resource.uri!r}", self.resources[resource.uri].entry.where)
        self.resources[resource.uri] = resource
        self.changed({"resources"})

    def add_completion(self, ref: str, argument: str, entry: Entry) -> None:
        if ref not in self.prompts and ref not in self.resources:
            from longshore.nearest import nearest

            near = nearest(ref, [*self.prompts, *self.resources])
            fix = f"did you mean {near!r}?" if near else "declare the prompt or resource first"
            raise RegistrationError(str(entry.where), f"{ref!r} is neither a prompt nor a resource template", fix)
        known: dict[str, Any] = _entry(self.prompts.get(ref) or self.resources[ref]).parameters
        if argument not in known:
            what = f"{ref!r} has no argument {argument!r}: it takes {', '.join(known) or 'none'}"
            raise RegistrationError(str(entry.where), what, "name one of its arguments")
        self.completions[ref, argument] = entry
        self.changed(set())  # no list shows it, but its time limit has to be set

    def add_toolset(self, toolset: Toolset, context_type: type, *, replace: bool = False) -> ToolsetHandle:
        """Add everything that a toolset offers, or nothing if one part of it can't be added."""
        from longshore.registry.toolset import Toolset, ToolsetHandle

        given: Any = toolset
        if not isinstance(given, Toolset):
            name = getattr(given, "__name__", type(given).__name__)
            raise RegistrationError(caller(), f"{name} is no instance of a Toolset", f"app.add({name}())")
        handle = ToolsetHandle(toolset)
        if handle.name in self.toolsets and not replace:
            what = (
                f"a toolset named {handle.name!r} is there already: {_class_name(self.toolsets[handle.name].toolset)}"
            )
            raise RegistrationError(f"{caller()} {_class_name(toolset)}", what, "replace=True, or another name")
        made = list(_make_parts(handle, context_type))
        self._check_free(made, self.toolsets.get(handle.name))
        leaving = self.toolsets.get(handle.name)
        tools: list[Entry] = [thing for part, _, thing in made if part == "tools"]
        self._check_aliases(tools, lambda there: leaving is not None and there.toolset is leaving)
        self.check(tools)
        dropped: set[Part] = self._drop(handle.name) if replace else set()
        self.toolsets[handle.name] = handle
        for part, name, thing in made:
            table: dict[str, Any] = getattr(self, part)
            table[name] = thing
        parts: set[Part] = {part for part, _, _ in made}
        self.changed(dropped | parts)
        return handle

    def add_handle(self, handle: ToolsetHandle) -> None:
        """Add a toolset whose entries come later, by `swap`."""
        self.check_toolset_name(handle.name)
        self.toolsets[handle.name] = handle
        self.changed(set())

    def check_toolset_name(self, name: str) -> None:
        """Refuse a name that another toolset has."""
        if name in self.toolsets:
            what = f"a toolset named {name!r} is there already: {_class_name(self.toolsets[name].toolset)}"
            raise RegistrationError(caller(), what, "another name")

    def swap(
        self, handle: ToolsetHandle, part: Part, made: dict[str, Any], completions: dict[tuple[str, str], Entry]
    ) -> list[str]:
        """Replace the entries of a toolset. Returns the names that are refused because others have them."""
        table: dict[str, Any] = getattr(self, part)
        others = {name: thing for name, thing in table.items() if _entry(thing).toolset is not handle}
        taken = [name for name in made if name in others and _rank(others[name]) < handle.rank]
        mine = {name: thing for name, thing in made.items() if name not in taken}
        self.aliased = self.aliased or any(_entry(thing).aliases for thing in mine.values())
        setattr(self, part, dict(sorted({**others, **mine}.items(), key=lambda item: _rank(item[1]))))
        kind = {"prompts": "ref/prompt", "resources": "ref/resource"}.get(part)
        kept = {k: e for k, e in self.completions.items() if e.toolset is not handle or e.category != kind}
        self.completions = kept | {key: entry for key, entry in completions.items() if key[0] in mine}
        self.changed({part})
        return taken

    def remove_toolset(self, name: str) -> ToolsetHandle:
        """Remove a toolset and its entries. The caller closes it."""
        handle = self.toolset(name)
        self.changed(self._drop(name))
        return handle

    def remove_tool(self, name: str) -> None:
        if name not in self.tools:
            raise KeyError(_unknown("tool", name, self.tools))
        del self.tools[name]
        self.changed({"tools"})

    def toolset(self, name: str) -> ToolsetHandle:
        """The handle of the toolset of this name."""
        if name not in self.toolsets:
            raise KeyError(_unknown("toolset", name, self.toolsets))
        return self.toolsets[name]

    def find_resource(self, uri: str) -> tuple[Resource, dict[str, str]] | None:
        """The resource of a URI, and the values of its variables. A fixed URI wins over a template."""
        fixed = self.resources.get(uri)
        if fixed is not None and fixed.fixed:
            return fixed, {}
        for resource in tuple(self.resources.values()):  # another thread may add one meanwhile
            values = None if resource.fixed else resource.template.match(uri)
            if values is not None:
                return resource, values
        return None

    def entries(self) -> Iterator[Entry]:
        """Everything that can be called."""
        yield from tuple(self.tools.values())  # another thread may add one meanwhile
        yield from tuple(self.prompts.values())
        yield from tuple(self.completions.values())
        for resource in tuple(self.resources.values()):
            yield resource.entry

    def _put(self, table: dict[str, Entry], name: str, entry: Entry, replace: bool) -> None:
        if name in table and not replace:
            _refuse_twice(entry.where, f"{entry.kind} {name!r}", table[name].where)
        table[name] = entry

    def _check_free(self, made: list[tuple[Part, str, Any]], leaving: ToolsetHandle | None) -> None:
        """Refuse a name that another entry has, or that occurs twice in the toolset itself."""
        seen: dict[tuple[Part, str], Entry] = {}
        for part, name, thing in made:
            entry = _entry(thing)
            taken = getattr(self, part).get(name)
            there = seen.get((part, name)) or (None if taken is None else _entry(taken))
            if there is not None and (leaving is None or there.toolset is not leaving):
                _refuse_twice(entry.where, f"{entry.kind} {name!r}", there.where)
            seen[part, name] = entry

    def _check_aliases(self, added: Sequence[Entry], leaves: Callable[[Entry], bool]) -> None:
        """Refuse a name that two tools would have, as their name or as an alias."""
        if not self.aliased and not any(entry.aliases for entry in added):
            return
        staying = {name: entry for name, entry in self.tools.items() if not leaves(entry)}
        owners = {alias: entry for entry in staying.values() for alias in entry.aliases} | staying
        for entry in added:
            for name in (entry.name, *entry.aliases):
                owner = owners.setdefault(name, entry)
                if owner is not entry:
                    _refuse_alias(entry, name, owner)
        self.aliased = True

    def _drop(self, name: str) -> set[Part]:
        handle = self.toolsets.pop(name, None)
        dropped: set[Part] = set()
        for part in ("tools", "prompts", "resources"):
            table: dict[str, Any] = getattr(self, part)
            for key in [k for k, v in table.items() if handle is not None and _entry(v).toolset is handle]:
                del table[key]
                dropped.add(part)
        for ref in [ref for ref, entry in self.completions.items() if handle is not None and entry.toolset is handle]:
            del self.completions[ref]
        return dropped


def _class_name(thing: object) -> str:
    return f"{type(thing).__module__}.{type(thing).__qualname__}"


def _entry(thing: Any) -> Entry:
    found: Entry = thing if isinstance(thing, Entry) else thing.entry
    return found


def _rank(thing: Any) -> int:
    toolset = _entry(thing).toolset
    return 0 if toolset is None else toolset.rank


def _make_parts(handle: ToolsetHandle, context_type: type) -> Iterator[tuple[Part, str, Any]]:
    from longshore.registry.toolset import marked

    for mark, method in marked(handle.toolset):
        try:
            part, name, thing, entry = _make_part(mark, method, context_type)
        except RegistrationError as problem:
            from longshore.registry.tool_lint import collect

            if not collect(problem):
                raise
            continue
        entry.toolset = handle
        yield part, name, thing


def _make_part(mark: Mark, method: Any, context_type: type) -> tuple[Part, str, Any, Entry]:
    from longshore.registry.function import tool_entry
    from longshore.registry.prompt import prompt_entry
    from longshore.registry.resource import make_resource

    match mark.kind:
        case "tool":
            entry = tool_entry(method, mark.options, context_type)
            return "tools", entry.name, entry, entry
        case "prompt":
            entry = prompt_entry(method, mark.options, context_type)
            return "prompts", entry.name, entry, entry
        case "resource":
            resource = make_resource(mark.uri, method, mark.options, context_type)
            return "resources", resource.uri, resource, resource.entry


def _unknown(kind: str, name: str, names: Iterable[str]) -> str:
    from longshore.registry.tool import hint

    return f"no {kind} {name!r}{hint(name, names)}"


def _refuse_twice(where: Any, what: str, first: Any) -> None:
    raise RegistrationError(
        str(where), f"there is a {what} already, from {first}", "give it another name, or replace=True"
    )


def find_alias(tools: Mapping[str, Entry], name: str) -> Entry | None:
    """The tool with this alias. Called only if no tool has this name."""
    return next((entry for entry in tuple(tools.values()) if name in entry.aliases), None)


def _refuse_alias(entry: Entry, name: str, owner: Entry) -> None:
    mine = "the name" if name == entry.name else "an alias"
    theirs = "the name" if name == owner.name else "an alias"
    what = f"{name!r} is {mine} of {entry.name!r} and {theirs} of {owner.name!r}, from {owner.where}"
    raise RegistrationError(str(entry.where), what, f"take {name!r} out of one of them")
