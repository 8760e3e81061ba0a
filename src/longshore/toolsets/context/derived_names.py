"""Names of nodes that were added without one: each is shown by a text that is true at the requested time.

The name in the database is only a key, by which the same text is recognised when it is added again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec.structs import replace

from longshore.toolsets.context.checks import derive_name
from longshore.toolsets.context.database import Transaction, batches, marks
from longshore.toolsets.context.records import Microseconds, Moment, Node
from longshore.toolsets.context.rows import holds

NO_TEXT: Final = "(no text at this time)"
_READ: Final = 500
"""Characters of a text, of whose first line the name is made."""


def with_names(transaction: Transaction, nodes: Iterable[Node], moment: Moment, now: Microseconds) -> list[Node]:
    """The nodes with their names at a moment. A retracted node may keep its last name."""
    listed = list(nodes)
    names = dict[int, list[str]]()
    condition, values = holds("observation", moment, now)
    for batch in batches(node.id for node in listed if node.has_derived_name):
        sql = (
            f"SELECT node, substr(text, 1, {_READ}) FROM observation WHERE node IN ({marks(batch)}) AND {condition}"
            " ORDER BY id DESC"
        )
        for node, text in transaction.rows(sql, (*batch, *values)):
            names.setdefault(node, []).append(derive_name(text))
    return [
        replace(node, name=_name(node, names.get(node.id, ()))) if node.has_derived_name else node for node in listed
    ]


def _name(node: Node, names: Sequence[str]) -> str:
    """The name from several texts: the text that the node was created for, else the newest."""
    if node.name in names or (not names and node.retracted_at is not None):
        return node.name
    return names[0] if names else NO_TEXT
