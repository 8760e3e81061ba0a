"""A folder with a server in it, and `longshore` run there as a real process: with pipes, or on a terminal."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from waiting import PATIENCE

LONGSHORE = [sys.executable, "-m", "longshore"]

HARBOUR = """
    import asyncio
    import os
    from pathlib import Path
    from typing import Annotated, Literal
    from longshore import Ask, Audio, Context, Image, Server, ToolError

    app = Server("harbour", version="1.2")
    HERE = Path(__file__).parent

    @app.tool
    def add(a: int, b: int = 2) -> int:
        \"\"\"Add two numbers.

        a: the first one
        b: the second one
        \"\"\"
        return a + b

    @app.tool
    def echo(text: str, loud: bool = False, tags: list[str] = [], size: Literal["small", "large"] = "small") -> str:
        \"\"\"Say it again.\"\"\"
        return f"{text!r} {loud} {tags} {size}"

    @app.tool
    def broken() -> str:
        raise ToolError("the crane broke")

    @app.tool
    def hostile() -> str:
        return "\\x1b]0;owned\\x07 red \\x9b31m \\u202e"

    @app.tool
    def pixels() -> Image:
        return Image(b"\\x89PNG-data")

    @app.tool
    async def work(steps: int, ctx: Context) -> str:
        for step in range(steps):
            await ctx.info(f"did \\x1b[5mstep {step}")
            await ctx.progress(step, steps, f"loading \\x1b[5m{step}")
        return "worked"

    @app.tool
    async def hang() -> str:
        (HERE / "hanging").write_text(str(os.getpid()))
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            (HERE / "cancelled").write_text("yes")
            raise
        return ""

    @app.tool
    def die() -> str:
        print("the ship sank", file=__import__("sys").stderr, flush=True)
        os._exit(7)

    @app.tool
    def refund(order: str, ok: Annotated[bool, Ask("Refund {order}?")]) -> str:
        return f"refund of {order}: {ok}"

    @app.tool
    def pack(order: str, size: Annotated[Literal["small", "large"], Ask("Which box?")],
             count: Annotated[int, Ask("How many?")]) -> str:
        return f"{count} {size}"

    @app.resource("note://text")
    def note() -> str:
        return "no line end"

    @app.resource("note://bytes", mime_type="application/x-thing")
    def thing() -> bytes:
        return bytes(range(256))
"""


class Workspace:
    """A temporary project folder with a home folder in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.home.mkdir()
        (folder / ".git").mkdir()
        unset = ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "NO_COLOR", "PYTHONUNBUFFERED")
        unset += ("COLUMNS", "LINES")  # readline sets them in whatever process imports it
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("LONGSHORE_") and k not in unset}
        self.env |= {"HOME": str(self.home), "PYTHONWARNINGS": "error", "PYTHONPATH": "", "TERM": "xterm"}
        self.running: list[subprocess.Popen[bytes]] = []

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return path

    def run(
        self, *argv: str, data: bytes = b"", env: dict[str, str] | None = None, cwd: Path | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [*LONGSHORE, *argv],
            cwd=cwd or self.folder, env={**self.env, **(env or {})}, input=data, capture_output=True, timeout=45,
        )  # fmt: skip

    def start(self, *argv: str, **streams: Any) -> subprocess.Popen[bytes]:
        child = subprocess.Popen([*LONGSHORE, *argv], cwd=self.folder, env=self.env, **streams)
        self.running.append(child)
        return child

    def terminal(self, *argv: str, pipe_out: bool = False, through_cat: bool = False, columns: int = 80) -> Terminal:
        command = [*LONGSHORE, *argv]
        if through_cat:
            command = ["bash", "-c", 'set -o pipefail; "$@" | cat', "bash", *command]
        made = Terminal(self, command, pipe_out, columns)
        self.running.append(made.child)
        return made


class Terminal:
    """`longshore` on a terminal of its own. `seen` is all that it showed, escapes included."""

    def __init__(self, workspace: Workspace, command: list[str], pipe_out: bool, columns: int) -> None:
        self._main, side = pty.openpty()
        import fcntl
        import struct
        import termios

        fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.child = subprocess.Popen(
            command, cwd=workspace.folder, env=workspace.env, stdin=side, stderr=side,
            stdout=subprocess.PIPE if pipe_out else side, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0) and None,
        )  # fmt: skip
        os.close(side)
        self.seen = ""

    def until(self, text: str) -> Terminal:
        deadline = time.monotonic() + PATIENCE
        while text not in self.seen:
            assert self._read(deadline), f"{text!r} did not come: {self.seen!r}"
        return self

    def _read(self, deadline: float) -> bool:
        if not select.select([self._main], [], [], max(0.0, deadline - time.monotonic()))[0]:
            return False
        try:
            data = os.read(self._main, 65536)
        except OSError:  # the other side is closed
            return False
        self.seen += data.decode("utf-8", "replace")
        return bool(data)

    def type(self, text: str) -> Terminal:
        os.write(self._main, text.encode())
        return self

    def end(self) -> int:
        """Read to the end; the exit code."""
        deadline = time.monotonic() + PATIENCE
        while self._read(deadline):
            pass
        code = self.child.wait(PATIENCE)
        os.close(self._main)
        return code


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    made = Workspace(tmp_path)
    made.write("server.py", HARBOUR)
    yield made
    for child in made.running:
        if child.poll() is None:
            os.kill(child.pid, signal.SIGKILL)
            child.wait(PATIENCE)
        for stream in (child.stdin, child.stdout, child.stderr):
            if stream is not None:
                stream.close()
