"""A search ends with its time limit or its caller, and leaves no process behind; a race never leads it outside."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from itertools import count
from pathlib import Path

import pytest
from tests.services import skip

from longshore.errors import Cancelled, ToolError
from longshore.sandbox import descendants, landlock
from longshore.toolsets.filesystem.search import Engine, SearchQuery, search

from .test_search import need_ripgrep
from .trees import make_tree, opened

CATASTROPHE = r"(a+)+\1$"


@pytest.fixture
def slow(tmp_path: Path) -> Path:
    make_tree(tmp_path, {"a": "a" * 60 + "b\n"})
    return tmp_path


def left_over(before: list[int]) -> list[int]:
    """Processes that this one has started since, ended or not."""
    return sorted(set(descendants.children(os.getpid())) - set(before))


def test_a_catastrophic_pattern_is_killed_at_the_time_limit(slow: Path) -> None:
    before = descendants.children(os.getpid())
    with opened(slow) as folder, pytest.raises(ToolError, match=r"longer than 0\.3 s; narrow it by path or glob"):
        search(folder, SearchQuery(pattern=CATASTROPHE), seconds=0.3)
    assert left_over(before) == []


def test_a_cancelled_search_is_killed(slow: Path) -> None:
    before = descendants.children(os.getpid())
    calls = count()

    def check() -> None:
        if next(calls) == 3:
            assert len(left_over(before)) == 1
            raise Cancelled("cancelled")

    with opened(slow) as folder, pytest.raises(Cancelled):
        search(folder, SearchQuery(pattern=CATASTROPHE), check=check)
    assert left_over(before) == []


@pytest.mark.parametrize("engine", ["own", "ripgrep"])
def test_a_search_cancelled_at_once_leaves_nothing(slow: Path, engine: Engine) -> None:
    if engine == "ripgrep":
        need_ripgrep()
    before, opened_before = descendants.children(os.getpid()), len(os.listdir("/proc/self/fd"))

    def check() -> None:
        raise Cancelled("cancelled")

    with opened(slow) as folder, pytest.raises(Cancelled):
        search(folder, SearchQuery(pattern="a"), check=check, engine=engine)
    assert left_over(before) == []
    assert len(os.listdir("/proc/self/fd")) == opened_before


def test_what_the_caller_raises_is_no_reason_to_search_again(slow: Path) -> None:
    calls = count()

    def check() -> None:
        if next(calls) == 0:
            raise TimeoutError("the call's own deadline")

    with opened(slow) as folder, pytest.raises(TimeoutError, match="own deadline"):
        search(folder, SearchQuery(pattern="a"), check=check)
    assert next(calls) == 1


def test_a_ripgrep_that_does_not_start_is_replaced_by_our_own(slow: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longshore.toolsets.filesystem.search.find_ripgrep", lambda *_: "/nonexistent/rg")
    with opened(slow) as folder:
        assert search(folder, SearchQuery(pattern="a", output="files")).text == "a"


def test_the_worker_of_a_killed_server_ends_by_itself(slow: Path) -> None:
    program = (
        "import os, sys, threading, signal\n"
        "from longshore.sandbox.descendants import children\n"
        "from longshore.toolsets.filesystem.search import SearchQuery, search\n"
        "def check():\n"
        "    if found := children(os.getpid()):\n"
        "        print(found[0], flush=True)\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "folder = os.open(sys.argv[1], os.O_RDONLY)\n"
        f"search(folder, SearchQuery(pattern={CATASTROPHE!r}), seconds=1, check=check)\n"
    )
    outcome = subprocess.run([sys.executable, "-c", program, slow], capture_output=True, text=True, timeout=60)
    worker = int(outcome.stdout)
    try:
        descriptor = os.pidfd_open(worker)
    except ProcessLookupError:
        return
    import select

    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    assert poll.poll(30_000), "the worker still runs"
    os.close(descriptor)


@pytest.mark.parametrize("engine", ["own", "ripgrep"])
def test_a_file_that_becomes_a_link_never_leads_outside(tmp_path: Path, engine: Engine) -> None:
    if engine == "ripgrep":
        need_ripgrep()
    make_tree(tmp_path, {"secret/file": "SECRET\n", "in/f": "plain\n", "in/d/file": "plain\n"})
    stop = threading.Event()

    def flip() -> None:
        while not stop.is_set():
            for name, target, plain in (("f", "../secret/file", "in/g"), ("d", "../secret", "in/e")):
                (tmp_path / "in/link").symlink_to(target)
                os.rename(tmp_path / "in" / name, tmp_path / plain)
                os.rename(tmp_path / "in/link", tmp_path / "in" / name)
                os.unlink(tmp_path / "in" / name)
                os.rename(tmp_path / plain, tmp_path / "in" / name)

    flipper = threading.Thread(target=flip)
    flipper.start()
    try:
        with opened(tmp_path / "in") as folder:
            for _ in range(20):
                found = search(folder, SearchQuery(pattern="SECRET|plain"), engine=engine)
                assert "SECRET" not in found.text
    finally:
        stop.set()
        flipper.join()


def test_a_confined_process_reads_its_folder_only(tmp_path: Path) -> None:
    if not landlock.is_available():
        skip("the kernel has no landlock", by_kernel=True)
    make_tree(tmp_path, {"in/a": "inside", "out/b": "outside"})
    (tmp_path / "in/link").symlink_to("../out/b")
    program = os.path.realpath("/bin/cat")

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen([program, "a", "link", "../out/b"], stdout=-1, stderr=-1, cwd=tmp_path / "in")

    with opened(tmp_path / "in") as folder:
        output, errors = landlock.start_reading_only(start, program, [folder]).communicate(timeout=30)
    assert output == b"inside"
    assert errors.count(b"Permission denied") == 2
    assert (tmp_path / "out/b").read_text() == "outside"  # this process itself is not confined
