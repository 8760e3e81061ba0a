"""Exports and imports: native lines, Markdown, and the file of the official memory server."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.interop.client.peers import command

from longshore.client import SyncClient
from longshore.errors import StoreError, ToolError
from longshore.toolsets.context.markdown_format import export_markdown, import_markdown
from longshore.toolsets.context.native_format import export_native, import_native
from longshore.toolsets.context.records import FileState, Moment, NewItem, NewLink, NewSource, Query, Targets
from longshore.toolsets.context.server_memory import export_server_memory, import_server_memory
from longshore.toolsets.context.store import Store, StoreLimits
from redaction.canaries import canary
from waiting import PATIENCE

from .graphs import ME, Clock, fact, names, opened
from .projects import put, run

FILE = NewSource(type="import", uri="memory.jsonl")


def fill(store: Store) -> None:
    """Something of everything."""
    store.add(
        [
            fact("Port", "It is 80.", valid_from=5, links=(NewLink(to="Host"),), attributes={"b": [1], "a": {}}),
            NewItem(kind="task", name="Do", text="Do it.\n\nSoon.", pinned=True, importance=0.9, valid_to=10**17),
        ],
        ME,
    )
    store.supersede(1, "It is 8080.", NewSource(actor="other", session="s"), valid_from=50, reason="moved")
    store.add([fact("Proxy", "The port is 81.", contradicts=3)], ME)
    [gone] = store.add([fact("Gone", "Never mind.", links=(NewLink(to="Port"),))], ME)
    store.retract(Targets(nodes=(gone.node,)), ME, "wrong")
    store.add([fact("Old", "was here")], ME)
    store.retract(Targets(nodes=(6,)), ME)
    store.restore(Targets(nodes=(6,)), ME)
    state = FileState(path="a.md", size=3, modified_ns=1, hash="h", parser="markdown 1")
    source = NewSource(type="file", uri="a.md")
    store.replace_file(state, [NewItem(kind="section", name="A", path="a.md", text="text of a")], source)


def lines_of(store: Store) -> list[bytes]:
    return list(export_native(store))


# -- native


def test_a_round_trip_is_equal(store: Store, tmp_path: Path) -> None:
    fill(store)
    with opened(tmp_path / "copy.db", clock=Clock(10_000)) as copy:
        done = import_native(copy, lines_of(store), ME)
        assert (done.nodes, done.known, done.problems) == (7, 0, [])
        assert lines_of(copy) == lines_of(store)
        assert copy.check() == []
        for moment in (Moment(), Moment(valid_at=20), Moment(known_at=1_003)):
            found, expected = (each.query(Query(text="port", moment=moment)).hits for each in (copy, store))
            assert [(hit.node, hit.observations) for hit in found] == [(hit.node, hit.observations) for hit in expected]
        assert import_native(copy, lines_of(store), ME).known == done.nodes + done.observations + done.edges
        assert lines_of(copy) == lines_of(store), "again it changes nothing"
        [added] = copy.add([fact("New")], ME)
        assert added.node == 8 and copy.events(newest_first=True, limit=1)[0].at > 10_000


def test_an_import_adds_to_what_is_there(store: Store, tmp_path: Path) -> None:
    fill(store)
    with opened(tmp_path / "other.db", clock=Clock(10_000)) as other:
        other.add([fact("First"), fact("Port", "It is 8080."), fact("Gone", "It is back.")], ME)
        import_native(other, lines_of(store), ME)
        assert other.check() == []
        [port] = other.find("port")
        assert [o.text for o in other.observations(port.id)] == ["It is 8080."], "known texts are not doubled"
        [gone] = other.find("gone")
        assert [o.text for o in other.observations(gone.id)] == ["It is back."], "what was retracted is history"
        assert [o.text for o in other.observations(other.find("Do")[0].id)] == ["Do it.\n\nSoon."]
        before = lines_of(other)
        import_native(other, lines_of(store), ME)
        assert lines_of(other) == before, "again it changes nothing"
        assert other.changes_after(6).nodes, "clients that watch are told"


def test_files_of_another_project_are_read_again_or_dropped(store: Store, tmp_path: Path) -> None:
    roots = [tmp_path / name for name in ("ours", "theirs")]
    for root, said in zip(roots, ("We sell apples.", "They sell pears."), strict=True):
        put(root / "README.md", f"# Shop\n\n{said}\n")
    put(roots[1] / "more.md", "# More\n\nThey sell plums, too.\n")
    with opened(tmp_path / "theirs.db", clock=Clock(10_000)) as theirs:
        run(theirs, roots[1])
        lines = lines_of(theirs)
    run(store, roots[0])
    import_native(store, lines, ME)
    assert (run(store, roots[0]).changed, names(store, "pears"), names(store, "plums")) == (1, [], [])
    assert names(store, "apples")[0] == "Shop" and set(store.file_states()) == {"README.md"}
    before = lines_of(store)
    import_native(store, lines_of(store), ME)
    assert lines_of(store) == before and run(store, roots[0]).unchanged == 1


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (b"{", "line 4 is none of an export"),
        (b'{"node": {"id": "x", "kind": "a", "name": "b"}}', "line 4 is none of an export"),
        (b'{"nodes": {}}', "line 4 is none of an export"),
        (
            b'{"edge":{"id":1,"from_node":99,"relation":"r","to_node":1,"source":1,"valid_from":1,"recorded_at":1}}',
            "99",
        ),
        (b'{"context":{"version":2}}', "version 2"),
        (b'{"node": {"id": 1, "kind": "a", "name": ""}}', "name is empty"),
        (b'{"node": {"id": 0, "kind": "a", "name": "b"}}', "line 4: an id or sequence number is not from 1"),
        (b'{"node": {"id": -5, "kind": "a", "name": "b"}}', "line 4: an id or sequence number is not from 1"),
        (b'{"source": {"id": 9007199254740993, "type": "agent"}}', "line 4: an id or sequence number is not from 1"),
        (b'{"event":{"sequence":9223372036854775807,"at":1,"actor":"","operation":"add"}}', "line 4: an id or seq"),
        (
            b'{"event":{"sequence":1,"at":9223372036854775807,"actor":"","operation":"add"}}',
            "line 4: its time is to come",
        ),
    ],
)
def test_a_broken_line_is_named_and_nothing_is_imported(store: Store, tmp_path: Path, broken: bytes, said: str) -> None:
    fill(store)
    lines = lines_of(store)
    with opened(tmp_path / "copy.db") as copy:
        with pytest.raises(ToolError, match=f"{said}.*nothing was imported"):
            import_native(copy, [*lines[:3], broken, *lines[3:]], ME)
        assert copy.status().nodes == 0 and lines_of(copy) == lines[:1]


def test_what_is_imported_is_checked_as_what_is_added(store: Store) -> None:
    lines = [
        b'{"context":{"version":1}}',
        b'{"source":{"id":1,"type":"agent"}}',
        b'{"node":{"id":1,"kind":"a\\nb","name":"one\\ntwo"}}',
        b'{"node":{"id":9007199254740992,"kind":"a","name":"c"}}',
        b'{"observation":{"id":1,"node":1,"text":" text\\n","source":1,"valid_from":1,"recorded_at":1}}',
        b'{"edge":{"id":1,"from_node":1,"relation":"x\\ny","to_node":9007199254740992,"source":1,"valid_from":1,'
        b'"recorded_at":1}}',
    ]
    import_native(store, lines, ME)
    details = store.details(1)
    assert details is not None
    assert (details.node.kind, details.node.name, details.edges[0].relation) == ("a b", "one two", "x y")
    assert details.observations[0].text == "text"
    assert store.add([fact("New", "text")], ME)[0].node == 2**53 + 1


def test_a_successor_that_is_in_no_line_is_named(store: Store, tmp_path: Path) -> None:
    fill(store)
    lines = [line.replace(b'"superseded_by":3', b'"superseded_by":99') for line in lines_of(store)]
    said = r"no line is observation 99.*nothing was imported"
    with opened(tmp_path / "copy.db") as copy, pytest.raises(ToolError, match=said):
        import_native(copy, lines, ME)


def test_an_import_respects_the_limit_of_a_store(store: Store, tmp_path: Path) -> None:
    fill(store)
    small = opened(tmp_path / "small.db", limits=StoreLimits(most_bytes=1))
    with small as target, pytest.raises(StoreError, match="its limit is"):
        import_native(target, lines_of(store), ME)


def test_a_file_without_a_header_is_refused(store: Store) -> None:
    with pytest.raises(ToolError, match="begins with its header"):
        import_native(store, [b'{"node": {"id": 1, "kind": "a", "name": "b"}}'], ME)


# -- Markdown


def test_markdown_has_headings_texts_sources_and_links(store: Store) -> None:
    fill(store)
    store.add([fact("<b>*bold*</b>\n# forged", "<script>alert(1)</script>\n# not a heading")], ME)
    page = "\n".join(export_markdown(store))
    assert "\n## fact\n" in page and "\n### Port\n" in page and "\n### A (a.md)\n" in page
    assert "- It is 8080.  \n  *agent other, 1970-01-01*" in page and "It is 80." not in page
    assert "- related\\_to → Host (concept)" in page
    assert "Never mind." not in page
    assert not re.search(r"(?<!\\)<", page), "no tag"
    assert not re.search(r"\n\s*#(?!## |# )", page), "no heading but ours"


def page_of(store: Store) -> list[bytes]:
    """Its Markdown, without the sources."""
    page = "\n".join(export_markdown(store))
    return [re.sub(r"^  \*.*\*$", "  *agent a, 2026-01-01*", line).encode() for line in page.split("\n")]


def test_a_page_is_read_back_and_again_changes_nothing(store: Store, tmp_path: Path) -> None:
    fill(store)
    links = NewLink(to="a.md", kind="file", path="a.md"), NewLink(to="A", kind="section", path="a.md", relation="calls")
    store.add([NewItem(kind="file", name="a.md", path="a.md"), fact("f(x) [*]", "- a → b (c)", links=links)], ME)
    page = page_of(store)
    with opened(tmp_path / "other.db") as other:
        done = import_markdown(other, page, FILE)
        assert (done.nodes, done.problems, done.known) == (8, [], 0)
        assert page_of(other) == page
        before = lines_of(other)
        done = import_markdown(other, page, FILE)
        assert (done.nodes, done.observations, done.edges) == (0, 0, 0) and done.known
        assert lines_of(other) == before


@given(st.lists(st.text(alphabet=st.sampled_from("ab \\#<>=-*()→,.\n\r\u2028"), max_size=30), min_size=1, max_size=3))
def test_any_text_is_read_back_from_a_page(texts: list[str]) -> None:
    with TemporaryDirectory() as folder, opened(Path(folder, "a.db")) as one, opened(Path(folder, "b.db")) as other:
        for text in filter(str.strip, texts):
            one.add([fact("a", text)], ME)
        page = page_of(one)
        assert not re.search(r"(?<!\\)(\\\\)*<", "\n".join(map(bytes.decode, page))), "no tag"
        assert import_markdown(other, page, FILE).problems == []
        assert page_of(other) == page
        assert import_markdown(one, page, FILE).observations == 0


def test_a_page_that_was_edited_adds_what_is_new(store: Store) -> None:
    page = f"""# Context graph

## decision

### Token format
- Tokens are signed.
- password: {canary(1)}
- decided for → auth service (concept)
Prose that is no item.
"""
    done = import_markdown(store, page.encode().splitlines(), FILE)
    assert (done.nodes, done.observations, done.edges) == (2, 2, 1)
    assert done.problems == ["line 9: it is no heading, and no item beneath a node's heading"]
    said = b"\n".join(lines_of(store)).decode()
    assert "Tokens are signed." in said and canary(1) not in said


# -- server-memory

ENTITIES = [
    {"type": "entity", "name": "Ann", "entityType": "person", "observations": ["speaks Esperanto", 'says "hi"\n\\o/']},
    {"type": "entity", "name": "Example Corp", "entityType": "organization", "observations": []},
    {"type": "entity", "name": "日本語 ünï", "entityType": "note", "observations": ["uses JWT", "rotates keys daily"]},
]
RELATIONS = [
    {"type": "relation", "from": "Ann", "to": "Example Corp", "relationType": "works_at"},
    {"type": "relation", "from": "Example Corp", "to": "日本語 ünï", "relationType": "uses"},
]


def as_lines(records: Iterable[dict[str, Any]]) -> list[bytes]:
    return [json.dumps(each, ensure_ascii=False).encode() for each in records]


def graph_of(lines: Iterable[bytes]) -> dict[str, Any]:
    """The lines as the official server's read_graph has them, in an order of our own."""
    records = [json.loads(line) for line in lines]
    return {
        "entities": sorted(
            ({k: v for k, v in each.items() if k != "type"} for each in records if each["type"] == "entity"),
            key=lambda each: each["name"],
        ),
        "relations": sorted(
            ({k: v for k, v in each.items() if k != "type"} for each in records if each["type"] == "relation"),
            key=lambda each: (each["from"], each["to"], each["relationType"]),
        ),
    }


def official(path: Path, *calls: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    """What the official memory server reads of a file, after some calls."""

    with SyncClient(command("memory"), env={"MEMORY_FILE_PATH": str(path)}, timeout=PATIENCE) as client:
        for tool, arguments in calls:
            client.call_tool(tool, arguments)
        found = json.loads(client.call_tool("read_graph", {}).text)
    records = [{"type": "entity"} | each for each in found["entities"]]
    return graph_of(as_lines([*records, *({"type": "relation"} | each for each in found["relations"])]))


def test_the_official_server_and_we_read_the_same_of_its_file(store: Store, tmp_path: Path) -> None:
    """The file is written by the official server itself."""
    path = tmp_path / "memory.jsonl"
    entities = [{k: v for k, v in each.items() if k != "type"} for each in ENTITIES]
    relations = [{k: v for k, v in each.items() if k != "type"} for each in RELATIONS]
    theirs = official(path, ("create_entities", {"entities": entities}), ("create_relations", {"relations": relations}))
    done = import_server_memory(store, path.read_bytes().splitlines(), FILE)
    assert (done.nodes, done.observations, done.edges, done.known, done.problems) == (3, 4, 2, 0, [])
    assert graph_of(export_server_memory(store)) == theirs
    mine = tmp_path / "mine.jsonl"
    mine.write_bytes(b"".join(line + b"\n" for line in export_server_memory(store)))
    assert official(mine) == theirs, "it reads our export, too"


def test_importing_the_memory_file_again_changes_nothing(store: Store) -> None:
    lines = as_lines([*ENTITIES, *RELATIONS])
    import_server_memory(store, lines, FILE)
    before = lines_of(store)
    done = import_server_memory(store, lines, FILE)
    assert (done.nodes, done.observations, done.edges, done.known) == (0, 0, 0, 9)
    assert lines_of(store) == before


def test_bad_lines_are_reported_and_the_others_imported(store: Store) -> None:
    lines = as_lines([*RELATIONS[:1], *ENTITIES])
    lines.insert(1, b'{"type":"entity","name":"torn","entityType":"x","obse')
    lines += [b"", b'{"type":"other"}', b"\xff", *as_lines([{"type": "entity", "name": " ", "entityType": "x"}])]
    lines += as_lines([ENTITIES[0] | {"name": "Long", "observations": ["short", "x" * 100_001]}])
    lines += as_lines([{"type": "relation", "from": "Nowhere", "to": "Ann", "relationType": "knows"}])
    done = import_server_memory(store, lines, FILE)
    assert [problem.partition(":")[0] for problem in done.problems] == [f"line {n}" for n in (2, 7, 8, 9, 10)]
    assert "divide it" in done.problems[-1]
    assert [node.kind for node in store.find("Nowhere")] == ["concept"]
    assert {hit.node.name for hit in store.query(Query(text="esperanto")).hits} >= {"Ann"}
    assert [o.text for o in store.observations(store.find("Long")[0].id)] == ["short"]


def test_a_relation_between_names_that_several_nodes_have_is_reported(store: Store) -> None:
    store.add([fact("Ann"), NewItem(kind="note", name="Ann")], ME)
    done = import_server_memory(store, as_lines(RELATIONS[:1]), FILE)
    assert "2 nodes are named 'Ann'" in done.problems[0]


def test_names_that_several_nodes_have_are_exported_with_their_kinds(store: Store) -> None:
    store.add([fact("Ann", "a"), NewItem(kind="note", name="Ann", links=(NewLink(to="n1"),))], ME)
    found = graph_of(export_server_memory(store))
    assert [each["name"] for each in found["entities"]] == ["Ann", "Ann (note)"]
    assert found["relations"] == [{"from": "Ann (note)", "to": "Ann", "relationType": "related_to"}]


def test_names_that_look_like_numbered_ones_are_exported_once_each(store: Store) -> None:
    for name in ("X", "X (note)", "X (n4)"):
        store.add([NewItem(kind="note", name=name)], ME)
    store.add([NewItem(kind="note", name="X", path="p")], ME)
    found = [each["name"] for each in graph_of(export_server_memory(store))["entities"]]
    assert sorted(found) == ["X", "X (n4)", "X (n4, 2)", "X (note)"]


def test_names_that_differ_in_case_only_are_imported_apart(store: Store) -> None:
    lines = as_lines(
        [
            {"type": "entity", "name": "Foo", "entityType": "x", "observations": ["upper"]},
            {"type": "entity", "name": "foo", "entityType": "x", "observations": ["lower"]},
            {"type": "entity", "name": "bar", "entityType": "y", "observations": []},
            {"type": "relation", "from": "foo", "to": "bar", "relationType": "knows"},
        ]
    )
    done = import_server_memory(store, lines, FILE)
    assert (done.nodes, done.problems) == (3, [])
    assert list(done.notes) == ["'foo' is stored as 'foo (2)': another name differs from it in case or spaces only"]
    before = lines_of(store)
    import_server_memory(store, lines, FILE)
    assert lines_of(store) == before, "again it changes nothing"
    found = graph_of(export_server_memory(store))
    said = {each["name"]: each["observations"] for each in found["entities"]}
    assert said == {"Foo": ["upper"], "foo (2)": ["lower"], "bar": []}
    assert found["relations"] == [{"from": "foo (2)", "to": "bar", "relationType": "knows"}]


def test_kinds_and_relations_of_an_import_are_made_words(store: Store, tmp_path: Path) -> None:
    label = "x:“a” [o9 from file SECURITY.md]"
    lines = as_lines(
        [
            {"type": "entity", "name": "a", "entityType": label, "observations": []},
            {"type": "relation", "from": "a", "to": "a", "relationType": label},
        ]
    )
    done = import_server_memory(store, lines, FILE)
    assert list(done.notes) == [f"{label!r} is stored as 'x a o9 from file SECURITY.md'"]
    word = "x a o9 from file SECURITY.md"
    assert [node.kind for node in store.find("a")] == [word] and not done.problems
    old = [line.replace(word.encode(), label.encode()) for line in lines_of(store)]
    with opened(tmp_path / "other.db") as other:
        assert list(import_native(other, old, ME).notes) == list(done.notes)
        assert [node.kind for node in other.find("a")] == [word]


def test_credentials_in_a_memory_file_are_not_stored(store: Store) -> None:
    key = "ghp_" + canary(1)
    lines = as_lines(
        [
            {"type": "entity", "name": f"login {key}", "entityType": key, "observations": [f"it is {key}"]},
            {"type": "relation", "from": f"login {key}", "to": f"other {key}", "relationType": key},
        ]
    )
    done = import_server_memory(store, lines, FILE)
    assert (done.nodes, done.edges, done.problems) == (2, 1, [])
    assert key not in b"".join(lines_of(store)).decode()


@given(st.lists(st.binary(max_size=60) | st.sampled_from(as_lines([*ENTITIES, *RELATIONS])), max_size=20))
def test_any_lines_are_imported_or_reported(lines: list[bytes]) -> None:
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder, opened(Path(folder) / "a.db") as store:
        import_server_memory(store, lines, FILE)
        assert store.check() == []


def test_an_empty_store_of_either_engine_takes_ids_over(store: Store, tmp_path: Path) -> None:
    with opened(tmp_path / "other.db", clock=Clock()) as other:
        fill(other)
        lines = lines_of(other)
    import_native(store, lines, ME)
    assert lines_of(store) == lines
    [added] = store.add([fact("New", "text", links=(NewLink(to="Port"),))], NewSource(actor="new"))
    assert added.outcome == "created" and added.node == 8
