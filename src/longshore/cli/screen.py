"""Where a command's output goes: texts and tables for people on a terminal, plain data into a pipe.

Nothing that a server says reaches a terminal raw: an escape sequence in it could do anything there.
"""

from __future__ import annotations

import os
import re
import sys
from collections import deque
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from time import monotonic
from typing import Any, TextIO, final

import msgspec

from longshore.wire.unseen import CONTROLS, MARKS, TAGS

WRAPPED_CHARACTERS = 100_000
"""Longer texts are printed as they are: folding them at words takes time, and nobody reads them on a terminal."""

EVERY_SECONDS = 0.05
"""How often the line of progress is drawn: more is neither seen nor free."""
_BAR = 24
_MOST_HELD = 1000
"""Notes that are kept while somebody types; older ones are lost."""

_LEAST_COLUMNS = 20
"""In a terminal that is narrower, lines break where they must."""

_HANGING = 4
"""How far the rest of a folded line is set in."""

Line = tuple[int, list[tuple[str, str]]]
"""How far a line is set in, and its parts, each with its style."""

_CONTROL = re.compile(f"[\\r{CONTROLS}{MARKS}{TAGS}]")
_IN_JSON = re.compile(f"[\\x7f-\\x9f{MARKS}]")


def clean(text: str) -> str:
    """A text that can do nothing to a terminal: what is not for reading is spelled out."""
    plain = text.replace("\r\n", "\n").encode("utf-8", "replace").decode()
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), plain)


def one_line(text: str) -> str:
    """The same, for the cell of a table."""
    return clean(" ".join(text.split()))


def short(text: str, most: int) -> str:
    """The same, no longer than anybody reads. Cut before it is cleaned: a stranger may have sent megabytes."""
    line = one_line(text[: 4 * most])
    return line if len(line) <= most else line[: most - 1] + "…"


def many(count: int, noun: str) -> str:
    """`1 tool`, `2,000 tools`, `3 info`."""
    return f"{count:,} {noun}{'' if count == 1 or noun == 'info' else 's'}"


def json_text(value: Any) -> str:
    """JSON for people and programs. What could move a terminal's cursor is written as an escape of JSON's own."""
    text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    return _IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


class Screen:
    """The three streams of a command. `person` is whether somebody is there to be asked."""

    def __init__(self) -> None:
        self.out_is_terminal = _is_terminal(sys.stdout)
        self.err_is_terminal = _is_terminal(sys.stderr)
        self.person = self.err_is_terminal and _is_terminal(sys.stdin)
        self._status = ""
        self._held: deque[str] | None = None

    # -- what was asked for

    def text(self, text: str) -> None:
        """A text with a line end of its own: folded and cleaned for a terminal, as it is for a pipe."""
        if not self.out_is_terminal:
            self.data(text if text.endswith("\n") else text + "\n")
            return
        self.clear()
        shown = clean(text).removesuffix("\n")
        if len(shown) > WRAPPED_CHARACTERS:
            _write(sys.stdout, shown + "\n")
            return
        from rich.console import Console
        from rich.text import Text

        Console(highlight=False).print(Text(shown, overflow="fold"))

    def lines(self, lines: Iterable[Line]) -> None:
        """Lines of styled parts: coloured and folded under their indent on a terminal, plain and whole for a pipe."""
        cleaned = [(indent, [(clean(text), style) for text, style in parts]) for indent, parts in lines]
        if not self.out_is_terminal:
            self.data("".join(" " * indent + "".join(text for text, _ in parts) + "\n" for indent, parts in cleaned))
            return
        from rich.console import Console
        from rich.text import Text

        self.clear()
        console = Console(highlight=False)
        for indent, parts in cleaned:
            width = max(_LEAST_COLUMNS, console.width - indent - _HANGING)
            for number, row in enumerate(Text.assemble(*parts).wrap(console, width, overflow="fold")):
                row.rstrip()
                before = Text(" " * (indent + (_HANGING if number else 0)))
                console.print(before + row, no_wrap=True, overflow="ignore", crop=False)

    def data(self, data: str | bytes) -> None:
        """Bytes for a pipe, exactly these. Raises OSError."""
        if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison] - who started us has closed it
            raise OSError("stdout is closed")
        self.clear()  # also for a pipe: it may lead to the same terminal
        sys.stdout.flush()
        sys.stdout.buffer.write(data.encode("utf-8", "replace") if isinstance(data, str) else data)
        sys.stdout.buffer.flush()

    def json(self, value: Any) -> None:
        self.data(json_text(value) + "\n")

    def table(self, rows: list[list[str]], titles: list[str]) -> None:
        from longshore.cli.table import print_table

        self.clear()
        print_table([[one_line(cell) for cell in row] for row in rows], titles)

    # -- beside it

    def note(self, text: str) -> None:
        """Something to know, on stderr; dim on a terminal."""
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
        """What went wrong, on stderr."""
        self.clear()
        _write(sys.stderr, clean(text) + "\n")

    def ask(self, text: str) -> None:
        """A question, without a line end: the answer follows."""
        self.clear()
        _write(sys.stderr, clean(text))

    @contextmanager
    def hold(self) -> Generator[None]:
        """While a person types, nothing else is printed; notes come after."""
        self._held = deque(maxlen=_MOST_HELD)
        try:
            yield
        finally:
            held, self._held = self._held, None
            for text in held:
                self.note(text)

    # -- the line that changes

    @property
    def moves(self) -> bool:
        """Whether a line can be drawn over."""
        return self.err_is_terminal and os.environ.get("TERM", "dumb") != "dumb"

    @property
    def _colours(self) -> bool:
        return self.moves and not os.environ.get("NO_COLOR")

    def status(self, line: str) -> None:
        """Show a line in place of the last. It is gone when anything else is printed."""
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
        return False  # it was closed before we began


def _write(stream: TextIO | None, text: str) -> None:
    """Never fails for a letter that the terminal does not have. A stderr that is gone hears nothing."""
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
    """Print no more on stdout: it can't be written, and Python would try once more at its end."""
    if sys.stdout is not None:  # pyright: ignore[reportUnnecessaryComparison] - who started us has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


# -- progress


@final
class Progress:
    """What `on_progress` is told, on a terminal."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._drawn = 0.0

    def __call__(self, done: float, total: float | None, message: str | None) -> None:
        now = monotonic()
        if now - self._drawn >= EVERY_SECONDS or (total is not None and done >= total):
            self._drawn = now
            self._screen.status(line(done, total, message, self._screen.columns))


def line(done: float, total: float | None, message: str | None, columns: int) -> str:
    """How far, of how much, and what the server says it is doing, cut to the terminal's width: what is wider could not
    be drawn over."""
    from rich.cells import set_cell_size

    if total is not None and total > 0:
        share = min(1.0, max(0.0, done / total))
        full = round(share * _BAR)
        head = f"{'━' * full}{'╌' * (_BAR - full)} {share:4.0%}  {_number(done)}/{_number(total)}"
    else:
        head = f"… {_number(done)}"
    # Cut before it is measured: a million letters take long, and so many are never seen.
    text = f"{head}  {one_line(message[: 4 * columns])}" if message else head
    return set_cell_size(text, max(1, columns - 1)).rstrip()


def _number(value: float) -> str:
    """At most two decimals, and never in the form 1e+07."""
    return f"{value:,.2f}".rstrip("0").rstrip(".")
