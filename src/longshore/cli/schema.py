"""`longshore schema`: write what a server offers to a file, and report the changes that break callers."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import click
from msgspec.structs import asdict

from longshore.cli.completion import complete_target
from longshore.cli.options import SessionOptions, TargetOrCommand, command_of, with_options
from longshore.cli.screen import Line, Screen, one_line
from longshore.schema.diff import SurfaceChange, verdict, worst_first

if TYPE_CHECKING:
    from longshore.cli.describe import Snapshot

FORMS: Final = ("text", "json", "markdown")
KEPT: Final = "surface.json"
"""The default file of --check."""
SHOWN: Final = 500
"""Changes in the forms for people."""
DIFFERENCES: Final = 200
"""Lines of the difference of one entry, in the form for people."""
_STYLES = {"+": "green", "-": "red"}
_CODES = "Exit codes: 0 {}; 1 {}; 2 the comparison failed; 130 interrupted."
_FORMAT = click.option("--format", "form", type=click.Choice(FORMS), default="text", help="Output format.")


@click.group()
def schema() -> None:
    """Keep what a server offers, and see which changes break callers."""


@schema.command(cls=TargetOrCommand, epilog=_CODES.format("no change breaks callers", "some do"))
@click.argument("old", shell_complete=complete_target)
@click.argument("new", required=False, shell_complete=complete_target)
@_FORMAT
@with_options
@click.pass_context
def diff(ctx: click.Context, /, old: str, new: str | None, form: str, **given: Any) -> int:
    """Report the changes that break callers.

    OLD and NEW are files that `longshore schema snapshot` wrote, lists of tools as JSON, - for stdin, or servers: all
    that `longshore lint` takes, NEW also as a command after --. For a server in Python it is known which old names it
    still takes; for other servers a name that is gone counts as gone.
    """
    from longshore.cli.describe import take_snapshot
    from longshore.cli.target import STDIN

    command = command_of(ctx)
    if (new is None) is not bool(command):
        raise click.UsageError(
            "NEW is missing" if new is None else f"either NEW or a command after --, not both: {new}"
        )
    if old == new == STDIN:
        raise click.UsageError("one of OLD and NEW may be stdin, not both")
    screen, options = Screen(), SessionOptions(**given)
    before, now = take_snapshot(old, options, screen), take_snapshot(new, options, screen, command)
    return int(any(change.breaks for change in _compare(before, now, form, screen)))


@schema.command(cls=TargetOrCommand, epilog=_CODES.format("the file is written, or the same", "--check found a change"))
@click.argument("target", required=False, shell_complete=complete_target)
@click.option("--check", is_flag=True, help="Write nothing; compare with the file.")
@click.option(
    "--output",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help=f"The file.  [default: stdout; with --check: {KEPT}]",
)
@_FORMAT
@with_options
@click.pass_context
def snapshot(
    ctx: click.Context, /, target: str | None, check: bool, output: str | None, form: str, **given: Any
) -> int:
    """Write what a server offers to a file, or check it.

    The file holds the tools, prompts, resources, templates and instructions, always in the same order;
    `assert_surface` of the pytest plugin writes the same file. TARGET is what `longshore lint` takes; a command comes
    after --. Without any, it is the built-in server.
    """
    from longshore.cli.describe import take_snapshot

    screen, options, command = Screen(), SessionOptions(**given), command_of(ctx)
    if command and target is not None:
        raise click.UsageError(f"either TARGET or a command after --, not both: {target}")
    if check:
        kept = take_snapshot(_named(output or KEPT), SessionOptions(), screen)
        now = take_snapshot(target, options, screen, command)
        changes = _compare(kept, now, form, screen)
        if changes:
            words = [*([target] if target else []), "--output", output or KEPT, *(("--", *command) if command else ())]
            screen.note(f"if that is meant: longshore schema snapshot {shlex.join(words)}")
        return int(bool(changes))
    if form != "text":
        raise click.UsageError("--format is for --check; a snapshot is always JSON")
    return _write(take_snapshot(target, options, screen, command), output, screen)


def _named(path: str) -> str:
    """The file as a target. Without `.json` its name would be read as a server's."""
    if not path.lower().endswith(".json"):
        raise click.UsageError(f"--output {path}: the file's name ends in .json")
    return path


def _compare(before: Snapshot, now: Snapshot, form: str, screen: Screen) -> list[SurfaceChange]:
    """Show the changes, and return them, the worst first."""
    from longshore.schema.diff import compare

    changes = worst_first(compare(before.surface, now.surface, now.renamed))
    if form == "json":
        listed = [{**asdict(change), "breaks": change.breaks} for change in changes]
        breaking = sum(change.breaks for change in changes)
        screen.json({"old": before.name, "new": now.name, "breaking": breaking, "changes": listed})
    elif form == "markdown":
        screen.data(_as_markdown(changes, before.name, now.name))
    else:
        screen.lines(_lines(changes, before.name, now.name))
    return changes


def _write(taken: Snapshot, output: str | None, screen: Screen) -> int:
    from longshore.errors import TargetError
    from longshore.files import write_atomic
    from longshore.schema.diff import count, write_surface_file

    data = write_surface_file(taken.surface)
    if output is None:
        screen.data(data)
        return 0
    try:
        write_atomic(_named(output), data)
    except OSError as problem:
        raise TargetError(f"{output} can't be written: {problem.strerror or problem}") from None
    screen.note(f"{output}: {count(taken.surface)}")
    return 0


# -- the changes as text and Markdown


def _lines(changes: Sequence[SurfaceChange], before: str, now: str) -> Iterator[Line]:
    for change in changes[:SHOWN]:
        yield 0, [(one_line(change.title), "bold")]
        yield from ((2, [("BREAKS  ", "bold red"), (one_line(line), "")]) for line in change.broken)
        yield from ((2, [("safe    ", "green"), (one_line(line), "")]) for line in change.safe)
        yield from ((4, [(line, _STYLES.get(line[:1], "dim"))]) for line in change.diff[:DIFFERENCES])
        if len(change.diff) > DIFFERENCES:
            yield 4, [(f"… and {len(change.diff) - DIFFERENCES:,} lines more", "dim")]
        yield 0, []
    if len(changes) > SHOWN:
        yield 0, [(f"… and {len(changes) - SHOWN:,} more: --format json has them all", "dim")]
    yield 0, [(f"{before} → {now}: {verdict(changes)}", "bold red" if any(c.breaks for c in changes) else "green")]


def _as_markdown(changes: Sequence[SurfaceChange], before: str, now: str) -> str:
    """A comment on a pull request."""
    from longshore.cli.findings import escape

    text = [f"### {escape(before)} → {escape(now)}: {verdict(changes)}", ""]
    for change in changes[:SHOWN]:
        text += [f"- **{escape(one_line(change.title))}**"]
        text += [f"  - **breaks:** {escape(one_line(line))}" for line in change.broken]
        text += [f"  - safe: {escape(one_line(line))}" for line in change.safe]
    if len(changes) > SHOWN:
        text.append(f"\n… and {len(changes) - SHOWN:,} more.")
    return "\n".join(text) + "\n"
