"""Aliases that have parameters of their own, and a migration that makes today's arguments of them."""

from __future__ import annotations

import asyncio
import threading
from typing import Annotated, Any

import msgspec
import pytest

from longshore import (
    CallResult,
    Context,
    Limits,
    RegistrationError,
    Server,
    ServerError,
    SyncClient,
    Text,
    Tool,
    ToolError,
)
from longshore.telemetry.records import ArgumentsMended, RequestCompleted
from longshore.toolsets.discovery import Discovery
from talk import WAIT_SECONDS, Client, call, converse, text

NOW = "weather_v1 is now forecast"


def from_v1(city: str, hours: Annotated[int, msgspec.Meta(ge=1)] = 24) -> dict[str, Any]:
    """Forecast the weather by the hour.

    city: a city with its country, as in Oslo/NO
    hours: how many hours ahead
    """
    if city == "Atlantis":
        raise ToolError("Atlantis is no city any more")
    if city == "Ys":
        raise RuntimeError("a secret")
    if city == "Vineta":
        raise SystemExit("a secret")
    return {"city": city.partition("/")[0], "days": hours // 24}


def typed(**options: Any) -> Server:
    app = Server("weather", limits=options.pop("limits", None))

    @app.tool(aliases={"weather_v1": from_v1, "weather": None}, **options)
    def forecast(city: str, days: Annotated[int, msgspec.Meta(le=7)] = 3) -> str:
        """Forecast the weather."""
        return f"{city} {days}"

    return app


SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer", "maximum": 7}},
    "required": ["city"],
    "additionalProperties": False,
}


def raw() -> Server:
    app = Server("weather")

    def answer(arguments: dict[str, Any], _: Context) -> CallResult:
        return CallResult([Text(f"{arguments['city']} {arguments.get('days', 3)}")])

    app.add_tool(Tool(name="forecast", input_schema=SCHEMA, aliases={"weather_v1": from_v1, "weather": None}), answer)
    return app


SERVERS = {"on a thread": typed, "inline": lambda: typed(run="inline"), "raw": raw}


@pytest.mark.parametrize("era", ["modern", "legacy"])
@pytest.mark.parametrize("make", SERVERS)
def test_an_alias_takes_its_own_parameters_and_the_tool_gets_what_its_migration_returns(make: str, era: str) -> None:
    with SyncClient(SERVERS[make](), era=era) as client:
        assert [each.name for each in client.list_tools()] == ["forecast"]
        result = client.call_tool("weather_v1", {"city": "Oslo/NO", "hours": 48})
        assert (result.text, result.meta["longshore/notes"]) == ("Oslo 2", [NOW])
        # These are valid for the tool too, which would take the city as it is.
        assert client.call_tool("weather_v1", {"city": "Oslo/NO"}).text == "Oslo 1"
        assert client.call_tool("forecast", {"city": "Oslo/NO"}).text == "Oslo/NO 3"
        assert client.call_tool("weather", {"city": "Oslo/NO", "days": 2}).text == "Oslo/NO 2"


@pytest.mark.parametrize("make", SERVERS)
def test_errors_are_about_the_parameters_of_the_alias(make: str) -> None:
    with SyncClient(SERVERS[make]()) as client:
        result = client.call_tool("weather_v1", {"hours": 0, "days": 2}, check=False)
    assert result.is_error
    assert result.text == (
        "weather_v1: invalid arguments\n"
        "hours: must be >= 1; got 0\n"
        "city: missing (a string, required)\n"
        "days: unknown argument (takes: city, hours)"
    )
    assert result.meta["longshore/notes"] == [NOW]


@pytest.mark.parametrize("make", SERVERS)
def test_a_migration_that_returns_invalid_arguments_gets_the_error_of_the_tool(make: str) -> None:
    with SyncClient(SERVERS[make]()) as client:
        result = client.call_tool("weather_v1", {"city": "Oslo", "hours": 240}, check=False)
    assert result.text == "forecast: invalid arguments\ndays: must be <= 7; got 10"


def test_arguments_of_an_alias_are_repaired_as_those_of_a_tool() -> None:
    def from_v1(cities: list[str]) -> dict[str, Any]:
        return {"count": len(cities)}

    def from_v0(count: int = 5) -> dict[str, Any]:
        return {"count": count}

    app = Server("t")

    @app.tool(aliases={"old": from_v1, "older": from_v0})
    def forecast(count: int) -> int:
        return count

    with SyncClient(app) as client:
        result = client.call_tool("old", {"cities": '["Oslo", "Bergen"]'})
        assert result.text == "2"
        assert result.meta["longshore/notes"][0] == "old is now forecast"
        assert "cities" in result.meta["longshore/notes"][1]
    assert text(call(app, "older")) == "5"


def test_null_in_the_place_of_the_arguments_of_an_alias_means_none() -> None:
    app = Server("t")

    @app.tool(aliases={"old": lambda: {"count": 5}})
    def forecast(count: int) -> int:
        return count

    async def script(client: Client) -> str:
        return text(await client.request("tools/call", {"name": "old", "arguments": None}))

    assert converse(app, script) == "5"


@pytest.mark.parametrize("make", SERVERS)
def test_an_exception_of_the_migration_is_masked_as_the_tools_own(make: str) -> None:
    with SyncClient(SERVERS[make]()) as client:
        result = client.call_tool("weather_v1", {"city": "Atlantis"}, check=False)
        assert (result.text, result.meta["longshore/notes"]) == ("Atlantis is no city any more", [NOW])
        for city in ("Ys", "Vineta"):
            masked = client.call_tool("weather_v1", {"city": city}, check=False).text
            assert "forecast failed unexpectedly" in masked
            assert "secret" not in masked


def test_a_call_that_had_to_wait_gets_the_translated_arguments() -> None:
    entered, release = threading.Event(), threading.Event()
    app = typed(limits=Limits(running=1))

    @app.tool
    def block() -> str:
        entered.set()
        assert release.wait(WAIT_SECONDS)
        return "done"

    async def script(client: Client) -> None:
        blocking = client.send("tools/call", {"name": "block", "arguments": {}})
        assert await asyncio.to_thread(entered.wait, WAIT_SECONDS)
        city = "x" * 5000  # longer than what is decoded again after a wait
        ids = [
            client.send("tools/call", {"name": name, "arguments": {"city": city + "/NO"}})
            for name in ("weather_v1", "forecast")
        ]
        release.set()
        assert [text((await client.response(id))["result"]) for id in ids] == [f"{city} 1", f"{city}/NO 3"]
        await client.response(blocking)

    converse(app, script)


def test_tool_help_shows_the_parameters_of_the_alias() -> None:
    app = typed(effects="read", help="Of the tool.", examples=[{"city": "Oslo"}], errors={"no city": "take another"})
    app.add_toolset(Discovery(app))
    assert text(call(app, "tool_help", {"name": "weather_v1"})) == (
        "weather_v1: Forecast the weather by the hour.\n"
        "It is now forecast.\n"
        "Takes:\n"
        "  city (string, required): a city with its country, as in Oslo/NO\n"
        "  hours (integer, default 24): how many hours ahead\n"
        "Effects: read\n"
        "Errors:\n"
        "  no city: take another"
    )
    for name in ("weather", "forecast"):
        shown = text(call(app, "tool_help", {"name": name}))
        assert shown.startswith("forecast: Forecast the weather.")
        assert "Earlier names: weather_v1, weather" in shown


def test_all_names_share_one_count_and_refusals_are_recorded() -> None:
    app, heard = typed(), list[Any]()
    app.listen(heard.append)
    with SyncClient(app) as client:
        client.call_tool("weather_v1", {"city": "Oslo"})
        client.call_tool("weather_v1", {"town": "Oslo"}, check=False)
    assert app.catalog.tools["forecast"].calls == 1
    assert app.catalog.tools["forecast"].failures == 1
    mended = [each.notes for each in heard if isinstance(each, ArgumentsMended)]
    assert mended == [(NOW,), (NOW,)]
    outcomes = [each.outcome for each in heard if isinstance(each, RequestCompleted) and each.method == "tools/call"]
    assert outcomes == ["ok", "refused"]


@pytest.mark.parametrize("warm", [False, True], ids=["before it has listed its tools", "later"])
def test_an_alias_keeps_its_parameters_through_a_mount_of_a_server_in_this_process(warm: bool) -> None:
    gate = Server("gate")
    gate.mount(typed(), prefix="in")
    with SyncClient(gate) as client:
        if warm:
            assert [each.name for each in client.list_tools()] == ["in_forecast"]
        result = client.call_tool("in_weather_v1", {"city": "Oslo/NO", "hours": 48})
        assert (result.text, result.meta["longshore/notes"]) == ("Oslo 2", ["in_weather_v1 is now in_forecast"])


def test_wrong_arguments_of_an_alias_are_listed_before_a_mounted_server_has_listed_its_tools() -> None:
    gate = Server("gate")
    gate.mount(typed(), prefix="in")
    with SyncClient(gate) as client:
        result = client.call_tool("in_weather_v1", {"city": 3}, check=False)
    assert result.text.startswith("in_weather_v1: invalid arguments\ncity: ")


async def _async(city: str) -> dict[str, Any]:
    return {"city": city}


@pytest.mark.parametrize(("migration", "what"), [(3, "aliases={'old': 3} is no function"), (_async, "can't be async")])
def test_an_alias_without_a_usable_migration_is_refused(migration: Any, what: str) -> None:
    with pytest.raises(RegistrationError, match=what):
        Server("t").tool(name="x", aliases={"old": migration})(lambda: "")


@pytest.mark.parametrize("name", ["x", "get weather", "taken"])
def test_names_of_a_mapping_are_checked_as_those_of_a_list(name: str) -> None:
    app = Server("t")
    app.tool(name="taken")(lambda: "")
    with pytest.raises(RegistrationError):
        app.tool(name="x", aliases={name: from_v1})(lambda: "")


def test_an_alias_of_a_tool_that_is_off_is_off() -> None:
    app = typed()
    app.disable("forecast")
    with SyncClient(app) as client, pytest.raises(ServerError, match="it is now 'forecast', which is off"):
        client.call_tool("weather_v1", {"city": "Oslo"})
