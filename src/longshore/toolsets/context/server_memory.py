"""Import and export of the file of the official memory server (@modelcontextprotocol/server-memory).

It is JSON lines: entities with a name, a type and observations, and relations between names. It has no ids, times,
sources or history; names are its keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, count
from time import time_ns
from typing import Final, final

from msgspec import DecodeError, Struct, field
from msgspec.json import Decoder, encode

from longshore.errors import ToolError
from longshore.redaction.texts import remove_secrets
from longshore.toolsets.context.derived_names import with_names
from longshore.toolsets.context.importing import Importer
from longshore.toolsets.context.native_format import EXPORT_SECONDS, ImportReport, rows_of
from longshore.toolsets.context.parameters import RELATED
from longshore.toolsets.context.records import CONCEPT, NOTE, NOW, NewItem, NewLink, NewSource, Node
from longshore.toolsets.context.rows import NODE, holds, name_key, to_node
from longshore.toolsets.context.store import Store


class Entity(Struct, frozen=True, kw_only=True, tag_field="type", tag="entity"):
    """A line of an entity."""

    name: str
    entity_type: str = field(name="entityType", default="")
    observations: list[str] = []


class Relation(Struct, frozen=True, kw_only=True, tag_field="type", tag="relation"):
    """A line of a relation."""

    from_: str = field(name="from")
    to: str
    relation_type: str = field(name="relationType", default="")


_decoder: Final = Decoder(Entity | Relation)


def import_server_memory(store: Store, lines: Iterable[bytes], source: NewSource) -> ImportReport:
    """Add the entities and relations of lines.

    Unreadable lines are reported and left out. A repeated import changes nothing.
    """
    done = _Import(store, source)
    for number, text in enumerate(lines, 1):
        if text.strip():
            try:
                done.take(_decoder.decode(text), number)
            except DecodeError as problem:
                done.report(number, f"it is no entity or relation: {problem}")
    return done.finish()


@final
class _Import:
    """An import: entities are added during the read, relations when all entities are known."""

    def __init__(self, store: Store, source: NewSource) -> None:
        self._store, self._source = store, source
        self._importer = Importer(store, source)
        self._names = dict[tuple[str, str], str]()
        """The name of the file by the kind and key under which it is stored."""
        self._relations = list[tuple[int, Relation]]()
        self._texts = 0
        self.report = self._importer.report

    def take(self, line: Entity | Relation, number: int) -> None:
        to_word = self._importer.to_word
        if isinstance(line, Relation):
            from_, to, relation = map(_without_secrets, (line.from_, line.to, line.relation_type))
            self._relations.append((number, Relation(from_=from_, to=to, relation_type=to_word(relation))))
            return
        kind, name = to_word(_without_secrets(line.entity_type)) or NOTE, _without_secrets(line.name)
        stored = self._stored_name(kind, name)
        for text in line.observations or [""]:
            self._importer.add_later(number, name, NewItem(kind=kind, name=stored, text=_without_secrets(text)))
        self._texts += len(line.observations)

    def _stored_name(self, kind: str, name: str) -> str:
        """A name that no other entity of the file is stored under.

        Unlike the file, the store ignores case and spaces.
        """
        if not name.strip():
            return name  # the store will refuse it
        numbered = chain((name,), (f"{name} ({number})" for number in count(2)))
        stored = next(each for each in numbered if self._names.setdefault((kind, name_key(each, "")), name) == name)
        if stored != name:
            note = f"{name!r} is stored as {stored!r}: another name differs from it in case or spaces only"
            self._importer.notes[note] = None
        return stored

    def finish(self) -> ImportReport:
        self._importer.add_waiting()
        for number, relation in self._relations:
            try:
                start, end = self._end(relation.from_), self._end(relation.to)
            except ToolError as problem:
                self.report(number, problem)
                continue
            link = NewLink(to=f"n{end.id}", relation=relation.relation_type or RELATED)
            item = NewItem(kind=start.kind, name=start.name, path=start.path, links=(link,))
            self._importer.add_later(number, relation.from_, item)
        self._importer.add_waiting()
        return self._importer.made(len(self._importer.nodes) + self._texts + len(self._relations))

    def _end(self, name: str) -> Node:
        """The node at the end of a relation: from the file, else from the store, else a new one. Raises ToolError."""
        nodes = self._importer.nodes
        if name not in nodes:
            found = self._store.find(name)
            if len(found) > 1:
                raise ToolError(f"{len(found)} nodes are named {name[:100]!r}, and none of them is in the file")
            if not found:
                [added] = self._store.add([NewItem(kind=CONCEPT, name=name)], self._source)
                found = self._store.resolve(f"n{added.node}")
            nodes[name] = found[0]
        return nodes[name]


def _without_secrets(text: str) -> str:
    return remove_secrets(text)[0]


def export_server_memory(store: Store) -> Iterator[bytes]:
    """The current state of a store as lines of the memory server. Names that several nodes have get their kinds.

    Texts that are not true now, retracted nodes, sources and times are left out.
    """
    with store.database.reading(EXPORT_SECONDS) as transaction:
        now = time_ns() // 1000
        names = dict[int, str]()
        used = set[str]()
        condition, values = holds("observation", NOW, now)
        texts = f"SELECT text FROM observation WHERE node = ? AND {condition} ORDER BY id"
        for row in rows_of(transaction, "node", "id", NODE, "retracted_at IS NULL"):
            [node] = with_names(transaction, [to_node(row)], NOW, now)
            id_, kind, name = node.id, node.kind, node.name
            said = [row[0] for row in transaction.rows(texts, (id_, *values))]
            if node.has_derived_name and not said:
                continue
            numbered = (f"{name} (n{id_}, {number})" for number in count(2))
            wanted = chain((name, f"{name} ({kind})", f"{name} (n{id_})"), numbered)
            names[id_] = next(each for each in wanted if each not in used)
            used.add(names[id_])
            yield encode(Entity(name=names[id_], entity_type=kind, observations=said))
        columns = "id, from_node, relation, to_node, valid_from, valid_to"
        for _, start, relation, end, begins, ends in rows_of(
            transaction, "edge", "id", columns, "superseded_at IS NULL"
        ):
            if start in names and end in names and begins <= now and (ends is None or ends > now):
                yield encode(Relation(from_=names[start], to=names[end], relation_type=relation))
