"""Bodies that ask: only where they are declared to run again, and with their effects done once."""

import asyncio
from typing import Any

import pytest

from longshore import Context, Declined, Elicit, Limits, ListRoots, RegistrationError, Sample, Server, Tool, ToolError

from .wire import DECLINE, ERAS, LEGACY, MODERN, Client, accept, failed, run, text

both_eras = pytest.mark.parametrize("era", ERAS)


# -- without replay=True


@both_eras
def test_a_body_that_charges_and_then_asks_charges_once_and_is_refused_with_the_fix(era: str) -> None:
    charges: list[str] = []
    app = Server("shop")

    @app.tool
    async def buy(item: str, ctx: Context) -> str:
        charges.append(item)
        answer = await ctx.elicit("Gift wrap?", key="wrap")
        return f"{answer.value}"

    async def main() -> None:
        client = Client(app, era)
        reply = await client.call_tool("buy", {"item": "cup"})
        said = failed(reply["result"])
        assert "Ask(…)" in said
        assert "replay=True" in said
        assert charges == ["cup"]
        assert client.link.pending() == 0

    run(main())


@both_eras
@pytest.mark.parametrize("way", ["ask", "sample", "roots"])
def test_no_question_of_any_kind_leaves_a_body_without_replay(era: str, way: str) -> None:
    app = Server("shop")

    @app.tool
    async def f(ctx: Context) -> str:
        match way:
            case "ask":
                await ctx.ask(a=Elicit("?"))
            case "sample":
                await ctx.sample("?", key="a")
            case _:
                await ctx.roots()
        return ""

    async def main() -> None:
        assert "replay=True" in failed((await Client(app, era).call_tool("f"))["result"])

    run(main())


def test_replay_on_a_def_is_refused_at_registration() -> None:
    app = Server("shop")
    with pytest.raises(RegistrationError, match="async def"):

        @app.tool(replay=True)
        def f(ctx: Context) -> str:
            return ""


# -- with replay=True


@both_eras
def test_a_body_asks_round_after_round_and_goes_on_where_it_stood(era: str) -> None:
    app = Server("shop")

    @app.tool(replay=True)
    async def order(ctx: Context) -> str:
        size = await ctx.elicit("Size?", int, key="size")
        color = await ctx.elicit(f"Color of size {size.value}?", str, key="color")
        return f"{size.value} {color.value}"

    answers = {"size": accept(size=4), "color": accept(color="red")}

    async def main() -> None:
        client = Client(app, era)
        assert text(await client.tool("order", {}, lambda key, _: answers[key])) == "4 red"
        assert [asked["params"]["message"] for asked in client.asked] == ["Size?", "Color of size 4?"]

    run(main())


async def _gathered(ctx: Context) -> list[Any]:
    return list(await asyncio.gather(ctx.elicit("A?", int, key="a"), ctx.elicit("B?", int, key="b")))


async def _grouped(ctx: Context) -> list[Any]:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(ctx.elicit(f"{key.upper()}?", int, key=key)) for key in ("a", "b")]
    return [task.result() for task in tasks]


async def _asked(ctx: Context) -> list[Any]:
    answers = await ctx.ask(a=Elicit("A?", int), b=Elicit("B?", int))
    return [answers.a, answers["b"]]


@pytest.mark.parametrize("ask", [_gathered, _grouped, _asked])
def test_questions_asked_side_by_side_leave_together(ask: Any) -> None:
    app = Server("shop")

    @app.tool(replay=True)
    async def f(ctx: Context) -> str:
        a, b = await ask(ctx)
        return f"{a.value} {b.value}"

    async def main() -> None:
        client = Client(app)
        reply = await client.call_tool("f")
        assert set(reply["result"]["inputRequests"]) == {"a", "b"}
        reply = await client.call_tool(
            "f",
            requestState=reply["result"]["requestState"],
            inputResponses={"a": accept(a=1), "b": accept(b=2)},
        )
        assert text(reply["result"]) == "1 2"

    run(main())


@pytest.mark.parametrize("ask", [_gathered, _grouped, _asked])
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_questions_asked_side_by_side_may_be_answered_in_any_order(ask: Any, order: tuple[int, int]) -> None:
    app = Server("shop")

    @app.tool(replay=True)
    async def f(ctx: Context) -> str:
        a, b = await ask(ctx)
        return f"{a.value} {b.value}"

    async def main() -> None:
        client = Client(app, LEGACY)
        client.send("tools/call", {"name": "f", "arguments": {}})
        asked = [await client.get(), await client.get()]
        for index in order:
            result = accept(a=1) if index == 0 else accept(b=2)
            client.put({"jsonrpc": "2.0", "id": asked[index]["id"], "result": result})
            await asyncio.sleep(0)
        assert text((await client.get())["result"]) == "1 2"
        assert client.link.pending() == 0

    run(main())


@both_eras
def test_kinds_of_questions_mix(era: str) -> None:
    app = Server("shop")

    @app.tool(replay=True)
    async def f(ctx: Context) -> str:
        answers = await ctx.ask(ok=Elicit("Sure?"), title=Sample("Title?"), where=ListRoots())
        return f"{answers.ok.value} {answers.title.text} {answers.where[0].name}"

    def answer(_: str, asked: Any) -> Any:
        match asked["method"]:
            case "elicitation/create":
                return accept(ok=True)
            case "roots/list":
                return {"roots": [{"uri": "file:///w", "name": "work"}]}
            case _:
                return {"role": "assistant", "content": {"type": "text", "text": "T"}, "model": "m"}

    async def main() -> None:
        client = Client(app, era)
        assert text(await client.tool("f", {}, answer)) == "True T work"

    run(main())


@both_eras
def test_a_declined_question_is_an_answer_that_the_body_looks_at(era: str) -> None:
    app = Server("shop")

    @app.tool(replay=True)
    async def f(ctx: Context) -> str:
        answer = await ctx.elicit("Sure?", key="ok")
        return f"{answer.action} {answer.accepted}"

    async def main() -> None:
        assert text(await Client(app, era).tool("f", {}, lambda *_: DECLINE)) == "decline False"

    run(main())


def test_a_clients_error_is_declined_in_the_body() -> None:
    app = Server("shop")

    @app.tool(replay=True)
    async def f(ctx: Context) -> str:
        try:
            await ctx.elicit("Sure?", key="ok")
        except Declined as no:
            return f"caught: {no}"
        return ""

    async def main() -> None:
        client = Client(app, LEGACY)
        client.send("tools/call", {"name": "f", "arguments": {}})
        asked = await client.get()
        client.put({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -1, "message": "user rejected"}})
        reply = await client.get()
        assert text(reply["result"]) == "caught: the client refused to answer 'ok': user rejected"

    run(main())


def test_an_uncaught_error_of_the_client_is_a_failed_result() -> None:
    app = Server("shop")

    @app.tool(replay=True)
    async def f(ctx: Context) -> str:
        await ctx.elicit("Sure?", key="ok")
        return ""

    async def main() -> None:
        client = Client(app, LEGACY)
        client.send("tools/call", {"name": "f", "arguments": {}})
        asked = await client.get()
        client.put({"jsonrpc": "2.0", "id": asked["id"], "error": 7})
        assert "refused to answer 'ok'" in failed((await client.get())["result"])

    run(main())


@both_eras
def test_a_missing_capability_can_be_caught_by_no_body_of_a_modern_client(era: str) -> None:
    app = Server("shop")

    @app.tool(replay=True)
    async def f(ctx: Context) -> str:
        return (await ctx.sample("?", key="a")).text

    async def main() -> None:
        reply = await Client(app, era, capabilities={}).call_tool("f")
        if era == MODERN:
            assert reply["error"]["code"] == -32021
            assert reply["error"]["data"]["requiredCapabilities"] == {"sampling": {}}
        else:
            assert "did not declare" in failed(reply["result"])

    run(main())


@both_eras
def test_a_key_asked_twice_at_once_is_refused(era: str) -> None:
    app = Server("shop")

    @app.tool(replay=True)
    async def f(ctx: Context) -> str:
        await asyncio.gather(ctx.elicit("A?", key="same"), ctx.elicit("B?", key="same"))
        return ""

    async def main() -> None:
        client = Client(app, era)
        client.send("tools/call", {"name": "f", "arguments": {}})
        frames = [await client.get()]
        while "method" in frames[-1]:
            frames.append(await client.get())
        assert "two questions named 'same'" in failed(frames[-1]["result"])
        if era == LEGACY:  # the first had left, and is taken back
            asked, taken_back = frames[0], frames[1]
            assert taken_back["method"] == "notifications/cancelled"
            assert taken_back["params"]["requestId"] == asked["id"]

    run(main())


@both_eras
def test_the_same_question_asked_again_has_its_answer_already(era: str) -> None:
    app = Server("shop")

    @app.tool(replay=True)
    async def f(ctx: Context) -> str:
        first = await ctx.elicit("Sure?", key="ok")
        second = await ctx.elicit("Sure?", key="ok")
        return f"{first.value} {second.value}"

    async def main() -> None:
        client = Client(app, era)
        assert text(await client.tool("f", {}, lambda *_: accept(ok=True))) == "True True"
        assert len(client.asked) == 1

    run(main())


@both_eras
def test_another_question_under_the_same_key_is_asked_anew(era: str) -> None:
    app = Server("shop")

    @app.tool(replay=True)
    async def f(ctx: Context) -> str:
        first = await ctx.elicit("Small?", key="ok")
        second = await ctx.elicit("Large?", key="ok")
        return f"{first.value} {second.value}"

    async def main() -> None:
        client = Client(app, era)
        answers = {"Small?": True, "Large?": False}
        result = await client.tool("f", {}, lambda _, asked: accept(ok=answers[asked["params"]["message"]]))
        assert text(result) == "True False"
        assert len(client.asked) == 2

    run(main())


def test_a_question_whose_text_has_changed_since_the_last_round_is_asked_again() -> None:
    app = Server("shop")
    price = 10

    @app.tool(replay=True)
    async def buy(ctx: Context) -> str:
        answer = await ctx.elicit(f"Buy for {price}?", key="ok")
        return f"{answer.value} for {price}"

    async def main() -> None:
        nonlocal price
        client = Client(app)
        first = await client.call_tool("buy")
        price = 1000
        given = {"ok": accept(ok=True)}
        second = await client.call_tool("buy", requestState=first["result"]["requestState"], inputResponses=given)
        assert second["result"]["inputRequests"]["ok"]["params"]["message"] == "Buy for 1000?"
        third = await client.call_tool("buy", requestState=second["result"]["requestState"], inputResponses=given)
        assert text(third["result"]) == "True for 1000"

    run(main())


@both_eras
def test_a_call_asks_in_at_most_eight_rounds(era: str) -> None:
    app = Server("shop")

    @app.tool(replay=True)
    async def nag(times: int, ctx: Context) -> str:
        for n in range(times):
            await ctx.elicit(f"{n}?", key=f"k{n}")
        return "done"

    def answer(key: str, _: Any) -> Any:
        return accept(**{key: True})

    async def main() -> None:
        client = Client(app, era)
        assert text(await client.tool("nag", {"times": 8}, answer)) == "done"
        client.asked.clear()
        assert "8 rounds" in failed(await client.tool("nag", {"times": 9}, answer))
        assert len(client.asked) == 8

    run(main())


def test_the_number_of_rounds_is_a_limit() -> None:
    app = Server("shop", limits=Limits(questions=1))

    @app.tool(replay=True)
    async def nag(ctx: Context) -> str:
        for n in range(2):
            await ctx.elicit(f"{n}?", key=f"k{n}")
        return "done"

    async def main() -> None:
        for era in ERAS:
            client = Client(app, era)
            assert "1 rounds" in failed(await client.tool("nag", {}, lambda key, _: accept(**{key: True})))

    run(main())


@both_eras
def test_a_raw_tool_may_ask_if_it_declares_replay(era: str) -> None:
    app = Server("shop")

    async def handler(arguments: dict[str, Any], ctx: Context) -> Any:
        answer = await ctx.elicit(f"Delete {arguments['path']}?", key="ok")
        return {"content": [{"type": "text", "text": f"{answer.value}"}]}

    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    app.add_tool(Tool(name="delete", input_schema=schema, replay=True), handler)

    async def main() -> None:
        client = Client(app, era)
        assert text(await client.tool("delete", {"path": "/tmp"}, lambda *_: accept(ok=True))) == "True"

    run(main())


def test_a_branch_that_fails_beside_a_question_fails_the_call_in_both_eras() -> None:
    app = Server("shop")

    @app.tool(replay=True)
    async def f(ctx: Context) -> str:
        async def check() -> None:
            raise ToolError("out of stock")

        async with asyncio.TaskGroup() as group:
            group.create_task(ctx.elicit("Buy?", key="ok"))
            group.create_task(check())
        return ""

    async def main() -> None:
        for era in ERAS:
            client = Client(app, era)
            client.send("tools/call", {"name": "f", "arguments": {}})
            frame = await client.get()
            while "method" in frame:
                frame = await client.get()
            assert failed(frame["result"]) == "out of stock"

    run(main())


# -- ctx.once


@both_eras
def test_once_does_its_effect_once_over_all_rounds_and_gives_the_same_value(era: str) -> None:
    charges: list[str] = []
    values: list[Any] = []
    app = Server("shop")

    @app.tool(replay=True)
    async def buy(item: str, ctx: Context) -> str:
        async def charge() -> dict[str, Any]:
            charges.append(item)
            return {"receipt": len(charges)}

        receipt = await ctx.once("charge", charge)
        values.append(receipt)
        wrap = await ctx.elicit("Gift wrap?", key="wrap")
        card = await ctx.elicit("A card?", key="card")
        return f"{receipt['receipt']} {wrap.value} {card.value}"

    async def main() -> None:
        client = Client(app, era)
        result = await client.tool("buy", {"item": "cup"}, lambda key, _: accept(**{key: True}))
        assert text(result) == "1 True True"
        assert charges == ["cup"]
        assert values == [{"receipt": 1}] * (1 if era == LEGACY else 3)

    run(main())


@both_eras
def test_once_takes_a_plain_function_too(era: str) -> None:
    app = Server("shop")

    @app.tool
    async def f(ctx: Context) -> str:
        return f"{await ctx.once('n', lambda: (1, 2))}"

    async def main() -> None:
        assert text((await Client(app, era).call_tool("f"))["result"]) == "[1, 2]"

    run(main())


def test_an_effect_on_its_way_is_finished_before_the_call_leaves_with_its_questions() -> None:
    charges: list[str] = []
    app = Server("shop")

    @app.tool(replay=True)
    async def buy(ctx: Context) -> str:
        async def charge() -> int:
            for _ in range(20):  # many turns of the loop, far more than the question needs to leave
                await asyncio.sleep(0)
            charges.append("once")
            return len(charges)

        number, wrap = await asyncio.gather(ctx.once("charge", charge), ctx.elicit("Gift wrap?", key="wrap"))
        return f"{number} {wrap.value}"

    async def main() -> None:
        for era in ERAS:
            charges.clear()
            assert text(await Client(app, era).tool("buy", {}, lambda *_: accept(wrap=True))) == "1 True"
            assert charges == ["once"]

    run(main())


def test_two_branches_that_want_the_same_effect_share_it() -> None:
    charges: list[str] = []
    app = Server("shop")

    @app.tool(replay=True)
    async def buy(ctx: Context) -> str:
        async def charge() -> int:
            await asyncio.sleep(0)
            charges.append("once")
            return len(charges)

        return f"{await asyncio.gather(ctx.once('charge', charge), ctx.once('charge', charge))}"

    async def main() -> None:
        assert text((await Client(app).call_tool("buy"))["result"]) == "[1, 1]"

    run(main())


def test_a_failed_effect_is_not_remembered() -> None:
    tries: list[int] = []
    app = Server("shop")

    @app.tool(replay=True)
    async def buy(ctx: Context) -> str:
        def charge() -> int:
            tries.append(1)
            if len(tries) == 1:
                raise ValueError("no network")
            return len(tries)

        try:
            return f"{await ctx.once('charge', charge)}"
        except ValueError:
            return f"{await ctx.once('charge', charge)}"

    async def main() -> None:
        assert text((await Client(app).call_tool("buy"))["result"]) == "2"

    run(main())


def test_a_body_that_swallows_its_cancellation_still_leaves_with_its_questions() -> None:
    app = Server("shop")

    @app.tool(replay=True)
    async def f(ctx: Context) -> str:
        try:
            answer = await ctx.elicit("Sure?", key="ok")
        except BaseException:
            return "swallowed"
        return f"{answer.value}"

    async def main() -> None:
        assert text(await Client(app).tool("f", {}, lambda *_: accept(ok=True))) == "True"

    run(main())


def test_the_body_of_a_modern_call_is_cleaned_up_when_it_leaves() -> None:
    events: list[str] = []
    app = Server("shop")

    @app.tool(replay=True)
    async def f(ctx: Context) -> str:
        events.append("open")
        try:
            return f"{(await ctx.elicit('Sure?', key='ok')).value}"
        finally:
            events.append("close")

    async def main() -> None:
        await Client(app).tool("f", {}, lambda *_: accept(ok=True))
        assert events == ["open", "close"] * 2
        assert not app.engine.executor.live
        assert app.engine.executor.running == 0

    run(main())
