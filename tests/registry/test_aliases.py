"""Renamed tools: the old name can be called, and is in no list."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import pytest

from longshore import Alias, CallResult, RegistrationError, Server, ServerError, SyncClient, Text, Tool, Toolset, tool
from longshore.config import load
from longshore.server.engine import Rates
from longshore.telemetry.records import ArgumentsMended


def weather(**options: Any) -> Server:
    app = Server("weather")

    @app.tool(aliases=["weather_v1", "weather-v0"], **options)
    def get_weather(city: str) -> str:
        """Get the weather of a city."""
        return f"{city}: sunny"

    return app


RAW = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def raw_weather() -> Server:
    app = Server("weather")

    def answer(arguments: dict[str, Any], _: Any) -> CallResult:
        return CallResult([Text(f"{arguments['city']}: sunny")])

    app.add_tool(Tool(name="get_weather", input_schema=RAW, aliases=("weather_v1", "weather-v0")), answer)
    return app


@pytest.mark.parametrize("era", ["modern", "legacy"])
@pytest.mark.parametrize(
    "app", [weather(), weather(run="inline"), raw_weather()], ids=["on a thread", "inline", "with a schema of its own"]
)
def test_the_old_name_can_be_called_and_the_result_says_the_new_one(app: Server, era: str) -> None:
    with SyncClient(app, era=era) as client:
        assert [each.name for each in client.list_tools()] == ["get_weather"]
        for alias in ("weather_v1", "weather-v0"):
            result = client.call_tool(alias, {"city": "Oslo"})
            assert result.text == "Oslo: sunny"
            assert result.meta["longshore/notes"] == [f"{alias} is now get_weather"]
        assert "longshore/notes" not in (client.call_tool("get_weather", {"city": "Oslo"}).meta or {})


def test_wrong_arguments_under_an_old_name_are_listed_and_the_name_is_noted() -> None:
    with SyncClient(weather()) as client:
        result = client.call_tool("weather_v1", {"town": "Oslo"}, check=False)
    assert result.is_error
    assert result.text.startswith("get_weather: invalid arguments")
    assert result.meta["longshore/notes"] == ["weather_v1 is now get_weather"]


@pytest.mark.parametrize("toml", ["[tools.get_weather]\nenabled = false\n"])
def test_a_tool_that_is_off_is_off_under_every_name(tmp_path: Path, toml: str) -> None:
    path = tmp_path / "longshore.toml"
    path.write_text(toml)
    app = weather()
    app.config = load(None, path=str(path))
    with SyncClient(app) as client, pytest.raises(ServerError, match="no tool 'weather_v1'"):
        client.call_tool("weather_v1", {"city": "Oslo"})


def test_all_names_share_one_rate_and_one_count() -> None:
    app = weather()
    app.engine.limit_rates(Rates(1, 2, lambda: 1000.0))
    with SyncClient(app) as client:
        texts = [
            client.call_tool(name, {"city": "Oslo"}, check=False).text
            for name in ("weather_v1", "get_weather", "weather-v0")
        ]
    assert texts[:2] == ["Oslo: sunny"] * 2
    assert "get_weather" in texts[2] and "sunny" not in texts[2]
    assert app.catalog.tools["get_weather"].calls == 2


def test_the_old_name_is_found_after_the_tool_has_joined_the_fast_lane() -> None:
    with SyncClient(weather()) as client:
        names = ["get_weather"] * 8 + ["weather_v1"] * 8
        assert {client.call_tool(name, {"city": "Oslo"}).text for name in names} == {"Oslo: sunny"}


def test_a_tool_that_was_removed_leaves_its_names_free() -> None:
    app = weather()
    app.remove_tool("get_weather")
    declare(app, "weather_v1")
    with SyncClient(app) as client:
        assert client.call_tool("weather_v1").text == ""
        with pytest.raises(ServerError, match="no tool"):
            client.call_tool("weather-v0")


def declare(app: Server, name: str, *aliases: str, replace: bool = False) -> None:
    app.tool(name=name, aliases=aliases, replace=replace)(lambda: "")


class Old(Toolset):
    @tool(aliases=["shared"])
    def one(self) -> str:
        return ""

    @tool(aliases=["shared"])
    def two(self) -> str:
        return ""


class Plain(Toolset):
    @tool
    def weather_v1(self) -> str:
        return ""


REFUSED = {
    "an alias is another's name": lambda app: declare(app, "x", "get_weather"),
    "an alias is another's alias": lambda app: declare(app, "x", "weather_v1"),
    "a name is another's alias": lambda app: declare(app, "weather_v1"),
    "even where it may replace": lambda app: declare(app, "weather_v1", replace=True),
    "twice in a toolset": lambda app: app.add_toolset(Old()),
    "a toolset's name is another's alias": lambda app: app.add_toolset(Plain()),
    "its own name": lambda app: declare(app, "x", "x"),
    "one twice": lambda app: declare(app, "x", "y", "y"),
    "no name that a tool may have": lambda app: declare(app, "x", "get weather"),
    "no text": lambda app: app.tool(name="x", aliases=[3])(lambda: ""),
    "one text": lambda app: app.tool(name="x", aliases="old")(lambda: ""),
    "of a raw tool": lambda app: app.add_tool(
        Tool(name="x", input_schema={"type": "object"}, aliases=["get_weather"]), lambda a, c: None
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_names_that_two_tools_would_answer_to_are_refused(case: str) -> None:
    app = weather()
    with pytest.raises(RegistrationError):
        REFUSED[case](app)
    assert list(app.catalog.tools) == ["get_weather"]


def test_a_refusal_says_whose_name_it_is_and_what_to_do() -> None:
    with pytest.raises(RegistrationError) as problem:
        declare(weather(), "x", "weather_v1")
    text = str(problem.value)
    assert "'weather_v1' is an alias of 'x' and an alias of 'get_weather', from" in text
    assert "take 'weather_v1' out of one of them" in text


def test_a_tool_or_toolset_that_is_replaced_gives_its_names_up() -> None:
    app = weather()
    declare(app, "get_weather", "weather_v1", replace=True)
    declare(app, "x", "weather-v0")

    class FinishedStreams(Toolset):
        @tool(aliases=["was"])
        def now(self) -> str:
            return ""

    app.add_toolset(FinishedStreams())
    app.add_toolset(FinishedStreams(), replace=True)
    assert list(app.catalog.tools) == ["get_weather", "x", "now"]


def test_the_use_of_an_old_name_is_recorded() -> None:
    app = weather()
    heard: list[Any] = []
    app.listen(heard.append)
    with SyncClient(app) as client:
        client.call_tool("get_weather", {"city": "Oslo"})
        client.call_tool("weather_v1", {"city": "Oslo"})
    mended = [each for each in heard if isinstance(each, ArgumentsMended)]
    assert [(each.tool, each.notes) for each in mended] == [("get_weather", ("weather_v1 is now get_weather",))]


@pytest.mark.parametrize("warm", [False, True], ids=["before it has said what it offers", "later"])
def test_the_old_name_goes_through_mounts_of_servers_in_this_process(warm: bool) -> None:
    inner, middle, gate = Server("inner"), Server("middle"), Server("gate")

    @inner.tool(aliases=["weather_v1"])
    def get_weather(city: Annotated[str, Alias("town")]) -> str:
        return f"{city}: sunny"

    middle.mount(inner, prefix="in")
    gate.mount(middle, prefix="mid")
    with SyncClient(gate) as client:
        if warm:
            assert [each.name for each in client.list_tools()] == ["mid_in_get_weather"]
        result = client.call_tool("mid_in_weather_v1", {"town": "Oslo"})
        assert result.text == "Oslo: sunny"
        notes = ["mid_in_weather_v1 is now mid_in_get_weather", "town is now city"]
        assert result.meta["longshore/notes"] == notes
        with pytest.raises(ServerError, match="no tool"):
            client.call_tool("mid_in_weather_v2", {"town": "Oslo"})


def test_a_mounted_tool_that_is_off_can_not_be_called_by_its_old_name(tmp_path: Path) -> None:
    path = tmp_path / "longshore.toml"
    path.write_text("[tools.in_get_weather]\nenabled = false\n")
    gate = Server("gate")
    gate.mount(weather(), prefix="in")
    gate.config = load(None, path=str(path))
    with SyncClient(gate) as client:
        for _ in range(2):  # before it has said what it offers, and later
            with pytest.raises(ServerError, match="no tool"):
                client.call_tool("in_weather_v1", {"city": "Oslo"})
            assert client.list_tools() == []
