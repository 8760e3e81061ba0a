"""Arguments of earlier versions: renamed parameters, and earlier forms of a tool's input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counts import count
from longshore import Alias, Ask, CallResult, Context, RegistrationError, Server, SyncClient, Text, Tool, ToolError
from longshore.client.models import Result

TRANSLATED = "the arguments are those of an earlier version; the list of tools has today's"


def ask(app: Server, arguments: Any, name: str = "forecast", **options: Any) -> Result:
    with SyncClient(app, **options) as client:
        return client.call_tool(name, arguments, check=False)


def notes(result: Result) -> list[str]:
    found: list[str] = result.meta.get("longshore/notes", [])
    return found


# -- renamed parameters


def renaming(**options: Any) -> Server:
    app = Server("weather")

    @app.tool(**options)
    def forecast(
        city: Annotated[str, Alias("town", "place"), "Where"],
        days: Annotated[int, Alias("count"), msgspec.Meta(ge=1)] = 3,
    ) -> str:
        return f"{city} {days}"

    return app


@pytest.mark.parametrize("era", ["modern", "legacy"])
@pytest.mark.parametrize("options", [{}, {"run": "inline"}])
def test_an_old_name_is_taken_for_the_new_one_and_noted(options: dict[str, Any], era: str) -> None:
    result = ask(renaming(**options), {"town": "Oslo", "count": 2}, era=era)
    assert result.text == "Oslo 2"
    assert notes(result) == ["town is now city", "count is now days"]
    assert notes(ask(renaming(**options), {"city": "Oslo", "days": 2}, era=era)) == []


def test_no_list_shows_an_old_name() -> None:
    with SyncClient(renaming()) as client:
        (tool,) = client.list_tools()
    assert list(tool.input_schema["properties"]) == ["city", "days"]
    assert "town" not in str(tool.record)


BOTH = "town: this is now city, which is given too; send city only"
WRONG = {
    "both": ({"town": "Oslo", "city": "Bergen"}, [BOTH]),
    "both, and more": ({"town": "Oslo", "city": 3, "count": 0}, [BOTH, "city: ", "days: "]),
    "two old names": ({"town": "Oslo", "place": "Bergen"}, ["place: this is now city, which is given too"]),
    "a wrong value under an old name": ({"town": "Oslo", "count": "many"}, ["days: "]),
    "and one that nobody knows": ({"town": "Oslo", "cit": "x"}, ["cit: unknown argument; did you mean city?"]),
    "no object": ([1], ["arguments: expected an object"]),
}


@pytest.mark.parametrize("case", WRONG)
def test_faults_are_listed_under_the_current_names(case: str) -> None:
    arguments, lines = WRONG[case]
    entry = renaming().catalog.tools["forecast"]
    reading = entry.explain(msgspec.json.encode(arguments), ValueError())
    assert reading.arguments is None
    assert len(reading.faults) == len(lines)
    for said, expected in zip(reading.faults, lines, strict=True):
        assert said.startswith(expected)


def test_the_fields_default_keeps_the_mark() -> None:
    pydantic = pytest.importorskip("pydantic")
    app = Server("x")

    @app.tool
    def forecast(city: Annotated[str, Alias("town")] = pydantic.Field("Oslo", min_length=2)) -> str:
        return city

    assert ask(app, {"town": "Bergen"}).text == "Bergen"


class Inner(msgspec.Struct):
    city: Annotated[str, Alias("town")]


async def _never(a: int) -> dict[str, Any]:
    return {"city": str(a)}


def _starred(*names: str) -> dict[str, Any]:
    return {"city": names[0]}


def _asking(a: Annotated[bool, Ask("Really?")]) -> dict[str, Any]:
    return {"city": str(a)}


def _contextual(context: Context) -> dict[str, Any]:
    return {"city": str(context)}


def a_name_that_is_there(city: Annotated[str, Alias("days")], days: int) -> str: ...
def a_name_that_another_had(city: Annotated[str, Alias("x")], days: Annotated[int, Alias("x")]) -> str: ...
def its_own_name(city: Annotated[str, Alias("city")]) -> str: ...
def one_twice(city: Annotated[str, Alias("x", "x")]) -> str: ...
def no_text(city: Annotated[str, Alias(3)]) -> str: ...  # type: ignore[arg-type]
def asked_of_a_person(city: Annotated[bool, Ask("Really?"), Alias("x")]) -> str: ...
def inside(where: Inner) -> str: ...
def inside_a_list(where: list[Annotated[str, Alias("town")]]) -> str: ...


@pytest.mark.parametrize(
    "fn",
    [
        a_name_that_is_there,
        a_name_that_another_had,
        its_own_name,
        one_twice,
        no_text,
        asked_of_a_person,
        inside,
        inside_a_list,
    ],
)
def test_marks_that_mean_nothing_are_refused(fn: Any) -> None:
    with pytest.raises(RegistrationError, match=r"Alias|was"):
        Server("x").tool(fn)


def test_only_tools_have_renamed_parameters() -> None:
    def packing(city: Annotated[str, Alias("town")]) -> str:
        return city

    for declare in (Server("x").prompt, Server("x").resource("bag://{city}")):
        with pytest.raises(RegistrationError, match="for the parameters of tools"):
            declare(packing)


# -- earlier forms


class Place(msgspec.Struct):
    city: str
    country: str = "NO"


@dataclass
class Today:
    where: Place
    days: int


def from_v2(city: str, days: int = 3) -> dict[str, Any]:
    return {"where": {"city": city}, "days": days}


def from_v1(q: Annotated[str, msgspec.Meta(min_length=2)]) -> Today:
    city, _, country = q.partition(",")
    if city == "Atlantis":
        raise ToolError("Atlantis is no city any more")
    if city == "Ys":
        raise RuntimeError("a secret")
    if city == "Vineta":
        raise SystemExit("a secret")
    return Today(Place(city, country), 3)


def typed(**options: Any) -> Server:
    app = Server("weather")

    @app.tool(migrations=[from_v2, from_v1], **options)
    def forecast(where: Place, days: Annotated[int, msgspec.Meta(le=7)]) -> str:
        return f"{where.city} {where.country} {days}"

    return app


SCHEMA = {
    "type": "object",
    "properties": {
        "where": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "country": {"type": "string", "default": "NO"}},
            "required": ["city"],
        },
        "days": {"type": "integer", "maximum": 7},
    },
    "required": ["where", "days"],
    "additionalProperties": False,
}


def raw() -> Server:
    app = Server("weather")

    def answer(arguments: dict[str, Any], _: Any) -> CallResult:
        where = arguments["where"]
        return CallResult([Text(f"{where['city']} {where.get('country', 'NO')} {arguments['days']}")])

    app.add_tool(Tool(name="forecast", input_schema=SCHEMA, migrations=[from_v2, from_v1]), answer)
    return app


SERVERS = {"typed": typed, "inline": lambda: typed(run="inline"), "raw": raw}


@pytest.mark.parametrize("make", SERVERS)
def test_earlier_arguments_are_translated_and_noted(make: str) -> None:
    app = SERVERS[make]()
    for arguments, text in (({"city": "Oslo"}, "Oslo NO 3"), ({"q": "Bonn,DE"}, "Bonn DE 3")):
        result = ask(app, arguments)
        assert (result.text, notes(result), result.is_error) == (text, [TRANSLATED], False)
    today = ask(app, {"where": {"city": "Rome", "country": "IT"}, "days": 1})
    assert (today.text, notes(today)) == ("Rome IT 1", [])


@pytest.mark.parametrize("make", SERVERS)
@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"where": {"city": "Oslo"}},
        {"q": "x"},
        {"city": "Oslo", "q": "Oslo"},
        {"city": "Oslo", "days": 30},
        {"days": 30, "where": 3},
    ],
)
def test_where_nothing_fits_the_error_is_about_todays_input(make: str, arguments: Any) -> None:
    """Also where a migration fits and what it makes does not."""
    result = ask(SERVERS[make](), arguments)
    assert result.is_error
    assert result.text.startswith("forecast: invalid arguments")
    assert "where" in result.text or "days" in result.text
    assert notes(result) == []


@pytest.mark.parametrize("make", SERVERS)
def test_an_exception_of_a_migration_is_masked_as_the_tools_own(make: str) -> None:
    assert ask(SERVERS[make](), {"q": "Atlantis"}).text == "Atlantis is no city any more"
    for city in ("Ys", "Vineta"):  # the second one is gone by an exit, which would end the server
        text = ask(SERVERS[make](), {"q": city}).text
        assert "forecast failed unexpectedly" in text
        assert "secret" not in text


def test_each_migration_is_tried_once_and_in_order() -> None:
    tried: list[str] = []

    def newer(city: str) -> dict[str, Any]:
        tried.append("newer")
        return {"days": city}

    def older(city: str) -> Any:
        tried.append("older")
        return [city]

    app = Server("x")

    @app.tool(migrations=(newer, older))
    def forecast(days: int) -> int:
        return days

    assert "days: missing" in ask(app, {"city": "Oslo"}).text
    assert tried == ["newer", "older"]
    assert ask(app, {"days": 2}).text == "2"
    assert tried == ["newer", "older"]


def test_a_parameters_old_name_goes_before_earlier_forms() -> None:
    app = Server("x")

    @app.tool(migrations=[from_v2])
    def forecast(where: Annotated[Place, Alias("place")], days: int = 1) -> str:
        return f"{where.city} {days}"

    result = ask(app, {"place": {"city": "Oslo"}})
    assert (result.text, notes(result)) == ("Oslo 1", ["place is now where"])
    assert ask(app, {"city": "Oslo"}).text == "Oslo 3"


@pytest.mark.parametrize("migration", [_never, _starred, _asking, _contextual, 3])
@pytest.mark.parametrize("make", [lambda m: Server("x").tool(migrations=[m])(from_v2), lambda m: _add(m)])
def test_an_invalid_migration_is_refused(make: Any, migration: Any) -> None:
    with pytest.raises(RegistrationError):
        make(migration)


def _add(migration: Any) -> None:
    tool = Tool(name="x", input_schema={"type": "object"}, migrations=[migration])
    Server("x").add_tool(tool, lambda arguments, context: CallResult([]))


@pytest.mark.parametrize("option", ["migrations", "aliases"])
def test_a_single_value_in_the_place_of_a_list_is_refused(option: str) -> None:
    with pytest.raises(RegistrationError, match=rf"{option}=(.|\n)*{option}=\["):
        Server("x").tool(**{option: from_v2})(from_v2)


def test_an_async_migration_is_refused() -> None:
    with pytest.raises(RegistrationError, match=r"a migration can't be async(.|\n)*make it a def"):
        _add(_never)


json = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 9) | st.sampled_from(["Oslo", "x", "", "Ys"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["where", "days", "city", "q", "country"]), inner, max_size=3)
    ),
    max_leaves=4,
)


@settings(max_examples=count(60))
@given(json)
def test_a_migration_must_return_valid_arguments(value: Any) -> None:
    for make in (typed, raw):
        entry = make().catalog.tools["forecast"]
        try:
            reading = entry.explain(msgspec.json.encode(value), ValueError())
        except RuntimeError:
            continue  # of the migration, for Ys
        if not reading.faults:
            kept = entry.decode(msgspec.json.encode(reading.arguments))
            assert kept == reading.arguments
