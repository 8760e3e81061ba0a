"""Questions of a mounted server reach its caller and no other, in all four pairs of eras."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import pytest

from longshore import Context, Server, ToolFailed
from longshore.backoff import Backoff
from longshore.client import Client
from longshore.client.reconnecting_session import busy_delay
from longshore.errors import ServerError, ToolError
from longshore.limits import Limits
from longshore.mounting.relayed_questions import capabilities_of, read_question
from longshore.protocol.peer import Peer
from longshore.protocol.questions import Elicit, Sample
from longshore.protocol.revisions import REVISIONS
from longshore.protocol.session import Session
from serving import serve

from .gateway import COMMAND, ERAS, WAYS, behind, close, gate_to, hostile, problems, through, until
from .mounted_server import make_server

theirs = pytest.mark.parametrize("inner", ERAS)
ours = pytest.mark.parametrize("outer", ERAS)


@pytest.mark.parametrize("way", WAYS)
@theirs
@ours
async def test_a_person_is_asked_through_us(way: str, inner: str, outer: str) -> None:
    with behind(way) as target:
        asked: list[str] = []

        def answer(question: Any) -> str:
            asked.append(question.message)
            return {"[b] Where to?": "Rome", "[b] How to Rome?": "boat"}.get(question.message, "Bob")

        async with through(gate_to(target, inner), outer, on_elicit=answer) as client:
            assert (await client.call_tool("b_greet")).text == "hello Bob"
            assert (await client.call_tool("b_trip")).text == "to Rome by boat"
            assert asked == ["[b] What is your name?", "[b] Where to?", "[b] How to Rome?"]
            begun = (await client.call_tool("b_counts", returns=dict))["begun"]
            assert begun == (3 if inner == "modern" else 1)  # a stateless body runs again; a legacy one must not


@theirs
@ours
async def test_models_and_folders_are_asked_through_us(inner: str, outer: str) -> None:
    prompts: list[Any] = []

    def sample(params: Any) -> str:
        prompts.append(params)
        return "a rhyme"

    gate = gate_to(make_server(), inner)
    async with through(gate, outer, on_sample=sample, roots=["file:///work"]) as client:
        assert (await client.call_tool("b_rhyme")).text == "a rhyme in file:///work"
        assert prompts[0]["messages"][0]["content"]["text"] == "rhyme on sea"
        assert prompts[0]["metadata"] == {"longshore/mount": "b"}


@theirs
@ours
async def test_a_declined_question_ends_the_call(inner: str, outer: str) -> None:
    async with through(gate_to(make_server(), inner), outer, on_elicit=lambda _: False) as client:
        with pytest.raises(ToolFailed, match="decline"):
            await client.call_tool("b_greet")


@theirs
@ours
async def test_a_caller_without_the_capability_is_not_asked(inner: str, outer: str) -> None:
    async with through(gate_to(make_server(), inner), outer) as client:
        with pytest.raises((ToolFailed, ServerError), match="did not declare"):
            await client.call_tool("b_greet")
        assert (await client.call_tool("b_add", {"a": 1, "b": 1})).text == "2"


@theirs
@ours
async def test_a_mounted_client_with_handlers_answers_instead_of_the_caller(inner: str, outer: str) -> None:
    gate = gate_to(make_server(), inner, on_elicit=lambda _: "the gateway")
    async with through(gate, outer, on_elicit=lambda _: pytest.fail("it was asked")) as client:
        assert (await client.call_tool("b_greet")).text == "hello the gateway"


@theirs
@ours
async def test_questions_come_through_two_servers(inner: str, outer: str) -> None:
    middle = gate_to(make_server(), inner)
    gate = Server("front")
    gate.mount(Client(middle, era=outer), prefix="f")
    asked: list[str] = []
    async with through(gate, inner, on_elicit=lambda q: asked.append(q.message) or "Bob") as client:
        assert (await client.call_tool("f_b_greet")).text == "hello Bob"
        assert asked == ["[f] [b] What is your name?"]
    await close(middle)


@ours
async def test_a_question_never_reaches_another_caller(outer: str) -> None:
    """While one caller thinks, the server may ask for more on their behalf, and nothing says on whose it does."""
    gate = gate_to(hostile("later"))
    mount: Any = gate.catalog.toolsets["b"].toolset
    with serve(gate.asgi(rate=0)) as served:
        thinking, go_on = asyncio.Event(), asyncio.Event()
        asked: list[str] = []

        async def think(question: Any) -> str:
            asked.append(question.message)
            thinking.set()
            await go_on.wait()
            return "Ann's"

        async with (
            Client(served.url, era=outer, on_elicit=think) as ann,
            Client(served.url, era=outer, on_elicit=lambda _: pytest.fail("a stranger was asked")) as bob,
        ):
            await ann.list_tools()
            hers = asyncio.ensure_future(ann.call_tool("b_go"))
            await thinking.wait()
            his = asyncio.ensure_future(bob.call_tool("b_other"))
            await until("his call", lambda: len(mount._calls.held.all) == 2)
            go_on.set()
            told = json.loads((await hers).text)
            assert told == json.loads((await his).text)
            assert asked == ["[b] a question of go"]
            assert told["go"] == {"a": "Ann's"}
            for question in ("other", "more"):
                assert "nobody knows whom to ask" in told[question]["message"]


async def test_while_one_thinks_others_are_served() -> None:
    gate = gate_to(make_server(), "legacy")
    with serve(gate.asgi(rate=0)) as served:
        thinking, go_on = asyncio.Event(), asyncio.Event()

        async def think(_: Any) -> str:
            thinking.set()
            await go_on.wait()
            return "Ann"

        async with Client(served.url, on_elicit=think) as ann, Client(served.url) as bob:
            hers = asyncio.ensure_future(ann.call_tool("b_greet"))
            await thinking.wait()
            assert (await bob.call_tool("b_add", {"a": 1, "b": 2})).text == "3"
            go_on.set()
            assert (await hers).text == "hello Ann"


@pytest.mark.parametrize("known", [True, False])
async def test_requests_of_one_principal_are_one_caller(known: bool, tmp_path: Path) -> None:
    """In the stateless era nothing else says of two requests over HTTP that they are one caller's."""
    gate = gate_to(make_server(), "legacy")
    token = "a-token-for-this-test-alone-0123456789"
    config = tmp_path / "longshore.toml"
    config.write_text(f'[tokens.ann]\ntoken = "{token}"\n' if known else "")
    config.chmod(0o600)
    with serve(gate.asgi(rate=0, config_path=str(config))) as served:
        begun = asyncio.Event()
        headers = {"Authorization": f"Bearer {token}"} if known else {}
        async with Client(served.url, era="modern", headers=headers, on_elicit=lambda _: "Bob") as bob:
            other = asyncio.ensure_future(bob.call_tool("b_wait", on_progress=lambda *_: begun.set()))
            await begun.wait()
            greeted = await bob.call_tool("b_greet", check=False)
            assert greeted.text == "hello Bob" if known else "nobody knows whom to ask" in greeted.text
            other.cancel()


async def test_a_second_question_reaches_the_caller_of_the_first() -> None:
    """Over HTTP in the stateless era each request is a session of its own."""
    with serve(gate_to(make_server(), "legacy").asgi(rate=0)) as served:
        async with Client(served.url, era="modern", on_elicit=lambda _: "Rome") as client:
            assert (await client.call_tool("b_trip")).text == "to Rome by Rome"


async def test_no_caller_is_asked_while_another_has_a_call() -> None:
    """Two callers at work at once: nothing says whose question it is."""
    gate = gate_to(make_server(), "legacy")
    with serve(gate.asgi(rate=0)) as served:
        begun = asyncio.Event()
        async with Client(served.url, on_elicit=lambda _: "Bob") as bob, Client(served.url) as ann:
            hers = asyncio.ensure_future(ann.call_tool("b_wait", on_progress=lambda *_: begun.set()))
            await begun.wait()
            with pytest.raises(ToolFailed, match="nobody knows whom to ask"):
                await bob.call_tool("b_greet")
            hers.cancel()


@pytest.mark.parametrize("kind", ["read", "prompt"])
async def test_no_caller_is_asked_while_another_reads_or_gets_a_prompt(kind: str) -> None:
    inner, begun = make_server(), threading.Event()

    @inner.resource("test://slow", timeout=60)
    async def slow_thing() -> str:
        begun.set()
        await asyncio.sleep(60)
        return "never"

    @inner.prompt(timeout=60)
    async def slow_poem() -> str:
        return await slow_thing()

    with serve(gate_to(inner, "legacy").asgi(rate=0)) as served:
        async with Client(served.url, on_elicit=lambda _: "Bob") as bob, Client(served.url) as ann:
            assert (await bob.call_tool("b_greet")).text == "hello Bob"
            hers = ann.read_resource("test://slow") if kind == "read" else ann.get_prompt("b_slow_poem")
            reading = asyncio.ensure_future(hers)
            await until("her request", begun.is_set)
            with pytest.raises(ToolFailed, match="nobody knows whom to ask"):
                await bob.call_tool("b_greet")
            reading.cancel()


@ours
async def test_our_own_handlers_run_once_however_often_the_caller_is_asked(outer: str) -> None:
    inner = Server("inner")

    @inner.tool(replay=True)
    async def both(ctx: Context) -> str:
        """Ask a model and a person at once, then the person again."""
        first = await ctx.ask(tone=Sample("rhyme"), one=Elicit("one?", str))
        two = await ctx.elicit("two?", str, key="two")
        return f"{first['tone'].text} {first['one'].value} {two.value}"

    sampled: list[Any] = []

    def sample(params: Any) -> str:
        sampled.append(params)
        return f"sample {len(sampled)}"

    gate = gate_to(inner, "modern", on_sample=sample)
    async with through(gate, outer, on_elicit=lambda q: q.message[4:7]) as client:
        assert (await client.call_tool("b_both")).text == "sample 1 one two"
        assert len(sampled) == 1


@ours
async def test_an_exception_of_our_handler_is_logged_and_shows_no_secrets(outer: str) -> None:
    def sample(_: Any) -> str:
        raise RuntimeError("the key is 123")

    gate = gate_to(make_server(), "modern", on_sample=sample)
    told = problems(gate)
    async with through(gate, outer, roots=["file:///work"]) as client:
        failed = await client.call_tool("b_rhyme", check=False)
        assert failed.is_error
        assert "what b asks could not be answered: RuntimeError" in failed.text
        assert any("the key is 123" in text for text in told)


@ours
async def test_a_servers_state_is_carried_once(outer: str) -> None:
    """Its state goes into ours. If that grew with each round, a long conversation would not fit."""
    inner = Server("inner")

    @inner.tool(replay=True)
    async def big(ctx: Context) -> str:
        """Remember much, and ask often."""
        await ctx.once("much", lambda: "x" * 6000)
        return " ".join([(await ctx.elicit(f"q{n}?", str, key=f"k{n}")).value for n in range(6)])

    async with through(gate_to(inner, "modern"), outer, on_elicit=lambda q: q.message[4:6]) as client:
        assert (await client.call_tool("b_big")).text == "q0 q1 q2 q3 q4 q5"


@ours
async def test_the_same_question_in_two_rounds_is_asked_twice(outer: str) -> None:
    answers: list[str] = []

    def answer(_: Any) -> str:
        answers.append("x")
        return f"answer {len(answers)}"

    gate = gate_to(hostile("insists"), "modern")
    async with through(gate, outer, on_elicit=answer) as client:
        assert (await client.call_tool("b_go")).text == "answer 1, answer 2"


@pytest.mark.parametrize(("rounds", "fails"), [(15, False), (16, False), (17, True)])
async def test_repeated_requests_to_call_again_are_bounded(
    rounds: int, fails: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("longshore.client.reconnecting_session.BACKOFF", Backoff(0.0, 0.0))
    gate = gate_to(hostile("round", str(rounds)), "modern")
    async with through(gate) as client:
        answer = await client.call_tool("b_go", check=False)
        assert answer.is_error is fails
        assert answer.text == ("b asked in 16 rounds and still has questions" if fails else f"after {rounds}")


def test_the_delay_doubles_when_a_server_asks_to_call_again() -> None:
    assert [busy_delay(n) for n in (0, 1, 2, 3, 4, 5, 99)] == [0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0]


@pytest.mark.parametrize("seconds", ["0", "0.0001", "0.0005", "0.002", "0.01"])
async def test_a_result_that_comes_while_the_question_leaves_is_not_lost(seconds: str) -> None:
    gate = gate_to(hostile("impatient", seconds))
    mount: Any = gate.catalog.toolsets["b"].toolset
    async with through(gate, on_elicit=lambda _: "x") as client:
        for _ in range(10):
            assert (await client.call_tool("b_go")).text == "went without an answer"
        assert mount._calls.held.all == {}


@pytest.mark.parametrize(("held", "asks"), [(1, True), (2, False), (3, False)])
async def test_calls_are_held_up_to_a_bound_whether_they_have_ended_or_not(
    held: int, asks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("longshore.mounting.calls.HELD", 2)
    gate = gate_to(hostile("impatient", "0.05"))
    mount: Any = gate.catalog.toolsets["b"].toolset
    async with through(gate, on_elicit=lambda _: "x") as client:
        await client.list_tools()
        for _ in range(held):
            await client.request("tools/call", {"name": "b_go", "arguments": {}})
        pending = mount._calls.held.all
        await until("their ends", lambda: all(each.task.done() for each in pending.values()))
        last = await client.request("tools/call", {"name": "b_go", "arguments": {}})
        assert (last["resultType"] == "input_required") is asks
        assert len(pending) <= 2


@pytest.mark.parametrize("mode", ["string content", "one of"])
@ours
async def test_a_malformed_question_is_refused_and_the_call_goes_on(mode: str, outer: str) -> None:
    gate = gate_to(hostile(mode))
    options: Any = {"on_elicit": lambda _: "x", "on_sample": lambda _: "x"}
    async with through(gate, outer if outer == "modern" else "2025-06-18", **options) as client:
        refusal = json.loads((await client.call_tool("b_go")).text)
        assert refusal["code"] == -32602
        assert "can't be read" in refusal["message"]


@ours
async def test_an_unexpected_question_is_refused_and_logged(outer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if a check of ours had let one through that can't be put."""

    def broken(*_: Any) -> Any:
        raise KeyError("const")

    monkeypatch.setattr("longshore.server.questions.refuse_secrets", broken)
    gate = gate_to(COMMAND, "legacy")
    told = problems(gate)
    async with through(gate, outer, on_elicit=lambda _: "x") as client:
        assert "the question can't be read" in (await client.call_tool("b_greet", check=False)).text
        assert any("could not be put: KeyError" in text for text in told)


async def test_a_late_answer_fails_with_the_reason() -> None:
    gate = gate_to(make_server(), "legacy")
    async with through(gate, on_elicit=lambda _: "x") as client:
        await client.list_tools()
        first = await client.request("tools/call", {"name": "b_greet", "arguments": {}})
        assert first["resultType"] == "input_required"
        await close(gate)  # and with it the call that was held
        params = {
            "name": "b_greet",
            "arguments": {},
            "requestState": first["requestState"],
            "inputResponses": {key: {"action": "accept", "content": {}} for key in first["inputRequests"]},
        }
        late = await client.request("tools/call", params)
        assert late["isError"] is True
        assert "the mounted server 'b' was lost while it worked on this" in late["content"][0]["text"]
        with pytest.raises(ServerError, match="used already"):
            await client.request("tools/call", params)


@ours
async def test_a_server_that_does_not_wait_for_the_answer(outer: str) -> None:
    gate = gate_to(hostile("impatient"))
    mount: Any = gate.catalog.toolsets["b"].toolset
    answered = asyncio.Event()

    async def think(_: Any) -> str:
        pending = mount._calls.held.all
        await until("the end of the call behind", lambda: not pending or all(f.task.done() for f in pending.values()))
        answered.set()
        return "Rome"

    async with through(gate, outer, on_elicit=think) as client:
        assert (await client.call_tool("b_go")).text == "went without an answer"
        assert outer == "legacy" or answered.is_set()
        assert mount._calls.held.all == {}


async def test_an_answer_in_another_process_fails_with_the_reason() -> None:
    gate = gate_to(make_server(), "legacy")
    async with through(gate, on_elicit=lambda _: "x") as client:
        await client.list_tools()
        first = await client.request("tools/call", {"name": "b_greet", "arguments": {}})
        mount: Any = gate.catalog.toolsets["b"].toolset
        mount._calls.held.all.clear()  # as if it were held elsewhere
        params = {"name": "b_greet", "arguments": {}, "requestState": first["requestState"], "inputResponses": {}}
        late = await client.request("tools/call", params)
        assert "came too late, or to another process; call again" in late["content"][0]["text"]


async def test_a_held_call_is_cancelled_without_a_retry() -> None:
    from longshore.limits import Limits

    inner = make_server()
    gate = Server("gate", limits=Limits(state_seconds=0.2))
    gate.mount(Client(inner, era="legacy"), prefix="b")
    async with through(gate, on_elicit=lambda _: "x") as client:
        await client.list_tools()
        first = await client.request("tools/call", {"name": "b_greet", "arguments": {}})
        assert first["resultType"] == "input_required"
        await until("the end of the call behind", lambda: not inner.engine.executor.live)


@pytest.mark.parametrize(
    ("method", "params", "text"),
    [
        ("elicitation/create", {"message": "x"}, "can't be read"),
        ("elicitation/create", {"message": "x", "requestedSchema": {"properties": {"a": 1}}}, "can't be read"),
        ("elicitation/create", {"mode": "url", "message": "x", "url": "javascript:alert(1)"}, "no web page"),
        ("elicitation/create", {"mode": "url", "message": "x"}, "no web page"),
        ("sampling/createMessage", {"messages": "x"}, "can't be read"),
        ("sampling/createMessage", {"messages": [1], "maxTokens": 5}, "can't be read"),
        ("sampling/createMessage", {"messages": [{"role": "user", "content": "hi"}]}, "can't be read"),
        ("sampling/createMessage", {"messages": [], "temperature": "hot"}, "can't be read"),
        ("sampling/createMessage", {"messages": [], "tools": ["x"]}, "can't be read"),
        ("elicitation/create", {"requestedSchema": {"properties": {"a": {"oneOf": ["x"]}}}}, "can't be read"),
        ("elicitation/create", {"requestedSchema": {"properties": {"a": {"type": ["x"]}}}}, "can't be read"),
        ("tools/call", {}, "nobody here can answer"),
    ],
)
def test_a_question_that_makes_no_sense_is_refused(method: str, params: dict[str, Any], text: str) -> None:
    with pytest.raises(ToolError, match=text):
        read_question("b", method, params)


def test_a_question_names_the_server_and_hides_no_text() -> None:
    form = {"type": "object", "properties": {"a": {"type": "string"}}}
    found = read_question(
        "b", "elicitation/create", {"message": "a\x1b[2J\u202eb" + "x" * 9999, "requestedSchema": form}
    )
    assert isinstance(found, Elicit)
    assert found.message.startswith("[b] a[2Jbx")
    assert len(found.message) == 4004
    sampled = read_question(
        "b", "sampling/createMessage", {"messages": [], "maxTokens": 5, "includeContext": "allServers"}
    )
    assert isinstance(sampled, Sample)
    assert sampled.max_tokens == 5


@ours
async def test_a_secret_is_not_asked_for(outer: str) -> None:
    gate = gate_to(hostile("secret"))
    async with through(gate, outer, on_elicit=lambda _: pytest.fail("it was asked")) as client:
        said = (await client.call_tool("b_go")).text
        assert "secrets must not pass through the client" in said


@ours
async def test_concurrent_questions_are_answered_and_one_can_be_cancelled(outer: str) -> None:
    asked: list[str] = []
    gate = gate_to(hostile("both"))
    async with through(gate, outer, on_elicit=lambda q: asked.append(q.message) or q.message) as client:
        assert (await client.call_tool("b_go")).text == "[b] q1 [b] q2"
        assert sorted(asked) == ["[b] q1", "[b] q2"]


@ours
async def test_a_question_that_the_caller_can_not_answer_takes_no_other_with_it(outer: str) -> None:
    gate = gate_to(hostile("roots too"))
    async with through(gate, outer, on_elicit=lambda _: "Ann") as client:
        answered = (await client.call_tool("b_go")).text
        assert answered == "Ann, this client did not declare that it can list its roots"


def test_declared_capabilities_are_those_of_the_caller() -> None:
    def able(revision: str, **declared: Any) -> dict[str, Any]:
        return capabilities_of(Peer(REVISIONS[revision], declared, {}))

    assert able("2026-07-28") == {}
    assert able("2025-06-18", elicitation={}) == {"elicitation": {"form": {}}}
    assert able("2025-03-26", elicitation={}) == {}
    assert able("2025-11-25", elicitation={"url": {}}) == {"elicitation": {"url": {}}}
    assert able("2026-07-28", sampling={"tools": {}}, roots={}) == {"sampling": {"tools": {}}, "roots": {}}


async def test_a_held_call_belongs_to_its_session() -> None:
    """A session that is gone leaves its address to the next one, so an address names nobody."""
    gate = gate_to(make_server(), "legacy")
    mount: Any = gate.catalog.toolsets["b"].toolset
    async with through(gate, on_elicit=lambda _: "x") as client:
        await client.list_tools()
        await client.request("tools/call", {"name": "b_greet", "arguments": {}})
        (held,) = mount._calls.held.all.values()
        assert held.call is None
        assert isinstance(held.caller, Session)


@ours
async def test_answers_that_have_arrived_do_not_travel_on(outer: str) -> None:
    """The call that was held has them. Else three long answers would not fit into a state."""
    inner = Server("inner")

    @inner.tool(replay=True)
    async def poem(ctx: Context) -> str:
        """Ask for three long verses."""
        verses = [(await ctx.ask(**{f"k{n}": Sample(f"verse {n}")}))[f"k{n}"].text for n in range(3)]
        return str(sum(map(len, verses)))

    async with through(gate_to(inner, "legacy"), outer, on_sample=lambda _: "x" * 14_000) as client:
        assert (await client.call_tool("b_poem")).text == "42000"


@pytest.mark.parametrize(("rounds", "fails"), [(7, False), (8, False), (9, True)])
async def test_a_question_too_many_leaves_nothing_behind(rounds: int, fails: bool) -> None:
    """Nobody comes back to such a call, and while it is held nobody else could be asked."""
    inner = Server("inner", limits=Limits(questions=30))

    @inner.tool(replay=True)
    async def often(ctx: Context, rounds: int) -> str:
        """Ask again and again."""
        return "".join([(await ctx.elicit(f"q{n}?", str, key=f"k{n}")).value for n in range(rounds)])

    gate = gate_to(inner, "legacy")
    mount: Any = gate.catalog.toolsets["b"].toolset
    async with through(gate, on_elicit=lambda _: "x") as client:
        answer = await client.call_tool("b_often", {"rounds": rounds}, check=False)
        assert answer.text == ("b_often asked in 8 rounds and still has questions" if fails else "x" * rounds)
        assert mount._calls.held.all == {}
        async with Client(gate, on_elicit=lambda _: "y") as other:
            assert (await other.call_tool("b_often", {"rounds": 1})).text == "y"


@pytest.mark.parametrize(("length", "kept"), [(3999, 3999), (4000, 4000), (4001, 4000)])
def test_a_question_to_a_person_is_cut(length: int, kept: int) -> None:
    params = {"message": "x" * length, "requestedSchema": {"type": "object", "properties": {}}}
    found = read_question("b", "elicitation/create", params)
    assert isinstance(found, Elicit)
    assert found.message == "[b] " + "x" * kept
