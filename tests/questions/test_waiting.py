"""A handshake-era call that waits for its client: it holds no place and no clock, and it ends with its client."""

import asyncio
from typing import Annotated, Any

import pytest

from longshore import Ask, Context, Limits, Server
from longshore.wire.framing import TooLong

from .wire import LEGACY, Client, accept, failed, run, text


def asker(limits: Limits | None = None, **options: Any) -> Server:
    app = Server("asker", limits=limits)

    @app.tool(**options)
    async def before(ok: Annotated[bool, Ask("Sure?")]) -> str:
        return f"{ok}"

    @app.tool(replay=True, **options)
    async def within(ctx: Context) -> str:
        return f"{(await ctx.elicit('Sure?', key='ok')).value}"

    @app.tool
    async def add(a: int, b: int) -> int:
        return a + b

    @app.tool(timeout=1.0)
    async def hang() -> str:
        await asyncio.get_running_loop().create_future()
        return ""

    return app


both_ways = pytest.mark.parametrize("tool", ["before", "within"])


async def ask(client: Client, tool: str) -> tuple[int, Any]:
    """Call a tool that asks. The id of the call, and the question."""
    id = client.send("tools/call", {"name": tool, "arguments": {}})
    question = await client.get()
    assert question["method"] == "elicitation/create"
    return id, question


def answer(client: Client, question: Any, result: Any = None) -> None:
    client.put({"jsonrpc": "2.0", "id": question["id"], "result": result or accept(ok=True)})


@both_ways
@pytest.mark.parametrize("tail", ['"a":NaN}}', '"a":' + "[" * 200 + "]" * 200 + "}}"])
def test_an_answer_that_can_not_be_read_ends_the_wait(tool: str, tail: str) -> None:
    async def main() -> None:
        client = Client(asker(), LEGACY)
        id, question = await ask(client, tool)
        client.link.put(f'{{"jsonrpc":"2.0","id":"{question["id"]}","result":{{{tail}'.encode())
        reply = await client.get()
        assert reply["id"] == id
        assert "the response can't be read" in failed(reply["result"])

    run(main())


def test_an_answer_over_the_size_limit_ends_the_wait() -> None:
    async def main() -> None:
        client = Client(app := asker(), LEGACY)
        id, question = await ask(client, "before")
        head = f'{{"jsonrpc":"2.0","id":"{question["id"]}","result":{{"a":"'.encode()
        assert app.engine.too_long(TooLong(head, b"x"), client.link) is None
        reply = await client.get()
        assert reply["id"] == id
        assert "16,777,216 bytes" in text(reply["result"])

    run(main())


@both_ways
def test_a_waiting_calls_clock_stands_still(tool: str) -> None:
    async def main() -> None:
        client = Client(asker(timeout=1.0), LEGACY)
        id, question = await ask(client, tool)
        # A call with the same limit begins later and runs out of time: by then the first would have as well.
        assert "did not finish" in failed((await client.call_tool("hang"))["result"])
        answer(client, question)
        reply = await client.get()
        assert (reply["id"], text(reply["result"])) == (id, "True")

    run(main())


def test_the_clock_goes_on_when_the_answer_is_there() -> None:
    app = Server("asker")

    @app.tool(replay=True, timeout=1.0)
    async def f(ctx: Context) -> str:
        await ctx.elicit("Sure?", key="ok")
        assert 0 < ctx.remaining <= 1
        await asyncio.get_running_loop().create_future()
        return ""

    async def main() -> None:
        client = Client(app, LEGACY)
        _, question = await ask(client, "f")
        answer(client, question)
        assert "did not finish within 1 s" in failed((await client.get())["result"])

    run(main())


def test_a_question_gives_no_more_time_than_was_left() -> None:
    app, left = Server("asker"), list[float]()

    @app.tool(replay=True, timeout=1000)
    async def f(ctx: Context) -> str:
        while ctx.remaining > 999.95:
            await asyncio.sleep(0.005)
        left.append(ctx.remaining)
        await ctx.elicit("Sure?", key="ok")
        left.append(ctx.remaining)
        return "done"

    async def main() -> None:
        client = Client(app, LEGACY)
        _, question = await ask(client, "f")
        answer(client, question)
        assert text((await client.get())["result"]) == "done"
        assert left[1] <= left[0]

    run(main())


@both_ways
def test_a_waiting_call_that_is_cancelled_takes_no_place(tool: str) -> None:
    async def main() -> None:
        app = asker(Limits(running=1))
        client = Client(app, LEGACY)
        id, _ = await ask(client, tool)
        client.put({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})
        assert (await client.get())["method"] == "notifications/cancelled"  # of the question
        while app.engine.executor.cancelled_tasks:
            await asyncio.sleep(0.001)
        assert app.engine.executor.running == 0
        assert text((await client.call_tool("add", {"a": 1, "b": 2}))["result"]) == "3"

    run(main())


def test_a_call_that_asks_twice_at_once_waits_until_both_are_answered() -> None:
    app = Server("asker", limits=Limits(running=1))

    @app.tool(replay=True, timeout=1.0)
    async def f(ctx: Context) -> str:
        a, b = await asyncio.gather(ctx.elicit("A?", key="a"), ctx.elicit("B?", key="b"))
        return f"{a.value} {b.value}"

    @app.tool(timeout=1.0)
    async def hang() -> str:
        await asyncio.get_running_loop().create_future()
        return ""

    async def main() -> None:
        client = Client(app, LEGACY)
        _, first = await ask(client, "f")
        second = await client.get()
        answer(client, first, accept(a=True))
        assert "did not finish" in failed((await client.call_tool("hang"))["result"])
        answer(client, second, accept(b=False))
        assert text((await client.get())["result"]) == "True False"

    run(main())


@both_ways
def test_a_cancelled_call_takes_its_question_back_and_is_not_answered(tool: str) -> None:
    async def main() -> None:
        app = asker()
        client = Client(app, LEGACY)
        id, question = await ask(client, tool)
        client.put({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})
        notice = await client.get()
        assert notice["method"] == "notifications/cancelled"
        assert notice["params"]["requestId"] == question["id"]
        answer(client, question)  # too late: nobody asks any more
        assert text((await client.call_tool("add", {"a": 1, "b": 2}))["result"]) == "3"
        assert client.link.pending() == 0
        assert not client.link.session.asked
        assert not app.engine.executor.live

    run(main())


@both_ways
def test_a_call_whose_client_disconnects_is_still_answered(tool: str) -> None:
    async def main() -> None:
        app = asker()
        client = Client(app, LEGACY)
        id, _ = await ask(client, tool)
        app.engine.detach(client.link)
        reply = await client.get()
        assert reply["id"] == id
        assert "disconnected" in failed(reply["result"])
        assert not app.engine.executor.live
        assert client.link.pending() == 0

    run(main())


@both_ways
def test_a_disconnected_client_is_not_asked(tool: str) -> None:
    async def main() -> None:
        app = asker()
        client = Client(app, LEGACY)
        id = client.send("tools/call", {"name": tool, "arguments": {}})
        app.engine.detach(client.link)  # before the call had its first turn
        reply = await client.get()
        assert reply["id"] == id
        assert "disconnected" in failed(reply["result"])
        assert client.link.pending() == 0

    run(main())


def test_unexpected_answers_are_ignored() -> None:
    async def main() -> None:
        client = Client(asker(), LEGACY)
        _, question = await ask(client, "within")
        answer(client, {"id": "longshore-99"})
        answer(client, {"id": 1})
        answer(client, question)
        answer(client, question, {"action": "decline"})
        assert text((await client.get())["result"]) == "True"
        assert client.link.pending() == 0

    run(main())


def test_a_client_answers_only_its_own_questions() -> None:
    async def main() -> None:
        app = asker()
        ada, eve = Client(app, LEGACY), Client(app, LEGACY)
        _, question = await ask(ada, "within")
        answer(eve, question)
        await asyncio.sleep(0)
        assert ada.link.pending() == 0
        answer(ada, question, {"action": "decline"})
        assert text((await ada.get())["result"]) == "None"

    run(main())


def test_questions_have_ids_of_their_own() -> None:
    async def main() -> None:
        client = Client(asker(), LEGACY)
        ids = {(await ask(client, "within"))[1]["id"] for _ in range(3)}
        assert len(ids) == 3

    run(main())


def test_a_call_that_was_answered_leaves_nothing_behind() -> None:
    async def main() -> None:
        app = asker()
        client = Client(app, LEGACY)
        for tool in ("before", "within"):
            _, question = await ask(client, tool)
            answer(client, question)
            await client.get()
        session = client.link.session
        assert (session.rows, session.asked, app.engine.executor.live) == ({}, {}, set())

    run(main())


@both_ways
def test_a_waiting_call_holds_no_place(tool: str) -> None:
    async def main() -> None:
        client = Client(asker(Limits(running=1)), LEGACY)
        id, question = await ask(client, tool)
        reply = await client.call_tool("add", {"a": 1, "b": 2})
        assert text(reply["result"]) == "3"
        answer(client, question)
        reply = await client.get()
        assert (reply["id"], text(reply["result"])) == (id, "True")

    run(main())


@both_ways
def test_more_calls_may_wait_than_may_run(tool: str) -> None:
    async def main() -> None:
        app = asker(Limits(running=2))
        client = Client(app, LEGACY)
        questions = [(await ask(client, tool))[1] for _ in range(20)]
        assert app.engine.executor.running == 0
        for question in reversed(questions):
            answer(client, question)
        replies = [await client.get() for _ in questions]
        assert all(text(reply["result"]) == "True" for reply in replies)
        assert app.engine.executor.running == 0

    run(main())
