"""Contradictions of the observations of nodes: observations marked as such, and nodes linked by `contradicts`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from longshore.toolsets.context.database import Transaction, batches, marks
from longshore.toolsets.context.reading import contradicting_of, named_nodes, observations_of
from longshore.toolsets.context.records import CONTRADICTS, Contradiction, Microseconds, Moment, Observation
from longshore.toolsets.context.rows import OBSERVATION, holds, to_observation

CONTRADICTING: Final = 100
"""Nodes linked with one, in each direction, that are read."""


def contradictions_of(
    transaction: Transaction, shown: Mapping[int, list[Observation]], moment: Moment, now: Microseconds
) -> dict[int, list[Contradiction]]:
    """By node: the contradictions of its displayed observations. Only those that hold at the moment count."""
    found = dict[int, dict[int, Contradiction]]()
    for node, other in _marked(transaction, shown, moment, now):
        found.setdefault(node, {})[other.id] = Contradiction(node=other.node, observation=other)
    linked = _linked(transaction, list(shown), moment, now)
    texts = observations_of(transaction, {other for _, other in linked}, moment, now)
    for node, other_node in linked:
        newest = texts.get(other_node, [None])[0]
        key = newest.id if newest else -other_node
        found.setdefault(node, {})[key] = Contradiction(node=other_node, observation=newest)
    ends = {each.node for listed in found.values() for each in listed.values()}
    names = {id_: node.name for id_, node in named_nodes(transaction, ends, moment, now).items()}
    return {
        node: [
            Contradiction(node=c.node, name=names[c.node], observation=c.observation) for _, c in sorted(listed.items())
        ]
        for node, listed in found.items()
    }


def _marked(
    transaction: Transaction, shown: Mapping[int, list[Observation]], moment: Moment, now: Microseconds
) -> list[tuple[int, Observation]]:
    """Pairs of a displayed node and an observation that contradicts one of its own."""
    owners = {o.id: node for node, listed in shown.items() for o in listed}
    pairs = contradicting_of(transaction, owners, moment, now)
    condition, values = holds("observation", moment, now)
    others = dict[int, Observation]()
    for batch in batches({other for listed in pairs.values() for other in listed}):
        sql = f"SELECT {OBSERVATION} FROM observation WHERE id IN ({marks(batch)}) AND {condition}"
        for row in transaction.rows(sql, (*batch, *values)):
            others[row[0]] = to_observation(row)
    return [(owners[one], others[other]) for one, listed in pairs.items() for other in listed if other in others]


def _linked(transaction: Transaction, nodes: list[int], moment: Moment, now: Microseconds) -> list[tuple[int, int]]:
    """Pairs of a displayed node and a node that an edge marks as contradicting it, in either direction."""
    condition, values = holds("edge", moment, now)
    pairs = list[tuple[int, int]]()
    for here, there in (("from_node", "to_node"), ("to_node", "from_node")):
        having = list[int]()  # almost always empty: selecting by node would take longer
        for batch in batches(nodes):
            sql = f"SELECT DISTINCT {here} FROM edge WHERE {here} IN ({marks(batch)}) AND relation = ? AND {condition}"
            having += [row[0] for row in transaction.rows(sql, (*batch, CONTRADICTS, *values))]
        where = f"{here} = node.id AND relation = ? AND {condition} ORDER BY id LIMIT {CONTRADICTING}"
        join = transaction.join_picked("edge", where)
        for batch in batches(having):
            ids = marks(batch)
            sql = f"SELECT edge.{here}, edge.{there} FROM node {join} WHERE node.id IN ({ids}) ORDER BY edge.id"
            pairs += [(row[0], row[1]) for row in transaction.rows(sql, (CONTRADICTS, *values, *batch))]
    return pairs
