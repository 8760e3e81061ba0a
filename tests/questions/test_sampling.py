"""What may be asked of a client's model, and what must not."""

from typing import Any

import pytest

from longshore import Context, Sample, Server
from longshore.telemetry.records import Problem

from .wire import ERAS, LEGACY, MODERN, Client, failed, run, text

SAID = {"role": "assistant", "content": {"type": "text", "text": "yes"}, "model": "m"}
TOOLS = [{"name": "add", "inputSchema": {"type": "object"}}]
USE = {"role": "assistant", "content": {"type": "tool_use", "id": "u1", "name": "add", "input": {}}}
RESULT = {"type": "tool_result", "toolUseId": "u1", "content": []}
both_eras = pytest.mark.parametrize("era", ERAS)


def asking(question: Sample) -> Server:
    app = Server("sampling")

    @app.tool(replay=True)
    async def f(ctx: Context) -> str:
        answers = await ctx.ask(a=question)
        return str(answers.a.text)

    return app


@both_eras
def test_every_option_reaches_the_client_under_its_own_name(era: str) -> None:
    question = Sample(
        [{"role": "user", "content": {"type": "text", "text": "hi"}}],
        max_tokens=5,
        system="be brief",
        temperature=0.5,
        stop=["."],
        preferences={"hints": [{"name": "small"}]},
        metadata={"k": 1},
    )

    async def main() -> None:
        client = Client(asking(question), era)
        assert text(await client.tool("f", {}, lambda *_: SAID)) == "yes"
        assert client.asked[0]["params"] == {
            "messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}],
            "maxTokens": 5,
            "systemPrompt": "be brief",
            "temperature": 0.5,
            "stopSequences": ["."],
            "modelPreferences": {"hints": [{"name": "small"}]},
            "metadata": {"k": 1},
        }

    run(main())


@pytest.mark.parametrize("question", [Sample("hi", tools=TOOLS), Sample("hi", tool_choice={"mode": "auto"})])
def test_tools_are_offered_only_to_a_client_that_declares_them(question: Sample) -> None:
    async def main() -> None:
        app = asking(question)
        reply = await Client(app, MODERN, {"sampling": {}}).call_tool("f")
        assert reply["error"]["data"] == {"requiredCapabilities": {"sampling": {"tools": {}}}}
        reply = await Client(app, LEGACY, {"sampling": {}}).call_tool("f")
        assert "let its model use tools" in failed(reply["result"])
        able = Client(app, MODERN, {"sampling": {"tools": {}}})
        assert text(await able.tool("f", {}, lambda *_: SAID)) == "yes"

    run(main())


@both_eras
@pytest.mark.parametrize(
    "messages",
    [
        [USE, {"role": "user", "content": {"type": "text", "text": "never mind"}}],
        [USE, {"role": "user", "content": [RESULT, {"type": "text", "text": "and"}]}],
        [{"role": "user", "content": RESULT}],
        [{"role": "user", "content": {"type": "text", "text": "add"}}, USE],
    ],
)
def test_a_conversation_whose_tool_uses_and_results_do_not_match_is_not_sent(era: str, messages: list[Any]) -> None:
    async def main() -> None:
        client = Client(asking(Sample(messages, tools=TOOLS)), era, {"sampling": {"tools": {}}})
        assert "tool_use" in failed((await client.call_tool("f"))["result"])

    run(main())


@both_eras
def test_a_conversation_with_its_results_is_sent(era: str) -> None:
    async def main() -> None:
        question = Sample([USE, {"role": "user", "content": [RESULT]}], tools=TOOLS)
        client = Client(asking(question), era, {"sampling": {"tools": {}}})
        assert text(await client.tool("f", {}, lambda *_: SAID)) == "yes"

    run(main())


def test_a_deprecated_feature_is_reported_once() -> None:
    async def main() -> None:
        app = asking(Sample("hi"))
        notices: list[str] = []
        app.listen(lambda record: notices.append(record.text) if isinstance(record, Problem) else None)
        client = Client(app)
        for _ in range(2):
            await client.tool("f", {}, lambda *_: SAID)
        assert notices == ["sampling is deprecated by MCP since 2026-07-28; it still works"]

    run(main())
