"""Opening and closing: in any order, from any task, many at once, cancelled half-way; nothing may be left behind."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
import uvloop

from client.scripted import children, connect_to, descriptors, nothing_left, run, script, until
from longshore import Server
from longshore.client import Client
from longshore.errors import ClientError, ConnectError, ConnectionLost
from waiting import PATIENCE, is_alive

GOOD = "mark('pids', str(os.getpid()))\nfor m in calls(): reply(m, DONE)"
SILENT = "mark('pids', str(os.getpid()))\nfor m in calls(): pass"
MUTE = "mark('pids', str(os.getpid()))\nfor m in asks(): pass"

CHEAP = """
while read -r line; do
  case $line in
    *'"initialize"'*)
      echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}';;
  esac
done
"""


def started(folder: Path) -> list[int]:
    path = folder / "pids"
    return [int(line) for line in path.read_text().split()] if path.exists() else []


# -- again and again


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_a_thousand_cycles_leave_nothing(loop: Any) -> None:
    """A shell script answers the handshake. Eight at a time, each with a descriptor for its end and three pipes."""
    left = 1000

    async def cycle() -> None:
        nonlocal left
        while left > 0:
            left -= 1
            async with Client(["sh", "-c", CHEAP], era="legacy") as client:
                assert client.connected

    async def test() -> None:
        async with asyncio.timeout(150), asyncio.TaskGroup() as group:
            for _ in range(8):
                group.create_task(cycle())
        assert children() == before[0], "no process, not even a zombie"
        assert descriptors() <= before[1] + 20, "no more than what a loop has for itself"

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(asyncio.sleep(0))  # uvloop keeps two descriptors from its first use on
    before = children(), descriptors()
    run(test, 160, loop)


async def test_one_client_may_be_opened_again(tmp_path: Path) -> None:
    client = connect_to(tmp_path, GOOD)
    for _ in range(3):
        await client.open()
        await client.open()  # which changes nothing
        assert (await client.call_tool("x")).text == "done"
        await client.close()
        assert not client.connected
        with pytest.raises(ConnectError, match=r"closed|not open"):
            await client.call_tool("x")
        await client.close()
    assert len(started(tmp_path)) == 3


def test_one_client_on_one_loop_after_another(tmp_path: Path) -> None:
    client = connect_to(tmp_path, GOOD)

    async def test() -> None:
        async with client:
            assert (await client.call_tool("x")).text == "done"

    for _ in range(3):
        run(test)


async def test_an_unopened_client_refuses_requests_and_can_be_closed(tmp_path: Path) -> None:
    client = connect_to(tmp_path, GOOD)
    await client.close()
    assert not client.connected
    assert client.problems == []
    with pytest.raises(ConnectError, match=r"not open; write `async with"):
        await client.call_tool("x")
    with pytest.raises(ConnectError, match="not open"):
        _ = client.server
    with pytest.raises(ConnectError, match="not open"):
        async with client.watch(tools=True):
            pass
    assert not started(tmp_path)


# -- closing while something happens


async def test_closing_from_another_task_ends_every_wait(tmp_path: Path) -> None:
    client = connect_to(tmp_path, SILENT, timeout=None)
    await client.open()
    calls = [asyncio.ensure_future(client.call_tool(f"n{n}")) for n in range(20)]
    await asyncio.sleep(0.05)
    await asyncio.gather(*(client.close() for _ in range(5)))
    ends = await asyncio.gather(*calls, return_exceptions=True)
    assert {type(end) for end in ends} == {ConnectionLost}
    assert not isinstance(ends[0], BaseExceptionGroup)
    assert not any(map(is_alive, started(tmp_path)))


async def test_closing_while_it_opens(tmp_path: Path) -> None:
    client = connect_to(tmp_path, MUTE, timeout=None)
    opening = asyncio.ensure_future(client.open())
    await until("that it has started", lambda: started(tmp_path))
    await client.close()
    with pytest.raises(ClientError):
        await opening
    assert not client.connected
    assert not any(map(is_alive, started(tmp_path)))


@pytest.mark.parametrize("turns", range(12))
async def test_closing_or_cancelling_at_any_turn_of_opening(tmp_path: Path, turns: int) -> None:
    for how in ("close", "cancel"):
        client = connect_to(tmp_path, GOOD)
        opening = asyncio.ensure_future(client.open())
        for _ in range(turns):
            await asyncio.sleep(0)
        if how == "cancel":
            opening.cancel()
        else:
            await client.close()
        [end] = await asyncio.gather(opening, return_exceptions=True)
        assert end is None or isinstance(end, (asyncio.CancelledError, ConnectError)), repr(end)
        await client.close()
        assert not client.connected


async def test_cancelling_while_it_opens_ends_the_child(tmp_path: Path) -> None:
    opening = asyncio.ensure_future(connect_to(tmp_path, MUTE, timeout=None).open())
    await until("that it has started", lambda: started(tmp_path))
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    assert not any(map(is_alive, started(tmp_path)))


@pytest.mark.usefixtures("hurried")
async def test_cancelling_a_close_does_not_stop_it(tmp_path: Path) -> None:
    client = connect_to(tmp_path, GOOD + "\nwhile True: time.sleep(1)")
    await client.open()
    closing = asyncio.ensure_future(client.close())
    await asyncio.sleep(0.05)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    await until("its end", lambda: not any(map(is_alive, started(tmp_path))))
    await client.close()


@pytest.mark.parametrize("turns", range(1, 6))
async def test_cancelling_at_any_turn_of_closing_leaves_no_child(tmp_path: Path, turns: int) -> None:
    """What is ended before the connection is no reason to leave that open."""
    code = "CAPABILITIES['tools'] = dict(listChanged=True)\n" + GOOD
    client = connect_to(tmp_path, code, on_change=lambda _: None)
    await client.open()
    closing = asyncio.ensure_future(client.close())
    for _ in range(turns):
        await asyncio.sleep(0)
    closing.cancel()
    await asyncio.gather(closing, return_exceptions=True)
    await until("its end", lambda: not any(map(is_alive, started(tmp_path))))
    await client.close()


def test_a_loop_that_ends_during_a_close_leaves_no_child(tmp_path: Path) -> None:
    """As on the second Ctrl-C. The ladder is cut short: the group is killed at once."""

    async def test() -> None:
        client = connect_to(
            tmp_path, "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + GOOD + "\ntime.sleep(99)"
        )
        await client.open()
        closing = asyncio.ensure_future(client.close())
        await asyncio.sleep(0.05)
        assert not closing.done()

    asyncio.run(test())
    [pid] = started(tmp_path)
    assert pid not in children(), "not even a zombie"


async def test_a_cancelled_open_does_not_fail_a_concurrent_open(tmp_path: Path) -> None:
    go = tmp_path / "go"
    client = connect_to(tmp_path, f"mark('begun')\nwhile not os.path.exists({str(go)!r}): time.sleep(0.005)\n" + GOOD)
    first, second = (asyncio.ensure_future(client.open()) for _ in range(2))
    await until("that it begins", (tmp_path / "begun").exists)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    go.touch()
    await second
    assert (await client.call_tool("x")).text == "done"
    await client.close()
    assert len((tmp_path / "begun").read_text()) == 1, "nothing was begun anew"


async def test_closing_while_reconnecting_leaves_nothing(tmp_path: Path) -> None:
    code = """
            mark("pids", str(os.getpid()))
            if os.path.exists(os.path.join(os.path.dirname(__file__), "died")): time.sleep(100)
            for m in calls():
                mark("died")
                os._exit(1)
        """
    client = connect_to(tmp_path, code, timeout=None)
    await client.open()
    with pytest.raises(ConnectionLost):
        await client.call_tool("x")
    call = asyncio.ensure_future(client.call_tool("x"))
    await until("another", lambda: len(started(tmp_path)) == 2)
    await client.close()
    with pytest.raises(ClientError):
        await call
    assert not any(map(is_alive, started(tmp_path)))


async def test_closing_from_a_handler(tmp_path: Path) -> None:
    code = "for m in calls(): ask('q', 'elicitation/create', message='?', requestedSchema={})"
    client = connect_to(tmp_path, code, on_elicit=lambda _: client.close())
    await client.open()
    with pytest.raises(ConnectionLost):
        await client.call_tool("x")
    await client.close()  # the same close, waited for


async def test_closing_ends_handlers_that_still_think(tmp_path: Path) -> None:
    code = """
            for m in calls():
                for id in ("a", "b", "a", 1, 1): ask(id, "elicitation/create", message="?", requestedSchema={})
        """
    begun, ended = [], []

    async def think(_: Any) -> None:
        begun.append(1)
        try:
            await asyncio.sleep(100)
        finally:
            ended.append(1)

    async with connect_to(tmp_path, code, on_elicit=think) as client:
        call = asyncio.ensure_future(client.call_tool("x"))
        await until("all questions", lambda: len(begun) == 3 and len(client.problems) == 2)
    with pytest.raises(ConnectionLost):
        await call
    assert (len(begun), len(ended)) == (3, 3), "an id that is in use is not taken a second time"


@pytest.mark.parametrize("more", [-1, 0, 1])
async def test_a_handler_that_is_too_slow_misses_messages(
    tmp_path: Path, more: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or whoever logs on and on would fill our memory."""
    monkeypatch.setattr("longshore.client.session.HANDLER_TASKS", 5)
    begun: list[Any] = []

    async def log(message: Any) -> None:
        begun.append(message.data)
        await asyncio.sleep(100)

    code = f"""
            for m in calls():
                for n in range({5 + more}): notify("notifications/message", level="info", data=n)
                reply(m, DONE)
        """
    async with connect_to(tmp_path, code, on_log=log) as client:
        await client.call_tool("x")
        await until("those that are told", lambda: len(begun) == 5 + min(more, 0))
        assert [problem for problem in client.problems if "on_log is too slow" in problem] == client.problems
        assert len(client.problems) == (more > 0)


async def test_closing_from_an_async_on_log(tmp_path: Path) -> None:
    closed = asyncio.Event()

    async def log(_: Any) -> None:
        await client.close()
        closed.set()

    code = "for m in calls(): notify('notifications/message', level='info', data='x')"
    client = connect_to(tmp_path, code, on_log=log)
    await client.open()
    with pytest.raises(ConnectionLost):
        await client.call_tool("x")
    await asyncio.wait_for(closed.wait(), PATIENCE)


@pytest.mark.usefixtures("hurried")
async def test_a_child_that_is_lost_but_lives_is_ended_at_once(tmp_path: Path) -> None:
    """It is not waited for until somebody needs another."""
    code = "mark('pids', str(os.getpid()))\nfor m in calls():\n    while True: raw(b'what?\\n' * 5000)"
    async with connect_to(tmp_path, code) as client:
        with pytest.raises(ConnectionLost, match="does not speak MCP"):
            await client.call_tool("x")
        assert not client.connected
        await until("its end", lambda: not any(map(is_alive, started(tmp_path))))


async def test_the_questions_of_a_lost_connection_are_not_asked_on(tmp_path: Path) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def think(_: Any) -> None:
        begun.set()
        try:
            await asyncio.sleep(1000)
        finally:
            ended.set()

    go = tmp_path / "go"
    code = f"""
            for m in calls():
                ask("q", "elicitation/create", message="?", requestedSchema={{}})
                while not os.path.exists({str(go)!r}): time.sleep(0.005)
                os._exit(1)
        """
    async with connect_to(tmp_path, code, on_elicit=think) as client:
        call = asyncio.ensure_future(client.call_tool("x"))
        await asyncio.wait_for(begun.wait(), PATIENCE)
        go.touch()
        with pytest.raises(ConnectionLost):
            await call
        await asyncio.wait_for(ended.wait(), PATIENCE)


async def test_many_at_once_do_not_mix(tmp_path: Path) -> None:
    clients = []
    for n in range(10):
        (tmp_path / str(n)).mkdir()
        clients.append(connect_to(tmp_path / str(n), f"for m in calls(): reply(m, text('{n} ' + m['params']['name']))"))
    await asyncio.gather(*(client.open() for client in clients))
    answers = await asyncio.gather(*(c.call_tool(f"c{k}") for k in range(20) for c in clients))
    assert [each.text for each in answers] == [f"{n} c{k}" for k in range(20) for n in range(10)]
    await asyncio.gather(*(client.close() for client in clients))


def test_two_loops_in_two_threads(tmp_path: Path) -> None:
    problems: list[BaseException] = []

    def work(n: int) -> None:
        folder = tmp_path / str(n)
        folder.mkdir()

        async def test() -> None:
            for _ in range(5):
                async with connect_to(folder, GOOD) as client:
                    for _ in range(20):
                        assert (await client.call_tool("x")).text == "done"

        try:
            asyncio.run(test())
        except BaseException as problem:
            problems.append(problem)

    with nothing_left():
        workers = [threading.Thread(target=work, args=(n,)) for n in range(3)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(PATIENCE)
    assert not problems


# -- several


def test_one_server_in_memory_for_many_clients() -> None:
    app = Server("shared")

    @app.tool
    async def echo(text: str) -> str:
        """Say it back."""
        await asyncio.sleep(0)
        return text

    async def test() -> None:
        async with Client(app) as one, Client(app, era="legacy") as two:
            async with Client(app) as three:
                texts = await asyncio.gather(
                    *(c.call_tool("echo", {"text": f"{n}"}) for n, c in enumerate((one, two, three) * 10))
                )
                assert [each.text for each in texts] == [str(n) for n in range(30)]
            assert (await one.call_tool("echo", {"text": "still here"})).text == "still here"
        with pytest.raises(ConnectError):
            await one.call_tool("echo", {"text": "x"})

    for _ in range(2):
        run(test)


def test_a_loop_that_ends_in_the_turn_of_a_close_leaves_no_child(tmp_path: Path) -> None:
    """The task that closes is cancelled before its first step, so what it would have done is done for it."""
    command = script(tmp_path, "for m in calls(): reply(m, DONE)")

    async def main() -> None:
        client = Client(command)
        await client.open()
        asyncio.ensure_future(client._connection.current.channel.close())  # type: ignore[union-attr]  # noqa: RUF006

    with nothing_left():
        asyncio.run(main())
