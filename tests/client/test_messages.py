"""The requirements on a connected client: ids, progress tokens, answers, and trust in what a server says."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from client.scripted import run, script
from client.test_handshake import BOTH, PREFIX, connect_to, wire
from longshore import Client
from longshore.errors import BadAnswer, CallTimeout, ServerError

# -- ids and tokens


@pytest.mark.parametrize("speaks", ["legacy", "2024-11-05", "2025-03-26", "modern"])
async def test_no_id_is_used_twice_and_every_line_is_one_message(tmp_path: Path, speaks: str) -> None:
    """Not for calls at once, nor after one was answered, given up, too late or asked again with answers."""
    code = """
        question = {"method": "elicitation/create", "params": {"message": "?", "requestedSchema": {}}}
        pages = {"tools": [TOOL], "nextCursor": "2"}
        for m in log():
            params = m.get("params", {})
            if m.get("method") == "tools/list": reply(m, {"tools": []} if "cursor" in params else pages)
            elif serve(m) and m.get("method") == "tools/call" and params["name"] != "never":
                if MODERN and params["name"] == "ask" and "inputResponses" not in params:
                    reply(m, {"resultType": "input_required", "inputRequests": {"q": question}})
                else: reply(m, text(params["arguments"].get("text", "")))
    """
    breaks = "a\nb\r\nc\u2028d\x85e\x00\U0001f600"
    async with connect_to(tmp_path, speaks, code, on_elicit=lambda _: True) as client:
        async with asyncio.TaskGroup() as group:
            for name in ("x", "ask") * 20:
                group.create_task(client.call_tool(name))
        for _ in range(3):
            with pytest.raises(CallTimeout):
                await client.call_tool("never", timeout=0.05)
            given_up = asyncio.ensure_future(client.call_tool("never"))
            await asyncio.sleep(0)
            given_up.cancel()
            await client.list_tools(fresh=True)
        assert (await client.call_tool("x", {"text": breaks})).text == breaks
    messages = wire(tmp_path)
    assert all(m["jsonrpc"] == "2.0" and isinstance(m.get("params", {}), dict) for m in messages)
    ids = [m["id"] for m in messages if "id" in m]
    assert all(type(id) in (int, str) for id in ids)
    assert len(ids) == len(set(ids)) >= 50
    assert len(wire(tmp_path, "notifications/cancelled")) >= 3


@BOTH
async def test_progress_has_its_own_token_and_only_with_a_handler(tmp_path: Path, speaks: str) -> None:
    code = """
        held = []
        for m in log():
            if serve(m) and m.get("method") == "tools/call": held.append(m)
            if len(held) == 31:
                for m in held:
                    token = m["params"].get("_meta", {}).get("progressToken")
                    if token is not None: notify("notifications/progress", progressToken=token, progress=m["id"])
                for m in held: reply(m, text(str(m["id"])))
    """
    told: dict[int, list[float]] = {n: [] for n in range(30)}
    async with connect_to(tmp_path, speaks, code) as client:

        async def call(n: int) -> None:
            told_to = told[n]
            found = await client.call_tool("x", on_progress=lambda done, *_: told_to.append(done))
            assert told_to == [int(found.text)]

        await asyncio.gather(client.call_tool("plain"), *map(call, range(30)))
    tokens = [m["params"].get("_meta", {}).get("progressToken") for m in wire(tmp_path, "tools/call")]
    assert tokens.count(None) == 1
    assert len(set(tokens)) == 31
    assert all(type(token) in (int, str) for token in tokens if token is not None)


async def test_the_state_of_one_call_is_not_that_of_another(tmp_path: Path) -> None:
    code = """
        question = {"method": "elicitation/create", "params": {"message": "?", "requestedSchema": {}}}
        held = []
        for m in log():
            if not serve(m) or "id" not in m: continue
            params = m["params"]
            if "inputResponses" in params:
                reply(m, text(params["name"] + params.get("requestState", "")))
                continue
            held.append(m)
            if len(held) == 3:
                for each in reversed(held):
                    name = each["params"]["name"]
                    state = {} if name == "none" else {"requestState": " of " + name}
                    reply(each, {"resultType": "input_required", "inputRequests": {"q": question}, **state})
    """
    async with connect_to(tmp_path, "modern", code, on_elicit=lambda _: True) as client:
        results = await asyncio.gather(*(client.call_tool(name) for name in ("a", "none", "b")))
        assert [each.text for each in results] == ["a of a", "none", "b of b"]


# -- answers


@BOTH
async def test_no_notification_is_ever_answered(tmp_path: Path, speaks: str) -> None:
    code = """
        methods = ("ping", "roots/list", "elicitation/create", "sampling/createMessage", "tools/call", "initialize",
                   "notifications/progress", "notifications/message", "notifications/cancelled", "server/discover",
                   "notifications/elicitation/complete", "notifications/tasks/status", "notifications/x", "x")
        for m in log():
            if serve(m) and "id" in m:
                for method in methods:
                    for params in ({}, [], 5, {"requestId": "nobody's"}, {"message": "?", "requestedSchema": {}}):
                        send(dict(jsonrpc="2.0", method=method, params=params))
                reply(m, DONE)
    """
    options: dict[str, Any] = {"on_elicit": lambda _: True, "on_sample": lambda _: "hi", "roots": ["/"]}
    async with connect_to(tmp_path, speaks, code, **options) as client:
        for _ in range(2):
            await client.call_tool("x")
    methods = [m.get("method") for m in wire(tmp_path)]
    begun = ["server/discover"] if speaks == "modern" else ["initialize", "notifications/initialized"]
    assert methods == [*begun, "tools/call", "tools/call"]


@pytest.mark.parametrize(
    "question",
    [
        '"elicitation/create", message="?", requestedSchema={"type": "object", "properties": {"a": {"default": 1}}}',
        '"sampling/createMessage", messages=[], maxTokens=5',
    ],
    ids=["elicitation", "sampling"],
)
async def test_a_question_that_wants_a_task_is_answered_as_any_other(tmp_path: Path, question: str) -> None:
    """We declare no tasks, so who asks for one gets the answer itself."""
    code = f"""
        for m in log():
            if serve(m) and m.get("method") == "tools/call":
                answers = []
                for task in ({{}}, {{"task": {{"ttl": 60000}}}}):
                    ask("q", {question}, **task)
                    answers.append(json.loads(sys.stdin.readline()))
                reply(m, text(str(answers[0] == answers[1] and "result" in answers[0])))
    """
    options: dict[str, Any] = {"on_elicit": lambda _: True, "on_sample": lambda asked: str(asked["maxTokens"])}
    async with connect_to(tmp_path, "legacy", code, **options) as client:
        assert (await client.call_tool("x")).text == "True"
    [hello] = wire(tmp_path, "initialize")
    assert "tasks" not in hello["params"]["capabilities"]


@pytest.mark.parametrize("code", [-32002, -32602])
@BOTH
async def test_a_missing_resource_is_understood_by_either_code(tmp_path: Path, speaks: str, code: int) -> None:
    server = f"""
            for m in log():
                if serve(m) and "id" in m:
                    if m["params"]["uri"] == "a:b": reply(m, {{"contents": [{{"uri": "a:b", "text": "hi"}}]}})
                    else: refuse(m, {code}, "not found", data={{"uri": m["params"]["uri"]}})
        """
    async with connect_to(tmp_path, speaks, server) as client:
        with pytest.raises(ServerError, match="not found") as caught:
            await client.read_resource("a:none")
        assert (caught.value.code, caught.value.data) == (code, {"uri": "a:none"})
        assert (await client.read_resource("a:b"))[0].text == "hi"


# -- whom a client believes

HINTS: list[tuple[dict[str, Any], bool]] = [
    ({}, False),
    ({"destructiveHint": True, "openWorldHint": True, "readOnlyHint": False}, False),
    ({"destructiveHint": False, "title": "Harmless", "trusted": True, "requiresApproval": False}, False),
    ({"readOnlyHint": "true", "idempotentHint": 1}, False),
    ({"readOnlyHint": None, "idempotentHint": []}, False),
    ({"readOnlyHint": True, "destructiveHint": True}, True),
    ({"idempotentHint": True}, True),
]


@BOTH
async def test_tool_annotations_only_decide_about_resending(tmp_path: Path, speaks: str) -> None:
    """A wrong annotation harms only the server that gave it."""
    code = f"""
        hints = {[hints for hints, _ in HINTS]!r}
        for m in log():
            if m.get("method") == "tools/list":
                reply(m, {{"tools": [dict(TOOL, name=f"t{{n}}", annotations=each) for n, each in enumerate(hints)]}})
            elif serve(m) and "id" in m: reply(m, DONE)
    """
    async with connect_to(tmp_path, speaks, code) as client:
        tools = await client.list_tools()
        assert [tool.repeatable for tool in tools] == [repeatable for _, repeatable in HINTS]
        for tool in tools:
            assert (await client.call_tool(tool.name, {"a": 1})).text == "done"
    calls = wire(tmp_path, "tools/call")
    assert [m["params"].pop("name") for m in calls] == [f"t{n}" for n in range(len(HINTS))]
    assert all({**m, "id": 0} == {**calls[0], "id": 0} for m in calls)


LABELS = [{"name": "odd", "version": "1"}, {"name": "longshore", "version": "9" * 1000, "trusted": True}, {}]


@BOTH
async def test_a_servers_name_changes_no_behaviour(tmp_path: Path, speaks: str) -> None:
    wires: list[Any] = []
    for n, label in enumerate(LABELS):
        folder = tmp_path / str(n)
        folder.mkdir()
        code = f"""
                label = {label!r}
                for m in log():
                    if m.get("method") == "initialize": greet(m, serverInfo=label)
                    elif m.get("method") == "server/discover": meet(m, _meta={{"{PREFIX}serverInfo": label}})
                    elif serve(m) and "id" in m: reply(m, DONE)
            """
        async with connect_to(folder, speaks, code, era="auto" if speaks == "modern" else "legacy") as client:
            await client.list_tools()
            await client.call_tool("x")
        wires.append(wire(folder))
    assert wires[0] == wires[1] == wires[2]


@contextmanager
def counting() -> Iterator[tuple[str, list[Any]]]:
    """An address that must not be visited, and the visits that it got."""
    visits: list[Any] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            try:
                while True:
                    visits.append(listener.accept())
            except OSError:
                return

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/x.json", visits
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(5)
    for wire_end, _ in visits:
        wire_end.close()


@BOTH
def test_nothing_that_a_server_names_is_fetched(tmp_path: Path, speaks: str) -> None:
    """Not what a schema refers to, in tools or in questions, nor a page to visit, an icon or a link."""
    seen: list[Any] = []
    code = """
        schema = {"$schema": URL, "$id": URL, "type": "object", "properties": {"a": {"$ref": URL}}, "$dynamicRef": URL}
        tool = {"name": "x", "inputSchema": schema, "outputSchema": schema, "icons": [{"src": URL}]}
        visit = {"mode": "url", "url": URL, "message": "?", "elicitationId": "e"}
        page = {"method": "elicitation/create", "params": visit}
        form = {"method": "elicitation/create", "params": {"message": "?", "requestedSchema": schema}}
        link = [{"type": "resource_link", "uri": URL, "name": "x"}]
        for m in log():
            if m.get("method") == "tools/list": reply(m, {"tools": [tool]})
            elif serve(m) and m.get("method") == "tools/call":
                if not MODERN:
                    for each in (page, form):
                        ask("q", each["method"], **each["params"])
                        sys.stdin.readline()
                elif "inputResponses" not in m["params"]:
                    reply(m, {"resultType": "input_required", "inputRequests": {"p": page, "f": form}})
                    continue
                reply(m, {"content": link, "structuredContent": {"a": 1}})
    """

    async def test() -> None:
        def answer(question: Any) -> bool:
            seen.append(question)
            return True

        async with connect_to(tmp_path, speaks, code.replace("URL", repr(url)), on_elicit=answer) as client:
            await client.list_tools()
            try:
                await client.call_tool("x", {"a": 1})
            except BadAnswer as problem:
                assert "schema" in str(problem)

    with counting() as (url, visits):
        run(test)
        assert visits == []
    page, form = seen
    assert (page.mode, page.url) == ("url", url), "who is asked sees the whole address"
    assert form.mode == "form" and form.schema["properties"] == {"a": {"$ref": url}}


class Untouchable:
    """Credentials that must not be used."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"{name} was wanted")


async def test_a_child_is_not_signed_in_to(tmp_path: Path) -> None:
    refused = "for m in log(): serve(m) and refuse(m, -32001, 'HTTP 401: sign in')"
    async with connect_to(tmp_path, "legacy", refused, auth=Untouchable()) as client:
        with pytest.raises(ServerError, match="sign in"):
            await client.call_tool("x")


async def test_a_server_without_logging_is_not_asked_for_it(tmp_path: Path) -> None:
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
    async with Client(script(tmp_path, code), on_log=heard_of.append) as client:
        await client.set_log_level("warning")
        await client.call_tool("x")
    assert [message.data for message in heard_of] == ["much"]
