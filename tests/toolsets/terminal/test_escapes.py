"""Output as text: no escape sequence survives, nothing else is lost, and a progress bar is shown as it was last."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longshore.toolsets.terminal.escapes import clean, show_bytes

CASES = [
    ("plain text", "grün ✓\n\tx\n", "grün ✓\n\tx\n"),
    ("colours", "\x1b[1;31mred\x1b[0m", "red"),
    ("a cleared screen", "a\x1b[2J\x1b[Hb", "ab"),
    ("a title", "\x1b]0;title\x07text", "text"),
    ("a link", "\x1b]8;;http://evil/\x1b\\here\x1b]8;;\x1b\\", "here"),
    ("the clipboard", "a\x1b]52;c;cHdu\x07b", "ab"),
    ("a device control string", "a\x1bPq#0;2;0\x1b\\b", "ab"),
    ("an application command", "a\x1b_Gf=32;AAAA\x1b\\b", "ab"),
    ("one-character controls", "a\x9b31mb\x9d52;c;x\x9cc\x90q\x9cd", "abcd"),
    ("bracketed paste", "\x1b[200~ls\x1b[201~", "ls"),
    ("a character set", "\x1b(Bx\x1b)0y\x0e\x0f", "xy"),
    ("a string without an end hides nothing", "\x1b]0;no end\nnext", "0;no end\nnext"),
    ("a sequence without an end", "x\x1b[31", "x31"),
    ("a lone escape", "a\x1b\x1b[0mb\x1b", "a\\x1bb\\x1b"),
    ("a sequence within another", "\x1b\x1b[31m[32mx", "\\x1b[32mx"),
    ("a bell", "a\x07b", "ab"),
    ("other control characters", "a\x00b\x7fc\x85", "a\\x00b\\x7fc\\x85"),
    ("reversed reading order", "a\u202eb\u2066", "a\\u202eb\\u2066"),
    ("invisible tags", "a\U000e0041", "a\\U000e0041"),
    ("joined emoji", "👩\u200d💻", "👩\u200d💻"),
    ("DOS lines", "a\r\nb\r\n", "a\nb\n"),
    ("two carriage returns", "a\r\r\nb", "a\nb"),
    ("a progress bar", " 10%\r 50%\r100%\ndone", "100%\ndone"),
    ("a shorter last state", "working\rdone", "doneing"),
    ("an erased line", "working\r\x1b[Kdone", "done"),
    ("a line erased up to the cursor", "abcdef\b\b\x1b[1KX", "    Xf"),
    ("a whole line erased", "abc\b\x1b[2Kd", "  d"),
    ("backspaces", "abc\b\bX", "aXc"),
    ("more backspaces than text", "a\b\b\bX", "X"),
    ("bold by overstriking", "N\bNA\bA _\bx", "NA x"),
    ("colour in a progress bar", "\x1b[32m 1%\x1b[0m\r\x1b[32m 2%\x1b[0m", " 2%"),
]


@pytest.mark.parametrize(("text", "shown"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_shown(text: str, shown: str) -> None:
    assert clean(text) == shown


def test_bytes_that_are_no_text_are_shown() -> None:
    assert show_bytes(b"caf\xe9 \x9b31m \xff\xfe \xc3\xa9") == "caf\\xe9 \\x9b31m \\xff\\xfe é"


def test_tm_8_nothing_of_the_attack_reaches_a_terminal() -> None:
    assert show_bytes(b"\x1b]52;c;cHdu\x07\x1b[2J\x9b31m") == "\\x9b31m"


PIECES = st.sampled_from(
    ["\x1b", "[", "]", "\x9b", "\x9d", "\x07", "\\", "\x1b\\", "31m", "K", "\r", "\b", "\n", "\r\n", "a", "é"]
)


@given(st.lists(st.one_of(PIECES, st.characters(max_codepoint=0xFF)), max_size=40).map("".join))
def test_no_control_character_survives(text: str) -> None:
    shown = clean(text)
    assert re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", shown) is None
    assert shown.count("\n") == text.count("\n")


@pytest.mark.parametrize("piece", ["\x9d", "\x1b]", "\x1b[1", "\x9b", "x\r", "\x1b", "\x1bP0"])
def test_many_beginnings_take_linear_time(piece: str) -> None:
    assert len(clean(piece * 200_000)) <= 4 * 200_000
