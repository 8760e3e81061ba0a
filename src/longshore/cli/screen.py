"""The output of a command: text and tables on a terminal, plain data into a pipe.

Text from a server is cleaned before it reaches a terminal: escape sequences in it could do anything there.
"""

from __future__ import annotations

import os
import re
import sys
from collections import deque
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Any, TextIO, final

import msgspec

from longshore.invisible import CONTROLS, MARKS, TAGS

if TYPE_CHECKING:
    from rich.console import Console

DRAW_SECONDS = 0.05
"""Between two drawings of the progress line."""
_BAR = 24
_MOST_HELD = 1000
"""Notes held back while the user types; older ones are dropped."""
WIDEST = 60
"""Cells for a pipe are padded up to this width: one long cell of a server must not widen ten thousand rows."""

Line = tuple[int, list[tuple[str, str]]]
"""The indent of a line, and its parts, each with its style."""

_CONTROL = re.compile(f"[\\r{CONTROLS}{MARKS}{TAGS}]")
_IN_JSON = re.compile(f"[\\x7f-\\x9f{MARKS}]")


def clean(text: str) -> str:
    """A text that is safe on a terminal: control characters and invisible ones are spelled out."""
    plain = text.replace("\r\n", "\n").encode("utf-8", "replace").decode()
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), plain)


def one_line(text: str) -> str:
    """A cleaned text without line breaks."""
    return clean(" ".join(text.split()))


def short(text: str, most: int) -> str:
    """A cleaned line of at most `most` characters. It is cut before it is cleaned: a server may have sent megabytes."""
    line = one_line(text[: 4 * most])
    return line if len(line) <= most else line[: most - 1] + "…"


def many(count: int, noun: str) -> str:
    """`1 tool`, `2,000 tools`, `3 info`."""
    return f"{count:,} {noun}{'' if count == 1 or noun == 'info' else 's'}"


def json_text(value: Any) -> str:
    """Indented JSON. Characters that could control a terminal are written as JSON escapes."""
    text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    return _IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


class Screen:
    """The streams of a command. `person` says whether a user can be asked."""

    def __init__(self) -> None:
        self.out_is_terminal = _is_terminal(sys.stdout)
        self.err_is_terminal = _is_terminal(sys.stderr)
        self.person = self.err_is_terminal and _is_terminal(sys.stdin)
        self._status = ""
        self._held: deque[str] | None = None

    # -- stdout

    def text(self, text: str) -> None:
        """Print a text and a line end: cleaned on a terminal, unchanged into a pipe."""
        if self.out_is_terminal:
            self.clear()
            _write(sys.stdout, clean(text).removesuffix("\n") + "\n")
        else:
            self.data(text if text.endswith("\n") else text + "\n")

    def lines(self, lines: Iterable[Line]) -> None:
        """Print styled lines: coloured and folded on a terminal, plain into a pipe."""
        cleaned = [(indent, [(clean(text), style) for text, style in parts]) for indent, parts in lines]
        if not self.out_is_terminal:
            self.data("".join(" " * indent + "".join(text for text, _ in parts) + "\n" for indent, parts in cleaned))
            return
        from rich.console import Console
        from rich.padding import Padding
        from rich.text import Text

        self.clear()
        console = Console(highlight=False)
        for indent, parts in cleaned:
            console.print(Padding(Text.assemble(*parts, overflow="fold"), (0, 0, 0, indent), expand=False))

    def data(self, data: str | bytes) -> None:
        """Write exactly this. Raises OSError."""
        if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison] - the parent may have closed it
            raise OSError("stdout is closed")
        self.clear()  # also for a pipe, which may lead to the same terminal
        sys.stdout.flush()
        sys.stdout.buffer.write(data.encode("utf-8", "replace") if isinstance(data, str) else data)
        sys.stdout.buffer.flush()

    def json(self, value: Any) -> None:
        self.data(json_text(value) + "\n")

    def table(self, rows: list[list[str]], titles: list[str]) -> None:
        self.clear()
        print_table([[one_line(cell) for cell in row] for row in rows], titles)

    # -- stderr

    def note(self, text: str) -> None:
        """Print a remark; dim on a terminal."""
        if self._held is not None:
            self._held.append(text)
            return
        shown = clean(text)
        before = self._status
        self.clear()
        _write(sys.stderr, f"\x1b[2m{shown}\x1b[0m\n" if self._colours else f"{shown}\n")
        if before:
            self.status(before)

    def fail(self, text: str) -> None:
        """Print an error."""
        self.clear()
        _write(sys.stderr, clean(text) + "\n")

    def ask(self, text: str) -> None:
        """Print a question without a line end."""
        self.clear()
        _write(sys.stderr, clean(text))

    @contextmanager
    def hold(self) -> Generator[None]:
        """Hold notes back while the user types."""
        self._held = deque(maxlen=_MOST_HELD)
        try:
            yield
        finally:
            held, self._held = self._held, None
            for text in held:
                self.note(text)

    # -- the progress line

    @property
    def moves(self) -> bool:
        """Whether the terminal can redraw a line."""
        return self.err_is_terminal and os.environ.get("TERM", "dumb") != "dumb"

    @property
    def _colours(self) -> bool:
        return self.moves and not os.environ.get("NO_COLOR")

    def status(self, line: str) -> None:
        """Draw the progress line; the next output removes it."""
        if self.moves and self._held is None:
            self._status = line
            _write(sys.stderr, f"\r\x1b[K{line}")

    def clear(self) -> None:
        if self._status:
            self._status = ""
            _write(sys.stderr, "\r\x1b[K")

    @property
    def columns(self) -> int:
        try:
            return os.get_terminal_size(sys.stderr.fileno()).columns or 80
        except (OSError, ValueError):
            return 80


def _is_terminal(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.isatty()
    except ValueError:
        return False  # closed


def _write(stream: TextIO | None, text: str) -> None:
    """Write and flush. It never fails for a character that the terminal lacks, nor for a closed stderr."""
    if stream is None:
        return
    try:
        stream.flush()
        stream.buffer.write(text.encode(stream.encoding or "utf-8", "backslashreplace"))
        stream.buffer.flush()
    except (OSError, ValueError):
        if stream is not sys.stderr:
            raise


def abandon_stdout() -> None:
    """Redirect stdout to /dev/null: Python flushes it again at exit."""
    if sys.stdout is not None:  # pyright: ignore[reportUnnecessaryComparison] - the parent may have closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


# -- tables


def print_table(rows: list[list[str]], titles: list[str], console: Console | None = None) -> None:
    """Print rows under titles. Long cells are folded; cells are plain text, not markup."""
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
    """Rows in columns, without colour and trailing blanks."""
    widths = [min(WIDEST, max(map(len, column))) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


# -- progress


@final
class Progress:
    """Draws progress; for `on_progress`."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._drawn = 0.0

    def __call__(self, done: float, total: float | None, message: str | None) -> None:
        now = monotonic()
        if now - self._drawn >= DRAW_SECONDS or (total is not None and done >= total):
            self._drawn = now
            self._screen.status(progress_line(done, total, message, self._screen.columns))


def progress_line(done: float, total: float | None, message: str | None, columns: int) -> str:
    """A bar, the numbers and the server's message, cut to the terminal's width: a wrapped line can't be redrawn."""
    from rich.cells import set_cell_size

    if total is not None and total > 0:
        share = min(1.0, max(0.0, done / total))
        full = round(share * _BAR)
        head = f"{'━' * full}{'╌' * (_BAR - full)} {share:4.0%}  {_number(done)}/{_number(total)}"
    else:
        head = f"… {_number(done)}"
    # Cut before it is measured: measuring a million characters takes long.
    text = f"{head}  {one_line(message[: 4 * columns])}" if message else head
    return set_cell_size(text, max(1, columns - 1)).rstrip()


def _number(value: float) -> str:
    """A number with at most two decimals and no exponent."""
    return f"{value:,.2f}".rstrip("0").rstrip(".")
