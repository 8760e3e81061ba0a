"""The runs of the suite: which of its scenarios, on which side, and how many there are."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import NamedTuple

from longshore.dialects import NAMES

HERE = Path(__file__).parent
CLIENT = HERE / "client.py"
TASKS, NOTHING = HERE / "expected-failures.yml", HERE / "no-failures.yml"

CLIENT_SECONDS = 60
"""For one client to play its scenario; most take a fifth of one. The suite's own limit ends a shell, not the client."""

TURN_SECONDS = 240
"""For a client to wait until it is its turn, after all others of its run."""


class Run(NamedTuple):
    """One call of the suite. `scenarios` is how many there are, so that none can be lost unseen."""

    side: str
    what: str
    options: tuple[str, ...]
    scenarios: int
    expected: Path = NOTHING
    pinned: bool = False
    """Whether the client is told the revision, and does not find it out."""
    dialect: str = ""
    """What the server speaks with peers that it is for, beside MCP. None of the suite's is one."""

    @property
    def name(self) -> str:
        return f"{self.side}, {self.what}"

    def arguments(self, folder: Path, url: str | None = None) -> list[str]:
        """What the suite is called with. It writes to `folder`; `url` is of the server that is judged."""
        shared = [*self.options, "--expected-failures", str(self.expected), "-o", str(folder)]
        if url is not None:
            return ["server", "--url", url, *shared]
        patience = str((TURN_SECONDS + CLIENT_SECONDS) * 1000)
        return ["client", "--command", self.command(folder.with_suffix(".turn")), "--timeout", patience, *shared]

    def command(self, turn: Path) -> str:
        """What plays a scenario. The suite starts all at once, and one of them counts milliseconds: they take turns."""
        words = ["flock", "-w", str(TURN_SECONDS), str(turn), "timeout", "--foreground", "-k", "5"]
        words += [str(CLIENT_SECONDS), sys.executable, "-W", "error", str(CLIENT)]
        return shlex.join([*words, "--pinned"] if self.pinned else words)


def at(revision: str) -> tuple[str, ...]:
    return "--suite", "all", "--spec-version", revision


RUNS = (
    Run("server", "requirements 2025-11-25", ("--requirements", "2025-11-25"), 33),
    Run("server", "requirements 2026-07-28", ("--requirements", "2026-07-28"), 50, TASKS),
    Run("server", "all at 2025-06-18", at("2025-06-18"), 27),
    Run("server", "all at 2025-11-25", at("2025-11-25"), 33),
    Run("server", "all at 2026-07-28", at("2026-07-28"), 40),
    Run("server", "all, each at its own", ("--suite", "all"), 65, TASKS),
    *(Run("server", f"all, beside {dialect}", ("--suite", "all"), 65, TASKS, dialect=dialect) for dialect in NAMES),
    Run("client", "requirements 2025-11-25", ("--requirements", "2025-11-25"), 25),
    Run("client", "requirements 2026-07-28", ("--requirements", "2026-07-28"), 39),
    Run("client", "all at 2025-03-26", at("2025-03-26"), 2, pinned=True),
    Run("client", "all at 2025-06-18", at("2025-06-18"), 5, pinned=True),
    Run("client", "all at 2025-11-25", at("2025-11-25"), 19, pinned=True),
    Run("client", "all at 2026-07-28", at("2026-07-28"), 33, pinned=True),
    Run("client", "all, each at its own", ("--suite", "all"), 48),
)
