"""`longshore install` and `uninstall`, as a person and a script use them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from longshore import Server
from serving import serve

from .conftest import Workspace

SERVER = """
    from longshore import Server

    app = Server("tea shop")

    @app.tool
    def price(item: str) -> int:
        \"\"\"What it costs.\"\"\"
        return 250
"""


def run(workspace: Workspace, *argv: str, cwd: Path | None = None, **variables: str) -> tuple[int, str, str]:
    env = {"HOME": str(workspace.home), "XDG_STATE_HOME": "", **variables}
    done = workspace.run(*argv, env=env, cwd=cwd)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def entries(workspace: Workspace, file: str, key: str = "mcpServers") -> dict[str, Any]:
    found: dict[str, Any] = json.loads((workspace.folder / file).read_text())[key]
    return found


def test_the_built_in_server_is_written_shown_and_connected(workspace: Workspace) -> None:
    code, out, err = run(workspace, "install", "cursor", "--root", "home", "--yes")
    assert code == 0, err
    command = [sys.executable, "-P", "-m", "longshore", "serve", "--root", str(workspace.home)]
    [(name, entry)] = entries(workspace, "home/.cursor/mcp.json").items()
    assert (name, [entry["command"], *entry["args"]]) == ("longshore", command)
    assert '+    "longshore": {' in out
    assert "connected to longshore " in out and "MCP 2026-07-28, 40 tools" in out
    assert out.splitlines()[-1] == "Cursor: Settings > MCP shows it; switch it on there"


def test_a_second_install_changes_nothing(workspace: Workspace) -> None:
    run(workspace, "install", "codex", "--yes")
    file = workspace.home / ".codex" / "config.toml"
    before = file.read_bytes(), file.stat().st_mtime_ns
    code, out, _ = run(workspace, "install", "codex")
    assert code == 0 and f"{file} has longshore already, just so\nconnected to" in out
    assert (file.read_bytes(), file.stat().st_mtime_ns) == before


def test_a_dry_run_shows_the_change_and_writes_nothing(workspace: Workspace) -> None:
    code, out, _ = run(workspace, "install", "goose", "--dry-run")
    assert code == 0 and "+extensions:\n+  longshore:" in out
    assert not (workspace.home / ".config").exists()


def test_without_a_terminal_somebody_must_say_yes(workspace: Workspace) -> None:
    code, _, err = run(workspace, "install", "cursor")
    assert code == 2 and "nobody can be asked here; --yes writes it, --dry-run only shows it" in err
    assert not (workspace.home / ".cursor").exists()


@pytest.mark.parametrize(("answer", "is_written"), [("\n", True), ("n\n", False)])
def test_on_a_terminal_the_folder_and_the_change_are_asked_for(
    workspace: Workspace, answer: str, is_written: bool
) -> None:
    workspace.env |= {"HOME": str(workspace.home), "XDG_STATE_HOME": ""}
    terminal = workspace.terminal("install", "cursor")
    terminal.until("Which folder may its tools touch?").type(f"{workspace.home}\n")
    terminal.until("Write it? [Y/n] ").type(answer)
    assert terminal.end() == 0
    file = workspace.home / ".cursor" / "mcp.json"
    assert file.exists() is is_written
    if is_written:
        assert entries(workspace, "home/.cursor/mcp.json")["longshore"]["args"][-2:] == ["--root", str(workspace.home)]


def test_a_file_of_ones_own_gets_the_name_of_its_server(workspace: Workspace) -> None:
    path = workspace.write("shop.py", SERVER)
    code, out, err = run(workspace, "install", "vscode", "shop.py", "--env", "KEY=v", "--yes")
    assert code == 0, err
    entry = entries(workspace, "home/.config/Code/User/mcp.json", "servers")["tea-shop"]
    assert entry["args"][-1] == str(path) and entry["env"] == {"KEY": "v"}
    assert "connected to tea shop" in out and "1 tool," in out


def test_a_module_is_written_as_its_file(workspace: Workspace) -> None:
    (workspace.folder / "stores").mkdir()
    workspace.write("stores/__init__.py", "")
    path = workspace.write("stores/shop.py", SERVER)
    code, _, err = run(workspace, "install", "gemini", "stores.shop:app", "--yes")
    assert code == 0, err
    assert entries(workspace, "home/.gemini/settings.json")["tea-shop"]["args"][-1] == f"{path}:app"


def test_a_command_gets_absolute_paths(workspace: Workspace) -> None:
    path = workspace.write("shop.py", SERVER + "\n    app.run()\n")
    (workspace.folder / "bin").mkdir()
    (workspace.folder / "bin" / "py").symlink_to(sys.executable)
    workspace.env["PATH"] = f"bin:{workspace.env['PATH']}"
    code, _, err = run(workspace, "install", "zed", "--name", "shop", "--yes", "--", sys.executable, "-u", "shop.py")
    assert code == 0, err
    entry = entries(workspace, "home/.config/zed/settings.json", "context_servers")["shop"]
    assert (entry["command"], entry["args"]) == (sys.executable, ["-u", str(path)])


def test_a_url_is_verified_with_the_token_of_its_variable(workspace: Workspace) -> None:
    token = "t" * 40
    config = workspace.write("http.toml", f'[auth]\nmode = "required"\ntoken = "{token}"\n')
    app = Server("tea shop")
    with serve(app.asgi(config_path=str(config))) as served:
        argv = ("install", "claude-code", served.url, "--name", "shop", "--auth", "env:SHOP_TOKEN", "--yes")
        code, out, err = run(workspace, *argv, SHOP_TOKEN=token)
        assert code == 0, err
        assert "connected to tea shop" in out
        assert entries(workspace, "home/.claude.json")["shop"]["headers"] == {"Authorization": "Bearer ${SHOP_TOKEN}"}
        code, _, err = run(workspace, *argv, SHOP_TOKEN="wrong" * 10)
    assert code == 1 and "shop does not connect: " in err and token not in err


def test_a_server_that_does_not_connect_is_written_and_reported(workspace: Workspace) -> None:
    argv = ("install", "cursor", "--name", "x", "--yes", "--", sys.executable, "-c", "raise SystemExit('no database')")
    code, _, err = run(workspace, *argv)
    assert code == 1
    assert "x does not connect" in err and "no database" in err and "`longshore doctor x` says more" in err
    assert "x" in entries(workspace, "home/.cursor/mcp.json")


def test_the_file_of_the_project_is_written_at_its_top(workspace: Workspace) -> None:
    (workspace.folder / "deep").mkdir()
    code, out, _ = run(workspace, "install", "claude-code", "--project", "--yes", cwd=workspace.folder / "deep")
    assert code == 0
    assert "longshore" in entries(workspace, ".mcp.json")
    assert "asks for your approval" in out
    code, _, _ = run(workspace, "uninstall", "claude-code", "--project", "--yes")
    assert code == 0 and not (workspace.folder / ".mcp.json").exists()


@pytest.mark.parametrize(
    ("argv", "what"),
    [
        (["install"], "CLIENT is needed: claude-code, claude-desktop, "),
        (["install", "emacs"], "'emacs' is not one of"),
        (["install", "cursor", "--name", "a b"], "expected letters, digits, - and _"),
        (["install", "cursor", "http://127.0.0.1:1/mcp"], "a URL needs a name in the client: --name"),
        (["install", "cursor", "--", "true"], "a command needs a name in the client: --name"),
        (["install", "cursor", "--name", "x", "--", "no-such-program"], "no-such-program: there is no such program"),
        (["install", "cursor", "--root", "nowhere"], "nowhere: there is no such folder"),
        (["install", "cursor", "server.py", "--root", "home"], "--root is for the built-in server"),
        (["install", "cursor", "--auth", "x"], "--auth is for a URL"),
        (["install", "cursor", "http://127.0.0.1:1", "--name", "x", "--env", "A=b"], "--env is for a program"),
        (["install", "cursor", "nothing.py"], "nothing.py: there is no such file"),
        (["install", "windsurf", "--project"], "Windsurf has no configuration in projects"),
        (["uninstall", "cursor"], "Longshore wrote nothing there; say which: --name NAME"),
    ],
)
def test_a_mistake_is_named_and_nothing_is_written(workspace: Workspace, argv: list[str], what: str) -> None:
    code, _, err = run(workspace, *argv)
    assert code == 2 and what in err, err
    assert not (workspace.home / ".cursor").exists()


def test_uninstall_says_what_it_left(workspace: Workspace) -> None:
    run(workspace, "install", "cursor", "--yes")
    file = workspace.home / ".cursor" / "mcp.json"
    changed = file.read_text().replace('"serve"', '"serve",\n        "--log-level=debug"')
    file.write_text(changed)
    code, _, err = run(workspace, "uninstall", "cursor", "--yes")
    assert code == 1 and "'longshore' was left, since its args changed after Longshore wrote it" in err
    assert file.read_text() == changed
    code, out, _ = run(workspace, "uninstall", "cursor", "--yes", "--force")
    assert code == 0 and "removed longshore from" in out and not file.exists()


def test_the_list_has_each_client_its_file_and_what_is_in_it(workspace: Workspace) -> None:
    run(workspace, "install", "cursor", "--name", "ours", "--yes")
    workspace.write("home/.gemini/settings.json", '{"mcpServers": {"theirs": {"command": "x"}}}')
    workspace.write("home/.codex/config.toml", "a = ")
    workspace.write(".mcp.json", '{"mcpServers": {"of-project": {"command": "x"}}}')
    code, out, _ = run(workspace, "install", "--list", "--json")
    found = {(each["client"], each["scope"]): each for each in json.loads(out)}
    assert code == 0 and len(found) == 10
    assert found["cursor", "user"]["written"] == ["ours"]
    assert found["gemini", "user"]["servers"] == ["theirs"] and found["gemini", "user"]["written"] == []
    assert found["claude-code", "project"]["servers"] == ["of-project"]
    assert "config.toml: line 1" in found["codex", "user"]["problem"]
    assert found["goose", "user"]["here"] is False and found["cursor", "user"]["here"] is True
    _, out, notes = run(workspace, "install", "--list")
    assert out.splitlines()[0].split() == ["client", "here", "file", "servers"]
    assert "*: written by longshore install" in notes
    assert any(line.split()[:2] == ["cursor", "yes"] and line.endswith("ours*") for line in out.splitlines())
