"""The current state of a context graph as Markdown that people read and edit, and read back.

A heading of the second level is a kind, one of the third a node with its path in parentheses. Items beneath it are its
texts, each with its source in italics, and its links: `relation → name (kind, path)`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from time import time_ns
from typing import Final, final

from msgspec.structs import replace

from longshore.redaction.texts import remove_secrets
from longshore.toolsets.context.file_parts import FILE
from longshore.toolsets.context.importing import Importer
from longshore.toolsets.context.native_format import EXPORT_SECONDS, ImportReport
from longshore.toolsets.context.packing import one_line, source_label
from longshore.toolsets.context.reading import details
from longshore.toolsets.context.records import NOTE, NOW, Details, NewItem, NewLink, NewSource, Node
from longshore.toolsets.context.rows import NODE, name_key, to_node
from longshore.toolsets.context.store import Store

TITLE: Final = "# Context graph"
_LINE_END: Final = re.compile("\r\n?|\n")
_TAG_OR_HEADING: Final = re.compile(r"(?<!\\)(\\*)(<)|(?<!\S)(\\*)(#|=+$|-+$)")
"""Text that could be read as a part of the page, with the backslashes before it; its other markup stays."""
_MARKUP: Final = re.compile(r"([\\`*_\[\]<>#|~()])")
_ESCAPED: Final = re.compile(r"\\([\\`*_\[\]<>#|~()])")
_NAME: Final = r"((?:\\.|[^\\()])+?)"
_HEADING: Final = re.compile(_NAME + r"(?: \(((?:\\.|[^\\()])*)\))?")
_LINK: Final = re.compile(r"([^→]+) → " + _NAME + r" \(([^,()]+)(?:, ((?:\\.|[^\\()])*))?\)")
_ORIGIN: Final = re.compile(r"\*.+, \S+\*")

Key = tuple[str, str, str]
"""Of a node: its kind, path, and name key."""


# -- export


def export_markdown(store: Store) -> Iterator[str]:
    """A heading for each kind and node, with its texts, each with its source, and its links."""
    yield TITLE
    with store.database.reading(EXPORT_SECONDS) as transaction:
        sql = "SELECT DISTINCT kind FROM node WHERE retracted_at IS NULL ORDER BY kind"
        for (kind,) in transaction.rows(sql):
            yield f"\n## {_plain(kind)}"
            where = "kind = ? AND retracted_at IS NULL ORDER BY name_key, id"
            for row in transaction.rows(f"SELECT {NODE} FROM node WHERE {where}", (kind,)):
                found = details(transaction, to_node(row).id, NOW, time_ns() // 1000)
                if found is not None and (found.observations or not found.node.has_derived_name):
                    yield from _section(found)


def _section(found: Details) -> Iterator[str]:
    node = found.node
    path = _shown_path(node)
    yield f"\n### {_plain(node.name)}{'' if path is None else f' ({path})'}\n"
    for each in found.observations:
        origin = source_label(each, found.sources.get(each.source))[1:-1].partition(" from ")[2]
        text = "\n  ".join(_TAG_OR_HEADING.sub(_escape, line) for line in _LINE_END.split(each.text))
        yield f"- {text}  \n  *{_plain(origin)}*"
    for edge in found.edges:
        if edge.from_node == node.id and edge.to_node in found.neighbours:
            to = found.neighbours[edge.to_node]
            path = _shown_path(to)
            where = _plain(to.kind) + ("" if path is None else f", {path}")
            yield f"- {_plain(edge.relation)} → {_plain(to.name)} ({where})"


def _shown_path(node: Node) -> str | None:
    """The path, unless it equals the name: a file is named by its path."""
    usual = node.name if node.kind == FILE else ""
    return None if node.path == usual else _plain(node.path)


def _escape(match: re.Match[str]) -> str:
    backslashes, sign = match[1] or match[3] or "", match[2] or match[4]
    return f"{2 * backslashes}\\{sign}"


def _plain(text: str) -> str:
    """A text on one line, without markup."""
    return _MARKUP.sub(r"\\\1", one_line(text))


# -- import


def import_markdown(store: Store, lines: Iterable[bytes], source: NewSource) -> ImportReport:
    """Add the contents of a page, as exported or edited since.

    Other lines are reported. A repeated import changes nothing.
    """
    page = _Page(Importer(store, source))
    for number, line in enumerate(lines, 1):
        page.take(number, line.decode("utf-8", "replace").rstrip("\r\n"))
    return page.finish()


@final
class _Page:
    """Reads a page line by line: nodes and texts are added during the read, links when all nodes are known."""

    def __init__(self, importer: Importer) -> None:
        self._importer = importer
        self._kind = NOTE
        self._node: tuple[str, str] | None = None
        """The name and path of the last heading."""
        self._heading = 0
        """Its line."""
        self._texts = list[tuple[int, str]]()
        """Of that node."""
        self._item = list[str]()
        """The lines of an item that has not ended yet."""
        self._line = 0
        self._links = list[tuple[int, NewItem]]()
        self._listed = 0

    def take(self, number: int, line: str) -> None:
        if self._item and (not line.strip() or line.startswith("  ")):
            self._item.append(line[2:])
            return
        self._end_item()
        if line.startswith("### "):
            self._end_node()
            self._begin_node(number, line[4:])
        elif line.startswith("## "):
            self._end_node()
            self._kind = self._importer.to_word(_without_secrets(_unescaped(line[3:]))) or NOTE
        elif line.startswith("- ") and self._node is not None:
            self._item, self._line = [line[2:]], number
        elif line.strip() and not line.startswith("# "):
            self._importer.report(number, "it is no heading, and no item beneath a node's heading")

    def _begin_node(self, number: int, heading: str) -> None:
        match = _HEADING.fullmatch(heading)
        name, path = (match[1], match[2]) if match is not None else (heading, None)
        name = _without_secrets(_unescaped(name))
        usual = name if self._kind == FILE else ""
        self._node = (name, usual if path is None else _without_secrets(_unescaped(path)))
        self._heading = number

    def _end_item(self) -> None:
        lines, self._item = self._item, []
        while lines and not lines[-1].strip():
            lines.pop()
        if not lines or self._node is None:
            return
        if len(lines) == 1 and (link := _LINK.fullmatch(lines[0])):
            name, path = self._node
            self._links.append(
                (self._line, NewItem(kind=self._kind, name=name, path=path, links=(self._to_link(link),)))
            )
            return
        if len(lines) > 1 and _ORIGIN.fullmatch(lines[-1]):
            lines = [*lines[:-2], lines[-2].removesuffix("  ")]
        self._texts.append((self._line, "\n".join(_TAG_OR_HEADING.sub(_unescape, line) for line in lines)))

    def _to_link(self, match: re.Match[str]) -> NewLink:
        relation, name, kind, path = (_without_secrets(_unescaped(each or "")) for each in match.groups())
        kind = self._importer.to_word(kind)
        path = name if kind == FILE and match[4] is None else path
        return NewLink(to=name, relation=self._importer.to_word(relation), kind=kind, path=path)

    def _end_node(self) -> None:
        if self._node is None:
            return
        name, path = self._node
        # The page lists the newest text first.
        for number, text in reversed(self._texts or [(self._heading, "")]):
            item = NewItem(kind=self._kind, name=name, path=path, text=_without_secrets(text))
            self._importer.add_later(number, _key(self._kind, name, path), item)
        self._listed += len(self._texts)
        self._node, self._texts = None, []

    def finish(self) -> ImportReport:
        self._end_item()
        self._end_node()
        self._importer.add_waiting()
        listed = self._listed + len(self._importer.nodes) + len(self._links)
        for number, item in self._links:
            key = _key(item.kind, item.name, item.path)
            [link] = item.links
            if (end := self._importer.nodes.get(_key(link.kind, link.to, link.path))) is not None:
                item = replace(item, links=(replace(link, to=f"n{end.id}", path=""),))
            self._importer.add_later(number, key, item)
        self._importer.add_waiting()
        return self._importer.made(listed)


def _key(kind: str, name: str, path: str) -> Key:
    return kind, path, name_key(name, path)


def _unescape(match: re.Match[str]) -> str:
    backslashes, sign = match[1] or match[3] or "", match[2] or match[4]
    return backslashes[: len(backslashes) // 2] + sign


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(r"\1", text.strip())


def _without_secrets(text: str) -> str:
    return remove_secrets(text)[0]
