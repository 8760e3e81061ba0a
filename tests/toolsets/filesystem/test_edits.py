"""Edits change what they name, all of them or none, and nothing else of the file."""

from __future__ import annotations

import re
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longshore.registry.token_budget import LEAST_TOKENS, MOST_TOKENS, count_tokens
from longshore.sandbox.file_errors import FileError
from longshore.toolsets.filesystem.edits import Edit, apply_edits
from longshore.toolsets.filesystem.text_changes import Diff, Replaced

PYTHON = "def one():\n    return 1\n\n\ndef two():\n    return 2\n"
texts = st.lists(st.sampled_from(["a", "b", " ", "é", "€", "aa", "ab\n", "\n", "x = 1\n", "def f():\n"])).map("".join)


def edit(text: str, *edits: Edit) -> str:
    return apply_edits(text.encode(), edits).data.decode()


@pytest.mark.parametrize(
    ("before", "edits", "after"),
    [
        ("a b c", [Edit("b", "B")], "a B c"),
        ("a b c", [Edit("b ", "")], "a c"),
        ("a b a", [Edit("a", "xa", True)], "xa b xa"),
        ("one\ntwo\n", [Edit("one", "two"), Edit("two\ntwo", "three")], "three\n"),  # each sees those before it
        ("a\r\nb\r\n", [Edit("a\nb", "c\nd\ne")], "c\r\nd\r\ne\r\n"),
        ("a\r\nb\r\n", [Edit("a\r\nb", "c\r\nd")], "c\r\nd\r\n"),
        ("a\nb", [Edit("b", "c")], "a\nc"),  # no line end is added
        ("a\nb\n", [Edit("\nb\n", "")], "a"),
        ("a\r\nb\nc\r\nd\r\n", [Edit("d", "e\nf")], "a\r\nb\nc\r\ne\r\nf\r\n"),  # mixed: only new lines are alike
        ("\ufeffa\n", [Edit("a", "b")], "\ufeffb\n"),
        ("aaa", [Edit("aaa", "b")], "b"),
    ],
)
def test_edits_replace_what_they_name(before: str, edits: list[Edit], after: str) -> None:
    assert edit(before, *edits) == after


@pytest.mark.parametrize(
    ("before", "edits", "problem", "text"),
    [
        ("a\n", [], "invalid", "there are no edits; give at least one"),
        ("a\n", [Edit("", "b")], "invalid", "old is empty; give the text to replace, or write or append to the file"),
        ("a\n", [Edit("a\r\n", "a\n")], "invalid", "old and new are the same text; give a different text; to change"),
        (
            "x\ny\nx\nxx\n",
            [Edit("x", "z")],
            "ambiguous",
            "old occurs 4 times, at lines 1, 3, 4, 4; nothing was changed; add lines around it to old so that it "
            "occurs once, or set replace_all",
        ),
        ("x\n" * 30, [Edit("x", "z")], "ambiguous", "old occurs 30 times, at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11,"),
        ("aaa", [Edit("aa", "b")], "ambiguous", "old occurs 2 times, at lines 1, 1;"),
        ("\naaa", [Edit("aa", "b", True)], "overlapping", "the places where old occurs overlap, at lines 2 and 2;"),
        (
            "a\nb\n",
            [Edit("a", "b"), Edit("c", "d")],
            "no_match",
            "edit 2 of 2: old does not occur in the file; nothing",
        ),
        ("\0", [Edit("a", "b")], "binary", "it is no text but application/octet-stream (1 bytes); write it whole"),
        ("a", [Edit("a", "\ud800")], "encoding", r"'\ud800' can't be written in UTF-8, the file's encoding; use"),
    ],
)
def test_edits_that_can_not_be_applied_are_refused(before: str, edits: list[Edit], problem: str, text: str) -> None:
    with pytest.raises(FileError) as raised:
        apply_edits(before.encode(), edits)
    assert raised.value.kind == problem
    assert str(raised.value).startswith(text)


def test_the_facts_of_an_ambiguous_match_are_fields() -> None:
    with pytest.raises(FileError) as raised:
        edit("x\ny\nx\n", Edit("y", "z"), Edit("x", "z"))
    assert raised.value.facts == {"lines": [1, 3], "count": 2, "edit": 2}


@pytest.mark.parametrize(
    ("data", "character", "encoding"), [(b"caf\xe9", "漢", "Windows-1252"), (b"caf\xe9", "\x81", "Windows-1252")]
)
def test_a_character_that_the_encoding_lacks_is_refused(data: bytes, character: str, encoding: str) -> None:
    with pytest.raises(FileError, match=f"can't be written in {encoding}") as raised:
        apply_edits(data, [Edit("caf", character)])
    assert raised.value.facts["character"] == character


def test_bytes_that_are_no_text_stay() -> None:
    data = b"x" * 70_000 + b"\xff\xfe\n\x81 old\n"
    assert apply_edits(data, [Edit("old", "é")]).data == b"x" * 70_000 + b"\xff\xfe\n\x81 \xc3\xa9\n"
    assert apply_edits(b"\x81 caf\xe9 old", [Edit("old", "€")]).data == b"\x81 caf\xe9 \x80"


def test_utf_16_with_half_a_character_is_refused() -> None:
    with pytest.raises(FileError, match="no valid UTF-16"):
        apply_edits("\ufeffab".encode("utf-16-le") + b"c", [Edit("a", "b")])


@pytest.mark.parametrize(
    ("before", "change", "after"),
    [
        # indented otherwise
        (PYTHON, Edit("return 2", "return 3"), PYTHON.replace("2", "3")),
        ("\tif a:\n\t\tb()\n", Edit("if a:\n    b()", "if a:\n    c()\n    d()"), "\tif a:\n\t\tc()\n\t\td()\n"),
        ("  a\n    b\n", Edit("a\n  b\n", "a\n  c\n    d\n"), "  a\n    c\n      d\n"),
        # whitespace at line ends and within lines
        ("a = 1  \nb = 2\n", Edit("a = 1\nb = 2", "a = 1\nb = 3"), "a = 1  \nb = 3\n"),
        ("f( a,  b )\ng\n", Edit("f( a, b )", "h()"), "h()\ng\n"),
        # line ends around it
        ("  a\n  b\nc\n", Edit("a\nb\n", ""), "c\n"),
        ("x\n  a\n  b", Edit("a\nb\n", ""), "x\n"),
        ("x\n  a\n\tb\ny\n", Edit("a\nb", "c"), "x\n  c\ny\n"),
        ("  a\n\tb\n  a\n b\n", Edit("a\nb", "c\nb", True), "  c\n\tb\n  c\n b\n"),
    ],
)
def test_text_that_differs_in_whitespace_is_matched_and_reported(before: str, change: Edit, after: str) -> None:
    exact = change.old in before
    edited = apply_edits(before.encode(), [change])
    assert edited.data.decode() == after
    assert bool(edited.notes) == (not exact)
    assert all("differs in whitespace" in note for note in edited.notes)


def test_two_places_that_differ_in_whitespace_are_ambiguous() -> None:
    with pytest.raises(FileError, match=r"old occurs \(but for whitespace\) 2 times, at lines 1, 3;"):
        edit(" a\n  b\n  a\n b\n", Edit("a\nb", "c"))


@pytest.mark.parametrize(
    ("old", "shown"),
    [
        ("def two():\n    return 3", "5\tdef two():\n6\t    return 2"),
        ("    return 7\n\n\ndef two():", "2\t    return 1\n3\t\n4\t\n5\tdef two():"),
        ("def three():", "1\tdef one():"),
        ("x" * 500, "nothing in it is similar. Read it again."),
    ],
)
def test_the_nearest_place_is_shown(old: str, shown: str) -> None:
    with pytest.raises(FileError) as raised:
        edit(PYTHON, Edit(old, "new"))
    assert str(raised.value).endswith(shown)


def test_an_edit_that_was_made_before_is_recognised() -> None:
    with pytest.raises(FileError, match="already there, at line 5: was it edited before") as raised:
        edit(PYTHON, Edit("def second():", "def two():\n"))
    assert raised.value.facts["line"] == 5


@st.composite
def edited_texts(draw: st.DrawFn, head: str = "") -> tuple[str, list[Edit]]:
    """A text, and edits that can be applied to it; each leaves a mark that occurs nowhere else."""
    before = text = head + draw(texts)
    edits = list[Edit]()
    for number in count():
        if not draw(st.booleans()):
            return before, edits
        start = draw(st.integers(len(head), len(text)))
        old = text[start : draw(st.integers(start, len(text)))]
        replace_all = draw(st.booleans())
        overlapping = len(re.findall(f"(?={re.escape(old)})", text)) != text.count(old)
        if not old or overlapping or (text.count(old) > 1 and not replace_all):
            continue
        edits.append(Edit(old, f"{draw(texts)}<{number}>{draw(texts)}", replace_all))
        text = text.replace(old, edits[-1].new)
    raise AssertionError


@given(
    edited_texts("ÿ"),  # no edit takes away what tells the encoding
    st.sampled_from(
        [("utf-8", ""), ("utf-8", "\ufeff"), ("utf-16-le", "\ufeff"), ("utf-16-be", "\ufeff"), ("cp1252", "")]
    ),
    st.sampled_from(["\n", "\r\n"]),
)
def test_edits_are_replacements_and_reversed_edits_restore_the_bytes(
    made: tuple[str, list[Edit]], encoding: tuple[str, str], newline: str
) -> None:
    text, edits = made
    if not edits:
        return
    (name, bom), after = encoding, text
    for change in edits:
        after = after.replace(change.old, change.new)
    newline = newline if "\n" in text else "\n"
    data, expected = ((bom + form.replace("\n", newline)).encode(name) for form in (text, after))
    edited = apply_edits(data, edits)
    assert (edited.data, edited.notes) == (expected, ())
    if newline in after.replace("\n", newline) or newline == "\n":  # else nothing tells the line ends any more
        back = [Edit(change.new, change.old, True) for change in reversed(edits)]
        assert apply_edits(edited.data, back).data == data


def patch(text: str, diff: str) -> str:
    """Applies a unified diff."""
    old = [f"{line}\n" for line in text.split("\n")]
    old[-1] = old[-1][:-1]
    new, at = list[str](), 0
    lines = diff.split("\n") if diff else []
    for index, line in enumerate(lines):
        ending = "" if lines[index + 1 : index + 2] == ["\\ No newline at end of file"] else "\n"
        if heading := re.fullmatch(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", line):
            start = int(heading[1]) - (heading[2] != "0")
            new, at = new + old[at:start], start
            # The new text is at the line that the heading says.
            assert len(new) == int(heading[3]) - (heading[4] != "0")
        elif line.startswith("+"):
            new.append(line[1:] + ending)
        elif not line.startswith("\\"):
            assert old[at] == line[1:] + ending
            new += [old[at]] if line.startswith(" ") else []
            at += 1
    return "".join([*new, *old[at:]])


@given(edited_texts())
def test_the_diff_leads_from_the_old_text_to_the_new(made: tuple[str, list[Edit]]) -> None:
    text, edits = made
    if not edits:
        return
    edited = apply_edits(text.encode(), edits)
    diff = edited.diff.text(MOST_TOKENS)
    assert patch(text, diff) == edited.data.decode()
    assert len(re.findall(r"(?m)^-", diff)) == edited.diff.removed
    assert len(re.findall(r"(?m)^\+", diff)) == edited.diff.added


@given(st.text(st.characters(exclude_categories=["Cs"])), st.integers(LEAST_TOKENS, MOST_TOKENS), st.integers(1, 300))
def test_a_diff_is_never_over_its_budget(new: str, max_tokens: int, times: int) -> None:
    text = "old\n" * times
    diff = Diff(text, new * times, [Replaced(0, len(text), 0, len(new * times))])
    shown = diff.text(max_tokens)
    assert count_tokens(shown) <= max_tokens
    assert shown == diff.text(MOST_TOKENS) or "left out: " in shown or "characters more)" in shown


def test_the_diff_shows_lines_around_a_change_and_counts() -> None:
    text = "".join(f"{number}\n" for number in range(1, 31))
    edited = apply_edits(text.encode(), [Edit("10\n", "ten\nand more\n"), Edit("\n29\n30\n", "\n29\nlast")])
    assert edited.diff.text() == (
        "@@ -7,7 +7,8 @@\n 7\n 8\n 9\n-10\n+ten\n+and more\n 11\n 12\n 13\n"
        "@@ -27,4 +28,4 @@\n 27\n 28\n 29\n-30\n+last\n\\ No newline at end of file"
    )
    assert (edited.replacements, edited.diff.added, edited.diff.removed) == (2, 3, 2)


def test_the_diff_of_a_long_line_shows_what_differs() -> None:
    edited = apply_edits(b"a=1;" * 1_000 + b"old" + b"b=2;" * 1_000 + b"\n", [Edit("old", "new")])
    old, new = edited.diff.text().split("\n")[1:]
    assert old.startswith("-…" + "a=1;" * 15 + "oldb=2;")
    assert new.startswith("+…" + "a=1;" * 15 + "newb=2;")
    assert len(old) <= 500


def test_a_hundred_thousand_replacements_are_shown_one_by_one() -> None:
    text = "a line\nand another one\nthe same again\n\n\n\n\n\n" * 100_000
    edited = apply_edits(text.encode(), [Edit("another", "a different", True)])
    assert edited.replacements == edited.diff.added == edited.diff.removed == 100_000
    assert edited.diff.text(100).startswith(
        "@@ -1,5 +1,5 @@\n a line\n-and another one\n+and a different one\n the same"
    )
