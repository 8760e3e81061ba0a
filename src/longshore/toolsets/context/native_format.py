"""A whole context graph as JSON lines: a header, then sources, nodes, observations, edges and so on.

It includes superseded rows, and excludes the index, which is computed from the texts. Ids are those of the exported
store; an import into an empty store keeps them, into another one maps them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, final

from msgspec import DecodeError, Struct
from msgspec.json import Decoder, encode
from msgspec.structs import replace

from longshore.errors import ToolError
from longshore.toolsets.context import postings
from longshore.toolsets.context.changes import GraphChange
from longshore.toolsets.context.checks import check_change, check_text, to_word
from longshore.toolsets.context.database import Database, Row, Transaction, marks
from longshore.toolsets.context.forgetting import FORGOTTEN
from longshore.toolsets.context.parameters import RELATED
from longshore.toolsets.context.records import (
    NOTE,
    ContradictingPair,
    Edge,
    FileState,
    GraphEvent,
    NewSource,
    Node,
    NodeChange,
    Observation,
    Source,
)
from longshore.toolsets.context.rows import (
    EDGE,
    EVENT,
    NODE,
    OBSERVATION,
    PAIR,
    SOURCE,
    name_key,
    text_hash,
    to_edge,
    to_event,
    to_json,
    to_node,
    to_observation,
    to_pair,
    to_source,
)
from longshore.toolsets.context.store import Store

VERSION: Final = 1
EXPORT_SECONDS: Final = 3600.0
"""After so long an export is given up. It reads one state of the store, while others write."""
ROWS_AT_ONCE: Final = 1_000
MOST_NUMBER: Final = 2**53
"""The greatest id and sequence number that is imported: after the greatest of an engine there is none for a new row."""
CLOCK_SECONDS: Final = 86_400
"""By which the clock of the machine that exported may be ahead: known times would go on from there."""
_FILE_STATE: Final = ", ".join(FileState.__struct_fields__)


class FormatHeader(Struct, frozen=True):
    """The first line: the version of the format and of the store."""

    version: int


class FormatLine(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One line: a record of one of these types."""

    context: FormatHeader | None = None
    source: Source | None = None
    node: Node | None = None
    observation: Observation | None = None
    contradiction: ContradictingPair | None = None
    edge: Edge | None = None
    event: GraphEvent | None = None
    file: FileState | None = None


class ImportReport(Struct, kw_only=True):
    """Counts of the records that an import has added."""

    nodes: int = 0
    observations: int = 0
    edges: int = 0
    known: int = 0
    """Nodes, observations and edges that were there already."""
    notes: dict[str, None] = {}
    """Values stored in another form than in the file, each once."""
    problems: list[str] = []
    """Lines that were left out, each with its number and why."""


_decoder: Final = Decoder(FormatLine)


def export_native(store: Store) -> Iterator[bytes]:
    """The lines of a store, without line ends. Raises StoreError."""
    with store.database.reading(EXPORT_SECONDS) as transaction:
        yield encode(FormatLine(context=FormatHeader(VERSION)))
        tables: tuple[tuple[str, str, str, Callable[[Row], Any]], ...] = (
            ("source", "id", SOURCE, lambda row: FormatLine(source=to_source(row))),
            ("node", "id", NODE, lambda row: FormatLine(node=to_node(row))),
            ("observation", "id", OBSERVATION, lambda row: FormatLine(observation=to_observation(row))),
            ("edge", "id", EDGE, lambda row: FormatLine(edge=to_edge(row))),
            ("event", "sequence", EVENT, lambda row: FormatLine(event=to_event(row))),
            ("file_state", "path", _FILE_STATE, lambda row: FormatLine(file=_to_file_state(row))),
        )
        for table, key, columns, to_line in tables:
            for row in rows_of(transaction, table, key, columns):
                yield encode(to_line(row), order="deterministic")
        for row in transaction.rows(f"SELECT {PAIR} FROM contradiction ORDER BY newer, older"):
            yield encode(FormatLine(contradiction=to_pair(row)))


def rows_of(transaction: Transaction, table: str, key: str, columns: str, where: str = "1 = 1") -> Iterator[Row]:
    """All rows of a table in the order of their key, which is the first column."""
    last: Any = "" if key == "path" else -1
    sql = f"SELECT {columns} FROM {table} WHERE {key} > ? AND {where} ORDER BY {key} LIMIT {ROWS_AT_ONCE}"
    while rows := transaction.rows(sql, (last,)):
        yield from rows
        last = rows[-1][0]


def _to_file_state(row: Row) -> FileState:
    return FileState(**dict(zip(FileState.__struct_fields__, row, strict=True)))


def import_native(store: Store, lines: Iterable[bytes], source: NewSource) -> ImportReport:
    """Add the records of lines, all or none.

    A repeated import changes nothing. Raises ToolError with the line, and StoreError.
    """
    with store.changing(source, grows=True) as change:
        done = _Import(store.database, change)
        for number, text in enumerate(lines, 1):
            if not text.strip():
                continue
            try:
                done.take(_decoder.decode(text), number)
            except DecodeError as problem:
                raise ToolError(f"line {number} is none of an export: {problem}; nothing was imported") from None
            except (ToolError, KeyError) as problem:
                what = (
                    f"it refers to {problem}, which no line before it has" if isinstance(problem, KeyError) else problem
                )
                raise ToolError(f"line {number}: {what}; nothing was imported") from None
        return done.finish()


@final
class _Import:
    """An import in one transaction; maps the ids of the lines to ids of the store."""

    def __init__(self, database: Database, change: GraphChange) -> None:
        self._database, self._change, self._transaction = database, change, change.transaction
        self._is_empty = not any(
            self._transaction.row(f"SELECT 1 FROM {table} LIMIT 1") for table in ("event", "source")
        )
        """Whether ids and events can be taken over."""
        self._has_header = False
        self._ids: dict[str, dict[int, int]] = {"source": {}, "node": {}, "observation": {}, "edge": {}}
        self._references = list[tuple[int, Observation | Edge]]()
        """New observations and edges that name others, which may come later."""
        self._touched = dict[int, None]()
        self._last_event = 0
        self._report = ImportReport()

    def take(self, line: FormatLine, number: int) -> None:
        """Add the record of one line. Raises ToolError, and KeyError for an id that no previous line had."""
        if line.context is not None:
            if line.context.version > VERSION:
                raise ToolError(f"it is of version {line.context.version}, and this Longshore reads {VERSION}")
            self._has_header = True
        elif not self._has_header:
            raise ToolError(
                "a native export begins with its header; for server-memory's file say --format server-memory"
            )
        elif not all(1 <= number <= MOST_NUMBER for number in _numbers(line)):
            raise ToolError(f"an id or sequence number is not from 1 to {MOST_NUMBER:,}")
        elif line.source is not None:
            self._ids["source"][line.source.id] = self._add_source(line.source)
        elif line.node is not None:
            self._ids["node"][line.node.id] = self._add_node(line.node)
        elif line.observation is not None:
            self._ids["observation"][line.observation.id] = self._add_observation(line.observation)
        elif line.contradiction is not None:
            self._add_contradiction(line.contradiction)
        elif line.edge is not None:
            self._ids["edge"][line.edge.id] = self._add_edge(line.edge)
        elif line.event is not None:
            self._add_event(line.event)
        elif line.file is not None:
            self._add_file(line.file)
        else:
            raise ToolError(f"line {number} says nothing")

    def finish(self) -> ImportReport:
        """Resolve references, write the index, and log the changes."""
        for id_, old in self._references:
            table = "observation" if isinstance(old, Observation) else "edge"
            assert old.superseded_by is not None
            if old.superseded_by not in self._ids[table]:
                raise ToolError(
                    f"no line is {table} {old.superseded_by}, which superseded another; nothing was imported"
                )
            sql = f"UPDATE {table} SET superseded_by = ? WHERE id = ?"
            self._transaction.run(sql, (self._ids[table][old.superseded_by], id_))
        if self._touched:
            postings.rebuild(self._transaction)
        if self._is_empty:
            last = {name: max(ids.values()) for name, ids in self._ids.items() if ids}
            last |= {"event": self._last_event} if self._last_event else {}
            self._database.go_on_after(self._transaction, last)
        else:
            for node in self._touched:
                self._change.log("import", node=node)
        return self._report

    def _add_source(self, new: Source) -> int:
        key = (new.uri, new.session, new.type, new.client, new.actor)
        where = "uri = ? AND session = ? AND type = ? AND client = ? AND actor = ?"
        row = self._transaction.row(f"SELECT id FROM source WHERE {where}", key)
        return int(row[0]) if row else self._insert("source", SOURCE, new)

    def _add_node(self, new: Node) -> int:
        new = replace(new, kind=self._to_word(new.kind))
        fields = {name: getattr(new, name) for name in ("kind", "name", "path", "importance", "attributes")}
        checked = check_change(NodeChange(**fields), "its")
        new = replace(new, name=checked.name or "", kind=checked.kind or NOTE)
        key = name_key(new.name, new.path)
        sql = f"SELECT {NODE} FROM node WHERE name_key = ? AND kind = ? AND path = ?"
        row = self._transaction.row(sql, (key, new.kind, new.path))
        if row is None:
            id_ = self._insert("node", NODE, new, name_key=key, term_ids=b"")
            self._touched[id_] = None
            self._report.nodes += 1
            return id_
        known = to_node(row)
        if known.retracted_at is not None and new.retracted_at is None:
            self._transaction.run("UPDATE node SET retracted_at = NULL, retracted_as = NULL WHERE id = ?", (known.id,))
            self._touched[known.id] = None
        self._report.known += 1
        return known.id

    def _to_word(self, text: str) -> str:
        """A text as a valid kind or relation."""
        if text != (word := to_word(text)):
            self._report.notes[f"{text!r} is stored as {word!r}"] = None
        return word

    def _add_observation(self, new: Observation) -> int:
        new = replace(new, text=check_text(new.text))
        node, source = self._ids["node"][new.node], self._ids["source"][new.source]
        hash_ = text_hash(new.text)
        same = "SELECT id FROM observation WHERE node = ? AND text_hash = ?"
        row = self._transaction.row(
            f"{same} AND recorded_at = ? AND valid_from = ? ORDER BY id", (node, hash_, *_times(new))
        )
        if row is None and new.is_current:
            row = self._transaction.row(f"{same} AND {_OVERLAPS}", (node, hash_, new.valid_to, new.valid_from))
        if row is not None:
            self._report.known += 1
            return int(row[0])
        made = replace(new, node=node, source=source, superseded_by=None)
        id_ = self._insert("observation", OBSERVATION, made, text_hash=hash_, term_ids=b"")
        if new.superseded_by is not None:
            self._references.append((id_, new))
        self._touched[node] = None
        self._report.observations += 1
        return id_

    def _add_edge(self, new: Edge) -> int:
        relation = check_change(NodeChange(kind=self._to_word(new.relation)), "its").kind or RELATED
        ends = (self._ids["node"][new.from_node], relation, self._ids["node"][new.to_node])
        same = "SELECT id FROM edge WHERE from_node = ? AND relation = ? AND to_node = ?"
        row = self._transaction.row(f"{same} AND recorded_at = ? AND valid_from = ? ORDER BY id", (*ends, *_times(new)))
        if row is None and new.is_current:
            row = self._transaction.row(f"{same} AND {_OVERLAPS}", (*ends, new.valid_to, new.valid_from))
        if row is not None:
            self._report.known += 1
            return int(row[0])
        source = self._ids["source"][new.source]
        made = replace(new, from_node=ends[0], relation=ends[1], to_node=ends[2], source=source, superseded_by=None)
        self._touched |= {ends[0]: None, ends[2]: None}
        self._report.edges += 1
        id_ = self._insert("edge", EDGE, made)
        if new.superseded_by is not None:
            self._references.append((id_, new))
        return id_

    def _add_contradiction(self, new: ContradictingPair) -> None:
        ids = sorted({self._ids["observation"][each] for each in (new.older, new.newer)})
        if len(ids) < 2:
            return  # the store has one row for both
        sql = "INSERT INTO contradiction (older, newer, recorded_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
        self._transaction.run(sql, (*ids, new.recorded_at))

    def _add_file(self, new: FileState) -> None:
        """Store the state of a file. A file that may differ here is marked for the next ingest, or dropped."""
        known = self._transaction.row("SELECT hash FROM file_state WHERE path = ?", (new.path,))
        if known is None or known[0] != new.hash:
            state = new if self._is_empty else replace(new, parser=FORGOTTEN)
            self._insert("file_state", _FILE_STATE, state, "ON CONFLICT (path) DO UPDATE SET parser = excluded.parser")

    def _add_event(self, new: GraphEvent) -> None:
        """Add an event, to an empty store only: others have their own events."""
        if new.at > self._change.at + CLOCK_SECONDS * 1_000_000:
            raise ToolError("its time is to come; set the clock of this machine")
        if self._is_empty:
            self._insert("event", EVENT, new)
            self._last_event = max(self._last_event, new.sequence)

    def _insert(self, table: str, columns: str, record: Struct, end: str = "", /, **more: Any) -> int:
        """Insert a record's fields and more columns; return the id of the row: the record's own in an empty store."""
        names = [name for name in columns.split(", ") if name != "id" or self._is_empty]
        values = [_to_value(getattr(record, name)) for name in names]
        key = "RETURNING id" if table not in ("event", "file_state") else ""
        sql = f"INSERT INTO {table} ({', '.join([*names, *more])}) VALUES ({marks([*names, *more])}) {end} {key}"
        if key:
            [(id_,)] = self._transaction.rows(sql, (*values, *more.values()))
            return int(id_)
        self._transaction.run(sql, (*values, *more.values()))
        return 0


def _numbers(line: FormatLine) -> list[int]:
    """The ids in a line, and an event's sequence number."""
    records = (line.source, line.node, line.observation, line.edge)
    events = [] if line.event is None else [line.event.sequence]
    return [record.id for record in records if record is not None] + events


_OVERLAPS: Final = (
    "superseded_at IS NULL AND (valid_from < COALESCE(?, valid_from + 1)) AND (valid_to IS NULL OR valid_to > ?)"
)
"""A current row that says the same of a time that the new one has, too."""


def _times(record: Observation | Edge) -> tuple[int, int]:
    return record.recorded_at, record.valid_from


def _to_value(value: Any) -> Any:
    """A field as the value of its column."""
    match value:
        case dict():
            return to_json(value)  # pyright: ignore[reportUnknownArgumentType]
        case bool():
            return int(value)
        case _:
            return value
