"""Confined files: how paths are spelled, what each verb does, and what is refused by settings and limits."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from longshore.sandbox import trees
from longshore.sandbox.beneath import MOST_LINKS
from longshore.sandbox.confined import ConfinedFiles
from longshore.sandbox.drafts import lock_folder
from longshore.sandbox.file_errors import SHOWN_CHARACTERS, FileError
from longshore.sandbox.path_text import MOST_PARTS, MOST_PATH_BYTES, DeniedNames
from longshore.sandbox.roots import Roots
from longshore.sandbox.syscalls import rename_by_link
from longshore.sandbox.trees import DRAFT_PREFIX, MOST_DEPTH

from .confined_tree import VERBS, WAYS, confined, make_tree


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return make_tree(tmp_path)


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def files(base: Path, way: str) -> ConfinedFiles:
    return confined(base, way)


def read(files: ConfinedFiles, path: str) -> bytes:
    with files.open_file(path) as file:
        return file.read()


def kind(verb: str, files: ConfinedFiles, path: str) -> str:
    with pytest.raises(FileError) as caught:
        VERBS[verb](files, path)
    return caught.value.kind


def drafts(base: Path) -> list[str]:
    return [name for _, folders, names in os.walk(base) for name in [*folders, *names] if name.startswith(DRAFT_PREFIX)]


# -- how paths are spelled


@pytest.mark.parametrize(
    "path",
    [
        "sub/inner.txt",
        "./sub//./inner.txt",
        "{base}/allow/sub/inner.txt",
        "//{base}/allow/sub/inner.txt",
        "{base}/allow/../allow/sub/inner.txt",
        "{base}/outside/../allow/sub/inner.txt",
        "../allow/sub/inner.txt",
        "sub/deep/../inner.txt",
        "file://{base}/allow/sub/inner.txt",
        "FILE://localhost{base}/allow/sub/%69nner.txt",
        "in/inner.txt",
        "in/deep/../inner.txt",
        "abs_in/inner.txt",
        "round/inner.txt",
        "to_inner",
        "{base}/given/inner.txt",
        "~/inner.txt",
    ],
)
def test_the_spellings_of_a_path(base: Path, way: str, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (base / "given").symlink_to(base / "allow/sub")
    monkeypatch.setenv("HOME", str(base / "given"))
    files = confined(base, way, given=[f"{base}/given"])
    assert read(files, path.format(base=base)) == b"inner"
    assert files.real_path(path.format(base=base)) == f"{base}/allow/sub/inner.txt"


@pytest.mark.parametrize(
    "path", [".", "./", "", "sub/..", "in/..", "{base}/allow", "{base}/allow/", "file://{base}/allow"]
)
def test_the_spellings_of_the_root(base: Path, files: ConfinedFiles, path: str) -> None:
    if path:
        assert files.real_path(path.format(base=base)) == f"{base}/allow"
        assert "file.txt" in [entry.path for entry in files.list_folder(path.format(base=base))[0]]
    else:
        with pytest.raises(FileError, match=r'give "." for the first folder'):
            files.list_folder(path)


@pytest.mark.parametrize("path", ["sub/deep/..", "in/.", "sub/", "in/", "round"])
def test_a_folder_may_end_with_a_slash_or_dots(base: Path, files: ConfinedFiles, path: str) -> None:
    assert files.real_path(path) == f"{base}/allow/sub"
    assert files.status(path).kind == "folder"
    assert [entry.path for entry in files.list_folder(path)[0]] == ["deep", "inner.txt"]


@pytest.mark.parametrize("verb", ["read", "status", "write", "append", "copy_from", "move_from", "delete", "list"])
def test_a_file_does_not_end_with_a_slash(files: ConfinedFiles, verb: str) -> None:
    assert kind(verb, files, "file.txt/") == "not_a_folder"


def test_a_link_from_one_root_into_another_is_followed(base: Path, way: str) -> None:
    files = ConfinedFiles(Roots((f"{base}/allow", f"{base}/outside")), open_beneath=WAYS[way])
    assert (
        read(files, "l/sub/secret") == read(files, "rel/secret") == read(files, "to_secret") == b"secret of the outside"
    )
    assert files.real_path("l/sub/secret") == f"{base}/outside/sub/secret"


def test_an_error_names_the_path_as_given_the_problem_and_the_fix(base: Path, files: ConfinedFiles) -> None:
    with pytest.raises(FileError) as caught:
        files.open_file("rel/secret")
    error = caught.value
    assert (error.path, error.kind, error.fix) == ("rel/secret", "outside", "use a path within them")
    assert str(error) == (f"'rel/secret' is outside the folders that you may use: {base}/allow; use a path within them")


# -- reading


@pytest.mark.parametrize(
    ("verb", "path", "expected"),
    [
        ("read", "missing", "missing"),
        ("read", "missing/x", "missing"),
        ("read", "sub", "not_a_file"),
        ("read", ".", "not_a_file"),
        ("read", "file.txt/x", "not_a_folder"),
        ("read", "dangling", "missing"),
        ("list", "file.txt", "not_a_folder"),
        ("walk", "missing", "missing"),
        ("write", "missing/x", "missing"),
        ("write", "sub", "not_a_file"),
        ("write", ".", "not_a_file"),
        ("write_new", "file.txt", "exists"),
        ("append", "sub", "not_a_file"),
        ("make_folder", "file.txt", "not_a_folder"),
        ("delete", "missing", "missing"),
        ("delete", "sub", "not_empty"),
        ("delete_tree", ".", "root"),
        ("delete_tree", "sub/..", "root"),
        ("move_from", "missing", "missing"),
        ("move_from", ".", "root"),
        ("move_to", ".", "root"),
        ("move_to", "sub", "exists"),
        ("copy_to", "sub", "exists"),
        ("copy_from", "sub/missing", "missing"),
    ],
)
def test_what_a_path_is_not(files: ConfinedFiles, verb: str, path: str, expected: str) -> None:
    assert kind(verb, files, path) == expected


def test_a_walk_is_sorted_and_depth_first_and_follows_no_link(base: Path, files: ConfinedFiles) -> None:
    (base / "allow/sub/deep/last").mkdir()
    (base / "allow/sub/deep/back").symlink_to("..")
    assert [entry.path for entry in files.walk("sub")] == ["deep", "deep/back", "deep/last", "inner.txt"]


def test_a_walk_that_is_left_closes_its_descriptors(files: ConfinedFiles) -> None:
    before = os.listdir("/proc/self/fd")
    walk = files.walk("sub")
    entry = next(walk)
    assert entry.kind == "folder"
    walk.close()  # type: ignore[attr-defined]
    assert os.listdir("/proc/self/fd") == before


def test_no_verb_leaves_a_descriptor_open(base: Path, way: str) -> None:
    files = confined(base, way, deny=["*.pem"])
    before = opened_beneath(base)
    for verb in VERBS.values():
        for path in ("sub", "file.txt", "in/inner.txt", "l/secret", "loop", "missing/x", "a.pem", "round/../.."):
            try:
                verb(files, path)
            except FileError:
                continue
    assert opened_beneath(base) == before


def opened_beneath(folder: Path) -> list[str]:
    """What this process has open in a folder. Threads of other tests may open and close things elsewhere."""
    found = list[str]()
    for descriptor in os.listdir("/proc/self/fd"):
        try:
            found.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        except OSError:  # it was that of the listing
            continue
    return sorted(path for path in found if path.startswith(str(folder)))


# -- writing


def test_a_write_keeps_mode_and_owner(base: Path, files: ConfinedFiles) -> None:
    path = base / "allow/file.txt"
    path.chmod(0o640)
    if os.geteuid() == 0:
        os.chown(path, 1234, 4321)
    before = path.stat()
    entry = files.write("file.txt", b"new")
    after = path.stat()
    assert path.read_bytes() == b"new"
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)
    assert (entry.path, entry.status.st_ino, entry.status.st_size) == ("file.txt", after.st_ino, 3)


def test_a_new_file_has_the_mode_that_the_umask_leaves(base: Path, files: ConfinedFiles) -> None:
    old = os.umask(0o027)
    try:
        files.write("written", b"")
        files.append("appended", b"")
        files.make_folder("made")
    finally:
        os.umask(old)
    modes = [stat.S_IMODE((base / "allow" / name).stat().st_mode) for name in ("written", "appended", "made")]
    assert modes == [0o640, 0o640, 0o750]


def test_a_write_through_a_link_changes_its_target(base: Path, files: ConfinedFiles) -> None:
    files.write("to_inner", b"new")
    files.append("to_inner", b"er")
    files.write("dangling", b"made")
    assert (base / "allow/sub/inner.txt").read_bytes() == b"newer"
    assert (base / "allow/sub/new.txt").read_bytes() == b"made"
    assert (base / "allow/to_inner").is_symlink()


def test_a_write_that_fails_leaves_the_old_file_and_no_draft(base: Path, files: ConfinedFiles) -> None:
    def chunks() -> Iterator[bytes]:
        yield b"half"
        assert drafts(base)
        raise RuntimeError("the source broke")

    with pytest.raises(RuntimeError):
        files.write("file.txt", chunks())
    assert (base / "allow/file.txt").read_bytes() == b"file"
    assert drafts(base) == []


def test_drafts_are_in_no_list_and_stale_ones_are_deleted(base: Path, files: ConfinedFiles) -> None:
    (base / "allow" / (DRAFT_PREFIX + "killed")).write_bytes(b"half")
    (base / "allow" / (DRAFT_PREFIX + "tree")).mkdir()
    (base / "allow" / (DRAFT_PREFIX + "tree") / "x").write_bytes(b"half")

    def chunks() -> Iterator[bytes]:
        assert len(drafts(base)) == 1  # its own: the stale ones are deleted
        confined(base, "walk").write("other.txt", b"")
        assert len(drafts(base)) == 1  # another writer leaves it
        yield b"new"

    assert not [entry for entry in files.walk(".") if DRAFT_PREFIX in entry.path]
    files.write("file.txt", chunks())
    assert (base / "allow/file.txt").read_bytes() == b"new"
    assert drafts(base) == []


def test_the_second_of_two_writers_is_refused(base: Path, files: ConfinedFiles) -> None:
    known = sha256(b"file").hexdigest()

    def slow() -> Iterator[bytes]:
        yield b"mine"
        files.write("file.txt", b"theirs", expected_hash=known.upper())

    for data in (slow(), b"mine"):
        with pytest.raises(FileError, match="was changed since you read it; read it again"):
            files.write("file.txt", data, expected_hash=known)
    with pytest.raises(FileError, match="was changed"):
        files.write("missing.txt", b"", expected_hash=known)
    assert (base / "allow/file.txt").read_bytes() == b"theirs"
    assert drafts(base) == []


def test_a_folder_that_another_process_has_locked_is_busy(
    base: Path, files: ConfinedFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("longshore.sandbox.drafts.LOCK_SECONDS", 0.0)
    folder = os.open(base / "allow", os.O_RDONLY)
    try:
        with lock_folder(folder):
            assert kind("write", files, "file.txt") == kind("append", files, "file.txt") == "busy"
        files.append("file.txt", b"!")
    finally:
        os.close(folder)
    assert (base / "allow/file.txt").read_bytes() == b"file!"
    assert drafts(base) == []


def test_parents_are_made_when_told(base: Path, files: ConfinedFiles) -> None:
    files.write("a/b/c.txt", b"c", parents=True)
    files.append("in/d/e.txt", b"e", parents=True)
    files.copy("file.txt", "f/g.txt", parents=True)
    files.move("f/g.txt", "h/i.txt", parents=True)
    assert files.make_folder("a/b/x/y") and not files.make_folder("a/b/x/y/")
    assert (base / "allow/sub/d/e.txt").read_bytes() == b"e"
    assert (base / "allow/h/i.txt").read_bytes() == b"file"


# -- moving, copying, deleting


def test_nothing_is_overwritten_unless_told(base: Path, files: ConfinedFiles) -> None:
    files.write("other", b"other")
    for verb in (files.move, files.copy):
        for source, target in (("file.txt", "other"), ("file.txt", "sub"), ("sub", "other"), ("file.txt", "in")):
            with pytest.raises(FileError) as caught:
                verb(source, target)
            assert (caught.value.kind, caught.value.path) == ("exists", target)
    with pytest.raises(FileError, match=r"^'sub/' exists already as a folder; name the new path in it$"):
        files.move("file.txt", "sub/", overwrite=True)
    files.copy("file.txt", "other", overwrite=True)
    assert read(files, "other") == read(files, "file.txt") == b"file"
    files.write("file.txt", b"moved")
    files.move("file.txt", "other", overwrite=True)
    assert read(files, "other") == b"moved"
    assert not (base / "allow/file.txt").exists() and drafts(base) == []


@pytest.mark.parametrize("target", ["sub/deep/x", "sub/x", "in/x", "abs_in/deep/x"])
def test_a_folder_does_not_go_into_itself(files: ConfinedFiles, target: str) -> None:
    for verb in (files.move, files.copy):
        with pytest.raises(FileError) as caught:
            verb("sub", target)
        assert caught.value.kind == "into_itself"


def test_a_copied_folder_keeps_modes_and_links(base: Path, files: ConfinedFiles) -> None:
    (base / "allow/sub/inner.txt").chmod(0o751)
    (base / "allow/sub/deep").chmod(0o710)
    (base / "allow/sub/out").symlink_to("../../outside")
    files.copy("sub", "copied")
    copied = base / "allow/copied"
    assert stat.S_IMODE((copied / "inner.txt").stat().st_mode) == 0o751
    assert stat.S_IMODE((copied / "deep").stat().st_mode) == 0o710
    assert os.readlink(copied / "out") == "../../outside"
    os.mkfifo(base / "allow/sub/pipe")
    with pytest.raises(FileError):
        files.copy("sub", "again")
    assert not (base / "allow/again").exists() and drafts(base) == []


def test_a_move_between_two_confined_sets_of_files(base: Path, way: str, files: ConfinedFiles) -> None:
    (base / "trash").mkdir()
    trash = ConfinedFiles(Roots((f"{base}/trash",)), open_beneath=WAYS[way])
    files.move("sub", "1/sub", to=trash, parents=True)
    assert read(trash, "1/sub/inner.txt") == b"inner"
    trash.move("1/sub", "sub", to=files)
    assert read(files, "sub/inner.txt") == b"inner"
    with pytest.raises(FileError, match="outside"):
        files.move("sub", f"{base}/trash/sub")


def test_a_tree_is_deleted_without_what_its_links_point_to(base: Path, files: ConfinedFiles) -> None:
    (base / "allow/sub/deep/out").symlink_to(base / "outside")
    (base / "allow/sub/deep/in").symlink_to("../..")
    files.delete("sub", tree=True)
    files.delete("l")
    assert not (base / "allow/sub").exists() and not (base / "allow/l").is_symlink()
    assert (base / "outside/secret").exists() and (base / "allow/file.txt").exists()


def test_a_rename_by_link_does_not_overwrite(base: Path) -> None:
    folder = os.open(base / "allow", os.O_RDONLY)
    try:
        for source in ("file.txt", "sub"):
            with pytest.raises(FileExistsError):
                rename_by_link(source, "in", folder, folder)
            rename_by_link(source, f"{source}2", folder, folder)
    finally:
        os.close(folder)
    assert (base / "allow/file.txt2").read_bytes() == b"file" and (base / "allow/sub2").is_dir()


# -- settings

CHANGES = ["make_folder", "write", "write_new", "write_parents", "append", "copy_to", "move_from", "move_to", "delete"]


@pytest.mark.parametrize("verb", [*CHANGES, "delete_tree"])
@pytest.mark.parametrize("path", ["sub/name", "in/name", "{base}/allow/abs_in/name"])
def test_nothing_is_changed_in_a_read_only_folder(base: Path, way: str, verb: str, path: str) -> None:
    files = confined(base, way, read_only=[f"{base}/allow/sub"])
    assert kind(verb, files, path.format(base=base)) == "read_only"
    assert os.listdir(base / "allow/sub/deep") == []


@pytest.mark.parametrize("verb", ["move_from", "delete_tree"])
def test_a_folder_that_holds_a_read_only_one_stays(base: Path, way: str, verb: str) -> None:
    files = confined(base, way, read_only=[f"{base}/allow/sub/deep"])
    assert kind(verb, files, "sub") == "read_only"
    files.copy("sub", "copied")
    assert files.list_folder("sub/deep") == ([], False)


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(
    "path", [".env", "sub/.ENV", "sub/.env/x", "key.Pem", "in/a.pem", "link", ".git/objects/x", "sub/.git/Objects"]
)
def test_denied_names_are_refused_for_every_verb(base: Path, way: str, verb: str, path: str) -> None:
    (base / "allow/.env").write_bytes(b"key")
    (base / "allow/sub/.env").mkdir()
    (base / "allow/sub/.ENV").mkdir(exist_ok=True)
    (base / "allow/.git/objects").mkdir(parents=True)
    (base / "allow/sub/.git").mkdir()
    (base / "allow/link").symlink_to(".env")
    files = confined(base, way, deny=[".env", "*.pem", "**/.git/objects", ""])
    if path == "link" and verb in ("status_of_link", "move_from", "move_to", "delete", "delete_tree"):
        VERBS[verb](files, path)  # the link itself is not denied
    else:
        below_a_file = path in (".env", "link") and verb in ("make_folder", "write_parents")
        assert kind(verb, files, path) == ("not_a_folder" if below_a_file else "denied")
    assert (base / "allow/.env").read_bytes() == b"key"


def test_a_refused_name_leaves_no_folders(base: Path) -> None:
    files = ConfinedFiles(Roots((str(base / "allow"),)), deny=[".env"])
    for change in (
        lambda: files.write("new/deep/.env", b"", parents=True),
        lambda: files.append("new/deep/.env", b"", parents=True),
        lambda: files.move("file.txt", "new/.env", parents=True),
        lambda: files.make_folder("new/deep/.env"),
    ):
        with pytest.raises(FileError, match=r"may not be used: the server's settings deny it; do without it"):
            change()
        assert not (base / "allow/new").exists()


def test_denied_names_are_in_no_list_and_hold_their_folder(base: Path, way: str) -> None:
    (base / "allow/sub/.env").write_bytes(b"key")
    files = confined(base, way, deny=[".env", "sub/deep"])
    assert [entry.path for entry in files.list_folder("sub")[0]] == ["inner.txt"]
    assert [entry.path for entry in files.walk("sub")] == ["inner.txt"]
    for verb in ("move_from", "copy_from", "delete_tree"):
        assert kind(verb, files, "sub") == "denied"


def test_an_open_folder_knows_where_it_is(base: Path, files: ConfinedFiles) -> None:
    with files.open_folder("in/deep") as folder:
        assert os.path.samestat(os.fstat(folder.descriptor), os.stat(base / "allow/sub/deep"))
        assert folder[1:] == (f"{base}/allow/sub/deep", f"{base}/allow", "sub/deep")
    with files.open_folder(".") as folder:
        assert folder[1:] == (f"{base}/allow", f"{base}/allow", "")


@pytest.mark.parametrize(
    ("glob", "path", "denied"),
    [
        (".env", ".env", True),
        (".env", "a/.env/b", True),
        (".env", ".environment", False),
        (".env*", ".env.local", True),
        ("id_*", "home/.ssh/ID_RSA", True),
        ("a/b", "x/a/b/y", True),
        ("a/b", "a/x/b", False),
        ("a*b", "a/b", False),
        ("straße", "STRASSE", True),
        ("é", "e\u0301", True),
        ("[ab].txt", "b.txt", True),
    ],
)
def test_how_globs_match(glob: str, path: str, denied: bool) -> None:
    assert DeniedNames([glob]).match(path) is denied


# -- limits


@pytest.mark.parametrize(("most", "fits"), [(3, False), (4, True), (5, True)])
def test_a_file_above_the_size_limit_is_refused(files: ConfinedFiles, most: int, fits: bool) -> None:
    if fits:
        files.open_file("file.txt", most).close()
    else:
        with pytest.raises(FileError, match="too large: 4 bytes, more than the limit of 3"):
            files.open_file("file.txt", most)


@pytest.mark.parametrize(("size", "expected"), [(-1, "missing"), (0, "missing"), (1, "bad_path")])
def test_a_path_has_at_most_its_limit_of_bytes(files: ConfinedFiles, size: int, expected: str) -> None:
    path = "/".join(["n" * 99] * 40) + "/" + "n" * (MOST_PATH_BYTES + size - 4000)
    assert len(path) == MOST_PATH_BYTES + size
    assert kind("read", files, path) == expected


@pytest.mark.parametrize(("more", "expected"), [(-1, "missing"), (0, "missing"), (1, "bad_path")])
def test_a_path_has_at_most_its_limit_of_parts(files: ConfinedFiles, more: int, expected: str) -> None:
    assert kind("read", files, "/".join(["n"] * (MOST_PARTS + more))) == expected


@pytest.mark.parametrize("place", ["{}", "{}/inner.txt"])
@pytest.mark.parametrize(("more", "reached"), [(-1, True), (0, True), (1, False)])
def test_a_path_goes_through_at_most_its_limit_of_links(
    base: Path, files: ConfinedFiles, place: str, more: int, reached: bool
) -> None:
    links = MOST_LINKS + more - (place == "{}")  # at the end, the file itself takes a turn as well
    target = "sub/inner.txt" if place == "{}" else "sub"
    for number in range(links):
        (base / f"allow/n{number}").symlink_to(f"n{number - 1}" if number else target)
    path = place.format(f"n{links - 1}")
    if reached:
        assert read(files, path) == b"inner"
    else:
        assert kind("read", files, path) == "link_loop"


@pytest.mark.parametrize(("most", "names", "more"), [(1, 1, True), (2, 2, False), (3, 2, False)])
def test_a_list_has_at_most_its_limit_of_entries(files: ConfinedFiles, most: int, names: int, more: bool) -> None:
    entries, left_out = files.list_folder("sub", most)
    assert (len(entries), left_out) == (names, more)


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_trees_are_walked_copied_and_deleted_to_their_depth(base: Path, files: ConfinedFiles, more: int) -> None:
    deep = MOST_DEPTH + more
    files.make_folder("/".join(["top"] + ["d"] * (deep - 1)))
    assert len(list(files.walk("top"))) == min(deep, MOST_DEPTH + 1) - 1
    if more <= 0:
        files.copy("top", "copied")
        files.delete("copied", tree=True)
        files.delete("top", tree=True)
    else:
        assert kind("copy_from", files, "top") == kind("delete_tree", files, "top") == "too_large"
        with pytest.raises(FileError, match=r"^'top' is too large: folders are nested more than 128 deep in it"):
            files.copy("top", "copied")
        assert drafts(base) == []


def test_a_long_path_is_cut_in_a_message(files: ConfinedFiles) -> None:
    for length, cut in ((SHOWN_CHARACTERS - 1, False), (SHOWN_CHARACTERS, False), (SHOWN_CHARACTERS + 1, True)):
        with pytest.raises(FileError) as caught:
            files.open_file("n" * length)
        assert ("n" * length not in str(caught.value)) is cut


def test_a_folder_with_too_many_entries_is_not_copied_in_part(
    base: Path, files: ConfinedFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trees.read_entries, "__defaults__", (1,))
    assert kind("copy_from", files, "sub") == "too_large"
    assert not (base / "allow/copied").exists() and drafts(base) == []
