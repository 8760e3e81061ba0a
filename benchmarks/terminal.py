"""The terminal: the built-in server against bubblewrap alone and against Desktop Commander.

Both servers are asked over real stdio by the same client. Ours runs its commands at the level `workspace`, the default.
Bubblewrap is started by this process, with the flags that our commands get. Every answer is checked.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from benchmarks.claim import Claim, Target
from benchmarks.command import main
from benchmarks.desktop_commander import TIMEOUT_MS, DesktopCommander
from benchmarks.environment import SetupFailed, python
from benchmarks.load import LoadFailed, Session, measure_in_turns, precedence, progress
from benchmarks.stdio_server import Answer, StdioServer, count_tokens
from longshore.errors import SandboxUnavailable
from longshore.sandbox.launch import Launch
from longshore.sandbox.levels import make_sandbox

OURS, COMMANDER = "longshore", "Desktop Commander"
BUBBLEWRAP, LIMITED = "bubblewrap", "bubblewrap, limited as ours"

SHELL = ("/bin/bash", "-c")
WORD = "hello"
NUMBERS = 200_000
OUTPUT_TOKENS = 6_000
LISTING_TOKENS = 800
"""Of the terminal tools in `tools/list`."""

COMMANDS = (f"echo {WORD}", "exit 3", "sleep 300 & echo", "setsid sleep 300 >/dev/null & echo")
"""Some of them leave a process behind, which is to end with them."""
WARM_UP = 100
"""Commands before the first count: more than those whose output the server keeps."""
KINDS = ("processes", "descriptors", "files")


class Terminal:
    """A server that runs commands, and the folder that has everything that it writes."""

    def __init__(self, server: StdioServer, run: Callable[[str], Answer], folder: Path) -> None:
        self.server, self.run, self._folder = server, run, folder

    def echo(self) -> float:
        """Milliseconds of a command that prints a word."""
        answer = self.run(f"echo {WORD}")
        if WORD not in answer.text:
            raise LoadFailed(f"echo printed {answer.text[:200]!r}")
        return answer.milliseconds

    def count(self) -> dict[str, int]:
        """The processes, descriptors and files that the server has, its cgroups among the files."""
        server = self.server.pid
        files = [*self._folder.rglob("*"), *Path("/sys/fs/cgroup").rglob(f"longshore-{server}-*")]
        counts = (len(list(self._processes())), len(os.listdir(f"/proc/{server}/fd")), len(files))
        return dict(zip(KINDS, counts, strict=True))

    def _processes(self) -> Iterator[int]:
        """Those that descend from the server, and those that work in its folder."""
        parents = {int(path.name): _parent(path) for path in Path("/proc").iterdir() if path.name.isdigit()}
        for process in parents:
            if process != self.server.pid and (self._is_descendant(process, parents) or self._works_here(process)):
                yield process

    def _is_descendant(self, process: int, parents: dict[int, int]) -> bool:
        while process and process != self.server.pid:
            process = parents.get(process, 0)
        return process == self.server.pid

    def _works_here(self, process: int) -> bool:
        try:
            return Path(os.readlink(f"/proc/{process}/cwd")).is_relative_to(self._folder)
        except OSError:  # it has ended
            return False


class Contest:
    """Our terminal and, where it could be installed, Desktop Commander's."""

    def __init__(self, session: Session, ours: Terminal, commander: Terminal | None, folder: Path) -> None:
        self._session, self._ours, self._folder = session, ours, folder
        self._terminals = {OURS: ours} | ({COMMANDER: commander} if commander else {})

    def claims(self) -> list[Claim]:
        return [self._echo(), self._long_output(), self._listing(), self._left()]

    def _echo(self) -> Claim:
        rounds = self._session.pick(full=100, quick=10)
        claim = Claim("terminal_echo", f"`echo` at the level workspace, median of {rounds}", "ms", base=BUBBLEWRAP)
        claim.targets = [Target(OURS, 1.5, against=BUBBLEWRAP), Target(OURS, 0.15, against=COMMANDER)]
        with ExitStack() as stack:
            contestants = {name: terminal.echo for name, terminal in self._terminals.items()}
            measure_in_turns(claim, rounds, contestants | self._bubblewrap(claim, stack))
        return claim

    def _bubblewrap(self, claim: Claim, stack: ExitStack) -> dict[str, Callable[[], float]]:
        """Bubblewrap with the flags of our commands, alone and with the limits that these have around it."""
        try:
            sandbox = make_sandbox("workspace", environ=self._ours.server.environment)
        except SandboxUnavailable as missing:
            claim.notes.append(f"No sandbox: {missing}")
            return {}
        folder = str(self._folder)
        launch = sandbox.launch([*SHELL, f"echo {WORD}"], cwd=folder, env={}, roots=[folder], name="bench")
        stack.enter_context(launch)
        found: dict[str, Callable[[], float]] = {LIMITED: partial(_time, launch.argv, launch)}
        program = shutil.which("bwrap")
        if program in launch.argv:
            found[BUBBLEWRAP] = partial(_time, launch.argv[launch.argv.index(program) :], launch)
        else:
            claim.notes.append(f"The sandbox is {sandbox.mechanism}: there is no bubblewrap to compare with.")
        return found

    def _long_output(self) -> Claim:
        claim = Claim("terminal_output", f"The answer to `seq 1 {NUMBERS}`", "tokens", base=COMMANDER)
        claim.targets = [Target(OURS, OUTPUT_TOKENS)]
        for name, terminal in self._terminals.items():
            answer = terminal.run(f"seq 1 {NUMBERS}")
            lines = answer.text.splitlines()
            if name == OURS and not all(end in lines for end in ("1", "2", str(NUMBERS - 1), str(NUMBERS))):
                claim.errors.append(f"an end is missing: {answer.text[:200]!r} … {answer.text[-200:]!r}")
            claim.add(name, [answer.tokens])
        return claim

    def _listing(self) -> Claim:
        claim = Claim("terminal_listing", "What tools/list says of the terminal tools", "tokens", base=COMMANDER)
        claim.targets = [Target(OURS, LISTING_TOKENS)]
        for name, terminal in self._terminals.items():
            tools = terminal.server.ask("tools/list").result["tools"]
            if name == OURS:
                tools = [tool for tool in tools if tool["name"].startswith("terminal_")]
            claim.notes.append(f"{name}: {len(tools)} tools{'' if name == OURS else ', those for files among them'}.")
            claim.add(name, [count_tokens(tools)])
        return claim

    def _left(self) -> Claim:
        commands = self._session.pick(full=1_000, quick=100)
        claim = Claim("terminal_left", f"What {commands:,} commands leave behind", "left")
        claim.targets = [Target(kind, 0) for kind in KINDS]
        for number in range(WARM_UP):
            self._ours.run(COMMANDS[number % len(COMMANDS)])
        before = self._ours.count()
        for number in range(commands):
            progress(f"{claim.name} {number}/{commands}")
            self._ours.run(COMMANDS[number % len(COMMANDS)])
        progress("")
        after = self._ours.count()
        for kind in KINDS:
            claim.add(kind, [after[kind] - before[kind]])
        counts = ", ".join(f"{kind} {before[kind]} → {after[kind]}" for kind in KINDS)
        claim.notes.append(f"Before → after: {counts}. The commands: {', '.join(f'`{each}`' for each in COMMANDS)}.")
        return claim


def measure(session: Session) -> list[Claim]:
    try:
        return _compare(session)
    except (LoadFailed, OSError) as failure:
        return [Claim("terminal", "The terminal", "ms", errors=[str(failure)])]


def _compare(session: Session) -> list[Claim]:
    with TemporaryDirectory() as temporary, precedence(session), ExitStack() as stack:
        folder = Path(os.path.realpath(temporary))
        ours = _start_ours(folder / "ours", stack)
        try:
            commander, missing = _start_commander(folder / "commander", stack), []
        except SetupFailed as failure:
            commander, missing = None, [str(failure)]
        claims = Contest(session, ours, commander, folder / "ours" / "work").claims()
    claims[0].notes += missing
    return claims


def _start_ours(folder: Path, stack: ExitStack) -> Terminal:
    places = _make_places(folder)
    command = [str(python("longshore")), "-m", "longshore", "serve", "--root", str(places["folder"])]
    server = stack.enter_context(StdioServer(command, **places, variables={"TMPDIR": str(folder / "temporary")}))
    return Terminal(server, lambda command: server.call("terminal_run", command=command), folder)


def _start_commander(folder: Path, stack: ExitStack) -> Terminal:
    server = stack.enter_context(DesktopCommander(**_make_places(folder)))
    stack.callback(server.check_network)

    def run(command: str) -> Answer:
        return server.call("start_process", command=command, timeout_ms=TIMEOUT_MS)

    return Terminal(server, run, folder)


def _make_places(folder: Path) -> dict[str, Path]:
    """A folder to work in, and a home folder."""
    for name in ("work", "home", "temporary"):
        (folder / name).mkdir(parents=True)
    return {"folder": folder / "work", "home": folder / "home"}


def _time(argv: Sequence[str], launch: Launch) -> float:
    """Milliseconds from the start of a process to its end."""
    for descriptor in launch.pass_fds:  # the flags, which the process before it has read
        os.lseek(descriptor, 0, os.SEEK_SET)
    began = perf_counter()
    done = subprocess.run(
        argv,
        cwd=launch.cwd,
        env=launch.env,
        pass_fds=launch.pass_fds,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    milliseconds = (perf_counter() - began) * 1e3
    if done.stdout.decode() != f"{WORD}\n":
        raise LoadFailed(f"{argv[0]} printed {done.stdout[:500]!r}")
    return milliseconds


def _parent(process: Path) -> int:
    """0 for a process that has ended."""
    try:
        return int((process / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


if __name__ == "__main__":
    sys.exit(main([measure]))
