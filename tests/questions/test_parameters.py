"""Parameters that are asked for before the body, in both eras."""

from typing import Annotated, Any

import pytest
from msgspec import Meta

from longshore import Ask, Elicit, ElicitAnswer, ListRoots, RegistrationError, Root, Sample, SampleAnswer, Server
from longshore.errors import Declined

from .wire import ALL, DECLINE, ERAS, LEGACY, MODERN, Client, accept, failed, run, text

both_eras = pytest.mark.parametrize("era", ERAS)


def refunds(effects: list[str], **options: Any) -> Server:
    app = Server("shop")

    @app.tool(**options)
    async def refund(order: str, ok: Annotated[bool, Ask("Refund {order}?")]) -> str:
        effects.append(order)
        return f"refunded {order}" if ok else "left alone"

    return app


@both_eras
def test_an_asked_parameter_is_asked_first_and_the_body_runs_exactly_once(era: str) -> None:
    effects: list[str] = []

    async def main() -> None:
        client = Client(refunds(effects), era)

        def answer(key: str, asked: Any) -> Any:
            assert effects == []
            return accept(ok=True)

        assert text(await client.tool("refund", {"order": "A9"}, answer)) == "refunded A9"
        assert effects == ["A9"]
        assert len(client.asked) == 1

    run(main())


@both_eras
def test_the_question_names_the_calls_own_arguments_and_asks_for_the_parameters_type(era: str) -> None:
    async def main() -> None:
        client = Client(refunds([]), era)
        await client.tool("refund", {"order": "{A9}"}, lambda key, asked: accept(ok=False))
        schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
        assert client.asked == [
            {
                "method": "elicitation/create",
                "params": {"mode": "form", "message": "Refund {A9}?", "requestedSchema": schema},
            }
        ]

    run(main())


@both_eras
def test_an_asked_parameter_is_not_among_the_arguments(era: str) -> None:
    async def main() -> None:
        client = Client(refunds([]), era)
        tools = (await client.request("tools/list"))["result"]["tools"]
        assert list(tools[0]["inputSchema"]["properties"]) == ["order"]
        reply = await client.call_tool("refund", {"order": "A9", "ok": True})
        assert "ok" in failed(reply["result"])

    run(main())


@both_eras
@pytest.mark.parametrize("kind", ["async", "thread", "inline"])
def test_every_way_to_run_a_body_can_have_asked_parameters(era: str, kind: str) -> None:
    app = Server("shop")
    if kind == "async":

        @app.tool(name="f")
        async def waiting(ok: Annotated[bool, Ask("?")]) -> str:
            return f"{ok}"
    else:

        @app.tool(name="f", run=kind)
        def plain(ok: Annotated[bool, Ask("?")]) -> str:
            return f"{ok}"

    async def main() -> None:
        assert text(await Client(app, era).tool("f", {}, lambda *_: accept(ok=True))) == "True"

    run(main())


@both_eras
@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_a_required_parameter_that_is_declined_ends_the_call_and_says_so(era: str, action: str) -> None:
    effects: list[str] = []

    async def main() -> None:
        result = await Client(refunds(effects), era).tool("refund", {"order": "A9"}, lambda *_: {"action": action})
        assert failed(result) == f"not done: the person answered {action!r} when asked for 'ok'"
        assert effects == []

    run(main())


def with_default() -> Server:
    app = Server("shop")

    @app.tool
    async def greet(name: Annotated[str, Ask("Who are you?")] = "friend") -> str:
        return f"hello {name}"

    return app


@both_eras
def test_a_default_is_taken_when_the_person_declines(era: str) -> None:
    async def main() -> None:
        client = Client(with_default(), era)
        assert text(await client.tool("greet", {}, lambda *_: DECLINE)) == "hello friend"
        assert text(await client.tool("greet", {}, lambda *_: accept(name="Ada"))) == "hello Ada"

    run(main())


@both_eras
def test_a_default_is_taken_at_once_when_the_client_cannot_ask(era: str) -> None:
    async def main() -> None:
        reply = await Client(with_default(), era, capabilities={}).call_tool("greet")
        assert text(reply["result"]) == "hello friend"

    run(main())


def test_a_default_is_taken_when_the_client_answers_with_an_error() -> None:
    async def main() -> None:
        client = Client(with_default(), LEGACY)
        client.send("tools/call", {"name": "greet", "arguments": {}})
        asked = await client.get()
        client.put({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -1, "message": "user rejected"}})
        assert text((await client.get())["result"]) == "hello friend"

    run(main())


def test_a_missing_capability_is_named_to_a_modern_client() -> None:
    async def main() -> None:
        reply = await Client(refunds([]), MODERN, capabilities={"elicitation": {"url": {}}}).call_tool(
            "refund", {"order": "A9"}
        )
        assert reply["error"]["code"] == -32021
        assert reply["error"]["data"] == {"requiredCapabilities": {"elicitation": {"form": {}}}}

    run(main())


def test_a_missing_capability_is_a_failed_result_to_a_handshake_client() -> None:
    async def main() -> None:
        reply = await Client(refunds([]), LEGACY, capabilities={}).call_tool("refund", {"order": "A9"})
        assert "did not declare that it can ask the person" in failed(reply["result"])

    run(main())


@pytest.mark.parametrize("era", ["2024-11-05", "2025-03-26"])
def test_a_revision_without_elicitation_is_never_asked_even_if_it_declares_it(era: str) -> None:
    async def main() -> None:
        reply = await Client(refunds([]), era).call_tool("refund", {"order": "A9"})
        assert reply["result"]["isError"] is True

    run(main())


def test_an_empty_elicitation_capability_means_forms() -> None:
    async def main() -> None:
        for era in ERAS:
            client = Client(refunds([]), era, capabilities={"elicitation": {}})
            assert text(await client.tool("refund", {"order": "A9"}, lambda *_: accept(ok=True))) == "refunded A9"

    run(main())


def test_2025_06_18_is_asked_without_a_mode() -> None:
    async def main() -> None:
        client = Client(refunds([]), "2025-06-18", capabilities={"elicitation": {}})
        await client.tool("refund", {"order": "A9"}, lambda *_: accept(ok=True))
        assert "mode" not in client.asked[0]["params"]

    run(main())


@both_eras
def test_several_parameters_are_asked_together(era: str) -> None:
    app = Server("shop")

    @app.tool
    async def order(size: Annotated[int, Ask("Size?")], color: Annotated[str, Ask("Color?")]) -> str:
        return f"{size} {color}"

    async def main() -> None:
        client = Client(app, era)
        if era == MODERN:
            reply = await client.call_tool("order")
            assert list(reply["result"]["inputRequests"]) == ["size", "color"]
        else:
            client.send("tools/call", {"name": "order", "arguments": {}})
            first, second = await client.get(), await client.get()
            for asked, answer in ((second, accept(color="red")), (first, accept(size=4))):
                client.put({"jsonrpc": "2.0", "id": asked["id"], "result": answer})
            assert text((await client.get())["result"]) == "4 red"

    run(main())


@both_eras
def test_the_clients_model_and_its_roots_can_be_asked_for_parameters(era: str) -> None:
    app = Server("shop")

    @app.tool
    async def survey(
        topic: str,
        title: Annotated[str, Ask(Sample("A title for {topic}", max_tokens=20))],
        whole: Annotated[SampleAnswer, Ask(Sample("Again"))],
        roots: Annotated[list[Root], Ask(ListRoots())],
    ) -> str:
        return f"{title} {whole.model} {roots[0].uri}"

    def answer(key: str, asked: Any) -> Any:
        if asked["method"] == "roots/list":
            return {"roots": [{"uri": "file:///w"}]}
        return {"role": "assistant", "content": {"type": "text", "text": "Boats"}, "model": "m1"}

    async def main() -> None:
        client = Client(app, era)
        assert text(await client.tool("survey", {"topic": "sea"}, answer)) == "Boats m1 file:///w"
        sample = client.asked[0]
        assert sample["method"] == "sampling/createMessage"
        assert sample["params"] == {
            "messages": [{"role": "user", "content": {"type": "text", "text": "A title for sea"}}],
            "maxTokens": 20,
        }

    run(main())


@both_eras
def test_a_parameter_that_may_be_absent_gets_what_one_that_may_not_gets(era: str) -> None:
    app = Server("shop")

    @app.tool
    async def survey(
        title: Annotated[str | None, Meta(pattern="^B"), Ask(Sample("A title"))] = None,
        whole: Annotated[SampleAnswer | None, Ask(Sample("Again"))] = None,
        done: Annotated[ElicitAnswer | None, Ask(Elicit("Sure?"))] = None,
    ) -> str:
        assert whole is not None and done is not None
        return f"{title} {whole.model} {done.action}"

    def answer(key: str, asked: Any) -> Any:
        if asked["method"] == "elicitation/create":
            return DECLINE
        return {"role": "assistant", "content": {"type": "text", "text": "Boats"}, "model": "m1"}

    async def main() -> None:
        assert text(await Client(app, era).tool("survey", {}, answer)) == "Boats m1 decline"

    run(main())


@both_eras
def test_a_person_can_be_sent_to_a_page_whose_address_holds_escaped_arguments(era: str) -> None:
    app = Server("shop")

    @app.tool
    async def pay(order: str, paid: Annotated[bool, Ask("Pay {order}", url="https://pay.example/{order}")]) -> str:
        return f"{paid}"

    async def main() -> None:
        client = Client(app, era)
        assert text(await client.tool("pay", {"order": "a/b&c"}, lambda *_: {"action": "accept"})) == "True"
        params = client.asked[0]["params"]
        assert (params["mode"], params["url"]) == ("url", "https://pay.example/a%2Fb%26c")
        assert ("elicitationId" in params) is (era == LEGACY)

    run(main())


def test_a_page_needs_a_client_that_declares_url_mode() -> None:
    app = Server("shop")

    @app.tool
    async def pay(paid: Annotated[bool, Ask("Pay", url="https://pay.example/")]) -> str:
        return f"{paid}"

    async def main() -> None:
        reply = await Client(app, MODERN, capabilities={"elicitation": {}}).call_tool("pay")
        assert reply["error"]["data"] == {"requiredCapabilities": {"elicitation": {"url": {}}}}

    run(main())


@both_eras
def test_a_whole_answer_distinguishes_decline_and_cancel(era: str) -> None:
    from longshore import Elicit

    app = Server("shop")

    @app.tool
    async def f(answer: Annotated[ElicitAnswer, Ask(Elicit("Sure?"))]) -> str:
        return f"{answer.action} {answer.value}"

    async def main() -> None:
        client = Client(app, era)
        assert text(await client.tool("f", {}, lambda *_: {"action": "cancel"})) == "cancel None"
        assert text(await client.tool("f", {}, lambda *_: accept(answer=True))) == "accept True"

    run(main())


@both_eras
def test_prompts_have_asked_parameters_too(era: str) -> None:
    app = Server("shop")

    @app.prompt
    async def letter(to: str, tone: Annotated[str, Ask("Which tone, for {to}?")]) -> str:
        return f"a {tone} letter to {to}"

    async def main() -> None:
        client = Client(app, era)
        prompts = (await client.request("prompts/list"))["result"]["prompts"]
        assert [argument["name"] for argument in prompts[0]["arguments"]] == ["to"]
        params = {"name": "letter", "arguments": {"to": "Ada"}}
        reply = await client.converse("prompts/get", params, lambda *_: accept(tone="warm"))
        assert reply["result"]["messages"][0]["content"]["text"] == "a warm letter to Ada"
        assert client.asked[0]["params"]["message"] == "Which tone, for Ada?"
        reply = await client.converse("prompts/get", params, lambda *_: DECLINE)
        assert "decline" in reply["error"]["message"]

    run(main())


@both_eras
def test_resources_have_asked_parameters_too(era: str) -> None:
    app = Server("shop")

    @app.resource("file:///{path}")
    async def read(path: str, ok: Annotated[bool, Ask("Show {path}?")]) -> str:
        return f"{path} {ok}"

    async def main() -> None:
        client = Client(app, era)
        params = {"uri": "file:///notes"}
        reply = await client.converse("resources/read", params, lambda *_: accept(ok=True))
        assert reply["result"]["contents"][0]["text"] == "notes True"
        assert client.asked[0]["params"]["message"] == "Show notes?"

    run(main())


def test_a_state_of_a_prompt_does_not_open_a_tool_of_the_same_name() -> None:
    app = Server("shop")

    @app.tool(name="f")
    async def tool(ok: Annotated[bool, Ask("?")]) -> str:
        return "tool"

    @app.prompt(name="f")
    async def prompt(ok: Annotated[bool, Ask("?")]) -> str:
        return "prompt"

    async def main() -> None:
        client = Client(app)
        asked = await client.request("prompts/get", name="f", arguments={})
        state = asked["result"]["requestState"]
        reply = await client.call_tool("f", {}, requestState=state, inputResponses={"ok": accept(ok=True)})
        assert reply["error"]["code"] == -32602

    run(main())


@both_eras
def test_a_toolsets_method_has_asked_parameters_too(era: str) -> None:
    from longshore import Toolset, tool

    class Shop(Toolset):
        def start(self) -> None:
            self.opened = True

        @tool
        async def close(self, ok: Annotated[bool, Ask("Close?")]) -> str:
            return f"{self.opened} {ok}"

    app = Server("shop")
    app.add_toolset(Shop())

    async def main() -> None:
        assert text(await Client(app, era).tool("close", {}, lambda *_: accept(ok=True))) == "True True"

    run(main())


def test_a_question_that_names_no_argument_is_refused_at_registration() -> None:
    app = Server("shop")
    with pytest.raises(RegistrationError, match=r"\{ordr\}.*\n.*did you mean \{order\}"):

        @app.tool
        async def refund(order: str, ok: Annotated[bool, Ask("Refund {ordr}?")]) -> str:
            return ""


def test_a_type_that_no_form_can_hold_is_refused_at_registration() -> None:
    app = Server("shop")
    with pytest.raises(RegistrationError, match="flat record"):

        @app.tool
        async def refund(ok: Annotated[dict[str, list[int]], Ask("Which?")]) -> str:
            return ""


def test_a_secret_is_never_asked_by_a_form() -> None:
    app = Server("shop")

    @app.tool
    async def login(password: Annotated[str, Ask("Your password?")]) -> str:
        return password

    async def main() -> None:
        for era in ERAS:
            reply = await Client(app, era).call_tool("login")
            assert "url" in failed(reply["result"])

    run(main())


def test_declined_is_a_tool_error_that_an_author_can_catch() -> None:
    from longshore import ToolError

    assert issubclass(Declined, ToolError)


def test_a_modern_client_is_asked_only_for_what_this_request_declares() -> None:
    async def main() -> None:
        app = refunds([])
        able, unable = Client(app, MODERN, ALL), Client(app, MODERN, {})
        assert "inputRequests" in (await able.call_tool("refund", {"order": "1"}))["result"]
        assert (await unable.call_tool("refund", {"order": "1"}))["error"]["code"] == -32021

    run(main())
