"""Attacks on the sandbox: ways around block lists, and the resources of the machine, by both mechanisms."""

from __future__ import annotations

import ctypes
import os
import subprocess
import tempfile
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.sandbox.confined_commands import BYPASSES, LIMITED, MECHANISMS, SECONDS, SECRET, Place, start
from tests.waiting import eventually

from longshore.sandbox.cgroups import CgroupParents
from longshore.sandbox.launch import Level, Limits
from longshore.sandbox.mechanisms import detect_host
from longshore.sandbox.rlimits import user_processes

both = pytest.mark.parametrize("mechanism", MECHANISMS)
limited = pytest.mark.parametrize(("level", "mechanism"), LIMITED)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path)
    (place.root / "sources").mkdir()
    (place.root / "sources" / "main.c").write_text("int main(void) { return 0; }")
    return place


@both
@pytest.mark.parametrize("bypass", BYPASSES)
def test_tm_2_no_way_around_a_block_list_changes_the_tree_in_read_only(
    place: Place, mechanism: str, bypass: str
) -> None:
    before, status = place.tree(), (place.root / "sources" / "main.c").stat()
    place.shell(place.sandbox("read-only", mechanism), BYPASSES[bypass])
    assert place.tree() == before and (place.root / "sources" / "main.c").stat().st_mode == status.st_mode


def test_the_ways_around_a_block_list_do_work_without_a_sandbox(place: Place) -> None:
    place.shell(place.sandbox("none"), BYPASSES["base64"])
    assert not (place.root / "sources").exists()


FORKS = """
import os, signal, sys
started = 0
try:
    while started < 100:  # a bound of its own, should the limit not hold
        if not os.fork():
            signal.pause()
        started += 1
except OSError as problem:
    print("refused", end=" ")
print(started)
"""


@limited
def test_tm_3_more_processes_than_the_limit_are_refused(place: Place, mechanism: str, level: Level) -> None:
    sandbox = place.sandbox(level, mechanism, Limits(processes=32))
    done = place.python(sandbox, FORKS)
    assert done.code == 0 and done.text.startswith("refused"), done
    assert 20 <= int(done.text.split()[1]) < 32


@pytest.mark.parametrize("processes", [15, 16, 17])
def test_exactly_as_many_processes_as_the_limit_run(place: Place, processes: int) -> None:
    """At the level of limits nothing but the command is in its cgroup: one process, and those that it starts."""
    done = place.python(place.sandbox("limits", limits=Limits(processes=processes)), FORKS)
    assert done.text.split() == ["refused", str(processes - 1)]


@both
def test_tm_3_a_fork_bomb_is_contained_and_gone_afterwards(place: Place, mechanism: str) -> None:
    """Its containment is shown above by programs with a bound of their own."""
    host = detect_host()
    assert isinstance(host.cgroups, CgroupParents)
    sandbox = place.sandbox("workspace", mechanism, Limits(processes=32))
    launch = place.launch(sandbox, "bash", "-c", "echo ready; bomb() { bomb | bomb & }; bomb; sleep 600")
    with launch, start(launch) as process:
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        eventually("the bomb fills its cgroup", lambda: count_refusals(host.cgroups) > 10)
        launch.kill(process.pid)
        process.communicate(timeout=SECONDS)  # until all that had the pipe are gone
    assert groups(host.cgroups) == []


def groups(parents: CgroupParents | str) -> list[str]:
    """The cgroups of this process's commands."""
    assert isinstance(parents, CgroupParents)
    folders = [Path(parent) for parent, _ in parents.folders]
    return [str(path) for folder in folders for path in folder.glob(f"longshore-{os.getpid()}-*")]


def count_refusals(parents: CgroupParents | str) -> int:
    for group in groups(parents):
        events = Path(group, "pids.events")
        if events.exists():
            return int(events.read_text().split()[1])
    return 0


@limited
def test_tm_3_memory_beyond_the_limit_is_refused(place: Place, mechanism: str, level: Level) -> None:
    sandbox = place.sandbox(level, mechanism, Limits(memory_bytes=128 << 20))
    assert "MemoryError" in place.python(sandbox, "x = bytearray(10**10)").text
    assert place.python(sandbox, "x = bytearray(10**7); print(len(x))") == (0, "10000000\n")


@limited
def test_tm_3_memory_of_all_processes_together_is_bounded(place: Place, mechanism: str, level: Level) -> None:
    source = """
import os, signal
children = []
for _ in range(4):  # each within the limit, together far beyond it
    children.append(os.fork())
    if not children[-1]:
        block = b"x" * (60 << 20)
        os.kill(os.getpid(), signal.SIGSTOP)  # and keeps the memory
    os.waitid(os.P_PID, children[-1], os.WSTOPPED | os.WEXITED | os.WNOWAIT)
killed = [os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG) for child in children]
print("killed" if any(killed) else "all live")
"""
    done = place.python(place.sandbox(level, mechanism, Limits(memory_bytes=128 << 20)), source)
    assert done.code == 137 or done.text == "killed\n", done


@limited
def test_tm_3_cpu_time_files_and_descriptors_are_bounded(place: Place, mechanism: str, level: Level) -> None:
    limits = Limits(cpu_seconds=1, file_bytes=1 << 20, open_files=64)
    sandbox = place.sandbox(level, mechanism, limits)
    assert place.shell(sandbox, "while :; do :; done").code == 137
    done = place.shell(sandbox, 'file="${TMPDIR:-/tmp}/longshore-yes"; yes > "$file"; wc -c "$file"; rm -f "$file"')
    assert str(1 << 20) in done.text.split(), done
    done = place.python(sandbox, "kept = []\nwhile len(kept) < 1000: kept.append(open('/dev/null'))")
    assert done.code == 1 and "Too many open files" in done.text
    assert place.python(sandbox, "import os; os.abort()").code == 134 and not list(place.root.glob("core*"))


def test_an_ordinary_user_is_bounded_without_cgroups() -> None:
    """Counted by RLIMIT_NPROC, which does not bind root. Those that run already are added to the limit."""
    user = 65534 if os.geteuid() == 0 else None
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        place = Place(Path(folder))
        place.root.chmod(0o777)
        host = replace(detect_host(), cgroups="switched off", is_root=False)
        sandbox = place.sandbox("workspace", host=host, limits=Limits(processes=16), read_paths=())
        most = user_processes(16) + 100
        count = f"i=0; while [ $i -lt {most} ]; do sleep 600 & i=$((i+1)); done; echo all"
        with place.launch(sandbox, "/bin/sh", "-c", count) as launch, start(launch, user=user) as process:
            text = process.communicate(timeout=SECONDS)[0].decode()
    assert "Cannot fork" in text and "all" not in text


@both
@pytest.mark.parametrize("level", ["read-only", "workspace", "workspace+net"])
def test_settings_of_the_kernel_can_not_be_written(place: Place, mechanism: str, level: Level) -> None:
    """By root they could be, even without capabilities: core_pattern runs a program outside of every sandbox."""
    source = """
import os
opened = []
for folder, _, names in os.walk("/proc/sys"):
    for name in names:
        try:
            os.close(os.open(os.path.join(folder, name), os.O_WRONLY))
        except OSError:
            continue
        opened.append(name)
print(os.path.exists("/proc/sys/kernel/core_pattern"), opened)
"""
    assert place.python(place.sandbox(level, mechanism), source) == (0, "True []\n")


@both
def test_the_servers_keyrings_are_out_of_reach(place: Place, mechanism: str) -> None:
    libc, numbers = ctypes.CDLL(None), {"x86_64": (248, 250), "aarch64": (217, 219)}[os.uname().machine]
    key = libc.syscall(numbers[0], b"user", b"longshore-test", SECRET.encode(), len(SECRET), -3)
    assert key > 0
    source = f"""
import ctypes
text = ctypes.create_string_buffer(100)
print(ctypes.CDLL(None).syscall({numbers[1]}, 11, {key}, text, 100), text.value)
"""
    try:
        assert place.python(place.sandbox("workspace", mechanism), source) == (0, "-1 b''\n")
        assert SECRET in place.python(place.sandbox("limits"), source).text
    finally:
        libc.syscall(numbers[1], 9, key, -3)


def test_no_namespace_can_be_made_within_bubblewrap(place: Place) -> None:
    done = place.shell(place.sandbox("workspace"), "unshare -U true || unshare -m true || unshare -n true")
    assert done.code != 0 and done.text.count("unshare failed") == 3


@pytest.mark.parametrize("level", ["workspace", "workspace+net"])
def test_dangerous_calls_are_refused_where_namespaces_are_missing(place: Place, level: Level) -> None:
    source = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def attempt(name, *arguments):
    outcome = getattr(libc, name)(*arguments)
    print(name, outcome if outcome >= 0 else os.strerror(ctypes.get_errno()))
attempt("mount", b"none", b".", b"tmpfs", 0, None)
attempt("unshare", 0x10000000)
attempt("ptrace", 16, os.getppid(), 0, 0)
attempt("chroot", b".")
attempt("prlimit64", os.getppid(), 0, None, (ctypes.c_uint64 * 2)())
attempt("syscall", 425, 8, None)
print(open("/proc/self/status").read().partition("CapEff:\\t")[2].split()[0])
"""
    lines = place.python(place.sandbox(level, "landlock"), source).text.splitlines()
    refused = "Operation not permitted"
    assert lines[:-1] == [
        f"{call} {refused}" for call in ("mount", "unshare", "ptrace", "chroot", "prlimit64", "syscall")
    ]
    assert int(lines[-1], 16) == 0


@pytest.mark.skipif(not os.path.exists("/usr/bin/python3"), reason="the system has no Python; install python3")
def test_an_ordinary_user_gets_read_only_mounts_and_keeps_its_number() -> None:
    user = 65534 if os.geteuid() == 0 else None
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        source = f"""
import os, sys
sys.path.insert(0, {os.fspath(Path(__file__).parents[2] / "src")!r})
from longshore.sandbox.mounts import keep_writable
os.mkdir("kept"), os.mkdir("other")
keep_writable([os.path.abspath("kept")])
open("kept/file", "w").close()
try:
    os.chmod("other", 0o777)
except OSError as problem:
    print(problem.strerror, os.getuid() == {os.getuid() if user is None else user})
"""
        done = subprocess.run(
            ["/usr/bin/python3", "-I", "-S", "-c", source],
            cwd=folder,
            user=user,
            group=user,
            extra_groups=None if user is None else [],
            capture_output=True,
            text=True,
        )
        assert (done.stdout, done.stderr) == ("Read-only file system True\n", "")
