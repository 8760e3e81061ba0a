"""The scanner finds the line of every key that tomllib accepts."""

from __future__ import annotations

import tomllib
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from longshore.config.toml_file import DEPTH, Document, lines_of

DOCUMENT = '''\
# [not.a.table]
top = 1
[server]   # a comment with = and [brackets]
text = """
[tools.fake]
key = "x" """" # four quotes: one is the text's own
other = \'\'\'
a = 1\'\'\'
list = [
  "]", # ]
  { a = 1 },
]
after = 2
[tools."a.b"]
"quoted \\" key" . 'x=y' = { z = [1,
  2] }
[[many]]
k = 1
[[many]]
k = 2
last = "\\\\"
'''


def test_the_lines_of_a_document_with_every_syntax_are_found() -> None:
    tomllib.loads(DOCUMENT)
    assert lines_of(DOCUMENT) == {
        ("top",): 2,
        ("server",): 3,
        ("server", "text"): 4,
        ("server", "other"): 7,
        ("server", "list"): 9,
        ("server", "after"): 13,
        ("tools",): 14,
        ("tools", "a.b"): 14,
        ("tools", "a.b", 'quoted " key'): 15,
        ("tools", "a.b", 'quoted " key', "x=y"): 15,
        ("many",): 17,
        ("many", "k"): 18,
        ("many", "last"): 21,
    }


def test_a_key_that_is_not_found_counts_for_the_table_around_it() -> None:
    document = Document("a.toml", {}, lines_of("[a]\n\nb = {c = {d = 1}}\n"))
    assert document.line(("a", "b", "c", "d")) == 3
    assert document.line(("a", "x")) == 1
    assert document.line(("x",)) == 1


VALUES = st.sampled_from(
    [
        "1",
        '"a # b = ["',
        "'] }'",
        '"""\n[x]\na=1\n"""',
        '""" """""',
        "'''\n\\'''",
        "[\n1, # ]\n2\n]",
        '{ a = "}", b = [1] }',
        '"\\\\"',
        '"\\""',
        "2020-01-01 00:00:00",
        "{}",
    ]
)
NAMES = st.one_of(
    st.from_regex(r"[A-Za-z0-9_-]{1,6}", fullmatch=True), st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
)


def _quoted(name: str) -> str:
    return '"' + "".join(f"\\U{ord(c):08x}" if not c.isalnum() or c in '"\\' else c for c in name) + '"'


def _spelled(name: str, bare: bool) -> str:
    return (
        name
        if bare and name and name.isascii() and name.replace("_", "a").replace("-", "a").isalnum()
        else _quoted(name)
    )


@given(
    st.lists(
        st.tuples(
            st.lists(NAMES, max_size=2),
            st.lists(st.tuples(NAMES, VALUES), max_size=4),
            st.booleans(),
            st.integers(0, 2),
        ),
        max_size=5,
    )
)
def test_every_key_of_any_document_is_found(tables: list[tuple[list[str], list[tuple[str, str]], bool, int]]) -> None:
    text, expected = "", {}
    for number, (names, keys, bare, blank) in enumerate(tables):
        path = (f"t{number}", *names)  # distinct, so that the document is valid
        text += "\n" * blank + f" [ {' . '.join(_spelled(name, bare) for name in path)} ] # [c] = 'd\n"
        expected[path] = text.count("\n")
        for name, value in dict(keys).items():
            expected[(*path, name)] = text.count("\n") + 1
            text += f"{_spelled(name, bare)}\t= {value} # ]\n"
    document: dict[str, Any] = tomllib.loads(text)
    lines = lines_of(text)
    for path, line in expected.items():
        assert lines[path[:DEPTH]] == line, (text, path)
        node: Any = document
        for name in path:
            node = node[name]
