"""The terminal tools, as a client sees them."""

from __future__ import annotations

import asyncio
import json
import os
import re
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET
from tests.sandbox.confined_commands import BYPASSES

from longshore import Client, Server
from longshore.config import load
from longshore.errors import LongshoreError, SandboxUnavailable, ToolFailed
from longshore.registry.token_budget import LEAST_TOKENS, count_tokens
from longshore.sandbox.launch import Launch
from longshore.sandbox.levels import make_sandbox
from longshore.toolsets.terminal import tools
from longshore.toolsets.terminal.options import TerminalOptions
from longshore.toolsets.terminal.tools import Terminal
from talk import ERAS, call, result, text

from .started import NAP, PATIENCE, command_lines, open_files, own_children, until

LISTING_TOKENS = 800


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The server's only folder."""
    folder = Path(os.path.realpath(tmp_path)) / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PWD", str(folder))
    return folder


def serve(**options: Any) -> Server:
    app = Server("terminal")
    app.add_toolset(Terminal(TerminalOptions(**options)))
    return app


@asynccontextmanager
async def connected(app: Server | None = None, **options: Any) -> AsyncIterator[Client]:
    async with Client(serve() if app is None else app, **options) as client:
        yield client


async def ask(client: Client, name: str, **arguments: Any) -> str:
    """The only text of an answer that is no error."""
    answer = await client.call_tool(f"terminal_{name}", arguments)
    assert answer.structured is UNSET, "the text is sent once"
    return answer.text


async def refusal(client: Client, name: str, **arguments: Any) -> str:
    with pytest.raises(ToolFailed) as caught:
        await client.call_tool(f"terminal_{name}", arguments)
    return str(caught.value)


# -- the list


@pytest.mark.parametrize("revision", ERAS)
def test_the_five_tools_cost_a_model_few_tokens(revision: str) -> None:
    listed = result(serve(), "tools/list", revision=revision)["tools"]
    assert [tool["name"].partition("_")[2] for tool in listed] == ["run", "read", "send", "kill", "list"]
    assert len(json.dumps(listed, separators=(",", ":"), ensure_ascii=False)) <= 4 * LISTING_TOKENS
    assert not any("outputSchema" in tool for tool in listed)


# -- running


async def test_a_command_answers_with_output_exit_code_and_duration(folder: Path) -> None:
    async with connected() as client:
        answer = await ask(client, "run", command="echo one; echo two >&2; exit 3")
        assert re.fullmatch(r"one\ntwo\n\[c1: exit code 3 after [\d.]+ s\]", answer)
        assert re.fullmatch(r"\[c2: exit code 0 after [\d.]+ s\]", await ask(client, "run", command="true"))


async def test_a_signal_is_named(folder: Path) -> None:
    async with connected() as client:
        assert "[c1: exit code 137 (SIGKILL) after " in await ask(client, "run", command="kill -9 $$")


async def test_tm_1_metacharacters_in_argv_are_inert(folder: Path) -> None:
    async with connected() as client:
        answer = await ask(client, "run", argv=["echo", "a; touch pwn", "$(id)", "`id`", "&& x", "| y"])
        assert answer.startswith("a; touch pwn $(id) `id` && x | y\n") and not (folder / "pwn").exists()


async def test_folder_environment_and_input(folder: Path) -> None:
    (folder / "sub").mkdir()
    async with connected() as client:
        answer = await ask(client, "run", command="pwd; echo $X; cat", cwd="sub", env={"X": "1"}, stdin="given\n")
        assert answer.startswith(f"{folder}/sub\n1\ngiven\n[c1")
        assert (await ask(client, "run", command="pwd", cwd=str(folder))).startswith(f"{folder}\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "give either command"),
        ({"command": "x", "argv": ["x"]}, "give either command"),
        ({"command": " "}, "command is empty"),
        ({"argv": []}, "argv is empty"),
        ({"command": "x", "cwd": "/etc"}, "outside the folders"),
        ({"command": "x", "cwd": "../.."}, "outside the folders"),
        ({"command": "x", "cwd": "absent"}, "there is no folder 'absent'"),
        ({"command": "a\0b"}, "NUL"),
        ({"command": "x", "cwd": "a\0b"}, "NUL"),
        ({"command": "x", "env": {"": "x"}}, "'' can't be the name of a variable"),
        ({"command": "x" * (128 << 10)}, "put it into a file"),
        ({"command": "x", "timeout_ms": 0}, "give 1 to"),
    ],
)
async def test_wrong_arguments_say_what_to_do(folder: Path, arguments: dict[str, Any], said: str) -> None:
    before = own_children()
    async with connected() as client:
        assert said in await refusal(client, "run", **arguments)
        assert await ask(client, "list") == "no commands"
    assert own_children() == before


async def test_long_output_shows_both_ends_and_the_log_has_all(folder: Path) -> None:
    async with connected() as client:
        answer = await client.call_tool("terminal_run", {"command": "seq 1 200000"})
        text, link = answer.content
        assert text.text.startswith("1\n2\n") and "\n200000\n[c1: exit code 0" in text.text
        assert " lines, " in text.text and " bytes left out; the log has them …]" in text.text
        assert count_tokens(text.text) <= 6000
        log = await client.read_resource(link.uri)
        assert log[0].text is not None and log[0].text.startswith("1\n2\n3\n") and link.size == 1_288_895
        again = await client.call_tool("terminal_read", {"id": "c1"})
        assert again.text.startswith("[c1: exit code 0")


async def test_a_budget_is_kept(folder: Path) -> None:
    async with connected() as client:
        answer = await client.call_tool("terminal_run", {"command": "seq 1 9999", "max_tokens": LEAST_TOKENS})
        assert count_tokens(answer.content[0].text) <= LEAST_TOKENS + 20


# -- time


async def test_a_command_over_its_time_is_ended(folder: Path) -> None:
    async with connected() as client:
        answer = await ask(client, "run", command=f"echo x; {NAP}", timeout_ms=300)
        assert re.fullmatch(r"x\n\[c1: exit code 143 \(SIGTERM\) after .*, ended because its time was over\]", answer)
        assert command_lines(NAP) == []


async def test_a_command_may_go_on_after_its_time(folder: Path) -> None:
    async with connected() as client:
        answer = await ask(client, "run", command=f"echo x; {NAP}", timeout_ms=300, on_timeout="background")
        assert re.fullmatch(r"x\n\[c1: running for .* s; more: terminal_read\]", answer)
        assert len(command_lines(NAP)) > 0


async def test_a_long_command_answers_in_time_and_goes_on(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "ANSWER_SECONDS", 0.5)
    os.mkfifo(folder / "go")
    async with connected() as client:
        assert "x\n[c1: running for " in await ask(client, "run", command="echo x; read line < go; echo y")
        assert "[c1: running for " in await ask(client, "read", id="c1", timeout_ms=10)
        with open(folder / "go", "w") as file:
            file.write("\n")
        monkeypatch.undo()
        assert (await ask(client, "read", id="c1", wait="exit")).startswith("y\n[c1: exit code 0")


async def test_the_servers_timeout_does_not_end_a_command(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "ANSWER_SECONDS", 0.5)
    app = serve()
    app.config = load({"server.timeout": 0.1})
    async with connected(app) as client:
        assert "[c1: running for " in await ask(client, "run", command=NAP)
        assert "[c1: running for " in await ask(client, "read", id="c1", wait="exit")


async def test_the_last_line_is_reported_as_progress(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "PROGRESS_SECONDS", 0.01)
    os.mkfifo(folder / "go")
    lines = list[str | None]()

    async with connected() as client:

        def report(done: float, total: float | None, message: str | None) -> None:
            lines.append(message)
            if message == "half":
                with open(os.open(folder / "go", os.O_WRONLY | os.O_NONBLOCK), "w") as file:
                    file.write("x\n")

        arguments = {"command": "echo begin; echo half; read line < go; echo end"}
        answer = await client.call_tool("terminal_run", arguments, on_progress=report)
        assert "end\n[c1: exit code 0" in answer.text and "half" in lines


async def test_a_command_in_the_background(folder: Path) -> None:
    async with connected() as client:
        assert "[c1: running for " in await ask(client, "run", command=NAP, background=True)
        assert "exit code 127" in await ask(client, "run", command="no-such-program", background=True)
        listed = await ask(client, "list")
        assert re.search(rf"^c1: running for .*, cpu .*: {NAP}$", listed, re.MULTILINE)
        assert re.search(r"^c2: exit code 127 .*: no-such-program \| .*not found$", listed, re.MULTILINE)
        assert "[c1: exit code 143 (SIGTERM)" in await ask(client, "kill", id="c1")
        assert command_lines(NAP) == []
        assert "[c1: exit code 143" in await ask(client, "kill", id="c1")


async def test_tm_5_a_cancelled_call_ends_its_command(folder: Path) -> None:
    async with connected() as client:
        call = asyncio.ensure_future(client.call_tool("terminal_run", {"command": f"echo x; {NAP}"}))
        await until(lambda: command_lines(NAP))
        call.cancel()
        await until(lambda: not command_lines(NAP))


class SlowSandbox:
    """A sandbox that waits in `launch`, on its thread, until it is told to go on."""

    def __init__(self) -> None:
        self.begun, self.go_on, self.made = threading.Event(), threading.Event(), False

    def launch(self, *argv: Any, **options: Any) -> Launch:
        self.begun.set()
        self.go_on.wait(PATIENCE)
        launch = make_sandbox("workspace").launch(*argv, **options)
        self.made = True
        return launch


async def test_tm_9_a_call_that_is_cancelled_before_its_command_starts_leaves_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = SlowSandbox()
    monkeypatch.setattr("longshore.toolsets.terminal.options.make_sandbox", lambda options: slow)
    async with connected() as client:
        call = asyncio.ensure_future(ask(client, "run", command="true"))
        await until(slow.begun.is_set)
        before = open_files()
        call.cancel()
        assert await ask(client, "list") == "no commands"  # so the server knows of the cancellation
        slow.go_on.set()
        await until(lambda: slow.made and open_files() == before)


async def test_the_end_of_the_server_ends_all(folder: Path) -> None:
    before = own_children()
    async with connected() as client:
        await ask(client, "run", command=f"{NAP} & setsid {NAP}; wait", background=True)
    await until(lambda: not command_lines(NAP))
    await until(lambda: own_children() == before)


async def test_the_coarse_tool_runs_a_command(folder: Path) -> None:
    (folder / "sub").mkdir()
    async with connected() as client:
        arguments = {"command": "pwd; echo $X", "cwd": "sub", "timeout": 60, "env": {"X": "1"}}
        answer = (await client.call_tool("terminal", arguments)).text
        assert answer.startswith(f"{folder}/sub\n1\n[c1: exit code 0")
        with pytest.raises(ToolFailed, match="timeout=-1: give more than 0 seconds"):
            await client.call_tool("terminal", {"command": "true", "timeout": -1})
        assert "terminal" not in [tool.name for tool in await client.list_tools()]


async def test_a_command_of_the_coarse_tool_fails_beyond_its_timeout(folder: Path) -> None:
    async with connected() as client:
        with pytest.raises(ToolFailed) as failed:
            await client.call_tool("terminal", {"command": f"echo begun; {NAP}", "timeout": 0.3})
        said = str(failed.value)
        assert "the command did not end within 0.3 s (its timeout). It had printed:\nbegun\n[c1: exit code 143" in said


async def test_long_output_of_the_coarse_tool_is_one_text_that_says_how_to_get_the_rest(folder: Path) -> None:
    async with connected() as client:
        answer = await client.call_tool("terminal", {"command": "seq 1 40000"})
        assert len(answer.content) == 1
        head, mark, tail = answer.text.partition("left out; terminal_read id=c1 cursor=0 has them")
        assert head.startswith("1\n2\n") and mark and "\n40000\n[c1: exit code 0" in tail
        assert (await ask(client, "read", id="c1", cursor=0)).startswith("1\n2\n")


async def test_the_coarse_tool_waits_for_the_end_however_long_others_wait(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tools, "ANSWER_SECONDS", 0.1)
    async with connected() as client:
        answer = (await client.call_tool("terminal", {"command": "sleep 0.5; echo x"})).text
        assert answer.startswith("x\n[c1: exit code 0")


# -- reading


async def test_only_new_output_is_read_again(folder: Path) -> None:
    os.mkfifo(folder / "go")
    async with connected() as client:
        first = await ask(client, "run", command="echo one; read line < go; echo two", background=True)
        assert first.startswith("one\n")
        with open(folder / "go", "w") as file:
            file.write("\n")
        assert (await ask(client, "read", id="c1", wait="exit")).startswith("two\n[c1: exit code 0")
        assert (await ask(client, "read", id="c1", cursor=0)).startswith("one\ntwo\n[cursor=8]\n[c1")
        assert (await ask(client, "read", id="c1", tail=1)).startswith("two\n[c1")


async def test_a_pattern_is_waited_for(folder: Path) -> None:
    async with connected() as client:
        source = f"for i in 1 2 3; do echo line $i; done; echo listening on 8080; {NAP}"
        await ask(client, "run", command=source, background=True)
        assert "listening on 8080" in await ask(client, "read", id="c1", cursor=0, pattern=r"listening on \d+")
        missed = await ask(client, "read", id="c1", pattern="listening", timeout_ms=10)
        assert "running for" in missed and missed.endswith(
            "[no match of 'listening' in new output; cursor=0 looks in all of it]"
        )
        assert "look-around" in await refusal(client, "read", id="c1", pattern="(?=x)")


async def test_pages_by_cursor(folder: Path) -> None:
    async with connected() as client:
        await client.call_tool("terminal_run", {"command": "seq 1 20000"})
        cursor, seen = 0, list[str]()
        for _ in range(30):
            page = await ask(client, "read", id="c1", cursor=cursor)
            seen += [line for line in page.split("\n") if line.isdigit()]
            if (following := int(re.findall(r"\[cursor=(\d+)\]", page)[-1])) == cursor:
                break
            cursor = following
        assert seen == [str(number) for number in range(1, 20_001)]


@pytest.mark.parametrize(
    ("timeout_ms", "is_allowed"), [(0, False), (1, True), (24999, True), (25000, True), (25001, False)]
)
async def test_a_read_waits_25_seconds_at_most(folder: Path, timeout_ms: int, is_allowed: bool) -> None:
    async with connected() as client:
        await ask(client, "run", command="true")
        answer = await client.call_tool("terminal_read", {"id": "c1", "timeout_ms": timeout_ms}, check=False)
        assert answer.is_error is not is_allowed
        assert is_allowed or "give 1 to 25000" in answer.text


async def test_another_id_is_refused(folder: Path) -> None:
    async with connected() as client:
        for name, more in (("read", {}), ("send", {"text": "x"}), ("kill", {})):
            assert "no command 'c9'; you have no open command" in await refusal(client, name, id="c9", **more)
        await ask(client, "run", command="true")
        assert "has no screen: run it with pty" in await refusal(client, "read", id="c1", screen=True)


# -- terminals


async def test_a_shell_is_spoken_to(folder: Path) -> None:
    async with connected() as client:
        await ask(client, "run", command="sh", pty=True, background=True)
        answer = await ask(client, "send", id="c1", text="echo $((6 * 7))", keys=["enter"])
        assert "42" in answer
        await until_text(client, "it seems to wait for input: terminal_send")
        assert "42" in await ask(client, "read", id="c1", screen=True)
        await ask(client, "send", id="c1", text="exit 5\n")
        assert "exit code 5" in await ask(client, "read", id="c1", wait="exit")
        assert "has ended" in await refusal(client, "send", id="c1", text="x")


async def until_text(client: Client, said: str) -> None:
    async with asyncio.timeout(30):
        while said not in await ask(client, "read", id="c1"):
            pass


async def test_a_run_answers_when_its_terminal_waits_for_input(folder: Path) -> None:
    async with connected() as client:
        answer = await ask(client, "run", command="printf 'Name: '; read name; echo hello $name", pty=True)
        assert answer.startswith("Name: \n[c1: running for") and "it seems to wait for input: terminal_send" in answer
        assert "hello Ann" in await ask(client, "send", id="c1", text="Ann\n")


async def test_a_program_on_the_whole_screen_is_shown_as_it_is(folder: Path) -> None:
    (folder / "text").write_text("".join(f"line {number}\n" for number in range(1, 200)))
    async with connected() as client:
        await ask(client, "run", argv=["less", "text"], pty=True, background=True, env={"LESS": ""})
        shown = await ask(client, "send", id="c1", keys=["page-down"])
        assert "line 30\n" in shown and "[cursor at row 30, column 2]" in shown and "line 1\n" not in shown


async def test_a_run_answers_with_the_screen_that_a_program_has_drawn(folder: Path) -> None:
    draw = rf"printf '\033[?1049h\033[2J~\r\n~\033[Htext'; {NAP}"  # as vim does, which reads after poll
    async with connected() as client:
        for shown in (await ask(client, "run", command=draw, pty=True), await ask(client, "read", id="c1")):
            assert shown.startswith("text\n~\n[cursor at row 1, column 5]\n[c1: running for ")
            assert "it seems to wait for input: terminal_send" in shown


async def test_sending_nothing_or_an_unknown_key_is_refused(folder: Path) -> None:
    async with connected() as client:
        await ask(client, "run", command="sh", pty=True, background=True)
        assert "give a text to type" in await refusal(client, "send", id="c1")
        assert "did you mean enter" in await refusal(client, "send", id="c1", text="exit", keys=["entre"])
        assert "exit" not in await ask(client, "read", id="c1", cursor=0), "nothing was typed"
        await ask(client, "run", command=NAP, background=True)
        assert "start it with pty=true" in await refusal(client, "send", id="c2", text="x")
        assert "SIGINT" in await ask(client, "send", id="c2", keys=["ctrl-c"])


async def test_tm_8_escapes_are_neutralised(folder: Path) -> None:
    async with connected() as client:
        answer = await ask(client, "run", argv=["printf", r"a\033]52;c;cHdu\007\033[2Jb\2331m"])
        assert answer.startswith("ab\\x9b1m\n[c1")


# -- policies


async def test_an_allow_list_runs_nothing_else_and_no_shell(folder: Path) -> None:
    async with connected(serve(policy="allow-list", allow=["echo", "git status"])) as client:
        assert (await ask(client, "run", command="echo a; touch pwn")).startswith("a; touch pwn\n")
        assert (await ask(client, "run", argv=["echo", "$(id)"])).startswith("$(id)\n")
        for arguments in (
            {"command": "touch pwn"},
            {"command": "git push"},
            {"argv": ["git"]},
            {"argv": ["/bin/echo", "x"]},
            {"argv": ["./echo"]},
            {"command": "env echo x"},
        ):
            assert "is not allowed here; allowed are: echo, git status" in await refusal(client, "run", **arguments)
        assert "env is not allowed" in await refusal(client, "run", command="echo", env={"PATH": "."})
        assert "can't be divided" in await refusal(client, "run", command="echo 'a")
        assert not (folder / "pwn").exists()


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_the_user_is_asked(folder: Path, era: str) -> None:
    asked = list[str]()

    def answer(question: Any) -> bool:
        asked.append(question.message)
        return "touch" not in question.message

    async with connected(serve(policy="ask"), on_elicit=answer, era=era) as client:
        assert (await ask(client, "run", command="echo yes")).startswith("yes\n")
        assert "did not allow" in await refusal(client, "run", command="touch pwn")
    assert asked == ["Run this command?\necho yes", "Run this command?\ntouch pwn"]
    assert not (folder / "pwn").exists()


async def test_the_user_sees_all_that_decides_what_a_command_does(folder: Path) -> None:
    asked = list[str]()

    def refuse(question: Any) -> bool:
        asked.append(question.message)
        return False

    async with connected(serve(policy="ask"), on_elicit=refuse) as client:
        arguments = {"command": "git status \x1b[2K\u202e", "cwd": ".", "env": {"PATH": "a b"}, "stdin": "x" * 2000}
        await refusal(client, "run", **arguments)
    shown = asked[0].split("\n")
    assert shown[:4] == ["Run this command?", r"git status \x1b[2K\u202e", "in .", "with 'PATH=a b'"]
    assert shown[4].startswith("with the input xxx") and shown[4].endswith(" characters more)")


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_nothing_runs_if_the_user_can_not_be_asked(folder: Path, era: str) -> None:
    async with connected(serve(policy="ask"), era=era) as client:
        with pytest.raises(LongshoreError):
            await client.call_tool("terminal_run", {"command": "touch pwn"})
        assert await ask(client, "list") == "no commands"
    assert not (folder / "pwn").exists()


# -- the sandbox


async def test_the_folders_are_writable_and_nothing_else(folder: Path) -> None:
    outside = folder.parent / "other"
    outside.write_text("secret")
    async with connected() as client:
        assert "exit code 0" in await ask(client, "run", command="echo x > made && cat made")
        assert (folder / "made").read_text() == "x\n"
        answer = await ask(client, "run", command=f"cat {outside}; echo changed > {outside}")
        assert "secret" not in answer and outside.read_text() == "secret"


async def test_tm_2_no_way_around_a_block_list_changes_the_tree_in_read_only(folder: Path) -> None:
    (folder / "sources").mkdir()
    (folder / "sources" / "main.c").write_text("int main(void) { return 0; }")
    async with connected(serve(level="read-only")) as client:
        for bypass in BYPASSES.values():
            await ask(client, "run", command=bypass)
            assert [path.name for path in folder.iterdir()] == ["sources"], bypass
            assert (folder / "sources" / "main.c").read_text() == "int main(void) { return 0; }", bypass


async def test_tm_7_the_servers_variables_can_not_be_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "for nobody")
    async with connected() as client:
        places = f"/proc/self/environ /proc/$PPID/environ /proc/1/environ /proc/{os.getpid()}/environ"
        answer = await ask(client, "run", command=f"env; cat {places} | tr '\\0' '\\n'")
        assert "PATH=" in answer and "OPENAI_API_KEY" not in answer and "for nobody" not in answer


async def test_tm_3_a_fork_bomb_is_contained_while_the_server_answers(folder: Path) -> None:
    before = own_children()
    async with connected(serve(processes=64)) as client:
        bomb = asyncio.ensure_future(ask(client, "run", command=f"b() {{ b | b & }}; b; {NAP}", timeout_ms=1500))
        await until(lambda: command_lines(NAP))
        while not bomb.done():
            assert len(await client.list_tools(fresh=True)) == 5
            await asyncio.sleep(0.05)
        assert "[c1: exit code" in await bomb
        assert command_lines(NAP) == [] and own_children() == before


async def test_tm_3_a_memory_hog_is_contained(folder: Path) -> None:
    async with connected(serve(memory=64 << 20)) as client:
        answer = await ask(client, "run", command="head -c 1G /dev/zero | tail; echo status ${PIPESTATUS[1]}")
        assert "status 0" not in answer


async def test_too_many_commands_are_refused(folder: Path) -> None:
    async with connected(serve(most_running=1)) as client:
        await ask(client, "run", command=NAP, background=True)
        assert "no more than 1 commands may run at once: c1" in await refusal(client, "run", command="true")


def refuse(*_: object, **__: object) -> Any:
    raise SandboxUnavailable("bwrap is not installed", "install bubblewrap")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_an_unavailable_sandbox_says_what_to_install(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longshore.sandbox.levels.make_sandbox", refuse)
    app = serve()
    assert result(app, "tools/list")["tools"] == []
    assert app.catalog.toolsets["terminal"].unavailable == "bwrap is not installed; install bubblewrap"
    monkeypatch.undo()
    assert len(result(serve(), "tools/list")["tools"]) == 5


def test_a_start_relies_on_the_last_success(cache: Path, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    assert len(result(serve(), "tools/list")["tools"]) == 5
    monkeypatch.setattr("longshore.sandbox.levels.make_sandbox", refuse)
    app = serve()
    assert len(result(app, "tools/list")["tools"]) == 5
    failed = call(app, "terminal_run", {"command": "touch pwn"})
    assert failed["isError"] is True and text(failed) == "bwrap is not installed; install bubblewrap"
    assert result(serve(level="read-only"), "tools/list")["tools"] == []
