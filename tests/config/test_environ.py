"""Variables: names, values and what is said about wrong ones."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longshore import config
from longshore.config.keys import sections
from longshore.config.sections import env_form, variable_of

from .conftest import Place


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("1", True),
        ("Yes", True),
        ("ON", True),
        ("false", False),
        ("0", False),
        ("no", False),
        (" off ", False),
    ],
)
def test_switches_take_yes_and_no_words(place: Place, text: str, value: bool) -> None:
    assert place.load(LONGSHORE_SERVER_EXPOSE_ERRORS=text).server.expose_errors is value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("60", 60.0),
        ("1_000", 1000.0),
        ("0.5", 0.5),
        ("1e2", 100.0),
        ("0", False),
        ("false", False),
        ("Off", False),
        (" 7 ", 7.0),
    ],
)
def test_timeouts_take_seconds_or_off(place: Place, text: str, value: Any) -> None:
    assert place.load(LONGSHORE_SERVER_TIMEOUT=text).server.timeout == value


def test_texts_and_choices_are_read(place: Place) -> None:
    found = place.load(LONGSHORE_SERVER_LOG_LEVEL="DEBUG", LONGSHORE_SERVER_INSTRUCTIONS="Be kind. ☕")
    assert (found.server.log_level, found.server.instructions) == ("debug", "Be kind. ☕")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("read", ["read"]),
        ("read,write", ["read", "write"]),
        ("read write", ["read", "write"]),
        (" read , write,, ", ["read", "write"]),
        (",", []),
    ],
)
def test_lists_are_separated_by_commas_or_blanks(place: Place, text: str, value: list[str]) -> None:
    assert place.load(LONGSHORE_AUTH_SCOPES=text).auth.scopes == value


def test_an_empty_variable_counts_as_unset(place: Place) -> None:
    assert place.load(LONGSHORE_SERVER_TIMEOUT="", LONGSHORE_CONFIG="", LONGSHORE_NONSENSE="").origins == {}


def test_names_match_in_any_case(place: Place) -> None:
    found = place.load(LONGSHORE_TOOLS_add_enabled="no")
    assert not config.tool_enabled(found, "add", None)
    assert found.origins["tools.$ADD.enabled"].where == "LONGSHORE_TOOLS_add_enabled"


def test_a_tool_may_be_named_like_a_key(place: Place) -> None:
    found = place.load(LONGSHORE_TOOLS_SET_TIMEOUT_ENABLED="no", LONGSHORE_TOOLS_RESULT_BYTES_RESULT_BYTES="3")
    assert not config.tool_enabled(found, "set_timeout", None)
    assert config.tool_config(found, "result_bytes").result_bytes == 3


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("SERVER_TIMOUT", "3", "no such variable; did you mean LONGSHORE_SERVER_TIMEOUT?"),
        ("LIMIT_RUNNING", "3", "no such variable; did you mean LONGSHORE_LIMITS_RUNNING?"),
        ("CONFIGS", "3", "no such variable; did you mean LONGSHORE_CONFIG?"),
        ("TOOLS_ADD_ENABLD", "1", "no such variable; did you mean LONGSHORE_TOOLS_ADD_ENABLED?"),
        ("TOOLS_ADD_RESULT_BYTE", "1", "no such variable; did you mean LONGSHORE_TOOLS_ADD_RESULT_BYTES?"),
        ("TOOLS_ENABLED", "1", "no such variable; docs/configuration.md lists them"),
        ("ZZZ", "1", "no such variable; docs/configuration.md lists them"),
        ("LIMITS_TIMEOUT_SECONDS", "1", "no such variable; use LONGSHORE_SERVER_TIMEOUT"),
        ("LINT_WAIVE", "1", "a table can only be set in a file"),
        ("SERVER_TIMEOUT", "soon", 'expected seconds (a number) or false, got "soon"'),
        ("SERVER_TIMEOUT", "nan", 'expected seconds (a number) or false from 0 to 31622400, got "nan"'),
        ("SERVER_TIMEOUT", "-1", 'expected seconds (a number) or false from 0 to 31622400, got "-1"'),
        ("SERVER_EOF_GRACE", "off", 'expected seconds (a number), got "off"'),
        ("SERVER_EXPOSE_ERRORS", "maybe", 'expected true or false, got "maybe"'),
        ("LIMITS_RUNNING", "8.5", 'expected a whole number, got "8.5"'),
        ("LIMITS_RUNNING", "9" * 5000, f'expected a whole number, got "{"9" * 39}…"'),
        ("LIMITS_RUNNING", "9" * 100, f'expected a whole number from 1 to 1099511627776, got "{"9" * 39}…"'),
        ("SERVER_LOG_LEVEL", "loud", 'expected debug, info, notice, warning or error, got "loud"'),
        ("SERVER_INSTRUCTIONS", "\udcff", "expected UTF-8 text"),
        ("AUTH_SCOPES", "\udcff", "expected UTF-8 text"),
        ("AUTH_TOKEN", "\udcff", "expected UTF-8 text"),
        ("AUTH_TOKN", "s3cret-s3cret-s3cret", "no such variable; did you mean LONGSHORE_AUTH_TOKEN?"),
        ("SERVER_EXPOSE_ERRORS", "\x1b[31m", 'expected true or false, got "\\x1b[31m"'),
        ("SERVER_EXPOSE_ERRORS", "\udcff", "expected UTF-8 text"),
    ],
)
def test_a_wrong_variable_is_named_with_the_fix(place: Place, name: str, text: str, message: str) -> None:
    assert place.error(**{f"LONGSHORE_{name}": text}) == f"LONGSHORE_{name}: {message}"


def test_the_same_key_twice_is_refused(place: Place) -> None:
    said = place.error(LONGSHORE_TOOLS_ADD_ENABLED="1", LONGSHORE_TOOLS_add_ENABLED="0")
    assert said == "LONGSHORE_TOOLS_add_ENABLED: set twice; LONGSHORE_TOOLS_ADD_ENABLED says it too"


@given(st.text("abcXYZ019_-./", min_size=1, max_size=30))
def test_any_tool_name_can_be_reached(name: str) -> None:
    found = config.load(environ={f"LONGSHORE_TOOLS_{env_form(name)}_ENABLED": "no"}, cwd="/")
    assert not config.tool_enabled(found, name, None)


@pytest.mark.parametrize("section", sections().values(), ids=lambda s: s.name)
def test_every_key_has_a_variable_that_sets_it(section: Any) -> None:
    for key in section.keys.values():
        match key.kind:
            case "switch":
                text, value = "no", False
            case "count" | "size":
                text, value = "7", 7
            case "seconds" | "timeout":
                text, value = "7", 7.0
            case "choice":
                text = value = key.words[-1]
            case "list":
                text, value = "some words", ["some", "words"]
            case "folders":
                text, value = "/a b:/c", ["/a b", "/c"]
            case "table":
                continue
            case _:
                text = value = "some words"
        path = (section.name, "X", key.name) if section.named else (section.name, key.name)
        found = config.load(environ={variable_of(path): text}, cwd="/")
        table = getattr(found, section.name)
        assert getattr(table["$X"] if section.named else table, key.name) == value
