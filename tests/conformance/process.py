"""The fixture server and the suite as processes, far from anybody's configuration. Every wait is bounded."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SERVER = Path(__file__).with_name("server.py")
READY_SECONDS = 30.0
STOP_SECONDS = 10.0


class ServerFailed(Exception):
    """The server did not start, did not stay or did not end."""


def environment(home: str) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("LONGSHORE_")}
    return kept | {"HOME": home, "XDG_CONFIG_HOME": home}


@contextmanager
def served(log: Path, dialect: str = "") -> Iterator[str]:
    """The address of a running fixture server, which writes to `log` and speaks a dialect beside MCP."""
    with tempfile.TemporaryDirectory() as folder, log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, str(SERVER), "--port", "0"],
            cwd=folder,
            env=environment(folder) | ({"LONGSHORE_SERVER_DIALECT": dialect} if dialect else {}),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
        )
        try:
            yield wait_for_address(process, log)
            if process.poll() is not None:
                raise ServerFailed(f"the fixture server ended by itself\n{log.read_text()}")
        finally:
            stop(process, log)


def wait_for_address(process: subprocess.Popen[bytes], log: Path) -> str:
    """Where it says that it serves."""
    until = time.monotonic() + READY_SECONDS
    while time.monotonic() < until and process.poll() is None:
        found = re.search(r" serves MCP at (http://\S+) ", log.read_text())
        if found:
            return found[1]
        time.sleep(0.05)
    raise ServerFailed(f"the fixture server did not start\n{log.read_text()}")


def stop(process: subprocess.Popen[bytes], log: Path) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(STOP_SECONDS)
        raise ServerFailed(f"the fixture server did not end within {STOP_SECONDS} s\n{log.read_text()}") from None


def finish(argv: list[str], log: Path, seconds: float) -> int:
    """Run a program to its end, or end it, with whatever it started. Its exit code."""
    with tempfile.TemporaryDirectory() as home, log.open("wb") as out:
        process = subprocess.Popen(
            argv, env=environment(home), stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
        )
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            return -signal.SIGKILL
        finally:
            end_group(process)


def end_group(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # nothing was left behind
    process.wait(STOP_SECONDS)
