"""Prompts: what a list shows, what comes of a function's result, and arguments that arrive as text."""

from __future__ import annotations

import asyncio
import base64
import enum
from typing import Annotated, Any, Literal, Optional

import pytest
from msgspec import Meta

from longshore import Audio, Contents, Context, EmbeddedResource, Icon, Image, Message, ResourceLink, Server, Text
from longshore.protocol.revisions import NAMES
from talk import ERAS, NEWEST, NEWEST_LEGACY, Refused, result, talk


class Tone(enum.Enum):
    WARM = "warm"
    COLD = "cold"


def get(app: Server, name: str, arguments: Any = None, revision: str = NEWEST_LEGACY) -> dict[str, Any]:
    params = {"name": name} | ({} if arguments is None else {"arguments": arguments})
    return result(app, "prompts/get", params, revision)


def refusal(app: Server, name: str, arguments: Any, revision: str = NEWEST_LEGACY) -> Refused:
    with pytest.raises(Refused) as caught:
        get(app, name, arguments, revision)
    return caught.value


# -- lists


@pytest.mark.parametrize(
    ("revision", "unknown"),
    [
        ("2024-11-05", {"title", "icons", "_meta"}),
        ("2025-06-18", {"icons"}),
        ("2025-11-25", set()),
        ("2026-07-28", set()),
    ],
)
def test_every_option_stands_in_the_list_from_the_revision_on_that_knows_it(revision: str, unknown: set[str]) -> None:
    app = Server("t")

    @app.prompt(name="x", title="X", description="D.", icons=[Icon("https://i")], meta={"example.com/k": 1})
    def whatever(code: str, tone: Annotated[Tone, "how to say it"] = Tone.WARM) -> str:
        """Not this.

        code: what to review
        """
        return code

    wire = {
        "name": "x",
        "title": "X",
        "description": "D.",
        "icons": [{"src": "https://i"}],
        "_meta": {"example.com/k": 1},
        "arguments": [
            {"name": "code", "description": "what to review", "required": True},
            {"name": "tone", "description": "how to say it", "required": False},
        ],
    }
    shown = result(app, "prompts/list", revision=revision)["prompts"]
    assert shown == [{key: value for key, value in wire.items() if key not in unknown}]


def test_without_options_everything_follows_from_the_function_and_it_comes_back_unchanged() -> None:
    app = Server("t")

    def review(ctx: Context) -> str:
        """Review some code."""
        return ctx.name

    assert app.prompt(review) is review
    assert result(app, "prompts/list")["prompts"] == [{"name": "review", "description": "Review some code."}]
    answer = get(app, "review")
    assert answer == {
        "description": "Review some code.",
        "messages": [{"role": "user", "content": {"type": "text", "text": "review"}}],
    }


def test_a_server_without_prompts_has_no_such_methods() -> None:
    with pytest.raises(Refused) as caught:
        result(Server("t"), "prompts/list")
    assert caught.value.code == -32601


# -- results


def user(content: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": content}


def said(text: str, role: str = "user") -> dict[str, Any]:
    return {"role": role, "content": {"type": "text", "text": text}}


IMAGE = {"type": "image", "data": base64.b64encode(b"\xff").decode(), "mimeType": "image/png"}
RESULTS: list[tuple[str, Any, list[dict[str, Any]]]] = [
    ("text", "a", [said("a")]),
    ("message", Message("assistant", "a"), [said("a", "assistant")]),
    ("texts", ["a", "b"], [said("a"), said("b")]),
    ("tuple", ("a", Message("assistant", "b")), [said("a"), said("b", "assistant")]),
    ("object", {"role": "assistant", "content": "a"}, [said("a", "assistant")]),
    ("whole object", said("a"), [said("a")]),
    ("block", Text("a"), [said("a")]),
    ("image", Image(b"\xff"), [user(IMAGE)]),
    ("image message", Message("assistant", Image(b"\xff")), [{"role": "assistant", "content": IMAGE}]),
    ("ready-made block", [dict(IMAGE, x=1)], [user(dict(IMAGE, x=1))]),
    (
        "embedded",
        EmbeddedResource(Contents("a://b", text="t")),
        [user({"type": "resource", "resource": {"uri": "a://b", "text": "t"}})],
    ),
    ("contents", Contents("a://b", text="t"), [user({"type": "resource", "resource": {"uri": "a://b", "text": "t"}})]),
    ("data", {"a": 1}, [said('{"a":1}')]),
    ("nothing to say", [], []),
]


@pytest.mark.parametrize(("value", "messages"), [row[1:] for row in RESULTS], ids=[row[0] for row in RESULTS])
@pytest.mark.parametrize("revision", ERAS)
@pytest.mark.parametrize("run", ["inline", "thread", "async"])
def test_a_prompt_returns_texts_messages_blocks_or_objects(
    value: Any, messages: list[dict[str, Any]], revision: str, run: Any
) -> None:
    app = Server("t")

    def plain() -> Any:
        return value

    async def coroutine() -> Any:
        await asyncio.sleep(0)
        return value

    app.prompt(name="p", run=None if run == "async" else run)(coroutine if run == "async" else plain)
    answer = get(app, "p", revision=revision)
    assert answer["messages"] == messages
    assert answer.keys() == ({"messages", "resultType", "_meta"} if revision == NEWEST else {"messages"})


@pytest.mark.parametrize("value", [None, ["a", None], object(), {"role": "system", "content": "a"}, {"role": "user"}])
def test_an_invalid_value_of_a_prompt_is_an_internal_error(value: Any) -> None:
    app = Server("t")
    app.prompt(name="p")(lambda: value)
    assert refusal(app, "p", {}).code == -32603


@pytest.mark.parametrize("revision", NAMES)
def test_a_block_that_the_revision_does_not_know_becomes_text(revision: str) -> None:
    app = Server("t")
    app.prompt(name="p")(lambda: [Audio(b"1"), ResourceLink("a://b", "b")])
    kinds = [message["content"]["type"] for message in get(app, "p", revision=revision)["messages"]]
    index = NAMES.index(revision)
    assert kinds == ["audio" if index >= 1 else "text", "resource_link" if index >= 2 else "text"]


# -- arguments


def typed() -> Server:
    app = Server("t")

    @app.prompt
    def typed(
        text: str,
        number: int = 1,
        ratio: float = 0.5,
        yes: bool = False,
        tone: Tone = Tone.WARM,
        size: Literal["s", "m"] = "s",
        items: list[int] = [],  # noqa: B006
        maybe: Optional[int] = None,  # noqa: UP045
        small: Annotated[int, Meta(le=10)] = 1,
    ) -> str:
        return repr((text, number, ratio, yes, tone, size, items, maybe, small))

    return app


@pytest.mark.parametrize("revision", ERAS)
@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ({"text": "5"}, "('5', 1, 0.5, False, <Tone.WARM: 'warm'>, 's', [], None, 1)"),
        (
            {"text": "", "number": "7", "ratio": "1.5", "yes": "true", "tone": "cold", "size": "m"},
            "('', 7, 1.5, True, <Tone.COLD: 'cold'>, 'm', [], None, 1)",
        ),
        (
            {"text": "[1]", "items": "[1, 2]", "maybe": "3"},
            "('[1]', 1, 0.5, False, <Tone.WARM: 'warm'>, 's', [1, 2], 3, 1)",
        ),
    ],
)
def test_arguments_arrive_as_text_and_reach_the_function_typed(
    arguments: dict[str, str], shown: str, revision: str
) -> None:
    assert get(typed(), "typed", arguments, revision)["messages"] == [said(shown)]


@pytest.mark.parametrize("revision", ERAS)
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (None, ["text: missing"]),
        ({}, ["text: missing"]),
        ({"text": "a", "nmber": "1"}, ["nmber: unknown argument"]),
        ({"number": "x", "yes": "maybe"}, ["number: ", "yes: ", "text: missing"]),
        ({"text": "a", "tone": "loud"}, ["tone: "]),
        ({"text": "a", "items": "[x"}, ["items: "]),
        ({"text": "a", "items": '["x"]'}, ["items: "]),
        ({"text": "a", "small": "11"}, ["small: "]),
        ({"text": 5}, ["an object of strings"]),
        ({"text": None}, ["an object of strings"]),
        ([], ["an object of strings"]),
        ("a", ["an object of strings"]),
    ],
)
def test_arguments_that_do_not_fit_are_invalid_parameters(arguments: Any, words: list[str], revision: str) -> None:
    problem = refusal(typed(), "typed", arguments, revision)
    assert problem.code == -32602
    assert all(word in problem.message for word in words)


def test_null_arguments_are_no_arguments() -> None:
    app = Server("t")
    app.prompt(name="p")(lambda: "x")
    [answer] = talk(app, ("prompts/get", {"name": "p", "arguments": None}))
    assert answer["result"]["messages"] == [said("x")]


@pytest.mark.parametrize("revision", ERAS)
def test_an_unknown_prompt_is_an_invalid_parameter_with_the_nearest(revision: str) -> None:
    problem = refusal(typed(), "type", {}, revision)
    assert problem.code == -32602 and "did you mean 'typed'?" in problem.message


def test_two_prompts_of_one_name_need_replace() -> None:
    from longshore import RegistrationError

    app = Server("t")
    app.prompt(name="p")(lambda: "old")
    with pytest.raises(RegistrationError, match="there is a prompt 'p' already"):
        app.prompt(name="p")(lambda: "new")
    app.prompt(name="p", replace=True)(lambda: "new")
    assert get(app, "p")["messages"] == [said("new")]
