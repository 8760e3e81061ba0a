"""The settings of the console: what is shown, what may be changed, and what becomes of the files."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from console.site import TOKEN, Site, opened
from longshore.config.sections import Config, fixed_part, is_fixed
from longshore.console.setting_files import FileChanged, SettingFile, edit_json, edit_toml
from longshore.errors import ConfigError

COMMENTED = """# The shop's settings
[server]          # of all tools
timeout = 20      # seconds
# expose_errors = true

[tools.add]
timeout = 3
"""


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Site]:
    with opened(tmp_path, COMMENTED) as found:
        yield found


def key(settings: Any, name: str) -> Any:
    groups = [*settings["sections"], *settings["toolsets"], *settings["tools"]]
    groups += [tool for toolset in settings["toolsets"] for tool in toolset["tools"]]
    return next(each for group in groups for each in group["keys"] if each["key"] == name)


def change(site: Site, **more: Any) -> Any:
    return site.post("settings", {"changes": more.pop("changes"), **more})


# -- what is shown


def test_every_key_has_its_value_origin_and_documentation(shop: Site) -> None:
    settings = shop.get("settings").json
    assert settings["file"] == str(shop.settings_file)
    assert settings["writable"] is True
    timeout = key(settings, "server.timeout")
    assert (timeout["type"], timeout["value"], timeout["default"]) == ("timeout", 20.0, 30.0)
    assert timeout["origin"].startswith("project ")
    assert timeout["origin"].endswith("longshore.toml:3")
    assert timeout["locked"] is None
    for section in settings["sections"]:
        for each in section["keys"]:
            assert each["docs"], each["key"]
            assert each["type"] in ("bool", "int", "seconds", "timeout", "size", "choice", "text", "list", "folders")
    assert key(settings, "tools.add.timeout")["value"] == 3.0
    assert set(settings["main"]) <= {each["key"] for section in settings["sections"] for each in section["keys"]}


def test_secrets_are_neither_shown_nor_set(shop: Site) -> None:
    answer = shop.get("settings")
    assert TOKEN.encode() not in answer.body
    token = key(answer.json, "auth.token")
    assert token["value"] == "…"
    assert token["locked"]
    refused = change(shop, changes={"http.state_key": "x" * 40})
    assert refused.status == 422
    assert "secret" in refused.json["problems"][0]["text"]


def test_what_a_flag_or_variable_sets_is_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGSHORE_SERVER_TIMEOUT", "9")
    monkeypatch.setenv("LONGSHORE_TOOLS_ADD_TIMEOUT", "8")
    with opened(tmp_path, COMMENTED, session_ttl=900.0) as site:
        settings = site.get("settings").json
        assert key(settings, "server.timeout")["locked"] == "set by the variable LONGSHORE_SERVER_TIMEOUT"
        assert key(settings, "tools.add.timeout")["locked"] == "set by the variable LONGSHORE_TOOLS_ADD_TIMEOUT"
        assert "command line" in key(settings, "http.session_ttl")["locked"]
        refused = change(site, changes={"server.timeout": 5, "server.debug": True})
        assert refused.status == 422
        [problem] = refused.json["problems"]
        assert problem["key"] == "server.timeout"
        assert "LONGSHORE_SERVER_TIMEOUT" in problem["text"]
        assert site.settings_file.read_text() == COMMENTED


# -- what is written


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("server.expose_errors", True),
        ("server.timeout", 12.5),
        ("server.timeout", False),
        ("server.log_level", "debug"),
        ("server.instructions", 'Say "hello"\nand ✓'),
        ("limits.running", 32),
        ("limits.frame_bytes", "8MiB"),
        ("server.eof_grace", 0),
        ("http.origins", ["http://a.example", "http://b.example"]),
        ("server.toolsets", []),
        ("server.roots", ["/tmp"]),
        ("tools.add.enabled", False),
        ("tools.add.result_bytes", 4096),
        ("lint.strict", True),
    ],
)
def test_a_value_of_each_type_is_written_and_read_back(shop: Site, name: str, value: Any) -> None:
    answer = change(shop, changes={name: value})
    assert answer.status == 200, answer.json
    assert answer.json["applied"] + answer.json["waiting"] == [name]
    node: Any = tomllib.loads(shop.settings_file.read_text())
    for part in name.split("."):
        node = node[part]
    assert node == value


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("server.expose_errors", "yes"),
        ("server.timeout", -1),
        ("server.timeout", "soon"),
        ("server.log_level", "loud"),
        ("server.instructions", 3),
        ("limits.running", 0),
        ("limits.running", 1.5),
        ("limits.depth", 513),
        ("limits.frame_bytes", "8 apples"),
        ("http.origins", ["a", 3]),
        ("http.port", 65_536),
        ("server.nothing", 1),
        ("nothing.at_all", 1),
        ("server", {}),
        ("tools.nothing.enabled", False),
        ("toolsets.nothing.enabled", False),
        ("tokens.eve.token", "x" * 40),
        ("lint.waive", {"E04": "because"}),
        ("server.timeout\n[auth]\nmode", "off"),
        ("a = 1\nb", 1),
        ("x" * 400, 1),
        ("", 1),
    ],
)
def test_a_wrong_value_or_key_is_refused_and_nothing_written(shop: Site, name: str, value: Any) -> None:
    answer = change(shop, changes={name: value, "server.debug": True})
    assert answer.status == 422
    assert [each["key"] for each in answer.json["problems"]] == [name[:300]]
    assert shop.settings_file.read_text() == COMMENTED


@pytest.mark.parametrize("body", [b"[]", b"{", b"3", b'{"changes": 3}', b'{"changes": {}, "x": 1}', b"\xff"])
def test_a_body_that_is_no_change_is_refused(shop: Site, body: bytes) -> None:
    assert shop.post("settings", body).status == 400


def test_no_changes_or_too_many_are_refused(shop: Site) -> None:
    assert change(shop, changes={}).status == 422
    assert change(shop, changes={f"tools.t{n}.enabled": True for n in range(501)}).status == 422
    assert shop.post("settings", b'{"changes": {"a": "' + b"x" * 300_000 + b'"}}').status == 413


def test_a_problem_of_the_whole_configuration_is_reported_with_the_file_s_own_name(shop: Site) -> None:
    answer = change(shop, changes={"server.roots": ["/no/such/folder"]})
    assert answer.status == 422
    [problem] = answer.json["problems"]
    assert "/no/such/folder" in problem["text"]
    assert str(shop.settings_file) in problem["text"]
    assert shop.settings_file.read_text() == COMMENTED
    assert [each.name for each in shop.folder.iterdir()] == ["longshore.toml"], "no draft is left"


def test_comments_and_order_stay(shop: Site) -> None:
    assert change(shop, changes={"server.timeout": 30, "tools.add.enabled": False, "http.rate": 5}).status == 200
    text = shop.settings_file.read_text()
    for comment in ("# The shop's settings", "# of all tools", "# seconds", "# expose_errors = true"):
        assert comment in text
    assert text.index("[server]") < text.index("[tools.add]")
    assert tomllib.loads(text) == {
        "server": {"timeout": 30},
        "tools": {"add": {"timeout": 3, "enabled": False}},
        "http": {"rate": 5},
    }


def test_null_takes_a_key_out(shop: Site) -> None:
    assert change(shop, changes={"server.timeout": None, "http.rate": None}).status == 200
    assert tomllib.loads(shop.settings_file.read_text()) == {"server": {}, "tools": {"add": {"timeout": 3}}}
    settings = shop.get("settings").json
    assert key(settings, "server.timeout")["value"] == 30.0
    assert key(settings, "server.timeout")["origin"] == "default"


def test_the_file_is_created_where_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    place = tmp_path / "longshore.toml"
    files = SettingFile(str(place), edit_toml)
    with files.draft({("server", "timeout"): 5}) as draft:
        draft.save()
    assert tomllib.loads(place.read_text()) == {"server": {"timeout": 5}}
    assert place.stat().st_mode & 0o777 == 0o666 & ~_umask()


def _umask() -> int:
    found = os.umask(0)
    os.umask(found)
    return found


def test_a_link_stays_one(tmp_path: Path) -> None:
    real, link = tmp_path / "real.toml", tmp_path / "longshore.toml"
    real.write_text(COMMENTED)
    link.symlink_to(real)
    with SettingFile(str(link), edit_toml).draft({("server", "timeout"): 5}) as draft:
        draft.save()
    assert link.is_symlink()
    assert "timeout = 5" in real.read_text()


# -- at once, or at the next start


def test_what_a_running_server_can_change_is_effective_at_once(shop: Site) -> None:
    assert b'"name":"add"' in shop.server.send("GET", "/tools", [("Authorization", f"Bearer {TOKEN}")]).finish().body
    answer = change(shop, changes={"tools.add.enabled": False, "server.timeout": 7})
    assert sorted(answer.json["applied"]) == ["server.timeout", "tools.add.enabled"]
    assert answer.json["waiting"] == []
    offered = shop.server.look(lambda: sorted(shop.app.engine.tools))
    assert offered == ["fail", "wait"]
    assert shop.server.look(lambda: shop.app.engine.tools["wait"].limit) == 7
    settings = shop.get("settings").json
    assert next(tool for tool in settings["tools"] if tool["name"] == "add")["enabled"] is False
    assert change(shop, changes={"tools.add.enabled": None}).status == 200
    assert "add" in shop.server.look(lambda: list(shop.app.engine.tools))


def test_what_waits_for_the_next_start_is_said(shop: Site) -> None:
    answer = change(shop, changes={"http.port": 9200, "server.expose_errors": True})
    assert (answer.json["waiting"], answer.json["applied"]) == (["http.port"], ["server.expose_errors"])
    assert key(shop.get("settings").json, "http.port")["waits"] is True


def test_keys_that_wait_are_those_of_the_fixed_part() -> None:
    """A change of any other key of [server] leaves the part that a running server can't change as it is."""
    from msgspec.structs import replace

    config = Config()
    for name, value in {"expose_errors": True, "instructions": "x", "schemas": "claude", "roots": ["/"]}.items():
        changed = replace(config, server=replace(config.server, **{name: value}))
        assert (fixed_part(changed) != fixed_part(config)) is is_fixed(("server", name)) is False
    for name, value in {"log_level": "debug", "log_format": "json", "debug": True, "dialect": "bb"}.items():
        changed = replace(config, server=replace(config.server, **{name: value}))
        assert (fixed_part(changed) != fixed_part(config)) is is_fixed(("server", name)) is True
    assert is_fixed(("toolsets", "terminal", "policy"))
    assert not is_fixed(("toolsets", "terminal", "enabled"))
    assert not is_fixed(("tools", "add", "timeout"))


# -- concurrent writers


def test_a_page_that_has_seen_an_older_file_is_refused(shop: Site) -> None:
    version = shop.get("settings").json["version"]
    shop.settings_file.write_text(COMMENTED + "# by an editor\n")
    answer = change(shop, changes={"server.timeout": 5}, version=version)
    assert answer.status == 409
    assert shop.settings_file.read_text() == COMMENTED + "# by an editor\n"
    version = shop.get("settings").json["version"]
    assert change(shop, changes={"server.timeout": 5}, version=version).status == 200


def test_writers_at_once_lose_nothing(shop: Site) -> None:
    names = [f"limits.{name}" for name in ("running", "parked", "listens", "notes", "batch", "page", "questions")]
    with ThreadPoolExecutor(len(names)) as pool:
        answers = list(pool.map(lambda name: change(shop, changes={name: 60}).status, names))
    assert set(answers) == {200}
    written = tomllib.loads(shop.settings_file.read_text())["limits"]
    assert written == {name.removeprefix("limits."): 60 for name in names}


def test_a_file_that_was_written_while_a_draft_was_checked_is_not_overwritten(tmp_path: Path) -> None:
    place = tmp_path / "longshore.toml"
    place.write_text(COMMENTED)
    with SettingFile(str(place), edit_toml).draft({("server", "timeout"): 5}) as draft:
        place.write_text("# another writer\n")
        with pytest.raises(FileChanged):
            draft.save()
    assert place.read_text() == "# another writer\n"


def test_a_read_only_place_is_shown_and_refused(tmp_path: Path) -> None:
    with opened(tmp_path, COMMENTED, config_file="/dev/null") as site:
        settings = site.get("settings").json
        assert settings["writable"] is False
        assert settings["why_not"]
        assert change(site, changes={"server.timeout": 5}).status == 403


# -- editing texts


@pytest.mark.parametrize(
    "text",
    [
        "server.timeout = 3\n",
        "server = {timeout = 3}\n",
        "[server]\ntimeout = 3\n[tools]\nadd = {enabled = true}\n",
        "[server]\ntimeout = 3\n\n[tools.x]\nenabled = true\n\n[toolsets.y]\nenabled = true\n",
        "[tools]\n[tools.x]\nenabled = true\n[server]\ntimeout = 3\n[tools.y]\nenabled = true\n",
        '[tools."a.b"]\nenabled = true\n[server]\ntimeout = 3\n',
        "\ufeff[server]\r\ntimeout = 3\r\n".removeprefix("\ufeff"),
    ],
)
def test_toml_of_any_style_can_be_edited(text: str) -> None:
    made = edit_toml(text, {("server", "timeout"): 9, ("tools", "a.b", "timeout"): 2, ("tools", "x", "enabled"): None})
    tables = tomllib.loads(made)
    assert tables["server"]["timeout"] == 9
    assert tables["tools"]["a.b"]["timeout"] == 2
    assert "enabled" not in tables["tools"].get("x", {})


def test_a_text_that_is_no_toml_is_not_edited() -> None:
    with pytest.raises(ConfigError, match="edit it by hand"):
        edit_toml("[server\n", {("server", "timeout"): 1})


def test_json_keeps_its_indent_and_order() -> None:
    text = '{\n    "transport": "http",\n    "tools": {"terminal": {"timeout": 5}}\n}\n'
    made = edit_json(text, {("timeout",): 9, ("tools", "browser", "timeout"): 4, ("transport",): None})
    assert made.startswith('{\n    "tools"')
    assert '"terminal"' in made
    assert edit_json("", {("timeout",): 1}) == '{\n  "timeout": 1\n}\n'
    with pytest.raises(ConfigError):
        edit_json("[]", {("timeout",): 1})
