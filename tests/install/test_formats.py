"""Edits of JSON with comments, TOML and YAML: what they do not touch keeps every character."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longshore.install import formats
from longshore.install.formats import Format
from longshore.install.plain_data import BrokenFile

ENTRY = {"type": "stdio", "command": "/bin/py", "args": ["-P", 'a "b"'], "env": {"KEY": "ü\x7f"}}
KEYS: dict[Format, tuple[str, str]] = {
    "jsonc": ("mcpServers", "ours"),
    "toml": ("mcp_servers", "ours"),
    "yaml": ("extensions", "ours"),
}
TEXTS: list[tuple[Format, str]] = [
    ("jsonc", "{}"),
    ("jsonc", '{"mcpServers":{}}'),
    ("jsonc", '{"mcpServers":{"a":{"command":"x"}}}'),
    ("jsonc", '{\n  "mcpServers": { "a": { "command": "x" } }\n}'),
    ("jsonc", '{\n\t"b": 1 // x\n}\n'),
    ("jsonc", '{\n  "b": 1, /* trailing comma */\n}'),
    ("jsonc", '{\n  "mcpServers": {\n    "a": {"x": "}"}, // why\n    // last\n  },\n  "z": [1,\n2]\n}\n'),
    ("jsonc", '{\r\n   "mcpServers": {\r\n      "a": 1\r\n   }\r\n}\r\n'),
    ("jsonc", '\ufeff{\n  "mcpServers": {\n  "a": 1 }\n}\n'),
    ("toml", ""),
    ("toml", "a = 1\n"),
    ("toml", '[mcp_servers.a]\ncommand = "x"\n\n# of the next\n[other]\nx = [\n  ["a"],\n]\n'),
    ("toml", 'mcp_servers = { a = { command = "x" } }\n'),
    ("yaml", "a: 1\n"),
    ("yaml", "extensions: {}\nz: 1\n"),
    ("yaml", "extensions:\n  # of a\n  a:\n    cmd: x # y\n\n# end\n"),
    ("yaml", 'extensions:\n    "a":\n        args:\n        - b\nz: |\n    extensions:\n'),
]


@pytest.mark.parametrize(("form", "text"), TEXTS)
def test_an_entry_is_added_and_removed_without_a_trace(form: Format, text: str) -> None:
    path = KEYS[form]
    try:
        after = formats.put(form, text, path, ENTRY)
    except BrokenFile as problem:  # an inline table can't be added to from elsewhere
        assert text.startswith("mcp_servers = {") and "by hand" in str(problem)
        return
    module = formats.editor(form)
    servers = module.read(after)[path[0]]
    assert servers == {**module.read(text).get(path[0], {}), "ours": ENTRY}
    made = path[0] not in text.replace("|\n    extensions", "")
    assert formats.remove(form, after, path, container=made) == text


@pytest.mark.parametrize(("form", "text"), [each for each in TEXTS if "= {" not in each[1]])
def test_an_entry_is_replaced_where_it_stands(form: Format, text: str) -> None:
    other = {**ENTRY, "command": "/other"}
    after = formats.put(form, formats.put(form, text, KEYS[form], other), KEYS[form], ENTRY)
    assert after == formats.put(form, text, KEYS[form], ENTRY)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
servers = st.dictionaries(st.text(max_size=6).filter("ours".__ne__), values, max_size=3)


@given(
    rest=st.dictionaries(st.text(max_size=6).filter("mcpServers".__ne__), values, max_size=3),
    listed=st.none() | servers,
    indent=st.sampled_from([None, 0, 2, "\t"]),
    comments=st.booleans(),
)
def test_any_json_is_as_before_after_an_edit_and_its_opposite(
    rest: dict[str, Any], listed: dict[str, Any] | None, indent: Any, comments: bool
) -> None:
    data = rest if listed is None else {**rest, "mcpServers": listed}
    text = json.dumps(data, indent=indent, ensure_ascii=not comments)
    if comments and indent is not None:
        text = "// first\n" + "\n".join(
            f"{line} // {number}" if line.endswith(("{", ",", "}")) and "\u2028" not in line else line
            for number, line in enumerate(text.split("\n"))
        )
    after = formats.put("jsonc", text, KEYS["jsonc"], ENTRY)
    assert formats.remove("jsonc", after, KEYS["jsonc"], container=listed is None) == text


@pytest.mark.parametrize(
    ("form", "text", "where"),
    [
        ("jsonc", '{\n  "a": 1,\n  "b" 2\n}', "line 3, column 7: expected :, not 2"),
        ("jsonc", '{\n  "a": 1', "line 2, column 9: expected , or }, it ends too early"),
        ("jsonc", '{"a": "b\n}', "line 1, column 7: a text that does not end"),
        ("jsonc", '{"a": tru}', "line 1, column 7: tru is no JSON"),
        ("jsonc", '{"a": 1} {}', "line 1, column 10: there is more after the end of the object"),
        ("jsonc", "[]", "line 1, column 1: expected an object"),
        ("jsonc", "[" * 300, "line 1, column 202: more than 200 levels"),
        ("jsonc", '{"mcpServers": {},\n"mcpServers": {}}', 'line 2, column 1: "mcpServers" stands there twice'),
        ("jsonc", '{"mcpServers": []}', 'line 1, column 16: "mcpServers" is no object'),
        ("toml", 'a = 1\nb = "x\n', "line 2, "),
        ("toml", "[mcp_servers]\nours = 1\n[mcp_servers.a]\n", "mcp_servers.ours does not stand in tables of its own"),
        ("yaml", "a: 1\n b: 2\n", "line 2, mapping values are not allowed here"),
        ("yaml", "- a\n", "line 1, expected a mapping"),
        ("yaml", "extensions: 12\n", "line 1, extensions is no mapping"),
        ("yaml", "extensions: {}\nextensions: {}\n", "line 2, extensions stands there twice"),
        ("yaml", "{extensions: {}}\n", "line 1, expected one mapping in lines"),
    ],
)
def test_a_text_that_can_not_be_edited_is_refused_with_its_line(form: Format, text: str, where: str) -> None:
    with pytest.raises(BrokenFile) as caught:
        formats.put(form, text, KEYS[form], ENTRY)
    assert str(caught.value).startswith(where)


def test_comments_behind_a_table_stay_when_it_is_removed() -> None:
    text = formats.put("toml", "", KEYS["toml"], ENTRY) + "\n# mine\n[other]\n"
    assert formats.remove("toml", text, KEYS["toml"], container=True) == "\n# mine\n[other]\n"


def test_a_table_that_was_split_is_removed_whole() -> None:
    text = '[mcp_servers.ours]\ncommand = "x"\n\n[other]\n\n[mcp_servers."ours".env]\nA = "b"\n'
    assert formats.remove("toml", text, KEYS["toml"], container=True) == "\n[other]\n"


def test_a_comment_beside_a_removed_member_swallows_nothing() -> None:
    text = '{"mcpServers": {"a": 1, // of a\n"ours": {}, "b": 2}}'
    after = formats.remove("jsonc", text, KEYS["jsonc"], container=False)
    assert after == '{"mcpServers": {"a": 1, // of a\n"b": 2}}'


def test_names_that_yaml_reads_as_something_else_are_quoted() -> None:
    after = formats.put("yaml", "", ("extensions", "on"), ENTRY)
    assert '"on":' in after and formats.editor("yaml").read(after) == {"extensions": {"on": ENTRY}}
