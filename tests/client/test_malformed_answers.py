"""Malformed answers of real processes: none may hang a call or fail another one."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from client.scripted import connect_to
from longshore.client import Client
from longshore.errors import BadAnswer, CallTimeout, ClientError, ServerError


async def works(client: Client) -> None:
    """The next call is answered in any case."""
    assert (await client.call_tool("fine")).text == "fine"


FINE = """
def fine(m):
    if m.get("params", {}).get("name") == "fine":
        reply(m, text("fine"))
        return True
"""


async def test_a_server_that_never_answers_times_out(tmp_path: Path) -> None:
    code = FINE + "for m in calls():\n    fine(m) or complain('I heard ' + m['params']['name'])"
    async with connect_to(tmp_path, code) as client:
        with pytest.raises(CallTimeout) as caught:
            await client.call_tool("lost", timeout=0.3)
        assert isinstance(caught.value, TimeoutError)
        assert "tools/call within 0.3 s" in str(caught.value)
        assert "odd.py" in str(caught.value)
        assert "| I heard lost" in str(caught.value)
        await works(client)


@pytest.mark.parametrize("id", ["'1000'", "str(m['id'])", "m['id'] + 1000", "-1", "True", "None", "1.5", "[1]", "{}"])
async def test_answers_under_another_id_are_not_taken(tmp_path: Path, id: str) -> None:
    code = FINE + f"for m in calls():\n    fine(m) or send(dict(jsonrpc='2.0', id={id}, result=DONE))"
    async with connect_to(tmp_path, code) as client:
        with pytest.raises((CallTimeout, BadAnswer)):
            await client.call_tool("x", timeout=0.3)
        await works(client)
        assert client.problems, "what came must be told of"


async def test_answers_out_of_order_reach_their_requests(tmp_path: Path) -> None:
    code = """
            held = []
            for m in calls():
                held.append(m)
                if len(held) == 20:
                    for each in reversed(held):
                        reply(each, text(each["params"]["name"]))
        """
    async with connect_to(tmp_path, code) as client:
        results = await asyncio.gather(*(client.call_tool(f"n{n}") for n in range(20)))
        assert [result.text for result in results] == [f"n{n}" for n in range(20)]


MALFORMED = {
    "neither result nor error": b'{"jsonrpc":"2.0","id":%d}',
    "both": b'{"jsonrpc":"2.0","id":%d,"result":{},"error":{"code":1,"message":"m"}}',
    "no jsonrpc": b'{"id":%d,"result":{"content":[]}}',
    "another jsonrpc": b'{"jsonrpc":"1.0","id":%d,"result":{"content":[]}}',
    "a number for a result": b'{"jsonrpc":"2.0","id":%d,"result":5}',
    "null for a result": b'{"jsonrpc":"2.0","id":%d,"result":null}',
    "a list for a result": b'{"jsonrpc":"2.0","id":%d,"result":[]}',
    "an error that is a text": b'{"jsonrpc":"2.0","id":%d,"error":"no"}',
    "an error without a code": b'{"jsonrpc":"2.0","id":%d,"error":{"message":"no"}}',
    "an error with a text for a code": b'{"jsonrpc":"2.0","id":%d,"error":{"code":"E1","message":"no"}}',
    "an error of null": b'{"jsonrpc":"2.0","id":%d,"error":null}',
    "NaN": b'{"jsonrpc":"2.0","id":%d,"result":{"content":[],"x":NaN}}',
    "not UTF-8": b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"\xff"}]}}',
    "deep": b'{"jsonrpc":"2.0","id":%d,"result":{"content":[],"x":' + b"[" * 100000 + b"]" * 100000 + b"}}",
    "content that is no list": b'{"jsonrpc":"2.0","id":%d,"result":{"content":{}}}',
    "content of texts": b'{"jsonrpc":"2.0","id":%d,"result":{"content":["a"]}}',
    "content without its text": b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text"}]}}',
    "a number with 10,000 digits": b'{"jsonrpc":"2.0","id":%d,"result":{"content":[],"x":' + b"9" * 10000 + b"}}",
}


@pytest.mark.parametrize("answer", MALFORMED.values(), ids=list(MALFORMED))
async def test_malformed_answers_fail_their_call_and_no_other(tmp_path: Path, answer: bytes) -> None:
    (tmp_path / "answer").write_bytes(answer)
    code = (
        FINE
        + f"""
answer = open({str(tmp_path / "answer")!r}, "rb").read()
for m in calls():
    fine(m) or raw(answer.replace(b"%d", str(m["id"]).encode()) + b"\\n")
"""
    )
    async with connect_to(tmp_path, code) as client:
        other = asyncio.ensure_future(client.request("waits/for/ever"))  # answered with the same, for its own id
        with pytest.raises((BadAnswer, ServerError, CallTimeout)) as caught:
            await client.call_tool("x", timeout=0.5)
        assert "odd.py" in str(caught.value), "it says which server"
        await works(client)
        other.cancel()
        await asyncio.gather(other, return_exceptions=True)


async def test_half_a_character_in_an_answer_is_read_as_the_replacement_character(tmp_path: Path) -> None:
    code = r"""
            for m in calls():
                half = r'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"a\ud83d"}]}}'
                raw((half % m["id"]).encode() + b"\n")
        """
    async with connect_to(tmp_path, code) as client:
        assert (await client.call_tool("x")).text == "a\ufffd"


@pytest.mark.parametrize("name", ["neither result nor error", "no jsonrpc", "an error of null", "NaN", "not UTF-8"])
async def test_a_malformed_answer_is_explained(tmp_path: Path, name: str) -> None:
    """At once or when the time is over: whoever waits reads that something came, not just that nothing did."""
    (tmp_path / "answer").write_bytes(MALFORMED[name])
    code = f"""
            answer = open({str(tmp_path / "answer")!r}, "rb").read()
            for m in calls():
                raw(answer.replace(b"%d", str(m["id"]).encode()) + b"\\n")
        """
    async with connect_to(tmp_path, code) as client:
        with pytest.raises(ClientError) as caught:
            await client.call_tool("x", timeout=0.5)
        assert "it sent" in str(caught.value) or isinstance(caught.value, BadAnswer), str(caught.value)


async def test_an_error_without_an_id_is_that_of_the_only_request(tmp_path: Path) -> None:
    code = (
        FINE
        + """
for m in calls():
    fine(m) or send(dict(jsonrpc="2.0", id=None, error=dict(code=-32700, message="I can't read that")))
"""
    )
    async with connect_to(tmp_path, code) as client:
        with pytest.raises(ServerError, match="I can't read that") as caught:
            await client.call_tool("x")
        assert caught.value.code == -32700
        await works(client)


async def test_the_error_of_another_request_is_not_taken_for_ones_own(tmp_path: Path) -> None:
    code = """
            from itertools import islice
            two = list(islice(calls(), 2))
            send(dict(jsonrpc="2.0", id=None, error=dict(code=-32700, message="whose?")))
            for each in two:
                reply(each, DONE)
            for m in calls(): pass
        """
    async with connect_to(tmp_path, code) as client:
        results = await asyncio.gather(client.call_tool("a"), client.call_tool("b"))
        assert [each.text for each in results] == ["done", "done"]
        assert any("whose?" in problem for problem in client.problems)


async def test_of_two_members_of_the_same_name_the_last_counts(tmp_path: Path) -> None:
    """As everywhere in Python; what matters is that nothing breaks, and that both are not taken."""
    code = """
            for m in calls():
                id = str(m["id"]).encode()
                raw(b'{"jsonrpc":"2.0","id":%s,"result":{"content":[]},"result":' % id)
                raw(b'{"content":[],"content":[{"type":"text","text":"last"}]}}\\n')
        """
    async with connect_to(tmp_path, code) as client:
        assert (await client.call_tool("x")).text == "last"


async def test_batches(tmp_path: Path) -> None:
    """One revision has them. Answers in one count in any: it costs nothing, and the call is answered."""
    code = """
            from itertools import islice
            two = list(islice(calls(), 2))
            send([])
            send([[], 5, "x", None, [[]], {}])
            send([dict(jsonrpc="2.0", id=m["id"], result=text(m["params"]["name"])) for m in two])
            for m in calls():
                send([dict(jsonrpc="2.0", method="notifications/message", params=dict(level="info", data=n))
                      for n in range(99)] + [dict(jsonrpc="2.0", id=m["id"], result=DONE)])
        """
    said: list[Any] = []
    async with connect_to(tmp_path, code, on_log=lambda message: said.append(message.data)) as client:
        results = await asyncio.gather(client.call_tool("a"), client.call_tool("b"))
        assert [each.text for each in results] == ["a", "b"]
        assert (await client.call_tool("c")).text == "done"
        assert said == list(range(99))


async def test_messages_for_no_request_are_ignored(tmp_path: Path) -> None:
    """Notifications that make no sense are noted at most."""
    code = """
            for m in calls():
                for method in ("notifications/progress", "notifications/message", "notifications/cancelled", "x",
                               "notifications/resources/updated", "notifications/tools/list_changed", "tools/call",
                               "notifications/subscriptions/acknowledged", "notifications/initialized", "y" * 100000):
                    for params in ({}, [], None, 5, "x", {"progressToken": {}}, {"progressToken": 1, "progress": "x"},
                                   {"requestId": []}, {"uri": 5}, {"_meta": 5}, {"requestId": 10**30}, {"level": 5}):
                        send(dict(jsonrpc="2.0", method=method, params=params))
                    send(dict(jsonrpc="2.0", method=method))
                reply(m, DONE)
        """
    options: dict[str, Any] = {"on_log": lambda _: None, "on_change": lambda _: None}
    async with connect_to(tmp_path, code, **options) as client:
        for _ in range(3):
            assert (await client.call_tool("x", on_progress=lambda *_: None)).text == "done"
        assert len(client.problems) < 100
        assert all(len(problem) < 1000 for problem in client.problems)


async def test_requests_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    code = """
            for m in calls():
                n = 0
                for method in ("x", "initialize", "tools/call", "roots/list", "elicitation/create", "y" * 1000):
                    for params in ({}, {"message": 5}, {"requestedSchema": []}):
                        ask(f"q{n}", method, **params)
                        n += 1
                answers = [json.loads(sys.stdin.readline()) for _ in range(n)]
                assert {each["id"] for each in answers} == {f"q{at}" for at in range(n)}
                reply(m, text(" ".join(sorted({str(each["error"]["code"]) for each in answers}))))
        """
    async with connect_to(tmp_path, code) as client:
        assert (await client.call_tool("x")).text == "-32601"


@pytest.mark.parametrize("value", ["\ud800", object(), {1: object()}], ids=["surrogate", "object", "key"])
async def test_arguments_that_are_no_json_fail_at_once_and_leave_nothing(tmp_path: Path, value: Any) -> None:
    log = tmp_path / "log"
    code = f"""
            for m in asks():
                open({str(log)!r}, "a").write(str(m.get("method")) + "\\n")
                usual(m) or m["params"].get("name") == "never" or reply(m, DONE)
        """
    async with connect_to(tmp_path, code) as client:
        with pytest.raises((TypeError, ValueError, OverflowError, ClientError)):
            await client.call_tool("x", {"a": value}, timeout=0.1)
        with pytest.raises(CallTimeout):  # whose time began later, and was as long
            await client.call_tool("never", timeout=0.1)
        assert (await client.call_tool("x")).text == "done"
        methods = log.read_text().split()
        assert methods.count("notifications/cancelled") == 1, "what was never sent can't be cancelled"


async def test_a_second_answer_to_a_request_is_ignored(tmp_path: Path) -> None:
    code = "for m in calls():\n    reply(m, text('one')); reply(m, text('two'))"
    async with connect_to(tmp_path, code) as client:
        for _ in range(3):
            assert (await client.call_tool("x")).text == "one"
        await client.ping()
