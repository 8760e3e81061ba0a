"""Pages of a text file are exact, fit their budget and say how to get the rest."""

from __future__ import annotations

import re
import tracemalloc

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from tests.toolsets.filesystem.open_bytes import open_bytes

from longshore.registry.token_budget import LEAST_TOKENS, MOST_TOKENS, count_tokens
from longshore.sandbox.file_errors import FileError
from longshore.toolsets.filesystem.text_file import (
    CHEAP_BYTES,
    LINE_CHARACTERS,
    READ_BYTES,
    SCAN_BYTES,
    TAIL_BYTES,
    TextFile,
    TextPage,
)

CUT = re.compile(r"… \[cut: byte_offset=(\d+) byte_limit=(\d+)\]$")
characters = st.characters(exclude_categories=["Cs"], exclude_characters="\0\n\r")
lines_of_text = st.lists(st.text(characters, max_size=30) | st.text("aé€😀\\", max_size=900), max_size=40)
encodings = st.sampled_from([("utf-8", ""), ("utf-8", "\ufeff"), ("utf-16-le", "\ufeff"), ("utf-16-be", "\ufeff")])
budgets = st.integers(LEAST_TOKENS, 400) | st.integers(LEAST_TOKENS, MOST_TOKENS)


def page_lines(file: TextFile, page: TextPage, raw: bytes) -> list[str]:
    """The lines of a page as they are in the file: without its note, and with the rest of cut ones."""
    lines = page.text.split("\n")
    if page.next_line is not None:
        assert re.fullmatch(rf"\[… [\d,]+ more lines?; offset={page.next_line}\]", lines.pop())
    for index, line in enumerate(lines):
        if cut := CUT.search(line):
            start, length = int(cut[1]), int(cut[2])
            rest = raw[start : start + length].decode(file.format.encoding)
            lines[index] = line[: cut.start()] + rest.removesuffix("\r")
    return lines


def is_text(data: bytes) -> bool:
    with open_bytes(data) as descriptor:
        try:
            TextFile(descriptor)
        except FileError:
            return False
    return True


@given(lines_of_text, encodings, st.sampled_from(["\n", "\r\n"]), st.booleans(), budgets, st.none() | st.integers(1, 9))
@example(["ਅ", "ऊ", "\u0a00", "x"], ("utf-16-le", "\ufeff"), "\n", True, 100, None)
def test_all_pages_of_lines_are_the_text(
    lines: list[str], encoding: tuple[str, str], newline: str, final: bool, max_tokens: int, limit: int | None
) -> None:
    name, bom = encoding
    while lines and not final and not lines[-1]:
        lines = lines[:-1]
    raw = (bom + newline.join(lines) + (newline if final and lines else "")).encode(name)
    if not is_text(raw):
        return
    seen, offset = list[str](), 1
    with open_bytes(raw) as descriptor:
        file = TextFile(descriptor)
        if file.format.encoding == "cp1252":
            return
        while True:
            page = file.read_lines(offset, limit, max_tokens=max_tokens)
            assert count_tokens(page.text) <= max_tokens
            assert page.first_line == offset
            seen += page_lines(file, page, raw) if lines else []
            if page.next_line is None:
                break
            assert offset < page.next_line <= offset + (limit or len(lines))
            offset = page.next_line
        assert seen == lines
        assert page.total_lines == file.count_lines() == len(lines)


@given(
    st.lists(st.sampled_from([b"\n", b"\r\n", b"\r", b"a" * 40, b"\xff", "é€😀".encode(), b"\\" * 300]), max_size=60),
    budgets,
    st.none() | st.integers(1, 9),
    st.booleans(),
    st.integers(1, 3),
)
def test_a_short_file_is_shown_at_once_as_line_by_line(
    parts: list[bytes], max_tokens: int, limit: int | None, numbered: bool, offset: int
) -> None:
    assume(is_text(b"".join(parts)))
    with open_bytes(b"".join(parts)) as descriptor:
        file = TextFile(descriptor)
        assume(offset <= max(1, file.count_lines()))
        at_once = file.read_lines(offset, limit, max_tokens=max_tokens, numbered=numbered)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(TextFile, "_read_short", lambda *_: None)
            assert file.read_lines(offset, limit, max_tokens=max_tokens, numbered=numbered) == at_once


@given(st.binary(max_size=3_000) | st.text(max_size=2_000).map(str.encode), budgets)
def test_all_pages_of_bytes_are_the_text(raw: bytes, max_tokens: int) -> None:
    if not is_text(raw):
        return
    with open_bytes(raw) as descriptor:
        file = TextFile(descriptor)
        heading = "[not UTF-8: shown as Windows-1252]\n" if file.format.encoding == "cp1252" else ""
        text, position = "", 0
        while True:
            page = file.read_bytes(position, max_tokens=max_tokens)
            assert count_tokens(page.text) <= max_tokens
            assert page.text.startswith(heading)
            shown = page.text.removeprefix(heading)
            if page.next_byte is None:
                text += shown
                break
            note = f"\n[… {len(raw) - page.next_byte:,} bytes more; byte_offset={page.next_byte}]"
            assert shown.endswith(note)
            assert page.next_byte > position
            text, position = text + shown.removesuffix(note), page.next_byte
        whole = raw[len(file.format.bom) :]
        assert text == re.sub("[\ud800-\udfff]", "\ufffd", file.format.decode(whole))


@given(st.binary(max_size=3_000), budgets, st.integers(1, 50), st.integers(1, 3_000), st.booleans())
def test_no_answer_about_any_file_is_over_its_budget(
    raw: bytes, max_tokens: int, count: int, length: int, numbered: bool
) -> None:
    if not is_text(raw):
        return
    with open_bytes(raw) as descriptor:
        file = TextFile(descriptor)
        pages = [
            file.read_lines(1, count, max_tokens=max_tokens, numbered=numbered),
            file.read_tail(count, max_tokens=max_tokens, numbered=numbered),
            file.read_bytes(0, length, max_tokens=max_tokens),
        ]
    assert [page.text for page in pages if count_tokens(page.text) > max_tokens] == []


@given(lines_of_text, st.integers(1, 60), budgets)
def test_a_tail_is_the_last_lines_or_says_which_are_missing(lines: list[str], count: int, max_tokens: int) -> None:
    raw = "".join(f"{line}\n" for line in lines).encode()
    if not is_text(raw):
        return
    with open_bytes(raw) as descriptor:
        file = TextFile(descriptor)
        page = file.read_tail(count, max_tokens=max_tokens)
        shown = page_lines(file, page, raw) if lines else []
    wanted = lines[-count:]
    if shown and (note := re.fullmatch(r"\[… ([\d,]+) more lines? above; offset=(\d+) limit=(\d+)\]", shown[0])):
        assert note[1] == note[3]
        first, missing = int(note[2]), int(note[3])
        shown = lines[first - 1 : first - 1 + missing] + shown[1:]
        assert page.first_line == first + missing
    assert shown == wanted


@pytest.mark.parametrize("size", [READ_BYTES, SCAN_BYTES])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le"])
@pytest.mark.parametrize("shift", [-2, -1, 0, 1, 2])
def test_lines_are_exact_where_chunks_meet(size: int, encoding: str, shift: int) -> None:
    bom = "" if encoding == "utf-8" else "\ufeff"
    width = len("x".encode(encoding))
    first = "x" * (size // width + shift)
    raw = f"{bom}{first}\r\nsecond\r\nthird".encode(encoding)
    with open_bytes(raw) as descriptor:
        file = TextFile(descriptor)
        assert file.read_lines(2).text == "second\nthird"
        assert file.read_tail(1).text == "third"
        assert page_lines(file, file.read_lines(1), raw) == [first, "second", "third"]
        assert file.count_lines() == 3


@pytest.mark.parametrize("number", [1, 2, 777, 54_321, 99_999, 100_000])
def test_a_line_far_into_the_file_is_exact(number: int) -> None:
    raw = b"".join(b"%d\n" % line * (1 + line % 3 // 2) for line in range(1, 100_001))
    with open_bytes(raw) as descriptor:
        page = TextFile(descriptor).read_lines(number, 1, numbered=True)
    assert page.text.split("\n")[0] == f"{number}\t{raw.split(bytes([10]))[number - 1].decode()}"


def test_a_line_is_cut_only_beyond_its_limit() -> None:
    for length, cut in [(LINE_CHARACTERS - 1, False), (LINE_CHARACTERS, False), (LINE_CHARACTERS + 1, True)]:
        with open_bytes(b"x" * length) as descriptor:
            page = TextFile(descriptor).read_lines()
        assert (CUT.search(page.text) is not None) == cut
        assert len(page.text) <= LINE_CHARACTERS


def test_lines_are_counted_unasked_only_in_files_that_are_not_large() -> None:
    for size, note in [
        (CHEAP_BYTES, f"[… {CHEAP_BYTES // 2 - 1:,} more lines; offset=2]"),
        (CHEAP_BYTES + 2, "[… more lines; offset=2]"),
    ]:
        with open_bytes(b"x\n" * (size // 2)) as descriptor:
            assert TextFile(descriptor).read_lines(1, 1).text == f"x\n{note}"


def test_the_tail_of_a_large_file_says_where_the_missing_lines_are() -> None:
    raw = b"".join(b"%08d\n" % number for number in range(1_000_000))
    with open_bytes(raw) as descriptor:
        file = TextFile(descriptor)
        page = file.read_tail(1_000, max_tokens=100)
        note, first, *_ = page.text.split("\n")
        found = re.fullmatch(r"\[… more lines end at byte (\d+); byte_offset=(\d+) byte_limit=(\d+)\]", note)
        assert found is not None
        assert raw[int(found[1]) :].startswith(first.encode())
        assert int(found[2]) + int(found[3]) == int(found[1])
        assert page.first_line is None
        assert file.read_tail(2, numbered=True).text == "999999\t00999998\n1000000\t00999999"


def test_the_tail_of_a_file_that_is_one_long_line_is_its_end() -> None:
    with open_bytes(b"first\n" + b"x" * TAIL_BYTES + b"end") as descriptor:
        page = TextFile(descriptor).read_tail(3, max_tokens=100)
    assert page.text == "[the end of a line of over 524,288 bytes]\n" + "x" * 47 + "end"


def test_lines_longer_than_the_window_of_a_tail_are_said_to_be_missing() -> None:
    with open_bytes(b"first\n" + b"x" * TAIL_BYTES + b"\nlast\n") as descriptor:
        page = TextFile(descriptor).read_tail(2, max_tokens=100)
    assert page.text == "[… 1 more line above; offset=2 limit=1]\nlast"


def test_memory_does_not_grow_with_the_file_nor_with_a_line() -> None:
    with open_bytes(b"x" * 30_000_000 + b"\n" + b"y\n" * 2_000_000) as descriptor:
        file = TextFile(descriptor)
        tracemalloc.start()
        try:
            assert file.read_lines(1, 1).next_line == 2
            assert file.read_lines(2_000_001).text == "y"
            assert file.read_tail(1_999_999).text.endswith("\ny")
            assert file.read_bytes(29_000_000).next_byte is not None
            assert tracemalloc.get_traced_memory()[1] < 20 * TAIL_BYTES
        finally:
            tracemalloc.stop()


@pytest.mark.parametrize(
    ("read", "problem", "text"),
    [
        (lambda file: file.read_lines(0), "invalid", "offset=0; lines count from 1"),
        (lambda file: file.read_lines(1, 0), "invalid", "limit=0; it is at least 1"),
        (lambda file: file.read_tail(0), "invalid", "tail=0; it is at least 1"),
        (
            lambda file: file.read_lines(3),
            "beyond_end",
            "line 3 is beyond the end: the file has 2 lines; use a smaller offset",
        ),
        (
            lambda file: file.read_bytes(4),
            "beyond_end",
            "byte 4 is beyond the end: the file has 4 bytes; use a smaller byte_offset",
        ),
    ],
)
def test_a_request_that_makes_no_sense_is_refused(read: object, problem: str, text: str) -> None:
    with open_bytes(b"a\nb\n") as descriptor, pytest.raises(FileError) as raised:
        read(TextFile(descriptor))  # type: ignore[operator]
    assert (raised.value.kind, str(raised.value)) == (problem, text)
    named = text if problem == "invalid" else f"'notes.txt': {text}"
    assert str(raised.value.at("notes.txt")) == named


def test_a_binary_file_is_refused_with_its_type_and_size() -> None:
    with open_bytes(b"\x89PNG\r\n\x1a\n\0\0") as descriptor, pytest.raises(FileError, match="image/png") as raised:
        TextFile(descriptor)
    assert raised.value.facts == {"mime": "image/png", "size": 10}


def test_an_empty_file_is_an_empty_page() -> None:
    with open_bytes(b"") as descriptor:
        file = TextFile(descriptor)
        assert [file.read_lines(), file.read_tail(5)] == [
            TextPage(text="", first_line=1, total_lines=0),
            TextPage(text="", first_line=1, total_lines=0),
        ]
        assert file.read_bytes(0).text == ""


def test_text_that_is_not_utf_8_says_how_it_is_shown() -> None:
    with open_bytes(b"caf\xe9 \x80\x81\n") as descriptor:
        assert TextFile(descriptor).read_lines().text == "[not UTF-8: shown as Windows-1252]\ncafé €\ufffd"
        assert TextFile(descriptor).read_tail(1).text == "[not UTF-8: shown as Windows-1252]\ncafé €\ufffd"


def test_a_long_read_can_be_stopped_at_every_step() -> None:
    steps = list[int]()

    def stop_at_the_third() -> None:
        steps.append(1)
        if len(steps) == 3:
            raise TimeoutError

    with open_bytes(b"x" * SCAN_BYTES * 5) as descriptor, pytest.raises(TimeoutError):
        TextFile(descriptor, each_chunk=stop_at_the_third).count_lines()
