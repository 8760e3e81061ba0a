"""Commands: their output, exit code, input and end."""

from __future__ import annotations

import asyncio
import os
import resource
import sys
from pathlib import Path

import pytest
import uvloop
from tests.waiting import is_alive

from longshore.errors import ToolError
from longshore.sandbox.descendants import descendants
from longshore.sandbox.launch import Launch, Level
from longshore.toolsets.terminal.command import start_command
from longshore.toolsets.terminal.command_input import MOST_WAITING
from longshore.toolsets.terminal.output_pattern import MOST_CHARACTERS, OutputPattern

from .started import (
    ENVIRONMENT,
    NAP,
    PATIENCE,
    command_lines,
    confined,
    finished,
    launch_of,
    on_terminal,
    open_files,
    own_children,
    python,
    running,
    shell,
    shown,
    until,
)

FOREVER = "import signal; signal.pause()"


async def test_a_finished_command_has_output_exit_code_and_duration() -> None:
    command = await finished(shell("echo one; echo two >&2; echo three; exit 3"))
    assert shown(command) == "one\ntwo\nthree\n"
    assert (command.exit_code, command.signal, command.is_running) == (3, "", False)
    assert 0 < command.seconds == command.seconds < PATIENCE
    assert command.cpu_seconds == 0


async def test_a_command_that_a_signal_ended_says_which() -> None:
    command = await finished(shell("kill -SEGV $$"))
    assert (command.exit_code, command.signal) == (139, "SIGSEGV")


async def test_a_signal_without_a_name_has_its_exit_code() -> None:
    command = await finished(shell("kill -40 $$"))
    assert (command.exit_code, command.signal) == (168, "")


async def test_it_runs_in_its_folder_with_its_environment_only(tmp_path: Path) -> None:
    command = await finished(launch_of("/bin/sh", "-c", "pwd; env", cwd=str(tmp_path), X="1"))
    lines = shown(command).splitlines()
    assert lines[0] == str(tmp_path) and "X=1" in lines
    assert {line.partition("=")[0] for line in lines[1:]} <= {
        *ENVIRONMENT,
        "X",
        "PWD",
        "OLDPWD",
        "_",
        "SHLVL",
    }


@pytest.mark.parametrize("terminal", [False, True])
async def test_descriptors_are_passed_on(terminal: bool) -> None:
    reader, writer = os.pipe()
    os.write(writer, b"passed")
    os.close(writer)
    argv = (sys.executable, "-c", f"import os; print(os.read({reader}, 100).decode())")
    command = await finished(Launch(argv, ENVIRONMENT, "/", (reader,)), terminal=terminal)
    os.close(reader)
    assert shown(command) == "passed\n"


@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize(
    ("launch", "said"),
    [
        (launch_of("no-such-program"), "there is no program 'no-such-program'; install it"),
        (launch_of("true", cwd="/no/such/folder"), "there is no folder '/no/such/folder'"),
        (launch_of("echo", "a\0b"), "leave out NUL"),
    ],
)
async def test_what_can_not_be_started_says_why(launch: Launch, said: str, terminal: bool) -> None:
    before = open_files()
    with pytest.raises(ToolError, match=said):
        start_command(launch, "x", terminal=terminal)
    assert open_files() == before


async def test_a_file_that_is_not_executable_says_so(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("echo x")
    with pytest.raises(ToolError, match="is not executable"):
        start_command(launch_of(str(tmp_path / "x")), "x")


# -- input


async def test_tm_6_the_command_has_no_input_of_ours() -> None:
    command = await finished(shell("cat; readlink /proc/self/fd/0"))
    assert shown(command) == "/dev/null\n"


async def test_given_input_is_read_to_its_end() -> None:
    data = b"0123456789abcdef" * 50_000
    command = await finished(launch_of("sha256sum"), stdin=data)
    from hashlib import sha256

    assert shown(command).split()[0] == sha256(data).hexdigest()


async def test_input_that_nobody_reads_does_no_harm() -> None:
    command = await finished(shell("exec <&-; echo done"), stdin=b"x" * 500_000)
    assert shown(command) == "done\n" and command.exit_code == 0


@pytest.mark.parametrize("size", [MOST_WAITING - 1, MOST_WAITING])
async def test_much_input_is_taken(size: int) -> None:
    assert shown(await finished(launch_of("wc", "-c"), stdin=b"x" * size)).strip() == str(size)


@pytest.mark.parametrize("terminal", [False, True])
async def test_too_much_input_is_refused_before_anything_starts(terminal: bool) -> None:
    before = own_children()
    with pytest.raises(ToolError, match="at most 1,048,576 can be given: put them into a file"):
        start_command(launch_of("cat"), "cat", stdin=b"x" * (MOST_WAITING + 1), terminal=terminal)
    assert own_children() == before


async def test_a_command_without_a_terminal_takes_no_text() -> None:
    async with running(launch_of("sleep", "600")) as command:
        with pytest.raises(ToolError, match="start it with pty=true"):
            command.write(b"x")
        with pytest.raises(ToolError, match="ctrl-c and"):
            command.press(["up"])


async def test_a_finished_command_takes_nothing() -> None:
    command = await finished(launch_of("true"))
    with pytest.raises(ToolError, match="has ended"):
        command.write(b"x")


@pytest.mark.parametrize(("key", "name"), [("ctrl-c", "SIGINT"), ("ctrl-\\", "SIGQUIT")])
async def test_ctrl_c_interrupts_a_command_without_a_terminal(key: str, name: str) -> None:
    async with running(launch_of("sleep", "600")) as command:
        command.press([key])
        assert await command.wait(PATIENCE) == "exit"
        assert command.signal == name


# -- waiting


async def test_a_wait_ends_with_its_time() -> None:
    async with running(launch_of("sleep", "600")) as command:
        assert await command.wait(0) == "time"
        assert await command.wait(0.01) == "time"
        assert command.is_running and command.seconds > 0


async def test_a_wait_for_output() -> None:
    async with running(python(f"print('x', flush=True); {FOREVER}")) as command:
        assert await command.wait(PATIENCE, until="output") == "output"
        assert await command.wait(PATIENCE, until="output") == "output"  # what was printed before counts too
        assert await command.wait(0.01, until="output", after=command.output.size) == "time"


async def test_a_wait_for_a_pause() -> None:
    source = f"import time\nfor n in range(5): print(n, flush=True); time.sleep(0.002)\n{FOREVER}"
    async with running(python(source)) as command:
        assert await command.wait(PATIENCE, until="quiet", quiet_seconds=0.5) == "quiet"
        assert shown(command) == "0\n1\n2\n3\n4\n"


async def test_a_wait_for_a_pattern_over_parts_of_output() -> None:
    source = f"""
import sys, time
for part in ('x\\nrea', 'dy on 80', '80\\n'):
    sys.stdout.write(part)
    sys.stdout.flush()
    time.sleep(0.01)
{FOREVER}"""
    async with running(python(source)) as command:
        assert await command.wait(PATIENCE, pattern=OutputPattern(r"^ready on (\d+)$")) == "match"
        assert await command.wait(PATIENCE, pattern=OutputPattern("(?i)READY")) == "match"
        assert await command.wait(0.01, pattern=OutputPattern("absent")) == "time"
        assert await command.wait(0.01, pattern=OutputPattern("ready"), after=command.output.size) == "time"


async def test_a_pattern_is_found_in_the_output_of_a_finished_command() -> None:
    command = await finished(shell("seq 1 100000"))
    assert await command.wait(PATIENCE, pattern=OutputPattern("^99999$")) == "match"
    assert await command.wait(PATIENCE, pattern=OutputPattern("^absent$")) == "exit"


async def test_colours_do_not_hide_a_match() -> None:
    command = await finished(launch_of("printf", "\\033[32mre\\033[1mady\\033[0m\\n"))
    assert await command.wait(PATIENCE, pattern=OutputPattern("^ready$")) == "match"


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)+$", "(.*a){12}b"])
async def test_a_catastrophic_pattern_is_matched_in_linear_time(pattern: str) -> None:
    command = await finished(python("print('a' * 5000 + 'b')"))
    assert await command.wait(PATIENCE, pattern=OutputPattern(pattern)) in ("exit", "match")


@pytest.mark.parametrize("pattern", ["(", "(?=x)", r"(a)\1", "", "x" * (MOST_CHARACTERS + 1)])
def test_a_pattern_that_can_not_be_matched_is_refused(pattern: str) -> None:
    with pytest.raises(ToolError, match="pattern"):
        OutputPattern(pattern)


@pytest.mark.parametrize("size", [1, MOST_CHARACTERS - 1, MOST_CHARACTERS])
def test_a_pattern_may_be_long(size: int) -> None:
    assert OutputPattern("x" * size).feed(b"x" * size)


async def test_a_wait_for_the_end_reads_no_output_again(monkeypatch: pytest.MonkeyPatch) -> None:
    command = await finished(shell("seq 1 100000"))
    monkeypatch.setattr(type(command.output), "read", None)
    assert await command.wait(PATIENCE) == "exit"


async def test_two_waits_at_once() -> None:
    async with running(python(f"print('x', flush=True); {FOREVER}")) as command:
        waits = command.wait(PATIENCE, until="output"), command.wait(PATIENCE, pattern=OutputPattern("x"))
        assert await asyncio.gather(*waits) == ["output", "match"]


# -- the end


async def test_end_kills_the_whole_tree() -> None:
    async with running(shell("sleep 600 & sleep 601 & (sleep 602 & wait) & echo $!; wait")) as command:
        await command.wait(PATIENCE, until="output")
        members = await until(lambda: len(found := descendants(command.pid)) >= 4 and found)
        await command.end()
        await until(lambda: not any(map(is_alive, members)))
        assert command.signal == "SIGTERM"


async def test_a_stopped_process_is_ended_too() -> None:
    async with running(shell("echo x; kill -STOP $$; echo y")) as command:
        await command.wait(PATIENCE, until="output")
        await command.end()
        assert command.signal == "SIGTERM"


async def test_a_command_may_clean_up_when_it_is_ended() -> None:
    source = """
import os, signal
signal.signal(signal.SIGTERM, lambda *_: (os.write(1, b'clean\\n'), os._exit(7)))
print('ready', flush=True)
signal.pause()"""
    async with running(python(source)) as command:
        await command.wait(PATIENCE, until="output")
        await command.end()
        assert (shown(command), command.exit_code) == ("ready\nclean\n", 7)


DEAF = """
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print('ready', flush=True)
while True: signal.pause()"""


async def test_a_command_that_ignores_sigterm_is_killed() -> None:
    async with running(python(DEAF)) as command:
        await command.wait(PATIENCE, until="output")
        await command.end(0.01)
        assert command.signal == "SIGKILL"


async def test_an_end_goes_on_when_its_caller_is_cancelled() -> None:
    async with running(python(DEAF)) as command:
        await command.wait(PATIENCE, until="output")
        ending = asyncio.ensure_future(command.end(0.01))
        await asyncio.sleep(0)
        ending.cancel()
        assert await command.wait(PATIENCE) == "exit"
        assert command.signal == "SIGKILL"


async def test_the_end_is_found_without_pidfd(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "pidfd_open")
    command = await finished(shell("exit 5"))
    assert command.exit_code == 5


DAEMON = """
import os, signal, sys, time
if os.fork() == 0:
    os.setsid()
    if sys.argv[1:] == ["deaf"]:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    daemon = os.fork()
    if daemon == 0:
        if sys.argv[1:] == ["closed"]:
            os.closerange(0, 100)
        time.sleep(600)
    print(daemon, flush=True)
    os._exit(0)
os.wait()
"""
LEFT_BEHIND = {
    "a child": ("/bin/sh", "-c", "sleep 600 & echo $!"),
    "a child in its own session": ("/bin/sh", "-c", "setsid sleep 600 & echo $!"),
    "two sessions deep": ("/bin/sh", "-c", "setsid sh -c 'setsid sleep 600 & echo $!'"),
    "one that goes on printing": ("/bin/sh", "-c", "yes & echo $!"),
    "a double fork": (sys.executable, "-c", DAEMON),
    "a double fork that closes all": (sys.executable, "-c", DAEMON, "closed"),
    "a double fork that ignores SIGTERM": (sys.executable, "-c", DAEMON, "deaf"),
}


@pytest.mark.parametrize("argv", LEFT_BEHIND.values(), ids=LEFT_BEHIND)
async def test_tm_5_a_process_left_behind_neither_delays_the_answer_nor_survives(argv: tuple[str, ...]) -> None:
    before = own_children()
    command = await finished(confined("none", *argv))
    assert command.exit_code == 0
    assert not is_alive(int(shown(command).split()[0]))
    assert own_children() == before


LEVELS: list[Level] = ["limits", "read-only", "workspace"]


@pytest.mark.parametrize("level", LEVELS)
async def test_tm_5_nothing_is_left_at_any_level(level: Level, tmp_path: Path) -> None:
    before = own_children(), open_files()
    launch = confined(level, "/bin/sh", "-c", f"setsid {NAP} & {NAP} & echo x; exit 3", cwd=str(tmp_path))
    command = await finished(launch)
    assert (shown(command), command.exit_code) == ("x\n", 3)
    assert command_lines(NAP) == []
    assert (own_children(), open_files()) == before


@pytest.mark.parametrize("level", ["none", *LEVELS])
async def test_a_confined_command_is_ended_with_its_tree(level: Level, tmp_path: Path) -> None:
    launch = confined(level, "/bin/sh", "-c", f"{NAP} & setsid {NAP} & echo x; wait", cwd=str(tmp_path))
    async with running(launch) as command:
        await command.wait(PATIENCE, until="output")
        await command.end()
        assert (command.exit_code, command.signal) == (143, "SIGTERM")
        assert command_lines(NAP) == []


@pytest.mark.parametrize("level", ["none", *LEVELS])
async def test_a_confined_command_that_ignores_sigterm_is_killed(level: Level, tmp_path: Path) -> None:
    source = f"trap '' TERM; setsid {NAP} & echo ready; while :; do {NAP}; done"
    async with running(confined(level, "/bin/sh", "-c", source, cwd=str(tmp_path))) as command:
        await command.wait(PATIENCE, until="output")
        await command.end(0.01)
        assert command.signal == "SIGKILL"
        assert command_lines(NAP) == []


async def test_output_before_the_end_is_complete() -> None:
    for _ in range(20):
        command = await finished(shell("seq 1 20000"))
        assert command.output.lines == 20_000


@pytest.mark.parametrize("argv", [("yes",), ("cat", "/dev/urandom"), ("cat", "/dev/zero")])
async def test_tm_4_runaway_output_costs_little_memory(argv: tuple[str, ...]) -> None:
    async with running(launch_of(*argv)) as command:
        await until(lambda: command.output.size > 30 << 20)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        size = command.output.size
        await until(lambda: command.output.size > size + (100 << 20))
        shown(command)
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2048
        assert command.output.dropped > 0
        assert command.is_running


async def test_tm_4_a_line_of_a_gigabyte_is_read_to_its_end() -> None:
    command = await finished(shell("head -c 1073741824 /dev/zero | tr '\\0' x; echo"))
    assert (command.output.size, command.output.lines, command.exit_code) == ((1 << 30) + 1, 1, 0)
    text = shown(command)
    assert text.startswith("xxx") and " bytes left out …]" in text and text.endswith("xxx\n")


async def test_others_run_while_a_command_prints() -> None:
    async with running(launch_of("yes")) as loud:
        await until(lambda: loud.output.size > 1 << 20)
        assert shown(await finished(shell("echo quiet"))) == "quiet\n"


def test_uvloop_runs_commands_too() -> None:
    async def run() -> None:
        before = open_files()
        for _ in range(5):
            assert shown(await finished(shell("echo x"))) == "x\n"
            assert shown(await finished(on_terminal("echo", "x"), terminal=True)) == "x\n"
            async with running(launch_of("sleep", "600")) as command:
                assert await command.wait(0.01) == "time"
        assert open_files() == before

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(finished(launch_of("true")))
        runner.run(run())


async def test_the_processor_time_of_a_running_command() -> None:
    async with running(shell("while :; do :; done")) as command:
        await until(lambda: command.cpu_seconds > 0)


async def test_nothing_is_left_of_a_command() -> None:
    await finished(launch_of("true"))  # the thread that closes launches stays
    files, processes = open_files(), own_children()
    for terminal in (False, True):
        async with running(shell("seq 1 100000; sleep 600"), terminal=terminal) as command:
            await until(lambda command=command: command.output.lines >= 100_000)
        assert command.output.ends(0, 1000).text.startswith("1")
    assert (open_files(), own_children()) == (files, processes)
