"""`requestState`: what a client may do with it (carry it back, in time, with the same request) and what it may not."""

import time
from typing import Annotated, Any

import pytest

from longshore import Ask, Context, Limits, Server
from longshore.server import questions

from .wire import LEGACY, Client, accept, run, text

YES = {"ok": accept(ok=True)}


def shop(done: list[str], /, limits: Limits | None = None, **options: Any) -> Server:
    app = Server("shop", limits=limits)

    @app.tool(**options)
    async def refund(order: str, ok: Annotated[bool, Ask("Refund {order}?")]) -> str:
        done.append(order)
        return "refunded"

    @app.tool(**options)
    async def cancel(order: str, ok: Annotated[bool, Ask("Refund {order}?")]) -> str:
        done.append(f"cancelled {order}")
        return "cancelled"

    return app


async def asked(client: Client, tool: str = "refund", order: str = "A9") -> str:
    reply = await client.call_tool(tool, {"order": order})
    assert reply["result"]["resultType"] == "input_required"
    return str(reply["result"]["requestState"])


def refusal(reply: Any) -> str:
    """The text of a refusal, which must be a JSON-RPC error and not another question."""
    assert reply["error"]["code"] == -32602, reply
    return str(reply["error"]["message"])


def test_a_state_with_any_byte_changed_is_refused() -> None:
    effects: list[str] = []

    async def main() -> None:
        client = Client(shop(effects))
        sealed = await asked(client)
        for at in range(len(sealed)):
            other = "A" if sealed[at] != "A" else "B"
            changed = sealed[:at] + other + sealed[at + 1 :]
            reply = await client.call_tool("refund", {"order": "A9"}, requestState=changed, inputResponses=YES)
            assert refusal(reply) == "requestState is not one of ours"
        assert effects == []

    run(main())


@pytest.mark.parametrize(
    "mangle",
    [
        lambda s: "",
        lambda s: s[:-4],
        lambda s: s + "AAAA",
        lambda s: s + "=",
        lambda s: " " + s,
        lambda s: s + "\n",
        lambda s: "\u00e9" + s[1:],
        lambda s: s[:40],
        lambda s: s[::-1],
    ],
)
def test_a_state_of_another_shape_is_refused(mangle: Any) -> None:
    effects: list[str] = []

    async def main() -> None:
        client = Client(shop(effects))
        changed = mangle(await asked(client))
        refusal(await client.call_tool("refund", {"order": "A9"}, requestState=changed, inputResponses=YES))
        assert effects == []

    run(main())


@pytest.mark.parametrize("value", [None, 7, {}, [], True])
def test_a_state_that_is_no_string_is_refused(value: Any) -> None:
    async def main() -> None:
        client = Client(shop([]))
        refusal(await client.call_tool("refund", {"order": "A9"}, requestState=value, inputResponses=YES))

    run(main())


def test_a_state_of_another_tool_is_refused() -> None:
    effects: list[str] = []

    async def main() -> None:
        client = Client(shop(effects))
        sealed = await asked(client, "cancel")
        reply = await client.call_tool("refund", {"order": "A9"}, requestState=sealed, inputResponses=YES)
        assert refusal(reply) == "requestState belongs to another request"
        assert effects == []

    run(main())


def test_a_state_of_other_arguments_is_refused() -> None:
    effects: list[str] = []

    async def main() -> None:
        client = Client(shop(effects))
        sealed = await asked(client, order="A9")
        reply = await client.call_tool("refund", {"order": "A10"}, requestState=sealed, inputResponses=YES)
        assert refusal(reply) == "requestState belongs to another request"
        assert effects == []

    run(main())


def test_a_state_of_another_principal_is_refused() -> None:
    effects: list[str] = []

    async def main() -> None:
        app = shop(effects)
        sealed = await asked(Client(app, principal="ada"))
        eve = Client(app, principal="eve")
        reply = await eve.call_tool("refund", {"order": "A9"}, requestState=sealed, inputResponses=YES)
        assert refusal(reply) == "requestState belongs to another request"
        assert effects == []

    run(main())


def test_a_state_of_another_server_is_refused() -> None:
    async def main() -> None:
        sealed = await asked(Client(shop([])))
        other = Client(shop([]))
        reply = await other.call_tool("refund", {"order": "A9"}, requestState=sealed, inputResponses=YES)
        assert refusal(reply) == "requestState is not one of ours"

    run(main())


@pytest.mark.parametrize(("late", "good"), [(599.0, True), (601.0, False)])
def test_a_state_lives_ten_minutes(monkeypatch: pytest.MonkeyPatch, late: float, good: bool) -> None:
    effects: list[str] = []

    async def main() -> None:
        client = Client(shop(effects))
        sealed = await asked(client)
        monkeypatch.setattr(questions, "time", lambda: time.time() + late)
        reply = await client.call_tool("refund", {"order": "A9"}, requestState=sealed, inputResponses=YES)
        if good:
            assert text(reply["result"]) == "refunded"
        else:
            assert "has expired" in refusal(reply)
        assert effects == ["A9"] * good

    run(main())


def test_a_state_comes_back_on_another_connection_of_the_same_principal() -> None:
    async def main() -> None:
        app = shop([])
        sealed = await asked(Client(app))
        reply = await Client(app).call_tool("refund", {"order": "A9"}, requestState=sealed, inputResponses=YES)
        assert text(reply["result"]) == "refunded"

    run(main())


def test_the_order_of_argument_names_and_the_meta_are_no_part_of_the_request() -> None:
    app = Server("shop")

    @app.tool
    async def f(a: int, b: int, ok: Annotated[bool, Ask("?")]) -> str:
        return "done"

    async def main() -> None:
        client = Client(app)
        sealed = (await client.call_tool("f", {"a": 1, "b": 2}))["result"]["requestState"]
        client.capabilities = {"elicitation": {}, "roots": {}}
        reply = await client.call_tool("f", {"b": 2, "a": 1}, requestState=sealed, inputResponses=YES)
        assert text(reply["result"]) == "done"

    run(main())


# -- once only


@pytest.mark.parametrize("options", [{}, {"effects": "write"}, {"effects": "destroy"}, {"idempotent": False}])
def test_a_state_refunds_an_order_once(options: dict[str, Any]) -> None:
    effects: list[str] = []

    async def main() -> None:
        client = Client(shop(effects, **options))
        sealed = await asked(client)
        await client.call_tool("refund", {"order": "A9"}, requestState=sealed, inputResponses=YES)
        reply = await client.call_tool("refund", {"order": "A9"}, requestState=sealed, inputResponses=YES)
        assert refusal(reply) == "requestState was used already"
        assert effects == ["A9"]

    run(main())


@pytest.mark.parametrize("options", [{"effects": "read"}, {"idempotent": True}])
def test_a_state_of_a_harmless_tool_may_come_again(options: dict[str, Any]) -> None:
    effects: list[str] = []

    async def main() -> None:
        client = Client(shop(effects, **options))
        sealed = await asked(client)
        for _ in range(2):
            reply = await client.call_tool("refund", {"order": "A9"}, requestState=sealed, inputResponses=YES)
            assert text(reply["result"]) == "refunded"
        assert effects == ["A9", "A9"]

    run(main())


def test_two_retries_in_flight_at_once_run_the_body_once() -> None:
    effects: list[str] = []

    async def main() -> None:
        client = Client(shop(effects))
        sealed = await asked(client)
        params = {"name": "refund", "arguments": {"order": "A9"}, "requestState": sealed, "inputResponses": YES}
        client.send("tools/call", params)
        client.send("tools/call", params)
        replies = [await client.get(), await client.get()]
        assert sorted("error" in reply for reply in replies) == [False, True]
        assert effects == ["A9"]

    run(main())


# -- size


def test_a_state_over_32_kib_is_refused_unread() -> None:
    async def main() -> None:
        client = Client(shop([]))
        reply = await client.call_tool("refund", {"order": "A9"}, requestState="A" * 32769, inputResponses=YES)
        assert refusal(reply) == "requestState is too long"
        reply = await client.call_tool("refund", {"order": "A9"}, requestState="A" * 32768, inputResponses=YES)
        assert refusal(reply) == "requestState is not one of ours"

    run(main())


def hoarder(limits: Limits, size: int) -> Server:
    app = Server("hoarder", limits=limits)

    @app.tool(replay=True)
    async def f(ctx: Context) -> str:
        kept = await ctx.once("big", lambda: "x" * size)
        await ctx.elicit("Go on?", key="ok")
        return f"{len(kept)}"

    return app


def test_a_call_that_remembers_more_than_32_kib_is_refused_with_the_sizes() -> None:
    async def main() -> None:
        client = Client(hoarder(Limits(), 40_000))
        said = refusal(await client.call_tool("f"))
        assert "`once`" in said
        assert "32,768" in said

    run(main())


def test_the_size_of_a_state_is_a_limit_that_holds_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(questions, "time", lambda: 4e9)

    async def main() -> None:
        reply = await Client(hoarder(Limits(), 300)).call_tool("f")
        size = len(reply["result"]["requestState"])
        client = Client(hoarder(Limits(state_bytes=size), 300))
        sealed = (await client.call_tool("f"))["result"]["requestState"]
        assert text((await client.call_tool("f", requestState=sealed, inputResponses=YES))["result"]) == "300"
        refusal(await Client(hoarder(Limits(state_bytes=size - 1), 300)).call_tool("f"))

    run(main())


# -- answers


@pytest.mark.parametrize("responses", [12345, None, [], "ok", True, 1.5])
@pytest.mark.parametrize("with_state", [True, False])
def test_answers_that_are_no_object_are_refused(responses: Any, with_state: bool) -> None:
    effects: list[str] = []

    async def main() -> None:
        client = Client(shop(effects))
        more = {"requestState": await asked(client)} if with_state else {}
        reply = await client.call_tool("refund", {"order": "A9"}, inputResponses=responses, **more)
        assert refusal(reply) == "inputResponses must be an object of answers by key"
        assert effects == []

    run(main())


def test_answers_without_a_question_are_ignored() -> None:
    async def main() -> None:
        client = Client(shop([]))
        sealed = await asked(client)
        given = {**YES, "other": 12345, "": None}
        reply = await client.call_tool("refund", {"order": "A9"}, requestState=sealed, inputResponses=given)
        assert text(reply["result"]) == "refunded"

    run(main())


def test_only_a_missing_answer_is_asked_for_again() -> None:
    app = Server("shop")

    @app.tool
    async def f(a: Annotated[int, Ask("A?")], b: Annotated[int, Ask("B?")]) -> str:
        return f"{a} {b}"

    async def main() -> None:
        client = Client(app)
        first = (await client.call_tool("f"))["result"]
        second = await client.call_tool("f", requestState=first["requestState"], inputResponses={"a": accept(a=1)})
        assert list(second["result"]["inputRequests"]) == ["b"]
        sealed = second["result"]["requestState"]
        third = await client.call_tool("f", requestState=sealed, inputResponses={"a": accept(a=9), "b": accept(b=2)})
        assert text(third["result"]) == "1 2"

    run(main())


@pytest.mark.parametrize("more", [{}, {"inputResponses": {}}])
def test_a_retry_without_answers_is_asked_again(more: dict[str, Any]) -> None:
    async def main() -> None:
        client = Client(shop([]))
        reply = await client.call_tool("refund", {"order": "A9"}, requestState=await asked(client), **more)
        assert list(reply["result"]["inputRequests"]) == ["ok"]

    run(main())


@pytest.mark.parametrize(
    "answer",
    [
        12345,
        None,
        "yes",
        [],
        {},
        {"action": "maybe"},
        {"action": "accept"},
        {"action": "accept", "content": {}},
        {"action": "accept", "content": {"ok": "perhaps"}},
        {"action": "accept", "content": {"ok": None}},
        {"action": "accept", "content": [True]},
        {"content": {"ok": True}},
    ],
)
def test_a_malformed_answer_is_refused_and_runs_nothing(answer: Any) -> None:
    effects: list[str] = []

    async def main() -> None:
        app = shop(effects)
        client = Client(app)
        sealed = await asked(client)
        reply = await client.call_tool("refund", {"order": "A9"}, requestState=sealed, inputResponses={"ok": answer})
        assert "the answer to 'ok' is malformed" in refusal(reply)
        legacy = Client(app, LEGACY)
        legacy.send("tools/call", {"name": "refund", "arguments": {"order": "A9"}})
        question = await legacy.get()
        legacy.put({"jsonrpc": "2.0", "id": question["id"], "result": answer})
        reply = await legacy.get()
        assert "the answer to 'ok' is malformed" in refusal(reply)
        assert effects == []

    run(main())


@pytest.mark.parametrize(
    "answer", [12345, {}, {"role": "assistant"}, {"role": "robot", "content": {}, "model": "m"}, {"roots": []}]
)
def test_a_malformed_answer_of_the_model_is_refused(answer: Any) -> None:
    app = Server("shop")

    @app.tool(replay=True)
    async def f(ctx: Context) -> str:
        return (await ctx.sample("Hm?", key="a")).text

    async def main() -> None:
        client = Client(app)
        sealed = (await client.call_tool("f"))["result"]["requestState"]
        refusal(await client.call_tool("f", requestState=sealed, inputResponses={"a": answer}))

    run(main())


# -- the envelope of a question


def test_a_round_names_its_kind_and_the_server() -> None:
    async def main() -> None:
        reply = await Client(shop([])).call_tool("refund", {"order": "A9"})
        result = reply["result"]
        assert set(result) == {"resultType", "inputRequests", "requestState", "_meta"}
        assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "shop"
        for question in result["inputRequests"].values():
            assert set(question) == {"method", "params"}

    run(main())


def test_every_round_has_a_new_state() -> None:
    async def main() -> None:
        client = Client(shop([]))
        assert await asked(client) != await asked(client)

    run(main())


def test_a_modern_client_is_never_sent_a_request() -> None:
    async def main() -> None:
        client = Client(shop([]))
        sealed = await asked(client)
        await client.call_tool("refund", {"order": "A9"}, requestState=sealed, inputResponses=YES)
        assert client.link.pending() == 0
        assert not client.link.session.asked

    run(main())


def test_a_handshake_client_has_no_use_for_the_fields_of_the_modern_era() -> None:
    async def main() -> None:
        client = Client(shop([]), LEGACY)
        params = {"name": "refund", "arguments": {"order": "A9"}, "requestState": "x", "inputResponses": YES}
        client.send("tools/call", params)
        question = await client.get()
        assert question["method"] == "elicitation/create"
        client.put({"jsonrpc": "2.0", "id": question["id"], "result": YES["ok"]})
        assert text((await client.get())["result"]) == "refunded"

    run(main())


@pytest.mark.parametrize("options", [{"effects": "read"}, {"effects": "write", "idempotent": True}])
def test_answers_without_a_state_are_accepted_by_idempotent_tools(options: Any) -> None:
    effects: list[str] = []

    async def main() -> None:
        client = Client(shop(effects, **options))
        reply = await client.call_tool("refund", {"order": "A9"}, inputResponses={**YES, "more": accept(ok=False)})
        assert text(reply["result"]) == "refunded"
        reply = await client.call_tool("refund", {"order": "A9"}, inputResponses={"other": accept(ok=True)})
        assert reply["result"]["resultType"] == "input_required"
        assert "'ok' is malformed" in refusal(
            await client.call_tool("refund", {"order": "A9"}, inputResponses={"ok": 7})
        )
        assert effects == ["A9"]

    run(main())


@pytest.mark.parametrize("options", [{}, {"effects": "write"}, {"effects": "destroy"}])
def test_answers_without_a_state_are_asked_for_again_where_it_has_an_effect(options: Any) -> None:
    effects: list[str] = []

    async def main() -> None:
        client = Client(shop(effects, **options))
        reply = await client.call_tool("refund", {"order": "A9"}, inputResponses=YES)
        assert reply["result"]["resultType"] == "input_required"
        assert effects == []

    run(main())


def test_answers_without_a_state_do_not_reach_the_questions_of_a_body() -> None:
    """Those may depend on what the body has seen; only the state knows which question was put."""
    app = Server("shop")

    @app.tool(effects="read", replay=True)
    async def look(ctx: Context) -> str:
        return str((await ctx.elicit("Look?", key="ok")).value)

    async def main() -> None:
        reply = await Client(app).call_tool("look", {}, inputResponses=YES)
        assert reply["result"]["resultType"] == "input_required"

    run(main())


def test_a_nonce_is_remembered_until_it_expires(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(questions, "_MAX_NONCES", 3)
    nonces, now = questions.MemoryNonces(), time.time()

    async def main() -> None:
        for nonce, expires in (("good", now + 1000), ("expired", now - 1), ("good too", now + 1000)):
            assert await nonces.consume(nonce, expires)
        assert await nonces.consume("one more", now + 1000)  # at the bound: what has expired makes room
        for nonce in ("good", "good too", "one more"):
            assert not await nonces.consume(nonce, now + 1000)
        assert "expired" not in nonces._consumed

    run(main())


def test_answers_without_the_state_are_asked_for_again() -> None:
    effects: list[str] = []

    async def main() -> None:
        client = Client(shop(effects))
        reply = await client.call_tool("refund", {"order": "A9"}, inputResponses=YES)
        assert reply["result"]["resultType"] == "input_required"
        assert effects == []

    run(main())
