"""A process that adds to a store and says what is committed, until it has done all or is killed."""

from __future__ import annotations

import os
import sys

from longshore.toolsets.context.place import is_address
from longshore.toolsets.context.records import NewItem, NewLink, NewSource, Targets
from longshore.toolsets.context.store import Store, open_store


def was_changed(store: Store, name: str) -> bool:
    return any(o.text.startswith("changed") for node in store.find(name) for o in store.observations(node.id))


def is_purged(place: str, number: int) -> bool:
    """Whether what was added is purged: seldom in PostgreSQL, which then writes all tables anew."""
    return number % (49 if is_address(place) else 7) == 6


def main(path: str, who: str, first: int, count: int) -> None:
    store = open_store(path)
    source = NewSource(actor=who)
    for number in range(first, first + count):
        name = f"{who} {number}"
        item = NewItem(kind="fact", name=name, text=f"value {number} of {who}", links=(NewLink(to="hub"),))
        if not was_changed(store, name):  # by the process before, which was killed
            [added] = store.add([item], source)
            if number % 3 == 1 and added.observation is not None:
                store.supersede(added.observation, f"changed {number} of {who}", source)
        if is_purged(path, number):
            store.purge(Targets(nodes=tuple(node.id for node in store.find(name))), source)
            continue
        os.write(1, f"{number}\n".encode())  # not before it is committed
    store.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
