"""Rules of the specification that bind a client, where a server puts them to the test."""

from __future__ import annotations

import asyncio
import textwrap
import threading
from pathlib import Path
from typing import Any

import pytest

from longshore import BadAnswer, Client, ConnectError, ConnectionLost, Context, Server, ServerError, SyncClient
from longshore.client import Change
from longshore.client.cache import MOST, MOST_CHARS, Cache
from longshore.client.handlers import ElicitQuestion, read_elicit

from .odd import heard, run, script, until

PAGES = """
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


def test_pages_that_must_be_visited_first_are_offered_and_the_call_goes_on(tmp_path: Path) -> None:
    asked: list[ElicitQuestion] = []

    async def test() -> None:
        command = script(tmp_path, PAGES.format(times=1, url="https://example.test/in"))
        async with Client(command, on_elicit=lambda question: asked.append(question) or True) as client:
            assert (await client.call("x")).text == "2"

    run(test)
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
def test_pages_that_are_not_visited_fail_the_call(tmp_path: Path, url: str, answer: bool, calls: int) -> None:
    asked: list[Any] = []

    async def test() -> None:
        command = script(tmp_path, PAGES.format(times=99, url=url))
        async with Client(command, on_elicit=lambda question: asked.append(question) or answer) as client:
            with pytest.raises(ServerError) as caught:
                await client.call("x")
            assert caught.value.code == -32042
        async with Client(command) as client:
            with pytest.raises(ServerError, match="a page first"):
                await client.call("x")

    run(test)
    assert len(asked) == (0 if url.startswith("java") else min(calls, 3))


def test_a_modern_server_that_sends_requests_gets_no_answers(tmp_path: Path) -> None:
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

    async def test() -> None:
        async with Client(script(tmp_path, code), era="modern", roots=["/"]) as client:
            await client.call("x")
            await client.call("last")
            assert any("ping" in note and "2026-07-28" in note for note in client.problems)

    run(test)
    assert [message["method"] for message in heard(log)] == ["tools/call"]


def test_what_took_questions_is_not_kept(tmp_path: Path) -> None:
    code = """
        n = 0
        for m in modern_calls():
            n += 1
            contents = {"contents": [{"uri": "a:b", "text": str(n)}], "ttlMs": 60000, "cacheScope": "private"}
            if m["params"]["uri"] == "a:asks" and "inputResponses" not in m["params"]:
                question = {"method": "elicitation/create", "params": {"message": "Who?", "requestedSchema": {}}}
                reply(m, {"resultType": "input_required", "inputRequests": {"q": question}})
            else:
                reply(m, contents)
    """

    async def test() -> None:
        async with Client(script(tmp_path, code), era="modern", on_elicit=lambda _: True) as client:

            async def read(uri: str) -> str | None:
                return (await client.read(uri))[0].text

            assert [await read("a:plain"), await read("a:plain")] == ["1", "1"]
            assert [await read("a:asks"), await read("a:asks")] == ["3", "5"]
            assert await read("a:plain") == "1"

    run(test)


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
def test_what_was_not_declared_is_refused(tmp_path: Path, question: str, says: str) -> None:
    async def test() -> None:
        command = script(tmp_path, QUESTIONS)
        async with Client(command, on_elicit=lambda _: True, on_sample=lambda _: "hi") as client:
            said = (await client.call(question)).text
            assert "-32602" in said and says in said

    run(test)


def test_a_model_with_tools_is_declared_as_one(tmp_path: Path) -> None:
    question = '{"method": "sampling/createMessage", "messages": [], "maxTokens": 1, "tools": [{"name": "t"}]}'

    async def test() -> None:
        command = script(tmp_path, QUESTIONS)
        async with Client(command, on_sample=lambda params: params["tools"][0]["name"], sample_tools=True) as client:
            assert '"text": "t"' in (await client.call(question)).text

    run(test)


@pytest.mark.parametrize("root", ["https://example.test/", "ssh://host/folder"])
def test_a_root_is_a_folder(root: str) -> None:
    with pytest.raises(ValueError, match="a root is a folder"):
        Client(["true"], roots=[root])


@pytest.mark.parametrize("era", ["modern", "legacy"])
def test_handlers_may_be_async_and_may_fail(era: str) -> None:
    told: list[str] = []

    async def slowly(*news: Any) -> None:
        await asyncio.sleep(0)
        told.append(str(news))
        raise LookupError("handlers fail")

    async def test() -> None:
        async with Client(progressing(), era=era, on_log=slowly, log_level="info") as client:
            assert (await client.call("work", on_progress=slowly)).text == "done"
            await until("both were told", lambda: len(told) == 2)
            await until("both are noted", lambda: len([note for note in client.problems if "LookupError" in note]) == 2)

    run(test)


def progressing() -> Server:
    app = Server("demo")

    @app.tool
    async def work(ctx: Context) -> str:
        ctx.progress(1, 2, "half")
        ctx.info("hello")
        return "done"

    return app


def test_two_loops_share_one_server() -> None:
    app = Server("demo")
    inside, go_on = threading.Event(), threading.Event()

    @app.tool
    async def where() -> int:
        return threading.get_ident()

    @app.tool
    async def slow() -> str:
        inside.set()
        await asyncio.get_running_loop().run_in_executor(None, go_on.wait, 10)
        return "slow"

    with SyncClient(app) as first, SyncClient(app) as second:
        answers: list[str] = []
        waiting = threading.Thread(target=lambda: answers.append(first.call("slow").text))
        waiting.start()
        assert inside.wait(10)
        home = second.call("where", returns=int)
        assert first.call("where", returns=int) == home
        go_on.set()
        waiting.join(10)
        assert answers == ["slow"]


# -- what is kept


def test_what_is_kept_is_bounded_in_number_and_in_size() -> None:
    cache = Cache()
    for n in range(MOST + 1):
        cache.put(("m", str(n)), {"ttlMs": 1000}, 0.0)
    assert cache.get(("m", "0"), 0.0) is None and cache.get(("m", "1"), 0.0) is not None
    half = {"ttlMs": 1000, "contents": [{"text": "x" * (MOST_CHARS // 2)}]}
    cache.clear()
    cache.put(("m", "a"), half, 0.0)
    cache.put(("m", "b"), half, 0.0)
    assert cache.get(("m", "a"), 0.0) is None and cache.get(("m", "b"), 0.0) is not None
    cache.put(("m", "c"), {"ttlMs": 1000, "text": "x" * MOST_CHARS, "more": ["y"]}, 0.0)
    assert cache.get(("m", "c"), 0.0) is None and cache.get(("m", "b"), 0.0) is not None
    cache.drop("m")
    cache.put(("m", "a"), half, 0.0)
    assert cache.get(("m", "a"), 0.0) is not None


@pytest.mark.parametrize("ttl", [0, -1, True, "1000", None])
def test_what_may_not_be_kept_replaces_what_was(ttl: Any) -> None:
    cache = Cache()
    cache.put(("m", None), {"ttlMs": 1000}, 0.0)
    cache.put(("m", None), {"ttlMs": ttl}, 0.0)
    assert cache.get(("m", None), 0.0) is None


# -- a plain yes


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


# -- bounds, and a client where it would wait for itself


def test_a_list_is_bounded_in_its_length(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longshore.client.listing.LIST_CHARS", 10_000)
    code = """
        for m in asks():
            if m.get("method") == "tools/list":
                page = int(m.get("params", {}).get("cursor", "0"))
                tool = {"name": f"t{page}", "inputSchema": {"type": "object"}, "description": "x" * 1000}
                reply(m, {"tools": [tool], **({"nextCursor": str(page + 1)} if page < PAGES else {})})
            else:
                usual(m)
    """

    async def test() -> None:
        async with Client(script(tmp_path, "PAGES = 8\n" + textwrap.dedent(code), "short")) as client:
            assert len(await client.list_tools()) == 9
        async with Client(script(tmp_path, "PAGES = 99\n" + textwrap.dedent(code), "long")) as client:
            with pytest.raises(BadAnswer, match="tools/list is longer than"):
                await client.list_tools()

    run(test)


def test_a_message_in_between_pardons_garbage(tmp_path: Path) -> None:
    code = """
        for m in calls():
            for _ in range(3):
                raw(b"what?\\n" * 900)
                notify("notifications/message", level="info", data="x")
            reply(m, DONE)
    """

    async def test() -> None:
        async with Client(script(tmp_path, code)) as client:
            assert (await client.call("x")).text == "done"
            assert any("what?" in note for note in client.problems)

    run(test)


def test_garbage_without_end_ends_the_connection(tmp_path: Path) -> None:
    async def test() -> None:
        code = 'for m in calls(): raw(b"what?\\n" * 1000)'
        async with Client(script(tmp_path, code), reconnect=False) as client:
            with pytest.raises(ConnectionLost, match=r"does not speak MCP.*what"):
                await client.call("x")

    run(test)


def test_a_batch_of_many_answers(tmp_path: Path) -> None:
    code = """
        held = []
        for m in calls():
            held.append({"jsonrpc": "2.0", "id": m["id"], "result": text(str(m["id"]))})
            if len(held) == 500:
                send(held)
    """

    async def test() -> None:
        async with Client(script(tmp_path, code), era="2025-03-26") as client:
            results = await asyncio.gather(*(client.call("x") for _ in range(500)))
            assert len({result.text for result in results}) == 500

    run(test)


def test_a_sync_client_does_not_wait_for_its_own_loop() -> None:
    app = Server("demo")

    @app.tool
    async def hello() -> str:
        """Greet."""
        return "hello"

    async def test() -> None:
        async with Client(app) as client:
            assert (await client.call("hello")).text == "hello"
            with pytest.raises(ConnectError, match=r"this very event loop.*use Client and await"):
                SyncClient(app).open()
            elsewhere = await asyncio.to_thread(ask)
            assert elsewhere == "hello"

    def ask() -> str:
        with SyncClient(app) as client:
            return client.call("hello").text

    asyncio.run(test())


@pytest.mark.parametrize("era", ["modern", "legacy"])
def test_on_change_is_told_once_while_others_watch(era: str) -> None:
    app = Server("demo")

    @app.resource("test://a")
    async def a() -> str:
        """A."""
        return "a"

    async def grown() -> str:
        """Another."""
        return "x"

    told: list[Any] = []

    async def test() -> None:
        async with (
            Client(app, era=era, on_change=told.append) as client,
            client.watch(tools=True, uris=["test://a"]) as one,
            client.watch(tools=True, uris=["test://a"]) as two,
        ):
            app.tool(grown)
            assert await anext(one) == await anext(two) == Change("tools")
            app.resource_changed("test://a")
            assert await anext(one) == await anext(two) == Change("resource", "test://a")
            await until("both are told", lambda: len(told) >= 2)
            await client.ping()
            assert told == [Change("tools"), Change("resource", "test://a")]

    run(test)


def test_who_stops_watching_a_uri_does_not_stop_the_others() -> None:
    app = Server("demo")

    @app.resource("test://a")
    async def a() -> str:
        """A."""
        return "a"

    async def test() -> None:
        async with Client(app, era="legacy") as client, client.watch(uris=["test://a"]) as stays:
            async with client.watch(uris=["test://a"]):
                pass
            app.resource_changed("test://a")
            assert await anext(stays) == Change("resource", "test://a")

    run(test)


def test_after_a_reconnection_everything_counts_as_changed(tmp_path: Path) -> None:
    code = """
        CAPABILITIES["tools"] = {"listChanged": True}
        for m in calls():
            os._exit(3)
    """
    told: list[Any] = []

    async def test() -> None:
        async with Client(script(tmp_path, code), on_change=told.append) as client:
            with pytest.raises(ConnectionLost):
                await client.call("x")
            await until("it is told", lambda: told)
            assert told == [Change("tools")]

    run(test)


def test_a_server_without_logging_is_not_asked_for_it(tmp_path: Path) -> None:
    code = """
        del CAPABILITIES["logging"]
        for m in asks():
            if m.get("method") == "logging/setLevel":
                refuse(m)
            elif not usual(m):
                notify("notifications/message", level="info", data="little")
                notify("notifications/message", level="error", data="much")
                reply(m, DONE)
    """
    heard_of: list[Any] = []

    async def test() -> None:
        async with Client(script(tmp_path, code), on_log=heard_of.append) as client:
            await client.set_log_level("warning")
            await client.call("x")

    run(test)
    assert [message.data for message in heard_of] == ["much"]
