"""Desktop Commander, as it is measured: without a network, in a home folder of its own, telemetry off."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

from benchmarks.environment import BENCH, HERE, SetupFailed, node_server
from benchmarks.load import LoadFailed
from benchmarks.stdio_server import StdioServer

COMMANDER_PACKAGE = "@wonderwhy-er/desktop-commander"
PINS = HERE / "node"
TIMEOUT_MS = 30_000
"""Which `start_process` requires. No command here takes a second."""
# Those of somebody who has used it for a while: it neither asks for feedback nor shows a welcome page.
SETTINGS = {
    "telemetryEnabled": False,
    "feedbackGiven": True,
    "pendingWelcomeOnboarding": False,
    "welcomeOnboardingEligible": False,
    "defaultShell": "/bin/bash",
}


class DesktopCommander(StdioServer):
    """It runs in a network namespace of its own, whose only interface is down."""

    def __init__(self, *, folder: Path, home: Path) -> None:
        command = [*without_network(), *commander_command(folder, home)]
        super().__init__(command, folder=folder, home=home)

    def check_network(self) -> None:
        """Raise LoadFailed if it has sent a byte to anybody."""
        _, _, *interfaces = Path(f"/proc/{self.pid}/net/dev").read_text().splitlines()
        for interface in interfaces:
            name, _, counts = interface.partition(":")
            if counts.split()[8] != "0":
                raise LoadFailed(f"Desktop Commander sent {counts.split()[8]} bytes through {name.strip()}")


def commander_command(folder: Path, home: Path) -> list[str]:
    """The command of Desktop Commander for a folder. Its settings are written into the home folder."""
    node, program = node_server(COMMANDER_PACKAGE, PINS, BENCH / "node")
    settings = home / ".claude-server-commander" / "config.json"
    settings.parent.mkdir(parents=True)
    settings.write_text(json.dumps({**SETTINGS, "allowedDirectories": [str(folder)]}))
    return [node, "--require", str(PINS / "no_container.cjs"), program, "--no-onboarding"]


def without_network() -> list[str]:
    """A command in front of another one: that one becomes the process, in a network namespace of its own."""
    unshare = shutil.which("unshare")
    if unshare is None:
        raise SetupFailed("Desktop Commander runs without a network only: install unshare (util-linux)")
    return [unshare, "--net"] if os.geteuid() == 0 else [unshare, "--map-current-user", "--net"]
