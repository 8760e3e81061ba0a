"""Files: the built-in server against the official filesystem server, `sed` and ripgrep.

Both servers are asked over real stdio by the same client. `sed` and `rg` are what a user would type: the time of a
process from its start to its end. Every answer is checked.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, sleep
from typing import Any

from benchmarks.claim import Claim, Target
from benchmarks.command import main
from benchmarks.environment import SetupFailed, node_server, python
from benchmarks.load import LoadFailed, Session, measure_in_turns, precedence, progress
from benchmarks.stdio_server import CHARACTERS_PER_TOKEN, Answer, StdioServer, count_tokens

READ = "read_text_file"  # of the official server
OURS, OFFICIAL, SED, RIPGREP = "longshore", "official server", "sed", "ripgrep"

READ_RATIO = 0.15
LINES = 100
READS = 50  # of one session
THOUGHT_SECONDS = 1.0  # from the list to the first call: a model has been asked meanwhile
LOG_LINES, WANTED_LINE = 2_000_000, 1_500_000
FOLDERS, PARTS, FILES = 50, 4, 25  # 5,000 files in all
NEEDLES = 50
PATTERN = "needle_[0-9]+"

BUDGETS = {"fs_read": 6_000, "fs_list": 4_000, "fs_search": 6_000}
"""Tokens that an answer has by default."""
ASKED_BUDGETS = (100, 1_000, 25_000)
LISTING_TOKENS = 1_150
"""Of the file tools in `tools/list`."""


class Longshore(StdioServer):
    """The built-in server. It counts the answers that have more tokens than their budget."""

    calls = 0
    over_budget = 0

    def call(self, name: str, **arguments: Any) -> Answer:
        answer = super().call(name, **arguments)
        self.calls += 1
        self.over_budget += is_over(answer.text, arguments.get("max_tokens", BUDGETS[name]))
        return answer


class Contest:
    """Both servers and the files that they serve."""

    def __init__(self, session: Session, ours: Longshore, official: StdioServer, folder: Path) -> None:
        self.session, self.ours, self.official, self.folder = session, ours, official, folder

    def claims(self) -> list[Claim]:
        claims = [claim for measure in (self._read, self._list) for claim in measure()]
        claims += [self._find_line(), self._search(), self._listing()]
        return [*claims, self._budget()]  # the last one, because it counts all calls

    def _read(self) -> list[Claim]:
        rounds, calls = self.session.pick(full=9, quick=3), self.session.pick(full=200, quick=30)
        path = str(self.folder / "small.txt")
        readers = {
            OURS: partial(self.ours.call, "fs_read", path=path),
            OFFICIAL: partial(self.official.call, READ, path=path),
        }
        for name, read in readers.items():
            _check(name, (self.folder / "small.txt").read_text().strip() in read().text, "not the file's text")
        tokens = Claim("files_read_tokens", f"The answer to reading a file of {LINES} lines", "tokens")
        tokens.targets = [Target(OURS, 0.55, against=OFFICIAL)]
        measure_in_turns(tokens, 1, {name: lambda read=read: read().tokens for name, read in readers.items()})
        title = f"The same read, over and over: p50 of {calls} calls, {rounds} rounds"
        time = Claim("files_read_again", title, "ms", targets=[Target(OURS, READ_RATIO, against=OFFICIAL)])
        measure_in_turns(time, rounds, {name: partial(_median, read, calls) for name, read in readers.items()})
        return [tokens, time]

    def _list(self) -> list[Claim]:
        rounds = self.session.pick(full=5, quick=2)
        path = str(self.folder / "tree")
        listers = {
            OURS: partial(self.ours.call, "fs_list", path=path),
            OFFICIAL: partial(self.official.call, "directory_tree", path=path),
        }
        for name, list_tree in listers.items():
            text = list_tree().text
            _check(name, all(f"area_{number:02}" in text for number in range(FOLDERS)), "a folder is missing")
        count = FOLDERS * PARTS * FILES
        tokens = Claim("files_list_tokens", f"Listing a tree of {count:,} files", "tokens")
        tokens.targets = [Target(OURS, 0.05, against=OFFICIAL)]
        measure_in_turns(tokens, 1, {name: lambda lister=lister: lister().tokens for name, lister in listers.items()})
        time = Claim("files_list", f"The same: time, median of {rounds} calls", "ms", base=OFFICIAL)
        measure_in_turns(time, rounds, {name: partial(_median, lister, 1) for name, lister in listers.items()})
        return [tokens, time]

    def _find_line(self) -> Claim:
        rounds = self.session.pick(full=15, quick=5)
        size = (self.folder / "app.log").stat().st_size
        title = f"Line {WANTED_LINE:,} of a log of {size / 1e6:.0f} MB, median of {rounds}"
        claim = Claim("files_line", title, "ms", targets=[Target(OURS, 1.5, against=SED)])
        sed = ["sed", "-n", f"{WANTED_LINE}p;{WANTED_LINE}q", "app.log"]
        arguments = {"path": str(self.folder / "app.log"), "offset": WANTED_LINE, "limit": 1}

        def check(name: str, text: str) -> None:
            _check(name, text.split("\n")[0] == _log_line(WANTED_LINE), f"another line: {text[:100]!r}")

        measure_in_turns(
            claim, rounds, {OURS: self._time_call("fs_read", arguments, check), SED: self._time(sed, check)}
        )
        return claim

    def _search(self) -> Claim:
        rounds = self.session.pick(full=15, quick=5)
        title = f"Searching the contents of {FOLDERS * PARTS * FILES:,} files, median of {rounds}"
        claim = Claim("files_search", title, "ms", targets=[Target(OURS, 1.5, against=RIPGREP)])
        arguments = {"pattern": PATTERN, "path": str(self.folder / "tree")}

        def check(name: str, text: str) -> None:
            _check(name, text.count("needle_") == NEEDLES, f"{text.count('needle_')} matches, not {NEEDLES}")

        contestants = {OURS: self._time_call("fs_search", arguments, check)}
        if rg := shutil.which("rg"):
            contestants[RIPGREP] = self._time([rg, "--no-config", "--line-number", PATTERN, "tree"], check)
        else:
            claim.notes.append("ripgrep is not installed; longshore searched by itself.")
        measure_in_turns(claim, rounds, contestants)
        return claim

    def _listing(self) -> Claim:
        claim = Claim("files_listing", "What tools/list says of the file tools", "tokens", base=OFFICIAL)
        claim.targets = [Target(OURS, LISTING_TOKENS)]
        ours = [tool for tool in self.ours.ask("tools/list").result["tools"] if tool["name"].startswith("fs_")]
        theirs = self.official.ask("tools/list").result["tools"]
        claim.notes.append(f"{len(ours)} tools and {len(theirs)}.")
        claim.add(OURS, [count_tokens(ours)])
        claim.add(OFFICIAL, [count_tokens(theirs)])
        return claim

    def _budget(self) -> Claim:
        tree, log = str(self.folder / "tree"), str(self.folder / "app.log")
        for tokens in ASKED_BUDGETS:
            for offset in (1, WANTED_LINE, LOG_LINES - 50):
                self.ours.call("fs_read", path=log, offset=offset, max_tokens=tokens)
            for depth in (1, 2, 3):
                self.ours.call("fs_list", path=tree, depth=depth, max_tokens=tokens)
            for pattern in (PATTERN, "e", "^$"):
                self.ours.call("fs_search", path=tree, pattern=pattern, max_tokens=tokens)
        claim = Claim("files_budget", f"Answers over their token budget, of {self.ours.calls:,} calls", "answers")
        claim.targets = [Target(OURS, 0)]
        claim.add(OURS, [self.ours.over_budget])
        return claim

    def _time_call(self, tool: str, arguments: dict[str, Any], check: Callable[[str, str], None]) -> _Sample:
        def sample() -> float:
            answer = self.ours.call(tool, **arguments)
            check(OURS, answer.text)
            return answer.milliseconds

        return sample

    def _time(self, command: Sequence[str], check: Callable[[str, str], None]) -> _Sample:
        """Milliseconds from the start of a process to its end."""

        def sample() -> float:
            began = perf_counter()
            done = subprocess.run(command, cwd=self.folder, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
            milliseconds = (perf_counter() - began) * 1e3
            check(command[0], done.stdout.decode())
            return milliseconds

        return sample


_Sample = Callable[[], float]


def measure(session: Session) -> list[Claim]:
    with TemporaryDirectory() as temporary, ExitStack() as stack:
        folder, home = Path(os.path.realpath(temporary), "work"), Path(temporary, "home")
        home.mkdir()
        make_files(folder)
        stack.enter_context(precedence(session))
        command = [str(python("longshore")), "-m", "longshore", "serve", "--root", str(folder)]
        try:
            ours = Longshore(command, folder=folder, home=home)
            command = [*node_server("@modelcontextprotocol/server-filesystem"), str(folder)]
            official = StdioServer(command, folder=folder, home=home)
            sessions = _sessions(session, ours, official, folder)
            contest = Contest(session, stack.enter_context(ours), stack.enter_context(official), folder)
            return [*sessions, *contest.claims()]
        except (LoadFailed, SetupFailed, OSError) as failure:
            return [Claim("files", "Files", "ms", errors=[str(failure)])]


def _sessions(session: Session, ours: StdioServer, official: StdioServer, folder: Path) -> list[Claim]:
    """Sessions of an agent: a server starts and lists its tools, the model thinks, then a file is read some times."""
    rounds = session.pick(full=11, quick=3)
    start = Claim("files_start", f"Spawn to the answer of a first read, median of {rounds}", "ms", base=OFFICIAL)
    title = f"Reading a file of {LINES} lines: the first read, {THOUGHT_SECONDS:g} s after the list, median of {rounds}"
    first = Claim("files_first_read", title, "ms", base=OFFICIAL)
    first.notes += ["It has no target: much of it is the system waking a process up, in both servers."]
    title = f"The same, p50 of the {READS} reads after the first, {rounds} sessions"
    reading = Claim("files_read", title, "ms", targets=[Target(OURS, READ_RATIO, against=OFFICIAL)])
    values: dict[str, list[tuple[float, float, float]]] = {OURS: [], OFFICIAL: []}
    for number in range(rounds + 1):
        progress(f"files_read {number}/{rounds}")
        for name, server, tool in ((OURS, ours, "fs_read"), (OFFICIAL, official, READ)):
            values[name].append(_read_session(server, partial(server.call, tool, path=str(folder / "small.txt"))))
    progress("")
    for name, measured in values.items():
        # The first session compiles bytecode and fills the page cache.
        for claim, figures in zip((start, first, reading), zip(*measured[1:], strict=True), strict=True):
            claim.add(name, list(figures))
    return [start, first, reading]


def _read_session(server: StdioServer, read: Callable[[], Answer]) -> tuple[float, float, float]:
    """Milliseconds from spawn to a first answer; of a first read when the client has paused; of the reads after it."""
    began = perf_counter()
    with server:
        read()
        start = (perf_counter() - began) * 1e3
    with server:
        server.ask("tools/list")
        sleep(THOUGHT_SECONDS)
        return start, read().milliseconds, _median(read, READS)


def make_files(folder: Path) -> None:
    """A small file, a long log, and a tree in which a few files have what is searched for."""
    folder.mkdir()
    lines = (f"line {number:03} of a file that an agent reads as a whole\n" for number in range(1, LINES + 1))
    (folder / "small.txt").write_text("".join(lines))
    with (folder / "app.log").open("w") as log:
        log.writelines(f"{_log_line(number)}\n" for number in range(1, LOG_LINES + 1))
    total, number = FOLDERS * PARTS * FILES, 0
    for area in range(FOLDERS):
        for part in range(PARTS):
            inner = folder / "tree" / f"area_{area:02}" / f"part_{part}"
            inner.mkdir(parents=True)
            for file in range(FILES):
                body = "".join(f"def step_{each}(value):\n    return value + {number}\n\n" for each in range(15))
                found = f"needle_{number} = True\n" if number % (total // NEEDLES) == 0 else ""
                (inner / f"module_{file:03}.py").write_text(body + found)
                number += 1


def is_over(text: str, budget: int) -> bool:
    """Whether a text has more tokens than its budget. The quotes around it are not counted."""
    return count_tokens(text) - 2 / CHARACTERS_PER_TOKEN > budget


def _log_line(number: int) -> str:
    return f"2026-01-01 INFO request {number}"


def _median(ask: Callable[[], Answer], calls: int) -> float:
    return statistics.median(ask().milliseconds for _ in range(calls))


def _check(name: str, right: bool, what: str) -> None:
    if not right:
        raise LoadFailed(f"{name}: {what}")


if __name__ == "__main__":
    sys.exit(main([measure]))
