"""The configuration files of other clients, and their entries as targets of ours."""

from __future__ import annotations

import json
import os
import threading
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from longshore.client import Client, configs
from longshore.client.configs import (
    ConfigFile,
    ConfiguredServer,
    NoSuchServer,
    find_server,
    look_up,
    read_servers,
    url_of,
)
from longshore.errors import ConfigError


class Home:
    """A home, a project in it, and what is in their files."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.project = self.home / "project"
        (self.project / ".git").mkdir(parents=True)
        self.environ = {"HOME": str(self.home)}

    def write(self, path: str, content: Any) -> Path:
        file = self.home / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content if isinstance(content, str) else json.dumps(content))
        return file

    def find(self, name: str, config: str | None = None, folder: Path | None = None) -> dict[str, Any]:
        return find_server(name, config, folder=str(folder or self.project), environ=self.environ)

    def names(self, config: str | None = None) -> set[str]:
        return set(read_servers(config, folder=str(self.project), environ=self.environ))


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


FILES = [
    ("project/.mcp.json", "mcpServers"),
    ("project/.cursor/mcp.json", "mcpServers"),
    ("project/.vscode/mcp.json", "servers"),
    ("project/.codex/config.toml", "mcp_servers"),
    ("project/.gemini/settings.json", "mcpServers"),
    ("project/.zed/settings.json", "context_servers"),
    (".claude.json", "mcpServers"),
    (".cursor/mcp.json", "mcpServers"),
    (".config/Code/User/mcp.json", "servers"),
    (".config/Claude/claude_desktop_config.json", "mcpServers"),
    (".codex/config.toml", "mcp_servers"),
    (".gemini/settings.json", "mcpServers"),
    (".codeium/windsurf/mcp_config.json", "mcpServers"),
    (".config/zed/settings.json", "context_servers"),
    (".config/goose/config.yaml", "extensions"),
]


def put(home: Home, path: str, key: str, command: str) -> None:
    text = f'[{key}.here]\ncommand = "{command}"\nargs = ["x"]\n'
    program = "cmd" if key == "extensions" else "command"
    home.write(path, text if path.endswith(".toml") else {key: {"here": {program: command, "args": ["x"]}}})


@pytest.mark.parametrize(("path", "key"), FILES)
def test_every_file_is_read(home: Home, path: str, key: str) -> None:
    put(home, path, key, "run")
    found = home.find("here")
    assert (found["command"], found["args"]) == ("run", ["x"])
    assert home.names() == {"here"}


def test_the_first_file_wins(home: Home) -> None:
    for n in reversed(range(len(FILES))):
        put(home, *FILES[n], f"run{n}")
        assert home.find("here")["command"] == f"run{n}"


def test_a_project_is_found_from_within_and_its_servers_run_there(home: Home) -> None:
    home.write("project/.mcp.json", {"mcpServers": {"a": {"command": "x"}, "b": {"command": "x", "cwd": "sub"}}})
    inner = home.project / "deep/er"
    inner.mkdir(parents=True)
    assert home.find("a", folder=inner)["cwd"].rstrip("/") == str(home.project)
    assert home.find("b", folder=inner)["cwd"] == str(home.project / "sub")


def test_above_the_project_nothing_is_looked_for(home: Home) -> None:
    home.write(".mcp.json", {"mcpServers": {"a": {"command": "x"}}})
    with pytest.raises(ConfigError, match="no server 'a'"):
        home.find("a")


def test_claude_keeps_servers_for_one_project(home: Home) -> None:
    home.write(
        ".claude.json",
        {
            "mcpServers": {"a": {"command": "user"}, "b": {"command": "user"}},
            "projects": {str(home.project): {"mcpServers": {"a": {"command": "local"}}}, "/else": {"mcpServers": 3}},
        },
    )
    assert home.find("a")["command"] == "local"
    assert home.find("b")["command"] == "user"


def test_folders_from_the_environment(home: Home) -> None:
    home.write("c/.claude.json", {"mcpServers": {"a": {"command": "x"}}})
    home.write("d/config.toml", '[mcp_servers.b]\ncommand = "y"\n')
    home.environ |= {"CLAUDE_CONFIG_DIR": str(home.home / "c"), "CODEX_HOME": str(home.home / "d")}
    assert home.names() == {"a", "b"}


@pytest.mark.parametrize(
    ("variable", "file"),
    [
        ("XDG_CONFIG_HOME", "Claude/claude_desktop_config.json"),
        ("CLAUDE_CONFIG_DIR", ".claude.json"),
        ("CODEX_HOME", "config.toml"),
    ],
)
def test_a_relative_folder_leads_into_no_project(
    home: Home, monkeypatch: pytest.MonkeyPatch, variable: str, file: str
) -> None:
    """An entry of a project's file is marked as the project's."""
    put(home, f"project/conf/{file}", "mcp_servers" if file.endswith(".toml") else "mcpServers", "run")
    monkeypatch.chdir(home.project)
    home.environ[variable] = "conf"
    assert home.names() == set()
    home.environ[variable] = str(home.project / "conf")
    assert home.names() == {"here"}


# -- variables


def expanded(value: Any, **environ: str) -> Any:
    listed = ConfiguredServer("s", ConfigFile("f.json", folder="/work/it"), {"command": "x", "args": [value]})
    return listed.entry({"HOME": "/me", **environ})["args"][0]


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("${A}", "1"),
        ("x${A}y${A}", "x1y1"),
        ("${env:A}", "1"),
        ("${A:-d}", "1"),
        ("${B:-d}", "d"),
        ("${B:-}", ""),
        ("${EMPTY:-d}", "d"),
        ("${EMPTY}", ""),
        ("${workspaceFolder}/a", "/work/it/a"),
        ("${workspaceFolderBasename}", "it"),
        ("${userHome}", "/me"),
        ("$A", "$A"),
        ("${}", "${}"),
        ("${a b}", "${a b}"),
        ("${NESTED}", "${A}"),
    ],
)
def test_variables(text: str, meant: str) -> None:
    assert expanded(text, A="1", EMPTY="", NESTED="${A}") == meant


@pytest.mark.parametrize("text", ["${GONE}", "${env:GONE}", "a${GONE}b"])
def test_a_variable_that_is_not_set_is_named(text: str) -> None:
    with pytest.raises(ConfigError, match=r"f\.json: s\.args\[0\]: the variable GONE is not set"):
        expanded(text)


def test_vscode_input_variables_are_refused() -> None:
    with pytest.raises(ConfigError, match="a question to a person"):
        expanded("${input:key}")


def test_variables_anywhere_in_the_entry() -> None:
    raw = {"url": "${U}", "headers": {"A": "Bearer ${T}"}, "env": {"X": "${T}"}, "n": 3}
    entry = ConfiguredServer("s", ConfigFile("f"), raw).entry({"U": "http://x", "T": "t"})
    assert entry == {"url": "http://x", "headers": {"A": "Bearer t"}, "env": {"X": "t"}, "n": 3}


def test_codex_expands_no_variables_and_has_its_own_header_keys(home: Home) -> None:
    home.write(
        ".codex/config.toml",
        """
        [mcp_servers.far]
        url = "https://x/mcp"
        bearer_token_env_var = "TOKEN"
        http_headers = { A = "${B}" }
        env_http_headers = { C = "D" }
        """,
    )
    with pytest.raises(ConfigError, match="the variable D is not set; it holds the header C"):
        home.find("far")
    home.environ |= {"TOKEN": "t", "D": "d"}
    assert home.find("far")["headers"] == {"A": "${B}", "C": "d", "Authorization": "Bearer t"}


def test_goose_has_keys_of_its_own(home: Home) -> None:
    text = "extensions:\n  far: {type: streamable_http, uri: https://x/mcp, headers: {A: b}}\n"
    home.write(".config/goose/config.yaml", f"{text}  near:\n    cmd: x\n    envs: {{K: v}}\n")
    assert url_of(home.find("far")) == "https://x/mcp" and home.find("far")["headers"] == {"A": "b"}
    assert (home.find("near")["command"], home.find("near")["env"]) == ("x", {"K": "v"})


def test_a_file_of_comments_names_no_servers(home: Home) -> None:
    home.write(".config/zed/settings.json", "// Zed settings\n")
    assert home.names(str(home.home / ".config/zed/settings.json")) == set()


def test_half_of_a_surrogate_pair_does_no_harm(home: Home) -> None:
    """Claude Code cuts prompts in its file, where they end."""
    home.write(".claude.json", '{"mcpServers": {"a": {"command": "x"}}, "history": ["cut \\ud83d"]}')
    assert home.find("a")["command"] == "x"


# -- what may be wrong


def test_names_are_suggested(home: Home) -> None:
    home.write("project/.mcp.json", {"mcpServers": {"github": {"command": "x"}, "jira": {"command": "x"}}})
    with pytest.raises(ConfigError, match="did you mean 'github'"):
        home.find("gihub")
    with pytest.raises(ConfigError, match="there are github, jira"):
        home.find("zzzzzz")


def test_a_file_with_comments_is_read(home: Home) -> None:
    text = """{
        // a comment, with "quotes"
        "servers": { /* another */ "a": {"command": "x//y", "args": ["/* no */", ",]",],}, },
    }"""
    home.write("project/.vscode/mcp.json", "\ufeff" + text)
    assert home.find("a")["args"] == ["/* no */", ",]"]
    assert home.find("a")["command"] == "x//y"


@pytest.mark.parametrize("text", ["{", "[]", '{"mcpServers": []}', "\xff", "[" * 100_000])
def test_a_broken_file_is_not_passed_over(home: Home, text: str) -> None:
    (home.project / ".mcp.json").write_bytes(text.encode("latin-1"))
    home.write(".claude.json", {"mcpServers": {"a": {"command": "x"}}})
    with pytest.raises(ConfigError, match=r"project/\.mcp\.json: "):
        home.find("a")
    assert home.names() == {"a"}, "for a list it is"


@pytest.mark.parametrize("text", ["", "  \n", "{}", '{"mcpServers": null}', '{"mcpServers": {"b": 3}}'])
def test_an_empty_file_is_none(home: Home, text: str) -> None:
    home.write("project/.mcp.json", text)
    home.write(".claude.json", {"mcpServers": {"a": {"command": "x"}}})
    assert home.find("a")["command"] == "x"
    assert home.names() == {"a"}


def test_a_named_file_is_the_only_one(home: Home) -> None:
    home.write(".claude.json", {"mcpServers": {"a": {"command": "x"}}})
    config = str(home.write("mine.json", {"mcpServers": {"b": {"command": "y"}}, "servers": {"c": {"url": "z"}}}))
    assert home.names(config) == {"b", "c"}
    assert home.find("b", config) == {"command": "y"}
    with pytest.raises(ConfigError, match=r"no server 'a' in .*mine\.json"):
        home.find("a", config)
    with pytest.raises(ConfigError, match="no such file"):
        home.names(config + "x")


def test_a_pipe_in_place_of_a_config_file_does_not_block(home: Home) -> None:
    os.mkfifo(home.project / ".mcp.json")
    assert home.names() == set()


def test_a_strangers_file_is_read_only_if_it_is_named(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    file = home.write("project/.mcp.json", {"mcpServers": {"a": {"command": "x"}}})
    if os.geteuid() == 0:
        os.chown(file, 12345, 12345)
    else:
        me = os.geteuid()
        monkeypatch.setattr(os, "geteuid", lambda: me + 1)
    assert home.names() == set()
    assert home.names(str(file)) == {"a"}


def test_the_owner_of_a_config_file_is_checked_on_the_opened_file(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stranger may put another in its place meanwhile, such as a way to one of root's."""
    file = home.write("project/.mcp.json", {"mcpServers": {"a": {"command": "x"}}})
    if os.geteuid() == 0:
        os.chown(file, 12345, 12345)
    else:
        me = os.geteuid()
        monkeypatch.setattr(os, "geteuid", lambda: me + 1)
    way = home.home / "way"
    way.symlink_to("/")
    close = os.close

    def close_and_swap(handle: int) -> None:
        close(handle)
        if way.is_symlink():
            way.rename(file)

    monkeypatch.setattr(os, "close", close_and_swap)
    assert home.names() == set()
    assert file.is_symlink()


def test_a_pipe_that_is_named_is_read(home: Home) -> None:
    pipe = home.home / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=('{"mcpServers": {"a": {"command": "x"}}}',))
    writer.start()
    assert home.find("a", str(pipe)) == {"command": "x"}
    writer.join(20)
    with pytest.raises(ConfigError, match="Is a directory"):
        home.find("a", str(home.home))


def test_only_an_unknown_name_raises_nosuchserver(home: Home) -> None:
    home.write("project/.mcp.json", {"mcpServers": {"a": {"command": "x", "args": ["${GONE}"]}}})
    with pytest.raises(NoSuchServer):
        home.find("b")
    with pytest.raises(ConfigError) as caught:
        home.find("a")
    assert not isinstance(caught.value, NoSuchServer)


def test_whose_file_it_is(home: Home) -> None:
    """By where it was looked for, not by its path: a home can be a project, too."""
    (home.home / ".git").mkdir()
    home.write(".mcp.json", {"mcpServers": {"theirs": {"command": "x"}}})
    here = str(home.home)
    home.write(
        ".claude.json",
        {"mcpServers": {"mine": {"command": "x"}}, "projects": {here: {"mcpServers": {"local": {"command": "x"}}}}},
    )
    found = {name: look_up(name, folder=here, environ=home.environ).file for name in ("theirs", "mine", "local")}
    assert {name: file.project for name, file in found.items()} == {"theirs": True, "mine": False, "local": False}
    assert found["local"].folder == here


@pytest.mark.parametrize(("path", "limit"), [("project/.mcp.json", "FILE_BYTES"), (".claude.json", "CLAUDE_BYTES")])
def test_config_files_have_a_size_limit(home: Home, path: str, limit: str) -> None:
    text = json.dumps({"mcpServers": {"a": {"command": "x"}}})
    most = getattr(configs, limit)
    for size in (most - 1, most):
        home.write(path, text.ljust(size))
        assert home.names() == {"a"}
    home.write(path, text.ljust(most + 1))
    with pytest.raises(ConfigError, match="it has more than"):
        home.find("a")


@pytest.mark.parametrize("body", ["/* ", '\\"', '"\\', "// ", '"/*"'])
def test_a_hostile_file_is_looked_at_once(home: Home, body: str) -> None:
    """Quadratic, these took minutes: the test would not end."""
    for text in ("{", '{"'):
        home.write("project/.mcp.json", text + body * (900_000 // len(body)))
        assert home.names() == set()


@pytest.mark.parametrize("path", ["project/.mcp.json", ".config/Claude/claude_desktop_config.json"])
def test_an_entry_that_is_nested_too_deep_is_refused(home: Home, path: str) -> None:
    """Also in a file whose variables are not expanded."""
    for levels, refused in ((configs.DEPTH - 1, False), (configs.DEPTH, True), (900, True)):
        home.write(path, '{"mcpServers": {"a": {"args": ' + "[" * levels + "]" * levels + "}}}")
        with pytest.raises(ConfigError, match="nested too deep") if refused else nullcontext():
            home.find("a")


@pytest.mark.parametrize(
    "entry",
    [
        {"url": "https://a.test/x"},
        {"httpUrl": "https://a.test/x", "command": "x"},
        {"url": "", "serverUrl": "https://a.test/x"},
        {"url": 5, "serverUrl": "https://a.test/x"},
    ],
)
def test_a_url_is_found_by_one_rule(entry: dict[str, Any]) -> None:
    """`url_of` gives the URL that a client would use."""
    assert url_of(entry) == Client(entry).name == "https://a.test/x"
    assert url_of({"url": "", "command": "x"}) is None


def test_a_configured_entry_is_accepted_by_client(home: Home) -> None:
    import asyncio
    import sys

    from longshore.client import Client

    home.write("server.py", "from longshore import Server\napp = Server('named')\napp.run()\n")
    home.write("project/.mcp.json", {"mcpServers": {"n": {"command": sys.executable, "args": ["../server.py"]}}})

    async def work() -> str:
        async with asyncio.timeout(20), Client(home.find("n")) as client:
            return client.server.name

    assert asyncio.run(work()) == "named"
