"""Output in bounded memory: what is shown of it, what is counted, and what is dropped."""

from __future__ import annotations

import os
import tracemalloc
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longshore.registry.token_budget import LEAST_TOKENS, count_tokens
from longshore.toolsets.terminal.output import FILE_BYTES, HEAD_BYTES, TAIL_BYTES, WINDOW_BYTES, CommandOutput, WholeLog

MADE = list[CommandOutput]()


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    while MADE:
        MADE.pop().close()


def printed(*parts: bytes, file_bytes: int = FILE_BYTES) -> CommandOutput:
    MADE.append(output := CommandOutput(file_bytes))
    for part in parts:
        output.append(part)
    return output


def numbers(count: int) -> bytes:
    return b"".join(b"%d\n" % number for number in range(1, count + 1))


def test_short_output_is_shown_whole() -> None:
    shown = printed(b"one\n", b"two\n").ends(0, 1000)
    assert (shown.text, shown.cursor, shown.complete) == ("one\ntwo\n", 8, True)


def test_long_output_shows_both_ends_and_counts_what_is_left_out() -> None:
    output = printed(numbers(200_000))
    shown = output.ends(0, 6000, "the log has them")
    head, _, rest = shown.text.partition("\n[… ")
    note, _, tail = rest.partition(" …]\n")
    first, last = head.split("\n"), tail.removesuffix("\n").split("\n")
    assert first[0] == "1" and last[-1] == "200000" and count_tokens(shown.text) <= 6000
    left = 200_000 - len(first) - len(last)
    size = len(numbers(200_000)) - len(head) - 1 - len(tail)
    assert note == f"{left:,} lines, {size:,} bytes left out; the log has them"
    assert (output.lines, output.size, shown.cursor, shown.complete) == (200_000, 1_288_895, 1_288_895, False)


@pytest.mark.parametrize("start", [0, 5, HEAD_BYTES + 7, 1_000_000])
def test_both_ends_from_a_cursor_on(start: int) -> None:
    data = numbers(200_000)
    shown = printed(data).ends(start, LEAST_TOKENS)
    head, _, rest = shown.text.partition("\n[… ")
    note, _, tail = rest.partition(" …]\n")
    assert data[start:].startswith(head.encode()) and data.endswith(tail.encode())
    left = data[start:].count(b"\n") - head.count("\n") - 1 - tail.count("\n")
    assert note == f"{left:,} lines, {len(data) - start - len(head) - 1 - len(tail):,} bytes left out"


def test_one_long_line_is_cut_in_its_middle() -> None:
    shown = printed(b"x" * 1_000_000).ends(0, LEAST_TOKENS)
    assert shown.text.startswith("xxx") and shown.text.endswith("xxx") and " bytes left out …]" in shown.text
    assert "lines" not in shown.text


def test_pages_continue_one_another_to_the_end() -> None:
    output, cursor, seen = printed(numbers(50_000)), 0, list[str]()
    while cursor < output.size:
        page = output.page(cursor, 2000)
        assert page.cursor > cursor and count_tokens(page.text) <= 2000
        seen += [line for line in page.text.removesuffix("\n").split("\n") if not line.startswith("[…")]
        cursor = page.cursor
    assert seen == [str(number) for number in range(1, 50_001)]


def test_pages_of_one_long_line_continue_one_another() -> None:
    output, cursor, seen = printed("äöü".encode() * 20_000), 0, ""
    while cursor < output.size:
        page = output.page(cursor, 500)
        seen, cursor = seen + page.text, page.cursor
    assert seen == "äöü" * 20_000


def test_a_page_says_where_the_next_one_begins() -> None:
    page = printed(numbers(1000)).page(0, LEAST_TOKENS)
    assert page.text.endswith(f" bytes more: cursor={page.cursor}]") and not page.complete


def test_reading_at_the_end_and_beyond_it_gives_nothing() -> None:
    output = printed(b"a\n")
    for start in (2, 3, 10**12):
        assert (output.page(start, 1000).text, output.page(start, 1000).cursor) == ("", 2)
        assert (output.ends(start, 1000).text, output.ends(start, 1000).complete) == ("", True)


def test_output_that_comes_after_a_cursor_is_read_from_it() -> None:
    output = printed(b"first\nsec")
    cursor = output.page(0, 1000).cursor
    output.append(b"ond\n")
    assert output.page(cursor, 1000).text == "ond" and output.ends(cursor, 1000).text == "ond\n"


def test_the_last_lines() -> None:
    output = printed(numbers(1000), b"no newline")
    assert output.tail(3, 1000).text == "999\n1000\nno newline"
    assert not output.tail(3, 1000).complete
    assert printed(b"a\nb\n").tail(5, 1000) == printed(b"a\nb\n").tail(2, 1000)
    assert printed(b"a\nb\n").tail(2, 1000).complete
    cut = output.tail(1000, LEAST_TOKENS)
    assert cut.text.endswith("1000\nno newline") and count_tokens(cut.text) <= LEAST_TOKENS and not cut.complete


def test_the_last_line_that_is_not_blank() -> None:
    assert printed(b"a\n\x1b[32m 50%\x1b[0m\r 90% \n\n").last_line() == "90%"
    assert printed().last_line() == "" and printed(b"\n \n").last_line() == ""
    assert printed(b"x" * 5000).last_line().endswith("characters more)")


def test_bytes_that_are_no_text_are_shown() -> None:
    assert printed(b"\xff\x1b[31mred").ends(0, 100).text == "\\xffred"


# -- memory and the file


@pytest.mark.parametrize("surplus", [-1, 0, 1])
def test_past_its_limits_only_the_middle_is_dropped(surplus: int) -> None:
    file_bytes = 100_000
    data = os.urandom(HEAD_BYTES + file_bytes + TAIL_BYTES + surplus)
    output = printed(*(data[at : at + 1000] for at in range(0, len(data), 1000)), file_bytes=file_bytes)
    output.append(more := os.urandom(2 * TAIL_BYTES + 1))  # so that the tail is cut
    data += more
    assert output.dropped == len(data) - HEAD_BYTES - file_bytes - TAIL_BYTES
    assert output.read(0, len(data)) == data[: HEAD_BYTES + file_bytes]
    assert output.read(len(data) - TAIL_BYTES, len(data)) == data[-TAIL_BYTES:]
    assert output.read(HEAD_BYTES + file_bytes, len(data)) == b""
    output.close()


@given(st.lists(st.integers(0, 70_000), max_size=12), st.integers(0, 200_000))
def test_whatever_is_appended_is_read_again_or_known_to_be_dropped(sizes: list[int], file_bytes: int) -> None:
    data = bytes(index * 31 % 251 for index in range(sum(sizes)))
    output, at = CommandOutput(file_bytes), 0
    for size in sizes:
        output.append(data[at : at + size])
        at += size
    kept = output.read(0, at)
    assert data.startswith(kept) and output.lines == data.count(b"\n")
    begin = output.skip_dropped(len(kept))
    assert begin - len(kept) == output.dropped
    assert output.read(begin, at) == data[begin:]
    output.close()


def test_the_whole_log_says_what_is_missing() -> None:
    output = printed(numbers(200_000), file_bytes=1000)
    log = b"".join(WholeLog(output))
    assert len(WholeLog(output)) == len(log)
    assert log.startswith(b"1\n2\n") and log.endswith(b"200000\n")
    assert f"[… {output.dropped:,} bytes were dropped here …]".encode() in log
    output.close()
    whole = printed(numbers(200_000))
    assert b"".join(WholeLog(whole)) == numbers(200_000) and whole.dropped == 0
    whole.close()


def test_reading_in_what_was_dropped_goes_on_after_it() -> None:
    output = printed(numbers(200_000), file_bytes=1000)
    page = output.page(HEAD_BYTES + 5000, LEAST_TOKENS)
    assert page.text.startswith("[… ") and " bytes were dropped …]\n" in page.text
    assert output.ends(0, LEAST_TOKENS).text.startswith("1\n2\n")
    assert output.ends(HEAD_BYTES + 5000, LEAST_TOKENS).text.endswith("200000\n")
    output.close()


def test_a_disk_without_space_drops_the_middle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", "/proc")
    output = printed(*[b"x" * 100_000] * 10)
    assert output.size == 1_000_000 and output.dropped > 700_000
    assert output.ends(0, LEAST_TOKENS).text.startswith("xxx")


def test_the_file_is_closed() -> None:
    before = len(os.listdir("/proc/self/fd"))
    output = printed(numbers(200_000))
    assert len(os.listdir("/proc/self/fd")) == before + 1
    output.close()
    output.close()
    output.append(b"late\n" * 100_000)
    assert len(os.listdir("/proc/self/fd")) == before
    assert output.ends(0, LEAST_TOKENS).text.startswith("1\n2\n")


def test_a_gigabyte_takes_no_more_memory_than_a_megabyte() -> None:
    chunk = b"y" * 262_144
    tracemalloc.start()
    output = CommandOutput()
    for _ in range(4096):
        output.append(chunk)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert output.size == 1 << 30 and most < 1_500_000
    assert output.ends(0, 6000).text.count("y") > 20_000
    output.close()


def test_a_window_is_made_readable_and_no_more() -> None:
    output = printed(b"\x1b[31m\x1b[0m\n" * 200_000)
    assert count_tokens(output.ends(0, 1000).text) <= 1000
    assert output.page(0, 1000).cursor <= WINDOW_BYTES
    output.close()
