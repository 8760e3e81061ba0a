"""Commands on a terminal: what they draw, which keys reach them, and what is left of them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.services import need_command

from longshore.sandbox.launch import Level
from longshore.toolsets.terminal.command import Command
from longshore.toolsets.terminal.output_pattern import OutputPattern

from .started import (
    PATIENCE,
    confined,
    finished,
    launch_of,
    on_terminal,
    open_files,
    own_children,
    running,
    shell,
    shown,
    until,
)

LEVELS: list[Level] = ["none", "limits", "read-only", "workspace"]


async def expect(command: Command, pattern: str, after: int = 0) -> None:
    assert await command.wait(PATIENCE, pattern=OutputPattern(pattern), after=after) == "match", shown(command)


async def drawn(command: Command, text: str) -> str:
    """The screen, once it shows a text."""
    screen = command.screen
    assert screen is not None
    await until(lambda: text in screen.text())
    return screen.text()


@pytest.mark.parametrize("level", LEVELS)
async def test_a_shell_on_a_terminal_of_its_own(level: Level, tmp_path: Path) -> None:
    before = own_children(), open_files()
    async with running(confined(level, "/bin/sh", terminal=True, cwd=str(tmp_path)), terminal=True) as command:
        await expect(command, r"[$#] $")
        command.write(b"tty; stty size; echo $TERM; [ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo is''a; cat /dev/tty\r")
        await expect(command, "^isa$")
        text = await drawn(command, "isa")
        assert "not a tty" not in text and "30 120" in text and "xterm-256color" in text
        await until(lambda: command.waits_for_input)
        before_key = command.output.size
        command.press(["ctrl-c"])
        await expect(command, r"[$#] $", before_key)
        command.write(b"echo in''terrupted $?\r")
        await expect(command, "interrupted 130$")
        command.press(["ctrl-d"])
        assert await command.wait(PATIENCE) == "exit"
        assert command.exit_code == 0
    assert (own_children(), open_files()) == before


async def test_output_on_a_terminal_is_in_order_and_complete() -> None:
    command = await finished(on_terminal("/bin/sh", "-c", "seq 1 2000; echo error >&2; exit 4"), terminal=True)
    assert (command.output.lines, command.exit_code) == (2001, 4)
    assert command.output.tail(2, 100).text == "2000\nerror"
    assert command.screen is not None and command.screen.text().endswith("2000\nerror")


async def test_a_terminal_may_be_resized() -> None:
    source = "trap 'stty size' WINCH; echo ready; while :; do sleep 0.01; done"
    async with running(on_terminal("/bin/sh", "-c", source), terminal=True, rows=10, columns=40) as command:
        await expect(command, "ready")
        command.resize(20, 50)
        await expect(command, "^20 50$")
        assert command.screen is not None and command.screen.size == (20, 50)


async def test_given_input_is_typed() -> None:
    async with running(on_terminal("/bin/sh"), terminal=True, stdin=b"echo ty''ped\r") as command:
        await expect(command, "typed$")


async def test_less_pages_a_file(tmp_path: Path) -> None:
    need_command("less", "less")
    (tmp_path / "long").write_text("".join(f"line {number}\n" for number in range(1, 101)))
    launch = on_terminal("less", str(tmp_path / "long"))
    async with running(launch, terminal=True, rows=10, columns=40) as command:
        assert (await drawn(command, "line 9")).startswith("line 1\n")
        command.press(["page-down"])
        assert (await drawn(command, "line 18")).startswith("line 10\n")
        command.press(["down", "down", "up"])
        assert (await drawn(command, "line 19")).startswith("line 11\n")
        command.write(b"G")
        await drawn(command, "line 100")
        command.write(b"/line 5\r")
        command.write(b"gq")
        assert await command.wait(PATIENCE) == "exit"


async def test_vim_edits_a_file(tmp_path: Path) -> None:
    need_command("vim", "vim")
    path = tmp_path / "text"
    path.write_text("one\ntwo\n")
    async with running(on_terminal("vim", "-u", "NONE", "-n", str(path)), terminal=True) as command:
        await drawn(command, "two")
        command.write(b"Gothree")
        await drawn(command, "three")
        command.press(["escape"])
        command.write(b":wq\r")
        assert await command.wait(PATIENCE) == "exit"
    assert path.read_text() == "one\ntwo\nthree\n"


async def test_top_draws_its_table() -> None:
    need_command("top", "procps")
    async with running(on_terminal("top", "-d", "60"), terminal=True) as command:
        assert "%CPU" in await drawn(command, "PID")
        command.write(b"q")
        assert await command.wait(PATIENCE) == "exit"


async def test_a_python_prompt() -> None:
    async with running(on_terminal(sys.executable, "-q"), terminal=True) as command:
        await drawn(command, ">>>")
        command.write(b"6 * 7\r")
        await expect(command, "^42$")
        command.press(["up", "enter"])
        await until(lambda: shown(command).count("42") == 2)
        await until(lambda: command.waits_for_input)


async def test_a_read_of_the_terminal_is_a_wait_for_input() -> None:
    source = "printf 'no question'; read answer; echo got $answer; sleep 600"
    async with running(on_terminal("/bin/sh", "-c", source), terminal=True) as command:
        await until(lambda: command.waits_for_input)
        command.write(b"yes\r")
        await expect(command, "^got yes$")
        assert not command.waits_for_input


async def test_a_prompt_and_silence_are_a_wait_for_input() -> None:
    source = "import time; print('Continue? [Y/n] ', end='', flush=True); time.sleep(600)"
    async with running(launch_of(sys.executable, "-c", source)) as command:
        await until(lambda: command.waits_for_input)


@pytest.mark.parametrize("source", ["sleep 600", "echo done?; sleep 600", "printf working; sleep 600", "exit 0"])
async def test_other_commands_do_not_wait_for_input(source: str) -> None:
    async with running(shell(source)) as command:
        await command.wait(1.1)
        assert not command.waits_for_input


async def test_runaway_output_on_a_terminal_leaves_the_loop_to_others() -> None:
    async with running(on_terminal("yes"), terminal=True) as loud:
        await until(lambda: loud.output.size > 1 << 20)
        assert shown(await finished(shell("echo quiet"))) == "quiet\n"
