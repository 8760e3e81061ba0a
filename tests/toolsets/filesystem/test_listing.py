"""Listing a folder: what is shown, what is collapsed and counted, pages and budgets."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longshore.registry.token_budget import LEAST_TOKENS, count_tokens
from longshore.sandbox.file_errors import FileError
from longshore.sandbox.gitignore import rules_above
from longshore.sandbox.trees import MOST_DEPTH
from longshore.toolsets.filesystem import listing
from longshore.toolsets.filesystem.listing import Listing, ListQuery, list_folder, show_size

from .trees import make_tree, opened

OFFICIAL_TOKENS = 102_728
"""What the official server's directory_tree costs for 5,101 files."""


def show(folder: Path, **options: Any) -> Listing:
    with opened(folder) as descriptor:
        return list_folder(descriptor, ListQuery(**options))


CASES: list[tuple[str, dict[str, bytes | str], dict[str, Any], str]] = [
    ("a tree", {"b": "12", "a/c": "", "a/d/e": "x" * 1200}, {}, "a/\n c 0\n d/\n  e 1.2K\nb 2"),
    ("its depth", {"b": "12", "a/c": "1", "a/d/e": "x" * 1200}, {"depth": 1}, "a/ 2 files, 1.2K\nb 2"),
    ("no sizes", {"b": "12", "a/c": ""}, {"depth": 1, "sizes": False}, "a/ 1 file\nb"),
    ("a glob", {"a.py": "", "b.js": "", "s/c.py": "", "t/d.js": ""}, {"globs": ("*.py",)}, "a.py 0\ns/\n c.py 0"),
    ("a glob counted", {"s/c.py": "", "s/d.js": "", "t/d.js": ""}, {"globs": ("*.py",), "depth": 1}, "s/ 1 file, 0"),
    (
        "gitignore",
        {
            ".gitignore": "*.log\n",
            "a.log": "",
            "s/.gitignore": "!k.log\nt/\n",
            "s/k.log": "",
            "s/t/x": "",
            ".git/x": "",
        },
        {},
        ".gitignore 6\ns/\n .gitignore 10\n k.log 0\n[2 ignored or denied not shown]",
    ),
    ("no gitignore", {".gitignore": "a\n", "a": "", ".git/x": ""}, {"gitignore": False}, ".gitignore 2\na 0"),
    ("gitignore counted", {"s/.gitignore": "a\n", "s/a": "", "s/b": ""}, {"depth": 1}, "s/ 2 files, 2"),
    ("being written", {".longshore-draft-1": "", "b": ""}, {}, "b 0"),
    ("denied parts", {"b/c": "", "d": ""}, {"deny": ("a/b",), "within": "a"}, "d 0\n[1 ignored or denied not shown]"),
    ("denied", {".env": "", "b": ""}, {"deny": (".env",)}, "b 0\n[1 ignored or denied not shown]"),
    ("by size", {"a": "1", "b": "123", "c": "12"}, {"sort": "size"}, "b 3\nc 2\na 1"),
    ("an empty folder", {}, {}, "[empty]"),
    ("an empty folder within", {"a/": ""}, {}, "a/"),
    ("a name that breaks lines", {"a\nb\x1b[2J": ""}, {}, r"a\nb\x1b[2J 0"),
]


@pytest.mark.parametrize(
    ("files", "options", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_a_listing_shows(tmp_path: Path, files: Any, options: Any, expected: str) -> None:
    make_tree(tmp_path, files)
    assert show(tmp_path, **options) == Listing(expected, "")


def test_links_are_shown_and_not_entered_and_special_files_are_named(tmp_path: Path) -> None:
    make_tree(tmp_path, {"out/secret": "x", "in/a": ""})
    (tmp_path / "in/l").symlink_to("../out")
    os.mkfifo(tmp_path / "in/p")
    assert show(tmp_path / "in").text == "a 0\nl -> ../out\np (special)"


def test_the_newest_come_first_when_sorted_by_time(tmp_path: Path) -> None:
    make_tree(tmp_path, {"a": "", "b": "", "c": ""})
    for name, time in (("a", 2), ("b", 3), ("c", 1)):
        os.utime(tmp_path / name, (time, time))
    assert show(tmp_path, sort="modified").text == "b 0\na 0\nc 0"


def test_rules_above_the_folder_apply(tmp_path: Path) -> None:
    make_tree(tmp_path, {".gitignore": "*.log\n/s/x\n", "s/a.log": "", "s/x": "", "s/y": ""})
    with opened(tmp_path) as root, opened(tmp_path / "s") as folder:
        text = list_folder(folder, ListQuery(), above=rules_above(root, "s")).text
    assert text == "y 0\n[2 ignored or denied not shown]"


def test_the_largest_of_the_deepest_folders_are_collapsed_until_the_rest_fits(tmp_path: Path) -> None:
    make_tree(tmp_path, {f"big/{number:03}": "x" for number in range(100)} | {"small/a": "", "z": ""})
    assert show(tmp_path, limit=10).text == "big/ 100 files, 100\nsmall/\n a 0\nz 0"


@pytest.mark.parametrize(("extra", "collapsed"), [(-1, False), (0, False), (1, True)])
def test_a_big_folder_is_always_collapsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, extra: int, collapsed: bool
) -> None:
    monkeypatch.setattr(listing, "_BIG_FOLDER", 5)
    make_tree(tmp_path, {f"a/{number}": "" for number in range(5 + extra)})
    assert ("files" in show(tmp_path).text) is collapsed


@pytest.mark.parametrize(
    ("extra", "text"), [(-1, "a/ 9 files, 0"), (0, "a/ 10 files, 0"), (1, "a/ more than 10 files, 0")]
)
def test_counts_stop_at_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, extra: int, text: str) -> None:
    monkeypatch.setattr(listing, "MOST_COUNTED", 10)
    make_tree(tmp_path, {f"a/{number:02}": "" for number in range(10 + extra)})
    assert show(tmp_path, depth=1).text == text


def test_all_counts_together_stop_at_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "MOST_COUNTED_IN_ALL", 10)
    make_tree(tmp_path, {f"{folder}/{number}": "" for folder in "abc" for number in range(6)})
    assert show(tmp_path, depth=1, sizes=False).text == "a/ 6 files\nb/ more than 4 files\nc/ more than 0 files"


def test_a_folder_of_too_many_entries_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "MOST_SHOWN", 3)
    make_tree(tmp_path, {str(number): "" for number in range(4)})
    assert "more than 3 entries" in show(tmp_path).text


def test_folders_beyond_the_entries_read_are_only_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "MOST_SHOWN", 6)
    make_tree(tmp_path, {f"{folder}/{number}": "" for folder in "abc" for number in range(4)})
    assert show(tmp_path, sizes=False).text == "a/\n 0\n 1\n 2\n 3\nb/ 4 files\nc/ 4 files"


def test_a_glob_that_nothing_matches_ends_at_the_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "MOST_SHOWN", 6)
    monkeypatch.setattr(listing, "MOST_COUNTED_IN_ALL", 3)
    make_tree(tmp_path, {f"{folder}/{number}": "" for folder in "abc" for number in range(4)})
    assert show(tmp_path, globs=("*.no",)).text == "b/ more than 0 files\nc/ more than 0 files"


def test_pages_hold_every_entry_once(tmp_path: Path) -> None:
    names = [f"file number {number:03}" for number in range(120)]
    make_tree(tmp_path, dict.fromkeys(names, ""))
    for options in ({"limit": 50}, {"max_tokens": LEAST_TOKENS}, {"sort": "size", "limit": 7}):
        seen, cursor = list[str](), ""
        for _ in range(200):
            page = show(tmp_path, cursor=cursor, sizes=False, **options)
            assert count_tokens(page.text) <= options.get("max_tokens", listing.DEFAULT_TOKENS)
            seen += [line for line in page.text.split("\n") if not line.startswith("[")]
            cursor = page.cursor
            if not cursor:
                break
        assert seen == names


@pytest.mark.parametrize(
    "options",
    [
        {"depth": 0},
        {"depth": MOST_DEPTH + 1},
        {"limit": 0},
        {"limit": 10_001},
        {"cursor": "no such name"},
        {"globs": ("",)},
    ],
)
def test_wrong_options_are_refused(tmp_path: Path, options: Any) -> None:
    with pytest.raises(FileError, match=r"depth|limit|cursor|glob"):
        show(tmp_path, **options)


def test_a_tree_of_5000_files_costs_a_twentieth_of_the_official_server(tmp_path: Path) -> None:
    make_tree(
        tmp_path,
        {f"package{i:02}/module{j}/file_{k:03}.py": "x" for i in range(10) for j in range(10) for k in range(50)},
    )
    for depth in (1, 3, 10):
        page = show(tmp_path, depth=depth)
        assert count_tokens(page.text) <= 0.05 * OFFICIAL_TOKENS
        assert (page.cursor, page.text.count("package")) == ("", 10)


@settings(max_examples=30, deadline=None)
@given(
    paths=st.sets(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=4).map("/".join), max_size=60),
    depth=st.integers(1, 4),
    limit=st.integers(1, 30),
)
def test_a_listing_counts_every_file_and_is_the_same_each_time(
    tmp_path_factory: pytest.TempPathFactory, paths: set[str], depth: int, limit: int
) -> None:
    folder = tmp_path_factory.mktemp("tree")
    for path in sorted(paths, key=len, reverse=True):
        if not (folder / path).exists():
            make_tree(folder, {path: ""})
    text, cursor = list[str](), ""
    while True:
        page = show(folder, depth=depth, limit=limit, cursor=cursor, sizes=True)
        assert page == show(folder, depth=depth, limit=limit, cursor=cursor, sizes=True)
        text += [line for line in page.text.split("\n") if not line.startswith("[")]
        cursor = page.cursor
        if not cursor:
            break
    listed = sum(line.endswith(" 0") and "/" not in line for line in text)
    collapsed = sum(int(line.split("/ ")[1].split(" ")[0]) for line in text if "/ " in line)
    assert listed + collapsed == sum(path.is_file() for path in folder.rglob("*"))


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0"),
        (999, "999"),
        (1000, "1.0K"),
        (9_949, "9.9K"),
        (9_951, "10K"),
        (999_499, "999K"),
        (999_500, "1.0M"),
        (3.1e8, "310M"),
    ],
)
def test_a_size_is_short(size: float, text: str) -> None:
    assert show_size(int(size)) == text
