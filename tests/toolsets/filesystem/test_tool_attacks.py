"""No verb of the file tools leaves the server's folders: the known attacks on file servers, by their ids."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path
from typing import cast

import pytest
from msgspec.structs import replace
from tests.sandbox.confined_tree import SECRET, make_tree, snapshot
from tests.sandbox.test_confined_attacks import ESCAPES, SWAPS, Swapper

from longshore import Server
from longshore.config import DEFAULT
from longshore.sandbox.confined import ConfinedFiles
from longshore.sandbox.roots import Roots
from longshore.toolsets.filesystem.search import search
from longshore.toolsets.filesystem.trash import Trash
from talk import Client, converse, text

from .file_server import FOLLOWING, VERBS, ask, refusal, serve

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="directory descriptors are POSIX")


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that holds the root `allow`, and beside it what nobody may reach."""
    base = make_tree(tmp_path)
    monkeypatch.chdir(base / "allow")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path.parent / f"{tmp_path.name}-data"))
    return base


@pytest.fixture
def app() -> Server:
    return serve(permanent_delete=True)


@pytest.mark.parametrize("verb", VERBS)
def test_no_verb_leaves_the_folders(base: Path, app: Server, verb: str) -> None:
    before = snapshot(base)
    for attack, path in ESCAPES.items():
        tool, arguments = VERBS[verb](path.format(base=base))
        words = refusal(app, tool, **arguments)
        assert words.count(f"outside the folders that you may use: {base}/allow") == 1, attack
        assert SECRET.decode() not in words
    assert snapshot(base) == before


@pytest.mark.parametrize("verb", FOLLOWING)
def test_fs_2_a_link_at_the_end_is_not_followed_out(base: Path, app: Server, verb: str) -> None:
    before = snapshot(base)
    for link in ("l", "rel", "chain1", "newdir", "to_secret", "abs_secret", "etc", "up"):
        tool, arguments = FOLLOWING[verb](link)
        words = refusal(app, tool, **arguments)
        assert "outside the folders that you may use" in words
        assert "outside/secret" not in words and "passwd" not in words
    assert snapshot(base) == before


def test_fs_2_several_paths_are_refused_one_by_one(base: Path, app: Server) -> None:
    words = ask(app, "fs_read", paths=["file.txt", "l/secret", "../secret"])
    assert words.count("outside the folders") == 2 and "\nfile" in words and SECRET.decode() not in words


@pytest.mark.parametrize("glob", ["../outside/*", "/etc/*", "l/*", "**"])
def test_fs_2_a_glob_does_not_lead_out(base: Path, app: Server, glob: str) -> None:
    for tool in ("fs_list", "fs_search"):
        words = ask(app, tool, glob=glob, **({"pattern": "."} if tool == "fs_search" else {}))
        assert SECRET.decode() not in words and "outside/secret:" not in words


def test_fs_2_nothing_is_restored_to_the_outside(base: Path, app: Server) -> None:
    before = snapshot(base)
    id = ask(app, "fs_delete", path="file.txt").rpartition("=")[2]
    for path in ("../file.txt", "l/file.txt", f"{base}/outside/file.txt"):
        assert "outside the folders" in refusal(app, "fs_delete", restore=id, path=path)
    assert snapshot(base) == before
    assert ask(app, "fs_delete", restore=id) == f"restored {base}/allow/file.txt"


def test_fs_2_what_was_deleted_elsewhere_is_not_restored_or_listed(base: Path, app: Server) -> None:
    trash = Trash(f"{os.environ['XDG_DATA_HOME']}/longshore/trash", most_bytes=1000, most_days=1)
    entry = trash.put(ConfinedFiles(Roots((f"{base}/outside",))), "secret")
    assert ask(app, "fs_delete") == "nothing"
    assert "does not exist in the trash" in refusal(app, "fs_delete", restore=entry.id, path="mine")


@pytest.mark.parametrize("verb", ["move from", "move to", "delete", "delete for ever", "coarse move", "coarse delete"])
def test_fs_2_verbs_on_a_link_leave_its_target_alone(base: Path, app: Server, verb: str) -> None:
    before = snapshot(base)
    tool, arguments = VERBS[verb]("l")
    ask(app, tool, **arguments)
    assert not (base / "allow/l").is_symlink()
    assert snapshot(base) == before


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="swaps by renameat2")
@pytest.mark.parametrize("verb", VERBS)
def test_fs_3_a_folder_that_is_swapped_for_a_link_lets_nothing_out(base: Path, app: Server, verb: str) -> None:
    inside = base / "allow/swap"
    inside.mkdir()
    (base / "outside/f").write_bytes(SECRET)
    (base / "allow/spare").symlink_to(base / "outside")
    before = snapshot(base)
    folder = os.open(inside, os.O_RDONLY)
    tool, arguments = VERBS[verb](
        "swap" if verb in ("list", "coarse list", "coarse mkdir", "write below") else "swap/f"
    )

    async def attack(client: Client) -> list[str]:
        words = list[str]()
        with Swapper(inside, base / "allow/spare") as swapper:
            # A search starts a process, which takes a hundred times as long as anything else.
            least = 10 if "search" in verb else SWAPS // 20
            while swapper.swaps < SWAPS or len(words) < least:
                for file, at in (("f", folder), (str(base / "allow/file.txt"), None)):
                    os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, dir_fd=at))
                words.append(text(await client.call_tool(tool, **arguments)))
        return words

    try:
        words = converse(app, attack)
    finally:
        os.close(folder)
    assert not [each for each in words if SECRET.decode() in each]
    assert snapshot(base) == before


def test_fs_4_a_hard_link_is_a_file_of_the_folder(base: Path, app: Server) -> None:
    os.link(base / "secret", base / "allow/hard")
    ask(app, "fs_write", path="hard", content="new")
    assert (base / "secret").read_bytes() == SECRET


def test_fs_4_no_folders_are_made_behind_a_dangling_link(base: Path, app: Server) -> None:
    assert "outside" in refusal(app, "fs_write", path="newdir/a/b", content="x")
    assert not (base / "outside/missing").exists()


@pytest.mark.parametrize("kind", ["fifo", "socket"])
@pytest.mark.parametrize("verb", [verb for verb in FOLLOWING if "mkdir" not in verb])
def test_fs_5_pipes_and_sockets_are_refused_without_waiting(base: Path, app: Server, verb: str, kind: str) -> None:
    if kind == "fifo":
        os.mkfifo("it")
    else:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind("it")
    tool, arguments = FOLLOWING[verb]("it")
    words = refusal(app, tool, **arguments)
    assert any(each in words for each in ("is no ordinary file", "is not a folder", "exists already"))


def test_fs_5_pipes_are_named_and_not_searched(base: Path, app: Server) -> None:
    os.mkfifo("sub/pipe")
    assert "pipe (special)" in ask(app, "fs_list", path="sub")
    assert ask(app, "fs_search", path="sub", pattern=".") == "sub/inner.txt\n1:inner"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc is Linux")
@pytest.mark.parametrize("verb", VERBS)
def test_fs_5_files_of_the_kernel_are_refused(
    base: Path, app: Server, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    monkeypatch.setenv("LONGSHORE_TEST_SECRET", "in the environment")
    app.config = replace(DEFAULT, server=replace(DEFAULT.server, roots=["/"]))
    for path in ("/proc/self/environ", f"/proc/{os.getpid()}/environ", "/proc/self/root/proc/1/environ", "/sys/kernel"):
        tool, arguments = VERBS[verb](path)
        if verb in ("copy to", "move to"):
            arguments["path"] = str(base / "allow/file.txt")
        words = refusal(app, tool, **arguments)
        assert "in the environment" not in words
        assert any(each in words for each in ("is no ordinary file", "symbolic links", "a part of the path is a file"))


def test_fs_5_a_folder_is_no_file_and_a_file_no_folder(base: Path, app: Server) -> None:
    for verb in ("read", "write", "append", "edit"):
        tool, arguments = VERBS[verb]("sub")
        assert "'sub' is a folder, not a file" in refusal(app, tool, **arguments)
    assert "'file.txt' is not a folder" in refusal(app, "fs_list", path="file.txt")


def test_fs_5_a_huge_sparse_file_is_read_in_parts_only(base: Path, app: Server) -> None:
    with open("huge", "wb") as file:
        file.write(b"first\n")
        file.truncate(100_000_000_000)
    for verb in ("write known", "edit", "search"):
        tool, arguments = VERBS[verb]("huge")
        assert "is too large" in refusal(app, tool, **arguments)
    assert "is no text but application/octet-stream (100,000,000,000 bytes)" in refusal(app, "fs_read", path="huge")
    assert "100,000,000,000 bytes" in ask(app, "fs_info", path="huge")


NAMES = {
    "NUL": ("a\0b", "control character"),
    "newline": ("a\nb", "control character"),
    "escape": ("a\x1b[2J", "control character"),
    "name of 256 bytes": ("n" * 256, "is no usable path"),
    "path of 4,096 bytes": ("/".join(["n" * 99] * 41), "is no usable path"),
    "empty": ("", "it is empty"),
}


@pytest.mark.parametrize("verb", VERBS)
def test_fs_6_impossible_names_are_refused(base: Path, app: Server, verb: str) -> None:
    for path, expected in NAMES.values():
        if not path and ("below" in verb or "mkdir" in verb):
            continue  # they add to the path
        tool, arguments = VERBS[verb](path)
        words = refusal(app, tool, **arguments)
        assert expected in words and words.isprintable()


@pytest.mark.parametrize(
    "name", ["n" * 255, "\u202egnp.exe", "CON", "dot.", " space ", "é", "e\u0301", "🙂", "'", '"', "\\", "$HOME", "*"]
)
def test_fs_6_unusual_names_are_taken_as_they_are(base: Path, app: Server, name: str) -> None:
    ask(app, "fs_write", path=f"sub/{name}", content="content")
    assert (base / "allow/sub" / name).read_text() == "content"
    assert ask(app, "fs_read", path=f"sub/{name}").endswith("\ncontent")
    ask(app, "fs_edit", path=f"sub/{name}", edits=[{"old": "content", "new": "text"}])
    assert "1:text" in ask(app, "fs_search", path=f"sub/{name}", pattern="text")
    ask(app, "fs_move", path=f"sub/{name}", to=name)
    id = ask(app, "fs_delete", path=name).rpartition("=")[2]
    ask(app, "fs_delete", restore=id, path=f"sub/{name}")
    assert (base / "allow/sub" / name).read_text() == "text"


def test_fs_6_a_name_that_is_no_text_is_reached_by_its_uri(base: Path, app: Server) -> None:
    Path(os.fsdecode(os.fsencode(base / "allow") + b"/a\xff")).write_text("content")
    assert r"a\xff" in ask(app, "fs_list")
    assert ask(app, "fs_read", path=f"file://{base}/allow/a%FF").endswith("content")


@pytest.mark.parametrize("name", ["-rf", "--output=x", "--pre=touch made", "-e"])
def test_fs_8_names_that_look_like_options_are_names(base: Path, app: Server, name: str) -> None:
    ask(app, "fs_write", path=name, content="needle")
    assert ask(app, "fs_search", path=name, pattern="needle") == f"{name}\n1:needle"
    assert ask(app, "fs_search", path=".", pattern="needle", glob=name) == f"{name}\n1:needle"
    assert "no matches" in ask(app, "fs_search", path="sub", pattern=name, literal=True)
    assert sorted(os.listdir()) == sorted([*os.listdir(base / "allow")]) and not (base / "allow/made").exists()


def test_fs_9_a_search_that_takes_forever_is_ended(base: Path, app: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(cast("dict[str, float]", search.__kwdefaults__), "seconds", 0.3)
    (base / "allow/line").write_text("a" * 1_000_000 + "b")
    words = refusal(app, "fs_search", pattern=r"(a+)+$(?<!c)", path="line")  # a look behind: not for ripgrep
    assert words.startswith("the search took longer than 0.3 s; narrow it")


def test_fs_9_a_folder_of_many_files_is_bounded(base: Path, app: Server) -> None:
    for number in range(3_000):
        os.close(os.open(f"sub/{number}", os.O_WRONLY | os.O_CREAT))
    words = ask(app, "fs_list", path="sub", glob="**/*")
    assert "more entries; cursor=" in words and len(words) < 4 * 4_000
