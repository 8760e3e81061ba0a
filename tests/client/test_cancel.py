"""Cancelled and timed-out calls: the messages that are sent, and late answers."""

from __future__ import annotations

import asyncio
import textwrap
from pathlib import Path
from typing import Any

import pytest

from client.scripted import heard, script, until
from longshore.client import Client
from longshore.errors import CallTimeout, ConnectionLost

LOGGED = """
def asks_logged():
    for m in asks():
        mark("wire", json.dumps(m))
        yield m
"""


def connect_to(folder: Path, code: str, **options: Any) -> Client:
    return Client(script(folder, LOGGED + textwrap.dedent(code)), **{"era": "legacy", "timeout": 10.0, **options})


def wire(folder: Path, method: str) -> list[Any]:
    return [m for m in heard(folder / "wire") if m.get("method") == method]


SILENT = "for m in asks_logged(): usual(m)"
SILENT_MODERN = "for m in asks_logged(): meet(m) if m['method'] == 'server/discover' else None"


@pytest.mark.parametrize(("era", "code"), [("legacy", SILENT), ("modern", SILENT_MODERN)])
@pytest.mark.parametrize("how", ["cancel", "timeout"])
async def test_a_cancellation_names_the_request_and_the_reason(tmp_path: Path, era: str, code: str, how: str) -> None:
    async with connect_to(tmp_path, code, era=era) as client:
        call = asyncio.ensure_future(client.call_tool("x", timeout=0.3 if how == "timeout" else None))
        await until("the call", lambda: wire(tmp_path, "tools/call"))
        if how == "cancel":
            call.cancel()
        with pytest.raises(asyncio.CancelledError if how == "cancel" else CallTimeout):
            await call
        [notice] = await until("the notice", lambda: wire(tmp_path, "notifications/cancelled"))
        [sent] = wire(tmp_path, "tools/call")
        assert notice["params"]["requestId"] == sent["id"]
        assert type(notice["params"]["requestId"]) is type(sent["id"])
        assert ("cancelled" if how == "cancel" else "timed out") in notice["params"]["reason"]
        assert "id" not in notice


async def test_a_handshake_is_never_cancelled(tmp_path: Path) -> None:
    client = connect_to(tmp_path, "for m in asks_logged(): pass", timeout=0.3)
    with pytest.raises(Exception, match="did not answer"):
        await client.open()
    assert wire(tmp_path, "initialize")
    assert not wire(tmp_path, "notifications/cancelled")


@pytest.mark.parametrize("late", ["reply(m, DONE)", "refuse(m, -32800, 'cancelled')"])
async def test_an_answer_that_comes_too_late_is_nobodys_fault(tmp_path: Path, late: str) -> None:
    code = f"""
            for m in asks_logged():
                if m.get("method") == "notifications/cancelled":
                    m = held
                    {late}
                elif not usual(m):
                    held = m
                    if m["params"]["name"] == "now": reply(m, DONE)
        """
    async with connect_to(tmp_path, code) as client:
        with pytest.raises(CallTimeout):
            await client.call_tool("never", timeout=0.2)
        assert (await client.call_tool("now")).text == "done"
        assert client.problems == []


async def test_an_answer_in_the_same_turn_as_the_cancellation(tmp_path: Path) -> None:
    """Whichever comes first counts; nothing breaks, and nothing is left."""
    async with connect_to(tmp_path, "for m in asks_logged(): usual(m) or reply(m, DONE)") as client:
        for delay in range(30):
            call = asyncio.ensure_future(client.call_tool("x"))
            await asyncio.sleep(delay / 10_000)
            call.cancel()
            try:
                assert (await call).text == "done"
            except asyncio.CancelledError:
                pass
        assert (await client.call_tool("x")).text == "done"
        assert client.problems == []


async def test_many_concurrent_cancellations_each_reach_the_server(tmp_path: Path) -> None:
    async with connect_to(tmp_path, SILENT) as client:
        calls = [asyncio.ensure_future(client.call_tool("x", timeout=None)) for _ in range(300)]
        await asyncio.sleep(0.05)
        for call in calls:
            call.cancel()
        ends = await asyncio.gather(*calls, return_exceptions=True)
        assert all(isinstance(end, asyncio.CancelledError) for end in ends)
        await until("all notices", lambda: len(wire(tmp_path, "notifications/cancelled")) == 300)
        told = [notice["params"]["requestId"] for notice in wire(tmp_path, "notifications/cancelled")]
        assert sorted(told) == sorted(sent["id"] for sent in wire(tmp_path, "tools/call"))


STEPPING = """
for m in asks_logged():
    if usual(m): continue
    token = m["params"]["_meta"]["progressToken"]
    for n in range(STEPS):
        notify("notifications/progress", progressToken=token, progress=n)
        time.sleep(0.1)
    if ANSWERS: reply(m, DONE)
"""


async def test_progress_restarts_the_timeout(tmp_path: Path) -> None:
    code = STEPPING.replace("STEPS", "40").replace("ANSWERS", "True")
    async with connect_to(tmp_path, code) as client:
        assert (await client.call_tool("x", timeout=3.0, on_progress=lambda *_: None)).text == "done"  # after 4 s


async def test_progress_that_never_ends_is_no_life(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request has a multiple of its time at most, however busy the server says that it is."""
    monkeypatch.setattr("longshore.client.session.CAP", 2)
    code = STEPPING.replace("STEPS", "10000").replace("ANSWERS", "False")
    seen: list[float] = []
    async with connect_to(tmp_path, code) as client:
        with pytest.raises(CallTimeout):
            await client.call_tool("x", timeout=2.0, on_progress=lambda at, *_: seen.append(at))
        assert seen, "there was progress"


async def test_progress_of_another_call_restarts_no_timeout(tmp_path: Path) -> None:
    code = """
            for m in asks_logged():
                if usual(m): continue
                for n in range(12):
                    for token in (999, "x", str(m["id"])):
                        notify("notifications/progress", progressToken=token, progress=n)
                    time.sleep(0.1)
        """
    async with connect_to(tmp_path, code) as client:
        with pytest.raises(CallTimeout):
            await client.call_tool("x", timeout=0.4, on_progress=lambda *_: None)


async def test_progress_after_the_answer_is_ignored(tmp_path: Path) -> None:
    code = """
            for m in asks_logged():
                if usual(m): continue
                reply(m, DONE)
                if "_meta" in m["params"]:
                    notify("notifications/progress", progressToken=m["params"]["_meta"]["progressToken"], progress=5)
        """
    seen: list[float] = []
    async with connect_to(tmp_path, code) as client:
        await client.call_tool("x", on_progress=lambda at, *_: seen.append(at))
        await client.call_tool("y")
        assert seen == []


async def test_the_server_may_take_its_question_back(tmp_path: Path) -> None:
    code = """
            for m in asks_logged():
                if usual(m) or "method" not in m: continue
                ask("q", "elicitation/create", message="?", requestedSchema={})
                ask("r", "ping")
                assert json.loads(sys.stdin.readline())["id"] == "r"
                notify("notifications/cancelled", requestId="q")
                ask("s", "ping")
                assert json.loads(sys.stdin.readline())["id"] == "s"
                reply(m, DONE)
        """
    ended = asyncio.Event()

    async def think(_: Any) -> None:
        try:
            await asyncio.sleep(100)
        finally:
            ended.set()

    async with connect_to(tmp_path, code, on_elicit=think) as client:
        assert (await client.call_tool("x")).text == "done"
        await asyncio.wait_for(ended.wait(), 10)
        await client.ping()
        assert not [m for m in heard(tmp_path / "wire") if m.get("id") == "q"], "it gets no answer"


@pytest.mark.parametrize("seconds", [0, -1, 1e-9])
async def test_no_time_at_all_is_a_timeout(tmp_path: Path, seconds: float) -> None:
    async with connect_to(tmp_path, SILENT) as client:
        with pytest.raises(CallTimeout):
            await client.call_tool("x", timeout=seconds)
        await client.ping()


# -- all in the same time

GONE = """
died = os.path.exists(os.path.join(os.path.dirname(__file__), "died"))
mark("starts")
while died: time.sleep(1)
for m in calls(): mark("died"); os._exit(1)
"""


@pytest.mark.usefixtures("hurried")
async def test_the_time_of_a_call_is_also_that_of_a_reconnection(tmp_path: Path) -> None:
    async with connect_to(tmp_path, GONE, timeout=None) as client:
        with pytest.raises(ConnectionLost):
            await client.call_tool("x")
        for _ in range(2):
            with pytest.raises(CallTimeout, match=r"tools/call could not be sent within 0\.2 s"):
                await client.call_tool("x", timeout=0.2)
        assert len((tmp_path / "starts").read_text()) == 2, "the second joins what the first has begun"


async def test_time_spent_on_sending_counts_against_the_timeout(tmp_path: Path) -> None:
    """A server that reads after a while, and never answers: who began first is out of time first."""
    go = tmp_path / "go"
    code = f"""
            for m in asks():
                if usual(m): continue
                mark("stuck")
                while not os.path.exists({str(go)!r}): time.sleep(0.005)
        """
    async with connect_to(tmp_path, code) as client:
        calls = [asyncio.ensure_future(client.call_tool("x", timeout=None))]
        await until("that it reads no more", (tmp_path / "stuck").exists)
        calls.append(asyncio.ensure_future(client.call_tool("x", {"a": "x" * (4 << 20)}, timeout=None)))
        channel: Any = client._connection.current.channel  # type: ignore[union-attr]
        await until("that it takes no more", lambda: channel.congested)
        second = asyncio.ensure_future(client.call_tool("y", timeout=1.5))
        third = asyncio.ensure_future(client.call_tool("z", timeout=0.2))
        with pytest.raises(CallTimeout, match="does not read"):
            await third
        go.touch()
        await until("that it reads again", lambda: not channel.congested)
        with pytest.raises(CallTimeout):
            await client.call_tool("later", timeout=1.4)
        assert second.done()
        with pytest.raises(CallTimeout, match=r"no answer to tools/call within 1\.5 s"):
            await second
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)


async def test_a_notification_waits_for_a_server_that_does_not_read(tmp_path: Path) -> None:
    go = tmp_path / "go"
    code = f"""
            for m in asks():
                if m["method"] == "notifications/x": mark("heard")
                if m["method"] == "tools/call":
                    mark("stuck")
                    while not os.path.exists({str(go)!r}): time.sleep(0.005)
                    reply(m, DONE)
                else: usual(m)
        """
    async with connect_to(tmp_path, code, timeout=0.5) as client:
        call = asyncio.ensure_future(client.call_tool("x", timeout=None))
        await until("that it reads no more", (tmp_path / "stuck").exists)
        with pytest.raises(CallTimeout, match="notifications/x could not be sent within"):
            for _ in range(200):
                await client.notify("notifications/x", {"a": "x" * (1 << 20)})
        go.touch()
        assert (await call).text == "done"
        await client.notify("notifications/x")
