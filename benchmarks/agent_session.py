"""Twenty steps of a coding agent over files and terminal: the tokens that they cost, with the listing of the tools.

The agent finds a bug in a small project, shows it by a test, fixes it and what the fix breaks, and commits. Every step
is made with the calls that a model would make by the servers' descriptions, and its effect is verified. Counted are
the names and arguments of the calls and their whole results.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.agents import Agent, CommanderAgent, LongshoreAgent, PeersAgent
from benchmarks.claim import Claim, Target
from benchmarks.command import main
from benchmarks.desktop_commander import COMMANDER_PACKAGE, PINS, DesktopCommander
from benchmarks.environment import SetupFailed, node_server, pinned, python
from benchmarks.load import LoadFailed, Session, progress
from benchmarks.sample_project import HISTORY, git, make_project
from benchmarks.stdio_server import StdioServer

OFFICIAL = "@modelcontextprotocol/server-filesystem"
OURS, ALL, PEERS, COMMANDER = "longshore", "longshore, all tools", "both peers", "Desktop Commander alone"
TOOLSETS = "discovery,filesystem,terminal"
"""What the peers have too. By default the browser and the memory are listed beside them."""


@dataclass(frozen=True)
class Step:
    """A thing that the agent does, and whether it came about: by the answer, and by the project's folder."""

    name: str
    act: Callable[[Agent], str]
    is_done: Callable[[str, Path], bool]


MONEY, TEST_MONEY, INVOICES = "shop/money.py", "tests/test_money.py", "shop/invoices.py"
ALL_TESTS = "python3 -m unittest discover -s tests"
NEW_TEST = """    def test_half_a_cent_is_a_cent(self):
        self.assertEqual(round_cents(Decimal("2.345")), Decimal("2.35"))
        self.assertEqual(round_cents(Decimal("2.355")), Decimal("2.36"))

"""
BEFORE_IT = "    def test_infinity_is_refused(self):\n"
ROUND_HALF_UP = (
    ("from decimal import ROUND_HALF_EVEN, Decimal", "from decimal import ROUND_HALF_UP, Decimal"),
    (
        "    return amount.quantize(CENT, rounding=ROUND_HALF_EVEN)",
        "    return amount.quantize(CENT, rounding=ROUND_HALF_UP)",
    ),
    ("amount == amount.quantize(CENT, rounding=ROUND_HALF_EVEN)", "amount == round_cents(amount)"),
)
ROUND_DOWN = (
    ("from decimal import Decimal\n", "from decimal import ROUND_DOWN, Decimal\n"),
    ("    each = round_cents(amount / parts)\n", "    each = (amount / parts).quantize(CENT, rounding=ROUND_DOWN)\n"),
)
NEW_CHANGE = """# Changes

## 1.4.2

- `money.round_cents` rounds half up, as it promised; `invoices.split` rounds down.
"""
PAGE = """# Rounding

`money.round_cents` rounds half up:

| amount | rounded |
|---|---|
| 2.344 | 2.34 |
| 2.345 | 2.35 |
| 2.346 | 2.35 |

`invoices.split` rounds every part down and adds the cents that are left over to the first parts, so that the parts
add up to the amount.
"""
SUBJECT = "Round half a cent up"

STEPS = (
    Step("look around", lambda agent: agent.list_files(), lambda text, _: "test_money.py" in text),
    Step("read the README", lambda agent: agent.read("README.md"), lambda text, _: "half up: 2.345" in text),
    Step("see the history", lambda agent: agent.run("git log --oneline -10"), lambda text, _: HISTORY[0] in text),
    Step("run the tests", lambda agent: agent.run(ALL_TESTS), lambda text, _: "\nOK" in text),
    Step("search for the function", lambda agent: agent.search("round_cents"), lambda text, _: MONEY in text),
    Step("read the module", lambda agent: agent.read(MONEY), lambda text, _: "def is_cents" in text),
    Step("read its tests", lambda agent: agent.read(TEST_MONEY), lambda text, _: BEFORE_IT in text),
    Step(
        "add a test",
        lambda agent: agent.edit(TEST_MONEY, (BEFORE_IT, NEW_TEST + BEFORE_IT)),
        lambda _, folder: NEW_TEST in (folder / TEST_MONEY).read_text(),
    ),
    Step(
        "see it fail",
        lambda agent: agent.run("python3 -m unittest tests.test_money"),
        lambda text, _: "Decimal('2.34') != Decimal('2.35')" in text,
    ),
    Step(
        "fix the function",
        lambda agent: agent.edit(MONEY, *ROUND_HALF_UP),
        lambda _, folder: "HALF_EVEN" not in (folder / MONEY).read_text(),
    ),
    Step("run the tests", lambda agent: agent.run(ALL_TESTS), lambda text, _: "FAILED (failures=2)" in text),
    Step("find what fails", lambda agent: agent.search(r"def split\("), lambda text, _: INVOICES in text),
    Step(
        "read that function",
        lambda agent: agent.read_lines(INVOICES, 84, 8),
        lambda text, _: "def split" in text and "each = round_cents" in text and "def schedule" not in text,
    ),
    Step(
        "fix it too",
        lambda agent: agent.edit(INVOICES, *ROUND_DOWN),
        lambda _, folder: ROUND_DOWN[1][1] in (folder / INVOICES).read_text(),
    ),
    Step("run the tests", lambda agent: agent.run(ALL_TESTS), lambda text, _: "\nOK" in text),
    Step(
        "read the latest changes",
        lambda agent: agent.read_lines("CHANGELOG.md", 1, 10),
        lambda text, _: "1.4.1" in text and "1.3.0" not in text,
    ),
    Step(
        "add a change",
        lambda agent: agent.edit("CHANGELOG.md", ("# Changes\n", NEW_CHANGE)),
        lambda _, folder: (folder / "CHANGELOG.md").read_text().startswith(NEW_CHANGE),
    ),
    Step(
        "write a page",
        lambda agent: agent.write("docs/rounding.md", PAGE),
        lambda _, folder: (folder / "docs" / "rounding.md").read_text() == PAGE,
    ),
    Step(
        "see what changed",
        lambda agent: agent.run("git status --short && git diff"),
        lambda text, _: "docs/rounding.md" in text and "+from decimal import ROUND_DOWN" in text,
    ),
    Step(
        "commit",
        lambda agent: agent.run(f"git add -A && git commit -m '{SUBJECT}'"),
        lambda _, folder: git(folder, "log", "-1", "--format=%s").strip() == SUBJECT,
    ),
)
LISTING = Step("list the tools", lambda agent: agent.list_tools(), lambda text, _: text != "0 tools")


Start = Callable[[Path], AbstractContextManager[Agent]]


@dataclass
class Record:
    """What a session cost, step by step."""

    costs: list[float]
    seen_tokens: float
    failures: list[str]


def measure(session: Session) -> list[Claim]:
    claim = Claim("agent_session", f"A coding agent's session of {len(STEPS)} steps, with the tools' listing", "tokens")
    claim.targets = [Target(OURS, 0.35, against=PEERS)]
    seen = Claim("agent_session_seen", "The same, of what clients usually show a model", "tokens")
    claim.base = seen.base = PEERS
    claim.settings = seen.settings = {"server.toolsets": TOOLSETS}
    records = {name: record for name, start in CONTESTANTS.items() if (record := _record(name, start, claim))}
    progress("")
    for name, record in records.items():
        complaints = claim.errors if name in (OURS, ALL) else claim.notes
        complaints += [f"{name} failed to {failure}" for failure in record.failures]
        if name not in (OURS, ALL) or not record.failures:  # a session of ours that was not finished has no figure
            claim.add(name, [sum(record.costs)])
            seen.add(name, [record.seen_tokens])
    versions = f"{pinned(OFFICIAL)} and Desktop Commander {pinned(COMMANDER_PACKAGE, PINS)}"
    claim.notes += [f"Both peers: the official filesystem server {versions}.", *_table(records)]
    return [claim, seen]


def _record(name: str, start: Start, claim: Claim) -> Record | None:
    """A session in a project of its own; None if a server does not install or run here, which the claim says then."""
    progress(f"agent_session  {name}")
    try:
        with TemporaryDirectory() as temporary, start(Path(os.path.realpath(temporary))) as agent:
            return work(agent)
    except SetupFailed as failure:
        claim.notes.append(f"{name}: {failure}")
    except (LoadFailed, OSError) as failure:
        claim.errors.append(f"{name}: {failure}")
    return None


def work(agent: Agent) -> Record:
    """Take all steps, each verified."""
    record = Record([], 0, [])
    for number, step in enumerate((LISTING, *STEPS)):
        before = agent.tokens
        try:
            text = step.act(agent)
            done = step.is_done(text, agent.folder)
        except LoadFailed as failure:
            text, done = str(failure), False
        record.costs.append(agent.tokens - before)
        if not done:
            record.failures.append(f"{step.name} (step {number}): {text[:300]!r}")
    record.seen_tokens = agent.seen_tokens
    return record


def _table(records: dict[str, Record]) -> list[str]:
    """The tokens of every step, the contestants side by side."""
    rows = [f"{'':26}" + "".join(f"{name:>26}" for name in records)]
    for number, step in enumerate((LISTING, *STEPS)):
        costs = "".join(f"{record.costs[number]:26,.0f}" for record in records.values())
        rows.append(f"{number:2} {step.name:23}{costs}")
    return rows


@contextmanager
def _ours(temporary: Path, *options: str) -> Iterator[Agent]:
    folder, home = _project(temporary)
    command = [str(python("longshore")), "-m", "longshore", "serve", "--root", str(folder), *options]
    # A version manager's python3 would be sought in the home folder, which is another one here.
    path = f"{os.path.dirname(os.path.realpath(sys.executable))}:{os.environ['PATH']}"
    with StdioServer(command, folder=folder, home=home, variables={"PATH": path}) as server:
        yield LongshoreAgent(folder, server)


@contextmanager
def _peers(temporary: Path) -> Iterator[Agent]:
    folder, home = _project(temporary)
    with ExitStack() as stack:
        files = StdioServer([*node_server(OFFICIAL), str(folder)], folder=folder, home=home)
        commander = stack.enter_context(DesktopCommander(folder=folder, home=home))
        yield PeersAgent(folder, stack.enter_context(files), commander)
        commander.check_network()


@contextmanager
def _commander(temporary: Path) -> Iterator[Agent]:
    folder, home = _project(temporary)
    with DesktopCommander(folder=folder, home=home) as commander:
        yield CommanderAgent(folder, commander)
        commander.check_network()


def _project(temporary: Path) -> tuple[Path, Path]:
    """The project's folder, and a home folder."""
    folder, home = temporary / "shop", temporary / "home"
    home.mkdir()
    make_project(folder)
    return folder, home


CONTESTANTS: dict[str, Start] = {
    OURS: lambda temporary: _ours(temporary, "--toolsets", TOOLSETS),
    ALL: _ours,
    PEERS: _peers,
    COMMANDER: _commander,
}


if __name__ == "__main__":
    sys.exit(main([measure]))
