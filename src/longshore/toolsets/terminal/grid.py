"""The cells of a terminal's screen, its cursor, and the operations on both. Every change is limited to the screen."""

from __future__ import annotations

from typing import Final, final
from unicodedata import category, east_asian_width

_MOST_MARKS: Final = 4
"""Combining marks on one character. Languages use two."""
_TAB: Final = 8

Line = list[str]
"""The cells of a row. The right half of a wide character is an empty cell; a short row is blank at its end."""


@final
class Grid:
    """Rows of cells with a cursor. Rows and columns are counted from 0."""

    def __init__(self, rows: int, columns: int) -> None:
        self.rows, self.columns = rows, columns
        self.lines: list[Line] = [[] for _ in range(rows)]
        self.row = self.column = 0
        self.at_end = False
        """Whether the cursor is behind the last column, so that the next character begins a new row."""
        self.top, self.bottom = 0, rows - 1
        """The rows that are scrolled."""
        self.autowrap, self.insert, self.origin = True, False, False
        self._main: list[Line] | None = None
        """The main screen, while the alternate one is shown."""
        self._saved = (0, 0)

    # -- text

    def write(self, text: str) -> None:
        """Write characters at the cursor, onto the next row where one is full."""
        if not text.isascii() or self.insert:
            for character in text:
                self._write_character(character)
            return
        while text:
            room = self._wrap_first(1)
            part, text = text[:room], text[room:]
            if text and not self.autowrap:
                part, text = part[:-1] + text[-1], ""
            self._put(list(part))

    def _write_character(self, character: str) -> None:
        width = _width(character)
        if not width:
            self._add_mark(character)
            return
        self._wrap_first(width)
        if self.insert:
            self.insert_blanks(width)
        self._put([character] if width == 1 else [character, ""])

    def _wrap_first(self, width: int) -> int:
        """Begin a new row if the next character belongs there. Returns the free columns of the row."""
        if self.autowrap and (self.at_end or self.column + width > self.columns):
            self.next_line()
        self.at_end = False
        self.column = min(self.column, max(0, self.columns - width))
        return self.columns - self.column

    def _put(self, cells: Line) -> None:
        line, end = self._padded(), self.column + len(cells)
        if line[self.column : self.column + 1] == [""]:
            line[self.column - 1] = " "  # the left half of a wide character, whose right half is overwritten
        if line[end : end + 1] == [""]:
            line[end] = " "
        line[self.column : end] = cells
        self.column = end
        if end >= self.columns:
            self.column, self.at_end = self.columns - 1, True

    def _add_mark(self, mark: str) -> None:
        """Add a combining mark to the character before the cursor."""
        line = self.lines[self.row]
        at = min(self.column if self.at_end else self.column - 1, len(line) - 1)
        if at > 0 and line[at] == "":
            at -= 1
        if at >= 0 and len(line[at]) <= _MOST_MARKS and category(mark)[0] == "M":
            line[at] += mark

    def repeat(self, count: int) -> None:
        """Write the character before the cursor again."""
        before = self.lines[self.row][: self.column + self.at_end]
        if before and len(before[-1]) == 1:
            self.write(before[-1] * min(count, self.columns))

    def _padded(self) -> Line:
        """The cursor's row, filled with blanks up to the cursor."""
        line = self.lines[self.row]
        line += " " * (self.column - len(line))
        return line

    # -- the cursor

    def go(self, row: int, column: int) -> None:
        """Go to a row and column, or to the nearest within the screen."""
        self.row = min(max(row, 0), self.rows - 1)
        self.column = min(max(column, 0), self.columns - 1)
        self.at_end = False

    def move(self, rows: int, columns: int) -> None:
        """Move by so many rows and columns, not out of the scrolled rows if the cursor is in them."""
        inside = self.top <= self.row <= self.bottom
        low, high = (self.top, self.bottom) if inside else (0, self.rows - 1)
        self.go(min(max(self.row + rows, low), high), self.column + columns)

    def go_to_row(self, row: int, column: int) -> None:
        """Go to a row that is counted from the first scrolled one in origin mode."""
        self.go(min(self.top + row, self.bottom) if self.origin else row, column)

    def tab(self, count: int) -> None:
        """Go to a tab stop to the right, or to the left if `count` is negative."""
        stop = self.column // _TAB if count > 0 else -(-self.column // _TAB)
        self.go(self.row, (stop + count) * _TAB)

    def save_cursor(self) -> None:
        self._saved = self.row, self.column

    def restore_cursor(self) -> None:
        self.go(*self._saved)

    def carriage_return(self) -> None:
        self.column, self.at_end = 0, False

    def line_feed(self) -> None:
        if self.row == self.bottom:
            del self.lines[self.top]  # as `scroll` does, which most output needs for every line
            self.lines.insert(self.bottom, [])
        else:
            self.row = min(self.row + 1, self.rows - 1)
        self.at_end = False

    def next_line(self) -> None:
        self.column = 0
        self.line_feed()

    def reverse_line_feed(self) -> None:
        if self.row == self.top:
            self.scroll(self.top, -1)
        else:
            self.go(self.row - 1, self.column)

    # -- rows

    def scroll(self, top: int, count: int) -> None:
        """Move the rows from `top` to the last scrolled one up, or down if `count` is negative."""
        end = self.bottom + 1
        blank = min(abs(count), end - top)
        empty: list[Line] = [[] for _ in range(blank)]
        if count > 0:
            self.lines[top:end] = self.lines[top + blank : end] + empty
        else:
            self.lines[top:end] = empty + self.lines[top : end - blank]

    def insert_lines(self, count: int) -> None:
        """Insert blank rows at the cursor, or delete rows if `count` is negative."""
        if self.top <= self.row <= self.bottom:
            self.scroll(self.row, -count)
            self.go(self.row, 0)

    def set_region(self, top: int, bottom: int) -> None:
        """Set which rows are scrolled, from `top` up to before `bottom`."""
        bottom = min(bottom, self.rows)
        if 0 <= top < bottom - 1:
            self.top, self.bottom = top, bottom - 1
            self.go(self.top if self.origin else 0, 0)

    @property
    def is_alternate(self) -> bool:
        return self._main is not None

    def show_alternate(self, on: bool) -> None:
        """Show the alternate screen, which is blank at first, or the main one again."""
        if on and self._main is None:
            self._main, self.lines = self.lines, [[] for _ in range(self.rows)]
        elif not on and self._main is not None:
            self.lines, self._main = self._main, None

    def resize(self, rows: int, columns: int) -> None:
        """Change the size. If there are fewer rows, those above the cursor go first."""
        surplus = max(0, self.row - rows + 1)
        self.lines = _fit(self.lines[surplus:], rows, columns)
        if self._main is not None:
            self._main = _fit(self._main, rows, columns)
        self.rows, self.columns = rows, columns
        self.top, self.bottom = 0, rows - 1
        self.go(self.row - surplus, self.column)

    # -- cells

    def insert_blanks(self, count: int) -> None:
        line = self._padded()
        line[self.column : self.column] = " " * min(count, self.columns - self.column)
        del line[self.columns :]

    def delete_cells(self, count: int) -> None:
        del self.lines[self.row][self.column : self.column + count]

    def erase_cells(self, begin: int, end: int) -> None:
        """Blank the cells of the cursor's row from `begin` up to before `end`."""
        line = self.lines[self.row]
        if end >= len(line):
            del line[begin:]
        else:
            line[begin:end] = " " * (end - begin)

    def erase_in_line(self, what: int) -> None:
        """Erase to the end of the row (0), from its beginning (1), or all of it (2)."""
        self.erase_cells(0 if what else self.column, self.column + 1 if what == 1 else self.columns)

    def erase_in_screen(self, what: int) -> None:
        """Erase to the end of the screen (0), from its beginning (1), or all of it (2)."""
        begin, end = {0: (self.row + 1, self.rows), 1: (0, self.row)}.get(what, (0, self.rows))
        self.lines[begin:end] = [[] for _ in range(end - begin)]
        if what in (0, 1):
            self.erase_in_line(what)


def _fit(lines: list[Line], rows: int, columns: int) -> list[Line]:
    fitted = [line[:columns] for line in lines[:rows]]
    return fitted + [[] for _ in range(rows - len(fitted))]


def _width(character: str) -> int:
    """How many cells a character takes."""
    if character.isascii():
        return 1
    if category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if east_asian_width(character) in "WF" else 1
