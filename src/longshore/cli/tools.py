"""`longshore tools`: the tools of a server as a table, a reference page or JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from longshore.registry.tool import Entry
from longshore.schema.output import TOKEN_CHARACTERS, count_tokens, encode
from longshore.toolsets.discovery.survey import argument_lines, kind_of, tool_line


@click.command()
@click.argument("target", required=False)
@click.option("--markdown", "form", flag_value="markdown", help="Print a reference page.")
@click.option("--json", "form", flag_value="json", help="Print the tools as in tools/list.")
def tools(target: str | None, form: str | None) -> None:
    """List the tools of a server.

    TARGET is your server: path/to/server.py, path/to/server.py:name or module:name. The default is the built-in
    server.
    """
    if target is not None and target.lower().startswith(("http://", "https://")):
        raise click.UsageError(f"this command is for servers in Python; for a URL: longshore list {target} --tools")
    from longshore.cli.target import BUILTIN, load

    app, refused = load(BUILTIN if target is None else target)
    if refused:
        raise refused[0]
    entries = app.engine.listed_tools()
    if form == "json":
        click.echo(encode([entry.describe() for entry in entries]).decode())
    elif form == "markdown":
        click.echo(reference(app.name, entries, target), nl=False)
    else:
        from longshore.cli.screen import print_table

        lines = [(tool_line(entry), _effects(entry)) for entry in entries]
        rows = [[line.name, line.category, effects, line.summary] for line, effects in lines]
        print_table(rows, ["tool", "category", "effects", ""])
        click.echo(f"{len(rows)} tools, {count_tokens([entry.describe() for entry in entries])} tokens")


def reference(name: str, entries: Sequence[Entry], target: str | None = None) -> str:
    """A reference page of all tools of a server, in Markdown."""
    described = [entry.describe() for entry in entries]
    command = " ".join(["longshore tools", *([target] if target else []), "--markdown"])
    lines = [
        f"# The tools of {name}",
        "",
        f"<!-- Made by `{command}`. -->",
        "",
        f"{len(entries)} tools. `tools/list` costs a model {count_tokens(described)} tokens "
        f"(a token is {TOKEN_CHARACTERS} characters of the JSON).",
        "",
        "| tool | category | effects | tokens | |",
        "|---|---|---|---|---|",
    ]
    for entry, record in zip(entries, described, strict=True):
        line = tool_line(entry)
        cells = [
            f"[`{line.name}`](#{line.name})",
            line.category,
            _effects(entry),
            str(count_tokens(record)),
            line.summary,
        ]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    for entry, record in zip(entries, described, strict=True):
        lines += ["", *_section(entry, record)]
    return "\n".join(lines) + "\n"


def _section(entry: Entry, record: dict[str, Any]) -> list[str]:
    lines = [f"## {entry.name}", "", record.get("description", "No description.")]
    if entry.help:
        from inspect import cleandoc

        lines += ["", cleandoc(entry.help)]
    if entry.aliases:
        lines += ["", f"Earlier names: {', '.join(f'`{alias}`' for alias in entry.aliases)}."]
    arguments = argument_lines(record["inputSchema"])
    lines += ["", *(f"- `{name}` ({kind}){': ' if text else ''}{text}" for name, kind, text in arguments)]
    if not arguments:
        lines.append("Takes no arguments.")
    if "outputSchema" in record:
        lines += ["", f"Gives: {kind_of(record['outputSchema'], record['outputSchema'])}."]
    if entry.errors:
        lines += ["", *(f"- Error `{name}`: {text}" for name, text in entry.errors.items())]
    if entry.examples:
        lines += ["", "For example: " + ", ".join(f"`{encode(example).decode()}`" for example in entry.examples) + "."]
    return lines


def _effects(entry: Entry) -> str:
    return (entry.effects or "not declared") + (", idempotent" if entry.idempotent else "")
