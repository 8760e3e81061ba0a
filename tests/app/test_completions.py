"""Completion of prompt arguments and of the holes in URI templates."""

from __future__ import annotations

import asyncio
import enum
import functools
from typing import Any, Literal, Optional

import pytest

from longshore import Server
from longshore.protocol.revisions import NAMES
from talk import ERAS, NEWEST, NEWEST_LEGACY, Client, Refused, converse, result


class Tone(enum.Enum):
    WARM = "warm"
    WILD = "wild"
    COLD = "cold"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 12


def server() -> Server:
    app = Server("t")

    @app.prompt
    def write(
        city: str,
        tone: Tone = Tone.WARM,
        size: Optional[Literal["small", "Smart", "big"]] = None,  # noqa: UP045
        level: Level | None = None,
        free: str = "",
    ) -> str:
        return city

    @app.resource("weather://{city}/{tone}")
    def weather(city: str, tone: Tone) -> str:
        return city

    return app


PROMPT = {"type": "ref/prompt", "name": "write"}
TEMPLATE = {"type": "ref/resource", "uri": "weather://{city}/{tone}"}


def complete(
    app: Server, ref: dict[str, str], name: str, value: str, revision: str = NEWEST_LEGACY, **context: Any
) -> dict[str, Any]:
    params = {"ref": ref, "argument": {"name": name, "value": value}} | ({"context": context} if context else {})
    found: dict[str, Any] = result(app, "completion/complete", params, revision)["completion"]
    return found


@pytest.mark.parametrize("revision", ERAS)
@pytest.mark.parametrize(
    ("ref", "name", "value", "values"),
    [
        (PROMPT, "tone", "", ["warm", "wild", "cold"]),
        (PROMPT, "tone", "w", ["warm", "wild"]),
        (PROMPT, "tone", "W", ["warm", "wild"]),
        (PROMPT, "tone", "x", []),
        (PROMPT, "size", "sm", ["small", "Smart"]),
        (PROMPT, "level", "1", ["1", "12"]),
        (PROMPT, "free", "a", []),
        (TEMPLATE, "tone", "c", ["cold"]),
        (TEMPLATE, "city", "", []),
    ],
)
def test_a_type_completes_itself(ref: dict[str, str], name: str, value: str, values: list[str], revision: str) -> None:
    assert complete(server(), ref, name, value, revision) == {
        "values": values,
        "total": len(values),
        "hasMore": False,
    }


def one(text: str) -> list[str]:
    return [text + "1", text + "2"]


def two(text: str, settled: dict[str, str]) -> list[str]:
    return [text, settled.get("tone", "none")]


async def one_async(text: str) -> tuple[str, ...]:
    await asyncio.sleep(0)
    return (text + "1", text + "2")


async def two_async(text: str, settled: dict[str, str]) -> list[str]:
    return two(text, settled)


class Completer:
    def one(self, text: str) -> list[str]:
        return one(text)

    async def two(self, text: str, settled: dict[str, str]) -> list[str]:
        return two(text, settled)


@pytest.mark.parametrize("revision", ERAS)
@pytest.mark.parametrize("ref", [PROMPT, TEMPLATE])
@pytest.mark.parametrize(
    ("fn", "values"),
    [
        (one, ["os1", "os2"]),
        (one_async, ["os1", "os2"]),
        (two, ["os", "warm"]),
        (two_async, ["os", "warm"]),
        (Completer().one, ["os1", "os2"]),
        (Completer().two, ["os", "warm"]),
        (functools.partial(two_async), ["os", "warm"]),
        (lambda text: {text: 1}, ["os"]),
        (lambda text: (n for n in (1, 2)), ["1", "2"]),
        (lambda text, settled=None: [text, str(settled)], ["os", "{'tone': 'warm'}"]),
    ],
)
def test_a_completion_gets_the_text_and_the_other_arguments(
    fn: Any, values: list[str], ref: dict[str, str], revision: str
) -> None:
    app = server()
    assert app.completion(ref.get("name") or ref["uri"], "city")(fn) is fn
    found = complete(app, ref, "city", "os", revision, arguments={"tone": "warm"})
    assert found == {"values": values, "total": len(values), "hasMore": False}


@pytest.mark.parametrize(("count", "more"), [(0, False), (99, False), (100, False), (101, True), (5000, True)])
def test_at_most_a_hundred_values_are_sent_with_their_total(count: int, more: bool) -> None:
    app = server()
    app.completion("write", "city")(lambda text: [str(n) for n in range(count)])
    found = complete(app, PROMPT, "city", "")
    assert len(found["values"]) == min(count, 100)
    assert (found["total"], found["hasMore"]) == (count, more)


def test_a_function_wins_over_the_type() -> None:
    app = server()
    app.completion("write", "tone")(lambda text: ["mine"])
    assert complete(app, PROMPT, "tone", "w")["values"] == ["mine"]
    assert complete(app, TEMPLATE, "tone", "w")["values"] == ["warm", "wild"]


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"ref": {"type": "ref/prompt", "name": "wirte"}, "argument": {"name": "city", "value": ""}}, "'write'"),
        ({"ref": {"type": "ref/resource", "uri": "x://y"}, "argument": {"name": "city", "value": ""}}, "x://y"),
        ({"ref": {"type": "ref/tool", "name": "write"}, "argument": {"name": "city", "value": ""}}, "ref"),
        ({"ref": PROMPT, "argument": {"name": "cty", "value": ""}}, "did you mean 'city'?"),
        ({"ref": PROMPT, "argument": {"name": "city"}}, "value"),
        ({"ref": PROMPT, "argument": {"name": "city", "value": 5}}, "value"),
        ({"ref": PROMPT}, "argument"),
        ({"argument": {"name": "city", "value": ""}}, "ref"),
        ({"ref": PROMPT, "argument": {"name": "city", "value": ""}, "context": {"arguments": {"a": 1}}}, "context"),
    ],
)
def test_an_unknown_completion_is_an_invalid_parameter(params: dict[str, Any], words: str) -> None:
    with pytest.raises(Refused) as caught:
        result(server(), "completion/complete", params)
    assert caught.value.code == -32602 and words in caught.value.message


@pytest.mark.parametrize("value", ["text", None, 5])
def test_a_function_that_returns_no_list_is_an_internal_error(value: Any) -> None:
    app = server()
    app.completion("write", "city")(lambda text: value)
    with pytest.raises(Refused) as caught:
        complete(app, PROMPT, "city", "")
    assert caught.value.code == -32603


@pytest.mark.parametrize(
    ("declare", "has"),
    [
        (lambda app: None, False),
        (lambda app: app.resource("a://b")(lambda: "x"), False),
        (lambda app: app.resource("a://{x}")(lambda x: x), True),
        (lambda app: app.prompt(name="p")(lambda: "x"), True),
    ],
)
@pytest.mark.parametrize("revision", NAMES[1:])
def test_completion_is_declared_where_there_is_something_to_complete(declare: Any, has: bool, revision: str) -> None:
    app = Server("t")
    declare(app)

    async def script(client: Client) -> Any:
        return (await client.open())["capabilities"]

    assert ("completions" in converse(app, script, revision)) is has
    if not has:
        with pytest.raises(Refused) as caught:
            complete(app, PROMPT, "city", "", NEWEST)
        assert caught.value.code == -32601
