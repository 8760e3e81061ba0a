"""Storing the items of an import: many in a transaction, and one by one if one of them can't be stored."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, final

from longshore.errors import ToolError
from longshore.toolsets.context.checks import to_word
from longshore.toolsets.context.native_format import ImportReport
from longshore.toolsets.context.records import NewItem, NewSource, Node
from longshore.toolsets.context.store import Store

AT_ONCE: Final = 500
"""Items of one transaction."""
MOST_PROBLEMS: Final = 100
"""Lines that a report names; the rest is counted."""


@final
class Importer:
    """Adds items of numbered lines to a store, and reports those that can't be stored."""

    def __init__(self, store: Store, source: NewSource) -> None:
        self._store, self._source = store, source
        self._before = store.status()
        self._waiting = list[tuple[int, Hashable, NewItem]]()
        """Items that are not added yet, each with its line and its key in the file."""
        self._problems = list[str]()
        self.nodes = dict[Hashable, Node]()
        """The nodes of the keys of the file."""
        self.notes = dict[str, None]()
        """Values stored in another form than in the file, each once."""

    def report(self, number: int, what: object) -> None:
        """Report a line that was not imported."""
        self._problems.append(f"line {number}: {what}")

    def to_word(self, text: str) -> str:
        """A text as a valid kind or relation."""
        if text != (word := to_word(text)):
            self.notes[f"{text!r} is stored as {word!r}"] = None
        return word

    def add_later(self, number: int, key: Hashable, item: NewItem) -> None:
        """Queue an item to be added with others, at the latest by `add_waiting`."""
        self._waiting.append((number, key, item))
        if len(self._waiting) >= AT_ONCE:
            self.add_waiting()

    def add_waiting(self) -> None:
        """Add the queued items; if one can't be stored, one by one, so that the others are."""
        items, self._waiting = self._waiting, []
        try:
            self._add(items)
        except ToolError:
            for each in items:
                try:
                    self._add([each])
                except ToolError as problem:
                    self.report(each[0], str(problem).removeprefix("item 1").removeprefix(": "))

    def _add(self, items: list[tuple[int, Hashable, NewItem]]) -> None:
        added = self._store.add([item for _, _, item in items], self._source)
        for (_, key, item), each in zip(items, added, strict=True):
            self.nodes.setdefault(key, Node(id=each.node, kind=each.kind, name=each.name, path=item.path))

    def made(self, listed: int) -> ImportReport:
        """Counts of the added nodes, texts and links, out of so many in the file."""
        before, after, more = self._before, self._store.status(), len(self._problems) - MOST_PROBLEMS
        made = ImportReport(
            nodes=after.nodes - before.nodes,
            observations=after.observations - before.observations,
            edges=after.edges - before.edges,
            notes=self.notes,
            problems=self._problems[:MOST_PROBLEMS] + ([f"and {more:,} lines more"] if more > 0 else []),
        )
        made.known = max(0, listed - made.nodes - made.observations - made.edges - len(self._problems))
        return made
