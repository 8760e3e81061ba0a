"""A change of the graph: one transaction with its time and source, in which texts are added, superseded and retracted.

Every function here keeps the tables, the index and the event log in step. Nothing is overwritten: see `records`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final, Literal, TypeAlias, final

from msgspec.structs import replace

from longshore.errors import ToolError
from longshore.toolsets.context import reading
from longshore.toolsets.context.database import Transaction
from longshore.toolsets.context.postings import NAME, Postings, terms_of_name, terms_of_text, words_by_term
from longshore.toolsets.context.records import (
    Closing,
    Edge,
    Microseconds,
    NewSource,
    Node,
    NodeChange,
    Observation,
    Source,
)
from longshore.toolsets.context.rows import (
    EDGE,
    OBSERVATION,
    last_known_at,
    name_key,
    text_hash,
    to_edge,
    to_json,
    to_observation,
)

Fact: TypeAlias = Observation | Edge
"""A row with times and a source. Both kinds follow the same rules."""

_OPERATIONS: Final[dict[Closing, str]] = {
    "superseded": "supersede",
    "ended": "end",
    "recorded again": "record again",
    "retracted": "retract",
    "retracted with node": "retract",
    "not in file": "drop",
}
"""Their names in the event log."""


@final
class GraphChange:
    """One transaction that writes: its time, its source, and its changes of single rows."""

    def __init__(self, transaction: Transaction, source: NewSource, clock: Microseconds) -> None:
        self.transaction = transaction
        self.postings = Postings(transaction)
        # Another process's clock may be ahead: known times increase all the same.
        self.at = max(clock, last_known_at(transaction) + 1)
        self._actor = source.actor
        self._new_source = source
        self._source: int | None = None

    @property
    def source(self) -> int:
        """The id of the source, which is stored when a row first needs it."""
        if self._source is None:
            self._source = self._source_id(self._new_source, self.at)
        return self._source

    def source_with_uri(self, old: Source, uri: str) -> int:
        """The id of a source that differs from another one only in its URI."""
        new = NewSource(type=old.type, uri=uri, session=old.session, client=old.client, actor=old.actor)
        return self._source_id(new, old.at)

    def _source_id(self, new: NewSource, at: Microseconds) -> int:
        key = (new.uri, new.session, new.type, new.client, new.actor)
        sql = (
            "INSERT INTO source (uri, session, type, client, actor, at) VALUES (?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (uri, session, type, client, actor) DO NOTHING"
        )
        self.transaction.run(sql, (*key, at))
        where = "uri = ? AND session = ? AND type = ? AND client = ? AND actor = ?"
        row = self.transaction.row(f"SELECT id FROM source WHERE {where}", key)
        assert row is not None
        return int(row[0])

    def log(
        self,
        operation: str,
        *,
        node: int | None = None,
        observation: int | None = None,
        edge: int | None = None,
        **detail: Any,
    ) -> None:
        """Append an event, without its empty details."""
        detail = {name: value for name, value in detail.items() if value not in (None, "")}
        sql = "INSERT INTO event (at, actor, operation, node, observation, edge, detail) VALUES (?, ?, ?, ?, ?, ?, ?)"
        self.transaction.run(sql, (self.at, self._actor, operation, node, observation, edge, to_json(detail)))

    # -- finding

    def node(self, node: int) -> Node:
        """A node, retracted or not. Raises ToolError."""
        return reading.node(self.transaction, node)

    def observation(self, observation: int) -> Observation:
        """An observation, current or not. Raises ToolError."""
        return reading.observation(self.transaction, observation)

    def edge(self, edge: int) -> Edge:
        """An edge, current or not. Raises ToolError."""
        return reading.edge(self.transaction, edge)

    def current(self, node: int, text: str) -> list[Observation]:
        """The node's current observations with this text: more than one if it was true at several times."""
        sql = (
            f"SELECT {OBSERVATION} FROM observation WHERE node = ? AND text_hash = ? AND superseded_at IS NULL"
            " ORDER BY id DESC"
        )
        return [to_observation(row) for row in self.transaction.rows(sql, (node, text_hash(text)))]

    def same(self, fact: Fact) -> Sequence[Fact]:
        """The current observations or edges that say the same, valid at any time, the newest first.

        Statements of a file and of an agent are kept apart: the one stays when the other is removed.
        """
        found = self._saying(fact)
        is_of_file = self._is_of_file(fact) if found else False
        return [each for each in found if self._is_of_file(each) is is_of_file]

    def _is_of_file(self, fact: Fact) -> bool:
        if not fact.source:
            return self._new_source.type == "file"
        row = self.transaction.row("SELECT type FROM source WHERE id = ?", (fact.source,))
        return row is not None and row[0] == "file"

    def _saying(self, fact: Fact) -> Sequence[Fact]:
        if isinstance(fact, Observation):
            return self.current(fact.node, fact.text)
        sql = (
            f"SELECT {EDGE} FROM edge WHERE from_node = ? AND relation = ? AND to_node = ? AND superseded_at IS NULL"
            " ORDER BY id DESC"
        )
        rows = self.transaction.rows(sql, (fact.from_node, fact.relation, fact.to_node))
        return [to_edge(row) for row in rows]

    def current_observations(self, node: int) -> list[Observation]:
        sql = f"SELECT {OBSERVATION} FROM observation WHERE node = ? AND superseded_at IS NULL ORDER BY id"
        return [to_observation(row) for row in self.transaction.rows(sql, (node,))]

    def current_edges(self, node: int) -> list[Edge]:
        """The current edges from and to a node."""
        sql = f"SELECT {EDGE} FROM edge WHERE (from_node = ? OR to_node = ?) AND superseded_at IS NULL ORDER BY id"
        return [to_edge(row) for row in self.transaction.rows(sql, (node, node))]

    # -- nodes

    def insert_node(self, node: Node, terms: Counter[str] | None = None) -> int:
        """Insert a node and return its id, which is not taken from the record. Declares its terms if they are given."""
        if terms is None:
            terms = terms_of_name(node.name, node.path)
            self.postings.declare(words_by_term((node.name, node.path), terms))
        sql = (
            "INSERT INTO node (kind, name, name_key, path, importance, pinned, attributes, created_at, updated_at,"
            " has_derived_name, term_ids) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id"
        )
        key, attributes = name_key(node.name, node.path), to_json(node.attributes)
        values = (node.kind, node.name, key, node.path, node.importance, int(node.pinned), attributes, self.at, self.at)
        ids = self.postings.term_ids(terms)
        [(id_,)] = self.transaction.rows(sql, (*values, int(node.has_derived_name), ids))
        self.postings.add(id_, NAME, terms)
        self.log("create", node=id_, kind=node.kind, name=node.name)
        return int(id_)

    def change_node(self, node: Node, change: NodeChange, *, is_derived: bool = False) -> Node:
        """Change fields of a node and return it. Raises ToolError if another node has the name already.

        With `is_derived` a new name is derived from a text; a derived name stays derived.
        """
        given = {name: value for name in change.__struct_fields__ if (value := getattr(change, name)) is not None}
        before = {name: old for name, value in given.items() if (old := getattr(node, name)) != value}
        if not before:
            return node
        fields = {name: getattr(node, name) for name in change.__struct_fields__} | given
        key = name_key(fields["name"], fields["path"])
        sql = "SELECT id FROM node WHERE name_key = ? AND kind = ? AND path = ? AND id <> ?"
        if row := self.transaction.row(sql, (key, fields["kind"], fields["path"], node.id)):
            raise ToolError(f"n{row[0]} is named {fields['name']!r} already; add to that node, or choose another name")
        sql = (
            "UPDATE node SET kind = ?, name = ?, name_key = ?, path = ?, importance = ?, pinned = ?, attributes = ?,"
            " updated_at = ?, has_derived_name = ? WHERE id = ?"
        )
        is_derived = node.has_derived_name and (is_derived or "name" not in before)
        values = (fields["kind"], fields["name"], key, fields["path"], fields["importance"], int(fields["pinned"]))
        self.transaction.run(sql, (*values, to_json(fields["attributes"]), self.at, int(is_derived), node.id))
        if {"name", "path"} & before.keys():
            self._index_name_again(node, "" if is_derived else fields["name"], fields["path"])
        self.log("change", node=node.id, before=before, after={name: given[name] for name in before})
        return self.node(node.id)

    def touch(self, node: int) -> None:
        self.transaction.run("UPDATE node SET updated_at = ? WHERE id = ?", (self.at, node))

    def revive(self, node: Node) -> None:
        """Make a retracted node current again, without the observations and edges that were closed with it."""
        sql = "UPDATE node SET retracted_at = NULL, retracted_as = NULL, updated_at = ? WHERE id = ?"
        self.transaction.run(sql, (self.at, node.id))
        self.postings.reopen(node.id, NAME, self._term_ids("node", node.id))
        self.log("restore", node=node.id)

    def close_node(self, node: Node, retracted_as: Literal["retracted", "not in file"], reason: str = "") -> None:
        """Retract a node. It must have no current observations and edges."""
        sql = "UPDATE node SET retracted_at = ?, retracted_as = ?, updated_at = ? WHERE id = ?"
        self.transaction.run(sql, (self.at, retracted_as, self.at, node.id))
        self.postings.close(node.id, NAME, self._term_ids("node", node.id))
        self.log(_OPERATIONS[retracted_as], node=node.id, reason=reason)

    # -- observations and edges

    def insert(self, new: Fact, terms: Counter[str] | None = None) -> int:
        """Insert an observation or edge and return its id.

        It is recorded now, by this source unless the record names another.
        """
        return self._insert_observation(new, terms) if isinstance(new, Observation) else self._insert_edge(new)

    def close(
        self,
        old: Fact,
        closed_as: Closing,
        *,
        ended_at: Microseconds | None = None,
        by: int | None = None,
        reason: str = "",
    ) -> None:
        """Close an observation or edge as of now; it was true until `ended_at`, or never."""
        table = "observation" if isinstance(old, Observation) else "edge"
        sql = (
            f"UPDATE {table} SET superseded_at = ?, ended_at = ?, closed_as = ?, superseded_by = ?, reason = ?"
            " WHERE id = ?"
        )
        self.transaction.run(sql, (self.at, ended_at, closed_as, by, reason, old.id))
        if isinstance(old, Observation):
            self.postings.close(old.node, old.id, self._term_ids("observation", old.id))
        self.log(_OPERATIONS[closed_as], node=old.owner, **{table: old.id}, reason=reason)

    def record_again(
        self, old: Fact, *, valid_from: Microseconds, valid_to: Microseconds | None, reason: str = ""
    ) -> int:
        """Replace a row by one that says the same with these times; return its id.

        A retracted row stays retracted: the store did not believe it in the meantime.
        """
        fresh = {"recorded_at": self.at, "superseded_at": None, "ended_at": None, "closed_as": None, "reason": ""}
        new = self.insert(replace(old, valid_from=valid_from, valid_to=valid_to, superseded_by=None, **fresh))
        self.take_place(old, new, reason)
        return new

    def take_place(self, old: Fact, new: int, reason: str = "") -> None:
        """Replace an old row by one that says the same, with the contradictions of the old one."""
        table = "observation" if isinstance(old, Observation) else "edge"
        if old.is_current:
            self.close(old, "recorded again", by=new, reason=reason)
        else:
            self.transaction.run(f"UPDATE {table} SET superseded_by = ? WHERE id = ?", (new, old.id))
        if isinstance(old, Observation):
            self._contradict_as(old.id, new)

    def contradict(self, one: int, other: int) -> None:
        """Record that two observations contradict each other."""
        sql = "INSERT INTO contradiction (older, newer, recorded_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
        self.transaction.run(sql, (min(one, other), max(one, other), self.at))

    def is_contradiction(self, one: int, other: int) -> bool:
        sql = "SELECT 1 FROM contradiction WHERE older = ? AND newer = ?"
        return self.transaction.row(sql, (min(one, other), max(one, other))) is not None

    def _contradict_as(self, old: int, new: int) -> None:
        """Copy the contradictions of an observation to the one that replaces it."""
        sql = "SELECT older, newer FROM contradiction WHERE older = ? OR newer = ?"
        for older, newer in self.transaction.rows(sql, (old, old)):
            self.contradict(newer if older == old else older, new)

    def _insert_observation(self, new: Observation, terms: Counter[str] | None = None) -> int:
        if terms is None:
            terms = terms_of_text(new.text)
            self.postings.declare(words_by_term((new.text,), terms))
        sql = (
            "INSERT INTO observation (node, text, text_hash, source, confidence, term_ids,"
            " valid_from, valid_to, recorded_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id"
        )
        facts = (new.node, new.text, text_hash(new.text), new.source or self.source, new.confidence)
        times = (new.valid_from, new.valid_to, self.at)
        [(id_,)] = self.transaction.rows(sql, (*facts, self.postings.term_ids(terms), *times))
        self.postings.add(new.node, id_, terms)
        self.log("add", node=new.node, observation=id_)
        return int(id_)

    def _insert_edge(self, new: Edge) -> int:
        sql = (
            "INSERT INTO edge (from_node, relation, to_node, source, weight, valid_from, valid_to, recorded_at)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING id"
        )
        facts = (new.from_node, new.relation, new.to_node, new.source or self.source, new.weight)
        [(id_,)] = self.transaction.rows(sql, (*facts, new.valid_from, new.valid_to, self.at))
        self.log("link", node=new.from_node, edge=id_)
        return int(id_)

    # -- the index

    def _term_ids(self, table: str, id_: int) -> bytes:
        row = self.transaction.row(f"SELECT term_ids FROM {table} WHERE id = ?", (id_,))
        return bytes(row[0]) if row else b""

    def _index_name_again(self, node: Node, name: str, path: str) -> None:
        is_current = node.retracted_at is None
        self.postings.remove(node.id, NAME, self._term_ids("node", node.id), is_current=is_current)
        terms = terms_of_name(name, path)
        self.postings.declare(words_by_term((name, path), terms))
        ids = self.postings.term_ids(terms)
        self.postings.add(node.id, NAME, terms)
        if not is_current:
            self.postings.close(node.id, NAME, ids)
        self.transaction.run("UPDATE node SET term_ids = ? WHERE id = ?", (ids, node.id))
