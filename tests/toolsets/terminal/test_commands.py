"""The table of commands: who may use which, how many run, and that nothing is left of them."""

from __future__ import annotations

import asyncio
import gc
import os
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.counts import count

from longshore.errors import ToolError
from longshore.sandbox.launch import Launch
from longshore.toolsets.terminal.command import Command, start_command
from longshore.toolsets.terminal.commands import Commands

from .started import PATIENCE, confined, launch_of, on_terminal, open_files, own_children, shell, shown, until


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@asynccontextmanager
async def table(**options: Any) -> AsyncIterator[Commands]:
    commands = Commands(**options)
    try:
        yield commands
    finally:
        await commands.close_all()


async def start(commands: Commands, launch: Launch, owner: str = "ann", **options: Any) -> tuple[str, Command]:
    return await commands.start(owner, lambda: start_command(launch, "x", **options))


async def test_a_command_belongs_to_its_owner() -> None:
    async with table() as commands:
        id, _ = await start(commands, launch_of("sleep", "600"))
        with commands.use("ann", id) as command:
            assert command.is_running
        with pytest.raises(ToolError, match="no command 'c1'"), commands.use("bob", id):
            pass
        assert list(commands.all("ann")) == [id] and commands.all("bob") == {}


async def test_a_finished_command_can_still_be_read() -> None:
    async with table() as commands:
        id, command = await start(commands, shell("echo x; exit 3"))
        await command.wait(PATIENCE)
        with commands.use("ann", id) as command:
            assert (shown(command), command.exit_code) == ("x\n", 3)


async def test_a_few_may_run_at_once() -> None:
    async with table(most_running=2) as commands:
        _, first = await start(commands, launch_of("sleep", "600"))
        await start(commands, launch_of("sleep", "600"))
        with pytest.raises(ToolError, match="no more than 2 commands may run at once: c1, c2; wait for one"):
            await start(commands, launch_of("sleep", "600"))
        await start(commands, launch_of("sleep", "600"), "bob")
        await first.end()
        assert (await start(commands, launch_of("sleep", "600")))[0] == "c3"


async def test_concurrent_starts_do_not_exceed_the_bound() -> None:
    async with table(most_running=2, most_finished=0) as commands:
        starts = [start(commands, launch_of("sleep", "600")) for _ in range(5)]
        ended = await asyncio.gather(*starts, return_exceptions=True)
        assert sum(isinstance(each, ToolError) for each in ended) == 3


async def test_the_oldest_finished_commands_are_forgotten() -> None:
    async with table(most_finished=2) as commands:
        for _ in range(5):
            _, command = await start(commands, launch_of("true"))
            await command.wait(PATIENCE)
        assert list(commands.all("ann")) == ["c4", "c5"]


async def test_a_command_that_can_not_start_leaves_no_entry() -> None:
    async with table() as commands:
        with pytest.raises(ToolError, match="there is no program"):
            await start(commands, launch_of("no-such-program"))
        assert commands.all("ann") == {}


async def test_tm_9_an_idle_terminal_is_ended() -> None:
    clock = Clock()
    async with table(clock=clock, idle_seconds=100) as commands:
        _, command = await start(commands, on_terminal("/bin/sh"), terminal=True)
        clock.now += 99
        await commands.expire()
        assert command.is_running
        clock.now += 1
        await commands.expire()
        assert not command.is_running and commands.all("ann") == {}


async def test_a_command_in_use_is_not_idle() -> None:
    clock = Clock()
    async with table(clock=clock, idle_seconds=100) as commands:
        id, command = await start(commands, launch_of("sleep", "600"))
        with commands.use("ann", id):
            clock.now += 1000
            await commands.expire()
            assert command.is_running


async def test_the_end_of_the_table_ends_all() -> None:
    before = own_children()
    async with table() as commands:
        started = [(await start(commands, launch_of("sleep", "600"), owner))[1] for owner in ("ann", "bob", "ann")]
    assert [command.is_running for command in started] == [False] * 3
    assert own_children() == before
    with pytest.raises(ToolError, match="the server is stopping"):
        await start(commands, launch_of("true"))


LAUNCHES = {
    "a pipe": lambda folder: launch_of("/bin/sh", "-c", "seq 1 40000; echo x"),
    "a terminal": lambda folder: on_terminal("/bin/sh", "-c", "echo x"),
    "confined": lambda folder: confined("workspace", "/bin/sh", "-c", "sleep 600 & echo x", cwd=folder),
}


@pytest.mark.parametrize("kind", LAUNCHES)
async def test_tm_9_many_commands_leave_nothing(
    kind: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    async with table() as warm:
        await (await start(warm, LAUNCHES[kind](str(tmp_path))))[1].wait(PATIENCE)  # which starts a thread that stays
    gc.collect()  # files of earlier tests would be closed meanwhile
    before = own_children(), open_files(), own_cgroups()
    async with table() as commands:
        for _ in range(min(1000, count(50 if kind == "confined" else 200))):
            launch = LAUNCHES[kind](str(tmp_path))
            _, command = await start(commands, launch, terminal=kind == "a terminal")
            assert await command.wait(PATIENCE) == "exit"
            assert (command.exit_code, command.output.last_line()) == (0, "x")
    assert (own_children(), open_files(), own_cgroups()) == before
    assert [*temporary.iterdir(), *tmp_path.iterdir()] == []


def own_cgroups() -> list[Path]:
    return list(Path("/sys/fs/cgroup").rglob(f"longshore-{os.getpid()}-*"))


async def test_tm_9_terminals_that_are_left_alone_leave_nothing() -> None:
    before = own_children(), open_files()
    for _ in range(count(5)):
        async with table() as commands:
            for _ in range(4):
                _, command = await start(commands, on_terminal("/bin/sh"), terminal=True)
                await command.wait(PATIENCE, until="output")
    await until(lambda: (own_children(), open_files()) == before)
