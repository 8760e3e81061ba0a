"""What the official suite does not look at, or passes whoever does nothing: shown on the same fixtures.

It never checks that the level of the log is honoured, that a watched resource's update is told, or that an answer
reaches the tool that asked for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from .peers import ALL, LEGACY, MODERN, PREFIX, Json, Peer, connect
from .process import served

WATCHED = "test://watched-resource"
Script = Callable[[Peer], Coroutine[Any, Any, None]]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served(tmp_path_factory.mktemp("conformance") / "server.log") as url:
        yield url


@pytest.fixture(params=["memory", "http"])
def where(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue("address")) if request.param == "http" else "memory"


@pytest.fixture(params=[LEGACY, MODERN])
def era(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def play(where: str, era: str, script: Script, capabilities: Json | None = None) -> None:
    async def main() -> None:
        async with connect(where, era, capabilities) as peer:
            await script(peer)

    asyncio.run(main())


def text(result: Json) -> str:
    assert not result.get("isError"), result
    return "".join(block["text"] for block in result["content"])


def accept(**content: Any) -> Json:
    return {"action": "accept", "content": content}


def said(words: str) -> Json:
    return {"role": "assistant", "content": {"type": "text", "text": words}, "model": "tests", "stopReason": "endTurn"}


# -- the log

ALL_LEVELS = ["debug", "info", "warning", "error"]
HEARD = {"debug": ALL_LEVELS, "info": ALL_LEVELS[1:], "notice": ALL_LEVELS[2:], "error": ["error"], "alert": []}


async def logged(peer: Peer, level: str | None) -> list[str]:
    """The levels of the messages that a call brings, with the level asked for as the era does it."""
    peer.notes.clear()
    meta = {PREFIX + "logLevel": level} if level and peer.modern else {}
    if level and not peer.modern:
        assert (await peer.request("logging/setLevel", {"level": level}))["result"] == {}
    assert text(await peer.call("test_logging_tool", meta=meta)) == "logged"
    return [note["params"]["level"] for note in peer.notes if note["method"] == "notifications/message"]


def test_only_messages_of_the_wanted_level_arrive(where: str, era: str) -> None:
    async def script(peer: Peer) -> None:
        for level, expected in HEARD.items():
            assert await logged(peer, level) == expected

    play(where, era, script)


def test_a_stateless_client_that_asks_for_no_log_gets_none(where: str) -> None:
    async def script(peer: Peer) -> None:
        assert await logged(peer, None) == []
        assert await logged(peer, "debug") == ALL_LEVELS
        assert await logged(peer, None) == [], "a level is for one request only"

    play(where, MODERN, script)


def test_a_level_is_kept_for_the_session_and_only_there(address: str) -> None:
    async def script(peer: Peer) -> None:
        assert await logged(peer, "error") == ["error"]
        async with connect(address, LEGACY) as other:
            assert await logged(other, "debug") == ALL_LEVELS
            assert await logged(peer, None) == ["error"]
            assert await logged(other, None) == ALL_LEVELS

    play(address, LEGACY, script)


def test_the_messages_say_what_the_tool_said_and_come_before_its_result(where: str, era: str) -> None:
    async def script(peer: Peer) -> None:
        meta = {PREFIX + "logLevel": "info"} if peer.modern else {}
        await peer.call("test_tool_with_logging", meta=meta)
        data = [note["params"]["data"] for note in peer.notes if note["method"] == "notifications/message"]
        assert data == ["Tool execution started", "Tool processing data", "Tool execution completed"]

    play(where, era, script)


# -- progress


def test_progress_is_told_to_who_gave_a_token_and_to_nobody_else(where: str, era: str) -> None:
    async def script(peer: Peer) -> None:
        assert text(await peer.call("test_tool_with_progress", meta={"progressToken": "p-1"})) == "done for p-1"
        steps = [note["params"] for note in peer.notes if note["method"] == "notifications/progress"]
        assert [(step["progress"], step["total"], step["progressToken"]) for step in steps] == [
            (0, 100, "p-1"),
            (50, 100, "p-1"),
            (100, 100, "p-1"),
        ]
        peer.notes.clear()
        assert text(await peer.call("test_tool_with_progress")) == "done for None"
        assert peer.notes == []

    play(where, era, script)


# -- what changes


async def watch(peer: Peer, **what: Any) -> int:
    """Watch as the era does it. What a listen wants is said by its filter; the handshake era wants it all."""
    if peer.modern:
        id = await peer.send("subscriptions/listen", {"notifications": what})
        assert (await peer.heard("notifications/subscriptions/acknowledged"))["params"]["notifications"] == what
        return id
    for uri in what.get("resourceSubscriptions", ()):
        assert (await peer.request("resources/subscribe", {"uri": uri}))["result"] == {}
    return 0


async def unwatch(peer: Peer, id: int) -> None:
    if not peer.modern:
        assert (await peer.request("resources/unsubscribe", {"uri": WATCHED}))["result"] == {}
    elif hasattr(peer, "hang_up"):
        await peer.hang_up(id)
    else:
        await peer.put({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})


async def read_watched(peer: Peer) -> str:
    return str((await peer.request("resources/read", {"uri": WATCHED}))["result"]["contents"][0]["text"])


def test_an_update_of_a_watched_resource_is_told(where: str, era: str) -> None:
    async def script(peer: Peer) -> None:
        id = await watch(peer, resourceSubscriptions=[WATCHED])
        for _ in range(2):
            version = text(await peer.call("test_trigger_resource_change"))
            params = (await peer.heard("notifications/resources/updated"))["params"]
            assert params["uri"] == WATCHED
            assert (await read_watched(peer)).endswith(version)
            if peer.modern:
                assert params["_meta"][PREFIX + "subscriptionId"] == id

    play(where, era, script)


def test_nothing_is_told_of_what_is_not_watched_or_no_longer(where: str, era: str) -> None:
    async def script(peer: Peer) -> None:
        await watch(peer, toolsListChanged=True)  # the witness: what it brings comes after what must not come
        await watch(peer, resourceSubscriptions=["test://static-text"])
        await peer.call("test_trigger_resource_change")
        id = await watch(peer, resourceSubscriptions=[WATCHED])
        await unwatch(peer, id)
        await peer.call("test_trigger_resource_change")
        await peer.call("test_trigger_tool_change")
        await peer.heard("notifications/tools/list_changed")
        assert "notifications/resources/updated" not in [note["method"] for note in peer.notes]

    play(where, era, script)


@pytest.mark.parametrize(
    ("part", "tool"), [("tools", "test_trigger_tool_change"), ("prompts", "test_trigger_prompt_change")]
)
def test_a_changed_list_is_told_and_is_the_same_afterwards(where: str, era: str, part: str, tool: str) -> None:
    async def script(peer: Peer) -> None:
        before = (await peer.request(f"{part}/list"))["result"][part]
        await watch(peer, **{f"{part}ListChanged": True})
        await peer.call(tool)
        await peer.heard(f"notifications/{part}/list_changed")
        assert (await peer.request(f"{part}/list"))["result"][part] == before

    play(where, era, script)


# -- answers


def test_what_the_person_answers_reaches_the_tool(where: str, era: str) -> None:
    async def script(peer: Peer) -> None:
        def answer(question: Json) -> Json:
            assert question["method"] == "elicitation/create"
            assert question["params"]["message"] == "Who are you?"
            assert sorted(question["params"]["requestedSchema"]["required"]) == ["email", "username"]
            return accept(username="Ada", email="ada@example.com")

        result = await peer.call("test_elicitation", answer, message="Who are you?")
        assert text(result) == 'User response: action: accept, content: {"username":"Ada","email":"ada@example.com"}'
        assert len(peer.asked) == 1

    play(where, era, script)


@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_a_person_who_does_not_answer_is_understood(where: str, era: str, action: str) -> None:
    async def script(peer: Peer) -> None:
        result = await peer.call("test_elicitation", lambda _: {"action": action}, message="Who are you?")
        assert text(result) == f"User response: action: {action}"
        result = await peer.call("test_streaming_elicitation", lambda _: {"action": action})
        assert result["isError"] and action in result["content"][0]["text"], "it needs the name"

    play(where, era, script)


@pytest.mark.parametrize("content", [{}, {"username": "Ada"}, {"username": "Ada", "email": 7}])
def test_an_answer_that_does_not_fill_the_form_is_no_answer(where: str, era: str, content: Json) -> None:
    async def script(peer: Peer) -> None:
        params = {"name": "test_elicitation", "arguments": {"message": "Who?"}}
        reply = await peer.converse("tools/call", params, lambda _: accept(**content))
        assert reply["error"]["code"] == -32602

    play(where, era, script)


def test_a_field_that_is_left_out_has_its_default(where: str, era: str) -> None:
    async def script(peer: Peer) -> None:
        def answer(question: Json) -> Json:
            fields = question["params"]["requestedSchema"]["properties"]
            assert {name: field["default"] for name, field in fields.items()} == {
                "name": "John Doe",
                "age": 30,
                "score": 95.5,
                "status": "active",
                "verified": True,
            }
            return accept(age=31, status="pending")

        told = text(await peer.call("test_elicitation_sep1034_defaults", answer))
        assert '{"name":"John Doe","age":31,"score":95.5,"status":"pending","verified":true}' in told

    play(where, era, script)


def test_every_kind_of_choice_comes_back_as_it_was_made(where: str, era: str) -> None:
    async def script(peer: Peer) -> None:
        chosen = {"untitledSingle": "option2", "titledMulti": ["value1", "value3"], "legacyEnum": "opt3"}
        told = text(await peer.call("test_elicitation_sep1330_enums", lambda _: accept(**chosen)))
        assert '{"untitledSingle":"option2","titledMulti":["value1","value3"],"legacyEnum":"opt3"}' in told

    play(where, era, script)


def test_what_the_model_says_reaches_the_tool(where: str, era: str) -> None:
    async def script(peer: Peer) -> None:
        def answer(question: Json) -> Json:
            assert question["method"] == "sampling/createMessage"
            assert question["params"]["maxTokens"] == 100
            [message] = question["params"]["messages"]
            assert message == {"role": "user", "content": {"type": "text", "text": "Name a river"}}
            return said("The Rhine")

        assert text(await peer.call("test_sampling", answer, prompt="Name a river")) == "LLM response: The Rhine"

    play(where, era, script)


def test_a_client_that_answers_with_an_error_fails_the_tool_and_not_the_session(where: str) -> None:
    async def script(peer: Peer) -> None:
        refusal = {"error": {"code": -1, "message": "User rejected sampling request"}}
        result = await peer.call("test_sampling", lambda _: refusal, prompt="Name a river")
        assert result["isError"] and "User rejected sampling request" in result["content"][0]["text"]
        assert text(await peer.call("test_simple_text"))

    play(where, LEGACY, script)


def test_the_roots_reach_the_tool(where: str, era: str) -> None:
    async def script(peer: Peer) -> None:
        roots = {"roots": [{"uri": "file:///a", "name": "A"}, {"uri": "file:///b"}]}
        assert text(await peer.call("test_input_required_result_list_roots", lambda _: roots)) == "file:///a, file:///b"

    play(where, era, script)


def test_several_questions_at_once_keep_their_answers_apart(where: str, era: str) -> None:
    async def script(peer: Peer) -> None:
        answers = {
            "elicitation/create": accept(name="Ada"),
            "sampling/createMessage": said("Good day"),
            "roots/list": {"roots": [{"uri": "file:///a"}]},
        }
        result = await peer.call("test_input_required_result_multiple_inputs", lambda asked: answers[asked["method"]])
        assert text(result) == "Good day Ada, in file:///a"
        assert len(peer.asked) == 3

    play(where, era, script)


def test_a_second_question_after_the_first(where: str, era: str) -> None:
    async def script(peer: Peer) -> None:
        def answer(question: Json) -> Json:
            [field] = question["params"]["requestedSchema"]["properties"]
            return accept(**{field: {"name": "Ada", "color": "blue"}[field]})

        assert text(await peer.call("test_input_required_result_multi_round", answer)) == "Ada likes blue"
        assert [question["params"]["message"][:6] for question in peer.asked] == ["Step 1", "Step 2"]

    play(where, era, script)


def test_a_prompt_gets_what_it_asks_for(where: str, era: str) -> None:
    async def script(peer: Peer) -> None:
        params = {"name": "test_input_required_result_prompt"}
        reply = await peer.converse("prompts/get", params, lambda _: accept(context="a rainy day"))
        assert reply["result"]["messages"][0]["content"]["text"] == "Use this context: a rainy day"

    play(where, era, script)


# -- capabilities


def test_only_what_the_client_can_answer_is_asked(where: str, era: str) -> None:
    async def script(peer: Peer) -> None:
        def answer(question: Json) -> Json:
            assert question["method"] == "sampling/createMessage"
            return said("Good day")

        assert text(await peer.call("test_input_required_result_capabilities", answer)) == "Good day, you!"

    play(where, era, script, {"sampling": {}})


@pytest.mark.parametrize(
    ("tool", "arguments", "lacking"),
    [("test_missing_capability", {}, "sampling"), ("test_elicitation", {"message": "Who?"}, "elicitation")],
)
def test_a_client_that_cannot_be_asked_is_told_so(
    where: str, era: str, tool: str, arguments: Json, lacking: str
) -> None:
    async def script(peer: Peer) -> None:
        reply = await peer.request("tools/call", {"name": tool, "arguments": arguments})
        if peer.modern:
            assert reply["error"]["code"] == -32021
            assert list(reply["error"]["data"]["requiredCapabilities"]) == [lacking]
        else:
            assert reply["result"]["isError"] and "did not declare" in reply["result"]["content"][0]["text"]

    play(where, era, script, {key: value for key, value in ALL.items() if key != lacking})


# -- the state between two rounds


@pytest.mark.parametrize("change", [lambda state: state + "x", lambda state: state[:-1], lambda _: ""])
def test_a_state_that_was_changed_is_refused(where: str, change: Callable[[str], str]) -> None:
    async def script(peer: Peer) -> None:
        params = {"name": "test_input_required_result_tampered_state", "arguments": {}}
        asked = (await peer.request("tools/call", params))["result"]
        answers = {"confirm": accept(ok=True)}
        retry = {**params, "inputResponses": answers, "requestState": change(asked["requestState"])}
        assert (await peer.request("tools/call", retry))["error"]["code"] == -32602
        retry["requestState"] = asked["requestState"]
        assert text((await peer.request("tools/call", retry))["result"]) == "confirmed: True"
        assert (await peer.request("tools/call", retry))["error"]["code"] == -32602, "one yes is for one time"

    play(where, MODERN, script)


def test_an_answer_without_its_state_confirms_nothing(where: str) -> None:
    async def script(peer: Peer) -> None:
        params = {"name": "test_input_required_result_request_state", "arguments": {}}
        reply = await peer.request("tools/call", {**params, "inputResponses": {"confirm": accept(ok=True)}})
        assert reply["result"]["resultType"] == "input_required"

    play(where, MODERN, script)


# -- completion


def test_a_completion_depends_on_what_was_typed(where: str, era: str) -> None:
    async def script(peer: Peer) -> None:
        ref = {"type": "ref/prompt", "name": "test_prompt_with_arguments"}
        for typed, expected in (("pa", ["paris", "park", "party"]), ("x", [])):
            params = {"ref": ref, "argument": {"name": "arg1", "value": typed}}
            reply = await peer.request("completion/complete", params)
            assert reply["result"]["completion"]["values"] == expected

    play(where, era, script)
