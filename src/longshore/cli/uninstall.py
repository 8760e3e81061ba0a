"""`longshore uninstall`: remove a server that `longshore install` wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from longshore.cli.install import confirm, find_folders, make_slot
from longshore.cli.options import FAILED
from longshore.cli.screen import Screen
from longshore.errors import LongshoreError
from longshore.install.clients import BY_NAME

if TYPE_CHECKING:
    from longshore.install.change import Slot
    from longshore.install.written import WrittenEntries


@click.command(epilog="Exit codes: 0 done; 1 nothing was removed, and why; 2 wrong arguments; 130 interrupted.")
@click.argument("client", type=click.Choice(list(BY_NAME)), metavar="CLIENT")
@click.option("--name", metavar="NAME", help="The server's name in the file.  [default: the one that Longshore wrote]")
@click.option("--project", is_flag=True, help="Change the project's file, not the user's.")
@click.option("--dry-run", is_flag=True, help="Show the change and write nothing.")
@click.option("--yes", is_flag=True, help="Write without a question.")
@click.option("--force", is_flag=True, help="Remove an entry that Longshore did not write, or that was changed since.")
def uninstall(client: str, name: str | None, project: bool, dry_run: bool, yes: bool, force: bool) -> int:
    """Remove a server that `longshore install` wrote into a client's configuration file.

    An entry that was changed since stays, and so does one that somebody else wrote.
    """
    from longshore.install.change import apply, plan_removal
    from longshore.install.written import written_entries

    screen, known = Screen(), written_entries()
    slot = make_slot(BY_NAME[client], name or "", find_folders(), project=project)
    if name is None:
        slot = make_slot(BY_NAME[client], _only_name(slot, known), find_folders(), project=project)
    try:
        change = plan_removal(slot, known, force=force)
        if not confirm(change, screen, dry=dry_run, yes=yes):
            return 0
        backup = apply(change, slot, known)
    except LongshoreError as problem:
        screen.fail(str(problem))
        return FAILED
    more = "it was Longshore's and held nothing else, so it is deleted" if backup is None else f"before: {backup}"
    screen.text(f"removed {slot.name} from {slot.path}; {more}")
    return 0


def _only_name(slot: Slot, known: WrittenEntries) -> str:
    """The name of the one entry that Longshore wrote into a file. Raises click.UsageError."""
    names = [each.keys[1] for each in known.read() if each.path == slot.path]
    if len(names) != 1:
        what = f"Longshore wrote {', '.join(names)} there" if names else "Longshore wrote nothing there"
        raise click.UsageError(f"{slot.path}: {what}; say which: --name NAME")
    return names[0]
