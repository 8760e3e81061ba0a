"""No child process outlives `end_all`. Each test has a process of its own: it reaps all of its children."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

PREAMBLE = """
import os, signal, subprocess, sys
from longshore.sandbox.descendants import adopt, descendants, end_all

FOREVER = "import signal; print('ready', flush=True); signal.pause()"
DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True); signal.pause()"

STARTED = []  # or a Popen that is thrown away would reap its child

def start(source):
    child = subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE, start_new_session=True)
    STARTED.append(child)
    return child.pid, child.stdout.readline().decode().strip()

def is_there(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True

assert adopt()
"""


def lines_of(source: str, *argv: str) -> list[str]:
    """The output of the program. Where `end_all` must not wait, its grace is longer than this bound."""
    command = [sys.executable, "-W", "ignore::ResourceWarning", "-c", PREAMBLE + textwrap.dedent(source), *argv]
    done = subprocess.run(command, capture_output=True, text=True, timeout=50)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_without_children_end_all_returns_at_once() -> None:
    source = """
    looks = []
    sys.addaudithook(lambda event, args: looks.append(args[0]) if event in ("open", "os.listdir") else None)
    end_all(600)
    print(looks)
    """
    assert lines_of(source) == ["[]"]


def test_the_wait_ends_with_the_last_child() -> None:
    source = """
    pids = [start(FOREVER)[0] for _ in range(3)]
    end_all(600)
    print([is_there(pid) for pid in pids], descendants())
    """
    assert lines_of(source) == ["[False, False, False] []"]


def test_an_unreaped_child_is_not_waited_for() -> None:
    source = """
    pid, _ = start("print('ready')")
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    end_all(600)
    print(is_there(pid))
    """
    assert lines_of(source) == ["False"]


@pytest.mark.parametrize("orphan", [False, True])
def test_a_grandchild_that_ignores_sigterm_is_killed(orphan: bool) -> None:
    source = """
    orphan = sys.argv[1] == "orphan"
    middle = [
        "import signal, subprocess, sys",
        f"child = subprocess.Popen([sys.executable, '-c', {DEAF!r}], stdout=subprocess.PIPE, start_new_session=True)",
        "child.stdout.readline()",
        "print(child.pid, flush=True)",
        "" if orphan else "signal.pause()",
    ]
    child, said = start("\\n".join(middle))
    if orphan:
        os.waitpid(child, 0)
    print(is_there(int(said)))
    end_all(0.05)
    print(is_there(child), is_there(int(said)), descendants())
    """
    assert lines_of(source, "orphan" if orphan else "kept") == ["True", "False False []"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can leave /proc behind; run as root to see this test")
def test_without_proc_there_is_no_wait(tmp_path: Path) -> None:
    source = """
    pid, _ = start(FOREVER)
    os.chroot(sys.argv[1])
    end_all(600)
    print(is_there(pid))
    os.kill(pid, signal.SIGKILL)
    """
    assert lines_of(source, str(tmp_path)) == ["True"]
