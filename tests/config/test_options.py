"""The options of toolsets: types, sources, and what is said about wrong ones."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import jsonschema_rs
import pytest
from msgspec import Meta, Struct, defstruct

from longshore import Folder, RegistrationError, Size, Toolset, Variable, config
from longshore.cli.config import rows
from longshore.config import Config, Origin
from longshore.config.reference import list_values, markdown, schema
from longshore.errors import ConfigError
from longshore.registry.toolset import ToolsetHandle

from .conftest import Place


class NotesOptions(Struct, frozen=True, kw_only=True):
    """Notes on disk."""

    folder: Annotated[Folder, Variable("NOTES_DIR")] = "notes"
    """Where the notes are stored."""

    most_bytes: Size = 10_000_000
    depth: Annotated[int, Meta(ge=1, le=9)] = 3
    shift: int = 0
    wait: float = 1.5
    mode: Literal["read", "Write"] = "read"
    words: list[str] = []
    more: list[Folder] = []
    strict: bool = False
    api_key: Annotated[str | None, Variable("NOTES_KEY")] = None


class Notes(Toolset):
    Options = NotesOptions


class Plain(Toolset): ...


TOOLSETS = {"notes": ToolsetHandle(Notes), "plain": ToolsetHandle(Plain), "a-b": ToolsetHandle(Notes)}


def load(place: Place, flags: dict[str, Any] | None = None, **variables: str) -> Config:
    environ = {**place.environ, **variables}
    return config.load(flags, environ=environ, cwd=str(place.project), toolsets=TOOLSETS)


def options(place: Place, flags: dict[str, Any] | None = None, name: str = "notes", **variables: str) -> Any:
    return config.toolset_options(load(place, flags, **variables), name, NotesOptions)


def error(place: Place, flags: dict[str, Any] | None = None, **variables: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(place, flags, **variables)
    return str(caught.value).splitlines()


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0B", 0),
        ("10MB", 10_000_000),
        ("10MiB", 10_485_760),
        ("10 mb", 10_000_000),
        ("1.5kB", 1_500),
        ("1KiB", 1_024),
        ("1gb", 1_000_000_000),
        ("1TiB", 1 << 40),
    ],
)
def test_sizes_have_units(place: Place, text: str, size: int) -> None:
    place.write(f"[toolsets.notes]\nmost_bytes = '{text}'\n")
    assert options(place).most_bytes == size
    assert options(place, LONGSHORE_TOOLSETS_NOTES_MOST_BYTES=text).most_bytes == size


def test_a_plain_number_is_bytes(place: Place) -> None:
    place.write("[toolsets.notes]\nmost_bytes = 7\n")
    assert options(place).most_bytes == 7
    assert options(place, LONGSHORE_TOOLSETS_NOTES_MOST_BYTES="8").most_bytes == 8
    assert options(place, {"toolsets.notes.most_bytes": "9"}).most_bytes == 9


def test_a_key_of_bytes_takes_a_size_too(place: Place) -> None:
    place.write("[tools.add]\nresult_bytes = '20kB'\n")
    found = load(place, LONGSHORE_LIMITS_FRAME_BYTES="1MiB")
    assert (found.tools["add"].result_bytes, found.limits.frame_bytes) == (20_000, 1 << 20)


BYTES = 'bytes (a number, or a text such as "10MB" or "10MiB")'


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("most_bytes = '10M'", f'most_bytes: expected {BYTES}, got "10M"'),
        ("most_bytes = 'MB'", f'most_bytes: expected {BYTES}, got "MB"'),
        ("most_bytes = -1", f"most_bytes: expected {BYTES} from 0 to 1099511627776, got -1"),
        ("most_bytes = '2TiB'", f"most_bytes: expected {BYTES} from 0 to 1099511627776, got 2199023255552"),
        ("most_bytes = 1.5", f"most_bytes: expected {BYTES}, got 1.5"),
        ("most_bytes = true", f"most_bytes: expected {BYTES}, got true"),
        ("depth = 0", "depth: expected a whole number from 1 to 9, got 0"),
        ("depth = 10", "depth: expected a whole number from 1 to 9, got 10"),
        ("wait = -0.1", "wait: expected seconds (a number) from 0 to 31622400, got -0.1"),
        ("mode = 'raed'", 'mode: expected read or Write, got "raed"; did you mean read?'),
        ("folder = ''", 'folder: expected a path, got ""'),
        ("folder = ['a']", "folder: expected a path, got an array"),
        ("more = ['a', 3]", "more: expected a list of paths, got 3 in it"),
        ("api_key = 1234567890", "api_key: expected a string, got …"),
        ("foldr = 'x'", "foldr: no such key; did you mean folder?"),
    ],
)
def test_a_wrong_option_is_named_with_file_line_and_fix(place: Place, line: str, message: str) -> None:
    place.write(f"\n[toolsets.notes]\n{line}\n")
    assert error(place) == [f"longshore.toml:3: toolsets.notes.{message}"]


def test_negative_numbers_are_fine_where_the_toolset_says_nothing_else(place: Place) -> None:
    place.write("[toolsets.notes]\nshift = -5\ndepth = 9\nwait = 0\n")
    found = options(place)
    assert (found.shift, found.depth, found.wait) == (-5, 9, 0.0)


def test_a_toolset_without_options_takes_the_common_keys_only(place: Place) -> None:
    place.write("[toolsets.plain]\nzzz = 1\ngroups = ['admin']\n")
    assert error(place) == [
        "longshore.toml:2: toolsets.plain.zzz: no such key; plain has enabled, timeout, groups, catalog, scopes"
    ]


def test_all_problems_are_reported_at_once(place: Place) -> None:
    place.write("[server]\ntimout = 1\n[toolsets.notes]\ndepth = 0\n")
    found = error(place, {"toolsets.notes.foldr": "x", "server.toolsets": "nots"}, LONGSHORE_TOOLSETS_NOTES_WAIT="soon")
    assert found == [
        "longshore.toml:2: server.timout: no such key; did you mean timeout?",
        "longshore.toml:4: toolsets.notes.depth: expected a whole number from 1 to 9, got 0",
        'LONGSHORE_TOOLSETS_NOTES_WAIT: expected seconds (a number), got "soon"',
        "toolsets.notes.foldr: no such key; did you mean folder?",
        '--toolsets: expected a list of notes, plain or a-b, got "nots" in it; did you mean notes?',
    ]


def test_a_table_of_a_toolset_that_is_not_there_is_only_reported(place: Place) -> None:
    place.write("[toolsets.nots]\nfolder = 3\n")
    found = load(place, {"toolsets.zzz.x": "1"}, LONGSHORE_TOOLSETS_ELSE_FOLDER="x")
    assert config.unmatched(found, [], TOOLSETS) == [
        "longshore.toml:2: toolsets.nots: no such toolset; did you mean notes?",
        "LONGSHORE_TOOLSETS_ELSE_FOLDER: toolsets.$ELSE: no such toolset",
        "toolsets.zzz.x: toolsets.zzz: no such toolset",
    ]


def test_without_a_server_options_are_not_checked(place: Place) -> None:
    place.write("[toolsets.notes]\ndepth = 'x'\n")
    assert place.load(LONGSHORE_TOOLSETS_NOTES_FOLDER="x").toolsets["notes"].options["depth"] == "x"


# Paths


def test_a_path_is_relative_to_the_file_that_names_it(place: Place) -> None:
    place.write_user("[toolsets.notes]\nfolder = 'u/../v'\n[server]\nroots = ['.']\n")
    deep = place.project / "deep"
    deep.mkdir()
    place.write("[toolsets.notes]\nmore = ['a', '/b', '..']\n")
    found = config.load(environ=place.environ, cwd=str(deep), toolsets=TOOLSETS)
    home = place.user_file.parent
    assert found.toolsets["notes"].options == {
        "folder": str(home / "v"),
        "more": [str(place.project / "a"), "/b", str(place.project.parent)],
    }
    assert found.server.roots == [str(home)]


def test_a_path_in_a_variable_or_a_flag_is_relative_to_the_working_directory(place: Place) -> None:
    found = options(place, {"toolsets.notes.folder": "f"}, LONGSHORE_TOOLSETS_NOTES_MORE="a b:/c")
    assert found.folder == str(place.project / "f")
    assert found.more == [str(place.project / "a b"), "/c"]
    assert load(place, {"server.roots": ["a:b", "/c"]}).server.roots == [str(place.project / "a:b"), "/c"]


def test_a_tilde_is_the_home(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    place.write("[toolsets.notes]\nfolder = '~/n'\n")
    assert options(place).folder == "/home/me/n"


def test_a_relative_path_needs_a_working_directory(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(ConfigError, match="--root: a relative path, and the working directory was deleted"):
        config.load({"server.roots": ["x"]}, environ=place.environ)


# Variables


def test_every_option_has_a_variable(place: Place) -> None:
    found = options(
        place,
        LONGSHORE_TOOLSETS_NOTES_MODE="write",
        LONGSHORE_TOOLSETS_NOTES_WORDS="a,b",
        LONGSHORE_TOOLSETS_NOTES_STRICT="yes",
        LONGSHORE_TOOLSETS_NOTES_DEPTH="4",
    )
    assert (found.mode, found.words, found.strict, found.depth) == ("Write", ["a", "b"], True, 4)
    assert options(place, name="a-b", LONGSHORE_TOOLSETS_A_B_DEPTH="5").depth == 5


def test_a_variable_of_a_known_toolset_is_listed_under_its_name(place: Place) -> None:
    found = load(place, LONGSHORE_TOOLSETS_A_B_TIMEOUT="5")
    assert found.origins == {"toolsets.a-b.timeout": Origin("env", "LONGSHORE_TOOLSETS_A_B_TIMEOUT")}


def test_a_mistyped_variable_is_an_error(place: Place) -> None:
    assert error(place, LONGSHORE_TOOLSETS_NOTES_FOLDR="x") == [
        "LONGSHORE_TOOLSETS_NOTES_FOLDR: no such variable; did you mean LONGSHORE_TOOLSETS_NOTES_FOLDER?"
    ]


def test_a_second_variable_sets_an_option_and_ours_wins_over_it(place: Place) -> None:
    place.write("[toolsets.notes]\nfolder = '/file'\n")
    second = load(place, NOTES_DIR="/second", NOTES_KEY="k")
    assert second.toolsets["notes"].options == {"folder": "/second", "api_key": "k"}
    assert second.origins["toolsets.notes.folder"] == Origin("env", "NOTES_DIR")
    assert options(place, NOTES_DIR="/second", LONGSHORE_TOOLSETS_NOTES_FOLDER="/ours").folder == "/ours"
    assert options(place, NOTES_DIR="").folder == "/file"
    assert options(place, NOTES_DIR="/second", LONGSHORE_TOOLSETS_NOTES_FOLDER="").folder == "/second"


def test_a_second_variable_may_begin_like_ours(place: Place) -> None:
    class Other(Toolset):
        Options = defstruct("OtherOptions", [("folder", Annotated[str, Variable("LONGSHORE_OTHER")], "")])

    environ, toolsets = {**place.environ, "LONGSHORE_OTHER": "x"}, {"other": ToolsetHandle(Other)}
    found = config.load(environ=environ, cwd=str(place.project), toolsets=toolsets)
    assert found.toolsets["other"].options == {"folder": "x"}


def test_a_wrong_second_variable_is_named(place: Place) -> None:
    assert "NOTES_KEY: expected UTF-8 text" in error(place, NOTES_KEY="\udcff")


# Defaults of a profile


def test_the_defaults_of_a_profile_are_below_every_other_source(place: Place) -> None:
    defaults = {"telemetry.records": False, "server.timeout": 7, "toolsets.notes.most_bytes": "1MB"}
    place.write("[server]\ntimeout = 9\n")

    def loaded() -> Config:
        return config.load(
            environ=place.environ,
            cwd=str(place.project),
            toolsets=TOOLSETS,
            defaults=defaults,
            defaults_name="profile bb",
        )

    found = loaded()
    assert (found.telemetry.records, found.server.timeout) == (False, 9.0)
    assert found.toolsets["notes"].options == {"most_bytes": 1_000_000}
    shown = {row[0]: row[2] for row in rows(list_values(found, TOOLSETS), with_origin=True)}
    assert shown["telemetry.records"] == "profile bb"
    assert shown["server.timeout"] == "project longshore.toml:2"
    assert shown["server.eof_grace"] == "default"
    defaults["server.timout"] = 1
    with pytest.raises(ConfigError, match=r"^profile bb: server\.timout: no such key; did you mean timeout\?$"):
        loaded()


# The offer


@pytest.mark.parametrize(
    ("only", "table", "enabled"),
    [(None, None, True), (None, False, False), (["s"], None, True), (["s"], False, True), (["other"], True, False)],
)
def test_the_list_of_toolsets_wins_over_their_tables(only: list[str] | None, table: Any, enabled: bool) -> None:
    found = Config(
        server=config.ServerConfig(toolsets=only), toolsets={"s": config.ToolsetConfig(enabled=table)}, tools={}
    )
    assert config.toolset_enabled(found, "s") is enabled
    assert config.tool_enabled(found, "t", "s") is enabled
    assert config.tool_enabled(found, "t", None)


# Declaring


def test_options_that_must_be_set_are_named(place: Place) -> None:
    class Needed(Struct):
        folder: str
        most: int

    with pytest.raises(ConfigError) as caught:
        config.toolset_options(load(place), "a-b", Needed)
    assert str(caught.value).splitlines() == [
        "toolsets.a-b.folder: has to be set, in [toolsets.a-b] or by LONGSHORE_TOOLSETS_A_B_FOLDER",
        "toolsets.a-b.most: has to be set, in [toolsets.a-b] or by LONGSHORE_TOOLSETS_A_B_MOST",
    ]


def test_a_check_of_the_author_is_a_configuration_error(place: Place) -> None:
    class Checked(Struct):
        depth: int = 3

        def __post_init__(self) -> None:
            raise ValueError("depth and width don't fit")

    with pytest.raises(ConfigError, match=r"^toolsets\.notes: depth and width don't fit$"):
        config.toolset_options(load(place), "notes", Checked)


def test_an_option_can_not_have_the_name_of_a_common_key() -> None:
    class Taken(Toolset):
        class Options(Struct):
            timeout: float = 1.0

    with pytest.raises(RegistrationError, match="has an option 'timeout', which is a setting of every toolset"):
        ToolsetHandle(Taken)


@pytest.mark.parametrize(
    "hint",
    [
        tuple[int, int],
        Literal[1, 2],
        int | str,
        Annotated[int, Meta(gt=0)],
        Annotated[str, Meta(pattern="a")],
        Annotated[Folder, Meta(max_length=9, extra={"a": 1})],
    ],
    ids=str,
)
def test_a_type_that_no_option_has_is_refused(place: Place, hint: Any) -> None:
    class Malformed(Toolset):
        Options = defstruct("MalformedOptions", [("pair", hint, None)])

    place.write("[toolsets.malformed]\npair = 1\n")
    with pytest.raises(RegistrationError, match=r"MalformedOptions\.pair\n.*\n  fix: take bool, int"):
        config.load(environ=place.environ, cwd=str(place.project), toolsets={"malformed": ToolsetHandle(Malformed)})


def test_options_that_are_no_struct_are_refused() -> None:
    class Malformed(Toolset):
        Options = dict  # type: ignore[assignment]

    with pytest.raises(RegistrationError, match="<class 'dict'> is no Struct"):
        ToolsetHandle(Malformed)


# For people


def test_every_option_of_a_server_is_listed_with_its_origin(place: Place) -> None:
    place.write("[toolsets.notes]\nmost_bytes = '1MiB'\napi_key = 's3cret'\nenabled = true\n")
    found = {row[0]: row[1:] for row in rows(list_values(load(place), TOOLSETS), with_origin=True)}
    assert found["toolsets.notes.most_bytes"] == ["1048576", "project longshore.toml:2"]
    assert found["toolsets.notes.api_key"] == ["…", "project longshore.toml:3"]
    assert found["toolsets.notes.enabled"] == ["true", "project longshore.toml:4"]
    assert found["toolsets.notes.folder"] == ['"notes"', "default"]
    assert found["toolsets.a-b.api_key"] == ["unset", "default"]
    assert not {"toolsets.notes.timeout", "toolsets.notes.groups"} & found.keys()


def test_the_schema_and_the_page_hold_the_options() -> None:
    made = jsonschema_rs.Draft202012Validator(schema(TOOLSETS))
    assert made.is_valid({"toolsets": {"notes": {"most_bytes": "10MB", "enabled": True, "more": ["x"]}}})
    assert made.is_valid({"toolsets": {"unknown": {"x": 1}}})
    for wrong in ({"most_bytes": "10M"}, {"foldr": "x"}, {"depth": 10}, {"mode": "write"}):
        assert not made.is_valid({"toolsets": {"notes": wrong}})
    page = markdown(TOOLSETS)
    assert "### `[toolsets.notes]`\n\nNotes on disk.\n" in page
    assert '| `folder` | a path | "notes" | Where the notes are stored. |' in page
    assert f"| `most_bytes` | {BYTES} | 10000000 |  |" in page
    assert "`LONGSHORE_TOOLSETS_A_B_ENABLED`" in page
