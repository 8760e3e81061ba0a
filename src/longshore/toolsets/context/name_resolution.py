"""Name resolution: from an import to a file, from a call to a function, from a Markdown link to a section.

Names resolve to parts of ingested files only. Python is not executed and types are not known: a method is found by
`self` or its class's name, else by its own name if few methods have it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple, final

from longshore.toolsets.context.file_parts import (
    CLASS,
    FILE,
    FUNCTION,
    METHOD,
    SECTION,
    CodeCall,
    Import,
    Mention,
    ParsedFile,
)
from longshore.toolsets.context.markdown_file import ENDINGS as MARKDOWN
from longshore.toolsets.context.markdown_file import anchor_of
from longshore.toolsets.context.python_file import ENDINGS as PYTHON

MOST_NAMESAKES: Final = 3
"""Methods of one name that a call may mean. More say nothing about which is called."""
_MOST_STEPS: Final = 5
"""Modules that a name is handed on through, as by a package's __init__.py."""
_BUILTIN: Final = frozenset(name for type_ in (str, bytes, list, dict, set, tuple, int) for name in dir(type_)) | {
    "read", "write", "close", "readline", "flush", "seek", "fileno", "group", "match", "search", "send", "put",
}  # fmt: skip
"""Methods of Python's own objects: a call of `x.append` is hardly that of the one class here that has an `append`."""


class ReferencedNode(NamedTuple):
    """The node that a reference means."""

    kind: str
    name: str
    path: str


class ResolvedLink(NamedTuple):
    """A resolved reference of one part."""

    part: int
    relation: str
    target: ReferencedNode
    weight: float = 1.0


Declared = frozenset[tuple[str, str]]
"""The kinds and names of a file's parts."""


@final
class NameTable:
    """The parts of all files, by their names.

    `imports_of` gives the imports of a Python file, to follow names that one module re-exports from another.
    """

    def __init__(self, files: Iterable[tuple[str, Declared]], imports_of: Callable[[str], tuple[Import, ...]]) -> None:
        self._files = dict(files)
        self._imports_of = imports_of
        self._bound = dict[str, dict[str, list[Import]]]()
        self._methods = dict[str, list[ReferencedNode]]()
        self._anchors = dict[str, dict[str, ReferencedNode]]()
        self._modules = dict[str, list[str]]()
        for path in sorted(self._files):
            if path.endswith(PYTHON):
                self._modules.setdefault(_module_name(path, self._files), []).append(path)
                for kind, name in self._files[path]:
                    if kind == METHOD:
                        self._methods.setdefault(name.rpartition(".")[2], []).append(ReferencedNode(kind, name, path))

    def links(self, path: str, parsed: ParsedFile) -> list[ResolvedLink]:
        """The links that a file's references resolve to, each once."""
        found = dict[tuple[int, str, ReferencedNode], ResolvedLink]()
        for reference in parsed.references:
            match reference:
                case Import():
                    targets = [(0, "imports", target) for target in self._imported_file(path, reference)]
                case CodeCall():
                    owner = parsed.parts[reference.part]
                    targets = [(reference.part, "calls", target) for target in self._called(path, owner, reference)]
                case Mention():
                    targets = [(reference.part, "mentions", target) for target in self._mentioned(path, reference)]
            for part, relation, target in targets:
                own = parsed.parts[part]
                if target != (own.kind, own.name, path):
                    found.setdefault((part, relation, target), ResolvedLink(part, relation, target, 1 / len(targets)))
        return list(found.values())

    # -- Markdown

    def _mentioned(self, path: str, mention: Mention) -> Iterator[ReferencedNode]:
        file = mention.path or path
        if file not in self._files:
            return
        if mention.anchor and file.endswith(MARKDOWN):
            if file not in self._anchors:
                sections = sorted(name for kind, name in self._files[file] if kind == SECTION)
                self._anchors[file] = {
                    anchor_of(name): ReferencedNode(SECTION, name, file) for name in reversed(sections)
                }
            if target := self._anchors[file].get(mention.anchor):
                yield target
                return
        if mention.path:
            yield ReferencedNode(FILE, file, file)

    # -- Python

    def _imported_file(self, path: str, imported: Import) -> Iterator[ReferencedNode]:
        """The file of the imported module; for `from package import module`, that of the module."""
        names = [f"{imported.module}.{imported.name}".strip(".")] if imported.name not in ("", "*") else []
        for name in (*names, imported.module):
            if file := self._module(path, name, imported.level):
                yield ReferencedNode(FILE, file, file)
                return

    def _called(self, path: str, owner: object, call: CodeCall) -> list[ReferencedNode]:
        first, *rest = call.name
        if first in ("self", "cls") and len(rest) == 1:
            scope = getattr(owner, "name", "").rpartition(".")[0]
            if target := self._symbol(path, f"{scope}.{rest[0]}"):
                return [target]
        elif target := self._meant(path, call.name, _MOST_STEPS):
            return [target]
        if not rest or self._is_foreign(path, first):
            return []
        last = call.name[-1]
        found = self._methods.get(last, []) if last not in _BUILTIN else []
        return found if len(found) <= MOST_NAMESAKES else []

    def _meant(self, path: str, name: tuple[str, ...], steps: int) -> ReferencedNode | None:
        """The function, method or class that a dotted name refers to in a file."""
        if target := self._symbol(path, ".".join(name)):
            return target
        if not steps:
            return None
        bound = self._bindings(path)
        for imported in bound.get(name[0], []):
            if imported.name:
                inner: tuple[str, ...] = (imported.name, *name[1:])
                module = self._module(path, imported.module, imported.level)
                if module and module != path and (target := self._meant(module, inner, steps - 1)):
                    return target
                if target := self._in_module(
                    path, f"{imported.module}.{imported.name}", imported.level, name[1:], steps
                ):
                    return target
            elif target := self._in_module(path, imported.module, imported.level, name[1:], steps):
                return target
        for imported in bound.get("*", []):
            module = self._module(path, imported.module, imported.level)
            if module and module != path and (target := self._meant(module, name, steps - 1)):
                return target
        return None

    def _in_module(
        self, path: str, module: str, level: int, rest: tuple[str, ...], steps: int
    ) -> ReferencedNode | None:
        """Resolve the rest of a dotted name in a module; it may begin with modules of its package."""
        for length in range(len(rest) - 1, -1, -1):
            file = self._module(path, ".".join([module, *rest[:length]]).strip("."), level)
            if file and file != path and (target := self._meant(file, rest[length:], steps - 1)):
                return target
        return None

    def _is_foreign(self, path: str, name: str) -> bool:
        """Whether a name is imported from outside the ingested files: its methods are not in the graph."""
        imports = self._bindings(path).get(name, [])
        return bool(imports) and not any(next(self._imported_file(path, each), None) for each in imports)

    def _symbol(self, path: str, name: str) -> ReferencedNode | None:
        declared = self._files.get(path, frozenset())
        return next(
            (ReferencedNode(kind, name, path) for kind in (FUNCTION, CLASS, METHOD) if (kind, name) in declared), None
        )

    def _bindings(self, path: str) -> dict[str, list[Import]]:
        if path not in self._bound:
            bound = self._bound[path] = dict[str, list[Import]]()
            for imported in self._imports_of(path):
                bound.setdefault(imported.bound, []).append(imported)
        return self._bound[path]

    def _module(self, path: str, name: str, level: int) -> str | None:
        """The file of a module, by its name in another file."""
        if level:
            folder = path
            for _ in range(level):
                folder = os.path.dirname(folder)
            return self._file_at(os.path.join(folder, *name.split(".")) if name else folder)
        found = self._modules.get(name, [])
        if len(found) > 1:  # of several projects in one tree, the nearest
            found = sorted(found, key=lambda other: (-_shared_folders(path, other), other))
        return found[0] if found else self._file_at(name.replace(".", "/"))  # a folder without __init__.py

    def _file_at(self, place: str) -> str | None:
        files = (f"{place}.py", f"{place}.pyi", os.path.join(place, "__init__.py"), os.path.join(place, "__init__.pyi"))
        return next((file for file in files if file in self._files), None)


def words_of(path: str, declared: Declared) -> set[str]:
    """The words by which other files refer to a file and to these parts of it."""
    folder, name = os.path.split(path)
    words = {name, os.path.basename(folder), *re.findall(r"\w+", name)}
    for kind, part in declared:
        if kind == SECTION:
            words.add(anchor_of(part))
        elif kind in (FUNCTION, CLASS, METHOD):
            words.add(part.rpartition(".")[2])
    return words - {"", "__init__"}


def _module_name(path: str, files: dict[str, Declared]) -> str:
    """The name under which a file is imported, beginning with its outermost package."""
    folder, name = os.path.split(path)
    names = [name.rpartition(".")[0]]
    while folder and (f"{folder}/__init__.py" in files or f"{folder}/__init__.pyi" in files):
        folder, package = os.path.split(folder)
        names.append(package)
    if names[0] == "__init__":
        del names[0]
    return ".".join(reversed(names))


def _shared_folders(path: str, other: str) -> int:
    pairs = zip(path.split("/"), other.split("/"), strict=False)
    return next((depth for depth, (one, two) in enumerate(pairs) if one != two), 0)
