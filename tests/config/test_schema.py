"""The schema and the page are what the Structs say."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, Literal

import jsonschema_rs
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from longshore import config
from longshore.builtin import make
from longshore.config.keys import SECRETS, Key, make_section, sections
from longshore.config.reference import docs, markdown, schema, schema_text
from longshore.config.sections import MOVED, NO_KEYS, Sections
from longshore.limits import Limits

from .conftest import Place

DOCS = Path(__file__).parents[2] / "docs"
VALIDATOR = jsonschema_rs.Draft202012Validator(schema())


def test_the_schema_file_is_fresh() -> None:
    assert (DOCS / "longshore.schema.json").read_text() == schema_text(make().catalog.toolsets), (
        "longshore config schema > docs/longshore.schema.json"
    )


def test_the_page_holds_the_fresh_table() -> None:
    page = (DOCS / "configuration.md").read_text()
    assert page.endswith("-->\n\n" + markdown(make().catalog.toolsets)), (
        "put the output of `longshore config schema --markdown` below the marker"
    )


def test_the_schema_is_valid_json_schema() -> None:
    assert jsonschema_rs.meta.is_valid(schema())


def test_every_field_is_a_key_with_a_reason() -> None:
    assert list(sections()) == list(Sections.__struct_fields__)
    for section in sections().values():
        names = [name for name in section.record.__struct_fields__ if f"{section.name}.{name}" not in NO_KEYS]
        assert list(section.keys) == names
        assert all(docs(section.record)[name] for name in names)


def test_every_limit_is_a_key_of_limits_or_of_server() -> None:
    keys = {f"limits.{name}" for name in Limits.__struct_fields__}
    assert keys == {f"limits.{name}" for name in sections()["limits"].keys} | set(MOVED)
    for moved in MOVED.values():
        section, name = moved.split(".")
        assert name in sections()[section].keys


def test_the_defaults_pass_their_own_checks() -> None:
    for section in sections().values():
        for key in section.keys.values():
            if key.default is not None:
                assert key.check(key.default) == key.default


GOOD = [
    "",
    "[server]\ntimeout = false\nlog_level = 'notice'\n",
    "[server]\ntimeout = 0\ninstructions = ''\n",
    "[limits]\nrunning = 1\ndepth = 512\n",
    "[tools.'a.b']\nenabled = true\ntimeout = 1.5\nresult_bytes = 1\n",
    "[toolsets.x]\ntimeout = 1\nanything = [{goes = 1}]\n",
    "[server]\nroots = ['a', '~/b']\ntoolsets = []\n",
    "[telemetry]\nrecords = false\n",
    "[http]\nport = 0\nhosts = []\norigins = ['https://a.example']\n",
    "[auth]\ntoken = 'x'\nscopes = ['a', 'b']\nmode = 'required'\n",
    "[tokens.alice]\nsha256 = 'x'\n[tokens.'b@c']\ntoken_file = 'x'\nscopes = []\n",
]
BAD = [
    "zzz = 1",
    "[policies]",
    "[server]\ntimout = 1",
    "[server]\ntimeout = true",
    "[server]\ntimeout = -1",
    "[server]\nlog_level = 'DEBUG'",
    "[limits]\ntimeout_seconds = 1",
    "[limits]\ndepth = 513",
    "[limits]\nrunning = 0",
    "[tools]\nenabled = true",
    "[tools.'']\nenabled = true",
    "[tools.'$A']\nenabled = true",
    "[tools.a]\noptions = {}",
    "[[tools.a]]\nenabled = true",
    "[toolsets.x]\ngroups = 3",
    "[server]\nroots = ['']",
    "[http]\nport = 65536",
    "[http]\nhosts = 'a.example'",
    "[http]\nhosts = ['a.example', 1]",
    "[auth]\ntoken = 1",
    "[auth]\nmode = 'on'",
    "[auth]\nscopes = [['a']]",
    "[tokens]\nalice = 'x'",
    "[tokens.alice]\nname = 'x'",
]


@pytest.mark.parametrize("text", GOOD + BAD)
def test_schema_and_loader_agree(place: Place, text: str) -> None:
    place.write(text)
    assert VALIDATOR.is_valid(tomllib.loads(text)) is (text in GOOD)
    if text in GOOD:
        place.load()
    else:
        place.error()


VALUE = st.one_of(
    st.booleans(),
    st.integers(-2, 600),
    st.integers(-(2**50), 2**50),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["info", "json", "x"]),
    st.lists(st.one_of(st.text(max_size=3), st.integers()), max_size=3),
)
KEY = st.sampled_from([(section.name, name) for section in sections().values() for name in [*section.keys, "nope"]])


@given(KEY, VALUE)
def test_schema_and_loader_agree_on_any_value(key: tuple[str, str], value: Any) -> None:
    section, name = key
    found: Key | None = sections()[section].keys.get(name)
    inside = {name: value}
    document = {section: {"t": inside} if sections()[section].named else inside}
    try:
        accepted = section == "toolsets" if found is None else found.check(value, "/") is not None
    except ValueError:
        accepted = False
    # JSON has one kind of number: a schema takes 8.0 for an integer, the loader does not.
    if (
        isinstance(value, float)
        and value.is_integer()
        and found
        and found.kind in ("count", "size", "seconds", "timeout")
    ):
        return
    assert VALIDATOR.is_valid(document) is accepted


def test_the_keys_of_a_section_are_derived_from_its_struct() -> None:
    class Added(Struct):
        path: str | None = None
        mode: Literal["a", "b"] | None = None
        ratio: int = 3
        words: list[str] = []
        more: list[str] | None = None
        both: list[str] = msgspec.field(default_factory=lambda: ["a", "b"])

    section = make_section("added", Added)
    assert {name: key.expected for name, key in section.keys.items()} == {
        "path": "a string",
        "mode": "a or b",
        "ratio": "a whole number",
        "words": "a list of strings",
        "more": "a list of strings",
        "both": "a list of strings",
    }
    assert [key.default for key in section.keys.values()] == [None, None, 3, [], None, ["a", "b"]]


def test_every_secret_is_a_key_and_marked_in_the_schema() -> None:
    marked = {
        f"{section.name}.{key.name}"
        for section in sections().values()
        for key in section.keys.values()
        if key.schema().get("writeOnly")
    }
    assert marked == SECRETS


def test_the_record_encodes(place: Place) -> None:
    place.write("[tools.add]\ntimeout = 3\n")
    assert msgspec.to_builtins(place.load())["origins"]["tools.add.timeout"] == {
        "kind": "project",
        "where": "longshore.toml:2",
    }


def test_the_page_shows_errors_as_they_are(place: Place) -> None:
    place.write("[server]\ntimout = 1\n\n[tools.add]\ntimeout = 'soon'\n")
    said = place.error({"server.log_level": "loud"}, LONGSHORE_SERVER_TIMOUT="1").splitlines()
    assert [line for line in said if f"    {line}\n" not in (DOCS / "configuration.md").read_text()] == []


def test_the_example_on_the_page_loads(place: Place) -> None:
    place.write((DOCS / "configuration.md").read_text().split("```toml\n")[1].split("```")[0])
    found = place.load()
    assert config.tool_config(found, "notes.search").result_bytes == 20_000
