"""The settings of one tool."""

from __future__ import annotations

from typing import Any

import pytest

from longshore import config
from longshore.config import Config, ToolConfig, ToolsetConfig

from .conftest import Place

UNSET: Any = None


@pytest.mark.parametrize(
    ("tool", "toolset", "declared", "seconds"),
    [
        (UNSET, UNSET, UNSET, 30.0),
        (UNSET, UNSET, 5.0, 5.0),
        (UNSET, UNSET, False, None),
        (UNSET, UNSET, 0, None),
        (UNSET, 4.0, 5.0, 4.0),
        (UNSET, 4.0, False, 4.0),
        (UNSET, False, 5.0, None),
        (3.0, 4.0, 5.0, 3.0),
        (3.0, False, False, 3.0),
        (False, 4.0, 5.0, None),
    ],
)
def test_a_timeout_is_the_tools_then_the_toolsets_then_declared_then_the_servers(
    tool: Any, toolset: Any, declared: Any, seconds: float | None
) -> None:
    found = Config(tools={"t": ToolConfig(timeout=tool)}, toolsets={"s": ToolsetConfig(timeout=toolset)})
    assert config.tool_timeout(found, "t", "s", declared) == seconds
    assert config.tool_timeout(found, "other", None, declared) == (30.0 if declared is None else declared or None)


def test_a_server_timeout_that_is_off_is_no_limit() -> None:
    found = Config(server=config.ServerConfig(timeout=False))
    assert config.tool_timeout(found, "t", None, None) is None


@pytest.mark.parametrize(
    ("tool", "toolset", "enabled"),
    [(UNSET, UNSET, True), (UNSET, False, False), (True, False, True), (False, True, False), (UNSET, True, True)],
)
def test_a_tool_is_enabled_unless_its_table_or_its_toolset_says_no(tool: Any, toolset: Any, enabled: bool) -> None:
    found = Config(tools={"t": ToolConfig(enabled=tool)}, toolsets={"s": ToolsetConfig(enabled=toolset)})
    assert config.tool_enabled(found, "t", "s") is enabled
    assert config.tool_enabled(found, "t", None) is (tool is not False)


@pytest.mark.parametrize(
    ("tool", "toolset", "groups", "enabled"),
    [
        (UNSET, UNSET, [], False),
        (UNSET, UNSET, ["admin"], True),
        (UNSET, True, [], False),
        (UNSET, False, ["admin"], False),
        (True, UNSET, [], True),
        (True, False, [], True),
        (False, True, ["admin"], False),
    ],
)
def test_a_tool_with_a_group_is_off_until_its_toolset_names_the_group_or_its_own_table_enables_it(
    tool: Any, toolset: Any, groups: list[str], enabled: bool
) -> None:
    tables = {"s": ToolsetConfig(enabled=toolset, groups=groups)}
    found = Config(tools={"t": ToolConfig(enabled=tool)}, toolsets=tables)
    assert config.tool_enabled(found, "t", "s", "admin") is enabled
    assert config.tool_enabled(found, "t", None, "admin") is (tool is True)


@pytest.mark.parametrize(("toolset", "enabled"), [(UNSET, False), (True, True), (False, False)])
def test_a_toolset_that_declares_itself_off_is_off_until_its_table_enables_it(toolset: Any, enabled: bool) -> None:
    found = Config(toolsets={"s": ToolsetConfig(enabled=toolset)})
    assert config.tool_enabled(found, "t", "s", declared=False) is enabled


@pytest.mark.parametrize("name", ["get-weather", "get_weather", "Get.Weather", "GET/weather", "GET_WEATHER"])
def test_a_variable_reaches_every_spelling_of_a_name(place: Place, name: str) -> None:
    found = place.load(LONGSHORE_TOOLS_GET_WEATHER_ENABLED="off", LONGSHORE_TOOLSETS_GET_WEATHER_TIMEOUT="7")
    assert not config.tool_enabled(found, name, None)
    assert config.tool_enabled(found, "getweather", None)
    assert config.tool_timeout(found, "x", name, None) == 7


def test_a_variable_wins_over_a_file_and_leaves_the_rest_of_the_table(place: Place) -> None:
    place.write('[tools."get.weather"]\ntimeout = 3\nenabled = true\n[tools.GET_WEATHER]\nresult_bytes = 5\n')
    found = place.load(LONGSHORE_TOOLS_GET_WEATHER_ENABLED="0")
    assert config.tool_config(found, "get.weather") == ToolConfig(timeout=3.0, enabled=False)
    assert config.tool_config(found, "GET_WEATHER") == ToolConfig(result_bytes=5, enabled=False)
    assert config.tool_config(found, "get-weather") == ToolConfig(enabled=False)
    assert found.origins['tools."get.weather".enabled'].kind == "env"


def test_a_flag_wins_over_a_variable_for_a_tool(place: Place) -> None:
    found = place.load({"tools.add.timeout": 1}, LONGSHORE_TOOLS_ADD_TIMEOUT="2", LONGSHORE_TOOLS_ADD_ENABLED="no")
    assert config.tool_config(found, "add") == ToolConfig(timeout=1.0, enabled=False)


def test_tables_of_unknown_tools_get_a_warning(place: Place) -> None:
    place.write("[tools.ad]\ntimeout = 1\n[tools.add]\ntimeout = 1\n[toolsets.zzz]\nenabled = true\n")
    found = place.load(LONGSHORE_TOOLS_ADDD_ENABLED="1", LONGSHORE_TOOLS_ADD_ENABLED="1")
    assert config.unmatched(found, ["add"], ["discovery"]) == [
        "longshore.toml:2: tools.ad: no such tool; did you mean add?",
        "LONGSHORE_TOOLS_ADDD_ENABLED: tools.$ADDD: no such tool; did you mean add?",
        "longshore.toml:6: toolsets.zzz: no such toolset",
    ]


def test_groups_that_no_tool_has_get_a_warning(place: Place) -> None:
    place.write('[toolsets.notes]\ngroups = ["admin", "amdin"]\n[toolsets.files]\ngroups = ["admin"]\n')
    found = place.load(LONGSHORE_TOOLSETS_MAIL_GROUPS="send")
    groups = [("notes", "admin"), ("other", "send")]
    assert config.unmatched(found, [], ["notes", "files", "mail"], groups) == [
        'longshore.toml:2: toolsets.notes.groups: no tool has the group "amdin"; did you mean admin?',
        'longshore.toml:4: toolsets.files.groups: no tool has the group "admin"',
        'LONGSHORE_TOOLSETS_MAIL_GROUPS: toolsets.$MAIL.groups: no tool has the group "send"',
    ]
