"""Answers never exceed their budget, and say what they leave out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longshore.registry.token_budget import (
    DEFAULT_TOKENS,
    LEAST_TOKENS,
    MOST_TOKENS,
    count_tokens,
    cut_line,
    fit_ends,
    fit_lines,
    json_length,
)

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)
budgets = st.integers(LEAST_TOKENS, 400)


@pytest.mark.parametrize(("text", "length"), [("", 0), ("abc", 3), ("a\nb", 4), ('"', 2), ("\x01", 6), ("é€😀", 3)])
def test_the_length_is_that_of_the_json_text(text: str, length: int) -> None:
    assert json_length(text) == length


@given(st.lists(texts.map(lambda text: text.replace("\n", " ")), max_size=60), budgets)
def test_a_page_fits_and_the_next_one_goes_on_where_it_ends(lines: list[str], max_tokens: int) -> None:
    seen, start = list[str](), 0
    while True:
        page = fit_lines(lines[start:], max_tokens, lambda end: f"go on with offset={end}", start)
        assert count_tokens(page.text) <= max_tokens
        assert page.complete == (page.end == len(lines))
        shown = page.text.split("\n") if page.end > start else []
        if not page.complete:
            assert shown.pop() == f"[… go on with offset={page.end}]"
            assert page.end > start
        seen += shown
        start = page.end
        if page.complete:
            break
    assert len(seen) == len(lines)
    for line, whole in zip(seen, lines, strict=True):
        assert line == whole or "characters more)" in line


@given(st.lists(texts.map(lambda text: text.replace("\n", " ")), max_size=60), budgets, texts)
def test_a_page_with_a_heading_fits(lines: list[str], max_tokens: int, heading: str) -> None:
    heading = "h" + heading.replace("\n", " ")
    page = fit_lines(lines, max_tokens, heading=heading)
    assert count_tokens(page.text) <= max_tokens
    assert page.text.split("\n")[0] == cut_line(heading, max_tokens)
    assert len(page.text.split("\n")) == 1 + page.end + (not page.complete)


@pytest.mark.parametrize(("max_tokens", "allowed"), [(99, False), (100, True), (25_000, True), (25_001, False)])
def test_a_budget_out_of_range_is_refused(max_tokens: int, allowed: bool) -> None:
    for fit in (lambda: fit_lines(["x" * 500], max_tokens), lambda: fit_ends("x" * 500, max_tokens)):
        if allowed:
            assert fit()
        else:
            with pytest.raises(ValueError, match="an answer has 100 to 25,000 tokens"):
                fit()


def test_a_page_that_holds_everything_has_no_note() -> None:
    lines = ["x" * 9] * 40  # 40 lines and 39 line breaks of two characters: 438
    assert fit_lines(lines, 110).text == "\n".join(lines)
    assert fit_lines(lines, 109).text.endswith("[… more is left out]")


def test_lines_beyond_the_page_are_not_read() -> None:
    read = list[int]()

    def lines() -> object:
        for number in range(1_000_000):
            read.append(number)
            yield "a line"

    assert not fit_lines(lines(), 100).complete  # type: ignore[arg-type]
    assert len(read) < 100


@given(texts, st.integers(1, 50), budgets, texts)
def test_both_ends_fit(text: str, times: int, max_tokens: int, note: str) -> None:
    fitted = fit_ends(text * times, max_tokens, note.replace("\n", " "))
    assert count_tokens(fitted) <= max_tokens
    assert (fitted == text * times) == (count_tokens(text * times) <= max_tokens)


def test_both_ends_are_whole_lines_and_the_number_of_lines_between_them_is_right() -> None:
    numbers = [str(n) for n in range(1, 200_001)]
    shown = fit_ends("\n".join(numbers), DEFAULT_TOKENS, "the whole: artifact://1/log.txt").split("\n")
    [mark] = [index for index, line in enumerate(shown) if line.startswith("[…")]
    head, tail = shown[:mark], shown[mark + 1 :]
    assert head == numbers[: len(head)]
    assert tail == numbers[-len(tail) :]
    left = len(numbers) - len(head) - len(tail)
    assert shown[mark] == f"[… {left:,} lines left out; the whole: artifact://1/log.txt …]"
    assert len(head) > 1000
    assert len(tail) > 1000


def test_one_long_line_is_cut_in_the_middle() -> None:
    fitted = fit_ends("a" * 50_000 + "b" * 50_000, LEAST_TOKENS)
    assert fitted.startswith("aaaa")
    assert fitted.endswith("bbbb")
    assert "[… 99,840 characters left out …]" in fitted


def test_the_most_that_may_be_asked_for_is_what_claude_code_takes() -> None:
    assert count_tokens(fit_ends("x" * 1_000_000, MOST_TOKENS)) <= 25_000


def test_a_name_that_is_no_utf_8_is_shown_with_replacement_characters() -> None:
    name = b"caf\xe9.log".decode("utf-8", "surrogateescape")
    assert fit_lines([name, name]).text == "caf\ufffd.log\ncaf\ufffd.log"
    assert fit_ends(name) == "caf\ufffd.log"


@given(texts, st.integers(-1, 200))
def test_a_cut_line_fits(line: str, room: int) -> None:
    assert json_length(cut_line(line, room)) <= max(0, room)
