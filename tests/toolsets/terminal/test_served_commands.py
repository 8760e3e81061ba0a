"""Commands of the built-in server as clients start it: a process that adopts the orphans of its commands."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest
from tests.counts import count

from longshore import Client
from longshore.sandbox.descendants import children

COMMANDS = ("true", "sleep 600 & echo x", "setsid sleep 600 & exit 3", "kill -9 $$")


@pytest.mark.parametrize("terminal", [False, True])
async def test_tm_9_commands_leave_no_process_with_a_server_that_adopts_orphans(terminal: bool, tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "longshore", "serve", "--root", str(tmp_path)]
    before = set(children(os.getpid()))
    async with Client(argv) as client:
        (server,) = set(children(os.getpid())) - before
        for number in range(min(1000, count(20))):
            command = COMMANDS[number % len(COMMANDS)]
            await client.call_tool("terminal_run", {"command": command, "pty": terminal})
            assert children(server) == [], command


async def test_tm_6_no_bytes_of_the_protocol_reach_a_command(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "longshore", "serve", "--root", str(tmp_path)]
    async with Client(argv) as client:
        reading = asyncio.gather(
            *(client.call_tool("terminal_run", {"command": "cat; cat /dev/stdin"}) for _ in range(4))
        )
        tools = [await client.list_tools(fresh=True) for _ in range(20)]
        assert all("exit code 0" in answer.text and answer.text.count("\n") == 0 for answer in await reading)
        assert all(len(each) == len(tools[0]) for each in tools)
