"""The records of the context graph: stored rows, input and results, all frozen.

**Times** are whole microseconds of UTC since 1970, intervals are half open (`from <= t < to`). There are two axes:

- *valid time* is when something is true in the world (`valid_from`, `valid_to`);
- *known time* is when this store has believed it (`recorded_at`, `superseded_at`). Known times strictly increase from
  one transaction to the next, in all processes that share a store, whatever their clocks say.

An observation or edge is never overwritten: it is closed, from `superseded_at` on in known time, and `closed_as` says
how. `ended_at` says since when, in valid time, it is not true any more; None says that it was never true. So a question
for a `Moment` has an exact answer.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from msgspec import Struct, field

Microseconds: TypeAlias = int
SourceType: TypeAlias = Literal["agent", "file", "commit", "url", "import"]
Outcome: TypeAlias = Literal["created", "merged", "unchanged", "restored"]

Closing: TypeAlias = Literal["superseded", "ended", "recorded again", "retracted", "retracted with node", "not in file"]
"""How an observation or edge was closed:

- `superseded`: another text took its place, with a date or as a correction;
- `ended`: it was said to be true until a date that has passed;
- `recorded again`: a row with other times says the same;
- `retracted`, `retracted with node`: it was retracted, or its node was;
- `not in file`: its file does not contain it any more, or was deleted. Statements of agents stay current.
"""

NOTE, CONCEPT = "note", "concept"
"""The kind of a node added without one, and of a node that only a link names."""
CONTRADICTS = "contradicts"
"""The relation of nodes that can't both be right; the others are free words, such as `calls` and `depends_on`."""


class Moment(Struct, frozen=True, kw_only=True):
    """Which observations and edges a question is about: those true at `valid_at`, as known at `known_at`.

    None is now. `Moment(valid_at=t)` asks what was true then, with all that is known today, corrections included: this
    is the tools' `as_of`. `Moment(known_at=t)` asks what this store believed then about the present of today;
    `Moment(valid_at=t, known_at=t)` what it would have answered then.
    """

    valid_at: Microseconds | None = None
    known_at: Microseconds | None = None


NOW = Moment()


class Interval(Struct, frozen=True, kw_only=True):
    """The times when something is true and when that was known, its source, and how it was closed."""

    source: int
    valid_from: Microseconds
    valid_to: Microseconds | None = None
    recorded_at: Microseconds
    superseded_at: Microseconds | None = None
    ended_at: Microseconds | None = None
    closed_as: Closing | None = None
    superseded_by: int | None = None
    """The row that replaced it. Restored and recorded-again rows have one too."""
    reason: str = ""
    """Why it was closed, in the words of who did."""

    @property
    def is_current(self) -> bool:
        """Whether the row is current: it may be true now or later, or have been true until its end."""
        return self.superseded_at is None

    @property
    def was_never_true(self) -> bool:
        """Whether the statement was closed as never true."""
        return self.superseded_at is not None and self.ended_at is None and self.closed_as != "recorded again"

    def overlaps(self, valid_from: Microseconds, valid_to: Microseconds | None) -> bool:
        """Whether it is valid at any time of an interval."""
        begins_before = valid_to is None or self.valid_from < valid_to
        return begins_before and (self.valid_to is None or valid_from < self.valid_to)

    def holds(self, valid_at: Microseconds, known_at: Microseconds) -> bool:
        """Whether it is true at one time, as known at another."""
        if self.recorded_at > known_at or self.valid_from > valid_at:
            return False
        if self.valid_to is not None and valid_at >= self.valid_to:
            return False
        if self.superseded_at is None or self.superseded_at > known_at:
            return True
        return self.ended_at is not None and valid_at < self.ended_at


# What is stored


class Node(Struct, frozen=True, kw_only=True):
    """A thing that is remembered. `id` is shown as `n12`."""

    id: int
    kind: str
    name: str
    path: str = ""
    """The file that it is of, from the project's root; empty for all that is in no file."""
    importance: float = 0.5
    pinned: bool = False
    attributes: dict[str, Any] = field(default_factory=dict[str, Any])
    created_at: Microseconds = 0
    updated_at: Microseconds = 0
    retracted_at: Microseconds | None = None
    retracted_as: Literal["retracted", "not in file"] | None = None
    has_derived_name: bool = False
    """Nobody gave it a name: what is shown instead begins a text that is true at the asked time. The stored name is the
    beginning of its last text, by which the same text without a name is recognised."""


class Observation(Interval, frozen=True, kw_only=True):
    """One text about a node: the unit of fact. `id` is shown as `o34`."""

    id: int
    node: int
    text: str
    confidence: float = 1.0

    @property
    def owner(self) -> int:
        """The node that has the observation."""
        return self.node


class Edge(Interval, frozen=True, kw_only=True):
    """A typed link from one node to another. `id` is shown as `e56`."""

    id: int
    from_node: int
    relation: str
    to_node: int
    weight: float = 1.0

    @property
    def owner(self) -> int:
        """The node at which the edge begins."""
        return self.from_node


class ContradictingPair(Struct, frozen=True, kw_only=True):
    """Two observations marked as contradicting each other. Both stay, and are shown together while both hold."""

    older: int
    newer: int
    recorded_at: Microseconds


class Source(Struct, frozen=True, kw_only=True):
    """Where observations and edges come from."""

    id: int
    type: SourceType
    uri: str = ""
    session: str = ""
    client: str = ""
    actor: str = ""
    at: Microseconds = 0


class GraphEvent(Struct, frozen=True, kw_only=True):
    """One change, in the order of their commits. It lists the ids of the changed rows, and no observation's text."""

    sequence: int
    at: Microseconds
    actor: str
    operation: str
    node: int | None = None
    observation: int | None = None
    edge: int | None = None
    detail: dict[str, Any] = field(default_factory=dict[str, Any])


class FileState(Struct, frozen=True, kw_only=True):
    """The state of a file when it was last ingested."""

    path: str
    size: int
    modified_ns: int
    hash: str
    parser: str
    """The parser's name and version: another one reads the file again."""


# What is put in


class NewSource(Struct, frozen=True, kw_only=True):
    """The source of a change; equal sources are stored once."""

    type: SourceType = "agent"
    uri: str = ""
    session: str = ""
    client: str = ""
    actor: str = ""


class NewLink(Struct, frozen=True, kw_only=True):
    """A link from the item that contains it."""

    to: str
    """A node's id (`n12`), or its name. If no node has the name, one of `kind` is created."""
    relation: str = "related_to"
    kind: str = ""
    """Of the node that is linked to, where several have its name."""
    path: str = ""
    weight: float = 1.0


class NewItem(Struct, frozen=True, kw_only=True):
    """A node to add, or to extend: an item with an existing kind, name and path is merged with that node."""

    text: str = ""
    name: str = ""
    """Without one, the first line of the text."""
    kind: str = NOTE
    path: str = ""
    links: tuple[NewLink, ...] = ()
    importance: float | None = None
    pinned: bool | None = None
    attributes: dict[str, Any] = field(default_factory=dict[str, Any])
    confidence: float = 1.0
    valid_from: Microseconds | None = None
    """None: since it was recorded."""
    valid_to: Microseconds | None = None
    contradicts: int | None = None
    """An observation that can't be right if this is."""


class NodeChange(Struct, frozen=True, kw_only=True):
    """New fields of a node; None leaves a field unchanged."""

    kind: str | None = None
    name: str | None = None
    path: str | None = None
    importance: float | None = None
    pinned: bool | None = None
    attributes: dict[str, Any] | None = None


class Targets(Struct, frozen=True, kw_only=True):
    """The ids to retract, restore or purge. A node includes all of its observations and edges."""

    nodes: tuple[int, ...] = ()
    observations: tuple[int, ...] = ()
    edges: tuple[int, ...] = ()


# What comes out


class AddedItem(Struct, frozen=True, kw_only=True):
    """The result of adding one item."""

    node: int
    kind: str
    name: str
    outcome: Outcome
    """`unchanged`: all that it says was known already."""
    observation: int | None = None
    """The one that was added, or that has the same text."""
    edges: tuple[int, ...] = ()
    """Of its links, those that were known already too."""
    linked: tuple[int, ...] = ()
    """Nodes that were created because a link names them."""


ForgetMode: TypeAlias = Literal["retract", "restore", "purge"]


class ForgetReport(Struct, frozen=True, kw_only=True):
    """The ids that were retracted, restored or purged."""

    nodes: tuple[int, ...] = ()
    observations: tuple[int, ...] = ()
    edges: tuple[int, ...] = ()
    backups: tuple[str, ...] = ()
    """After a purge: files that may still hold the text. They are copies from before a migration; and the write-ahead
    log, if another process read it all the time."""


class Details(Struct, frozen=True, kw_only=True):
    """A node with its observations, edges and sources."""

    node: Node
    observations: tuple[Observation, ...]
    edges: tuple[Edge, ...]
    contradicting: dict[int, tuple[int, ...]]
    """By observation: those that can't be right if it is."""
    sources: dict[int, Source]
    neighbours: dict[int, Node]


class Targeted(Struct, frozen=True, kw_only=True):
    """The observations and edges that ids name, and the nodes they belong to."""

    nodes: tuple[Node, ...]
    observations: tuple[Observation, ...]
    edges: tuple[Edge, ...]
    owners: dict[int, Node]


class Query(Struct, frozen=True, kw_only=True):
    """The words and filters of a search. `kind:x`, `path:x` and "quoted phrases" in the text count as filters, too."""

    text: str
    kinds: tuple[str, ...] = ()
    path: str = ""
    """A file or folder, from the project's root."""
    moment: Moment = NOW
    limit: int = 10
    offset: int = 0
    """Hits to leave out, of the same query before."""


class Contradiction(Struct, frozen=True, kw_only=True):
    """A contradiction of a hit: an observation, or a node without displayed observations."""

    node: int
    name: str = ""
    observation: Observation | None = None


class Hit(Struct, frozen=True, kw_only=True):
    """A node in the result, with its observations at the query's moment, the best first."""

    node: Node
    score: float
    found_by: Literal["words", "name", "link", "filter"]
    linked_from: str = ""
    """The name of the better hit whose link led here."""
    observations: tuple[Observation, ...] = ()
    contradictions: tuple[Contradiction, ...] = ()
    """At the same moment."""
    sources: dict[int, Source] = field(default_factory=dict[int, Source])
    """Of its observations."""


class UnknownTerm(Struct, frozen=True, kw_only=True):
    """A word of the query that no text has at its moment, and similar words that some text has."""

    word: str
    nearest: tuple[str, ...] = ()
    """If there are any, they were searched for in its place."""
    is_past: bool = False
    """Texts of other times have it."""


class QueryResult(Struct, frozen=True, kw_only=True):
    """The hits of a query from `offset` on, with counts and notes."""

    query: Query
    hits: tuple[Hit, ...] = ()
    total: int = 0
    """Hits in all; with `more`, at least so many."""
    more: bool = False
    unknown: tuple[UnknownTerm, ...] = ()
    missing_phrases: tuple[str, ...] = ()
    """Quoted phrases that no hit has: the hits have their words."""
    phrase_nodes: int | None = None
    """In so many texts they were looked for; None: in all."""
    filtered: int = 0
    """Nodes with the words that the filters or the moment left out; counted when there are no hits."""
    other_times: int = 0
    """Texts with the words that were true or believed at other times only; counted when there are no hits."""
    words: int = 0
    """Terms that were searched for."""
    is_cut: bool = False
    """The query is longer than is read, or has more terms than are searched for."""
    nodes: int = 0
    """In the whole store."""


class StoreStatus(Struct, frozen=True, kw_only=True):
    """The size and state of a store."""

    place: str
    schema: int
    journal: str
    """`wal`, or what is used where that is not possible."""
    bytes: int
    most_bytes: int
    nodes: int
    observations: int
    superseded: int
    edges: int
    sources: int
    events: int
    files: int
    terms: int
    kinds: dict[str, int]
    last_event: int
    last_change_at: Microseconds | None
