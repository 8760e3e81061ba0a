"""Toolsets that are added as classes: made with their options when the configuration has been read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from longshore import ConfigError, Server, Toolset, resource, tool
from longshore.config import Config, ToolsetConfig
from talk import NEWEST, Client, Refused, call, converse, result, text

from . import optional


class NotesOptions(Struct, frozen=True, kw_only=True):
    folder: str = "notes"
    depth: int = 1


class Notes(Toolset):
    """`made` counts the calls of `__init__`."""

    Options = NotesOptions
    made = 0

    def __init__(self, options: NotesOptions) -> None:
        if options.depth < 0:
            raise ValueError("depth is below the ground")
        type(self).made += 1
        self.options = options

    @tool(run="inline")
    def where(self) -> str:
        return self.options.folder

    @resource("notes://where")
    def page(self) -> str:
        return self.options.folder


class Owned(Notes):
    def __init__(self, options: NotesOptions, app: Server) -> None:
        super().__init__(options)
        self.app = app

    @tool(run="inline")
    def owner(self) -> str:
        return self.app.name


def test_a_class_that_takes_a_second_argument_gets_the_server() -> None:
    app = Server("owner")
    app.add_toolset(Owned)
    assert text(call(app, "owner")) == "owner"


class Plain(Toolset):
    def __init__(self) -> None:
        self.word = "plain"

    @tool(run="inline")
    def say(self) -> str:
        return self.word


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(Notes, "made", 0)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in [name for name in os.environ if name.startswith("LONGSHORE_") or name == "XDG_CONFIG_HOME"]:
        monkeypatch.delenv(name)
    (tmp_path / ".git").mkdir()
    return tmp_path


def said(app: Server, name: str) -> str:
    return str(call(app, name, {}, NEWEST)["content"][0]["text"])


def server(*toolsets: Any, config: Config | None = None) -> Server:
    app = Server("t")
    for each in toolsets:
        app.add_toolset(each)
    if config is not None:
        app.config = config
    return app


def test_a_class_is_declared_at_once_and_initialised_on_first_use_of_the_engine() -> None:
    app = server(Notes, Plain)
    assert [*app.catalog.tools] == ["where", "say"]
    assert Notes.made == 0
    assert [said(app, "where"), said(app, "where"), said(app, "say")] == ["notes", "notes", "plain"]
    assert Notes.made == 1


def test_a_class_gets_the_options_of_the_configuration(project: Path) -> None:
    (project / "longshore.toml").write_text("[toolsets.notes]\nfolder = 'elsewhere'\n")
    app = server(Notes)
    app.asgi()
    assert said(app, "where") == "elsewhere"


def test_an_instance_keeps_the_options_of_its_author(project: Path) -> None:
    (project / "longshore.toml").write_text("[toolsets.notes]\nfolder = 'elsewhere'\n")
    app = server(Notes(NotesOptions(folder="mine")))
    with pytest.raises(ConfigError, match=r"^longshore.toml:2: toolsets\.notes\.folder: no such key"):
        app.asgi()
    (project / "longshore.toml").write_text("")
    app.asgi()
    assert said(app, "where") == "mine"


def test_an_error_of_init_names_the_toolset_and_the_line(project: Path) -> None:
    class Needy(Toolset):
        def __init__(self, app: Server) -> None: ...

    (project / "longshore.toml").write_text("[toolsets.notes]\ndepth = -1\n")
    with pytest.raises(ConfigError) as caught:
        server(Notes, Needy).asgi()
    first, second = str(caught.value).splitlines()
    assert first.startswith("the toolset 'notes' could not be initialised: ValueError: depth is below the ground, at ")
    assert "test_toolset_options.py:" in first
    assert second.startswith("the toolset 'needy' could not be initialised: TypeError: ")
    assert "missing 1 required positional argument: 'app'" in second
    assert second.endswith("__init__(self, app)")


@pytest.mark.parametrize("way", ["its table", "the list of toolsets"])
def test_a_disabled_toolset_does_not_stop_the_start(project: Path, way: str) -> None:
    table = "[toolsets.notes]\ndepth = -1\n" + ("enabled = false\n" if way == "its table" else "")
    (project / "longshore.toml").write_text(table + ("[server]\ntoolsets = ['plain']\n" if "list" in way else ""))
    app = server(Notes, Plain)
    app.asgi()
    assert [tool["name"] for tool in result(app, "tools/list", {}, NEWEST)["tools"]] == ["say"]


def test_a_disabled_toolset_is_initialised_when_it_is_first_used() -> None:
    app = server(Notes, config=Config(toolsets={"notes": ToolsetConfig(enabled=False, options={"folder": "late"})}))

    async def script(client: Client) -> None:
        assert Notes.made == 0
        app.enable("notes")
        found = await client.request("resources/read", {"uri": "notes://where"})
        assert found["contents"][0]["text"] == "late"
        app.engine.reconfigure(Config())
        assert text(await client.call_tool("where")) == "late"
        assert Notes.made == 1

    converse(app, script)


def test_a_disabled_toolset_with_a_wrong_option_is_unavailable_when_it_is_enabled(project: Path) -> None:
    (project / "longshore.toml").write_text("[toolsets.notes]\ndepth = -1\nenabled = false\n")
    app = server(Notes)
    app.asgi()
    app.enable("notes")
    with pytest.raises(Refused, match="the tool 'where' is unavailable: the toolset 'notes' could not be initialised"):
        said(app, "where")


def test_a_class_that_is_added_while_the_server_runs_is_initialised_first(project: Path) -> None:
    (project / "longshore.toml").write_text("[toolsets.notes]\nfolder = 'later'\n[toolsets.optional]\nwrod = 'x'\n")
    app = server()
    app.asgi()
    app.add_toolset(Notes)
    assert said(app, "where") == "later"
    with pytest.raises(
        ConfigError, match=r"longshore.toml:4: toolsets\.optional\.wrod: no such key; did you mean word"
    ):
        app.add_toolset(optional.Optional)
    assert [*app.catalog.toolsets] == ["notes"]
    assert [*app.catalog.tools] == ["where"]


def test_reload_gives_the_new_class_the_same_options(project: Path) -> None:
    (project / "longshore.toml").write_text("[toolsets.optional]\nword = 'set'\n")
    app = server(optional.Optional)
    app.asgi()
    first = said(app, "word")
    new = app.reload("optional")
    assert type(new) is optional.Optional
    second = said(app, "word")
    assert (first.split()[0], second.split()[0]) == ("set", "set")
    assert first != second


def test_replace_takes_a_class(project: Path) -> None:
    app = server(Notes(NotesOptions(folder="old")))
    assert said(app, "where") == "old"
    app.add_toolset(Notes, replace=True)
    assert said(app, "where") == "notes"
