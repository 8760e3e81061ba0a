"""Commands that tests start, and what is left of them."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any

from longshore.sandbox.descendants import children
from longshore.sandbox.launch import Launch, Level
from longshore.sandbox.levels import Sandbox, make_sandbox
from longshore.toolsets.terminal.command import Command, start_command

PATIENCE = 30.0
"""Seconds that anything may take here before the test fails."""
NAP = f"sleep 600.{os.getpid()}"
"""A command that no other process runs."""
ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "LANG": "C.UTF-8",
    "TERM": "xterm",
    "PS1": "$ ",
    "LESS": "",
}


def launch_of(*argv: str, cwd: str = "/", **env: str) -> Launch:
    return Launch(argv, {**ENVIRONMENT, **env}, cwd)


def shell(text: str) -> Launch:
    return launch_of("/bin/sh", "-c", text)


def python(source: str) -> Launch:
    return launch_of(sys.executable, "-c", source)


@cache
def sandbox(level: Level) -> Sandbox:
    return make_sandbox(level)


def confined(level: Level, *argv: str, terminal: bool = False, cwd: str = "/") -> Launch:
    """A launch at one of the levels, as the tools make it."""
    return sandbox(level).launch(argv, cwd=cwd, env={}, roots=(cwd,), name="test", terminal=terminal)


def on_terminal(*argv: str) -> Launch:
    """A launch on a terminal that is its own, without a sandbox, to be started quickly."""
    return launch_of("setsid", "--ctty", "--wait", *argv)


@asynccontextmanager
async def running(launch: Launch, **options: Any) -> AsyncIterator[Command]:
    """A command that is closed afterwards."""
    command = start_command(launch, " ".join(launch.argv), **options)
    try:
        yield command
    finally:
        await command.close()


async def finished(launch: Launch, **options: Any) -> Command:
    """A command that has ended by itself."""
    async with running(launch, **options) as command:
        assert await command.wait(PATIENCE) == "exit"
        return command


def shown(command: Command) -> str:
    return command.output.ends(0, 6000).text


async def until(check: Any) -> Any:
    """Ask until the answer is true."""
    async with asyncio.timeout(PATIENCE):
        while not (found := check()):
            await asyncio.sleep(0.002)
        return found


def own_children() -> set[int]:
    return set(children(os.getpid()))


def open_files() -> set[str]:
    return set(os.listdir("/proc/self/fd"))


def command_lines(text: str) -> list[str]:
    """The command lines of running processes that hold a text."""
    found = list[str]()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue
    return [line for line in found if text in line]
