"""No verb leaves the roots: the known attacks on file servers, for every verb, by the kernel and by the walk."""

from __future__ import annotations

import ctypes
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counts import SOAK, count
from longshore.sandbox.confined import ConfinedFiles
from longshore.sandbox.file_errors import FileError
from longshore.sandbox.roots import Roots
from longshore.sandbox.trees import Entry

from .confined_tree import FOLLOWING, SECRET, VERBS, WAYS, confined, make_tree, snapshot

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="directory descriptors are POSIX")


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return make_tree(tmp_path)


def refuse(files: ConfinedFiles, verb: str, path: str) -> FileError:
    with pytest.raises(FileError) as caught:
        VERBS[verb](files, path)
    assert caught.value.path.startswith(path)  # verbs that make folders add to it
    return caught.value


ESCAPES = {
    "FS-1 prefix": "{base}/allow_evil/secret",
    "FS-1 dots": "{base}/allow/../allow_evil/secret",
    "FS-1 slashes": "{base}/allow//../secret",
    "FS-1 relative": "../allow_evil/secret",
    "FS-1 deep": "sub/deep/../../../outside/secret",
    "FS-1 far": "../../../../../../../../etc/passwd",
    "FS-1 uri": "file://{base}/allow/%2e%2e/secret",
    "FS-1 home": "~/secret",
    "FS-1 folder above": "..",
    "FS-1 top": "/",
    "FS-1 sibling": "{base}/outside",
    "FS-2 absolute link": "l/secret",
    "FS-2 etc": "etc/passwd",
    "FS-2 relative link": "rel/secret",
    "FS-2 folder in link": "rel/sub/secret",
    "FS-2 chain of three": "chain1/secret",
    "FS-2 up": "up/secret",
    "FS-2 up and in": "up/outside/secret",
    "FS-2 link then dots": "in/../../outside/secret",
    "FS-2 missing behind a link": "l/nothing/here",
    "FS-4 new name behind a link": "l/new",
    "FS-4 dangling": "newdir/f",
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("attack", ESCAPES)
def test_no_verb_leaves_the_root(base: Path, way: str, verb: str, attack: str) -> None:
    before = snapshot(base)
    error = refuse(confined(base, way), verb, ESCAPES[attack].format(base=base))
    assert error.kind == "outside"
    assert str(error).count(f"outside the folders that you may use: {base}/allow") == 1
    assert SECRET.decode() not in str(error)
    assert snapshot(base) == before


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("verb", FOLLOWING)
@pytest.mark.parametrize("link", ["l", "rel", "chain1", "newdir", "to_secret", "abs_secret", "etc", "up"])
def test_a_link_at_the_end_is_not_followed_out(base: Path, way: str, verb: str, link: str) -> None:
    before = snapshot(base)
    error = refuse(confined(base, way), verb, link)
    assert error.kind == "outside"
    assert "outside/secret" not in str(error) and "passwd" not in str(error)
    assert snapshot(base) == before


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("link", ["l", "newdir", "to_secret", "etc"])
def test_verbs_on_a_link_itself_leave_its_target_alone(base: Path, way: str, link: str) -> None:
    before = snapshot(base)
    files = confined(base, way)
    assert files.status(link, follow=False).kind == "link"
    files.move(link, "sub/moved")
    assert (base / "allow/sub/moved").is_symlink()
    files.copy("sub", "copied")
    assert (base / "allow/copied/moved").is_symlink()
    files.delete("copied", tree=True)
    files.move("file.txt", "sub/moved", overwrite=True)
    assert (base / "allow/sub/moved").read_bytes() == b"file"
    assert snapshot(base) == before


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("path", ["loop/x", "loop/../file.txt"])
def test_a_loop_of_links_ends(base: Path, way: str, verb: str, path: str) -> None:
    assert refuse(confined(base, way), verb, path).kind == "link_loop"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("verb", VERBS)
def test_a_root_that_was_replaced_by_a_link_is_not_entered(base: Path, way: str, verb: str) -> None:
    (base / "allow").rename(base / "was")
    (base / "allow").symlink_to(base / "outside")
    (base / "outside/file.txt").write_bytes(SECRET)
    before = snapshot(base / "outside")
    error = refuse(confined(base, way), verb, "file.txt")
    assert error.kind == "missing" and f"{base}/allow can't be opened" in str(error)
    assert snapshot(base / "outside") == before


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("verb", VERBS)
def test_without_roots_nothing_can_be_reached(way: str, verb: str) -> None:
    files = ConfinedFiles(Roots((), "no home"), open_beneath=WAYS[way])
    error = refuse(files, verb, "file.txt")
    assert error.kind == "outside" and "no home" in str(error)


@pytest.mark.parametrize("way", WAYS)
def test_a_hard_link_is_a_file_of_the_root(base: Path, way: str) -> None:
    os.link(base / "secret", base / "allow/hard")
    files = confined(base, way)
    files.write("hard", b"new")  # replaces the name in the root
    assert (base / "secret").read_bytes() == SECRET


# -- FS-5: special files

SPECIAL_VERBS = ["read", "read_cached", "write", "append", "copy_from", "copy_to", "write_parents", "list", "walk"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("verb", SPECIAL_VERBS)
@pytest.mark.parametrize("kind", ["fifo", "socket"])
def test_pipes_and_sockets_are_refused_without_waiting(base: Path, way: str, verb: str, kind: str) -> None:
    if kind == "fifo":
        os.mkfifo(base / "allow/it")
    else:
        listener = socket.socket(socket.AF_UNIX)
        folder = os.open(base / "allow", os.O_RDONLY)
        listener.bind(f"/proc/self/fd/{folder}/it")  # a socket's path has at most 107 bytes
        os.close(folder)
        listener.close()
    expected = "not_a_folder" if verb in ("list", "walk", "write_parents") else "special"
    assert refuse(confined(base, way), verb, "it").kind == expected


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("verb", ["read", "read_cached", "write", "append", "copy_from"])
@pytest.mark.parametrize("path", ["/dev/zero", "/dev/null", "/dev/tty"])
def test_devices_are_refused(base: Path, way: str, verb: str, path: str) -> None:
    files = ConfinedFiles(Roots(("/",)), open_beneath=WAYS[way])
    assert refuse(files, verb, path).kind == "special"


@pytest.mark.skipif(not os.path.exists("/proc/self/environ"), reason="needs /proc")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb not in ("move_to", "copy_to")])
@pytest.mark.parametrize(
    ("path", "kinds"),
    [
        ("/proc/self/environ", {"special"}),
        ("/proc/{pid}/environ", {"special"}),
        ("/proc/self/root/etc/passwd", {"link_loop"}),
        ("/proc/self/fd/0", {"special", "link_loop"}),
        ("/proc/self/exe", {"special", "link_loop"}),
        ("/proc/self/cwd/x", {"link_loop"}),
    ],
)
def test_files_of_the_kernel_and_magic_links_are_refused(way: str, verb: str, path: str, kinds: set[str]) -> None:
    # With "/" as the root nothing is outside of it.
    files = ConfinedFiles(Roots(("/",)), open_beneath=WAYS[way])
    with pytest.raises(FileError) as caught:
        VERBS[verb](files, path.format(pid=os.getpid()))
    assert caught.value.kind in kinds | ({"not_a_folder"} if verb in ("make_folder", "write_parents") else set())


@pytest.mark.parametrize("way", WAYS)
def test_a_sparse_file_is_refused_by_its_size(base: Path, way: str) -> None:
    with open(base / "allow/sparse", "wb") as file:
        file.truncate(100 << 30)
    with pytest.raises(FileError, match=r"too large: 107,374,182,400 bytes, more than the limit of 10,000,000"):
        confined(base, way).open_file("sparse", most=10_000_000)


# -- FS-6: names


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(
    "path", ["a\0b", "a\nb", "\x1b[2J", "\x7f", "\ud800", "", "file://elsewhere/x", "file:///a%00"]
)
def test_names_that_no_path_may_have(base: Path, way: str, verb: str, path: str) -> None:
    if not path and verb in ("make_folder", "write_parents"):
        path = "\0"  # these verbs add to the path
    error = refuse(confined(base, way), verb, path)
    assert error.kind == "bad_path"
    assert not any(ord(character) < 32 for character in str(error))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "name", ["n" * 255, "\udcff", "a\u202eb", "CON", "dot.", " ", "-rf", "~", "é", "e\u0301", "a\\b"]
)
def test_other_names_come_back_exactly(base: Path, way: str, name: str) -> None:
    files = confined(base, way)
    files.write(f"./{name}", b"content")
    assert name in [entry.path for entry in files.list_folder(".")[0]]
    with files.open_file(f"{base}/allow/{name}") as file:
        assert file.read() == b"content"
    files.move(f"./{name}", "plain")
    files.delete("plain")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("verb", VERBS)
def test_a_name_of_256_bytes_is_refused(base: Path, way: str, verb: str) -> None:
    assert refuse(confined(base, way), verb, "n" * 256 + "/x").kind == "bad_path"


# -- both ways

NAMES = [
    "sub",
    "deep",
    "file.txt",
    "inner.txt",
    "missing",
    "..",
    ".",
    "",
    "~",
    "in",
    "abs_in",
    "round",
    "up",
    "rel",
    "l",
]
NAMES += ["loop", "chain1", "to_inner", "newdir", "dangling", "allow", "outside", "secret", "made"]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tree(tmp_path_factory.mktemp("both"))


@settings(max_examples=count(300), deadline=None)
@given(
    prefix=st.sampled_from(["", "{base}/", "{base}/allow/", "file://{base}/allow/", "/", "//"]),
    names=st.lists(st.sampled_from(NAMES) | st.text(max_size=3), max_size=7),
)
def test_both_ways_agree_on_every_path(shared: Path, prefix: str, names: list[str]) -> None:
    path = prefix.format(base=shared) + "/".join(names)
    verbs = ["read", "read_cached", "status", "status_of_link", "real_path", "list", "walk"]
    assert [_outcome(shared, "kernel", verb, path) for verb in verbs] == [
        _outcome(shared, "walk", verb, path) for verb in verbs
    ]


def _outcome(base: Path, way: str, verb: str, path: str) -> str:
    try:
        result = VERBS[verb](confined(base, way), path)
    except FileError as error:
        return str(error)
    assert SECRET.decode() not in repr(result)
    if verb == "real_path":
        assert os.path.commonpath([str(result), str(base / "allow")]) == str(base / "allow")
    entries = [result] if isinstance(result, Entry) else result[0] if isinstance(result, tuple) else []
    if entries:  # without the times: reading changes them
        return repr([(entry.path, entry.kind, entry.status.st_ino, entry.status.st_size) for entry in entries])
    return repr(result)


CHANGED = ["file.txt", "in/inner.txt", "sub/deep", "sub", "new", "new/x", "abs_in/made", "round/x", "l/x", "dangling"]
CHANGED += ["to_inner", "copied", "moved", "sub/../new", "loop", "up/allow/file.txt", "to_secret"]


@settings(max_examples=count(40), deadline=None)
@given(steps=st.lists(st.tuples(st.sampled_from(sorted(VERBS)), st.sampled_from(CHANGED)), max_size=8))
def test_both_ways_make_the_same_changes(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, str]]
) -> None:
    seen = list[object]()
    for way in WAYS:
        base = make_tree(tmp_path_factory.mktemp("changes"))
        before = snapshot(base)
        kinds = [_kind(base, way, verb, path) for verb, path in steps]
        assert snapshot(base) == before
        held = confined(base, way).walk(".")
        tree = [(entry.path, entry.status.st_mode, entry.status.st_nlink) for entry in held]
        seen.append(
            (kinds, tree, [path.read_bytes() for path in sorted((base / "allow").rglob("*")) if path.is_file()])
        )
    assert seen[0] == seen[1]


def _kind(base: Path, way: str, verb: str, path: str) -> str:
    try:
        VERBS[verb](confined(base, way), path)
    except FileError as error:
        return error.kind
    return ""


WITHOUT_OPENAT2 = """
import ctypes, struct, sys
# A seccomp filter: openat2 (437) fails with EPERM, everything else is allowed.
program = b"".join(struct.pack("HBBI", *line) for line in [
    (0x20, 0, 0, 0), (0x15, 0, 1, 437), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7FFF0000)])
code = ctypes.create_string_buffer(program)
class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_void_p)]
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(Program(4, ctypes.addressof(code))), 0, 0) == 0
from longshore.sandbox.confined import ConfinedFiles
from longshore.sandbox.file_errors import FileError
from longshore.sandbox.roots import Roots
from longshore.sandbox.syscalls import has_openat2
assert not has_openat2()
files = ConfinedFiles(Roots((sys.argv[1],)))
files.write("in/new.txt", b"by the walk")
print(files.open_file("sub/new.txt").read().decode())
for path in ("l/secret", "../secret", "chain1/secret"):
    try:
        files.open_file(path)
    except FileError as error:
        print(error.kind)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="seccomp is Linux")
def test_where_seccomp_forbids_openat2_the_walk_is_used(base: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-c", WITHOUT_OPENAT2, str(base / "allow")], capture_output=True, text=True, timeout=60
    )
    assert run.stdout.split("\n")[:-1] == ["by the walk", "outside", "outside", "outside"], run.stderr


# -- FS-3: races

SWAPS = count(2_000) * (1 if SOAK == 1 else 5)  # 200,000 in `make soak`
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2


class Swapper:
    """Exchanges a folder and a link to the outside, as fast as it can, for as long as the `with` block runs."""

    def __init__(self, one: Path, other: Path) -> None:
        self._paths = os.fsencode(one), os.fsencode(other)
        self._thread = threading.Thread(target=self._run)
        self._stop = threading.Event()
        self.swaps = 0

    def _run(self) -> None:
        libc = ctypes.CDLL(None)
        while not self._stop.is_set():
            assert libc.renameat2(_AT_FDCWD, self._paths[0], _AT_FDCWD, self._paths[1], _RENAME_EXCHANGE) == 0
            self.swaps += 1

    def __enter__(self) -> Swapper:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(60)


def race(base: Path, files: ConfinedFiles, verb: str) -> list[object]:
    """Run a verb on `swap/f` while `swap` is swapped. Returns what it returned or raised."""
    inside = base / "allow/swap"
    inside.mkdir()
    (base / "outside/f").write_bytes(SECRET)
    (base / "allow/spare").symlink_to(base / "outside")
    folder = os.open(inside, os.O_RDONLY)
    results = list[object]()
    path = "swap" if verb in ("list", "walk", "make_folder", "write_parents") else "swap/f"
    try:
        with Swapper(inside, base / "allow/spare") as swapper:
            while swapper.swaps < SWAPS or len(results) < SWAPS // 4:
                for file, at in (("f", folder), (str(base / "allow/file.txt"), None)):
                    os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, dir_fd=at))
                try:
                    results.append(VERBS[verb](files, path))
                except FileError as error:
                    results.append(error)
    finally:
        os.close(folder)
    return results


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="swaps by renameat2")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("verb", VERBS)
def test_a_folder_that_is_swapped_for_a_link_lets_nothing_out(base: Path, way: str, verb: str) -> None:
    (base / "outside/f").write_bytes(SECRET)
    before = snapshot(base)
    results = race(base, confined(base, way), verb)
    assert snapshot(base) == before
    for result in results:
        if isinstance(result, FileError):
            continue
        assert result != SECRET
        assert verb not in ("status", "status_of_link") or result.status.st_size == 0  # type: ignore[attr-defined]
        assert "secret" not in repr(result)
    for copied in ("copied", "moved"):
        assert not (base / "allow" / copied).exists() or (base / "allow" / copied).read_bytes() != SECRET


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="swaps by renameat2")
def test_the_race_shows_what_a_careless_opener_lets_out(base: Path) -> None:
    def careless(root: int, root_path: str, relative: str) -> tuple[int, str]:
        path = os.path.join(root_path, relative)
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY), path

    files = ConfinedFiles(Roots((str(base / "allow"),)), open_beneath=careless)
    assert SECRET in race(base, files, "read")
