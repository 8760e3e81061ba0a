"""What `longshore install` writes, beside what the clients' own commands write, and whether they connect to it."""

from __future__ import annotations

import json
import re
import shlex
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from process.conftest import Workshop
from process.conftest import workshop as workshop

from .client.peers import claude_code, codex, gemini
from .test_claude_code import run

LONGSHORE = shlex.join([sys.executable, "-m", "longshore"])
ADDRESS = "http://127.0.0.1:9/mcp"
PAGE = Path(__file__).parents[2] / "docs" / "install.md"
FILES = {"claude": ".claude.json", "gemini": ".gemini/settings.json", "codex": ".codex/config.toml"}
CLIENTS = {"claude": "claude-code", "gemini": "gemini", "codex": "codex"}
OWN = {
    "claude": (
        "claude mcp add -s user one -e KEY=v -- COMMAND",
        f"claude mcp add -s user -t http two {ADDRESS} -H 'Authorization: Bearer ${{TOKEN}}'",
    ),
    "gemini": (
        "gemini mcp add -s user -e KEY=v one COMMAND",
        f"gemini mcp add -s user -t http -H 'Authorization: Bearer ${{TOKEN}}' two {ADDRESS}",
    ),
    "codex": (
        "codex mcp add one --env KEY=v -- COMMAND",
        f"codex mcp add two --url {ADDRESS} --bearer-token-env-var TOKEN",
    ),
}
"""How each client adds a program and a URL itself."""


@pytest.fixture
def shell(workshop: Workshop) -> Workshop:
    """A folder in whose shell the three clients are found, with an empty home."""
    programs = workshop.folder / "programs"
    programs.mkdir()
    for name, command in (("claude", [claude_code()]), ("codex", codex()), ("gemini", gemini())):
        script = programs / name
        script.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
        script.chmod(0o755)
    (workshop.folder / "home" / ".codex").mkdir(parents=True)
    strange = ("CLAUDE", "ANTHROPIC", "MCP_", "GEMINI", "CODEX", "XDG_")
    workshop.env = {key: value for key, value in workshop.env.items() if not key.startswith(strange)}
    (workshop.folder / "home" / ".gemini").mkdir()
    trusted = json.dumps({str(workshop.folder): "TRUST_FOLDER"})
    (workshop.folder / "home" / ".gemini" / "trustedFolders.json").write_text(trusted)
    settings = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1", "MCP_TIMEOUT": "60000"}
    workshop.env |= {**settings, "PATH": f"{programs}:{workshop.env['PATH']}"}
    return workshop


def servers(shell: Workshop, client: str) -> dict[str, Any]:
    text = (shell.folder / "home" / FILES[client]).read_text()
    found: dict[str, Any] = tomllib.loads(text)["mcp_servers"] if client == "codex" else json.loads(text)["mcpServers"]
    return found


@pytest.mark.parametrize("client", CLIENTS)
def test_the_file_is_as_the_clients_own_command_writes_it(shell: Workshop, client: str) -> None:
    command = shlex.join([sys.executable, "-P", "-m", "longshore", "serve"])
    file = shell.folder / "home" / FILES[client]
    run(shell, "\n".join(line.replace("COMMAND", command) for line in OWN[client]))
    theirs = servers(shell, client)
    file.unlink()
    lines = (
        f"{LONGSHORE} install {CLIENTS[client]} --yes --name one --env KEY=v",
        f"{LONGSHORE} install {CLIENTS[client]} --yes --name two {ADDRESS} --auth env:TOKEN || true",  # nobody listens
    )
    run(shell, "\n".join(lines))
    assert servers(shell, client) == theirs
    assert list(servers(shell, client)["one"]) == list(theirs["one"])


@pytest.mark.parametrize("client", ["claude", "gemini"])
def test_the_client_lists_the_server_as_connected(shell: Workshop, client: str) -> None:
    printed = run(shell, f"{LONGSHORE} install {CLIENTS[client]} --yes\n{client} mcp list 2>&1")
    assert re.search(r"\blongshore: .* longshore serve .*Connected$", printed, re.MULTILINE), printed


def test_codex_reads_the_table_among_others(shell: Workshop) -> None:
    sample = Path(__file__).parents[1] / "install" / "samples" / "codex.toml"
    (shell.folder / "home" / ".codex" / "config.toml").write_bytes(sample.read_bytes())
    run(shell, f"{LONGSHORE} install codex --yes")
    listed = json.loads(run(shell, "codex mcp get longshore --json"))
    assert listed["transport"]["args"] == ["-P", "-m", "longshore", "serve"] and listed["enabled"]
    run(shell, f"{LONGSHORE} uninstall codex --yes")
    assert "longshore" not in {each["name"] for each in json.loads(run(shell, "codex mcp list --json"))}


def test_an_entry_that_the_client_wrote_anew_is_still_ours(shell: Workshop) -> None:
    """Gemini writes its whole file in its own form when it adds another server."""
    lines = (
        f"{LONGSHORE} install gemini --yes",
        "gemini mcp add -s user other /bin/true",
        f"{LONGSHORE} uninstall gemini --yes",
    )
    run(shell, "\n".join(lines))
    assert list(servers(shell, "gemini")) == ["other"]


def test_a_first_turn_sees_the_tools_and_calls_one(shell: Workshop) -> None:
    """Claude Code itself, with a stand-in for its model that calls a tool of the installed server.

    It waits for its servers, which it does for two seconds otherwise, and lists all tools rather than a search of them.
    """
    (shell.folder / "note.txt").write_text("the tide turns at six\n")
    tool, arguments, seen = "mcp__longshore__fs_read", json.dumps({"path": "note.txt"}), shell.folder / "seen"
    model = shlex.join([sys.executable, str(Path(__file__).with_name("model.py")), tool, arguments, str(seen)])
    script = f"""
{LONGSHORE} install claude-code --root {shlex.quote(str(shell.folder))} --yes
mkfifo port
{model} > port &
read -r number < port
export ANTHROPIC_BASE_URL=http://127.0.0.1:$number ANTHROPIC_API_KEY=none
export MCP_CONNECTION_NONBLOCKING=0 ENABLE_TOOL_SEARCH=false
claude -p 'When does the tide turn?' --allowedTools {tool}
kill $!
"""
    printed = run(shell, script)
    assert "the tool said: " in printed and "the tide turns at six" in printed, printed
    first = json.loads(seen.read_text().splitlines()[0])
    assert len([name for name in first if name.startswith("mcp__longshore__")]) == 40


LINES = re.findall(r"`((?:claude|gemini) mcp add [^`]+)`", PAGE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("line", LINES)
def test_a_line_of_the_page_adds_the_server(shell: Workshop, line: str) -> None:
    run(shell, line)
    own = {"claude": "home/.claude.json", "gemini": ".gemini/settings.json"}[line.partition(" ")[0]]
    settings = json.loads((shell.folder / own).read_text())
    for project in settings.get("projects", {}).values():
        settings.setdefault("mcpServers", {}).update(project.get("mcpServers", {}))
    added = settings["mcpServers"]["longshore"]
    assert "http://127.0.0.1:9100/mcp" in added.values() or added["command"] == "longshore"
