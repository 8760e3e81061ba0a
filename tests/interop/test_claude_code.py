"""Claude Code lists each entry point as connected, and works with code mode, in a network of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from process.conftest import Workshop
from process.conftest import workshop as workshop
from seeds.brooklyn.document import text_of
from seeds.browseros.test_shell import PRIVATE
from services import need_command

from .client.peers import claude_code

MODEL = Path(__file__).with_name("stand_in_model.py")
PAGE = Path(__file__).parents[2] / "docs" / "seeds.md"
ENTRY_POINTS = {
    "longshore": "longshore serve",
    "brooklyn": "brooklyn mcp start",
    "browseros": "python -m browseros.mcp.server",
    "contextgraph-ghost": "contextgraph-ghost",
    "bb-mcp-server": "bb-mcp-server",
}
SECONDS = 80.0
"""A bound, not an expectation: a line takes half a second, and a list waits for each server."""


@pytest.fixture
def shell(workshop: Workshop) -> Workshop:
    """A folder in whose shell `claude` and our scripts are found, with a home that holds no settings."""
    programs = workshop.folder / "programs"
    programs.mkdir()
    (programs / "claude").symlink_to(claude_code())
    (workshop.folder / "home").mkdir()
    strange = ("CLAUDE", "ANTHROPIC", "MCP_")
    workshop.env = {key: value for key, value in workshop.env.items() if not key.startswith(strange)}
    path = os.pathsep.join([str(programs), str(Path(sys.executable).parent), workshop.env["PATH"]])
    workshop.env |= {"PATH": path, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "MCP_TIMEOUT": "60000"}
    return workshop


def run(shell: Workshop, script: str) -> str:
    """What lines print, without a network."""
    bwrap = need_command("bwrap", "bubblewrap")
    done = subprocess.run(
        [bwrap, *PRIVATE, "sh", "-u", "-c", script],
        cwd=shell.folder,
        env=shell.env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def connected(printed: str) -> dict[str, str]:
    """The servers that a list calls connected, with their commands."""
    return dict(re.findall(r"^([\w-]+): (.*?) +- \S+ Connected$", printed, re.MULTILINE))


def test_each_entry_point_is_listed_as_connected(shell: Workshop) -> None:
    lines = [f"claude mcp add -s user {name} -- {command}" for name, command in ENTRY_POINTS.items()]
    assert connected(run(shell, "\n".join([*lines, "claude mcp list"]))) == ENTRY_POINTS


def test_the_lines_of_brooklyns_document_add_its_server(shell: Workshop) -> None:
    """S-111: but for the first, which builds Brooklyn itself with bun."""
    lines = [line for line in text_of("claude_code.sh").splitlines() if line.startswith("claude ")]
    assert [line.split()[2] for line in lines] == ["remove", "add", "list"]
    for _ in range(2):  # the second time there is one to remove
        printed = run(shell, "\n".join(lines))
        assert connected(printed) == {"brooklyn": "brooklyn mcp start"}
    assert "Removed MCP server" in printed and "oneOf" not in printed


def test_the_line_for_a_project_writes_the_entry_of_our_page(shell: Workshop) -> None:
    """S-140: `.mcp.json` with the command that docs/seeds.md names."""
    line = "claude mcp add contextgraph-ghost --scope project -- contextgraph-ghost"
    assert f"$ {line}\n" in PAGE.read_text(encoding="utf-8")
    run(shell, line)
    written = json.loads((shell.folder / ".mcp.json").read_text(encoding="utf-8"))["mcpServers"]["contextgraph-ghost"]
    assert (written["type"], written["command"], written.get("args", [])) == ("stdio", "contextgraph-ghost", [])


def test_the_line_of_brooklyn_on_our_page_adds_its_server(shell: Workshop) -> None:
    """S-111."""
    line = "claude mcp add -s user brooklyn brooklyn mcp start"
    assert f"$ {line}\n" in PAGE.read_text(encoding="utf-8")
    assert connected(run(shell, f"{line}\nclaude mcp list")) == {"brooklyn": "brooklyn mcp start"}


def test_the_lines_of_the_context_graph_add_its_server(shell: Workshop) -> None:
    """S-141, with the command that its document leaves out."""
    line = 'claude mcp add-json contextgraph-ghost \'{"command": "contextgraph-ghost"}\''
    assert f"$ {line}\n" in PAGE.read_text(encoding="utf-8")
    assert connected(run(shell, f"{line}\nclaude mcp list")) == {"contextgraph-ghost": "contextgraph-ghost"}
    assert connected(run(shell, "claude mcp remove contextgraph-ghost\nclaude mcp list")) == {}


TURN = """
{python} {model} script.json port results.json & model=$!
until [ -s port ]; do sleep 0.05; done
ANTHROPIC_BASE_URL=http://127.0.0.1:$(cat port) ANTHROPIC_API_KEY=none claude -p 'Count the notes.' \\
    --mcp-config mcp.json --strict-mcp-config --allowedTools mcp__longshore__run_code
kill $model
"""
CODE = """names = tools.fs_search(pattern="note", path="notes", output="files").split()
open("count.txt", "w").write(str(len(names)))
print("counted", len(names))"""


def test_a_turn_of_claude_code_runs_code_that_calls_our_tools(shell: Workshop) -> None:
    """Its model is a script. It loads the tool first, as Claude Code has its models do with tools of MCP servers."""
    server = {"command": "longshore", "args": ["serve", "--catalog", "code", "--root", "."]}
    (shell.folder / "mcp.json").write_text(json.dumps({"mcpServers": {"longshore": server}}))
    tool = "mcp__longshore__run_code"
    steps = [
        {"name": "ToolSearch", "input": {"query": f"select:{tool}", "max_results": 1}},
        {"name": tool, "input": {"code": CODE}},
        {"text": "There are two notes."},
    ]
    (shell.folder / "script.json").write_text(json.dumps(steps))
    (shell.folder / "notes").mkdir()
    for name in ("a.md", "b.md"):
        (shell.folder / "notes" / name).write_text("a note")
    assert run(shell, TURN.format(python=sys.executable, model=MODEL)) == "There are two notes.\n"
    _, answer = json.loads((shell.folder / "results.json").read_text())
    assert answer == [{"type": "text", "text": "counted 2"}]
    assert (shell.folder / "count.txt").read_text() == "2"
