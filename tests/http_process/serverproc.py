"""`longshore serve --http` as a real process: started on a free port, watched, and gone when the block ends.

with start(SOURCE, "--workers", "2") as server:
    server.send("POST", body=b"{…}").finish()     # a request on a connection of its own, see tests/serving.py
    server.stop(SIGTERM)                          # the exit code

A trace on stderr fails the test, and so does a process that has to be killed.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from signal import SIGKILL, SIGTERM

from serving import Connection, Exchange, Pairs
from waiting import PATIENCE, eventually, is_alive

LONGSHORE = (sys.executable, "-m", "longshore")
_ADDRESS = re.compile(r" serves MCP at (https?://(.+):(\d+)/\S*)")
_TOKEN = re.compile(r"Bearer ([\w-]{20,})")


def children(pid: int) -> list[int]:
    """The processes that a process has started and that still run."""
    found: list[int] = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += [int(child) for child in path.read_text().split() if is_alive(int(child))]
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


class ServerProcess:
    """A process that serves, or was meant to."""

    def __init__(self, argv: tuple[str, ...], folder: Path, env: dict[str, str]) -> None:
        self.folder = folder
        self._errors = folder / f"stderr-{time.monotonic_ns()}.txt"
        with self._errors.open("wb") as errors:
            self.process = subprocess.Popen(
                argv, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors
            )
        self._open: list[Connection] = []
        self._known: set[int] = set()

    # -- what it says

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def stderr(self) -> str:
        return self._errors.read_text(errors="replace")

    @property
    def address(self) -> re.Match[str] | None:
        return _ADDRESS.search(self.stderr)

    @property
    def url(self) -> str:
        assert self.address, self.stderr
        return self.address[1]

    @property
    def port(self) -> int:
        assert self.address, self.stderr
        return int(self.address[3])

    @property
    def token(self) -> str:
        """The token of this start, as it was printed."""
        found = _TOKEN.search(self.stderr)
        assert found, self.stderr
        return found[1]

    @property
    def workers(self) -> list[int]:
        return children(self.pid)

    def wait_until_up(self) -> None:
        def up() -> bool:
            code = self.process.poll()
            assert code is None, f"it ended with {code} before it served:\n{self.stderr}"
            return self.address is not None

        eventually("the server's address", up)
        self._known = {self.pid, *self.workers}

    # -- requests

    def connect(self) -> Connection:
        connection = Connection(self.port)
        self._open.append(connection)
        return connection

    def send(self, method: str, path: str = "/mcp", headers: Pairs = (), body: bytes | None = None) -> Exchange:
        """A request on a connection of its own."""
        return self.connect().send(method, path, headers, body)

    # -- ending

    def kill(self, signum: int = SIGTERM) -> None:
        os.kill(self.pid, signum)

    def wait(self, patience: float = PATIENCE) -> int:
        """The exit code."""
        try:
            return self.process.wait(patience)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the server still runs after {patience:g} s\n{self.stderr[-2000:]}") from None

    def stop(self, signum: int = SIGTERM) -> int:
        self.kill(signum)
        return self.wait()

    def close(self) -> None:
        """End it, whatever state it is in."""
        for connection in self._open:
            connection.close()
        family = {*self._known, *self.workers, self.pid}
        try:
            if self.process.poll() is None:
                self.stop()
        finally:
            for pid in family:
                if self._is_ours(pid):
                    os.kill(pid, SIGKILL)
            self.process.wait(PATIENCE)

    def _is_ours(self, pid: int) -> bool:
        """Whether a process was started here: a number may have come to stand for another one."""
        try:
            return is_alive(pid) and str(self.folder).encode() in Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            return False


def environment(folder: Path, **more: str) -> dict[str, str]:
    """This process's, without what would configure the server."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("LONGSHORE_")}
    for name in ("XDG_CONFIG_HOME", "PYTHONUNBUFFERED"):
        env.pop(name, None)
    home = {"HOME": str(folder / "home"), "XDG_STATE_HOME": str(folder / "state"), "TMPDIR": str(folder / "tmp")}
    (folder / "tmp").mkdir(exist_ok=True)
    return env | home | {"PYTHONWARNINGS": "error", "PYTHONPATH": ""} | more


def launch(
    folder: Path,
    target: str | None,
    *flags: str,
    config: str = "",
    env: dict[str, str] | None = None,
    argv: tuple[str, ...] | None = None,
) -> ServerProcess:
    """Start a server in a folder, without waiting for it. `target` is a path or the source of one; None: built in."""
    (folder / ".git").mkdir(exist_ok=True)  # the search for longshore.toml ends here
    if config:
        (folder / "longshore.toml").write_text(textwrap.dedent(config))
    if target is not None and "\n" in target:
        path = folder / "server.py"
        path.write_text(textwrap.dedent(target))
        target = str(path)
    named = () if target is None else (target,)
    port = () if "--port" in flags else ("--port", "0")
    command = argv if argv is not None else (*LONGSHORE, "serve", *named, "--http", *port, *flags)
    return ServerProcess(command, folder, environment(folder, **(env or {})))


@contextmanager
def start(
    target: str | None,
    *flags: str,
    config: str = "",
    env: dict[str, str] | None = None,
    folder: Path | None = None,
    argv: tuple[str, ...] | None = None,
) -> Iterator[ServerProcess]:
    """A server that is up. Its folder is a temporary one unless it is given."""
    with tempfile.TemporaryDirectory() as made:
        server = launch(folder or Path(made), target, *flags, config=config, env=env, argv=argv)
        try:
            server.wait_until_up()
            yield server
        finally:
            server.close()
        assert "Traceback" not in server.stderr, server.stderr
