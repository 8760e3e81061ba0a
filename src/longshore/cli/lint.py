"""`longshore lint`: check the tools of any server against what clients accept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click
from msgspec import Struct

from longshore.cli.completion import complete_rule, complete_target, complete_waiver
from longshore.cli.options import Options, TargetOrCommand, command_of, utf8, with_options
from longshore.cli.screen import Screen
from longshore.schema.lint.clients import CLIENTS
from longshore.schema.lint.rule import COMMON, LEVELS, PROFILES, Level, Profile

if TYPE_CHECKING:
    from longshore.cli.describe import Described
    from longshore.cli.findings import Report

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


class LintOptions(Struct, frozen=True):
    """The options of the command line, completed by the configuration."""

    profiles: tuple[Profile, ...]
    """Empty: the default profiles of the server."""
    waived: dict[str, str]
    level: Level
    strict: bool


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
    screen = Screen()
    if explain is not None:
        return _explain(explain, form, screen)
    command = command_of(ctx)
    client, fix = given.pop("client"), given.pop("fix")
    if command and target is not None:
        raise click.UsageError(f"either TARGET or a command after --, not both: {target}")
    if client and fix:
        raise click.UsageError("--fix and --as print the tools in two ways; take one")
    if (client or fix) and form not in ("text", "json"):
        raise click.UsageError(f"{'--as prints text or json' if client else '--fix prints json'}, not {form}")
    options = _read_options(given)
    from longshore.cli.describe import describe

    found = describe(None if target is None else utf8(target), command, Options(**given), screen)
    if client:
        from longshore.cli.client_view import show

        show(found.surface, client, form, screen)
        return 0
    return _fix(found, options, screen) if fix else _report(found, options, form, screen)


def _read_options(given: dict[str, Any]) -> LintOptions:
    """Takes the lint options out of `given`. Raises ConfigError and click.UsageError."""
    from longshore import config as configuration
    from longshore.cli.rules import read_profiles, read_waivers

    config = configuration.load()
    return LintOptions(
        read_profiles(given.pop("profile"), config),
        read_waivers(map(utf8, given.pop("waive")), config),
        given.pop("level") or config.lint.level,
        given.pop("strict") or config.lint.strict,
    )


def _explain(id: str, form: str, screen: Screen) -> int:
    from longshore.cli import rules

    found = rules.explain(id)
    if form == "json":
        screen.json(rules.as_json(found))
    elif form == "text":
        screen.lines(rules.lines(found))
    else:
        raise click.UsageError(f"a rule is explained as text or json, not as {form}; docs/lint-rules.md has them all")
    return 0


def _fix(found: Described, options: LintOptions, screen: Screen) -> int:
    """Print the mended tools; name on stderr what was mended and what is left."""
    from msgspec.structs import replace

    from longshore.cli.findings import summary
    from longshore.cli.screen import one_line
    from longshore.schema.lint.run import mend

    mended, done = mend(found.surface, options.profiles or found.profiles, options.waived)
    screen.json({"tools": list(mended.tools)})
    for tool, ids in list(done.items())[:NOTED]:
        screen.note(f"mended {one_line(tool[:100])}: {', '.join(ids)}")
    if len(done) > NOTED:
        screen.note(f"… and {len(done) - NOTED:,} more")
    left = _check(replace(found, surface=mended), options)
    screen.note(f"left: {summary(left)}")
    return _exit_code(left, options)


def _report(found: Described, options: LintOptions, form: str, screen: Screen) -> int:
    from longshore.cli import findings

    report = _check(found, options)
    match form:
        case "json":
            screen.json(findings.as_json(report))
        case "sarif":
            from longshore.cli.sarif import as_sarif

            screen.json(as_sarif(report))
        case "markdown":
            screen.data(findings.as_markdown(report))
        case _:
            screen.lines(findings.lines(report))
    return _exit_code(report, options)


def _check(found: Described, options: LintOptions) -> Report:
    """Lint what was found at the target."""
    from msgspec.structs import replace

    from longshore.cli.findings import Report
    from longshore.schema.lint import run
    from longshore.schema.output import count_tokens

    server = found.surface
    refused = [replace(each, waived=options.waived.get(each.rule, "")) for each in found.refused]
    linted = run.lint(server, profiles=options.profiles or found.profiles, waived=options.waived)
    return Report(
        server=server.name,
        tools=len(server.tools),
        tokens=count_tokens(server.tools),
        findings=tuple(sorted((*refused, *linted), key=lambda each: LEVELS.index(each.level))),
        level=options.level,
        file=found.file,
    )


def _exit_code(report: Report, options: LintOptions) -> int:
    return FOUND if report.count("error") or (options.strict and report.count("warning")) else 0
