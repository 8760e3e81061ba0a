"""Commands that tests start, and what is left of them."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from longshore.sandbox.descendants import adopt, children
from longshore.sandbox.launch import Launch
from longshore.toolsets.terminal.command import Command, start_command

PATIENCE = 60.0
"""Seconds that anything may take here before the test fails."""
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


@asynccontextmanager
async def running(launch: Launch, **options: Any) -> AsyncIterator[Command]:
    """A command that is closed afterwards."""
    adopt()
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
