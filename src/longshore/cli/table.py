"""A table on a terminal, as wide as the terminal allows."""

from __future__ import annotations

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text


def print_table(rows: list[list[str]], titles: list[str], console: Console | None = None) -> None:
    """Print rows under titles. Long cells are folded, never cut; cells are plain text, never markup."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for title in titles:
        table.add_column(title, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    (console or Console()).print(table)
