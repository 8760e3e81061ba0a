"""Child processes that die, won't die or leave processes behind, and restarting them."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from client.scripted import connect_to, until
from longshore.errors import ConnectError, ConnectionLost
from waiting import is_alive


async def pids(folder: Path, count: int = 1) -> list[int]:
    """The processes that wrote their number down."""

    def read() -> list[int]:
        path = folder / "pids"
        return [int(line) for line in path.read_text().split()] if path.exists() else []

    return await until("the processes", lambda: len(read()) >= count and read())


# -- dying


async def test_a_traceback_and_the_exit_code_are_in_the_exception(tmp_path: Path) -> None:
    code = """
            for m in calls():
                complain("about to divide")
                1 / 0
        """
    async with connect_to(tmp_path, code) as client:
        with pytest.raises(ConnectionLost) as caught:
            await client.call_tool("x")
        text = str(caught.value)
        assert "it ended with exit code 1" in text
        assert "odd.py (pid " in text
        assert "| about to divide" in text
        assert "| Traceback (most recent call last):" in text
        assert text.endswith("| ZeroDivisionError: division by zero")
        assert caught.value.said.endswith("ZeroDivisionError: division by zero")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM])
async def test_the_signal_is_in_the_exception(tmp_path: Path, number: int) -> None:
    code = f"""
            import resource
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            for m in calls(): os.kill(os.getpid(), {int(number)})
        """
    async with connect_to(tmp_path, code) as client:
        with pytest.raises(ConnectionLost, match=f"it was ended by {signal.Signals(number).name}"):
            await client.call_tool("x")


async def test_every_pending_call_fails_when_the_server_ends(tmp_path: Path) -> None:
    code = """
            for n, m in enumerate(calls()):
                if n == 9: sys.exit(7)
        """
    async with connect_to(tmp_path, code) as client:
        ends = await asyncio.gather(*(client.call_tool(f"n{n}") for n in range(10)), return_exceptions=True)
        assert [type(end) for end in ends] == [ConnectionLost] * 10
        assert len({id(end) for end in ends}) == 10, "each has an exception of its own"
        assert all("exit code 7" in str(end) for end in ends)


async def test_an_answer_before_the_end_of_the_process_counts(tmp_path: Path) -> None:
    code = "for m in calls():\n    reply(m, text('x' * 500_000))\n    os._exit(0)"
    async with connect_to(tmp_path, code) as client:
        assert len((await client.call_tool("x")).text) == 500_000


async def test_half_a_frame_before_the_end_is_no_answer(tmp_path: Path) -> None:
    code = """
            for m in calls():
                raw(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[]' % m["id"])
                sys.exit(0)
        """
    async with connect_to(tmp_path, code) as client:
        with pytest.raises(ConnectionLost, match="exit code 0"):
            await client.call_tool("x")


# -- ending

EOF_DEAF = """
for m in calls(): reply(m, DONE)
while True: time.sleep(1)
"""
TERM_DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + EOF_DEAF
WITH_CHILD = """
import signal, subprocess
deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True); time.sleep(1000)"
child = subprocess.Popen([sys.executable, "-SE", "-c", deaf], stdout=subprocess.PIPE)
child.stdout.readline()
mark("pids", str(os.getpid())); mark("pids", str(child.pid))
"""


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize(
    ("code", "count"),
    [
        ("mark('pids', str(os.getpid()))\nfor m in calls(): reply(m, DONE)", 1),
        ("mark('pids', str(os.getpid()))\n" + EOF_DEAF, 1),
        ("mark('pids', str(os.getpid()))\n" + TERM_DEAF, 1),
        (WITH_CHILD + "for m in calls(): reply(m, DONE)", 2),
        (WITH_CHILD + TERM_DEAF, 2),
    ],
    ids=["obedient", "ignores EOF", "ignores EOF and TERM", "leaves a deaf child", "deaf, with a deaf child"],
)
async def test_closing_ends_it_and_its_group(tmp_path: Path, code: str, count: int) -> None:
    async with connect_to(tmp_path, code) as client:
        assert (await client.call_tool("x")).text == "done"
        started = await pids(tmp_path, count)
        assert all(map(is_alive, started))
    await until("that all have ended", lambda: not any(map(is_alive, started)))


async def test_an_obedient_server_is_not_killed(tmp_path: Path) -> None:
    """It sees the end of input and may finish what it does: that is what the first rung is for."""
    code = """
            import signal
            signal.signal(signal.SIGTERM, lambda *_: mark("terminated"))
            for m in calls(): reply(m, DONE)
            time.sleep(0.3)
            mark("finished")
        """
    async with connect_to(tmp_path, code) as client:
        await client.call_tool("x")
    assert (tmp_path / "finished").exists()
    assert not (tmp_path / "terminated").exists()


@pytest.mark.usefixtures("hurried")
async def test_a_server_gets_sigterm_before_sigkill(tmp_path: Path) -> None:
    code = """
            import signal
            def tidy_up(*_):
                mark("tidied")
                sys.exit(0)
            signal.signal(signal.SIGTERM, tidy_up)
            for m in calls(): reply(m, DONE)
            while True: time.sleep(1)
        """
    async with connect_to(tmp_path, code) as client:
        await client.call_tool("x")
    assert (tmp_path / "tidied").exists()


@pytest.mark.usefixtures("hurried")
async def test_a_grandchild_outside_the_group_does_not_block_the_end(tmp_path: Path) -> None:
    """A process that starts a session of its own has asked to outlive its parent. Closing does not wait for it,
    though it holds the pipes."""
    code = """
            import subprocess
            daemon = subprocess.Popen(["sleep", "100"], start_new_session=True)
            mark("pids", str(daemon.pid))
            for m in calls(): reply(m, DONE)
        """
    async with connect_to(tmp_path, code) as client:
        await client.call_tool("x")
        [daemon] = await pids(tmp_path)
    assert is_alive(daemon)
    os.kill(daemon, signal.SIGKILL)
    await until("its end", lambda: not is_alive(daemon))


@pytest.mark.usefixtures("hurried")
async def test_a_grandchild_that_holds_the_output_does_not_hide_the_end(tmp_path: Path) -> None:
    code = """
            import subprocess
            for m in calls():
                other = subprocess.Popen(["sleep", "100"])
                mark("pids", str(other.pid))
                complain("gone fishing")
                os._exit(4)
        """
    async with connect_to(tmp_path, code) as client:
        with pytest.raises(ConnectionLost, match="exit code 4") as caught:
            await client.call_tool("x")
        assert "| gone fishing" in str(caught.value)
    [other] = await pids(tmp_path)
    await until("its end", lambda: not is_alive(other))


# -- coming back


async def test_a_server_that_ended_between_calls_is_restarted(tmp_path: Path) -> None:
    code = """
            mark("pids", str(os.getpid()))
            for m in calls():
                reply(m, text(str(os.getpid())))
                if m["params"]["name"] == "last": sys.exit(0)
        """
    async with connect_to(tmp_path, code) as client:
        first = (await client.call_tool("last")).text
        await until("that it is noticed", lambda: not client.connected)
        second = (await client.call_tool("next")).text
        assert client.connected
        assert [first, second] == [str(pid) for pid in await pids(tmp_path, 2)]
        assert (await client.call_tool("next")).text == second


DIES_ONCE = """
TOOL["annotations"] = ANNOTATIONS
first = not os.path.exists(os.path.join(os.path.dirname(__file__), "died"))
for m in calls():
    mark("calls")
    if first:
        mark("died")
        complain("dying")
        os._exit(1)
    reply(m, text("again"))
"""


@pytest.mark.parametrize("annotations", [{"readOnlyHint": True}, {"idempotentHint": True}])
async def test_a_call_that_may_be_repeated_is_sent_once_more(tmp_path: Path, annotations: dict[str, bool]) -> None:
    async with connect_to(tmp_path, DIES_ONCE.replace("ANNOTATIONS", repr(annotations))) as client:
        await client.list_tools()
        assert (await client.call_tool("x")).text == "again"
        assert len((tmp_path / "calls").read_text()) == 2


@pytest.mark.parametrize(
    "annotations", [{}, {"readOnlyHint": False}, {"readOnlyHint": "yes"}, {"destructiveHint": False}]
)
@pytest.mark.parametrize("listed", [True, False])
async def test_any_other_call_is_not(tmp_path: Path, annotations: dict[str, Any], listed: bool) -> None:
    async with connect_to(tmp_path, DIES_ONCE.replace("ANNOTATIONS", repr(annotations))) as client:
        if listed:
            await client.list_tools()
        with pytest.raises(ConnectionLost, match="exit code 1") as caught:
            await client.call_tool("x")
        assert "| dying" in str(caught.value)
        assert len((tmp_path / "calls").read_text()) == 1
        assert (await client.call_tool("x")).text == "again", "the next call works"


async def test_a_server_that_dies_at_each_call_is_tried_twice(tmp_path: Path) -> None:
    code = """
            TOOL["annotations"] = dict(readOnlyHint=True)
            for m in calls():
                mark("calls")
                os._exit(1)
        """
    async with connect_to(tmp_path, code) as client:
        await client.list_tools()
        with pytest.raises(ConnectionLost):
            await client.call_tool("x")
        assert len((tmp_path / "calls").read_text()) == 2


async def test_reading_is_safe_to_repeat(tmp_path: Path) -> None:
    code = DIES_ONCE.replace("ANNOTATIONS", "{}").replace('text("again")', "dict(contents=[])")
    async with connect_to(tmp_path, code) as client:
        assert await client.read_resource("x://y") == []


async def test_without_reconnection_a_lost_server_stays_lost(tmp_path: Path) -> None:
    async with connect_to(tmp_path, "for m in calls(): sys.exit(3)", reconnect=False) as client:
        with pytest.raises(ConnectionLost, match="exit code 3"):
            await client.call_tool("x")
        with pytest.raises((ConnectError, ConnectionLost), match="exit code 3"):
            await client.call_tool("x")


async def test_a_server_that_keeps_dying_is_not_restarted_at_once(tmp_path: Path) -> None:
    code = "mark('starts')\nfor m in calls():\n    complain('bye')\n    sys.exit(3)"
    async with connect_to(tmp_path, code) as client:
        for _ in range(6):
            with pytest.raises(ConnectionLost, match="exit code 3"):
                await client.call_tool("x")
        for _ in range(10):
            with pytest.raises(ConnectError, match="lost 5 times in 10 s") as caught:
                await client.call_tool("x")
            assert "exit code 3" in str(caught.value)
            assert "| bye" in str(caught.value)
        assert len((tmp_path / "starts").read_text()) == 6


async def test_concurrent_requests_share_one_reconnection(tmp_path: Path) -> None:
    code = """
            mark("starts")
            for m in calls():
                if m["params"]["name"] == "die": sys.exit(1)
                reply(m, DONE)
        """
    async with connect_to(tmp_path, code) as client:
        with pytest.raises(ConnectionLost):
            await client.call_tool("die")
        results = await asyncio.gather(*(client.call_tool("x") for _ in range(50)))
        assert [each.text for each in results] == ["done"] * 50
        assert len((tmp_path / "starts").read_text()) == 2
