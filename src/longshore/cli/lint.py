"""`longshore lint`: check the tools of any server against what clients accept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from longshore.cli.completion import complete_rule, complete_target, complete_waiver
from longshore.cli.options import SessionOptions, TargetOrCommand, command_of, utf8, with_options
from longshore.cli.screen import Screen
from longshore.schema.lint.clients import CLIENTS
from longshore.schema.lint.rule import COMMON, LEVELS, PROFILES, Level, Profile

if TYPE_CHECKING:
    from longshore.cli.describe import Described
    from longshore.cli.findings import Report
    from longshore.schema.lint.tool_list import ToolList

FOUND: Final = 1
FORMS: Final = ("text", "json", "sarif", "markdown")
NOTED: Final = 100
"""Mended tools that are named on stderr."""
_CODES = (
    "Exit codes: 0 clean; 1 findings at error level, with --strict also at warning level; 2 the target could not be "
    "checked; 130 interrupted."
)
_PROFILE = (
    f"Profiles whose rules apply: {', '.join(PROFILES)}. Repeatable.  [default: {', '.join(COMMON)}; brooklyn too if a "
    "server declares categories; all for the built-in server]"
)
_LEVEL = "The least severe finding that is shown: error, warning or info.  [default: info]"
_FIX = "Print the tools as JSON, mended if their meaning stays the same. No file is changed."
_AS = f"Print the tools as this client hands them to its model: {', '.join(CLIENTS)}."


@click.command(cls=TargetOrCommand, epilog=_CODES)
@click.argument("target", required=False, shell_complete=complete_target)
@click.option("--format", "form", type=click.Choice(FORMS), default="text", help="Output format.  [default: text]")
@click.option("--profile", multiple=True, type=click.Choice(PROFILES), metavar="NAME", help=_PROFILE)
@click.option("--level", type=click.Choice(LEVELS), metavar="LEVEL", help=_LEVEL)
@click.option("--strict", is_flag=True, help="Warnings fail too.")
@click.option(
    "--waive",
    multiple=True,
    metavar="[TOOL:]RULE=REASON",
    shell_complete=complete_waiver,
    help="Switch a rule off, and say why. Repeatable.",
)
@click.option("--fix", is_flag=True, help=_FIX)
@click.option("--as", "client", type=click.Choice(list(CLIENTS)), metavar="CLIENT", help=_AS)
@click.option("--explain", metavar="RULE", shell_complete=complete_rule, help="Explain a rule; all lists them.")
@with_options
@click.pass_context
def lint(ctx: click.Context, /, target: str | None, form: str, explain: str | None, **given: Any) -> int:
    """Check the tools of a server against what clients accept.

    TARGET is a server of yours (path/to/server.py, path/to/server.py:name or module:name), which is loaded and not
    run; a URL; the name of a server in a client's configuration; a JSON file with a tools/list result, or - for
    stdin. Or it is a command after --, as in longshore lint -- npx some-server. Without any, the built-in server is
    checked.

    A project writes its settings into longshore.toml, in [lint].
    """
    screen, command = Screen(), command_of(ctx)
    client, fix = given.pop("client"), given.pop("fix")
    if explain is not None:
        from longshore.cli.rules import print_rules

        print_rules(explain, form, screen)
        return 0
    if command and target is not None:
        raise click.UsageError(f"either TARGET or a command after --, not both: {target}")
    if client and fix:
        raise click.UsageError("--fix and --as print the tools in two ways; take one")
    if (client or fix) and form not in ("text", "json"):
        raise click.UsageError(f"{'--as prints text or json' if client else '--fix prints json'}, not {form}")

    from longshore import config as configuration
    from longshore.cli.describe import describe
    from longshore.cli.rules import read_profiles, read_waivers

    config = configuration.load()
    profiles = read_profiles(given.pop("profile"), config)
    waived = read_waivers(map(utf8, given.pop("waive")), config)
    level, strict = given.pop("level") or config.lint.level, given.pop("strict") or config.lint.strict
    found = describe(None if target is None else utf8(target), command, SessionOptions(**given), screen)
    server, profiles = found.surface, profiles or found.profiles
    if client:
        from longshore.cli.client_view import show

        show(server, client, form, screen)
        return 0
    if fix:
        server = _mend(server, profiles, waived, screen)
    report = _check(found, server, profiles, waived, level)
    _print(report, "left" if fix else form, screen)
    return FOUND if report.count("error") or (strict and report.count("warning")) else 0


def _mend(server: ToolList, profiles: tuple[Profile, ...], waived: dict[str, str], screen: Screen) -> ToolList:
    """Print the mended tools, and name on stderr what was mended."""
    from longshore.cli.screen import one_line
    from longshore.schema.lint.run import mend

    mended, done = mend(server, profiles, waived)
    screen.json({"tools": list(mended.tools)})
    for tool, ids in list(done.items())[:NOTED]:
        screen.note(f"mended {one_line(tool[:100])}: {', '.join(ids)}")
    if len(done) > NOTED:
        screen.note(f"… and {len(done) - NOTED:,} more")
    return mended


def _check(
    found: Described, server: ToolList, profiles: tuple[Profile, ...], waived: dict[str, str], level: Level
) -> Report:
    from msgspec.structs import replace

    from longshore.cli.findings import Report
    from longshore.schema.lint import run
    from longshore.schema.output import count_tokens

    refused = [replace(each, waived=waived.get(each.rule, "")) for each in found.refused]
    linted = run.lint(server, profiles=profiles, waived=waived)
    return Report(
        server=server.name,
        tools=len(server.tools),
        tokens=count_tokens(server.tools),
        findings=tuple(sorted((*refused, *linted), key=lambda each: LEVELS.index(each.level))),
        level=level,
        file=found.file,
    )


def _print(report: Report, form: str, screen: Screen) -> None:
    from longshore.cli import findings

    match form:
        case "json":
            screen.json(findings.as_json(report))
        case "sarif":
            screen.json(findings.as_sarif(report))
        case "left":  # stdout has the mended tools
            screen.note(f"left: {findings.summary(report)}")
        case "markdown":
            screen.data(findings.as_markdown(report))
        case _:
            screen.lines(findings.as_lines(report))
