"""Listing a folder as a compact tree within a token budget.

A line is a name, indented by one space per level: `src/` is a folder, `a -> b` a link, `1.2K` a size. If the list
does not fit, folders are collapsed until it does: the deepest first, and of those the largest. A collapsed folder
shows how much it holds, counted up to a limit. If the folder's own entries don't fit, the rest is on the next page.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from heapq import heapify, heappop
from typing import Final, Literal

from msgspec import Struct, field

from longshore.registry.token_budget import CHARACTERS_PER_TOKEN, NOTE_CHARACTERS, fit_lines, json_length
from longshore.sandbox.file_errors import FileError
from longshore.sandbox.gitignore import Above, Globs, Ignores
from longshore.sandbox.path_text import DeniedNames
from longshore.sandbox.trees import MOST_DEPTH, EntryKind, open_folder
from longshore.sandbox.walking import Filter, read_folder
from longshore.toolsets.filesystem.shown_paths import show_name

DEFAULT_DEPTH: Final = 3
DEFAULT_TOKENS: Final = 4_000
"""Enough for 800 names; the official server's tree of 5,000 files costs 102,728."""
DEFAULT_LIMIT: Final = 1_000
MOST_LIMIT: Final = 10_000
MOST_SHOWN: Final = 20_000
"""Entries that are read to be shown; beyond, folders are only counted. No budget has room for them."""
MOST_COUNTED: Final = 50_000
"""Entries that are counted in one collapsed folder: some 0.2 s."""
MOST_COUNTED_IN_ALL: Final = 200_000
_BIG_FOLDER: Final = 500
"""A folder below the listed one with more entries is always collapsed."""

Sort = Literal["name", "size", "modified"]


class ListQuery(Struct, frozen=True, kw_only=True):
    """How a folder is listed."""

    depth: int = DEFAULT_DEPTH
    globs: tuple[str, ...] = ()
    """Files to show, and the folders that hold them."""
    gitignore: bool = True
    sizes: bool = True
    sort: Sort = "name"
    limit: int = DEFAULT_LIMIT
    """Lines of one page."""
    cursor: str = ""
    """The name after which the page begins."""
    max_tokens: int = DEFAULT_TOKENS
    deny: tuple[str, ...] = ()
    """Globs of entries that are never shown (see DeniedNames)."""
    within: str = ""
    """The path from the root to the folder: `deny` may name parts of it."""


class Listing(Struct, frozen=True):
    """A page of a folder's listing."""

    text: str
    cursor: str
    """For the next page; empty if this is the last."""


class _Count(Struct):
    """How much a folder holds."""

    files: int = 0
    size: int = 0
    is_cut: bool = False

    def show(self, sizes: bool) -> str:
        more = "more than " if self.is_cut else ""
        files = f"{more}{self.files:,} file{'' if self.files == 1 else 's'}"
        return f"{files}, {show_size(self.size)}" if sizes and self.files else files


class _Node(Struct):
    name: str
    kind: EntryKind
    level: int
    size: int = 0
    modified: float = 0.0
    target: str = ""
    children: list[_Node] | None = None
    """None: collapsed."""
    count: _Count = field(default_factory=_Count)
    cost: int = 0
    """Characters of its line."""

    def show(self, sizes: bool) -> str:
        text = " " * self.level + show_name(self.name)
        match self.kind:
            case "folder":
                return f"{text}/" if self.children is not None else f"{text}/ {self.count.show(sizes)}"
            case "link":
                return f"{text} -> {show_name(self.target)}"
            case "file":
                return f"{text} {show_size(self.size)}" if sizes else text
            case _:
                return f"{text} ({self.kind})"


def list_folder(
    folder: int, query: ListQuery, *, above: Above = (), check: Callable[[], None] = lambda: None
) -> Listing:
    """List an open folder. `above` are the .gitignore files between the root and it; what `check` raises ends it."""
    if not 1 <= query.depth <= MOST_DEPTH:
        raise FileError("", "invalid", f"depth={query.depth}", f"a folder is listed 1 to {MOST_DEPTH} levels deep")
    if not 1 <= query.limit <= MOST_LIMIT:
        raise FileError("", "invalid", f"limit={query.limit}", f"a page has 1 to {MOST_LIMIT:,} lines")
    lister = _Lister(query, check)
    ignores = Ignores.from_above(above) if query.gitignore else None
    with open_folder(folder, ".") as own:
        top = lister.read(own, Filter(ignores, Globs(query.globs), DeniedNames(query.deny).within(query.within)))
    _collapse(top, query)
    return _page(top, query, lister)


class _Lister:
    """Reads a tree down to a depth and counts what lies deeper."""

    def __init__(self, query: ListQuery, check: Callable[[], None]) -> None:
        self._query, self._check = query, check
        self._read, self._counted = 0, 0
        self.ignored = 0
        self.is_cut = False
        """Whether the listed folder has more entries than are read."""

    def read(self, folder: int, seen: Filter) -> list[_Node]:
        """The entries of an open folder, sorted, with what is below them."""
        entries = read_folder(folder, MOST_SHOWN + 1)
        self.is_cut = len(entries) > MOST_SHOWN
        return self._nodes(entries[:MOST_SHOWN], folder, seen, "", 0)

    def _nodes(
        self, entries: list[tuple[str, EntryKind]], folder: int, seen: Filter, path: str, level: int
    ) -> list[_Node]:
        self._check()
        self._read += len(entries)
        seen = seen.enter(folder, path)
        nodes = list[_Node]()
        for name, kind in entries:
            if seen.hides(path + name, kind):
                self.ignored += 1
            elif node := self._node(_Node(name, kind, level), folder, seen, path):
                nodes.append(node)
        return sorted(nodes, key=self._key) if self._query.sort != "name" else nodes

    def _node(self, node: _Node, folder: int, seen: Filter, path: str) -> _Node | None:
        """An entry with its facts; None if it is not shown."""
        if node.kind == "folder":
            return self._folder_node(node, folder, seen, f"{path}{node.name}/")
        if not seen.wants(path + node.name):
            return None
        try:
            if self._query.sizes or self._query.sort != "name":
                status = os.stat(node.name, dir_fd=folder, follow_symlinks=False)
                node.size, node.modified = status.st_size, status.st_mtime
            if node.kind == "link":
                node.target = os.readlink(node.name, dir_fd=folder)
        except OSError:
            return None  # gone meanwhile
        return node

    def _folder_node(self, node: _Node, parent: int, seen: Filter, path: str) -> _Node | None:
        try:
            with open_folder(parent, node.name) as folder:
                node.modified = os.fstat(folder).st_mtime
                is_shown = node.level + 1 < self._query.depth and self._read < MOST_SHOWN
                entries = read_folder(folder, _BIG_FOLDER + 1) if is_shown else []
                if is_shown and len(entries) <= _BIG_FOLDER:
                    node.children = self._nodes(entries, folder, seen, path, node.level + 1)
                    node.count = _sum(node.children)
                else:
                    self._count(folder, seen, path, node.level + 1, node.count, self._counted)
        except OSError:
            return node  # not readable
        return node if node.count.files or node.count.is_cut or not seen.globs else None

    def _count(self, folder: int, seen: Filter, path: str, level: int, count: _Count, before: int) -> None:
        """Add what an open folder holds, until too much has been counted."""
        self._check()
        seen = seen.enter(folder, path)
        most = min(MOST_COUNTED - (self._counted - before), MOST_COUNTED_IN_ALL - self._counted)
        entries = read_folder(folder, max(0, most) + 1)
        self._counted += len(entries)
        if len(entries) > most:
            count.is_cut = True
            entries = entries[: max(0, most)]
        for name, kind in entries:
            if seen.hides(path + name, kind):
                continue
            try:
                if kind == "folder" and level < MOST_DEPTH:
                    with open_folder(folder, name) as below:
                        self._count(below, seen, f"{path}{name}/", level + 1, count, before)
                elif kind != "folder" and seen.wants(path + name):
                    count.files += 1
                    if self._query.sizes:
                        count.size += os.stat(name, dir_fd=folder, follow_symlinks=False).st_size
            except OSError:
                continue

    def _key(self, node: _Node) -> tuple[float, bytes]:
        value = node.modified if self._query.sort == "modified" else node.size or node.count.size
        return -value, os.fsencode(node.name)


def _sum(nodes: list[_Node]) -> _Count:
    total = _Count()
    for node in nodes:
        if node.kind == "folder":
            total.files += node.count.files
            total.size += node.count.size
            total.is_cut |= node.count.is_cut
        else:
            total.files += 1
            total.size += node.size
    return total


def _collapse(top: list[_Node], query: ListQuery) -> None:
    """Collapse folders until all lines fit: the deepest first, of these the largest."""
    room = query.max_tokens * CHARACTERS_PER_TOKEN - NOTE_CHARACTERS
    used, lines = 0, 0
    heap = list[tuple[int, int, int, _Node]]()
    for index, node in enumerate(_visible(top)):
        node.cost = json_length(node.show(query.sizes)) + 2
        used, lines = used + node.cost, lines + 1
        if node.children:
            heap.append((-node.level, -len(node.children), index, node))
    heapify(heap)
    while heap and (used > room or lines > query.limit):
        node = heappop(heap)[3]
        hidden = node.children or []
        node.children = None
        cost = json_length(node.show(query.sizes)) + 2
        used += cost - node.cost - sum(child.cost for child in hidden)
        lines -= len(hidden)
        node.cost = cost


def _visible(nodes: list[_Node]) -> Iterator[_Node]:
    for node in nodes:
        yield node
        if node.children:
            yield from _visible(node.children)


def _page(top: list[_Node], query: ListQuery, lister: _Lister) -> Listing:
    """The lines from the cursor on."""
    start = _start(top, query)
    nodes = list(_visible(top[start:]))
    rest = nodes[query.limit :]
    lines = [node.show(query.sizes) for node in nodes[: query.limit]]
    if rest:
        lines.append(" " * query.max_tokens * CHARACTERS_PER_TOKEN)  # never fits: the note comes in its place
    else:
        lines += [f"[{note}]" for note in _notes(nodes, query, lister)]

    def describe_rest(end: int) -> str:
        if end >= len(nodes):
            return "; ".join(_notes(nodes, query, lister))
        more = "more than " if lister.is_cut else ""
        return f"{more}{len(nodes) - end:,} more entries; cursor={_cursor(nodes[end - 1].name)}"

    page = fit_lines(lines, query.max_tokens, describe_rest)
    return Listing(page.text, "" if page.complete or page.end >= len(nodes) else _cursor(nodes[page.end - 1].name))


def _notes(nodes: list[_Node], query: ListQuery, lister: _Lister) -> list[str]:
    notes = list[str]()
    if lister.is_cut:
        notes.append(f"the folder has more than {MOST_SHOWN:,} entries, not all of which are shown; use a glob")
    if lister.ignored:
        notes.append(f"{lister.ignored:,} ignored or denied not shown")
    nothing = "no file matches the glob, which starts at this folder" if query.globs else "empty"
    return notes if nodes else [nothing, *notes]


def _start(top: list[_Node], query: ListQuery) -> int:
    """The index of the entry after the cursor."""
    if not query.cursor:
        return 0
    for index, node in enumerate(top):
        if _cursor(node.name) == query.cursor:
            return index + 1
    what = f"cursor={query.cursor!r}: the folder has changed or was listed otherwise"
    raise FileError("", "invalid", what, "leave it out to begin anew")


def _cursor(name: str) -> str:
    return show_name(name)


def show_size(size: int) -> str:
    """A size in bytes, short: 999, 1.2K, 45M."""
    if size < 1000:
        return str(size)
    value = float(size)
    for unit in "KMGTPE":
        value /= 1000
        if value < 999.5:
            return f"{value:.1f}{unit}" if value < 9.95 else f"{value:.0f}{unit}"
    return f"{size:,}"
