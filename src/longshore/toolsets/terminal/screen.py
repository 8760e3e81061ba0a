"""The screen of a terminal as text.

It follows the sequences of terminfo's `xterm` that programs draw with (`less`, `vim`, `top`, prompts, progress bars)
and ignores colours, titles and the mouse.
"""

from __future__ import annotations

import re
from codecs import getincrementaldecoder
from collections.abc import Callable
from typing import Final, final

from longshore.toolsets.terminal.escapes import clean
from longshore.toolsets.terminal.grid import Grid

ROWS: Final = 30
COLUMNS: Final = 120
"""Wide enough for most lines of programs, so that few are divided."""
MOST_ROWS: Final = 100
MOST_COLUMNS: Final = 300
_MOST_PARTIAL: Final = 64 << 10
"""Characters of a sequence whose end has not come. Longer ones are no sequences."""
_MOST_REPLIES: Final = 16
"""Answers to questions in one piece of output. A program asks one and waits."""

_TOKEN: Final = re.compile(
    r"(?P<text>[^\x00-\x1f\x7f-\x9f]+)"
    r"|(?:\x1b\[|\x9b)(?P<private>[<-?]?)(?P<numbers>[0-9;:]*)(?P<between>[ -/]*)(?P<final>[@-~])"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x80-\x9f]*(?:\x07|\x1b\\|\x9c)"
    r"|\x1b(?P<escape>[ -/]*[0-~])"
    r"|(?P<control>[\x00-\x1f\x7f-\x9f])"
)
_PARTIAL: Final = re.compile(
    r"(?:(?:\x1b\[|\x9b)[0-?]*[ -/]*"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x80-\x9f]*\x1b?"
    r"|\x1b[ -/]*)\Z"
)
_LINE_DRAWING: Final = str.maketrans("`afgjklmnopqrstuvwxyz{|}~", "◆▒°±┘┐┌└┼⎺⎻─⎼⎽├┤┴┬│≤≥π≠£·")
_SHIFTS: Final = {"\x0f": 0, "\x0e": 1}
_SETS: Final = {"(": 0, ")": 1}
_LINE_SET, _TEXT_SET = "0", "B"


@final
class TerminalScreen:
    """A terminal's screen. `feed` takes the output of a program; `text` shows the screen."""

    def __init__(self, rows: int = ROWS, columns: int = COLUMNS) -> None:
        self._decoder = getincrementaldecoder("utf-8")("replace")
        self._partial = ""
        self._replies = list[str]()
        self._reset(rows, columns)

    def _reset(self, rows: int, columns: int) -> None:
        self._grid = Grid(rows, columns)
        self._sets = [_TEXT_SET, _TEXT_SET]
        self._set = 0
        self.application_cursor = False
        """Whether the program wants arrow keys in their other form."""

    @property
    def size(self) -> tuple[int, int]:
        """Rows and columns."""
        return self._grid.rows, self._grid.columns

    @property
    def is_drawn(self) -> bool:
        """Whether a program draws on the whole screen, such as an editor or a pager."""
        return self._grid.is_alternate

    @property
    def cursor(self) -> tuple[int, int]:
        """Row and column of the cursor, counted from 1."""
        return self._grid.row + 1, self._grid.column + 1

    def text(self) -> str:
        """The rows of the screen, without blanks at their ends and blank rows at its end."""
        return clean("\n".join("".join(line).rstrip() for line in self._grid.lines)).rstrip("\n")

    def before_cursor(self) -> str:
        """The text of the cursor's row before it, such as a prompt."""
        return clean("".join(self._grid.lines[self._grid.row][: self._grid.column]))

    def resize(self, rows: int, columns: int) -> None:
        """Change the size. If there are fewer rows, those above the cursor go first."""
        self._grid.resize(rows, columns)

    def feed(self, data: bytes) -> bytes:
        """Draw the output of a program. Returns the answers to its questions about the terminal."""
        text = self._partial + self._decoder.decode(data)
        partial = _PARTIAL.search(text, max(0, len(text) - _MOST_PARTIAL))
        end = partial.start() if partial else len(text)
        self._partial = text[end:]
        for found in _TOKEN.finditer(text, 0, end):
            match found.lastgroup:
                case "text":
                    self._write(found[0])
                case "control":
                    self._control(found[0])
                case "final":
                    self._sequence(found)
                case "escape":
                    self._escape(found["escape"])
                case _:
                    pass  # a title, or another string
        replies, self._replies = self._replies, []
        return "".join(replies).encode()

    def _write(self, text: str) -> None:
        self._grid.write(text.translate(_LINE_DRAWING) if self._sets[self._set] == _LINE_SET else text)

    def _control(self, control: str) -> None:
        if control in _CONTROLS:
            _CONTROLS[control](self._grid)
        elif control in _SHIFTS:
            self._set = _SHIFTS[control]

    def _escape(self, escape: str) -> None:
        if escape == "c":
            self._reset(*self.size)
        elif escape[0] in _SETS:
            self._sets[_SETS[escape[0]]] = escape[1:]
        elif escape in _ESCAPES:
            _ESCAPES[escape](self._grid)

    def _sequence(self, found: re.Match[str]) -> None:
        private, final = found["private"], found["final"]
        numbers = [int(part[:4] or 0) for part in found["numbers"].replace(":", ";").split(";")[:16]]
        if found["between"]:
            return
        if final in "hl":
            for number in numbers:
                self._set_mode(private, number, final == "h")
        elif final in "cn":
            self._reply(private + final, numbers[0])
        elif not private and final in _ACTIONS:
            first = numbers[0] or 1
            second = (numbers[1] if len(numbers) > 1 else 0) or 1
            _ACTIONS[final](self._grid, first, second)
        elif not private and final in _SELECTIONS:
            _SELECTIONS[final](self._grid, numbers[0])
        elif final == "r" and not private:
            self._grid.set_region(max(numbers[0], 1) - 1, (numbers[1] if len(numbers) > 1 else 0) or self._grid.rows)

    def _set_mode(self, private: str, mode: int, on: bool) -> None:
        grid = self._grid
        match private, mode:
            case "", 4:
                grid.insert = on
            case "?", 1:
                self.application_cursor = on
            case "?", 6:
                grid.origin = on
                grid.go_to_row(0, 0)
            case "?", 7:
                grid.autowrap = on
            case "?", 47 | 1047 | 1049:
                if mode == 1049 and on:
                    grid.save_cursor()
                grid.show_alternate(on)
                if mode == 1049 and not on:
                    grid.restore_cursor()
            case _:
                pass

    def _reply(self, question: str, number: int) -> None:
        """Answer questions for the type of the terminal, its state, and the position of the cursor."""
        row, column = self.cursor
        answers = {("c", 0): "\x1b[?6c", ("n", 5): "\x1b[0n", ("n", 6): f"\x1b[{row};{column}R"}
        answer = answers.get((question, number))
        if answer is not None and len(self._replies) < _MOST_REPLIES:
            self._replies.append(answer)


_CONTROLS: Final[dict[str, Callable[[Grid], None]]] = {
    "\b": lambda grid: grid.go(grid.row, grid.column - 1),
    "\t": lambda grid: grid.tab(1),
    "\n": Grid.line_feed,
    "\v": Grid.line_feed,
    "\f": Grid.line_feed,
    "\r": Grid.carriage_return,
    "\x84": Grid.line_feed,
    "\x85": Grid.next_line,
    "\x8d": Grid.reverse_line_feed,
}
_ESCAPES: Final[dict[str, Callable[[Grid], None]]] = {
    "7": Grid.save_cursor,
    "8": Grid.restore_cursor,
    "D": Grid.line_feed,
    "E": Grid.next_line,
    "M": Grid.reverse_line_feed,
}
_ACTIONS: Final[dict[str, Callable[[Grid, int, int], None]]] = {
    "A": lambda grid, n, _: grid.move(-n, 0),
    "B": lambda grid, n, _: grid.move(n, 0),
    "C": lambda grid, n, _: grid.move(0, n),
    "D": lambda grid, n, _: grid.move(0, -n),
    "E": lambda grid, n, _: grid.move(n, -grid.columns),
    "F": lambda grid, n, _: grid.move(-n, -grid.columns),
    "G": lambda grid, n, _: grid.go(grid.row, n - 1),
    "H": lambda grid, n, column: grid.go_to_row(n - 1, column - 1),
    "I": lambda grid, n, _: grid.tab(n),
    "L": lambda grid, n, _: grid.insert_lines(n),
    "M": lambda grid, n, _: grid.insert_lines(-n),
    "P": lambda grid, n, _: grid.delete_cells(n),
    "S": lambda grid, n, _: grid.scroll(grid.top, n),
    "T": lambda grid, n, _: grid.scroll(grid.top, -n),
    "X": lambda grid, n, _: grid.erase_cells(grid.column, grid.column + n),
    "Z": lambda grid, n, _: grid.tab(-n),
    "@": lambda grid, n, _: grid.insert_blanks(n),
    "`": lambda grid, n, _: grid.go(grid.row, n - 1),
    "a": lambda grid, n, _: grid.move(0, n),
    "b": lambda grid, n, _: grid.repeat(n),
    "d": lambda grid, n, _: grid.go_to_row(n - 1, grid.column),
    "e": lambda grid, n, _: grid.move(n, 0),
    "f": lambda grid, n, column: grid.go_to_row(n - 1, column - 1),
    "s": lambda grid, _, __: grid.save_cursor(),
    "u": lambda grid, _, __: grid.restore_cursor(),
}
"""The action of the last character of a sequence, with its first two numbers, which are 1 if left out."""
_SELECTIONS: Final[dict[str, Callable[[Grid, int], None]]] = {"J": Grid.erase_in_screen, "K": Grid.erase_in_line}
