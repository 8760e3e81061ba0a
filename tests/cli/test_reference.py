"""docs/cli.md holds the help of every command. To regenerate it: `python tests/cli/test_reference.py`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
from click.testing import CliRunner

from longshore.cli.main import cli

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"
HEAD = (
    "# The command line\n\n"
    "What `longshore COMMAND --help` says, written by `python tests/cli/test_reference.py` and checked by a test.\n"
)


def commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield path
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name)


def page() -> str:
    parts = [HEAD]
    for path in commands(cli):
        result = CliRunner(env={"COLUMNS": "100", "TERMINAL_WIDTH": "100"}).invoke(
            cli, [*path, "--help"], prog_name="longshore", terminal_width=100
        )
        assert result.exit_code == 0, result.output
        parts.append(f"## {' '.join(('longshore', *path))}\n\n```\n{result.output.strip()}\n```\n")
    return "\n".join(parts)


def test_the_page_is_what_the_commands_say() -> None:
    """In a process of its own: click keeps a command's help option as whoever used the command first had it."""
    done = subprocess.run([sys.executable, __file__, "--print"], capture_output=True, text=True, timeout=60)
    assert done.stdout == PAGE.read_text(encoding="utf-8"), done.stderr


if __name__ == "__main__":
    if "--print" in sys.argv:
        sys.stdout.write(page())
    else:
        PAGE.write_text(page(), encoding="utf-8")
