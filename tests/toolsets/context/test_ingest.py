"""What a pass over a folder stores, and what it does when files change, move, vanish or are refused."""

from __future__ import annotations

import os
import random
import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import pytest

from longshore.sandbox.confined import ConfinedFiles
from longshore.sandbox.file_errors import FileError
from longshore.sandbox.roots import configured_roots
from longshore.toolsets.context import ingest as ingest_module
from longshore.toolsets.context.ingest import IngestLimits, ingest
from longshore.toolsets.context.orphans import find_orphans
from longshore.toolsets.context.records import NewItem, NewLink, NewSource, Query, Targets
from longshore.toolsets.context.store import Store

from .graphs import ME, names, opened
from .projects import content, links, nodes, put, run


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


# -- what is stored


def test_python_becomes_symbols_with_their_links(store: Store, root: Path) -> None:
    put(root / "shop/__init__.py", "")
    put(
        root / "shop/cart.py",
        '"""Carts."""\nfrom shop.price import total\nimport shop.price as p\n\nLIMIT = 5\n\n\n'
        "class Cart:\n    '''A cart.'''\n\n    size: int = 3\n\n    def add(self, item):\n        self.check()\n\n"
        "    def check(self):\n        return total([]) + p.tax(1)\n\n\ndef make():\n    return Cart()\n",
    )
    put(root / "shop/price.py", "def total(items):\n    return sum(items)\n\n\nasync def tax(amount):\n    return 0\n")
    report = run(store, root)
    assert (report.files, report.added, report.functions, report.parts) == (3, 3, 5, 9)
    assert set(nodes(store, "shop/cart.py")) == {
        ("file", "shop/cart.py"),
        ("class", "Cart"),
        ("method", "Cart.add"),
        ("method", "Cart.check"),
        ("function", "make"),
    }
    assert links(store) == {
        ("shop/cart.py:Cart", "part_of", "shop/cart.py"),
        ("shop/cart.py:Cart.add", "part_of", "shop/cart.py:Cart"),
        ("shop/cart.py:Cart.check", "part_of", "shop/cart.py:Cart"),
        ("shop/cart.py:make", "part_of", "shop/cart.py"),
        ("shop/price.py:total", "part_of", "shop/price.py"),
        ("shop/price.py:tax", "part_of", "shop/price.py"),
        ("shop/cart.py", "imports", "shop/price.py"),
        ("shop/cart.py:Cart.add", "calls", "shop/cart.py:Cart.check"),
        ("shop/cart.py:Cart.check", "calls", "shop/price.py:total"),
        ("shop/cart.py:Cart.check", "calls", "shop/price.py:tax"),
        ("shop/cart.py:make", "calls", "shop/cart.py:Cart"),
    }
    found = nodes(store, "shop/cart.py")
    assert found["method", "Cart.check"].attributes == {"lines": [16, 17]}
    [text] = store.observations(found["class", "Cart"].id)
    assert text.text == "class Cart:\n'''A cart.'''\nsize: int = 3"
    [text] = store.observations(found["file", "shop/cart.py"].id)
    assert text.text.startswith('"""Carts."""\nfrom shop.price') and text.text.endswith("LIMIT = 5")
    source = store.details(found["function", "make"].id).sources[text.source]  # type: ignore[union-attr]
    assert (source.type, source.uri) == ("file", "shop/cart.py")


def test_markdown_becomes_sections_that_mention_files_and_sections(store: Store, root: Path) -> None:
    put(
        root / "docs/guide.md",
        "---\ntitle: The guide\n---\nBefore.\n\n# Install\n\n"
        "See [usage](usage.md#first-steps) and [code](../main.py).\n\n"
        "```\n# no heading\n```\n\n## Linux\n\napt. Back to [install](#install).\n\nUsage\n=====\n\n"
        "[web](https://x.example/y)\n",
    )
    put(root / "docs/usage.md", "# First steps\n\nRun it.\n")
    put(root / "main.py", "x = 1\n")
    run(store, root)
    assert {name for _, name in nodes(store, "docs/guide.md")} == {
        "docs/guide.md",
        "Install",
        "Install > Linux",
        "Usage",
    }
    assert {link for link in links(store) if link[1] == "mentions"} == {
        ("docs/guide.md:Install", "mentions", "docs/usage.md:First steps"),
        ("docs/guide.md:Install", "mentions", "main.py"),
        ("docs/guide.md:Install > Linux", "mentions", "docs/guide.md:Install"),
    }
    found = nodes(store, "docs/guide.md")
    assert [o.text for o in store.observations(found["file", "docs/guide.md"].id)] == ["The guide\nBefore."]
    assert found["section", "Install > Linux"].attributes == {"lines": [14, 16]}
    assert names(store, "apt")[0] == "Install > Linux"


def test_other_text_becomes_blocks_with_their_lines(store: Store, root: Path) -> None:
    paragraphs = [f"paragraph {number}\n" + "word " * 150 for number in range(10)]
    put(root / "long.txt", "\n\n".join(paragraphs) + "\n")
    put(root / "short.cfg", "[a]\nb = 1\n")
    run(store, root)
    found = nodes(store, "long.txt")
    spans = sorted(node.attributes["lines"] for (kind, _), node in found.items() if kind == "text")
    assert spans[0] == [1, 5] and spans[-1][1] == 29 and all(a[1] < b[0] for a, b in pairwise(spans))
    assert names(store, "paragraph 7")[0].startswith("paragraph")
    assert set(nodes(store, "short.cfg")) == {("file", "short.cfg")}


def test_python_that_does_not_parse_is_plain_text_and_is_reported(store: Store, root: Path) -> None:
    put(root / "broken.py", "def fine():\n    pass\n\ndef broken(:\n")
    put(root / "deep.py", "x = " + "(" * 5_000 + ")" * 5_000 + "\n")
    put(root / "nul.py", "x = '\\0'\n")
    report = run(store, root)
    assert report.added == 3
    assert {problem.path: problem.what for problem in report.problems}.keys() == {"broken.py", "deep.py"}
    assert report.problems[0].what == "no valid Python in line 4: read as plain text"
    assert names(store, "broken") == ["broken.py"]


def test_names_that_look_like_ids_and_names_that_are_defined_twice(store: Store, root: Path) -> None:
    put(
        root / "a.py",
        "def n1():\n    return n2()\n\ndef n2():\n    pass\n\nclass C:\n    @property\n    def v(self): return 1\n"
        "    @v.setter\n    def v(self, value): pass\n\nif True:\n    def w(): pass\nelse:\n    def w(): n1()\n",
    )
    run(store, root)
    assert ("a.py:n1", "calls", "a.py:n2") in links(store)
    assert ("a.py:w", "calls", "a.py:n1") in links(store)
    [text] = store.observations(nodes(store, "a.py")["method", "C.v"].id)
    assert "@v.setter" in text.text and text.text.startswith("@property")


def test_names_are_resolved_through_packages_and_relative_imports(store: Store, root: Path) -> None:
    put(root / "src/lib/__init__.py", "from .core import work\nfrom . import more\n")
    put(root / "src/lib/core.py", "from ..other import nothing\nfrom . import more\n\ndef work():\n    more.extra()\n")
    put(root / "src/lib/more.py", "def extra(): pass\n")
    put(
        root / "use.py",
        "import lib, os.path\nimport lib.more\nfrom lib import *\n\n"
        "def f():\n    lib.work()\n    lib.more.extra()\n    os.path.join()\n\ndef g(): work()\n",
    )
    run(store, root)
    assert {link for link in links(store) if link[1] != "part_of"} == {
        ("src/lib/__init__.py", "imports", "src/lib/core.py"),
        ("src/lib/__init__.py", "imports", "src/lib/more.py"),
        ("src/lib/core.py", "imports", "src/lib/more.py"),
        ("src/lib/core.py:work", "calls", "src/lib/more.py:extra"),
        ("use.py", "imports", "src/lib/__init__.py"),
        ("use.py", "imports", "src/lib/more.py"),
        ("use.py:f", "calls", "src/lib/core.py:work"),
        ("use.py:f", "calls", "src/lib/more.py:extra"),
        ("use.py:g", "calls", "src/lib/core.py:work"),
    }


@pytest.mark.parametrize(("classes", "found"), [(1, 1), (3, 3), (4, 0)])
def test_a_method_of_an_unknown_object_is_found_if_few_have_its_name(
    store: Store, root: Path, classes: int, found: int
) -> None:
    put(root / "use.py", "def f(x):\n    x.frobnicate()\n    x.append(1)\n")
    for number in range(classes):
        put(root / f"c{number}.py", "class C:\n    def frobnicate(self): pass\n    def append(self): pass\n")
    run(store, root)
    assert len([link for link in links(store) if link[1] == "calls"]) == found


# -- passes


def test_a_second_pass_opens_nothing(store: Store, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(30):
        put(root / f"m{number}.py", f"def f{number}(): pass\n")
    (root / "image.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0")
    first = run(store, root)
    events = store.status().last_event
    files = ConfinedFiles(configured_roots([str(root)]))
    opened_files = list[str]()
    monkeypatch.setattr(ConfinedFiles, "open_file", lambda _, path, most=None: opened_files.append(path))
    second = ingest(store, files)
    assert (first.added, second.unchanged, second.added, opened_files) == (30, 30, 0, [])
    assert first.skipped == second.skipped == {"binary": 1}
    assert store.status().last_event == events


def test_a_file_with_a_new_time_and_the_same_content_is_not_written_again(store: Store, root: Path) -> None:
    put(root / "a.py", "def f(): pass\n")
    run(store, root)
    events = store.status().last_event
    os.utime(root / "a.py", ns=(1, 1))
    report = run(store, root)
    assert (report.unchanged, report.changed, store.status().last_event) == (1, 0, events)
    assert store.file_states()["a.py"].modified_ns == (root / "a.py").stat().st_ctime_ns
    assert run(store, root).bytes == 0


def test_another_parser_version_reads_a_file_again(store: Store, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(root / "a.py", "def f(): pass\n")
    run(store, root)
    monkeypatch.setattr(ingest_module.python_file, "PARSER", "python/99")
    assert run(store, root).changed == 1
    assert run(store, root).unchanged == 1


def test_a_changed_file_keeps_its_history(store: Store, root: Path) -> None:
    put(root / "a.py", "def f():\n    return 'apple'\n\ndef g(): pass\n\ndef h(): pass\n")
    run(store, root)
    before = nodes(store, "a.py")
    put(root / "a.py", "def f():\n    return 'pear'\n\ndef g(): pass\n")
    report = run(store, root)
    assert (report.changed, report.added) == (1, 0)
    after = nodes(store, "a.py")
    assert ("function", "h") not in after and after["function", "f"].id == before["function", "f"].id
    details = store.details(after["function", "f"].id, with_history=True)
    assert details is not None and len(details.observations) == 2
    [current] = store.observations(after["function", "f"].id)
    assert current.text == "def f():\n    return 'pear'"


def test_an_edit_that_keeps_the_size_and_sets_the_time_back_is_seen(store: Store, root: Path) -> None:
    path = root / "a.txt"
    put(path, "It is 80.")
    before = path.stat()
    run(store, root)
    for _ in range(1_000):  # the clock of the file system may tick every four milliseconds
        put(path, "It is 81.")
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        if path.stat().st_ctime_ns != before.st_ctime_ns:
            break
    assert run(store, root).changed == 1
    assert content(store)["file a.txt {'lines': [1, 1]}"] == ["It is 81."]


def test_renamed_files_keep_their_nodes_and_deleted_ones_are_forgotten(store: Store, root: Path) -> None:
    put(root / "a.py", "def f(): pass\n")
    put(root / "old.py", "def g(): pass\n")
    put(root / "use.py", "from a import f\n\ndef use(): f()\n")
    run(store, root)
    before = nodes(store, "a.py")["function", "f"].id
    (root / "pkg").mkdir()
    (root / "a.py").rename(root / "pkg/b.py")
    (root / "old.py").unlink()
    report = run(store, root)
    assert (report.moved, report.forgotten, report.added, report.relinked) == (1, 1, 0, 1)
    assert nodes(store, "pkg/b.py")["function", "f"].id == before
    assert set(nodes(store, "pkg/b.py")) == {("function", "f"), ("file", "pkg/b.py")}
    assert not nodes(store, "a.py") and not nodes(store, "old.py")
    assert {link[1] for link in links(store)} == {"part_of"}  # `a` is no more
    assert set(store.file_states()) == {"pkg/b.py", "use.py"}


def test_the_source_of_a_renamed_file_has_its_new_name(store: Store, root: Path) -> None:
    put(root / "a.md", "# Deploy\n\nDeploy with the blue script, see [this](a.md).\n")
    run(store, root)
    (root / "a.md").rename(root / "b.md")
    run(store, root)
    put(root / "a.md", "# Cooking\n\nSoup needs salt.\n")
    run(store, root)
    for path, said in (("b.md", "Deploy"), ("a.md", "Cooking")):
        details = store.details(nodes(store, path)["section", said].id)
        assert details is not None and {source.uri for source in details.sources.values()} == {path}
    assert find_orphans(store) == {}


def test_a_file_renamed_to_a_path_that_once_had_the_same_names(store: Store, root: Path) -> None:
    put(root / "b.py", "def f(): return 1\n")
    run(store, root)
    (root / "b.py").unlink()
    put(root / "a.py", "def f(): return 2\n")
    run(store, root)
    (root / "a.py").rename(root / "b.py")
    assert run(store, root).moved == 1
    [text] = store.observations(nodes(store, "b.py")["function", "f"].id)
    assert text.text == "def f(): return 2" and not nodes(store, "a.py")


def test_files_that_become_ignored_or_denied_are_forgotten(store: Store, root: Path) -> None:
    put(root / "keep.txt", "keep")
    put(root / "out/made.txt", "made")
    put(root / "notes.txt", "notes")
    run(store, root)
    put(root / ".gitignore", "out/\n")
    assert run(store, root).forgotten == 1
    files = ConfinedFiles(configured_roots([str(root)]), deny=["notes*"])
    assert ingest(store, files).forgotten == 1
    assert set(store.file_states()) == {".gitignore", "keep.txt"}


def test_an_ignored_path_is_refused_by_its_name_too(store: Store, root: Path) -> None:
    put(root / ".gitignore", "build/\n*.log\n")
    put(root / "a/.gitignore", "secret.txt\n")
    for path in ("build/x.txt", "a/secret.txt", "a/kept.txt", "x.log", ".git/config", "node_modules/m.js"):
        put(root / path, "unicorn")
    for path in ("build", "build/x.txt", "a/secret.txt", "x.log", ".git", ".git/config", "node_modules"):
        with pytest.raises(FileError, match="it is ignored, or in an ignored folder"):
            run(store, root, path)
    assert store.file_states() == {}
    assert run(store, root, "a").added == 2
    put(root / "a/.gitignore", "kept.txt\n")
    assert run(store, root, "a/kept.txt").forgotten == 1, "as a pass over the folder does"
    (root / ".git/x").mkdir()
    put(root / ".git/x/notes.txt", "unicorn")
    inner = ConfinedFiles(configured_roots([str(root / ".git/x")]))
    assert ingest(store, inner, "notes.txt").added == 1, (
        "what somebody has chosen for a root is not looked at from above"
    )


def test_what_a_pass_does_not_cover_stays(store: Store, root: Path) -> None:
    put(root / "a/x.md", "# X\n")
    put(root / "a/y.txt", "y")
    put(root / "b/z.md", "# Z\n")
    run(store, root)
    for path in ("a/x.md", "a/y.txt", "b/z.md"):
        (root / path).unlink()
    assert run(store, root, "a", include=["*.md"]).forgotten == 1
    assert run(store, root, "b", exclude=["z.*"]).forgotten == 0
    assert set(store.file_states()) == {"a/y.txt", "b/z.md"}
    assert run(store, root, "b/z.md").forgotten == 1  # a path that is no more, but was ingested
    with pytest.raises(FileError, match="does not exist"):
        run(store, root, "b/z.md")


def test_include_and_exclude_choose_files(store: Store, root: Path) -> None:
    for path in ("a.py", "b.md", "sub/c.py", "sub/d.txt"):
        put(root / path, "x = 1\n")
    run(store, root, include=["*.py", "*.txt"], exclude=["sub/*.txt"])
    assert set(store.file_states()) == {"a.py", "sub/c.py"}
    with pytest.raises(FileError, match="glob"):
        run(store, root, include=[""])


@pytest.mark.parametrize("mode", ["retract", "purge"])
def test_links_to_a_file_that_was_forgotten_come_back_with_it(
    store: Store, root: Path, mode: Literal["retract", "purge"]
) -> None:
    put(root / "a.md", "# Start\n\nSee [the notes](notes.txt).\n")
    put(root / "notes.txt", "pelican facts\n")
    put(root / "lib.py", "X = 1\n")
    put(root / "use.py", "import lib\n")
    run(store, root)
    before = links(store)
    assert {("a.md:Start", "mentions", "notes.txt"), ("use.py", "imports", "lib.py")} <= before
    chosen = [node.id for path in ("notes.txt", "lib.py") for node in store.find(path)]
    store.forget(mode, Targets(nodes=tuple(chosen)), ME)
    run(store, root)
    assert links(store) == before


def test_unchanged_files_are_linked_to_what_is_added_and_removed(store: Store, root: Path) -> None:
    put(root / "use.py", "from tool import work\n\ndef f(x):\n    work()\n    x.polish()\n")
    put(root / "doc.md", "# D\n\n[t](tool.py) [s](other.md#a-part)\n")
    run(store, root)
    plain = links(store)
    put(root / "tool.py", "def work(): pass\n\nclass T:\n    def polish(self): pass\n")
    put(root / "other.md", "# A part\n")
    report = run(store, root)
    assert (report.added, report.relinked) == (2, 2)
    assert {
        ("use.py", "imports", "tool.py"),
        ("use.py:f", "calls", "tool.py:work"),
        ("use.py:f", "calls", "tool.py:T.polish"),
        ("doc.md:D", "mentions", "tool.py"),
        ("doc.md:D", "mentions", "other.md:A part"),
    } <= links(store)
    (root / "tool.py").unlink()
    (root / "other.md").unlink()
    run(store, root)
    assert links(store) == plain
    put(root / "tool.py", "def work(): pass\n")  # the names of retracted nodes are used again
    run(store, root)
    assert ("use.py:f", "calls", "tool.py:work") in links(store)


def test_passes_over_a_changing_tree_end_like_one_pass(store: Store, root: Path, tmp_path: Path) -> None:
    chance = random.Random(7)
    modules = [f"m{number}" for number in range(6)]
    for turn in range(25):
        name = chance.choice(modules)
        path = root / chance.choice(("", "pkg/")) / f"{name}.py"
        match chance.randrange(5):
            case 0 if path.exists():
                path.unlink()
            case 1 if path.exists():
                path.rename(path.with_name(f"{name}x{turn}.py"))
            case 2:
                put(
                    root / f"{name}.md",
                    f"# {name}\n\n[a]({chance.choice(modules)}.py) [b]({chance.choice(modules)}.md#{name})\n",
                )
            case _:
                other, called = chance.choice(modules), chance.choice("abcd")
                own = chance.sample("abcd", 2)
                body = f"from {other} import {called}\nimport {other}\n\n"
                body += f"def {own[0]}(x):\n    {called}()\n    {other}.{called}()\n    x.{called}2()\n\n"
                put(path, body + f"class K:\n    def {own[1]}2(self): self.{called}2()\n")
        run(store, root)
        with opened(tmp_path / f"fresh{turn}.db") as fresh:
            run(fresh, root)
            assert links(store) == links(fresh)
            assert content(store) == content(fresh)


def test_what_agents_say_of_a_file_outlives_its_changes(store: Store, root: Path) -> None:
    put(root / "a.py", "def f(): pass\n")
    run(store, root)
    store.add([NewItem(kind="note", name="about a", text="a is slow", path="a.py")], ME)
    put(root / "a.py", "def g(): pass\n")
    run(store, root)
    (root / "a.py").unlink()
    run(store, root)
    assert names(store, "slow") == ["about a"]


def said_by_agents(store: Store, path: str) -> tuple[list[str], list[str]]:
    """What agents say of the function `beta` of a file, and which nodes they have linked to it."""
    [beta] = [node for node in store.find("beta") if node.path == path]
    details = store.details(beta.id)
    assert details is not None
    by_agents = {source.id for source in details.sources.values() if source.type == "agent"}
    linked = [details.neighbours[edge.from_node].name for edge in details.edges if edge.source in by_agents]
    return [o.text for o in details.observations if o.source in by_agents], linked


@pytest.fixture
def warned(store: Store, root: Path) -> Path:
    """A file with a function of which agents know something."""
    put(root / "b.py", 'def beta():\n    "The beta rotation."\n    return 1\n')
    put(root / "use.py", "from b import beta\n\ndef f(): beta()\n")
    run(store, root)
    link = NewLink(to="beta", relation="about", kind="function")
    store.add([NewItem(kind="function", name="beta", path="b.py", text="beta deadlocks under load")], ME)
    store.add([NewItem(kind="note", name="remark", text="see it", links=(link,))], ME)
    return root / "b.py"


@pytest.mark.parametrize("agent_is_first", [False, True])
def test_what_an_agent_says_stays_when_a_file_says_it_no_more(store: Store, root: Path, agent_is_first: bool) -> None:
    link = NewLink(to="lib.py", relation="imports", path="lib.py")
    said = [
        NewItem(kind="file", name="port.txt", path="port.txt", text="The port is 8080."),
        NewItem(kind="file", name="use.py", path="use.py", links=(link,)),
    ]
    put(root / "lib.py", "")
    put(root / "port.txt", "The port is 8080.")
    put(root / "use.py", "import lib\n")
    store.add([NewItem(kind="file", name="lib.py", path="lib.py")], ME)
    if agent_is_first:
        store.add(said, ME)
    run(store, root)
    assert {each.outcome for each in store.add(said, ME)} == {"unchanged" if agent_is_first else "merged"}
    assert {each.outcome for each in store.add(said, ME)} == {"unchanged"}
    (root / "port.txt").unlink()
    put(root / "use.py", "x = 1\n")
    run(store, root)
    assert names(store, "8080") == ["port.txt"]
    assert ("use.py", "imports", "lib.py") in links(store)
    store.retract(Targets(observations=tuple(o.id for o in store.observations(store.find("port.txt")[0].id))), ME)
    put(root / "port.txt", "The port is 8080.")
    run(store, root)
    assert names(store, "8080") == ["port.txt"]


def test_a_file_that_is_away_for_a_pass_loses_nothing(store: Store, root: Path, warned: Path) -> None:
    before, known = links(store), content(store)
    warned.rename(root / "b.bak")
    run(store, root)
    assert names(store, "deadlocks") == ["beta", "remark"]
    assert names(store, "rotation") == ["b.bak"] and ("use.py:f", "calls", "b.py:beta") not in links(store)
    (root / "b.bak").rename(warned)
    run(store, root)
    assert said_by_agents(store, "b.py") == (["beta deadlocks under load"], ["remark"])
    assert (links(store), content(store)) == (before, known)


def test_what_agents_say_of_a_part_outlives_the_part(store: Store, root: Path, warned: Path) -> None:
    whole = warned.read_text()
    put(warned, "def gamma(): pass\n")
    run(store, root)
    assert ("function", "beta") not in store.names_in_files()["b.py"]
    assert ("use.py:f", "calls", "b.py:beta") not in links(store)
    put(warned, whole)
    run(store, root)
    assert said_by_agents(store, "b.py") == (["beta deadlocks under load"], ["remark"])
    assert ("use.py:f", "calls", "b.py:beta") in links(store)


def test_a_file_that_is_renamed_and_edited_in_one_pass_keeps_its_nodes(store: Store, root: Path, warned: Path) -> None:
    warned.unlink()
    put(root / "core.py", 'def beta():\n    "The beta rotation, faster."\n    return 1\n')
    put(root / "use.py", "from core import beta\n\ndef f(): beta()\n")
    report = run(store, root)
    assert (report.moved, report.added, report.forgotten) == (1, 0, 0)
    assert said_by_agents(store, "core.py") == (["beta deadlocks under load"], ["remark"])
    assert ("use.py:f", "calls", "core.py:beta") in links(store)


def test_text_without_parts_that_is_renamed_and_edited_keeps_its_node(store: Store, root: Path) -> None:
    lines = [f"Step {n}: turn valve {n * 7} by half." for n in range(20)]
    put(root / "steps.txt", "\n".join(lines))
    put(root / "other.txt", "\n".join(f"Page {n} of the ledger." for n in range(20)))
    run(store, root)
    before = nodes(store, "steps.txt")["file", "steps.txt"].id
    for name in ("steps.txt", "other.txt"):
        (root / name).unlink()
    put(root / "valves.txt", "\n".join([*lines[:15], "Then wait."]))
    report = run(store, root)
    assert (report.moved, report.forgotten) == (1, 1)
    assert nodes(store, "valves.txt")["file", "valves.txt"].id == before


def test_each_new_file_is_compared_with_few_that_are_gone(
    store: Store, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(30):
        put(root / f"a/{n}.txt", "\n".join(["A common line."] * 3 + [f"ledger {n} page {p}" for p in range(9)]))
    run(store, root)
    shutil.rmtree(root / "a")
    for n in range(30):
        put(root / f"b/{n}.txt", "\n".join(["A common line."] * 3 + [f"recipe {n} step {p}" for p in range(9)]))
    compared, asked = list[str](), list[bool]()

    def likeness(*_: Any) -> float:
        compared.append("")
        return 0.0

    monkeypatch.setattr(ingest_module, "_likeness", likeness)
    report = run(store, root, is_cancelled=lambda: bool(asked.append(True)))
    assert (report.added, report.forgotten) == (30, 30)
    assert len(compared) <= 30, "one of each name at most: a line that many have is no reason"
    assert len(asked) >= 30 + len(compared), "it can be cancelled between two comparisons"


def test_another_file_with_the_same_name_in_it_is_not_taken_for_the_old_one(store: Store, root: Path) -> None:
    put(root / "a.py", "def main():\n    parser = make_parser()\n    run(parser.parse_args())\n")
    run(store, root)
    (root / "a.py").unlink()
    put(root / "b.py", "def main():\n    for line in open('x'):\n        print(line.upper())\n")
    report = run(store, root)
    assert (report.moved, report.added, report.forgotten) == (0, 1, 1)


def test_agents_lose_nothing_over_many_passes(store: Store, root: Path) -> None:
    chance = random.Random(5)
    remarks = 0
    for _ in range(25):
        path = root / chance.choice(("a.py", "b.py", "c.py"))
        match chance.randrange(4):
            case 0 if path.exists():
                path.unlink()
            case 1 if path.exists():
                path.rename(root / chance.choice(("a.py", "b.py", "c.py")))
            case _:
                put(
                    path,
                    "".join(
                        f"def {name}():\n    return {chance.randrange(9)}\n" for name in "fgh"[: chance.randint(1, 3)]
                    ),
                )
        run(store, root)
        known = [(path, kind, name) for path, names_ in store.names_in_files().items() for kind, name in names_]
        for file, kind, name in chance.sample(sorted(known), min(2, len(known))):
            remarks += 1
            about = NewLink(to=name, relation="about", kind=kind, path=file)
            item = NewItem(kind=kind, name=name, path=file, text=f"remark {remarks}")
            store.add([item, NewItem(text=f"note {remarks}", links=(about,))], ME)
    with store.database.reading() as transaction:
        lost = "SELECT count(*) FROM {} JOIN source ON source.id = {}.source WHERE type = 'agent' AND superseded_at > 0"
        assert [transaction.row(lost.format(table, table)) for table in ("observation", "edge")] == [(0,), (0,)]
    assert remarks > 20


def test_forgotten_files_are_read_again(store: Store, root: Path) -> None:
    put(root / "long.txt", "the pelican migration")
    run(store, root)
    store.retract(Targets(nodes=tuple(node.id for node in store.find("long.txt"))), ME)
    assert names(store, "pelican") == []
    report = run(store, root)
    assert (report.changed, report.unchanged, names(store, "pelican")) == (1, 0, ["long.txt"])
    (root / "long.txt").unlink()
    store.retract(Targets(nodes=tuple(node.id for node in store.find("long.txt"))), ME)
    assert run(store, root).forgotten == 1


# -- places


def test_paths_begin_at_the_base_whatever_the_root_is(store: Store, root: Path) -> None:
    put(root / "src/a.py", "def f(): pass\n")
    put(root / "docs/b.md", "# B\n")
    run(store, root / "src", base=str(root))
    run(store, root / "docs", base=str(root))
    assert set(store.file_states()) == {"src/a.py", "docs/b.md"}
    assert run(store, root, base=str(root)).unchanged == 2


def test_files_outside_of_the_base_have_absolute_paths(store: Store, root: Path, tmp_path: Path) -> None:
    put(root / "a.txt", "a")
    put(tmp_path / "other/b.txt", "b")
    files = ConfinedFiles(configured_roots([str(root), str(tmp_path / "other")]))
    ingest(store, files)
    ingest(store, files, str(tmp_path / "other"))
    assert set(store.file_states()) == {"a.txt", str(tmp_path / "other/b.txt")}
    assert ingest(store, files).unchanged == 1  # and forgets nothing of the other root


def test_links_pipes_and_devices_are_not_opened(store: Store, root: Path, tmp_path: Path) -> None:
    put(tmp_path / "outside.txt", "outside canary")
    put(root / "inside.txt", "inside")
    (root / "link.txt").symlink_to(tmp_path / "outside.txt")
    (root / "folder").symlink_to(tmp_path)
    os.mkfifo(root / "pipe.txt")
    assert run(store, root).files == 1
    for path, kind in (("link.txt", "outside"), ("folder", "outside"), ("pipe.txt", "special"), ("/dev", "outside")):
        with pytest.raises(FileError) as caught:
            run(store, root, path)
        assert caught.value.kind == kind
    assert names(store, "canary") == []


def test_names_that_are_no_text_are_skipped(store: Store, root: Path) -> None:
    for name in (b"bad\xff.txt", b"new\nline.txt", b"ghp_" + b"a1B2" * 9 + b".txt"):
        with open(os.path.join(os.fsencode(root), name), "w") as file:
            file.write("text")
    report = run(store, root)
    assert report.skipped == {"unusable name": 3} and not store.file_states()


# -- limits


def test_what_is_no_small_utf_8_text_is_skipped_with_its_reason(store: Store, root: Path) -> None:
    (root / "latin.txt").write_bytes("Größe und Maß".encode("cp1252"))
    (root / "late.txt").write_bytes(b"x" * 70_000 + b"\xff")
    (root / "wide.txt").write_bytes("breit".encode("utf-16"))
    (root / "marked.py").write_bytes(b"\xef\xbb\xbfdef f(): pass\r\n")
    (root / "data.bin").write_bytes(bytes(range(256)))
    put(root / "fits.txt", "x" * 80_000)
    put(root / "large.txt", "x" * 80_001)
    put(root / "empty.py", "")
    report = run(store, root, limits=IngestLimits(most_file_bytes=80_000))
    assert report.skipped == {"not UTF-8": 2, "binary": 1, "too large": 1}
    assert report.added == 4 and names(store, "breit") == ["wide.txt"]
    put(root / "fits.txt", "x" * 80_001)
    assert run(store, root, limits=IngestLimits(most_file_bytes=80_000)).forgotten == 1
    (root / "latin.txt").write_bytes("Größe und Maß".encode())
    assert run(store, root).skipped == {"not UTF-8": 1, "binary": 1}
    assert names(store, "Maß") == ["latin.txt"]
    (root / "latin.txt").write_bytes(b"\0\1\2" * 10)
    run(store, root)
    assert not nodes(store, "latin.txt")


@pytest.mark.parametrize(("parts", "kinds"), [(5_000, {"file", "section"}), (5_001, {"file", "text"})])
def test_a_file_of_too_many_parts_is_plain_text(store: Store, root: Path, parts: int, kinds: set[str]) -> None:
    put(root / "a.md", "".join(f"# h{number}\n" for number in range(parts - 1)))
    report = run(store, root)
    assert {kind for kind, _ in store.names_in_files()["a.md"]} == kinds
    assert [problem.what for problem in report.problems] == ["more than 5,000 parts: read as plain text"] * (
        parts - 5_000
    )


@pytest.mark.parametrize(("limit", "added"), [(2, 2), (3, 3), (4, 3)])
def test_the_walk_ends_at_the_limit_of_files(store: Store, root: Path, limit: int, added: int) -> None:
    for name in "abc":
        put(root / f"{name}.txt", name)
    report = run(store, root, limits=IngestLimits(most_files=limit))
    assert report.added == added and len(report.limits) == (added < 3)
    (root / "a.txt").unlink()
    put(root / "d.txt", "d")
    assert run(store, root, limits=IngestLimits(most_files=2)).forgotten == 0  # what was not seen may be there


def test_a_pass_goes_on_where_the_limit_of_bytes_ended_the_last(store: Store, root: Path) -> None:
    for number in range(5):
        put(root / f"{number}.txt", "x" * 100)
    limits = IngestLimits(most_bytes=200)
    reports = [run(store, root, limits=limits) for _ in range(4)]
    assert [report.added for report in reports] == [2, 2, 1, 0]
    assert [report.skipped.total() for report in reports] == [3, 1, 0, 0]
    assert "ingest again" in reports[0].limits[0] and not reports[2].limits


def test_texts_beyond_the_cache_are_parsed_again(store: Store, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingest_module, "CACHED_CHARACTERS", 10)
    put(root / "a.py", "from b import g\n\ndef f(): g()\n")
    put(root / "b.py", "from a import f\n\ndef g(): f()\n")
    assert run(store, root).added == 2
    assert {link for link in links(store) if link[1] == "calls"} == {
        ("a.py:f", "calls", "b.py:g"),
        ("b.py:g", "calls", "a.py:f"),
    }


# -- what happens meanwhile


def test_a_cancelled_pass_keeps_whole_files_and_the_next_does_the_rest(store: Store, root: Path) -> None:
    for number in range(10):
        put(root / f"{number}.py", f"def f{number}(): pass\n")
    seen = list[tuple[int, int, str]]()
    report = run(store, root, progress=lambda *step: seen.append(step), is_cancelled=lambda: len(seen) >= 14)
    assert report.cancelled and report.added == 4
    assert [done for done, _, _ in seen] == list(range(14)) and {total for _, total, _ in seen} == {20}
    assert len(store.file_states()) == 4
    rest = run(store, root)
    assert (rest.unchanged, rest.added, rest.cancelled) == (4, 6, False)


def test_files_that_vanish_or_change_during_the_pass_are_reported(store: Store, root: Path) -> None:
    put(root / "a.txt", "a")
    put(root / "b.txt", "b")
    put(root / "c.txt", "c")

    def progress(done: int, _total: int, path: str) -> None:
        if path == "a.txt" and done == 0:
            (root / "b.txt").unlink()
            (root / "c.txt").unlink()
            (root / "c.txt").symlink_to("/etc/passwd")

    report = run(store, root, progress=progress)
    assert report.added == 1 and report.skipped == {"vanished": 1, "unreadable": 1}
    assert {problem.path for problem in report.problems} == {"b.txt", "c.txt"}


def test_the_source_says_who_has_ingested(store: Store, root: Path) -> None:
    put(root / "a.txt", "apple")
    run(store, root, source=NewSource(session="s1", client="editor", actor="me"))
    [hit] = store.query(Query(text="apple")).hits
    [source] = hit.sources.values()
    assert (source.type, source.uri, source.session, source.client) == ("file", "a.txt", "s1", "editor")
