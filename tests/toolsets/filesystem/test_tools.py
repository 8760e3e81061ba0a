"""The file tools, as a client sees them."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from longshore import Server
from longshore.builtin import make
from longshore.config import DEFAULT
from longshore.errors import Cancelled
from longshore.registry.token_budget import LEAST_TOKENS, MOST_TOKENS, count_tokens
from longshore.sandbox.roots import Roots
from longshore.sandbox.trees import DRAFT_PREFIX
from longshore.toolsets.filesystem import reading
from longshore.toolsets.filesystem.file_info import HASH_CHARACTERS, hash_bytes
from longshore.toolsets.filesystem.options import FilesystemOptions
from longshore.toolsets.filesystem.tools import MOST_CACHED, Filesystem
from talk import ERAS, Client, call, converse, result, text, until

from .file_server import ask, refusal, serve
from .trees import make_tree

LISTING_TOKENS = 1_150
PNG = b"\x89PNG\r\n\x1a\n\0\0"
WAV = b"RIFF\0\0\0\0WAVEfmt "


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The server's only folder."""
    folder = Path(os.path.realpath(tmp_path)) / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PWD", str(folder))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return folder


@pytest.fixture
def app() -> Server:
    return serve()


def short(content: str) -> str:
    return hash_bytes(content.encode())[:HASH_CHARACTERS]


# -- the list


@pytest.mark.parametrize("revision", ERAS)
def test_the_eight_tools_cost_a_model_few_tokens(revision: str) -> None:
    tools = [tool for tool in result(make(), "tools/list", revision=revision)["tools"] if tool["name"][:3] == "fs_"]
    assert len(tools) == 8
    assert len(json.dumps(tools, separators=(",", ":"), ensure_ascii=False)) <= 4 * LISTING_TOKENS
    assert not any("outputSchema" in tool for tool in tools)


def test_a_session_that_only_reads_loads_neither_search_nor_trash_nor_watcher() -> None:
    code = "import sys, longshore.toolsets.filesystem.tools; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    rare = {"search", "patterns", "ripgrep", "trash", "watched_files", "watching"}
    assert not {f"longshore.toolsets.filesystem.{name}" for name in rare} & set(loaded)
    assert "subprocess" not in loaded


# -- reading


def test_a_text_is_read_with_its_hash(folder: Path, app: Server) -> None:
    (folder / "a.txt").write_text("one\ntwo\nthree\n")
    assert ask(app, "fs_read", path="a.txt") == "[hash {}]\none\ntwo\nthree".format(short("one\ntwo\nthree\n"))
    assert ask(app, "fs_read", path=f"{folder}/a.txt") == ask(app, "fs_read", path=(folder / "a.txt").as_uri())


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"offset": 2}, "two\nthree"),
        ({"limit": 1}, "one\n[… 2 more lines; offset=2]"),
        ({"offset": 2, "limit": 1}, "two\n[… 1 more line; offset=3]"),
        ({"tail": 2}, "two\nthree"),
        ({"line_numbers": True, "tail": 1}, "3\tthree"),
        ({"byte_offset": 4, "byte_limit": 3}, "two\n[… 7 bytes more; byte_offset=7]"),
        ({"byte_offset": 8}, "three\n"),
    ],
)
def test_a_part_of_a_text_is_read(folder: Path, app: Server, arguments: dict[str, Any], expected: str) -> None:
    (folder / "a.txt").write_text("one\ntwo\nthree\n")
    assert ask(app, "fs_read", path="a.txt", **arguments).partition("\n")[2] == expected


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"offset": 9}, "'a.txt': line 9 is beyond the end: the file has 1 lines; use a smaller offset"),
        ({"offset": 0}, "offset=0; lines count from 1"),
        ({"limit": 0}, "limit=0; it is at least 1"),
        ({"tail": 0}, "tail=0; it is at least 1"),
        ({"tail": 1, "limit": 1}, "offset and limit, tail mean different parts of a file; give one of these"),
        (
            {"byte_limit": 1, "tail": 1},
            "tail, byte_offset and byte_limit mean different parts of a file; give one of these",
        ),
        ({"byte_offset": 99}, "'a.txt': byte 99 is beyond the end: the file has 3 bytes; use a smaller byte_offset"),
    ],
)
def test_an_error_names_the_path_or_the_argument(
    folder: Path, app: Server, arguments: dict[str, Any], expected: str
) -> None:
    (folder / "a.txt").write_text("one")
    assert refusal(app, "fs_read", path="a.txt", **arguments) == expected


def test_several_files_are_read_each_under_its_name(folder: Path, app: Server) -> None:
    make_tree(folder, {"a": "one", "b": "two"})
    words = ask(app, "fs_read", path="a", paths=["b", "c"])
    assert words == (
        f"== a ==\n[hash {short('one')}]\none\n== b ==\n[hash {short('two')}]\ntwo\n"
        "== c ==\n'c' does not exist; list the folder above it to see what is there"
    )


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_a_call_reads_at_most_its_limit_of_files(folder: Path, app: Server, more: int) -> None:
    (folder / "a").write_text("one")
    paths = ["a"] * (reading.MOST_PATHS + more)
    if more <= 0:
        assert ask(app, "fs_read", paths=paths).count("== a ==") == len(paths)
    else:
        assert refusal(app, "fs_read", paths=paths) == "21 paths; give at most 20 in one call"
    assert refusal(app, "fs_read") == "no path is given; give path, or several paths"
    assert refusal(app, "fs_read", paths=["a", "a"], max_tokens=399) == "2 paths; give at most 1 in one call"


@pytest.mark.parametrize(("data", "kind", "mime"), [(PNG, "image", "image/png"), (WAV, "audio", "audio/wav")])
def test_pictures_and_sound_are_media(folder: Path, app: Server, data: bytes, kind: str, mime: str) -> None:
    (folder / "media").write_bytes(data)
    [block] = call(app, "fs_read", {"path": "media"})["content"]
    assert block == {"type": kind, "data": base64.b64encode(data).decode(), "mimeType": mime}
    (folder / "a").write_text("one")
    blocks = call(app, "fs_read", {"paths": ["a", "media", "a"]})["content"]
    assert [each["type"] for each in blocks] == ["text", kind, "text"]


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_a_picture_is_read_up_to_its_limit(folder: Path, app: Server, more: int) -> None:
    (folder / "p.png").write_bytes(PNG.ljust(reading.MEDIA_BYTES + more, b"\0"))
    answer = call(app, "fs_read", {"path": "p.png"})
    assert answer.get("isError", False) is (more > 0)
    if more > 0:
        assert "'p.png' is too large: image/png of 3,750,001 bytes, at most 3,750,000 are shown" in text(answer)


def test_pictures_that_do_not_fit_one_answer_are_named(folder: Path, app: Server) -> None:
    (folder / "p.png").write_bytes(PNG.ljust(reading.MEDIA_BYTES, b"\0"))
    (folder / "q.png").write_bytes(PNG)
    blocks = call(app, "fs_read", {"paths": ["p.png"] * 3 + ["q.png"]})["content"]
    assert [each["type"] for each in blocks] == ["text", "image", "text", "image", "text", "image", "text"]
    assert (
        blocks[-1]["text"].splitlines()[1].startswith("'q.png' is too large for this answer: it has 10 bytes, and all")
    )


def test_an_empty_file_says_so(folder: Path, app: Server) -> None:
    (folder / "a").write_text("")
    assert ask(app, "fs_read", path="a") == f"[hash {short('')}, empty]\n"


def test_another_binary_file_is_refused_with_its_type_and_size(folder: Path, app: Server) -> None:
    (folder / "a.zip").write_bytes(b"PK\3\4\0\0")
    assert refusal(app, "fs_read", path="a.zip").startswith("'a.zip' is no text but application/zip (6 bytes)")


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_a_file_beyond_max_file_size_is_read_in_parts_only(folder: Path, more: int) -> None:
    app = serve(max_file_size=1_000)
    (folder / "a").write_text("x" * (999 + more) + "\n")
    assert ("[hash" in ask(app, "fs_read", path="a", tail=1)) is (more <= 0)
    assert ("sha256" in ask(app, "fs_info", path="a")) is (more <= 0)
    assert (ask(app, "fs_search", pattern="x", output="files") == "a") is (more <= 0)
    edit = {"path": "a", "edits": [{"old": "x\n", "new": "y\n"}]}
    if more <= 0:
        ask(app, "fs_edit", **edit)
    else:
        assert "'a' is too large: 1,001 bytes, more than the limit of 1,000" in refusal(app, "fs_edit", **edit)


# -- writing


def test_a_file_is_written_with_the_folders_above_it(folder: Path, app: Server) -> None:
    assert ask(app, "fs_write", path="a/b/c", content="é\n") == "wrote a/b/c, 3 bytes, hash " + short("é\n")
    assert (folder / "a/b/c").read_bytes() == b"\xc3\xa9\n"
    ask(app, "fs_write", path="a/b/c", content="two")
    assert (folder / "a/b/c").read_text() == "two"


def test_create_does_not_overwrite(folder: Path, app: Server) -> None:
    ask(app, "fs_write", path="a", content="one", mode="create")
    assert refusal(app, "fs_write", path="a", content="two", mode="create").startswith("'a' exists already")
    assert (folder / "a").read_text() == "one"


def test_append_makes_or_lengthens_a_file(folder: Path, app: Server) -> None:
    ask(app, "fs_write", path="log", content="one\n", mode="append")
    words = ask(app, "fs_write", path="log", content="two\n", mode="append")
    assert words == "appended 4 bytes to log, now 8"
    ask(app, "fs_write", path="log", content="three", mode="append", expected_hash=short("one\ntwo\n"))
    assert (folder / "log").read_text() == "one\ntwo\nthree"
    (folder / "wide").write_bytes("\ufeffa".encode("utf-16-le"))
    ask(app, "fs_write", path="wide", content="é", mode="append")
    assert (folder / "wide").read_bytes() == "\ufeffaé".encode("utf-16-le")


@pytest.mark.parametrize("mode", ["overwrite", "append"])
def test_a_file_that_was_changed_is_not_written(folder: Path, app: Server, mode: str) -> None:
    (folder / "a").write_text("now")
    words = refusal(app, "fs_write", path="a", content="mine", mode=mode, expected_hash=short("before"))
    assert words.startswith("'a' was changed since you read it; read it again")
    assert (folder / "a").read_text() == "now"
    ask(app, "fs_write", path="a", content="mine", mode=mode, expected_hash=short("now"))
    assert (folder / "a").read_text() == ("mine" if mode == "overwrite" else "nowmine")


# -- editing


def test_an_edit_shows_its_diff_and_the_new_hash(folder: Path, app: Server) -> None:
    (folder / "a").write_bytes(b"one\r\ntwo\r\nthree\r\n")
    words = ask(app, "fs_edit", path="a", edits=[{"old": "two", "new": "2"}])
    after = b"one\r\n2\r\nthree\r\n"
    assert words == f"edited a: 1 replacement, hash {short(after.decode())}\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three"
    assert (folder / "a").read_bytes() == after


def test_a_dry_run_changes_nothing(folder: Path, app: Server) -> None:
    (folder / "a").write_text("one")
    words = ask(app, "fs_edit", path="a", edits=[{"old": "one", "new": "two"}], dry_run=True)
    assert words.startswith(f"would edit a: 1 replacement, hash {short('one')}\n@@ -1 +1 @@\n-one\n")
    assert (folder / "a").read_text() == "one"


def test_an_ambiguous_edit_names_the_lines(folder: Path, app: Server) -> None:
    (folder / "a").write_text("x\ny\nx\n")
    words = refusal(app, "fs_edit", path="a", edits=[{"old": "y", "new": "z"}, {"old": "x", "new": "z"}])
    assert words.startswith("'a': edit 2 of 2: old occurs 2 times, at lines 1, 3; nothing was changed; add lines")
    assert (folder / "a").read_text() == "x\ny\nx\n"
    ask(app, "fs_edit", path="a", edits=[{"old": "x", "new": "z", "replace_all": True}])
    assert (folder / "a").read_text() == "z\ny\nz\n"


def test_of_two_clients_that_edit_one_file_the_second_is_told(folder: Path, app: Server) -> None:
    (folder / "a").write_text("one two\n")

    async def talk(first: Client) -> list[str]:
        second = Client(app)
        await second.open()
        words = [text(await client.call_tool("fs_read", path="a")) for client in (first, second)]
        known = words[0][6 : 6 + HASH_CHARACTERS]
        for client, old in ((first, "one"), (second, "two")):
            edits = [{"old": old, "new": old.upper()}]
            words.append(text(await client.call_tool("fs_edit", path="a", edits=edits, expected_hash=known)))
        second.close()
        return words

    words = converse(app, talk)
    assert words[2].startswith("edited a: 1 replacement")
    assert words[3].startswith("'a' was changed since you read it; read it again")
    assert (folder / "a").read_text() == "ONE two\n"


def test_of_edits_at_the_same_moment_none_is_lost(folder: Path, app: Server) -> None:
    names = [f"n{number}" for number in range(20)]
    (folder / "a").write_text("".join(f"{name};\n" for name in names))

    async def talk(client: Client) -> list[dict[str, Any]]:
        ids = [
            client.send("tools/call", {"name": "fs_edit", "arguments": {"path": "a", "edits": [edit(name)]}})
            for name in names
        ]
        return [(await client.response(id))["result"] for id in ids]

    def edit(name: str) -> dict[str, str]:
        return {"old": f"{name};", "new": f"{name.upper()};"}

    answers = converse(app, talk)
    lines = (folder / "a").read_text().split(";\n")[:-1]
    for name, line, answer in zip(names, lines, answers, strict=True):
        assert line == (name if answer.get("isError") else name.upper()), text(answer)
        assert not answer.get("isError") or "was changed since you read it" in text(answer)
    assert not [name for name in os.listdir(folder) if name.startswith(DRAFT_PREFIX)]


# -- listing and searching


def test_a_folder_is_listed_as_a_tree(folder: Path, app: Server) -> None:
    make_tree(folder, {"src/a.py": "12", "src/b.js": "1", ".gitignore": "*.log\n", "x.log": "", ".env": "k=1"})
    assert ask(app, "fs_list") == ".gitignore 6\nsrc/\n a.py 2\n b.js 1\n[2 ignored or denied not shown]"
    assert ask(app, "fs_list", glob="*.py") == "src/\n a.py 2\n[2 ignored or denied not shown]"
    assert ask(app, "fs_list", path="src", sort="size") == "a.py 2\nb.js 1"
    assert "x.log 0" in ask(app, "fs_list", gitignore=False) and ".env" not in ask(app, "fs_list", gitignore=False)
    page = ask(app, "fs_list", limit=1)
    assert page == ".gitignore 6\n[… 1 more entries; cursor=.gitignore]"
    assert ask(app, "fs_list", cursor=".gitignore", depth=1).startswith("src/ 2 files, 3")


def test_what_is_ignored_above_a_folder_is_ignored_in_it(folder: Path, app: Server) -> None:
    make_tree(folder, {".gitignore": "*.log\n", "a/b/x.log": "x", "a/b/y": "x"})
    assert ask(app, "fs_list", path="a/b") == "y 1\n[1 ignored or denied not shown]"
    assert ask(app, "fs_search", path="a/b", pattern="x") == "a/b/y\n1:x"
    assert ask(app, "fs_search", path="a/b/x.log", pattern="x") == "a/b/x.log\n1:x"


def test_paths_of_a_search_can_be_read(folder: Path, app: Server) -> None:
    make_tree(folder, {"s/t/a.py": "one\nneedle\n", "s/b.js": "needle\n", "s/.env": "needle"})
    found = ask(app, "fs_search", pattern="n.*le", path="s", output="files")
    assert found == "s/b.js\ns/t/a.py"
    assert "needle" in ask(app, "fs_read", paths=found.split("\n"))
    assert (
        ask(app, "fs_search", pattern="NEEDLE", ignore_case=True, glob="*.py", context=1) == "s/t/a.py\n1-one\n2:needle"
    )
    assert ask(app, "fs_search", pattern="n.*le", literal=True) == "no matches in text files of up to 10M"
    assert ask(app, "fs_search", pattern="needle", output="count") == "s/b.js: 1\ns/t/a.py: 1"
    page = ask(app, "fs_search", pattern="needle", limit=1)
    cursor = page.rpartition("cursor=")[2].rstrip("]")
    assert ask(app, "fs_search", pattern="needle", cursor=cursor) == "s/t/a.py\n2:needle"


def test_paths_in_another_folder_than_the_first_are_absolute(folder: Path, tmp_path: Path) -> None:
    other = Path(os.path.realpath(tmp_path)) / "other"
    make_tree(other, {"s/a": "x"})
    app = serve()
    app.config = replace(DEFAULT, server=replace(DEFAULT.server, roots=[str(folder), str(other)]))
    assert ask(app, "fs_search", path=str(other), pattern="x") == f"{other}/s/a\n1:x"


def test_a_wrong_pattern_or_glob_is_explained(folder: Path, app: Server) -> None:
    assert "there is nothing before it to repeat" in refusal(app, "fs_search", pattern="*x")
    assert "a glob is empty" in refusal(app, "fs_search", pattern="x", glob="")
    assert "a glob is empty" in refusal(app, "fs_list", glob="")
    unreadable = "the glob '[' can't be read; give one such as *.py or src/**, and write \\[ for a bracket"
    assert refusal(app, "fs_list", glob="[") == refusal(app, "fs_search", pattern="x", glob="[") == unreadable
    make_tree(folder, {"src/a.py": "x\n", "[b": "x\n"})
    assert ask(app, "fs_list", glob="\\[b") == "[b 2"
    missed = {"path": "src", "glob": "src/*.py"}
    assert ask(app, "fs_list", **missed) == "[no file matches the glob, which starts at this folder]"
    assert (
        ask(app, "fs_search", pattern="x", **missed)
        == "no matches in text files of up to 10M; the glob starts at the searched folder"
    )
    assert refusal(app, "fs_search", pattern="x", path="[b", context=99).startswith("context=99; 0 to 20 lines")
    assert "depth=0; a folder is listed 1 to" in refusal(app, "fs_list", depth=0)


@pytest.mark.parametrize("tool", ["fs_list", "fs_search", "fs_move"])
def test_long_work_reports_that_it_goes_on(
    folder: Path, app: Server, monkeypatch: pytest.MonkeyPatch, tool: str
) -> None:
    monkeypatch.setattr("longshore.toolsets.filesystem.tools.PROGRESS_SECONDS", 0.0)
    make_tree(folder, {"s/a": "x"})
    arguments = {"fs_list": {}, "fs_search": {"pattern": "x"}, "fs_move": {"path": "s", "to": "t", "copy": True}}

    async def talk(client: Client) -> dict[str, Any]:
        params = {"name": tool, "arguments": arguments[tool]}
        await client.request("tools/call", params, {"progressToken": "p"})
        return await client.heard("notifications/progress")

    assert converse(app, talk)["params"]["progressToken"] == "p"


def test_a_cancelled_search_ends_its_process(folder: Path, app: Server) -> None:
    (folder / "line").write_text("a" * 1_000_000 + "b")

    def searching() -> list[str]:
        return [pid for pid in os.listdir("/proc") if pid.isdigit() and _is_search(pid)]

    async def talk(client: Client) -> None:
        arguments = {"pattern": r"(a+)+$(?<!c)"}
        id = client.send("tools/call", {"name": "fs_search", "arguments": arguments})
        await until(lambda: bool(searching()))
        client.notify("notifications/cancelled", {"requestId": id})
        await until(lambda: not searching())

    converse(app, talk)


def _is_search(pid: str) -> bool:
    """Whether a process is a search that this one has started."""
    try:
        parent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]
        return parent == str(os.getpid()) and b"search_worker" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


# -- moving and deleting


def test_files_and_folders_are_moved_and_copied(folder: Path, app: Server) -> None:
    make_tree(folder, {"a": "one", "s/b": "two"})
    assert ask(app, "fs_move", path="a", to="new/a") == "moved a to new/a"
    assert ask(app, "fs_move", path="s", to="t", copy=True) == "copied s to t"
    assert refusal(app, "fs_move", path="new/a", to="t/b").startswith("'t/b' exists already")
    ask(app, "fs_move", path="new/a", to="t/b", overwrite=True)
    assert {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()} == {"s/b", "t/b"}
    assert (folder / "t/b").read_text() == "one"


def test_what_is_deleted_can_be_restored(folder: Path, app: Server) -> None:
    make_tree(folder, {"s/a": "one", "s/t/b": "two"})
    words = ask(app, "fs_delete", path="s")
    assert not (folder / "s").exists()
    id = words.removeprefix("deleted s, 6 bytes; to undo it: restore=")
    assert f"{id} " in ask(app, "fs_delete") and f" {folder}/s 6" in ask(app, "fs_delete")
    assert ask(app, "fs_delete", restore=id) == f"restored {folder}/s"
    assert (folder / "s/t/b").read_text() == "two"
    assert "does not exist in the trash" in refusal(app, "fs_delete", restore=id)
    assert ask(app, "fs_delete") == "nothing"


def test_permanent_deletion_has_to_be_allowed(folder: Path, app: Server) -> None:
    make_tree(folder, {"s/a": "one"})
    assert "permanent is not allowed here" in refusal(app, "fs_delete", path="s", permanent=True)
    assert (folder / "s/a").exists()
    assert ask(serve(permanent_delete=True), "fs_delete", path="s", permanent=True) == "deleted s for ever"
    assert os.listdir(folder) == [] and ask(app, "fs_delete") == "nothing"


def test_without_a_home_there_is_no_trash(folder: Path, app: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "a").write_text("one")
    monkeypatch.setattr("longshore.toolsets.filesystem.tools.user_directory", lambda _: None)
    assert refusal(app, "fs_delete", path="a").startswith("there is no trash, because the user has no home")
    assert (folder / "a").exists()


@pytest.mark.parametrize("source", ["tree", "file"])
def test_a_cancelled_copy_leaves_nothing(folder: Path, app: Server, source: str) -> None:
    make_tree(folder, {f"tree/{number}": "x" for number in range(50)} | {"file": "x" * 3_000_000})
    files, calls = Filesystem(FilesystemOptions(), app).files_of(Roots((str(folder),))), list[int]()

    def check() -> None:
        calls.append(1)
        if len(calls) == 3:
            raise Cancelled("by the client")

    with pytest.raises(Cancelled):
        files.copy(source, "copied", check=check)
    assert sorted(os.listdir(folder)) == ["file", "tree"]


# -- facts and options


def test_the_facts_of_a_file_and_a_folder(folder: Path, app: Server) -> None:
    data = b"\xef\xbb\xbfone\r\ntwo\r\n"
    (folder / "a").write_bytes(data)
    os.utime(folder / "a", (0, 0))
    os.chmod(folder / "a", 0o640)
    assert ask(app, "fs_info", path="a") == (
        "text/plain, 13 bytes, -rw-r-----, modified 1970-01-01T00:00:00Z\n2 lines in utf-8 with BOM, CRLF line ends\n"
        f"sha256 {hash_bytes(data)}"
    )
    os.utime(folder, (0, 0))
    assert ask(app, "fs_info", path=".") == "folder, entries: 1, modified 1970-01-01T00:00:00Z"


def test_the_folders_and_limits(folder: Path) -> None:
    app = serve(max_file_size=2_000_000, read_only=[str(folder / "vendor")], deny=["*.pem"])
    first, *others = ask(app, "fs_info").split("\n")
    assert first.startswith(f"{folder}: ") and first.endswith(" free")
    assert others == [
        f"read-only: {folder}/vendor",
        "files beyond 2.0M are read in parts only (max_file_size)",
        "denied names: *.pem",
    ]


@pytest.mark.parametrize("name", [".env", ".env.local", "server.KEY", "id_rsa", ".ssh/config", ".aws/credentials"])
def test_names_that_hold_secrets_are_denied_unless_configured(folder: Path, app: Server, name: str) -> None:
    make_tree(folder, {name: "secret"})
    assert "the server's settings deny it" in refusal(app, "fs_read", path=name)
    assert "secret" in ask(serve(deny=[]), "fs_read", path=name)


def test_in_a_read_only_folder_nothing_is_changed(folder: Path) -> None:
    make_tree(folder, {"vendor/a": "one", "b": "two"})
    app = serve(read_only=[str(folder / "vendor")], permanent_delete=True)
    assert "one" in ask(app, "fs_read", path="vendor/a")
    for tool, arguments in (
        ("fs_write", {"path": "vendor/a", "content": "x"}),
        ("fs_write", {"path": "vendor/new", "content": "x", "mode": "append"}),
        ("fs_edit", {"path": "vendor/a", "edits": [{"old": "one", "new": "x"}]}),
        ("fs_move", {"path": "vendor/a", "to": "c"}),
        ("fs_move", {"path": "b", "to": "vendor/b"}),
        ("fs_delete", {"path": "vendor/a"}),
        ("fs_delete", {"path": "vendor", "permanent": True}),
    ):
        assert "read-only" in refusal(app, tool, **arguments)
    assert sorted(os.listdir(folder / "vendor")) == ["a"]


def test_a_folder_may_be_named_by_the_link_that_the_user_gave(folder: Path, tmp_path: Path) -> None:
    (folder / "a").write_text("one")
    link = Path(os.path.realpath(tmp_path)) / "link"
    link.symlink_to(folder)
    app = serve()
    app.config = replace(DEFAULT, server=replace(DEFAULT.server, roots=[str(link)]))
    assert ask(app, "fs_read", path=f"{link}/a") == ask(app, "fs_read", path=f"{folder}/a")


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_files_of_many_clients_are_cached_up_to_a_limit(folder: Path, more: int) -> None:
    toolset = Filesystem(FilesystemOptions(), Server("files"))
    first = toolset.files_of(Roots(("/0",)))
    for number in range(MOST_CACHED + more):
        toolset.files_of(Roots((f"/{number}",)))
    assert (toolset.files_of(Roots(("/0",))) is first) is (more <= 0)


def test_the_page_names_every_option_and_tool() -> None:
    page = (Path(__file__).parents[3] / "docs/files.md").read_text()
    block = page.partition("```toml\n")[2].partition("```")[0]
    assert set(tomllib.loads(block)["toolsets"]["filesystem"]) == set(FilesystemOptions.__struct_fields__)
    listed = [tool["name"] for tool in result(make(), "tools/list")["tools"] if tool["name"].startswith("fs_")]
    assert all(f"| `{name}` |" in page for name in listed)


# -- seed 001's tool


def test_the_coarse_tool_does_all_by_its_action(folder: Path, app: Server) -> None:
    def do(action: str, path: str = ".", **arguments: str) -> str:
        return ask(app, "filesystem", action=action, path=path, **arguments)

    assert do("mkdir", "s/t") == "made s/t" and do("mkdir", "s/t") == "s/t was there already"
    assert do("write", "s/a", content="one\n").startswith("wrote s/a, 4 bytes")
    assert do("append", "s/a", content="two\n").startswith("appended 4 bytes")
    assert do("read", "s/a") == "one\ntwo\n"
    assert do("list", "s") == "a 8\nt/"
    assert do("search", pattern="tw.") == "s/a\n2:two"
    assert do("copy", "s/a", to="b") == "copied s/a to b" and do("move", "b", to="c") == "moved b to c"
    assert do("info", "c").startswith("text/plain, 8 bytes")
    assert do("delete", "c").startswith("deleted c, 8 bytes; to undo it")
    assert sorted(os.listdir(folder)) == ["s"]


@pytest.mark.parametrize("over", [-1, 0, 1])
def test_the_coarse_tool_reads_writes_and_copies_files_up_to_the_limit(folder: Path, over: int) -> None:
    """seed 001's max_file_size."""
    app, size = serve(max_file_size=1000), 1000 + over
    (folder / "a").write_text("a" * size)
    (folder / "short").write_text("a" * 10)
    (folder / "s").mkdir()
    (folder / "s" / "a").write_text("a" * size)
    calls = {
        "read": {"path": "a"},
        "write": {"path": "short", "content": "b" * size},
        "append": {"path": "short", "content": "b" * (size - 10)},
        "copy": {"path": "a", "to": "b"},
    }
    for action, arguments in (*calls.items(), ("copy", {"path": "s", "to": "t"})):
        before = make_picture(folder)
        if over <= 0:
            ask(app, "filesystem", action=action, **arguments)
            (folder / "short").write_text("a" * 10)
        else:
            said = refusal(app, "filesystem", action=action, **arguments)
            assert f"{size:,} bytes, more than the limit of 1,000 (max_file_size)" in said
            assert make_picture(folder) == before


def make_picture(folder: Path) -> dict[str, str]:
    """Each file with its content."""
    return {str(path): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_the_coarse_tool_appends_nothing_to_a_new_file_over_the_limit(folder: Path) -> None:
    said = refusal(serve(max_file_size=3), "filesystem", action="append", path="new", content="four")
    assert said == (
        "'new' is too large: 4 bytes, more than the limit of 3 (max_file_size); append less, or ask the user to raise "
        "the limit"
    )
    assert os.listdir(folder) == []


def test_the_coarse_tool_reads_a_long_file_whole(folder: Path, app: Server) -> None:
    """Programs have no budget of tokens."""
    content = "".join(f"line {n} \u00e4\n" for n in range(50_000))
    (folder / "a").write_text(content)
    (folder / "b").write_bytes(b"\xef\xbb\xbfmarked\r\n")
    assert ask(app, "filesystem", action="read", path="a") == content
    assert ask(app, "filesystem", action="read", path="b") == "marked\r\n"


def test_the_coarse_tool_refuses_a_text_that_is_too_long_for_a_result(folder: Path, app: Server) -> None:
    """A file within max_file_size whose JSON is not within a frame."""
    (folder / "a").write_text('"' * 9_000_000)
    said = refusal(app, "filesystem", action="read", path="a")
    assert "bytes as JSON, and at most 16,773,120 fit (limits.frame_bytes); read it in parts with fs_read" in said


@pytest.mark.parametrize("action", ["list", "search"])
def test_the_coarse_tool_takes_the_cursor_that_its_answers_name(folder: Path, app: Server, action: str) -> None:
    for n in range(3000):
        (folder / f"{n}-{'x' * 20}").write_text("found\n")
    first = ask(app, "filesystem", action=action, pattern="found")
    cursor = first.rpartition("cursor=")[2].split()[0].strip("]'\";")
    assert ask(app, "filesystem", action=action, pattern="found", cursor=cursor) != first


def test_the_coarse_tool_is_in_no_list() -> None:
    assert "filesystem" not in [tool["name"] for tool in result(make(), "tools/list")["tools"]]


def test_an_action_says_what_it_lacks(folder: Path, app: Server) -> None:
    assert refusal(app, "filesystem", action="copy", path="a") == "copy needs `to`: the path of the copy"
    assert refusal(app, "filesystem", action="move", path="a") == "move needs `to`: the new path"
    assert refusal(app, "filesystem", action="search").startswith("the pattern is empty")


# -- budgets

_LINES = st.lists(st.text(st.characters(codec="utf-8"), max_size=300), max_size=60)
_BUDGETS = st.integers(LEAST_TOKENS, 700) | st.integers(LEAST_TOKENS, MOST_TOKENS)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=_LINES, max_tokens=_BUDGETS, data=st.data())
def test_no_answer_exceeds_its_budget(
    folder: Path, app: Server, lines: list[str], max_tokens: int, data: st.DataObject
) -> None:
    content = "\n".join(lines) + "\nold"
    for number in range(5):
        (folder / f"{'n' * 20}{number}").write_text(content, newline="")
    path = f"{'n' * 20}0"
    tool, arguments = data.draw(
        st.sampled_from(
            [
                ("fs_read", {"path": path}),
                ("fs_read", {"path": path, "tail": 30, "line_numbers": True}),
                ("fs_read", {"path": path, "byte_offset": 1}),
                ("fs_read", {"paths": [path, path, "missing"]}),
                ("fs_edit", {"path": path, "edits": [{"old": "\nold", "new": "\n" + "new\n" * 300}]}),
                ("fs_edit", {"path": path, "edits": [{"old": "old  ", "new": "new"}], "dry_run": True}),
                ("fs_edit", {"path": path, "edits": [{"old": f"{content[:5_000]}?", "new": "new"}]}),
                ("fs_read", {"path": "\u202e" * 1_000}),
                ("fs_list", {"path": "\u202e" * 1_000}),
                ("fs_search", {"pattern": "x", "path": "\u202e" * 1_000}),
                ("fs_search", {"pattern": "(" + "x" * 3_000}),
                ("fs_list", {"gitignore": False}),
                ("fs_search", {"pattern": "^", "context": 2}),
                ("fs_search", {"pattern": "", "output": "files"}),
            ]
        )
    )
    words = text(call(app, tool, {**arguments, "max_tokens": max_tokens}))
    assert count_tokens(words) <= max_tokens
