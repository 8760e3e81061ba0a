"""The protocol's own descriptors: moved away, unblocked without touching anyone else's, grown where that can be."""

from __future__ import annotations

import fcntl
import os
import pty
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from longshore.transports.descriptors import LARGE_PIPE_BYTES, grow, never_blocks, unblock

CLAIMING = """
import os, sys
print("buffered before")
from longshore.transports.descriptors import claim
reader, writer = claim()
print("printed after")
sys.stdout.flush()
os.write(1, b"written after\\n")
os.write(writer, os.read(reader, 100))
assert os.read(0, 100) == b""
assert not os.get_inheritable(reader) and not os.get_inheritable(writer)
assert min(reader, writer) > 2
"""


def test_claiming_moves_stdin_and_stdout_and_leaves_stderr_in_their_place() -> None:
    env = {**os.environ, "PYTHONUNBUFFERED": ""}
    done = subprocess.run(
        [sys.executable, "-c", CLAIMING], input=b"frame\n", capture_output=True, timeout=20, check=True, env=env
    )
    assert done.stdout == b"frame\n"
    assert done.stderr == b"buffered before\nprinted after\nwritten after\n"


def test_claiming_works_where_stdout_is_closed_to_python() -> None:
    program = "import sys; sys.stdout = None; from longshore.transports.descriptors import claim; claim()"
    subprocess.run([sys.executable, "-c", program], stdin=subprocess.DEVNULL, timeout=20, check=True)


@pytest.mark.parametrize("closed", ["<&-", ">&-"])
@pytest.mark.parametrize("program", ["-m longshore serve", "-c 'from longshore import Server; Server(\"t\").run()'"])
def test_a_process_without_stdin_or_stdout_says_what_to_do(closed: str, program: str) -> None:
    command = f"{sys.executable} {program} {closed}"
    done = subprocess.run(["sh", "-c", command], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=20)
    assert done.returncode == 2
    [line] = done.stderr.decode().splitlines()
    assert line.startswith("stdio: the standard input or output is closed; ") and "--http" in line


def is_blocking(fd: int) -> bool:
    return not fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_NONBLOCK


def test_a_pipe_is_opened_anew_so_that_whoever_shares_it_still_blocks() -> None:
    reader, writer = os.pipe()
    ours = unblock(writer)
    assert not is_blocking(ours)
    assert is_blocking(writer)
    os.write(ours, b"x")
    assert os.read(reader, 1) == b"x"
    for fd in {reader, writer, ours}:
        os.close(fd)


def test_a_socket_is_taken_as_it_is() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert unblock(ours.fileno()) == ours.fileno()
        assert not is_blocking(ours.fileno())
        assert is_blocking(theirs.fileno())


def test_a_terminal_and_a_file_stay_blocking(tmp_path: Path) -> None:
    main, terminal = pty.openpty()
    file = os.open(tmp_path / "out", os.O_WRONLY | os.O_CREAT)
    try:
        assert unblock(terminal) == terminal
        assert unblock(file) == file
        assert is_blocking(terminal)
        assert is_blocking(file)
        assert never_blocks(file)
        assert not never_blocks(terminal)
    finally:
        for fd in (main, terminal, file):
            os.close(fd)


def test_a_pipe_is_grown_and_anything_else_is_left_alone(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    file = os.open(tmp_path / "out", os.O_WRONLY | os.O_CREAT)
    try:
        grow(writer)
        if sys.platform == "linux":
            assert fcntl.fcntl(writer, 1032) in (LARGE_PIPE_BYTES, 1 << 16)  # an unprivileged user may be refused
        grow(file)
    finally:
        for fd in (reader, writer, file):
            os.close(fd)
