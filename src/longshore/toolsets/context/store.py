"""The context graph of one database: each method is one transaction, safe from any thread and any process.

A method that writes returns when its change is committed. Wrong arguments raise ToolError, failures of the database
StoreError; either way nothing was changed.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager, suppress
from time import time_ns
from typing import Final, final

from msgspec import Struct

from longshore.errors import StoreError, ToolError
from longshore.toolsets.context import additions, file_records, forgetting, postings, reading, selecting
from longshore.toolsets.context.changes import GraphChange
from longshore.toolsets.context.checks import check_change, check_text, derive_name
from longshore.toolsets.context.database import ChangeWatcher, Database, Transaction
from longshore.toolsets.context.derived_names import with_names
from longshore.toolsets.context.place import is_address
from longshore.toolsets.context.records import (
    NOW,
    AddedItem,
    Details,
    Edge,
    FileState,
    ForgetMode,
    ForgetReport,
    GraphEvent,
    Microseconds,
    Moment,
    NewItem,
    NewSource,
    Node,
    NodeChange,
    Observation,
    Query,
    QueryResult,
    StoreStatus,
    Targeted,
    Targets,
)
from longshore.toolsets.context.rows import last_known_at
from longshore.toolsets.context.schema import MIGRATIONS
from longshore.toolsets.context.search import search
from longshore.toolsets.context.selecting import Changes, NodeFilter
from longshore.toolsets.context.sqlite_file import SqliteFile

DAY: Final = 86_400_000_000
"""In microseconds."""


class StoreLimits(Struct, frozen=True, kw_only=True):
    """How large a store may grow, and when it deletes old rows."""

    most_bytes: int = 4 << 30
    """Of the database. A store that has as much refuses additions; superseding, retracting and purging go on."""

    most_events: int = 1_000_000
    """Beyond so many the oldest events are deleted; nodes and observations stay."""

    history_days: int | None = None
    """Superseded observations and edges older than so many days are deleted, some with each change. None: never."""


DEFAULT_LIMITS: Final = StoreLimits()


def open_store(place: str, limits: StoreLimits = DEFAULT_LIMITS) -> Store:
    """The store in a SQLite file or at a `postgresql://` address, created if there is none. Raises StoreError."""
    return Store(_open_database(place), limits=limits)


def _open_database(place: str) -> Database:
    if not is_address(place):
        return SqliteFile(place)
    try:
        from longshore.toolsets.context.postgres import PostgresDatabase
    except ImportError:
        raise StoreError(
            "postgresql://…", "it needs the package psycopg", "pip install 'longshore[postgres]'"
        ) from None
    return PostgresDatabase(place)


@final
class Store:
    """A context graph. `clock` gives microseconds of UTC."""

    def __init__(
        self,
        database: Database,
        *,
        limits: StoreLimits = DEFAULT_LIMITS,
        clock: Callable[[], Microseconds] = lambda: time_ns() // 1000,
    ) -> None:
        self._database, self._limits, self._clock = database, limits, clock
        self._tidied: int | None = None
        """The day on which all history was dropped that is too old."""
        with database.reading() as transaction:
            is_old = postings.needs_rebuild(transaction)
        if is_old:
            with database.writing() as transaction:
                if postings.needs_rebuild(transaction):  # another process may have created it already
                    postings.rebuild(transaction)

    @property
    def database(self) -> Database:
        """The database of the store."""
        return self._database

    @property
    def place(self) -> str:
        """The path or address, as text for people."""
        return self._database.place

    def close(self) -> None:
        self._database.close()

    # -- writing

    def add(self, items: Iterable[NewItem], source: NewSource) -> list[AddedItem]:
        """Add nodes, observations and links, all or none of them; return the result of each item.

        Adding the same again changes nothing, so a call whose answer was lost can be repeated.
        """
        listed = list(items)
        if len(listed) > additions.ITEMS:
            raise ToolError(f"{len(listed):,} items; at most {additions.ITEMS:,} are added in one call")
        prepared, words = additions.prepare(listed)
        with self.changing(source, grows=True) as change:
            return additions.add_items(change, prepared, words)

    def supersede(
        self,
        observation: int,
        text: str,
        source: NewSource,
        *,
        valid_from: Microseconds | None = None,
        is_correction: bool = False,
        reason: str = "",
    ) -> int:
        """Replace the text of a current observation; return the id of the one that is current now.

        The old one was true until `valid_from` (now, if it is None). With `is_correction` it never was.
        """
        text = check_text(text)
        with self.changing(source) as change:
            old = change.observation(observation)
            new = forgetting.supersede(
                change, old, text, valid_from=valid_from, is_correction=is_correction, reason=reason
            )
            node = change.node(old.node)
            if node.name == derive_name(old.text) and change.observation(new).holds(change.at, change.at):
                # The name is the beginning of the old text, which must not be shown as current.
                with suppress(ToolError):  # another node has the name
                    change.change_node(node, NodeChange(name=derive_name(text)), is_derived=True)
            return new

    def change_node(self, node: int, changed: NodeChange, source: NewSource) -> Node:
        """Give a node another name, kind, path, importance or attributes, or pin it."""
        changed = check_change(changed)
        with self.changing(source) as change:
            return self._named(change.transaction, [change.change_node(change.node(node), changed)])[0]

    def mark_contradiction(self, observation: int, other: int, source: NewSource) -> None:
        """Mark two observations as contradicting each other. Both stay, and are shown together."""
        with self.changing(source) as change:
            forgetting.mark_contradiction(change, change.observation(observation), change.observation(other))

    def end_observation(
        self, observation: int, source: NewSource, *, valid_to: Microseconds | None = None, reason: str = ""
    ) -> int:
        """End an observation at a time (None: now); return its id, which is a new one for a future end."""
        with self.changing(source) as change:
            return forgetting.end(change, change.observation(observation), valid_to, reason)

    def end_edge(self, edge: int, source: NewSource, *, valid_to: Microseconds | None = None, reason: str = "") -> int:
        """End an edge at a time (None: now); return its id, which is a new one for a future end."""
        with self.changing(source) as change:
            return forgetting.end(change, change.edge(edge), valid_to, reason)

    def forget(self, mode: ForgetMode, targets: Targets, source: NewSource, reason: str = "") -> ForgetReport:
        """Retract, restore or purge."""
        match mode:
            case "retract":
                return self.retract(targets, source, reason)
            case "restore":
                return self.restore(targets, source)
            case "purge":
                return self.purge(targets, source)

    def retract(self, targets: Targets, source: NewSource, reason: str = "") -> ForgetReport:
        """Close all current observations and edges of the targets, as never true. `restore` reverts it."""
        with self.changing(source) as change:
            return forgetting.retract(change, targets, reason)

    def restore(self, targets: Targets, source: NewSource) -> ForgetReport:
        """Record retracted targets again, under new ids; a node together with all that was retracted with it."""
        with self.changing(source) as change:
            return forgetting.restore(change, targets)

    def purge(self, targets: Targets, source: NewSource) -> ForgetReport:
        """Erase the targets for good: text, history, postings, terms, and what events say of them.

        Other rows of their nodes with the same content are erased, too, and a name derived from an erased text. The
        bytes in the database file are overwritten. The report names copies from before a migration, which keep the
        text.
        """
        with self.changing(source) as change:
            report = forgetting.purge(change, targets)
        backups = self._database.erase_traces()
        return ForgetReport(nodes=report.nodes, observations=report.observations, edges=report.edges, backups=backups)

    def replace_file(self, state: FileState, items: Iterable[NewItem], source: NewSource) -> list[AddedItem]:
        """Set a file's nodes to those of the items: equal texts stay, others are superseded, missing nodes leave it.

        The source is of type `file`, and the items have the state's path.
        """
        prepared, words = additions.prepare(items)
        with self.changing(source, grows=True) as change:
            return file_records.replace_file(change, state, prepared, words)

    def move_file(self, old: str, state: FileState, source: NewSource) -> int:
        """Give an unchanged file another path; its nodes keep their ids and history.

        Returns the number of nodes that left the file because retracted nodes of the other path have their names. If it
        is not 0, call `replace_file`, too.
        """
        with self.changing(source) as change:
            return file_records.move_file(change, old, state)

    def save_file_state(self, state: FileState, source: NewSource) -> None:
        """Store the new time of a file with unchanged content."""
        with self.changing(source) as change:
            file_records.save_state(change, state)

    def forget_file(self, path: str, source: NewSource) -> int:
        """Close all statements of a deleted file; return how many nodes it had. Statements of agents stay."""
        with self.changing(source) as change:
            return file_records.forget_file(change, path)

    def rebuild_index(self) -> int:
        """Rebuild the index from the texts; return their number."""
        with self._database.writing() as transaction:
            return postings.rebuild(transaction)

    # -- reading

    def query(self, query: Query) -> QueryResult:
        """Find nodes by words: see `search`."""
        with self._database.reading() as transaction:
            return search(transaction, query, self._now(last_known_at(transaction)))

    def find(self, name: str, *, include_retracted: bool = False) -> list[Node]:
        """The nodes with this name or path in any spelling, as they are stored."""
        with self._database.reading() as transaction:
            now = self._now(last_known_at(transaction))
            return reading.find_nodes(transaction, name, NOW, now, include_retracted=include_retracted)

    def resolve(self, reference: str, moment: Moment = NOW, *, include_retracted: bool = False) -> list[Node]:
        """The nodes with an id (`n12`, or that of an observation or edge), or with a name or path at a moment."""
        with self._database.reading() as transaction:
            now = self._now(last_known_at(transaction))
            return selecting.resolve(transaction, reference, moment, now, include_retracted=include_retracted)

    def choose(self, chosen: NodeFilter, mode: ForgetMode) -> tuple[list[Node], str]:
        """The nodes that a filter chooses to be forgotten or restored, and a code for their present state."""
        with self._database.reading() as transaction:
            nodes = selecting.select_nodes(transaction, chosen, retracted=mode == "restore")
            return self._named(transaction, nodes), selecting.choice_code(transaction, mode, nodes)

    def node(self, node: int) -> Node:
        """A node, retracted or not. Raises ToolError."""
        with self._database.reading() as transaction:
            return self._named(transaction, [reading.node(transaction, node)])[0]

    def targeted(self, targets: Targets, mode: ForgetMode = "retract") -> Targeted:
        """The nodes, observations and edges that ids name. Raises ToolError for an id that names nothing."""
        with self._database.reading() as transaction:
            targets = forgetting.with_same(transaction, targets) if mode == "purge" else targets
            return reading.targeted(transaction, targets, self._now(last_known_at(transaction)))

    def pinned(self, limit: int = 50) -> list[Node]:
        """Pinned nodes, the most important first."""
        with self._database.reading() as transaction:
            return self._named(transaction, selecting.pinned_nodes(transaction, limit))

    def recent(self, limit: int = 50) -> list[Node]:
        """The most recently changed nodes."""
        with self._database.reading() as transaction:
            return self._named(transaction, selecting.recent_nodes(transaction, limit))

    def changes_after(self, event: int) -> Changes:
        """The nodes and events that changed after an event, by any process."""
        with self._database.reading() as transaction:
            return selecting.changes_after(transaction, event)

    def details(self, node: int, moment: Moment = NOW, *, with_history: bool = False) -> Details | None:
        """A node with its observations, edges and sources at a moment, or with all of its history."""
        with self._database.reading() as transaction:
            now = self._now(last_known_at(transaction))
            return reading.details(transaction, node, moment, now, with_history=with_history)

    def observations(self, node: int, moment: Moment = NOW) -> list[Observation]:
        """A node's observations at a moment, the newest first."""
        with self._database.reading() as transaction:
            now = self._now(last_known_at(transaction))
            return reading.observations_of(transaction, [node], moment, now).get(node, [])

    def neighbourhood(
        self,
        start: Iterable[int],
        depth: int = 1,
        moment: Moment = NOW,
    ) -> tuple[dict[int, Node], list[Edge]]:
        """The nodes within so many links of these, and the edges among them."""
        with self._database.reading() as transaction:
            return reading.neighbourhood(transaction, start, depth, moment, self._now(last_known_at(transaction)))

    def events(
        self, *, after: int = 0, node: int | None = None, newest_first: bool = False, limit: int = 100
    ) -> list[GraphEvent]:
        """The events after a sequence number, of one node or of all."""
        with self._database.reading() as transaction:
            return reading.events(transaction, after=after, node=node, newest_first=newest_first, limit=limit)

    def file_states(self) -> dict[str, FileState]:
        """All ingested files by path."""
        with self._database.reading() as transaction:
            return reading.file_states(transaction)

    def watch_changes(self) -> ChangeWatcher:
        """A watcher that notices each change from now on, by any process."""
        return self._database.watch_changes()

    def names_in_files(self) -> dict[str, set[tuple[str, str]]]:
        """The kinds and names of all current nodes that are in files, by path."""
        with self._database.reading() as transaction:
            return reading.names_in_files(transaction)

    def texts_in_file(self, path: str) -> dict[tuple[str, str], str]:
        """The current texts of a file's nodes that are from files, by kind and name."""
        with self._database.reading() as transaction:
            return reading.texts_in_file(transaction, path)

    def status(self) -> StoreStatus:
        """Counts, size and state."""
        with self._database.reading() as transaction:
            return StoreStatus(
                place=self._database.place,
                schema=len(MIGRATIONS),
                journal=self._database.journal(),
                bytes=self._database.bytes_used(transaction),
                most_bytes=self._limits.most_bytes,
                **reading.counts(transaction),
            )

    def check(self) -> list[str]:
        """Problems of the database or its index; empty if there are none."""
        problems = self._database.check()
        if not problems:
            with self._database.reading() as transaction:
                problems = reading.index_problems(transaction)
        return problems

    # -- the parts of a change

    @contextmanager
    def changing(self, source: NewSource, *, grows: bool = False) -> Generator[GraphChange]:
        """A change: before its commit its index is written and old events are deleted.

        The first change of a day deletes old history, too; a bounded number of rows, so that later ones may continue.
        """
        with self._database.writing() as transaction:
            if grows and (used := self._database.bytes_used(transaction)) >= self._limits.most_bytes:
                what = f"it has {used / 1e6:,.0f} MB, and its limit is {self._limits.most_bytes / 1e6:,.0f} MB"
                raise StoreError(self.place, what, "purge what is not needed, or raise max_bytes")
            change = GraphChange(transaction, source, self._clock())
            yield change
            change.postings.flush()
            forgetting.drop_old_events(change, self._limits.most_events)
            days, today = self._limits.history_days, change.at // DAY
            is_due = days is not None and today != self._tidied
            if is_due and forgetting.drop_old_history(change, change.at - (days or 0) * DAY):
                self._tidied = today

    def _named(self, transaction: Transaction, nodes: Iterable[Node]) -> list[Node]:
        """The nodes with their names at present."""
        return with_names(transaction, nodes, NOW, self._now(last_known_at(transaction)))

    def _now(self, last: Microseconds) -> Microseconds:
        """The present: at least the time of the last change, which may come from another process's clock."""
        return max(self._clock(), last)
