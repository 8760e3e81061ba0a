"""Rows in columns: a table on a terminal, as wide as that allows, and plain text for a pipe."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

WIDEST = 60
"""Up to here cells are filled up with blanks. A single longer one must not widen all the others: a stranger may have
written it, and ten thousand rows of its length would fill the memory."""


def print_table(rows: list[list[str]], titles: list[str], console: Console | None = None) -> None:
    """Print rows under titles. Long cells are folded, never cut; cells are plain text, never markup."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for title in titles:
        table.add_column(title, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    (console or Console()).print(table)


def aligned(rows: list[list[str]]) -> str:
    """Columns for a pipe: as wide as they must be up to a limit, no colour, no trailing blanks."""
    widths = [min(WIDEST, max(map(len, column))) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
