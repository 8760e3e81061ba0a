"""Careless or hostile bytes on the pipe: garbage, huge frames, floods, stalls."""

from __future__ import annotations

import asyncio
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from client.scripted import connect_to, run, script, until
from longshore.client import Client
from longshore.errors import CallTimeout, ClientError, ConnectError, ConnectionLost, ServerError
from longshore.limits import Limits

# -- garbage


async def test_garbage_between_frames_is_passed_over(tmp_path: Path) -> None:
    code = r"""
            raw(b"Starting up ...\n\n\r\n   \n\x00\xff\xfe\n{\n}\n[1,\nnull\n")
            for m in calls():
                raw(b"DEBUG: called\n" + b"\x1b[31mred\x1b[0m\n")
                reply(m, DONE)
                raw(b"<html>\n\xef\xbb\xbf{}\n")
        """
    async with connect_to(tmp_path, code) as client:
        for _ in range(3):
            assert (await client.call_tool("x")).text == "done"
        assert any("Starting up ..." in problem for problem in client.problems)


async def test_carriage_returns_and_spaces_do_no_harm(tmp_path: Path) -> None:
    code = r"""
            def send(message): raw(b"  " + json.dumps(message, indent=None).encode() + b" \t\r\n")
            for m in calls(): reply(m, DONE)
        """
    async with connect_to(tmp_path, code) as client:
        assert (await client.call_tool("x")).text == "done"


async def test_a_banner_without_a_newline_spoils_one_answer_and_is_named(tmp_path: Path) -> None:
    client = connect_to(tmp_path, "raw(b'Odd Server 1.0 ready')\nfor m in calls(): reply(m, DONE)", timeout=0.5)
    with pytest.raises(ConnectError, match=r"Odd Server 1\.0 ready"):
        await client.open()


async def test_a_server_that_pretty_prints_is_explained(tmp_path: Path) -> None:
    code = "def send(message): raw(json.dumps(message, indent=1).encode() + b'\\n')\nfor m in calls(): pass"
    with pytest.raises(ConnectError, match="no message"):
        await connect_to(tmp_path, code, timeout=0.5).open()


# -- size

LIMIT = 100_000


@pytest.mark.parametrize("over", [-1, 0, 1])
async def test_a_frame_at_the_limit(tmp_path: Path, over: int) -> None:
    code = f"""
            for m in calls():
                empty = len(json.dumps(dict(jsonrpc="2.0", id=m["id"], result=text(""))))
                reply(m, text("x" * ({LIMIT + over} - empty)))
        """
    async with connect_to(tmp_path, code, limits=Limits(frame_bytes=LIMIT)) as client:
        if over <= 0:
            assert len((await client.call_tool("x")).text) > LIMIT - 200
        else:
            with pytest.raises(ConnectionLost, match="more than 100,000 bytes"):
                await client.call_tool("x")
            with pytest.raises(ConnectionLost, match="more than 100,000 bytes"):
                await client.call_tool("x")  # on another connection, which ends in the same way


async def test_a_frame_that_never_ends_takes_no_memory_and_no_time(tmp_path: Path) -> None:
    code = "for m in calls():\n    while True: raw(b'x' * 65536)"
    async with connect_to(tmp_path, code, limits=Limits(frame_bytes=1 << 20)) as client:
        with pytest.raises(ConnectionLost, match="more than 1,048,576 bytes"):
            await client.call_tool("x")


def test_a_result_of_50_megabytes(tmp_path: Path) -> None:
    async def test() -> None:
        async with connect_to(tmp_path, "for m in calls(): reply(m, text('é' * (25 << 20)))", timeout=30) as client:
            result = await client.call_tool("x")  # 50 MB as UTF-8, escaped here: 150
            assert len(result.text) == 25 << 20

    async def refused() -> None:
        with pytest.raises(ConnectionLost, match="67,108,864"):
            await test()

    async def within() -> None:
        code = "for m in calls(): reply(m, text('x' * (50 << 20)))"
        async with connect_to(tmp_path, code, timeout=30) as client:
            assert len((await client.call_tool("x")).text) == 50 << 20
            assert len((await client.call_tool("x")).text) == 50 << 20

    run(refused, 50)
    run(within, 50)


async def test_one_byte_at_a_time(tmp_path: Path) -> None:
    code = """
            def send(message):
                for byte in json.dumps(message, ensure_ascii=False).encode() + b"\\n":
                    os.write(1, bytes([byte]))
            for m in calls(): reply(m, text("é☃" * 500))
        """
    async with connect_to(tmp_path, code) as client:
        assert (await client.call_tool("x")).text == "é☃" * 500


# -- floods


def test_a_flood_on_stderr_neither_blocks_the_server_nor_fills_memory(tmp_path: Path) -> None:
    async def test() -> None:
        code = """
            for m in calls():
                for n in range(300):
                    os.write(2, b"w" * 65535 + b"\\n")
                complain("the last line")
                if m["params"]["name"] == "die": sys.exit(3)
                reply(m, DONE)
        """
        async with connect_to(tmp_path, code) as client:
            assert (await client.call_tool("x")).text == "done"  # 20 MB were in its way
            with pytest.raises(ConnectionLost) as caught:
                await client.call_tool("die")
            assert str(caught.value).endswith("| the last line")
            assert len(str(caught.value)) < 20_000

    run(test, 40)


def test_a_flood_of_notifications_before_an_answer(tmp_path: Path) -> None:
    async def test() -> None:
        code = """
            for m in calls():
                line = json.dumps(dict(jsonrpc="2.0", method="notifications/message",
                                       params=dict(level="info", data="x"))).encode() + b"\\n"
                for n in range(500): raw(line * 100)
                reply(m, DONE)
        """
        count = 0

        def heard(_: Any) -> None:
            nonlocal count
            count += 1

        async with connect_to(tmp_path, code, on_log=heard) as client:
            assert (await client.call_tool("x")).text == "done"
            assert count == 50_000

    run(test, 40)


async def test_a_flood_of_progress(tmp_path: Path) -> None:
    code = """
        for m in calls():
            token = m["params"]["_meta"]["progressToken"]
            lines = b"".join(json.dumps(dict(jsonrpc="2.0", method="notifications/progress",
                params=dict(progressToken=token, progress=n))).encode() + b"\\n" for n in range(50000))
            raw(lines)
            reply(m, DONE)
    """
    seen: list[float] = []
    async with connect_to(tmp_path, code) as client:
        result = await client.call_tool("x", on_progress=lambda at, *_: seen.append(at))
        assert result.text == "done"
        assert seen == list(range(50_000))


async def test_more_questions_than_are_worked_on_are_refused(tmp_path: Path) -> None:
    code = """
            for m in calls():
                for n in range(200): ask(n, "elicitation/create", message=str(n), requestedSchema={})
                answers = [json.loads(sys.stdin.readline()) for _ in range(136)]
                mark("refused")
                answers += [json.loads(sys.stdin.readline()) for _ in range(64)]
                refused = sum("error" in each for each in answers)
                reply(m, text(f"{refused} {len({each['id'] for each in answers})}"))
        """
    asked = 0
    enough = asyncio.Event()

    async def elicit(_: Any) -> bool:
        nonlocal asked
        asked += 1
        await enough.wait()
        return True

    async with connect_to(tmp_path, code, on_elicit=elicit) as client:
        call = asyncio.ensure_future(client.call_tool("x"))
        await until("that it got to know", (tmp_path / "refused").exists)
        enough.set()
        assert (await call).text == "136 200"
        assert asked == 64


@pytest.mark.parametrize("method", ["ping", "no/such", "elicitation/create"])
@pytest.mark.usefixtures("hurried")
def test_unread_answers_do_not_fill_memory(tmp_path: Path, method: str) -> None:
    """Two hundred thousand questions from a server that never reads: our answers must not pile up without end."""

    async def test() -> None:
        code = """
            for m in calls():
                for n in range(2000):
                    line = b'{"jsonrpc":"2.0","id":"%d","method":"METHOD"}\\n'
                    raw(b"".join(line % (n * 100 + k) for k in range(100)))
                mark("sent")
                while True: time.sleep(1)
        """.replace("METHOD", method)
        async with connect_to(tmp_path, code, timeout=None, on_elicit=lambda _: True) as client:
            call = asyncio.ensure_future(client.call_tool("x"))
            tracemalloc.start()
            try:
                await until("the flood", (tmp_path / "sent").exists, 50)
                assert tracemalloc.get_traced_memory()[0] < 4 << 20
            finally:
                tracemalloc.stop()
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)

    run(test, 55)


# -- stalls

DEAF = """
for m in calls():
    complain("I stop reading")
    break
time.sleep(1000)
"""


@pytest.mark.usefixtures("hurried")
async def test_a_server_that_stops_reading_holds_up_no_deadline_and_no_close(tmp_path: Path) -> None:
    async with connect_to(tmp_path, DEAF) as client:
        first = asyncio.ensure_future(client.call_tool("x", timeout=None))
        await until("it to stop", lambda: "I stop reading" in client.stderr_tail())
        big = asyncio.ensure_future(client.call_tool("x", {"a": "x" * (10 << 20)}, timeout=None))
        await asyncio.sleep(0)
        for _ in range(3):
            with pytest.raises(CallTimeout):
                await client.call_tool("x", timeout=0.2)
        waiting = asyncio.ensure_future(client.call_tool("x", timeout=None))
        given_up = asyncio.ensure_future(client.call_tool("x", timeout=None))
        await asyncio.sleep(0.05)
        given_up.cancel()
        with pytest.raises(asyncio.CancelledError):
            await given_up
        await client.close()
        for each in (first, big, waiting):
            with pytest.raises(ClientError):
                await each


@pytest.mark.usefixtures("hurried")
def test_ten_megabytes_to_a_slow_reader_arrive_whole(tmp_path: Path) -> None:
    async def test() -> None:
        code = """
            for m in calls():
                reply(m, text(str(len(m["params"]["arguments"]["a"]))))
        """
        async with connect_to(tmp_path, code, timeout=30) as client:
            sizes = [10 << 20, 1, 3 << 20, 2]
            results = await asyncio.gather(*(client.call_tool("x", {"a": "x" * size}) for size in sizes))
            assert [int(each.text) for each in results] == sizes

    run(test, 40)


@pytest.mark.usefixtures("hurried")
async def test_a_server_that_closes_its_input_is_lost(tmp_path: Path) -> None:
    """Nothing can be sent to it, so no call should wait for its time to end."""
    code = """
            for m in calls():
                os.close(0)
                reply(m, DONE)
                time.sleep(1000)
        """
    async with connect_to(tmp_path, code) as client:
        assert (await client.call_tool("x")).text == "done"
        await until("that it is noticed", lambda: not client.connected)
        assert (await client.call_tool("x")).text == "done"  # on another connection


@pytest.mark.usefixtures("hurried")
async def test_a_server_that_closes_its_output_is_lost(tmp_path: Path) -> None:
    code = """
            for m in calls():
                complain("closing")
                os.close(1)
                time.sleep(1000)
        """
    async with connect_to(tmp_path, code) as client:
        with pytest.raises(ConnectionLost, match="closed its output") as caught:
            await client.call_tool("x")
        assert "| closing" in str(caught.value)
        with pytest.raises(ConnectionLost):
            await client.call_tool("x")


async def test_an_error_of_a_megabyte_is_shown_in_short(tmp_path: Path) -> None:
    code = "for m in calls(): refuse(m, -1, 'x' * (1 << 20), data='y' * 100)"
    async with connect_to(tmp_path, code) as client:
        with pytest.raises(ServerError) as caught:
            await client.call_tool("x")
        assert len(caught.value.message) == 1 << 20, "whoever wants it has it whole"
        assert len(str(caught.value)) < 20_000


async def test_a_message_in_between_pardons_garbage(tmp_path: Path) -> None:
    code = """
        for m in calls():
            for _ in range(3):
                raw(b"what?\\n" * 900)
                notify("notifications/message", level="info", data="x")
            reply(m, DONE)
    """
    async with Client(script(tmp_path, code)) as client:
        assert (await client.call_tool("x")).text == "done"
        assert any("what?" in note for note in client.problems)


async def test_garbage_without_end_ends_the_connection(tmp_path: Path) -> None:
    code = 'for m in calls(): raw(b"what?\\n" * 1000)'
    async with Client(script(tmp_path, code), reconnect=False) as client:
        with pytest.raises(ConnectionLost, match=r"does not speak MCP.*what"):
            await client.call_tool("x")


async def test_a_batch_of_many_answers(tmp_path: Path) -> None:
    code = """
        held = []
        for m in calls():
            held.append({"jsonrpc": "2.0", "id": m["id"], "result": text(str(m["id"]))})
            if len(held) == 500:
                send(held)
    """
    async with Client(script(tmp_path, code), era="2025-03-26") as client:
        results = await asyncio.gather(*(client.call_tool("x") for _ in range(500)))
        assert len({result.text for result in results}) == 500
