"""`longshore context`: what it prints, what it writes, and how it ends."""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path

import pytest

from longshore.cli.main import run
from longshore.toolsets.context.records import NewItem, NewLink, NewSource
from longshore.toolsets.context.store import open_store
from trusting import Trusting


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a memory, in which the commands run."""
    folder = Path(os.path.realpath(tmp_path)) / "project"
    (folder / ".git").mkdir(parents=True)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PWD", str(folder))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("CONTEXTGRAPH_DB", raising=False)
    return folder


@pytest.fixture
def database(project: Path) -> Path:
    path = project / ".contextgraph" / "context.db"
    store = open_store(str(path))
    items = [
        NewItem(kind="decision", name="Token format", text="Tokens are signed.", links=(NewLink(to="auth <service>"),)),
        NewItem(kind="fact", name="Port", text="It is 80.", valid_from=0),
    ]
    store.add(items, NewSource(actor="ann"))
    store.supersede(2, "It is 8080.", NewSource(actor="ann"))
    store.close()
    return path


def out(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    """What a command prints on stdout, and on stderr if it fails."""
    assert run(["context", *arguments]) == code
    printed = capsys.readouterr()
    return printed.out if code == 0 else printed.err


def test_stats_and_queries(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert f"Place: {database}\n" in (shown := out(capsys, "stats")) and "Nodes: 3" in shown
    assert json.loads(out(capsys, "stats", "--json"))["superseded"] == 1
    assert "It is 8080." in out(capsys, "query", "which", "port")
    assert "It is 80." in out(capsys, "query", "port", "--as-of", "2020-01-01")
    assert json.loads(out(capsys, "query", "port", "--json", "--kind", "fact"))["total"] == 1
    assert "give a date" in out(capsys, "query", "port", "--as-of", "soon", code=2)


def test_a_project_without_a_memory_is_told_what_makes_one(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in (["stats"], ["query", "a"], ["graph"], ["export"], ["doctor"]):
        assert "there is no memory yet; an agent's add_context makes it" in out(capsys, *command, code=1)
    assert not (project / ".contextgraph").exists()


def test_the_configured_place_is_meant(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], trust: Trusting
) -> None:
    (project / "longshore.toml").write_text('[toolsets.context]\ndatabase = "data/mine.db"\n')
    trust(project / "longshore.toml")
    (project / "graph.jsonl").write_text('{"type":"entity","name":"Ann","entityType":"person","observations":["hi"]}\n')
    assert out(capsys, "import", "graph.jsonl").startswith("added 1 node, 1 observation, 0 edges")
    assert f"Place: {project}/data/mine.db" in out(capsys, "stats")
    assert "there is no memory yet" in out(capsys, "stats", "--database", str(tmp_path / "none.db"), code=1)


@pytest.mark.parametrize("ending", ["html", "svg"])
def test_a_picture_is_written(database: Path, project: Path, capsys: pytest.CaptureFixture[str], ending: str) -> None:
    output = project / f"picture.{ending}"
    assert run(["context", "graph", "Token format", "--output", str(output)]) == 0
    assert capsys.readouterr().err == f"drew 2 nodes in {output}\n"
    picture = output.read_text()
    assert "auth &lt;service&gt;" in picture and "<script" not in picture and "Port" not in picture
    assert picture.startswith("<!doctype html>" if ending == "html" else "<svg ")
    assert output.stat().st_mode & 0o077 == 0
    assert run(["context", "graph", "--output", str(output)]) == 0 and "Port" in output.read_text()
    assert "nothing is found by 'zebra'" in out(capsys, "graph", "zebra", code=1)
    assert "can't be written" in out(capsys, "graph", "--output", str(project / "absent" / "a.html"), code=1)


def test_an_export_is_imported_whole(
    database: Path, project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output, other = project / "all.jsonl", str(tmp_path / "other.db")
    assert run(["context", "export", "--output", str(output)]) == 0
    assert output.read_text() == out(capsys, "export")
    assert "added 3 nodes, 3 observations, 1 edge; 0 were known" in out(
        capsys, "import", str(output), "--database", other
    )
    assert out(capsys, "export", "--database", other) == output.read_text()
    page, third = project / "all.md", str(tmp_path / "third.db")
    assert run(["context", "export", "--format", "markdown", "--output", str(page)]) == 0
    assert "## decision" in page.read_text()
    assert "added 3 nodes, 2 observations, 1 edge" in out(capsys, "import", str(page), "--database", third)
    assert "added 0 nodes, 0 observations, 0 edges" in out(capsys, "import", str(page))
    lines = out(capsys, "export", "--format", "server-memory").splitlines()
    assert json.loads(lines[0]) == {
        "type": "entity",
        "name": "Token format",
        "entityType": "decision",
        "observations": ["Tokens are signed."],
    }


def test_bad_lines_of_a_memory_file_end_with_1(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "memory.jsonl").write_text('{"type":"entity","name":"Ann","entityType":"p","observations":[]}\n{torn\n')
    assert run(["context", "import", "memory.jsonl"]) == 1
    printed = capsys.readouterr()
    assert printed.err.startswith("line 2: ") and printed.out.startswith("added 1 node, ")
    (project / "native.jsonl").write_text('{"context":{"version":1}}\n{torn\n')
    assert "line 2 is none of an export" in out(capsys, "import", "native.jsonl", code=2)


def test_doctor_finds_and_repairs(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ": ok: 3 nodes, 2 observations" in out(capsys, "doctor")
    with sqlite3.connect(database) as connection:
        connection.execute("DELETE FROM posting WHERE observation = 1")
        connection.execute("UPDATE observation SET superseded_by = 999 WHERE id = 1")
        connection.execute("INSERT INTO source (type, uri, session, client, actor, at) VALUES ('agent','','','x','',0)")
        connection.execute("UPDATE node SET retracted_at = 1 WHERE name = 'auth <service>'")
    connection.close()
    found = out(capsys, "doctor", code=1)
    for problem in (
        "texts are not in the index",
        "1 sources that nothing is from",
        "1 current edges of retracted nodes",
        "1 observations whose superseded_by is absent",
        "fix: longshore context doctor --repair",
    ):
        assert problem in found
    assert ": repaired: " in out(capsys, "doctor", "--repair")
    assert ": ok: 2 nodes, 2 observations" in out(capsys, "doctor")
    assert "Tokens are signed." in out(capsys, "query", "signed")


def test_doctor_says_what_to_do_with_a_damaged_file(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = bytearray(database.read_bytes())
    page = int.from_bytes(data[16:18], "big")
    data[3 * page : 3 * page + 200] = b"\xff" * 200
    database.write_bytes(data)
    damaged = out(capsys, "doctor", code=1)
    assert "recover" in damaged
    database.write_bytes(b"nothing of the kind" * 100)
    assert "not an intact SQLite database" in out(capsys, "doctor", "--repair", code=1)


def test_a_copy_is_complete(database: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = str(tmp_path / "copy.db")
    assert run(["context", "copy", str(database), target]) == 0
    capsys.readouterr()
    assert out(capsys, "export", "--database", target) == out(capsys, "export")
