"""What may be asked for: the form that each type becomes, and the value that comes back from it."""

import datetime
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Literal

import msgspec
import pydantic
import pytest

from longshore import Ask, Server

from .wire import ERAS, MODERN, Client, accept, failed, run, text


class Color(Enum):
    RED = "red"
    BLUE = "blue"


class Level(Enum):
    LOW = 1
    HIGH = 2


@dataclass
class Parcel:
    weight: int
    color: Color
    note: str | None = None
    fragile: bool = True


class Person(pydantic.BaseModel):
    name: str = pydantic.Field(min_length=2, description="full name")
    age: int | None = None


class Point(msgspec.Struct):
    x: float
    y: float = 0.0


class Label(msgspec.Struct):
    text: Annotated[str, msgspec.Meta(pattern="^(a+)+$")]
    copies: Literal[1, 2] = 1


CASES: dict[str, tuple[Any, dict[str, Any], Any, Any]] = {
    "bool": (bool, {"type": "boolean"}, True, True),
    "str": (str, {"type": "string"}, "hi", "hi"),
    "int": (int, {"type": "integer"}, 3, 3),
    "a whole float as int": (int, {"type": "integer"}, 3.0, 3),
    "float": (float, {"type": "number"}, 1.5, 1.5),
    "Literal": (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}, "b", "b"),
    "Literal of numbers": (Literal[1, 2], {"type": "string", "enum": ["1", "2"]}, "2", 2),
    "enum": (Color, {"type": "string", "enum": ["red", "blue"]}, "blue", Color.BLUE),
    "enum of numbers": (Level, {"type": "string", "enum": ["1", "2"]}, "2", Level.HIGH),
    "date": (datetime.date, {"type": "string", "format": "date"}, "2026-07-28", datetime.date(2026, 7, 28)),
    "list of choices": (
        list[Literal["a", "b"]],
        {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
        ["b"],
        ["b"],
    ),
    "constrained": (Annotated[int, msgspec.Meta(ge=1, le=9)], {"type": "integer", "minimum": 1, "maximum": 9}, 9, 9),
}


def asking(kind: Any, seen: list[Any]) -> Server:
    app = Server("forms")

    async def f(it: Any) -> str:
        seen.append(it)
        return "ok"

    f.__annotations__["it"] = Annotated[kind, Ask("Which?")]
    app.tool(f)
    return app


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("case", CASES)
def test_a_scalar_is_one_field_of_a_form_and_comes_back_as_its_type(era: str, case: str) -> None:
    kind, field, sent, value = CASES[case]
    seen: list[Any] = []

    async def main() -> None:
        client = Client(asking(kind, seen), era)
        assert text(await client.tool("f", {}, lambda *_: accept(it=sent))) == "ok"
        schema = client.asked[0]["params"]["requestedSchema"]
        assert schema == {"type": "object", "properties": {"it": field}, "required": ["it"]}

    run(main())
    assert seen == [value]
    assert type(seen[0]) is type(value)


@pytest.mark.parametrize("era", ERAS)
def test_an_answer_keeps_a_pattern_that_re_would_never_end_on(era: str) -> None:
    seen: list[Any] = []

    async def main() -> None:
        client = Client(asking(Label, seen), era)
        call = {"name": "f", "arguments": {}}
        refused = await client.converse("tools/call", call, lambda *_: accept(text="a" * 40 + "!"))
        assert "text: must match the pattern '^(a+)+$'" in refused["error"]["message"]
        assert text(await client.tool("f", {}, lambda *_: accept(text="aa", copies="2"))) == "ok"

    run(main())
    assert seen == [Label("aa", 2)]


@pytest.mark.parametrize("era", ERAS)
def test_an_optional_is_a_field_that_may_be_left_out(era: str) -> None:
    seen: list[Any] = []

    async def main() -> None:
        client = Client(asking(str | None, seen), era)
        await client.tool("f", {}, lambda *_: accept())
        await client.tool("f", {}, lambda *_: accept(it="x"))
        schema = client.asked[0]["params"]["requestedSchema"]
        assert schema == {"type": "object", "properties": {"it": {"type": "string"}}}

    run(main())
    assert seen == [None, "x"]


@pytest.mark.parametrize("era", ERAS)
def test_an_optional_record_is_the_records_form(era: str) -> None:
    seen: list[Any] = []

    async def main() -> None:
        client = Client(asking(Point | None, seen), era)
        await client.tool("f", {}, lambda *_: accept(x=1))
        form = client.asked[0]["params"]["requestedSchema"]
        assert form["required"] == ["x"]
        assert form["properties"]["y"] == {"type": "number", "default": 0.0}

    run(main())
    assert seen == [Point(1.0)]


@pytest.mark.parametrize("era", ERAS)
def test_a_dataclass_is_a_flat_form(era: str) -> None:
    seen: list[Any] = []

    async def main() -> None:
        client = Client(asking(Parcel, seen), era)
        await client.tool("f", {}, lambda *_: accept(weight=2, color="red"))
        assert client.asked[0]["params"]["requestedSchema"] == {
            "type": "object",
            "properties": {
                "weight": {"type": "integer"},
                "color": {"type": "string", "enum": ["red", "blue"]},
                "note": {"type": "string"},
                "fragile": {"type": "boolean", "default": True},
            },
            "required": ["weight", "color"],
        }

    run(main())
    assert seen == [Parcel(2, Color.RED)]


@pytest.mark.parametrize("era", ERAS)
def test_a_pydantic_model_is_a_flat_form_and_validates_the_answer(era: str) -> None:
    seen: list[Any] = []

    async def main() -> None:
        client = Client(asking(Person, seen), era)
        await client.tool("f", {}, lambda *_: accept(name="Ada", age=36))
        form = client.asked[0]["params"]["requestedSchema"]
        assert form["properties"]["name"] == {"type": "string", "description": "full name", "minLength": 2}
        assert form["required"] == ["name"]
        bad = {"name": "f", "arguments": {}}
        reply = await client.converse("tools/call", bad, lambda *_: accept(name="A"))
        assert reply["error"]["code"] == -32602
        assert "malformed" in reply["error"]["message"]

    run(main())
    assert seen == [Person(name="Ada", age=36)]


@pytest.mark.parametrize("era", ERAS)
def test_a_struct_is_a_flat_form(era: str) -> None:
    seen: list[Any] = []

    async def main() -> None:
        await Client(asking(Point, seen), era).tool("f", {}, lambda *_: accept(x=1))

    run(main())
    assert seen == [Point(1.0)]


def test_a_choice_shared_by_many_fields_is_still_written_out_in_each() -> None:
    fields = [(f"c{n}", Color) for n in range(6)]
    kind = msgspec.defstruct("Palette", fields)
    seen: list[Any] = []

    async def main() -> None:
        client = Client(asking(kind, seen), MODERN)
        await client.tool("f", {}, lambda *_: accept(**{name: "red" for name, _ in fields}))
        properties = client.asked[0]["params"]["requestedSchema"]["properties"]
        assert all(field == {"type": "string", "enum": ["red", "blue"]} for field in properties.values())

    run(main())


def test_2025_06_18_gets_defaults_for_booleans_only() -> None:
    class Kind(msgspec.Struct):
        name: str = "x"
        ok: bool = True

    async def main() -> None:
        client = Client(asking(Kind, []), "2025-06-18")
        await client.tool("f", {}, lambda *_: accept())
        properties = client.asked[0]["params"]["requestedSchema"]["properties"]
        assert properties == {"name": {"type": "string"}, "ok": {"type": "boolean", "default": True}}

    run(main())


def test_2025_06_18_is_not_asked_for_several_choices_at_once() -> None:
    async def main() -> None:
        reply = await Client(asking(list[Literal["a", "b"]], []), "2025-06-18").call_tool("f")
        assert "several choices" in failed(reply["result"])

    run(main())


@pytest.mark.parametrize("era", ERAS)
def test_a_question_with_a_type_that_no_form_supports_is_refused_with_the_fix(era: str) -> None:
    from longshore import Context

    app = Server("forms")

    @app.tool(replay=True)
    async def f(ctx: Context) -> str:
        await ctx.elicit("?", dict[str, list[int]], key="it")
        return ""

    async def main() -> None:
        reply = await Client(app, era).call_tool("f")
        assert "flat record" in failed(reply["result"])

    run(main())
