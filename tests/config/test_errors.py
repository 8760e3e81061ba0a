"""Every error names its place and the fix."""

from __future__ import annotations

import os

import pytest

from longshore.config.keys import LEAST_SECONDS
from longshore.config.sources import PROBLEMS
from longshore.config.toml_file import FILE_BYTES, KEY_PARTS

from .conftest import Place

COUNT = "expected a whole number from 1 to 1099511627776"
ALL = "server, limits, toolsets, tools, telemetry, http, auth, tokens, lint"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        # Names
        ("\n[server]\ntimout = 3\n", "3: server.timout: no such key; did you mean timeout?"),
        ("[sever]\n", "1: sever: no such section; did you mean server?"),
        ("timeout = 3\n", "1: timeout: no such section; did you mean server.timeout?"),
        ("zzz = 3\n", f"1: zzz: no such section; there are {ALL}"),
        ("[policies]\n", f"1: policies: no such section; there are {ALL}"),
        ("[server]\nrunning = 3\n", "2: server.running: no such key; did you mean limits.running?"),
        (
            "[telemetry]\nzzz = 3\n",
            "2: telemetry.zzz: no such key; telemetry has records, values, ring, file, "
            "file_bytes, file_count, history, history_age, history_bytes, otlp",
        ),
        ("[limits]\ntimeout_seconds = 3\n", "2: limits.timeout_seconds: no such key; use server.timeout"),
        ("[limits]\neof_grace_seconds = 3\n", "2: limits.eof_grace_seconds: no such key; use server.eof_grace"),
        (
            "[tools.add]\noptions = {}\n",
            "2: tools.add.options: no such key; tools has enabled, timeout, scopes, result_bytes",
        ),
        ("[tools.'']\nenabled = true\n", '2: tools."".enabled: a name can\'t be empty or begin with $'),
        ("[tools.'$X']\nenabled = true\n", "2: tools.$X.enabled: a name can't be empty or begin with $"),
        # Kinds
        ("[tools.add]\n\ntimeout = 'soon'", '3: tools.add.timeout: expected seconds (a number) or false, got "soon"'),
        ("[tools.add]\ntimeout = true", "2: tools.add.timeout: expected seconds (a number) or false, got true"),
        ("[tools.add]\ntimeout = []", "2: tools.add.timeout: expected seconds (a number) or false, got an array"),
        ("[server]\neof_grace = false", "2: server.eof_grace: expected seconds (a number), got false"),
        ("[server]\neof_grace = inf", "2: server.eof_grace: expected seconds (a number) from 0 to 31622400, got inf"),
        (
            "[limits]\nevent_seconds = nan",
            "2: limits.event_seconds: expected seconds (a number) from 0.1 to 31622400, got nan",
        ),
        ("[server]\nexpose_errors = 1", "2: server.expose_errors: expected true or false, got 1"),
        ("[server]\ninstructions = 2020-01-01", "2: server.instructions: expected a string, got a date or time"),
        ("[limits]\nrunning = 8.0", "2: limits.running: expected a whole number, got 8.0"),
        ("[limits]\nrunning = true", "2: limits.running: expected a whole number, got true"),
        ("[limits]\nrunning = 0x" + "f" * 5000, f"2: limits.running: {COUNT}, got a number far too large"),
        ("[limits]\nrunning = {}", "2: limits.running: expected a whole number, got a table"),
        (
            "[server]\nlog_level = 'warn'",
            '2: server.log_level: expected debug, info, notice, warning or error, got "warn"; did you mean warning?',
        ),
        ("[server]\nlog_format = 3", "2: server.log_format: expected auto, pretty or json, got 3"),
        ("[lint]\nwaive = 3", "2: lint.waive: expected a table, got 3"),
        ("[server]\nroots = ['a', '']", '2: server.roots: expected a list of paths, got "" in it'),
        ("[auth]\nscopes = 'read'", '2: auth.scopes: expected a list of strings, got "read"'),
        ("[auth]\nscopes = ['read', 3]", "2: auth.scopes: expected a list of strings, got 3 in it"),
        ("[auth]\nscopes = [['read']]", "2: auth.scopes: expected a list of strings, got an array in it"),
        # Secrets
        ("[auth]\ntoken = 1234567890123456", "2: auth.token: expected a string, got …"),
        ("[http]\nstate_key = ['s3cret']", "2: http.state_key: expected a string, got …"),
        ("[tokens.alice]\ntoken = 1234567890123456", "2: tokens.alice.token: expected a string, got …"),
        ("[tokens]\nalice = 's3cret'", "2: tokens.alice: expected a table, [tokens.NAME], got …"),
        ("tokens = 's3cret'", "1: tokens: expected a table, got …"),
        ("auth = 's3cret'", "1: auth: expected a table, got …"),
        # Tables
        ("server = 3", "1: server: expected a table, got 3"),
        ("[[server]]\ntimeout = 3", "1: server: expected a table, got an array"),
        ("[[tools]]\ntimeout = 3", "1: tools: expected a table, got an array"),
        ("\n[[tools.add]]\ntimeout = 3", "2: tools.add: expected a table, [tools.NAME], got an array"),
        ("[tools]\nenabled = false", "2: tools.enabled: expected a table, [tools.NAME], got false"),
        # Places
        ("\n\nserver.timout = 3", "3: server.timout: no such key; did you mean timeout?"),
        ("[tools]\n'a.b'.tmeout = 3", '2: tools."a.b".tmeout: no such key; did you mean timeout?'),
        ("\n[tools]\nadd = { enabled = true, timout = 3 }", "3: tools.add.timout: no such key; did you mean timeout?"),
        ("[tools.'naïve 名']\nenabled = 3", '2: tools."naïve 名".enabled: expected true or false, got 3'),
        ('[tools."a\\u001b"]\nenabled = 3', '2: tools."a\\x1b".enabled: expected true or false, got 3'),
        # Syntax
        ("[server]\ntimeout =\n", "2: invalid value (column 10)"),
        ("[server\n", "1: expected ']' at the end of a table declaration (column 8)"),
        ("[server]\ntimeout = 3\n\ntimeout = 4\n", "4: a key is set twice (column 12)"),
        ("[tools.add]\n[tools.add]\n", "2: cannot declare tools.add twice (column 11)"),
        ("a = '''x\n\n", "1: expected \"'''\""),
    ],
)
def test_an_error_names_file_line_key_and_fix(place: Place, text: str, message: str) -> None:
    assert place.error_of(text) == f"longshore.toml:{message}"
    assert place.error_of(text.replace("\n", "\r\n")).startswith(f"longshore.toml:{message.split(':')[0]}:")


@pytest.mark.parametrize(
    ("key", "low", "high"),
    [
        ("limits.depth", 1, 512),
        ("limits.running", 1, 1 << 40),
        ("limits.parked", 0, 1 << 40),
        ("tools.t.result_bytes", 1, 1 << 40),
    ],
)
def test_counts_are_checked_at_their_bounds(place: Place, key: str, low: int, high: int) -> None:
    for good in (low, high):
        place.write(f"{key} = {good}")
        place.load()
    for bad in (low - 1, high + 1):
        said = place.error_of(f"{key} = {bad}")
        assert said.startswith(f"longshore.toml:1: {key}: expected ")
        assert said.endswith(f" from {low} to {high}, got {bad}")


def test_all_problems_are_listed_at_once_in_the_order_of_their_lines(place: Place) -> None:
    place.write_user("[server]\ntimout = 1\n")
    place.write("[tools.add]\ntimeout = 'x'\n[server]\nlog_level = 3\n[tools.sub]\ntimeout = 'x'\n")
    said = place.error({"server.timeout": "x", "server.nope": 1, "nope": 2, "tools.enabled": 1}, LONGSHORE_ZZZ="1")
    assert [line.split(": ")[0] for line in said.splitlines()] == [
        f"{place.user_file}:2",
        "longshore.toml:2",
        "longshore.toml:4",
        "longshore.toml:6",
        "LONGSHORE_ZZZ",
        "--timeout",
        "server.nope",
        "nope",
        "tools.enabled",
    ]


@pytest.mark.parametrize("extra", [-1, 0, 1])
def test_at_most_twenty_are_listed(place: Place, extra: int) -> None:
    said = place.error_of("[server]\n" + "".join(f"k{i} = 0\n" for i in range(PROBLEMS + extra))).splitlines()
    assert said[PROBLEMS:] == (["… and 1 more"] if extra > 0 else [])
    assert len(said) == PROBLEMS + extra


def test_a_long_key_is_shortened(place: Place) -> None:
    assert len(place.error_of(f"[server]\n{'k' * 5000} = 0\n")) < 350


def test_flags_are_named_by_their_option(place: Place) -> None:
    assert place.error({"server.eof_grace": "x"}) == '--eof-grace: expected seconds (a number), got "x"'
    assert place.error({"server.timout": 1}) == "server.timout: no such key; did you mean timeout?"
    assert place.error({"lint.waive": "E04"}) == "lint.waive: a table can only be set in a file"
    assert place.error({"": "x"}) == f": no such section; there are {ALL}"
    assert place.error({"server": "x"}) == 'server: expected a table, got "x"'
    assert place.error({"tools.timeout": 1}) == "tools.timeout: expected a table, [tools.NAME], got 1"


def test_a_file_outside_the_folder_is_named_whole(place: Place) -> None:
    deep = place.project / "a"
    deep.mkdir()
    place.write("[server]\ntimout = 1\n")
    assert place.error(cwd=deep).startswith(f"{place.file}:2: ")


# Files that can't be used


@pytest.mark.parametrize(("size", "fits"), [(FILE_BYTES - 1, True), (FILE_BYTES, True), (FILE_BYTES + 1, False)])
def test_a_file_has_a_largest_size(place: Place, size: int, fits: bool) -> None:
    place.write(b"#" * size)
    if fits:
        place.load()
    else:
        assert place.error() == "longshore.toml: larger than 1048576 bytes"


def test_a_directory_in_the_files_place_is_refused(place: Place) -> None:
    place.file.mkdir()
    assert place.error() == "longshore.toml: a directory; expected a TOML file"


def test_a_fifo_in_its_place_does_not_hang(place: Place) -> None:
    os.mkfifo(place.file)
    assert place.error() == "longshore.toml: not a file; expected a TOML file"


def test_an_unreadable_file_is_reported(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.write("")

    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("longshore.files.os.open", refuse)  # root may read anything, so chmod proves nothing
    assert place.error() == "longshore.toml: can't be read: permission denied"


@pytest.mark.parametrize("raw", [b"[server]\n# caf\xe9\n", b"[server]\na = '\xff\xfe'\n"])
def test_a_file_that_is_not_utf8_is_refused(place: Place, raw: bytes) -> None:
    assert place.error_of(raw).startswith("longshore.toml:2: not UTF-8 (byte 0x")


def test_a_missing_path_is_reported(place: Place) -> None:
    assert place.error(path="no.toml") == "--config: no such file: no.toml"
    assert place.error(LONGSHORE_CONFIG="no.toml") == "LONGSHORE_CONFIG: no such file: no.toml"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = " + "[" * 50_000, "nested too deeply"),
        ("a = " + "9" * 5000, "a number has too many digits"),
        ("a = 1\x00", "longshore.toml:1: "),
        ("." * 1000, "longshore.toml:1: "),
    ],
)
def test_hostile_files_end_in_a_plain_error(place: Place, text: str, message: str) -> None:
    assert message in place.error_of(text)


@pytest.mark.parametrize("part", ["a", "'b'", '"c\\"."', " d "])
@pytest.mark.parametrize("form", ["{} = 1", "[{}]", " [[ {} ]]", "x = {{ {} = 1 }}", "x = {{y = 1,{} = 1 }}"])
def test_a_key_has_a_largest_number_of_parts(place: Place, part: str, form: str) -> None:
    for count in (KEY_PARTS - 1, KEY_PARTS):
        assert "no such section" in place.error_of("\n" + form.format(".".join([part] * count)))
    for count in (KEY_PARTS + 1, 100_000):
        said = place.error_of("\n" + form.format(".".join([part] * count)))
        assert said == f"longshore.toml:2: a key has more than {KEY_PARTS} parts"


def test_many_dots_in_a_value_are_fine(place: Place) -> None:
    place.write(f"[server]\ninstructions = '{'a.' * 99}'\n[toolsets.x]\nv = [{'1.5, ' * 99}]\n")
    assert place.load().server.instructions == "a." * 99


# Unusual files that are valid


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\n\n",
        b"# nothing\n",
        b"\xef\xbb\xbf",
        b"\xef\xbb\xbf[server]\ntimeout = 3\n",
        b"[server]\r\ntimeout = 3\r\n",
        b"[server]\ntimeout = 3",
        b"server = { timeout = 3 }",
        b"server.timeout = 3",
        b"[ server ]\n'timeout' = 3.0 # three",
        b'["server"]\n"time\\u006fut" = 3',
        b"[tools]\n[toolsets]\n[limits]\n",
        b"[tools.add]\n",
    ],
)
def test_unusual_but_valid_files_are_read(place: Place, raw: bytes) -> None:
    place.write(raw)
    assert place.load().server.timeout == (3.0 if b"= 3" in raw else 30.0)


def test_options_of_unknown_toolsets_hold_whatever_toml_can_say(place: Place) -> None:
    place.write("[toolsets.x]\na = 2020-01-01\nb = 99999999999999999999\nc.d = [inf]\n[[toolsets.x.f]]\ng = 1\n")
    options = place.load().toolsets["x"].options
    assert options["b"] == 99999999999999999999
    assert options["f"] == [{"g": 1}]
    assert place.load().origins["toolsets.x.f"].where == "longshore.toml:5"


RESTING = [
    "http.session_ttl",
    *(f"limits.{what}_seconds" for what in ("state", "header", "body", "idle", "stall")),
    *(f"limits.{what}_seconds" for what in ("keep_alive", "event", "retry")),
]
AT_ONCE = [
    "server.eof_grace",
    "http.grace",
    *(f"limits.{what}_seconds" for what in ("term_grace", "stop", "stream_after")),
]


@pytest.mark.parametrize("key", RESTING)
def test_seconds_between_two_rounds_of_a_loop_are_never_zero(place: Place, key: str) -> None:
    section, name = key.split(".")
    for seconds in ("0", "0.0", "0.09"):
        said = place.error_of(f"[{section}]\n{name} = {seconds}\n")
        assert said == f"longshore.toml:2: {key}: expected seconds (a number) from 0.1 to 31622400, got {seconds}"
    for value in (LEAST_SECONDS, 0.11):
        place.write(f"[{section}]\n{name} = {value}\n")
        assert getattr(getattr(place.load(), section), name) == value


@pytest.mark.parametrize("key", AT_ONCE)
def test_zero_seconds_are_accepted_where_they_mean_at_once(place: Place, key: str) -> None:
    section, name = key.split(".")
    place.write(f"[{section}]\n{name} = 0\n")
    assert getattr(getattr(place.load(), section), name) == 0.0
    assert "from 0 to" in place.error_of(f"[{section}]\n{name} = -0.1\n")
