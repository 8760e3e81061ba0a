"""TM-5: commands end with a server that was killed by SIGKILL."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.waiting import eventually

from .started import command_lines

SERVER = """
import asyncio, sys
from longshore.sandbox.levels import make_sandbox
from longshore.toolsets.terminal.command import start_command

async def main(level, source, folder):
    for terminal in (False, True):
        argv = ["/bin/sh", "-c", source]
        launch = make_sandbox(level).launch(
            argv, cwd=folder, env={}, roots=[folder], name="test", terminal=terminal
        )
        command = start_command(launch, source, terminal=terminal)
        await command.wait(30, until="output")
    print("ready", flush=True)
    await asyncio.Event().wait()

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.parametrize("level", ["none", "limits", "read-only", "workspace"])
def test_tm_5_commands_end_with_a_killed_server(level: str, tmp_path: Path) -> None:
    number = str(6_000_000 + os.getpid() % 100_000)
    source = f"sleep {number} & setsid sleep {number} & trap '' HUP TERM; echo ready; sleep {number}"
    argv = [sys.executable, "-c", SERVER, level, source, str(tmp_path)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, start_new_session=True) as server:
        assert server.stdout is not None and server.stdout.readline() == b"ready\n"
        assert len(command_lines(f"sleep {number}")) >= 6
        server.send_signal(signal.SIGKILL)
    eventually("the end of the commands", lambda: not command_lines(f"sleep {number}"))
