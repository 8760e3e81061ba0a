"""Exceptions: each names its server and the end of its stderr, in a form fit for a terminal."""

from __future__ import annotations

import asyncio
import copy
import pickle
from pathlib import Path
from typing import Any

import pytest

from client.scripted import script
from longshore import errors
from longshore.client import Client
from longshore.errors import ClientError, ConnectError, ConnectionLost, LongshoreError, ServerError, ToolFailed

WAYS = {
    "start": ("complain('HINT'); sys.exit(3)", "open"),
    "agree": ("complain('HINT')\nfor m in asks(): reply(m, 5) if 'id' in m else None", "open"),
    "silence": ("complain('HINT')\nfor m in calls(): pass", "timeout"),
    "death": ("for m in calls():\n    complain('HINT'); sys.exit(3)", "call"),
    "error": ("complain('HINT')\nfor m in calls(): refuse(m, -5, 'no')", "call"),
    "bad": ("complain('HINT')\nfor m in calls(): reply(m, 5)", "call"),
    "bad content": ("complain('HINT')\nfor m in calls(): reply(m, dict(content=5))", "call"),
    "bad type": ("complain('HINT')\nfor m in calls(): reply(m, DONE)", "typed"),
    "bad list": ("complain('HINT')\ndef usual(m, usual=usual): return usual(m) if m.get('method') != 'tools/list' else "
                 "(reply(m, 5), 1)\nfor m in calls(): pass", "list"),
    "bad read": ("complain('HINT')\nfor m in calls(): reply(m, {})", "read"),
    "bad prompt": ("complain('HINT')\nfor m in calls(): reply(m, {})", "prompt"),
    "bad completion": ("complain('HINT')\nfor m in calls(): reply(m, {})", "complete"),
}  # fmt: skip


@pytest.mark.parametrize(("code", "how"), WAYS.values(), ids=list(WAYS))
async def test_each_exception_names_the_server_and_its_last_stderr_lines(tmp_path: Path, code: str, how: str) -> None:
    client = Client(script(tmp_path, code), era="legacy", timeout=10)
    with pytest.raises(ClientError) as caught:
        async with client:
            await {
                "open": client.ping,
                "timeout": lambda: client.call_tool("x", timeout=0.3),
                "call": lambda: client.call_tool("x"),
                "typed": lambda: client.call_tool("x", returns=int),
                "list": client.list_tools,
                "read": lambda: client.read_resource("x://y"),
                "prompt": lambda: client.get_prompt("x"),
                "complete": lambda: client.complete("x", "a", "b"),
            }[how]()  # type: ignore[operator]
    problem = caught.value
    assert "odd.py (pid " in problem.server
    assert problem.said == "HINT"
    assert "odd.py (pid " in str(problem).splitlines()[0]
    assert str(problem).endswith("it last said:\n  | HINT")
    assert isinstance(problem, LongshoreError)
    seen: BaseException | None = problem
    while seen is not None:
        assert not isinstance(seen, BaseExceptionGroup)
        seen = seen.__cause__


async def test_a_name_is_in_it_too(tmp_path: Path) -> None:
    async with Client(script(tmp_path, "for m in calls(): sys.exit(3)"), era="legacy", name="weather") as client:
        with pytest.raises(ConnectionLost) as caught:
            await client.call_tool("x")
        assert "weather" in str(caught.value)


async def test_it_fits_a_terminal(tmp_path: Path) -> None:
    """However much was printed, in however long lines, with whatever a terminal would obey."""
    code = r"""
            for m in calls():
                os.write(2, b"a" * 5000 + b"\n" + b"\x1b[2J\x1b]0;title\x07\x9b31m\x00\x08\r\n\xff\xfe\n" * 30)
                os.write(2, b"w" * 100000 + b" end\n")
                refuse(m, -1, "\x1b[31mred\x07" + "long " * 10000)
        """
    async with Client(script(tmp_path, code), era="legacy") as client:
        with pytest.raises(ServerError) as caught:
            await client.call_tool("x")
        text = str(caught.value)
        assert len(text) < 10_000
        assert len(text.splitlines()) <= 25
        assert all(len(line) < 5000 for line in text.splitlines())
        assert not set(text) & {chr(n) for n in (*range(9), *range(11, 32), 127, *range(128, 160))}


async def test_a_command_line_of_a_megabyte_is_shown_in_short(tmp_path: Path) -> None:
    command = [*script(tmp_path, "for m in calls(): sys.exit(3)"), *(["x" * 100_000] * 5)]
    async with Client(command, era="legacy") as client:
        with pytest.raises(ConnectionLost) as caught:
            await client.call_tool("x")
        assert "exit code 3" in str(caught.value)
        assert len(str(caught.value)) < 10_000


async def test_secrets_of_the_environment_are_not_in_it(tmp_path: Path) -> None:
    client = Client(script(tmp_path, "sys.exit(3)"), env={"API_KEY": "hunter2"})
    with pytest.raises(ClientError) as caught:
        await client.open()
    assert "hunter2" not in str(caught.value) + repr(caught.value)


async def test_many_failures_at_once_are_many_exceptions(tmp_path: Path) -> None:
    async with Client(script(tmp_path, "for m in calls(): sys.exit(3)"), era="legacy") as client:
        ends = await asyncio.gather(*(client.call_tool("x") for _ in range(20)), return_exceptions=True)
        assert all(isinstance(end, ConnectionLost) for end in ends)


MADE: list[Any] = [
    errors.ConnectError("what", "where", "said"),
    errors.ConnectionLost("what", "where", "said", unsent=True),
    errors.CallTimeout("what", "where"),
    errors.ServerError(-5, "message", {"a": 1}, "where"),
    errors.BadAnswer("what"),
    errors.Unanswerable(-1, "what", "where"),
    errors.ToolFailed("what", {"r": 1}, "where"),
    errors.HttpRefused(500, b"body", [("a", "b")], "where"),
    errors.AuthorizationError("what"),
]


@pytest.mark.parametrize("problem", MADE, ids=lambda problem: type(problem).__name__)
def test_each_can_be_copied_and_sent_to_another_process(problem: ClientError) -> None:
    for again in (copy.copy(problem), pickle.loads(pickle.dumps(problem))):
        assert type(again) is type(problem)
        assert str(again) == str(problem)
        assert vars(again) == vars(problem)


async def test_a_failed_tool_does_not_show_the_log(tmp_path: Path) -> None:
    code = "complain('noise')\nfor m in calls(): reply(m, dict(text('out of stock'), isError=True))"
    async with Client(script(tmp_path, code), era="legacy") as client:
        with pytest.raises(ToolFailed) as caught:
            await client.call_tool("x")
        assert str(caught.value).endswith("out of stock")


async def test_wrong_options_are_refused_at_construction(tmp_path: Path) -> None:
    for level in ("verbose", "", "INFO"):
        with pytest.raises(ValueError, match=r"no log level .*; one of debug, info"):
            Client(["x"], log_level=level)
    with pytest.raises(ValueError, match="a root is a folder"):
        Client(["x"], roots=["https://x/"])
    with pytest.raises(ClientError, match='"cwd" of an entry of mcpServers is a text'):
        Client({"command": "cat", "cwd": 5})
    async with Client(script(tmp_path, "for m in calls(): reply(m, DONE)"), era="legacy", roots=["/"]) as client:
        with pytest.raises(ValueError, match="no log level 'verbose'"):
            await client.set_log_level("verbose")
        with pytest.raises(ValueError, match="a root is a folder"):
            await client.set_roots(["https://x/"])


@pytest.mark.parametrize(("era", "sent"), [("2025-03-26", True), ("2025-06-18", False), ("2025-11-25", False)])
async def test_undeclared_lists_are_not_requested(tmp_path: Path, era: str, sent: bool) -> None:
    code = """
        del CAPABILITIES["completions"]
        for m in calls(): mark("asked"); reply(m, dict(completion=dict(values=[])))
    """
    async with Client(script(tmp_path, code), era=era) as client:
        if sent:
            assert (await client.complete("p", "a", "b")).values == []
        else:
            with pytest.raises(ClientError, match="it has no completions"):
                await client.complete("p", "a", "b")
        assert (tmp_path / "asked").exists() is sent


async def test_concurrent_openers_get_an_exception_each(tmp_path: Path) -> None:
    client = Client(script(tmp_path, "mark('starts')\ncomplain('HINT'); sys.exit(3)"), era="legacy")
    ends = await asyncio.gather(*(client.open() for _ in range(5)), return_exceptions=True)
    assert {type(end) for end in ends} == {ConnectError}
    assert len({id(end) for end in ends}) == 5
    assert all(str(end).endswith("| HINT") for end in ends)
    assert len((tmp_path / "starts").read_text()) == 1
