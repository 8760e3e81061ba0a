"""Searching contents: what is found, how it is shown, and that both engines answer alike."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.services import need_command, skip

from longshore.registry.token_budget import LEAST_TOKENS, count_tokens
from longshore.sandbox import landlock
from longshore.sandbox.file_errors import FileError
from longshore.sandbox.gitignore import rules_above
from longshore.sandbox.trees import MOST_DEPTH
from longshore.toolsets.filesystem import matches
from longshore.toolsets.filesystem.patterns import PatternError
from longshore.toolsets.filesystem.ripgrep import find_ripgrep
from longshore.toolsets.filesystem.search import Engine, SearchQuery, search
from longshore.toolsets.filesystem.search_pages import Page

from .trees import make_tree, opened


def need_ripgrep() -> None:
    need_command("rg", "ripgrep")
    if not landlock.is_available():
        skip("the kernel has no landlock", by_kernel=True)


@pytest.fixture(params=["own", "ripgrep"])
def engine(request: pytest.FixtureRequest) -> Engine:
    if request.param == "ripgrep":
        need_ripgrep()
    return request.param


def find(folder: Path, engine: Engine, pattern: str, **options: Any) -> Page:
    with opened(folder) as descriptor:
        return search(descriptor, SearchQuery(pattern=pattern, **options), engine=engine)


NOTHING = "no matches in text files of up to 10M"

CASES: list[tuple[str, dict[str, bytes | str], dict[str, Any], str]] = [
    ("a literal", {"a": "x.y\nxay\n"}, {"pattern": "x.y", "literal": True}, "a\n1:x.y"),
    ("a regular expression", {"a": "x.y\nxay\n"}, {"pattern": "x.y"}, "a\n1:x.y\n2:xay"),
    ("case counts", {"a": "Foo\nfoo\n"}, {"pattern": "foo"}, "a\n2:foo"),
    ("case ignored", {"a": "Foo\nfoo\nÉTÉ\n"}, {"pattern": "FOO|été", "ignore_case": True}, "a\n1:Foo\n2:foo\n3:ÉTÉ"),
    ("case ignored by a flag", {"a": "Foo\n"}, {"pattern": "(?i)fOO"}, "a\n1:Foo"),
    ("a brace is plain", {"a": "f() {\n"}, {"pattern": r"\) {"}, "a\n1:f() {"),
    ("the end of a CRLF line", {"a": "foo\r\nfoo \r\n"}, {"pattern": "foo$"}, "a\n1:foo"),
    ("an empty CRLF line", {"a": "x\r\n\r\n"}, {"pattern": "^$"}, "a\n2:"),
    ("no newline at the end", {"a": "x\nfoo"}, {"pattern": "foo$"}, "a\n2:foo"),
    ("what matches nothing matches each line", {"a": "a\n\nb\n"}, {"pattern": "z*"}, "a\n1:a\n2:\n3:b"),
    ("no match across lines", {"a": "a\nb\n"}, {"pattern": r"a\s+b|a[^x]b|a\Wb"}, NOTHING),
    ("a byte order mark", {"a": b"\xef\xbb\xbffoo\n"}, {"pattern": "^foo"}, "a\n1:foo"),
    ("UTF-16", {"a": "x\nfoo é\n".encode("utf-16")}, {"pattern": "foo é"}, "a\n2:foo é"),
    ("invalid UTF-8", {"a": b"caf\xe9 foo\n"}, {"pattern": "foo"}, "a\n1:caf\ufffd foo"),
    ("an invalid byte is no character", {"a": b"x\xe9y\n"}, {"pattern": r"x.y|x\Wy|x[^a]y|x\Sy|x[\W]y"}, NOTHING),
    ("binary", {"a": b"foo\n\0", "b": b"foo\n" + b"x\n" * 99_999 + b"\0", "c": "foo"}, {"pattern": "foo"}, "c\n1:foo"),
    ("a dotfile", {".env": "foo\n", ".git/x": "foo\n", "s/.git/x": "foo"}, {"pattern": "foo"}, ".env\n1:foo"),
    (
        "a glob",
        {"a.py": "x", "b.js": "x", "s/c.py": "x"},
        {"pattern": "x", "globs": ("*.py",)},
        "a.py\n1:x\ns/c.py\n1:x",
    ),
    (
        "a glob with braces",
        {"a.py": "x", "b.js": "x", "c": "x"},
        {"pattern": "x", "globs": ("*.{py,js}",)},
        "a.py\n1:x\nb.js\n1:x",
    ),
    (
        "a glob from the top",
        {"a/s.py": "x", "s/a/b.py": "x", "s/c.js": "x"},
        {"pattern": "x", "globs": ("s/**/*.py",)},
        "s/a/b.py\n1:x",
    ),
    ("a glob that excludes", {"a.py": "x", "b.js": "x"}, {"pattern": "x", "globs": ("!*.js",)}, "a.py\n1:x"),
    ("a glob of files", {"a.py/b": "x", "c.py": "x"}, {"pattern": "x", "globs": ("*.py", "!a/*.py")}, "c.py\n1:x"),
    ("a denied name in other case", {".ENV": "x", "a": "x"}, {"pattern": "x", "deny": (".env",)}, "a\n1:x"),
    ("denied parts", {"b/c": "x", "d": "x"}, {"pattern": "x", "deny": ("a/b",), "within": "a"}, "d\n1:x"),
    ("a file being written", {".longshore-draft-1": "x", "a": "x"}, {"pattern": "x"}, "a\n1:x"),
    ("a prefix", {"a": "x", "b": "x"}, {"pattern": "x", "prefix": "s/t/"}, "s/t/a\n1:x\ns/t/b\n1:x"),
    ("paths with a prefix", {"a": "x"}, {"pattern": "x", "prefix": "s/", "output": "files"}, "s/a"),
    ("one file", {"a": "x", "b": "x", "c/b": "x"}, {"pattern": "x", "file": "b"}, "b\n1:x"),
    ("one file that is ignored", {".gitignore": "b", "b": "x"}, {"pattern": "x", "file": "b"}, "b\n1:x"),
    ("one file that begins with a dash", {"--pre=x": "x"}, {"pattern": "x", "file": "--pre=x"}, "--pre=x\n1:x"),
    ("a denied folder", {"k.d/b": "x", "c": "x"}, {"pattern": "x", "deny": ("*.d",)}, "c\n1:x"),
    ("a folder as glob", {"a/b/c": "x", "d": "x"}, {"pattern": "x", "globs": ("a",)}, "a/b/c\n1:x"),
    (
        "a glob does not bring back",
        {".gitignore": "*.log\n", "a.log": "x", "b.log.txt": "x"},
        {"pattern": "x", "globs": ("*.log", "*.txt")},
        "b.log.txt\n1:x",
    ),
    ("denied files", {".env": "x", "k/id_rsa": "x", "b": "x"}, {"pattern": "x", "deny": (".env", "id_*")}, "b\n1:x"),
    (
        "nested .gitignore",
        {
            ".gitignore": "*.log\n/top\nbuild/\n",
            "a.log": "x",
            "top": "x",
            "s/top": "x",
            "s/.gitignore": "!k.log\n",
            "s/k.log": "x",
            "build/x": "x",
            "s/build": "x",
        },
        {"pattern": "x"},
        "s/build\n1:x\ns/k.log\n1:x\ns/top\n1:x",
    ),
    ("no gitignore", {".gitignore": "a\n", "a": "x"}, {"pattern": "x", "gitignore": False}, "a\n1:x"),
    ("context", {"a": "1\n2\nx\n4\n5\n6\n7\nx\n"}, {"pattern": "x", "context": 1}, "a\n2-2\n3:x\n4-4\n--\n7-7\n8:x"),
    ("files", {"a": "x\nx\n", "b": "y", "c/d": "x"}, {"pattern": "x", "output": "files"}, "a\nc/d"),
    ("count", {"a": "x x\nx\n", "b": "y", "c/d": "x"}, {"pattern": "x", "output": "count"}, "a: 2\nc/d: 1"),
    ("sorted by parts", {"a.txt": "x", "a/b": "x", "a-b": "x"}, {"pattern": "x", "output": "files"}, "a/b\na-b\na.txt"),
    ("an option as pattern", {"a": "--files\n"}, {"pattern": "--files"}, "a\n1:--files"),
    ("a size limit", {"a": "x" * 11, "b": "x" * 10}, {"pattern": "x", "max_file_size": 10, "output": "files"}, "b"),
    ("a name that breaks lines", {"a\nb": "x"}, {"pattern": "x", "output": "files"}, r"a\nb"),
]


@pytest.mark.parametrize(
    ("files", "options", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_a_search_finds(tmp_path: Path, engine: Engine, files: Any, options: Any, expected: str) -> None:
    make_tree(tmp_path, files)
    assert find(tmp_path, engine, **options).text == expected


def test_lookaround_and_backreferences_are_searched_by_our_own_engine(tmp_path: Path) -> None:
    make_tree(tmp_path, {"a": "foobar\nfoobaz\nabab\n"})
    assert find(tmp_path, "auto", r"foo(?!bar)|(ab)\1").text == "a\n2:foobaz\n3:abab"


def test_a_pattern_too_large_for_ripgrep_is_searched_by_our_own_engine(tmp_path: Path) -> None:
    make_tree(tmp_path, {"a": "x\n"})
    assert find(tmp_path, "auto", r"x|(?:\w{1000}){1000}").text == "a\n1:x"


def test_links_and_special_files_are_not_searched(tmp_path: Path, engine: Engine) -> None:
    make_tree(tmp_path, {"out/secret": "x", "in/a": "x"})
    (tmp_path / "in/file").symlink_to(tmp_path / "out/secret")
    (tmp_path / "in/folder").symlink_to(tmp_path / "out")
    (tmp_path / "in/near").symlink_to("a")
    os.mkfifo(tmp_path / "in/fifo")
    assert find(tmp_path / "in", engine, "x").text == "a\n1:x"


def test_ripgrep_is_not_let_loose_on_files_of_the_kernel(tmp_path: Path) -> None:
    need_ripgrep()
    with opened(Path("/")) as top, opened(tmp_path) as folder:
        assert (find_ripgrep(top), find_ripgrep(folder) is None) == (None, False)


def test_undecodable_names_are_escaped_and_paged(tmp_path: Path, engine: Engine) -> None:
    for name in (b"a\xff", b"b\xe9"):
        Path(os.fsdecode(os.path.join(os.fsencode(tmp_path), name))).write_text("x")
    page = find(tmp_path, engine, "x", output="files", limit=1)
    assert page.text.startswith(r"a\xff")
    assert find(tmp_path, engine, "x", output="files", cursor=page.cursor).text == r"b\xe9"


def test_rules_above_the_folder_apply_unless_one_below_brings_back(tmp_path: Path, engine: Engine) -> None:
    files = {".gitignore": "*.log\n/s/t/no\nnode_modules/\n", "s/.gitignore": "*.tmp\n", "s/t/.gitignore": "!k.log\n"}
    files |= {
        f"s/t/{name}": "x" for name in ("a.log", "k.log", "u/k.log", "no", "u/no", "b.tmp", "node_modules/m", "z")
    }
    make_tree(tmp_path, files)
    with opened(tmp_path) as root, opened(tmp_path / "s/t") as folder:
        above = rules_above(root, "s/t")
        page = search(folder, SearchQuery(pattern="x", output="files"), above=above, engine=engine)
    assert page.text == "k.log\nu/k.log\nu/no\nz"


def test_a_long_line_is_cut_around_its_match(tmp_path: Path, engine: Engine) -> None:
    make_tree(tmp_path, {"a": "é" * 5_000 + "needle" + "b" * 5_000})
    text = find(tmp_path, engine, "needle").text
    assert "needle" in text
    assert len(text) < matches.LINE_CHARACTERS + 100


def test_pages_hold_every_match_once_and_stay_within_the_budget(tmp_path: Path, engine: Engine) -> None:
    make_tree(tmp_path, {f"folder{i}/file{j}": "x line\ny\n" * 7 for i in range(4) for j in range(3)})
    for options in ({"limit": 10}, {"max_tokens": LEAST_TOKENS}, {"context": 2, "max_tokens": 150}):
        seen, cursor = list[str](), ""
        for _ in range(200):
            page = find(tmp_path, engine, "x", cursor=cursor, **options)
            assert count_tokens(page.text) <= options.get("max_tokens", 6000)
            seen += [line for line in page.text.split("\n") if ":x" in line]
            cursor = page.cursor
            if not cursor:
                break
        assert len(seen) == 4 * 3 * 7


def test_a_budget_too_small_for_the_context_still_shows_the_match(tmp_path: Path, engine: Engine) -> None:
    make_tree(tmp_path, {"a": ("y" * 300 + "\n") * 5 + "x\n" + "x\n"})
    page = find(tmp_path, engine, "x", context=5, max_tokens=LEAST_TOKENS)
    assert page.text.startswith("a:6:x")
    assert find(tmp_path, engine, "x", cursor=page.cursor).text == "a\n7:x"


def test_too_many_matches_are_cut_at_the_same_place(tmp_path: Path, engine: Engine) -> None:
    make_tree(tmp_path, {f"f{number:02}": "x\n" * 3_000 for number in range(10)})
    page = find(tmp_path, engine, "x", limit=5)
    assert (page.matches, page.files, page.is_cut) == (21_000, 7, True)
    assert "more than 20,995 more matching lines" in page.text
    last = find(tmp_path, engine, "x", cursor="2999:f09")
    assert (last.text, last.cursor) == ("f09\n3000:x", "")


@pytest.mark.parametrize("more", [-1, 0, 1])
@pytest.mark.parametrize("options", [{}, {"output": "files"}, {"max_tokens": LEAST_TOKENS}], ids=str)
def test_what_lies_too_deep_is_said_to_be_left_out(
    tmp_path: Path, engine: Engine, options: dict[str, Any], more: int
) -> None:
    make_tree(tmp_path, {"d/" * (MOST_DEPTH - 1 + more) + "deep": "match\n"})
    note = f"[files more than {MOST_DEPTH} folders down are left out; search one of the folders on the way by path]"
    nothing = find(tmp_path, engine, "match", **options).text
    assert (nothing == f"{note}\n{NOTHING}") is (more > 0)
    (tmp_path / "top").write_text("match\n" * 2)
    text = find(tmp_path, engine, "match", globs=("top", "deep"), **options).text
    assert text.startswith(f"{note}\ntop") is (more > 0) and "top" in text
    assert find(tmp_path, engine, "match", globs=("top",), **options).text.startswith(("top", note))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"context": -1}, "context"),
        ({"context": matches.MOST_CONTEXT + 1}, "context"),
        ({"limit": 0}, "limit"),
        ({"limit": 1_001}, "limit"),
        ({"globs": ("{a,b}" * 7,)}, "alternatives"),
        ({"globs": ("",)}, "empty"),
    ],
)
def test_wrong_options_are_refused(tmp_path: Path, options: Any, message: str) -> None:
    with pytest.raises(FileError, match=message):
        find(tmp_path, "auto", "x", **options)


def test_a_foreign_cursor_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="cursor"):
        find(tmp_path, "auto", "x", cursor="page 2")


NAMES = st.sampled_from(["a", "b.py", ".c", "d.log", "é", "build", "x y", "#n"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
LINES = st.sampled_from(
    [
        b"foo",
        b"Foo bar",
        b"",
        b" ",
        b"\t",
        b"foo\r",
        b"\r",
        b"caf\xe9",
        b"\xff",
        "é foo".encode(),
        b"foo" * 200,
        b"\0",
        b"_1",
    ]
)
CONTENTS = st.builds(
    lambda lines, end: b"\n".join(lines) + end, st.lists(LINES, max_size=6), st.sampled_from([b"", b"\n"])
)
IGNORED = st.lists(
    st.sampled_from(
        ["*.log", "!d.log", "/a", "build/", "a/**", "**/a", "!/b.py", "x y", "\\#n", "# n", "a/*", "!a/b.py", ".*"]
    ),
    max_size=4,
).map("\n".join)
ATOMS = st.sampled_from(
    ["foo", ".", r"\s", r"\S", r"\w", r"\W", "[^f]", r"[\W_]", "é", r"\b", "o?", "(?:f|b)", r"\d", "{", "B"]
)
PATTERNS = st.builds(
    lambda start, atoms, end: start + "".join(atoms) + end,
    st.sampled_from(["", "^"]),
    st.lists(ATOMS, min_size=1, max_size=4),
    st.sampled_from(["", "$"]),
)
GLOBS = st.lists(st.sampled_from(["*.py", "a", "!a", "**/b.py", "*.{py,log}", "a/*", "*"]), max_size=2).map(tuple)


@given(
    files=st.dictionaries(PATHS, CONTENTS, min_size=1, max_size=8),
    ignored=st.dictionaries(st.sampled_from(["", "a/", "build/", "a/a/"]), IGNORED, max_size=3),
    pattern=PATTERNS,
    globs=GLOBS,
    ignore_case=st.booleans(),
    context=st.integers(0, 2),
)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_both_engines_answer_alike(
    tmp_path_factory: pytest.TempPathFactory,
    files: dict[str, bytes],
    ignored: dict[str, str],
    pattern: str,
    **options: Any,
) -> None:
    need_ripgrep()
    folder = tmp_path_factory.mktemp("tree")
    for path, content in (files | {f"{at}.gitignore": text.encode() for at, text in ignored.items()}).items():
        try:
            make_tree(folder, {path: content})
        except OSError:
            pass  # a file where another has a folder
    try:
        own = find(folder, "own", pattern, **options)
    except PatternError:
        return
    assert find(folder, "ripgrep", pattern, **options) == own
