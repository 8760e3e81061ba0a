"""`longshore schema`: snapshots of a surface, and changes that break callers."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from longshore import Server
from longshore.cli.main import run
from longshore.cli.schema import DIFFERENCES, SHOWN
from longshore.testing import assert_surface, load_server

SERVER = """
from typing import Annotated
from longshore import Server, Alias
print("a word on stdout")
app = Server("weather", instructions="Ask away.")

@app.tool
def forecast(city: str, days: int = 3) -> str:
    '''Tell the weather.'''
    return city

@app.prompt
def packing(city: str) -> str:
    return city
"""
NEXT = SERVER.replace("city: str, days", "city: str, hour: int, days").replace("Tell the", "Get the")
RENAMED = SERVER.replace("@app.tool\n", '@app.tool(aliases=["forecast"])\n').replace(
    "def forecast(city: str,", "def get_forecast(place: Annotated[str, Alias('city')],"
)


class Done(NamedTuple):
    code: int
    out: str
    err: str


class Folder:
    def __init__(self, path: Path, capture: pytest.CaptureFixture[str]) -> None:
        self.path, self._capture = path, capture

    def write(self, name: str, content: Any) -> None:
        (self.path / name).write_text(content if isinstance(content, str) else json.dumps(content))

    def __call__(self, *words: str) -> Done:
        code = run(["schema", *words])
        return Done(code, *self._capture.readouterr())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Folder]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    found = Folder(tmp_path, capsys)
    for name, text in (("old.py", SERVER), ("new.py", NEXT), ("renamed.py", RENAMED)):
        found.write(name, text)
    yield found
    for name in {"old", "new", "renamed", "words", "narrow", "empty", "broken"} - before:
        sys.modules.pop(name, None)


# -- snapshots


def test_a_snapshot_is_the_file_of_the_pytest_plugin(folder: Folder) -> None:
    written = folder("snapshot", "old.py", "--output", "kept/surface.json")
    assert (written.code, written.out) == (0, "")
    assert "a word on stdout" in written.err
    assert "kept/surface.json: tools: 1, prompts: 1" in written.err
    assert_surface(load_server("old.py"), "kept/surface.json", update=False)
    printed = folder("snapshot", "old.py")
    assert printed.out == (folder.path / "kept/surface.json").read_text()


def test_a_snapshot_is_checked(folder: Folder) -> None:
    folder("snapshot", "old.py", "--output", "surface.json")
    before = (folder.path / "surface.json").read_bytes()
    same = folder("snapshot", "old.py", "--check")
    assert (same.code, same.out) == (0, "surface.json → old.py: nothing has changed\n")
    other = folder("snapshot", "new.py", "--check")
    assert other.code == 1
    assert "BREAKS  parameter 'hour' is new and required" in other.out
    assert "if that is meant: longshore schema snapshot new.py --output surface.json" in other.err
    assert (folder.path / "surface.json").read_bytes() == before


def test_any_change_fails_a_check_even_a_harmless_one(folder: Folder) -> None:
    folder("snapshot", "old.py", "--output", "surface.json")
    folder.write("words.py", SERVER.replace("Tell the", "Get the"))
    found = folder("snapshot", "words.py", "--check", "--output", "surface.json", "--format", "json")
    assert found.code == 1
    told = json.loads(found.out)
    assert told["breaking"] == 0
    assert [(each["title"], each["safe"]) for each in told["changes"]] == [
        ("tool forecast", ["its description changed"])
    ]


# -- differences

TOOL: dict[str, Any] = {"name": "f", "inputSchema": {"type": "object", "properties": {"a": {"type": "integer"}}}}
WIDER: dict[str, Any] = {"name": "f", "inputSchema": {"type": "object", "properties": {"a": {"type": "number"}}}}


def test_diff_exits_with_1_only_for_a_breaking_change(folder: Folder) -> None:
    folder.write("a.json", [TOOL])
    folder.write("b.json", {"result": {"tools": [WIDER]}})
    assert folder("diff", "a.json", "b.json").code == 0
    back = folder("diff", "b.json", "a.json")
    assert back.code == 1
    assert 'BREAKS  parameter \'a\': type was "number" and is "integer"' in back.out
    assert back.out.endswith("b.json → a.json: 1 of 1 changes break callers\n")
    assert folder("diff", "a.json", "a.json").out == "a.json → a.json: nothing has changed\n"


def test_only_parts_that_both_sides_have_are_compared(folder: Folder) -> None:
    """A list of tools has no prompts."""
    folder("snapshot", "old.py", "--output", "whole.json")
    tools = json.loads((folder.path / "whole.json").read_text())["tools"]
    folder.write("tools.json", {"tools": tools})
    assert folder("diff", "whole.json", "tools.json").out.endswith("nothing has changed\n")


def test_aliases_of_a_server_in_python_are_harmless_renames(folder: Folder) -> None:
    folder("snapshot", "old.py", "--output", "old.json")
    folder("snapshot", "renamed.py", "--output", "renamed.json")
    known = folder("diff", "old.json", "renamed.py")
    assert known.code == 0
    assert "safe    it is now get_forecast, and can be called by its old name, too" in known.out
    assert "safe    parameter 'city' is now 'place', and is taken by its old name, too" in known.out
    unknown = folder("diff", "old.json", "renamed.json")
    assert unknown.code == 1
    assert "BREAKS  it was removed" in unknown.out


MOVED = SERVER.replace("@app.tool\n", "@app.tool(aliases={'forecast': from_v1})\n").replace(
    "def forecast(city: str,", "def get_forecast(place: str,"
)
MIGRATION = """
def from_v1(city: str, days: int = 3) -> dict[str, str]:
    return {"place": city}

@app.tool("""


def test_an_alias_is_compared_by_its_own_parameters(folder: Folder) -> None:
    folder("snapshot", "old.py", "--output", "old.json")
    for name, takes, code in (("same.py", "days: int", 0), ("other.py", "hours: int", 1)):
        folder.write(name, MOVED.replace("@app.tool(", MIGRATION.replace("days: int", takes)))
        found = folder("diff", "old.json", name)
        assert found.code == code, found
        assert "it is now get_forecast" in found.out


def test_a_renamed_parameter_that_accepts_less_breaks_callers(folder: Folder) -> None:
    folder("snapshot", "old.py", "--output", "old.json")
    folder.write("narrow.py", RENAMED.replace("Annotated[str", "Annotated[int"))
    found = folder("diff", "old.json", "narrow.py")
    assert found.code == 1
    assert 'parameter \'place\': type was "string" and is "integer"' in found.out


def test_a_server_that_runs_is_asked(folder: Folder) -> None:
    command = f"{sys.executable} -m longshore serve new.py"
    folder("snapshot", "old.py", "--output", "old.json")
    found = folder("diff", "old.json", command, "--format", "markdown")
    assert found.code == 1
    assert "- **tool forecast**" in found.out
    assert "  - **breaks:** parameter 'hour' is new and required" in found.out
    assert folder("diff", "old.json", "--", *command.split()).code == 1
    checked = folder("snapshot", "--check", "--output", "old.json", "--", *command.split())
    assert checked.code == 1
    assert f"longshore schema snapshot --output old.json -- {command}" in checked.err


def test_one_side_may_be_stdin(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.write("a.json", [TOOL])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps([TOOL]).encode())))
    assert folder("diff", "a.json", "-").code == 0
    both = folder("diff", "-", "-")
    assert (both.code, "not both" in both.err) == (2, True)


def test_control_characters_and_markup_are_escaped(folder: Folder) -> None:
    name = "\x1b]0;owned\x07\n# <b>|`@all"
    folder.write("a.json", [{**TOOL, "name": name}])
    folder.write("b.json", [{**WIDER, "name": name, "title": "\x9b31m"}])
    for form in ("text", "markdown", "json"):
        out = folder("diff", "b.json", "a.json", "--format", form).out
        assert not set(out) & {"\x1b", "\x07", "\x9b"}
        assert "\n# <b>" not in out


def test_long_output_is_cut_in_text_and_markdown_only(folder: Folder) -> None:
    many = [{**TOOL, "name": f"t{number}"} for number in range(SHOWN + 1)]
    folder.write("many.json", many)
    folder.write("none.json", [])
    assert "… and 1 more: --format json has them all" in folder("diff", "many.json", "none.json").out
    assert "… and 1 more." in folder("diff", "many.json", "none.json", "--format", "markdown").out
    assert len(json.loads(folder("diff", "many.json", "none.json", "--format", "json").out)["changes"]) == SHOWN + 1
    folder.write("long.json", [{**TOOL, "description": "x", "_meta": {str(n): n for n in range(DIFFERENCES + 50)}}])
    folder.write("short.json", [TOOL])
    assert "lines more" in folder("diff", "long.json", "short.json").out


# -- what can't be done


def _app(path: Path) -> None:
    (path / "broken.py").write_text("raise RuntimeError('no')")


CAN_NOT: dict[str, tuple[Callable[[Folder], Any], list[str], str]] = {
    "no file": (lambda f: None, ["diff", "gone.json", "old.py"], "gone.json: there is no such file"),
    "nothing kept yet": (
        lambda f: None,
        ["snapshot", "old.py", "--check"],
        "surface.json: there is no such file; longshore schema snapshot [TARGET] --output surface.json",
    ),
    "no JSON": (lambda f: f.write("x.json", "{"), ["diff", "x.json", "old.py"], "x.json holds no JSON"),
    "no list": (lambda f: f.write("x.json", '{"tools": 3}'), ["diff", "x.json", "old.py"], "has no list of tools"),
    "deep": (lambda f: f.write("x.json", "[" * 500), ["diff", "x.json", "old.py"], "x.json holds no JSON"),
    "a folder": (lambda f: (f.path / "x.json").mkdir(), ["diff", "x.json", "old.py"], "x.json can't be read"),
    "a server that fails": (lambda f: _app(f.path), ["snapshot", "broken.py"], "broken.py"),
    "no server": (lambda f: None, ["snapshot", "nowhere.py"], "nowhere.py: there is no such file"),
    "nobody there": (lambda f: None, ["snapshot", "http://127.0.0.1:9/mcp"], "127.0.0.1:9"),
    "no name of JSON": (lambda f: None, ["snapshot", "old.py", "--output", "x.txt"], "ends in .json"),
    "a form of what is written": (
        lambda f: None,
        ["snapshot", "old.py", "--format", "json"],
        "--format is for --check",
    ),
    "where nothing can be written": (
        lambda f: f.write("file", ""),
        ["snapshot", "old.py", "--output", "file/x.json"],
        "file/x.json can't be written",
    ),
    "two of one": (lambda f: None, ["snapshot", "old.py", "--", "x"], "either TARGET or a command after --"),
    "two new ones": (lambda f: None, ["diff", "old.py", "new.py", "--", "x"], "either NEW or a command after --"),
    "none": (lambda f: None, ["diff", "old.py"], "NEW is missing"),
    "no name for a file of servers": (lambda f: None, ["snapshot", "--config", "x.json"], "name one"),
}


@pytest.mark.parametrize("case", CAN_NOT)
def test_an_impossible_comparison_exits_with_2(folder: Folder, case: str) -> None:
    prepare, words, why = CAN_NOT[case]
    prepare(folder)
    done = folder(*words)
    assert (done.code, done.out) == (2, "")
    assert why in done.err


def test_a_failed_snapshot_leaves_the_file_unchanged(folder: Folder) -> None:
    folder.write("surface.json", "mine")
    assert folder("snapshot", "nowhere.py", "--output", "surface.json").code == 2
    assert (folder.path / "surface.json").read_text() == "mine"


def test_an_empty_server_has_a_surface(folder: Folder) -> None:
    folder.write("empty.py", "from longshore import Server\napp = Server('empty')\n")
    assert "empty.json: nothing" in folder("snapshot", "empty.py", "--output", "empty.json").err
    assert folder("snapshot", "empty.py", "--check", "--output", "empty.json").code == 0
    assert isinstance(load_server("empty.py"), Server)
