"""`longshore context copy`: move a project's context to another place or engine."""

from __future__ import annotations

import os

import click


@click.command("copy")
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.option("--replace", is_flag=True, help="Delete what TO holds. Without this a TO that is not empty is refused.")
def context_copy(source: str, target: str, replace: bool) -> int:
    """Copy all of a context graph, with its history and ids.

    FROM and TO are files or addresses: postgresql://USER:PASSWORD@HOST/DATABASE. TO is complete or as it was before.
    """
    from longshore.cli.screen import Progress, Screen, many
    from longshore.errors import StoreError
    from longshore.toolsets.context.copying import copy_store
    from longshore.toolsets.context.place import is_address
    from longshore.toolsets.context.store import open_store

    screen = Screen()
    if not is_address(source) and not os.path.isfile(source):
        raise StoreError(source, "there is no such file", "name the file or address of a context graph")
    draw = Progress(screen)
    old = open_store(source)
    try:
        new = open_store(target)
        try:
            counts = copy_store(old, new, lambda table, done, total: draw(done, total, table), replace=replace)
        finally:
            new.close()
    finally:
        old.close()
        screen.clear()
    facts = ", ".join(many(counts[table], table) for table in ("node", "observation", "edge", "event"))
    screen.text(f"copied {facts} from {old.place} to {new.place}; the copy was compared with them")
    return 0
