"""Results that ask for input, scripted: what is sent back, and what a client does with nonsense."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from client.odd import run, script
from longshore import Server
from longshore.client import Client, ElicitQuestion, SyncClient
from longshore.client.auth import JwtBearer, OAuth
from longshore.client.reconnecting_session import ROUNDS
from longshore.errors import BadAnswer, CallTimeout, ClientError, RegistrationError, ServerError, Unanswerable
from longshore.retry import Backoff
from longshore.testing import Answers

ELICIT = "dict(method='elicitation/create', params=dict(message='name?', requestedSchema=SCHEMA))"
SCHEMA = (
    "SCHEMA = dict(type='object', properties=dict(name=dict(type='string'), age=dict(type='integer', default=7)))\n"
)
INPUT = "def need(m, **more): reply(m, dict(resultType='input_required', **more))\n"


def open_odd(folder: Path, code: str, **options: Any) -> Client:
    return Client(script(folder, SCHEMA + INPUT + code), **{"era": "modern", "timeout": 10.0, **options})


def test_answers_and_the_state_go_back_as_they_came(tmp_path: Path) -> None:
    async def test() -> None:
        code = f"""
for m in modern_calls():
    given = m["params"].get("inputResponses")
    if given is None:
        need(m, inputRequests=dict(a={ELICIT}, b=dict(method="roots/list")), requestState="s\\u2603\\n" * 100)
    else:
        assert m["params"]["requestState"] == "s\\u2603\\n" * 100
        assert m["params"]["arguments"] == dict(x=1) and m["params"]["name"] == "t"
        reply(m, text(json.dumps(given)))
"""
        async with open_odd(tmp_path, code, on_elicit=lambda _: {"name": "Ann"}, roots=["file:///w"]) as client:
            result = await client.call("t", {"x": 1}, returns=dict[str, Any])
            accepted = {"action": "accept", "content": {"name": "Ann", "age": 7}}
            assert result == {"a": accepted, "b": {"roots": [{"uri": "file:///w"}]}}

    run(test)


def test_each_round_has_a_state_and_an_id_of_its_own(tmp_path: Path) -> None:
    async def test() -> None:
        code = f"""
ids = set()
for m in modern_calls():
    ids.add(m["id"])
    state = m["params"].get("requestState")
    assert "inputResponses" in m["params"] or state is None
    n = int(state or 0)
    if n < 5: need(m, inputRequests={{f"q{{n}}": {ELICIT}}}, requestState=str(n + 1))
    else: reply(m, text(f"{{n}} {{sorted(m['params']['inputResponses'])}} {{len(ids)}}"))
"""
        async with open_odd(tmp_path, code, on_elicit=lambda _: {"name": "x"}) as client:
            assert (await client.call("t")).text == "5 ['q4'] 6"

    run(test)


def test_a_state_alone_means_later(tmp_path: Path) -> None:
    async def test() -> None:
        code = """
for m in modern_calls():
    n = int(m["params"].get("requestState", 0))
    assert "inputResponses" not in m["params"]
    if n < 3: need(m, requestState=str(n + 1))
    else: reply(m, text(str(n)))
"""
        async with open_odd(tmp_path, code) as client:
            assert (await client.call("t")).text == "3"

    run(test)


def test_a_state_that_is_not_sent_is_not_sent_back(tmp_path: Path) -> None:
    async def test() -> None:
        code = f"""
for m in modern_calls():
    if "inputResponses" not in m["params"]: need(m, inputRequests=dict(q={ELICIT}))
    else: reply(m, text(str("requestState" in m["params"])))
"""
        async with open_odd(tmp_path, code, on_elicit=lambda _: True) as client:
            assert (await client.call("t")).text == "False"

    run(test)


@pytest.mark.parametrize("more", [f"inputRequests=dict(q={ELICIT})", "requestState='x'"])
def test_questions_without_end_are_given_up(tmp_path: Path, more: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longshore.client.reconnecting_session.BACKOFF", Backoff(0.001, 0.001))

    async def test() -> None:
        asked = 0

        def elicit(_: Any) -> bool:
            nonlocal asked
            asked += 1
            return True

        async with open_odd(tmp_path, f"for m in modern_calls(): need(m, {more})", on_elicit=elicit) as client:
            with pytest.raises(BadAnswer, match="more than 16 times"):
                await client.call("t")
            assert asked in (0, 16), "nobody is asked what nobody will read"

    run(test)


@pytest.mark.parametrize(("rounds", "goes_on"), [(ROUNDS - 1, True), (ROUNDS, True), (ROUNDS + 1, False)])
def test_so_many_rounds_and_no_more(tmp_path: Path, rounds: int, goes_on: bool) -> None:
    async def test() -> None:
        code = f"""
n = 0
for m in modern_calls():
    n += 1
    if n <= {rounds}: need(m, inputRequests=dict(q={ELICIT}))
    else: reply(m, text(str(n - 1)))
"""
        async with open_odd(tmp_path, code, on_elicit=lambda _: True) as client:
            if goes_on:
                assert (await client.call("t")).text == str(rounds)
            else:
                with pytest.raises(BadAnswer, match=f"more than {ROUNDS} times"):
                    await client.call("t")

    run(test)


NONSENSE = {
    "nothing": "",
    "no questions and no state": "inputRequests={}",
    "questions that are a list": "inputRequests=[1]",
    "questions that are a text": "inputRequests='x'",
    "a question that is a text": "inputRequests=dict(q='x')",
    "a question without a method": "inputRequests=dict(q={})",
    "a method that is a number": "inputRequests=dict(q=dict(method=5))",
    "a method that nobody knows": "inputRequests=dict(q=dict(method='tools/call', params={}))",
    "parameters that are a list": "inputRequests=dict(q=dict(method='sampling/createMessage', params=[]))",
    "what was not offered": "inputRequests=dict(q=dict(method='roots/list'))",
}


@pytest.mark.parametrize("more", NONSENSE.values(), ids=list(NONSENSE))
def test_nonsense_fails_the_call_and_says_so(tmp_path: Path, more: str) -> None:
    async def test() -> None:
        code = f"for m in modern_calls(): reply(m, DONE) if m['params'].get('name') == 'fine' else need(m, {more})"
        async with open_odd(tmp_path, code, on_elicit=lambda _: True) as client:
            with pytest.raises(ClientError) as caught:
                await client.call("t")
            assert not isinstance(caught.value, CallTimeout)
            assert "odd.py" in str(caught.value)
            assert (await client.call("fine")).text == "done"

    run(test)


@pytest.mark.parametrize("kind", ["'later'", "5", "None", "{}", "'task'"])
def test_results_of_other_kinds_are_not_taken_for_results(tmp_path: Path, kind: str) -> None:
    async def test() -> None:
        code = f"for m in modern_calls(): reply(m, dict(DONE, resultType={kind}))"
        async with open_odd(tmp_path, code) as client:
            with pytest.raises(BadAnswer, match="kind"):
                await client.call("t")

    run(test)


def test_resources_and_prompts_may_ask_too(tmp_path: Path) -> None:
    async def test() -> None:
        code = f"""
for m in modern_calls():
    if "inputResponses" not in m["params"]: need(m, inputRequests=dict(q={ELICIT}))
    elif m["method"] == "resources/read": reply(m, dict(contents=[dict(uri="x://y", text="read")]))
    else: reply(m, dict(messages=[dict(role="user", content=dict(type="text", text="filled"))]))
"""
        async with open_odd(tmp_path, code, on_elicit=lambda _: True) as client:
            assert (await client.read("x://y"))[0].text == "read"
            assert (await client.prompt("p")).messages[0].content.text == "filled"  # type: ignore[union-attr]

    run(test)


def test_cancelling_while_a_person_thinks(tmp_path: Path) -> None:
    async def test() -> None:
        begun, ended = asyncio.Event(), asyncio.Event()

        async def think(_: ElicitQuestion) -> None:
            begun.set()
            try:
                await asyncio.sleep(100)
            finally:
                ended.set()

        async with open_odd(
            tmp_path,
            f"for m in modern_calls(): m['params']['name'] == 'late' or need(m, inputRequests=dict(q={ELICIT}))",
            on_elicit=think,
        ) as client:
            call = asyncio.ensure_future(client.call("t", timeout=0.2))
            await asyncio.wait_for(begun.wait(), 10)
            with pytest.raises(CallTimeout):  # its time was as long, and began later
                await client.call("late", timeout=0.2)
            assert not call.done(), "no clock runs while a person thinks"
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            assert ended.is_set()

    run(test)


def test_a_lost_connection_between_question_and_answer(tmp_path: Path) -> None:
    """The answers go to the server that is there now: the state is the server's own, and holds all that it needs."""

    async def test() -> None:
        code = f"""
for m in modern_calls():
    if "inputResponses" not in m["params"]:
        need(m, inputRequests=dict(q={ELICIT}), requestState="kept")
        os._exit(0)
    else: reply(m, text(m["params"]["requestState"]))
"""
        client = open_odd(tmp_path, code)

        async def elicit(_: Any) -> bool:
            async with asyncio.timeout(10):
                while client.connected:
                    await asyncio.sleep(0.005)
            return True

        client = open_odd(tmp_path, code, on_elicit=elicit)
        async with client:
            assert (await client.call("t")).text == "kept"

    run(test)


# -- answers that are none

SAMPLE = "method='sampling/createMessage', params=dict(messages=[], maxTokens=1)"


def test_a_sample_that_the_person_rejects(tmp_path: Path) -> None:
    async def test() -> None:
        legacy = """
for m in calls():
    ask("q", "sampling/createMessage", messages=[], maxTokens=1)
    reply(m, text(sys.stdin.readline()))
"""
        async with open_odd(tmp_path, legacy, era="legacy", on_sample=lambda _: None) as client:
            answer = await client.call("t", returns=dict[str, Any])
            assert answer["error"] == {"code": -1, "message": "the user rejected it"}
            assert client.problems == [], "which is no fault of anybody's"
        modern = f"for m in modern_calls(): need(m, inputRequests=dict(q=dict({SAMPLE})))"
        async with open_odd(tmp_path, modern, on_sample=lambda _: None) as client:
            with pytest.raises(Unanswerable, match="the user rejected it") as caught:
                await client.call("t")
            assert caught.value.code == -1

    run(test)


def test_what_a_handler_raises_is_told_the_caller_in_words(tmp_path: Path) -> None:
    async def test() -> None:
        def elicit(_: Any) -> None:
            raise RuntimeError("the person has left")

        code = f"for m in modern_calls(): need(m, inputRequests=dict(q={ELICIT}))"
        async with open_odd(tmp_path, code, on_elicit=elicit) as client:
            with pytest.raises(ClientError, match="the person has left") as caught:
                await client.call("t")
            assert isinstance(caught.value.__cause__, RuntimeError)
            assert "odd.py" in str(caught.value)
            assert any("the person has left" in problem for problem in client.problems)

    run(test)


# -- pages that are to be visited first

PAGES = """
import threading
def done(): notify("notifications/elicitation/complete", elicitationId="e1")
n = 0
for m in calls():
    n += 1
    mark("calls")
    page = dict(mode="url", elicitationId="e1", url="https://example.test/in", message="Sign in")
    if n == 1: refuse(m, -32042, "a page first", data=dict(elicitations=[page]))
    else: reply(m, DONE)
    {then}
"""


def test_consent_is_not_completion(tmp_path: Path) -> None:
    """The request is sent again when the server says that the person is done, and not before."""

    async def test() -> None:
        asked: list[ElicitQuestion] = []
        go = tmp_path / "go"
        code = f"""
def later():
    while not os.path.exists({str(go)!r}): time.sleep(0.005)
    done()
"""
        code += PAGES.format(then="n == 1 and threading.Thread(target=later, daemon=True).start()")
        async with open_odd(tmp_path, code, era="legacy", on_elicit=lambda q: asked.append(q) or True) as client:
            call = asyncio.ensure_future(client.call("t"))
            async with asyncio.timeout(10):
                while not asked:
                    await asyncio.sleep(0.005)
            for _ in range(20):
                await client.ping()  # time enough for the server to see another call
            assert not call.done() and len((tmp_path / "calls").read_text()) == 1
            go.touch()
            assert (await call).text == "done"
            assert [question.id for question in asked] == ["e1"]

    run(test)


@pytest.mark.parametrize("then", ["done()", "pass", "notify('notifications/elicitation/complete', elicitationId=5)"])
def test_a_server_that_tells_at_once_or_never(tmp_path: Path, then: str) -> None:
    async def test() -> None:
        async def elicit(_: Any) -> bool:
            await client.ping()  # so the notice is here before anybody waits for it
            return True

        code = PAGES.format(then=then)
        client = open_odd(tmp_path, code, era="legacy", on_elicit=elicit)
        async with client:
            assert (await client.call("t", timeout=20 if then == "done()" else 0.5)).text == "done"
            assert bool(client.problems) == ("=5" in then)

    run(test)


def test_a_page_that_is_not_visited_is_the_refusal(tmp_path: Path) -> None:
    async def test() -> None:
        async with open_odd(tmp_path, PAGES.format(then="pass"), era="legacy", on_elicit=lambda _: False) as client:
            with pytest.raises(ServerError, match="a page first"):
                await client.call("t")

    run(test)


def test_a_task_is_not_followed_but_can_be_had(tmp_path: Path) -> None:
    async def test() -> None:
        task = "dict(resultType='task', taskId='t1', status='working')"
        options: dict[str, Any] = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
        async with open_odd(tmp_path, f"for m in modern_calls(): reply(m, {task})", **options) as client:
            with pytest.raises(BadAnswer, match="'task', which this client does not follow"):
                await client.call("t")
            assert (await client.request("tools/call", {"name": "t", "arguments": {}}))["taskId"] == "t1"

    run(test)


CALLED_WITH = {
    "on_elicit": "1 argument (question)",
    "on_sample": "1 argument (params)",
    "roots": "no arguments",
    "on_log": "1 argument (message)",
    "on_change": "1 argument (change)",
}


def of_two(one: Any, two: Any) -> None:
    raise AssertionError((one, two))


async def of_two_later(one: Any, two: Any) -> None:
    raise AssertionError((one, two))


@pytest.mark.parametrize("name", CALLED_WITH)
@pytest.mark.parametrize("make", [Client, SyncClient])
@pytest.mark.parametrize("callback", [of_two, of_two_later])
def test_a_callback_of_the_wrong_arity_is_refused_where_it_is_given(name: str, make: Any, callback: Any) -> None:
    with pytest.raises(RegistrationError) as refused:
        make(Server("t"), **{name: callback})
    assert refused.value.what.startswith(f"{name} is called with {CALLED_WITH[name]}, which")
    assert f"{callback.__name__}(one, two)" in refused.value.where
    assert refused.value.fix.startswith(f"def {name}(")


def test_progress_that_can_not_be_told_is_refused_before_the_call() -> None:
    app = Server("t")
    calls: list[int] = []

    @app.tool
    def add() -> int:
        """Add."""
        calls.append(1)
        return 1

    with SyncClient(app) as client:
        for call in (
            lambda: client.call("add", on_progress=of_two),
            lambda: client.request("tools/call", {"name": "add"}, on_progress=of_two),
        ):
            with pytest.raises(
                RegistrationError, match=r"on_progress is called with 3 arguments \(done, total, message"
            ):
                call()
    assert calls == []


def test_an_answer_of_the_wrong_arity_is_refused_where_it_is_added() -> None:
    with pytest.raises(RegistrationError, match=r"answer is called with 1 argument \(question\)"):
        Answers(of_two)


@pytest.mark.parametrize(
    "make",
    [
        lambda: OAuth(redirect=of_two),
        lambda: JwtBearer(of_two),  # type: ignore[arg-type]
    ],
)
def test_a_callback_of_a_login_is_refused_where_it_is_given(make: Any) -> None:
    with pytest.raises(RegistrationError, match="is called with"):
        make()
