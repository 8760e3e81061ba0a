"""Questions of servers: the answers that are sent back, and malformed questions."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from client.scripted import heard, script, until
from longshore import Context, Server
from longshore.backoff import Backoff
from longshore.client import Client, ElicitQuestion, SyncClient
from longshore.client.auth import JwtBearer, OAuth
from longshore.client.handlers import read_elicit
from longshore.client.reconnecting_session import ROUNDS
from longshore.errors import BadAnswer, CallTimeout, ClientError, RegistrationError, ServerError, Unanswerable
from longshore.testing import Answers

ELICIT = "dict(method='elicitation/create', params=dict(message='name?', requestedSchema=SCHEMA))"
SCHEMA = (
    "SCHEMA = dict(type='object', properties=dict(name=dict(type='string'), age=dict(type='integer', default=7)))\n"
)
INPUT = "def need(m, **more): reply(m, dict(resultType='input_required', **more))\n"


def connect_to(folder: Path, code: str, **options: Any) -> Client:
    return Client(script(folder, SCHEMA + INPUT + code), **{"era": "modern", "timeout": 10.0, **options})


async def test_answers_and_the_state_go_back_unchanged(tmp_path: Path) -> None:
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
    async with connect_to(tmp_path, code, on_elicit=lambda _: {"name": "Ann"}, roots=["file:///w"]) as client:
        result = await client.call_tool("t", {"x": 1}, returns=dict[str, Any])
        accepted = {"action": "accept", "content": {"name": "Ann", "age": 7}}
        assert result == {"a": accepted, "b": {"roots": [{"uri": "file:///w"}]}}


async def test_each_round_has_a_state_and_an_id_of_its_own(tmp_path: Path) -> None:
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
    async with connect_to(tmp_path, code, on_elicit=lambda _: {"name": "x"}) as client:
        assert (await client.call_tool("t")).text == "5 ['q4'] 6"


async def test_a_state_alone_means_later(tmp_path: Path) -> None:
    code = """
for m in modern_calls():
    n = int(m["params"].get("requestState", 0))
    assert "inputResponses" not in m["params"]
    if n < 3: need(m, requestState=str(n + 1))
    else: reply(m, text(str(n)))
"""
    async with connect_to(tmp_path, code) as client:
        assert (await client.call_tool("t")).text == "3"


async def test_a_state_that_is_not_sent_is_not_sent_back(tmp_path: Path) -> None:
    code = f"""
for m in modern_calls():
    if "inputResponses" not in m["params"]: need(m, inputRequests=dict(q={ELICIT}))
    else: reply(m, text(str("requestState" in m["params"])))
"""
    async with connect_to(tmp_path, code, on_elicit=lambda _: True) as client:
        assert (await client.call_tool("t")).text == "False"


@pytest.mark.parametrize("more", [f"inputRequests=dict(q={ELICIT})", "requestState='x'"])
async def test_questions_without_end_are_given_up(tmp_path: Path, more: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longshore.client.reconnecting_session.BACKOFF", Backoff(0.001, 0.001))
    asked = 0

    def elicit(_: Any) -> bool:
        nonlocal asked
        asked += 1
        return True

    async with connect_to(tmp_path, f"for m in modern_calls(): need(m, {more})", on_elicit=elicit) as client:
        with pytest.raises(BadAnswer, match="more than 16 times"):
            await client.call_tool("t")
        assert asked in (0, 16), "nobody is asked what nobody will read"


@pytest.mark.parametrize(("rounds", "goes_on"), [(ROUNDS - 1, True), (ROUNDS, True), (ROUNDS + 1, False)])
async def test_rounds_of_questions_are_bounded(tmp_path: Path, rounds: int, goes_on: bool) -> None:
    code = f"""
n = 0
for m in modern_calls():
    n += 1
    if n <= {rounds}: need(m, inputRequests=dict(q={ELICIT}))
    else: reply(m, text(str(n - 1)))
"""
    async with connect_to(tmp_path, code, on_elicit=lambda _: True) as client:
        if goes_on:
            assert (await client.call_tool("t")).text == str(rounds)
        else:
            with pytest.raises(BadAnswer, match=f"more than {ROUNDS} times"):
                await client.call_tool("t")


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
async def test_nonsense_fails_the_call_and_says_so(tmp_path: Path, more: str) -> None:
    code = f"for m in modern_calls(): reply(m, DONE) if m['params'].get('name') == 'fine' else need(m, {more})"
    async with connect_to(tmp_path, code, on_elicit=lambda _: True) as client:
        with pytest.raises(ClientError) as caught:
            await client.call_tool("t")
        assert not isinstance(caught.value, CallTimeout)
        assert "odd.py" in str(caught.value)
        assert (await client.call_tool("fine")).text == "done"


@pytest.mark.parametrize("kind", ["'later'", "5", "None", "{}", "'task'"])
async def test_results_of_other_kinds_are_not_taken_for_results(tmp_path: Path, kind: str) -> None:
    code = f"for m in modern_calls(): reply(m, dict(DONE, resultType={kind}))"
    async with connect_to(tmp_path, code) as client:
        with pytest.raises(BadAnswer, match="kind"):
            await client.call_tool("t")


async def test_resources_and_prompts_may_ask_too(tmp_path: Path) -> None:
    code = f"""
for m in modern_calls():
    if "inputResponses" not in m["params"]: need(m, inputRequests=dict(q={ELICIT}))
    elif m["method"] == "resources/read": reply(m, dict(contents=[dict(uri="x://y", text="read")]))
    else: reply(m, dict(messages=[dict(role="user", content=dict(type="text", text="filled"))]))
"""
    async with connect_to(tmp_path, code, on_elicit=lambda _: True) as client:
        assert (await client.read_resource("x://y"))[0].text == "read"
        assert (await client.get_prompt("p")).messages[0].content.text == "filled"  # type: ignore[union-attr]


async def test_cancelling_while_a_person_thinks(tmp_path: Path) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def think(_: ElicitQuestion) -> None:
        begun.set()
        try:
            await asyncio.sleep(100)
        finally:
            ended.set()

    async with connect_to(
        tmp_path,
        f"for m in modern_calls(): m['params']['name'] == 'late' or need(m, inputRequests=dict(q={ELICIT}))",
        on_elicit=think,
    ) as client:
        call = asyncio.ensure_future(client.call_tool("t", timeout=0.2))
        await asyncio.wait_for(begun.wait(), 10)
        with pytest.raises(CallTimeout):  # its time was as long, and began later
            await client.call_tool("late", timeout=0.2)
        assert not call.done(), "no clock runs while a person thinks"
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert ended.is_set()


async def test_a_lost_connection_between_question_and_answer(tmp_path: Path) -> None:
    """The answers go to the server that is there now: the state is the server's own, and holds all that it needs."""
    code = f"""
for m in modern_calls():
    if "inputResponses" not in m["params"]:
        need(m, inputRequests=dict(q={ELICIT}), requestState="kept")
        os._exit(0)
    else: reply(m, text(m["params"]["requestState"]))
"""
    client = connect_to(tmp_path, code)

    async def elicit(_: Any) -> bool:
        async with asyncio.timeout(10):
            while client.connected:
                await asyncio.sleep(0.005)
        return True

    client = connect_to(tmp_path, code, on_elicit=elicit)
    async with client:
        assert (await client.call_tool("t")).text == "kept"


# -- answers that are none

SAMPLE = "method='sampling/createMessage', params=dict(messages=[], maxTokens=1)"


async def test_a_sample_that_the_person_rejects(tmp_path: Path) -> None:
    legacy = """
for m in calls():
    ask("q", "sampling/createMessage", messages=[], maxTokens=1)
    reply(m, text(sys.stdin.readline()))
"""
    async with connect_to(tmp_path, legacy, era="legacy", on_sample=lambda _: None) as client:
        answer = await client.call_tool("t", returns=dict[str, Any])
        assert answer["error"] == {"code": -1, "message": "the user rejected it"}
        assert client.problems == [], "which is no fault of anybody's"
    modern = f"for m in modern_calls(): need(m, inputRequests=dict(q=dict({SAMPLE})))"
    async with connect_to(tmp_path, modern, on_sample=lambda _: None) as client:
        with pytest.raises(Unanswerable, match="the user rejected it") as caught:
            await client.call_tool("t")
        assert caught.value.code == -1


async def test_an_exception_of_a_handler_reaches_the_caller_as_clienterror(tmp_path: Path) -> None:
    def elicit(_: Any) -> None:
        raise RuntimeError("the person has left")

    code = f"for m in modern_calls(): need(m, inputRequests=dict(q={ELICIT}))"
    async with connect_to(tmp_path, code, on_elicit=elicit) as client:
        with pytest.raises(ClientError, match="the person has left") as caught:
            await client.call_tool("t")
        assert isinstance(caught.value.__cause__, RuntimeError)
        assert "odd.py" in str(caught.value)
        assert any("the person has left" in problem for problem in client.problems)


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


async def test_consent_is_not_completion(tmp_path: Path) -> None:
    """The request is sent again when the server says that the person is done, and not before."""
    asked: list[ElicitQuestion] = []
    go = tmp_path / "go"
    code = f"""
def later():
    while not os.path.exists({str(go)!r}): time.sleep(0.005)
    done()
"""
    code += PAGES.format(then="n == 1 and threading.Thread(target=later, daemon=True).start()")
    async with connect_to(tmp_path, code, era="legacy", on_elicit=lambda q: asked.append(q) or True) as client:
        call = asyncio.ensure_future(client.call_tool("t"))
        async with asyncio.timeout(10):
            while not asked:
                await asyncio.sleep(0.005)
        for _ in range(20):
            await client.ping()  # time enough for the server to see another call
        assert not call.done() and len((tmp_path / "calls").read_text()) == 1
        go.touch()
        assert (await call).text == "done"
        assert [question.id for question in asked] == ["e1"]


@pytest.mark.parametrize("then", ["done()", "pass", "notify('notifications/elicitation/complete', elicitationId=5)"])
async def test_a_completed_visit_may_be_reported_at_once_or_never(tmp_path: Path, then: str) -> None:
    async def elicit(_: Any) -> bool:
        await client.ping()  # so the notice is here before anybody waits for it
        return True

    code = PAGES.format(then=then)
    client = connect_to(tmp_path, code, era="legacy", on_elicit=elicit)
    async with client:
        assert (await client.call_tool("t", timeout=20 if then == "done()" else 0.5)).text == "done"
        assert bool(client.problems) == ("=5" in then)


async def test_a_page_that_is_not_visited_is_the_refusal(tmp_path: Path) -> None:
    async with connect_to(tmp_path, PAGES.format(then="pass"), era="legacy", on_elicit=lambda _: False) as client:
        with pytest.raises(ServerError, match="a page first"):
            await client.call_tool("t")


async def test_a_task_is_not_followed_but_can_be_had(tmp_path: Path) -> None:
    task = "dict(resultType='task', taskId='t1', status='working')"
    options: dict[str, Any] = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
    async with connect_to(tmp_path, f"for m in modern_calls(): reply(m, {task})", **options) as client:
        with pytest.raises(BadAnswer, match="'task', which this client does not follow"):
            await client.call_tool("t")
        assert (await client.request("tools/call", {"name": "t", "arguments": {}}))["taskId"] == "t1"


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


def test_a_wrong_on_progress_is_refused_before_the_call() -> None:
    app = Server("t")
    calls: list[int] = []

    @app.tool
    def add() -> int:
        """Add."""
        calls.append(1)
        return 1

    with SyncClient(app) as client:
        for call in (
            lambda: client.call_tool("add", on_progress=of_two),
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


VISITED_PAGES = """
    n = 0
    for m in calls():
        n += 1
        if n <= {times}:
            page = {{"mode": "url", "elicitationId": "e", "url": "{url}", "message": "Sign in"}}
            refuse(m, -32042, "a page first", data={{"elicitations": [page]}})
            notify("notifications/elicitation/complete", elicitationId="e")
        else:
            reply(m, text(str(n)))
"""


async def test_pages_that_must_be_visited_first_are_offered_and_the_call_goes_on(tmp_path: Path) -> None:
    asked: list[ElicitQuestion] = []
    command = script(tmp_path, VISITED_PAGES.format(times=1, url="https://example.test/in"))
    async with Client(command, on_elicit=lambda question: asked.append(question) or True) as client:
        assert (await client.call_tool("x")).text == "2"
    [question] = asked
    assert (question.mode, question.url, question.message) == ("url", "https://example.test/in", "Sign in")


@pytest.mark.parametrize(
    ("url", "answer", "calls"),
    [
        ("https://example.test/in", False, 1),
        ("https://example.test/in", True, 4),
        ("javascript:alert(1)", True, 1),
    ],
    ids=["the person says no", "there is no end to it", "it is no page"],
)
async def test_pages_that_are_not_visited_fail_the_call(tmp_path: Path, url: str, answer: bool, calls: int) -> None:
    asked: list[Any] = []
    command = script(tmp_path, VISITED_PAGES.format(times=99, url=url))
    async with Client(command, on_elicit=lambda question: asked.append(question) or answer) as client:
        with pytest.raises(ServerError) as caught:
            await client.call_tool("x")
        assert caught.value.code == -32042
    async with Client(command) as client:
        with pytest.raises(ServerError, match="a page first"):
            await client.call_tool("x")
    assert len(asked) == (0 if url.startswith("java") else min(calls, 3))


async def test_a_modern_server_that_sends_requests_gets_no_answers(tmp_path: Path) -> None:
    log = tmp_path / "log"
    code = f"""
        log = open({str(log)!r}, "a")
        for m in modern_calls():
            if m["method"] != "tools/call":
                continue
            ask("s1", "ping")
            ask("s2", "roots/list")
            reply(m, DONE)
            break
        for line in sys.stdin:
            log.write(line)
            log.flush()
            if '"last"' in line:
                reply(json.loads(line), DONE)
    """
    async with Client(script(tmp_path, code), era="modern", roots=["/"]) as client:
        await client.call_tool("x")
        await client.call_tool("last")
        assert any("ping" in note and "2026-07-28" in note for note in client.problems)
    assert [message["method"] for message in heard(log)] == ["tools/call"]


QUESTIONS = """
    for m in calls():
        ask("q", **json.loads(m["params"]["name"]))
        answer = json.loads(sys.stdin.readline())
        reply(m, text(json.dumps(answer.get("error", answer.get("result")))))
"""


@pytest.mark.parametrize(
    ("question", "says"),
    [
        ('{"method": "elicitation/create", "mode": "telepathy", "message": "?"}', "telepathy"),
        ('{"method": "elicitation/create", "mode": "url", "message": "?", "url": "file:///etc/passwd"}', "https://"),
        ('{"method": "elicitation/create", "mode": "url", "message": "?"}', "https://"),
        ('{"method": "sampling/createMessage", "messages": [], "maxTokens": 1, "tools": []}', "no tools"),
        ('{"method": "sampling/createMessage", "messages": [], "maxTokens": 1, "toolChoice": {}}', "no tools"),
    ],
)
async def test_undeclared_questions_are_refused(tmp_path: Path, question: str, says: str) -> None:
    command = script(tmp_path, QUESTIONS)
    async with Client(command, on_elicit=lambda _: True, on_sample=lambda _: "hi") as client:
        said = (await client.call_tool(question)).text
        assert "-32602" in said and says in said


async def test_a_model_with_tools_is_declared_as_one(tmp_path: Path) -> None:
    question = '{"method": "sampling/createMessage", "messages": [], "maxTokens": 1, "tools": [{"name": "t"}]}'
    command = script(tmp_path, QUESTIONS)
    async with Client(command, on_sample=lambda params: params["tools"][0]["name"], sample_tools=True) as client:
        assert '"text": "t"' in (await client.call_tool(question)).text


@pytest.mark.parametrize("root", ["https://example.test/", "ssh://host/folder"])
def test_a_root_is_a_folder(root: str) -> None:
    with pytest.raises(ValueError, match="a root is a folder"):
        Client(["true"], roots=[root])


def progressing() -> Server:
    app = Server("demo")

    @app.tool
    async def work(ctx: Context) -> str:
        ctx.progress(1, 2, "half")
        ctx.info("hello")
        return "done"

    return app


@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_handlers_may_be_async_and_may_fail(era: str) -> None:
    told: list[str] = []

    async def slowly(*news: Any) -> None:
        await asyncio.sleep(0)
        told.append(str(news))
        raise LookupError("handlers fail")

    async with Client(progressing(), era=era, on_log=slowly, log_level="info") as client:
        assert (await client.call_tool("work", on_progress=slowly)).text == "done"
        await until("both were told", lambda: len(told) == 2)
        await until("both are noted", lambda: len([note for note in client.problems if "LookupError" in note]) == 2)


@pytest.mark.parametrize(
    ("properties", "content"),
    [
        ({"ok": {"type": "boolean"}}, {"ok": True}),
        ({"ok": {"type": "boolean", "default": False}}, {"ok": False}),
        ({"name": {"type": "string"}}, {}),
        ({"a": {"type": "boolean"}, "b": {"type": "boolean"}}, {}),
        ({"a": {"type": "boolean"}, "b": {"type": "string", "default": "x"}}, {"b": "x"}),
        ([], {}),
    ],
)
def test_yes_ticks_the_only_box(properties: Any, content: dict[str, Any]) -> None:
    question = ElicitQuestion("?", {"type": "object", "properties": properties})
    assert read_elicit(question, True) == {"action": "accept", "content": content}
