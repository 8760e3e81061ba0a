"""A terminal's screen: what programs draw on it, as text, whatever is sent to it."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longshore.toolsets.terminal.screen import MOST_COLUMNS, MOST_ROWS, TerminalScreen

CASES = [
    ("text", "one\r\ntwo", "one\ntwo", (2, 4)),
    ("a line feed keeps the column", "one\ntwo", "one\n   two", (2, 7)),
    ("long lines wrap", "abcdefghijklmn", "abcdefghij\nklmn", (2, 5)),
    ("a full line does not wrap yet", "abcdefghij", "abcdefghij", (1, 10)),
    ("a full line and a new one", "abcdefghij\r\nx", "abcdefghij\nx", (2, 2)),
    ("no wrapping", "\x1b[?7labcdefghijklmn", "abcdefghin", (1, 10)),
    ("scrolling", "1\r\n2\r\n3\r\n4\r\n5\r\n6", "2\n3\n4\n5\n6", (5, 2)),
    ("a carriage return", "abc\rX", "Xbc", (1, 2)),
    ("a backspace", "abc\b\bX", "aXc", (1, 3)),
    ("a tab", "a\tb", "a       b", (1, 10)),
    ("a tab to the left", "a\tb\x1b[ZX", "a       X", (1, 10)),
    ("a position", "\x1b[3;4Hx", "\n\n   x", (3, 5)),
    ("home", "abc\x1b[HX", "Xbc", (1, 2)),
    ("up and down, right and left", "a\x1b[2B\x1b[3Cb\x1b[A\x1b[2Dc", "a\n   c\n    b", (2, 5)),
    ("next and previous line", "ab\x1b[2Ec\x1b[Fd", "ab\nd\nc", (2, 2)),
    ("a column and a row", "abc\x1b[2Gx\x1b[4dy", "axc\n\n\n  y", (4, 4)),
    ("erase to the end of the line", "abcdef\x1b[3G\x1b[K", "ab", (1, 3)),
    ("erase from the beginning of the line", "abcdef\x1b[3G\x1b[1K", "   def", (1, 3)),
    ("erase the line", "abcdef\x1b[2K", "", (1, 7)),
    ("erase to the end of the screen", "ab\r\ncd\r\nef\x1b[2;2H\x1b[J", "ab\nc", (2, 2)),
    ("erase from the beginning of the screen", "ab\r\ncd\r\nef\x1b[2;1H\x1b[1J", "\n d\nef", (2, 1)),
    ("erase the screen", "ab\r\ncd\x1b[2J", "", (2, 3)),
    ("erase characters", "abcdef\x1b[2G\x1b[2X", "a  def", (1, 2)),
    ("delete characters", "abcdef\x1b[2G\x1b[2P", "adef", (1, 2)),
    ("insert blanks", "abcdefghij\x1b[2G\x1b[2@", "a  bcdefgh", (1, 2)),
    ("insert mode", "abc\r\x1b[4hXY\x1b[4lZ", "XYZbc", (1, 4)),
    ("insert lines", "1\r\n2\r\n3\x1b[2H\x1b[L", "1\n\n2\n3", (2, 1)),
    ("delete lines", "1\r\n2\r\n3\x1b[1H\x1b[2M", "3", (1, 1)),
    ("a region scrolls alone", "1\r\n2\r\n3\r\n4\r\n5\x1b[2;3r\x1b[3H\nx", "1\n3\nx\n4\n5", (3, 2)),
    ("a region scrolls back", "1\r\n2\r\n3\x1b[1;2r\x1b[H\x1bMx", "x\n1\n3", (1, 2)),
    ("scroll up and down", "1\r\n2\r\n3\x1b[S\x1b[2T", "\n\n2\n3", (3, 2)),
    ("lines outside the region stay", "1\r\n2\r\n3\x1b[2;3r\x1b[1H\x1b[9L", "1\n2\n3", (1, 1)),
    ("origin mode", "\x1b[2;4r\x1b[?6h\x1b[1;1Hx\x1b[9;1Hy", "\nx\n\ny", (4, 2)),
    ("save and restore", "ab\x1b7\x1b[5;5Hx\x1b8c", "abc\n\n\n\n    x", (1, 4)),
    ("the alternate screen", "main\x1b[?1049h\x1b[Hother\x1b[?1049l!", "main!", (1, 6)),
    ("colours", "\x1b[1;38;5;200mred\x1b[0m \x1b[38:2:1:2:3mx", "red x", (1, 6)),
    ("a title", "\x1b]0;title\x07x\x1b]2;t\x1b\\y", "xy", (1, 3)),
    ("lines and corners", "\x1b(0lqk\x1b(Bq \x0e\x1b)0x\x0fx", "┌─┐q │x", (1, 8)),
    ("wide characters", "日本x", "日本x", (1, 6)),
    ("a wide character that does not fit", "123456789日", "123456789\n日", (2, 3)),
    ("half of a wide character overwritten", "日本\x1b[2Gx", " x本", (1, 3)),
    ("the left half overwritten", "日本\x1b[1Gx", "x 本", (1, 2)),
    ("a combining mark", "e\u0301x", "e\u0301x", (1, 3)),
    ("an emoji of several characters", "👩\u200d💻", "👩💻", (1, 5)),
    ("a character repeated", "-\x1b[4bx", "-----x", (1, 7)),
    ("one-character controls", "ab\x9b1Gx\x85y", "xb\ny", (2, 2)),
    ("unknown sequences", "\x1b[>4;1m\x1b[?2004h\x1b[!p\x1b[1 q\x1b=x", "x", (1, 2)),
    ("a reset", "abc\x1b[2;3r\x1bcx", "x", (1, 2)),
    ("no printed control character", "a\x00\x07\x7fb\u202ec", "abc", (1, 4)),
]


def drawn(text: str, rows: int = 5, columns: int = 10) -> TerminalScreen:
    screen = TerminalScreen(rows, columns)
    screen.feed(text.encode())
    return screen


@pytest.mark.parametrize(("text", "shown", "cursor"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_drawn(text: str, shown: str, cursor: tuple[int, int]) -> None:
    screen = drawn(text)
    assert (screen.text(), screen.cursor) == (shown, cursor)


@pytest.mark.parametrize("text", [case[1] for case in CASES], ids=[case[0] for case in CASES])
def test_input_in_pieces_draws_the_same(text: str) -> None:
    whole, pieces = drawn(text), TerminalScreen(5, 10)
    for byte in text.encode():
        pieces.feed(bytes([byte]))
    assert (pieces.text(), pieces.cursor) == (whole.text(), whole.cursor)


def test_questions_about_the_terminal_are_answered() -> None:
    screen = TerminalScreen(5, 10)
    assert screen.feed(b"\x1b[2;3H\x1b[6n\x1b[c\x1b[5n\x1b[>c") == b"\x1b[2;3R\x1b[?6c\x1b[0n"
    assert screen.feed(b"x") == b""
    assert len(screen.feed(b"\x1b[c" * 1000)) < 100


def test_a_program_chooses_the_form_of_arrow_keys() -> None:
    screen = drawn("\x1b[?1h")
    assert screen.application_cursor
    screen.feed(b"\x1b[?1l")
    assert not screen.application_cursor


def test_the_text_before_the_cursor_is_the_prompt() -> None:
    assert drawn("a\r\n$ rest\x1b[3G").before_cursor() == "$ "


def test_a_smaller_screen_keeps_the_cursors_row() -> None:
    screen = drawn("1\r\n2\r\n3\r\nfour5678")
    screen.resize(2, 4)
    assert (screen.text(), screen.cursor, screen.size) == ("3\nfour", (2, 4), (2, 4))
    screen.resize(3, 8)
    screen.feed(b"\r\nx")
    assert screen.text() == "3\nfour\nx"


def test_the_main_screen_is_resized_with_the_alternate_one() -> None:
    screen = drawn("1\r\n2\r\n3\x1b[?1049h")
    screen.resize(2, 1)
    screen.feed(b"\x1b[?1049l\r\n\n\n\nx")
    assert screen.text() == "\nx"


PIECES = st.sampled_from(
    [
        *("\x1b[", "\x1b]", "\x1b", ";", "9999999999", "1", "2", "0", "?", "6", "7", "1049", "\x07", "\n", "\r", "\b"),
        *("\t", "日", "e\u0301", "x" * 30, "\x84", "\x9b", "\x90"),
        *"ABCDEFGHJKLMPSTXZ@`abdefhlmnrsu78c()",
    ]
)


@given(
    st.lists(PIECES, max_size=60).map("".join), st.lists(st.tuples(st.integers(1, 6), st.integers(1, 12)), max_size=3)
)
def test_hostile_input_stays_within_the_screen(text: str, sizes: list[tuple[int, int]]) -> None:
    screen = TerminalScreen(4, 9)
    for size in [*sizes, (4, 9)]:
        screen.feed(text.encode())
        screen.resize(*size)
        row, column = screen.cursor
        lines = screen.text().split("\n")
        assert 1 <= row <= size[0] and 1 <= column <= size[1]
        assert len(lines) <= size[0]


@pytest.mark.parametrize(
    "piece",
    [
        "\x1b[9999L",
        "\x1b[9999@",
        "\x1b[2J",
        "x\x1b[9999b",
        "\x1b[9999S",
        "e" + "\u0301" * 50,
        "\x1b]0;",
        "\x1b[" + "1;" * 50,
    ],
)
def test_hostile_input_costs_no_more_than_its_length(piece: str) -> None:
    screen = TerminalScreen(MOST_ROWS, MOST_COLUMNS)
    data = (piece * (200_000 // len(piece))).encode()
    for begin, end in pairwise(range(0, len(data) + 4096, 4096)):
        screen.feed(data[begin:end])
    assert len(screen.text()) <= MOST_ROWS * (MOST_COLUMNS + 1) * 5
