"""A server process that is reached over HTTP: how to start it, on which core, and what it uses."""

from __future__ import annotations

import os
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from benchmarks.environment import BENCH, HERE, ROOT, python
from benchmarks.load import LoadFailed, Session

START_SECONDS = 60  # until a server takes connections; the slowest needs two on an idle machine
STOP_SECONDS = 10
TICKS, PAGE = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
ANY_PORT = "{port}"


@dataclass(frozen=True, eq=False)
class HttpServer:
    """Who is started, and with what; `{port}` in its command stands for the port that it gets."""

    name: str
    command: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def settings(self) -> dict[str, str]:
        return changed_settings(self.environment)


def changed_settings(environment: dict[str, str]) -> dict[str, str]:
    """Which of Longshore's settings these variables change, as its documentation names them."""
    return {
        name.removeprefix("LONGSHORE_").lower().replace("_", ".", 1): value
        for name, value in environment.items()
        if name.startswith("LONGSHORE_")
    }


def on_uvicorn(name: str, venv: str, module: str, *options: str, **environment: str) -> HttpServer:
    """An ASGI app on uvicorn with its fast parts and without its log, the same for everybody."""
    stock = ("--loop", "uvloop", "--http", "httptools", "--no-access-log", "--log-level", "critical")
    target = ("--app-dir", str(ROOT), f"benchmarks.servers.{module}:app")
    command = (str(python(venv)), "-m", "uvicorn", *target, "--port", ANY_PORT, *stock, *options)
    return HttpServer(name, command, environment)


def on_python(name: str, module: str) -> HttpServer:
    """A script of ours that takes the port as its argument."""
    command = (str(python("longshore")), "-m", f"benchmarks.servers.{module}", ANY_PORT)
    return HttpServer(name, command, {"PYTHONPATH": str(ROOT)})


def on_longshore(name: str, *options: str, module: str = "longshore_http", **environment: str) -> HttpServer:
    """Longshore as its users run it."""
    command = (str(python("longshore")), "-m", "longshore", "serve", str(HERE / "servers" / f"{module}.py"))
    return HttpServer(name, (*command, "--http", "--port", ANY_PORT, *options), environment)


def placed(session: Session, core: int) -> list[str]:
    """What to put before a command so that it runs on one core, ahead of what else the machine does.

    The generator has a core and the server has another, so neither can starve the other.
    """
    ahead = ["nice", "-n", "-20"] if goes_ahead(session) else []
    return ["taskset", "-c", str(core), *ahead]


def cores() -> tuple[int, int]:
    """One for the generator, one for the server."""
    every = sorted(os.sched_getaffinity(0))
    return every[0], every[1 % len(every)]


def goes_ahead(session: Session) -> bool:
    """Whether what is measured may run ahead of everything else on the machine."""
    return not session.polite and os.geteuid() == 0


class Serving:
    """A server that runs, for as long as the `with` lasts."""

    def __init__(self, session: Session, server: HttpServer) -> None:
        self._session, self._server = session, server
        self.port = _free_port()

    def __enter__(self) -> Serving:
        command = [part.replace(ANY_PORT, str(self.port)) for part in self._server.command]
        # The user's environment could slow a server down or configure it: see load.run.
        environment = {key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ}
        environment |= {"LANG": "C.UTF-8", **self._server.environment}
        self._output = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            [*placed(self._session, cores()[1]), *command],
            cwd=BENCH,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=self._output,
        )
        try:
            self._wait_until_up()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, value: object, trace: TracebackType | None) -> None:
        self._stop()

    def cpu_seconds(self) -> float:
        """Processor time that the server and its workers have used so far."""
        return sum(_cpu_ticks(pid) for pid in self._family()) / TICKS

    def memory(self) -> float:
        """MB that the server and its workers have resident.

        Not their proportional part of it (PSS): that moves with every other process that maps the same libraries.
        """
        return sum(_resident_pages(pid) for pid in self._family()) * PAGE / 1e6

    def end(self, signum: int, seconds: float) -> tuple[float, int]:
        """Send a signal: after how many seconds the process ended, and its exit code."""
        began = time.monotonic()
        self._process.send_signal(signum)
        try:
            code = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise self.failed(f"it still runs {seconds:g} s after signal {signum}") from None
        return time.monotonic() - began, code

    def failed(self, what: str) -> LoadFailed:
        """What happened, with the last that the server said."""
        said = self.said()
        return LoadFailed(f"{what}; the server said:\n{said}" if said else what)

    def said(self) -> str:
        self._output.seek(0)
        return "\n".join(self._output.read().decode(errors="replace").strip().splitlines()[-4:])

    def _wait_until_up(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                raise self.failed(f"it ended with {self._process.returncode} before it took a connection")
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            except OSError:
                time.sleep(0.05)
            else:
                return
        raise self.failed(f"it took no connection within {START_SECONDS} s")

    def _family(self) -> list[int]:
        """The process and all that it started."""
        found = [self._process.pid]
        for pid in found:
            for children in Path(f"/proc/{pid}/task").glob("*/children"):
                found += [int(child) for child in children.read_text().split()]
        return found

    def _stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._output.close()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _cpu_ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def _resident_pages(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1])
