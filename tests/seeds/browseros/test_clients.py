"""The clients of BrowserOS's document as they stand, and real MCP clients of the same entry point."""

from __future__ import annotations

import re
import subprocess
import sys
from tempfile import TemporaryFile

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from interop.peer import ERAS, PATIENCE, run, text
from longshore import SyncClient
from process.conftest import Workshop
from services import need_command

from .document import TITLE, read, text_of, with_python

SLIPS = [
    ("JSON.dumps", "JSON.stringify"),
    ("arguments: any", "given: any"),
    ("arguments: arguments", "arguments: given"),
]
"""What can't run as it stands: a method of Python's json, and a parameter whose name is reserved in classes (C-47)."""
TYPES = [
    (r"^  private (\w+): [\w.]+;$", r"  \1;"),
    (r"^  private ", "  "),
    (r"(\w+): (?:string|any)(?:\[\])?(?=[,)])", r"\1"),
    (r"\): Promise<[^{]+> \{", ") {"),
]
"""The types of the TypeScript examples, which Node 20 does not take."""


def to_javascript(name: str, url: str) -> str:
    """A TypeScript example without its types and slips."""
    program = text_of(name, url)
    for wrong, right in SLIPS:
        program = program.replace(wrong, right)
    for pattern, plain in TYPES:
        program = re.sub(pattern, plain, program, flags=re.MULTILINE)
    return program


def run_node(workshop: Workshop, program: str) -> str:
    path = workshop.write(program, "client.mjs")
    node = need_command("node", "nodejs")
    done = subprocess.run(
        [node, str(path)],
        cwd=workshop.folder,
        env=with_python(workshop.env),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_python_client_prints_the_result(workshop: Workshop, page: str) -> None:
    """S-46, S-52, S-54, S-55."""
    path = workshop.write(text_of("python_client.py", page), "client.py")
    # It leaves the child to the garbage collector, which warns of that.
    env = with_python(workshop.env) | {"PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [sys.executable, str(path)], cwd=workshop.folder, env=env, capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stderr
    assert f"{{'tool': 'browser', 'result': {{'status': 'success', 'title': '{TITLE}', 'url': '{page}'" in done.stdout


def test_the_python_client_raises_what_failed(workshop: Workshop) -> None:
    """S-54."""
    path = workshop.write(text_of("python_client.py", "http://127.0.0.1:1/"), "client.py")
    env = with_python(workshop.env) | {"PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [sys.executable, str(path)], cwd=workshop.folder, env=env, capture_output=True, timeout=PATIENCE
    )
    assert b"Exception: Tool error: Tool execution error: " in done.stderr


def test_the_typescript_client_lists_and_calls(workshop: Workshop, page: str) -> None:
    """S-56, S-57."""
    printed = run_node(workshop, to_javascript("client.ts", page) + "\nclient.process.stdin.end();\n")
    assert "{ name: 'browser', available: true }" in printed
    assert f"title: '{TITLE}'" in printed


def test_the_vs_code_extension_gets_its_answer(workshop: Workshop, page: str) -> None:
    """S-75."""
    more = "\nmcpServer.stdout.on('data', (data) => { console.log(String(data)); mcpServer.stdin.end(); });\n"
    assert f'"title":"{TITLE}"' in run_node(workshop, to_javascript("vscode.ts", page) + more)


@pytest.mark.parametrize("example", ["claude_desktop_config.json", "claude_desktop_short.json"])
def test_claude_desktop_gets_mcp_by_its_entry(example: str, workshop: Workshop, page: str) -> None:
    """S-53."""
    [(_, entry)] = read(example)["mcpServers"].items()
    assert entry["transport"] == "stdio"
    env = with_python(workshop.env) | entry.get("env", {})
    with SyncClient(entry | {"env": env, "cwd": str(workshop.folder)}) as client:
        assert "browser_navigate" in [tool.name for tool in client.list_tools()]
        assert TITLE in client.call_tool("browser_navigate", {"url": page}).text
        assert client.call_tool("browser", {"url": page}).structured["title"] == TITLE


@pytest.mark.parametrize("mode", ERAS)
def test_the_official_client_gets_mcp_by_the_entry_of_claude_desktop(mode: str, workshop: Workshop) -> None:
    """S-32, S-53."""
    entry = read("claude_desktop_config.json")["mcpServers"]["browseros"]
    env = with_python(workshop.env) | entry["env"]
    params = StdioServerParameters(command=entry["command"], args=entry["args"], env=env, cwd=workshop.folder)

    async def main() -> None:
        with TemporaryFile("w+") as stderr:
            async with Client(stdio_client(params, errlog=stderr), mode=mode, read_timeout_seconds=PATIENCE) as client:
                assert "fs_read" in [tool.name for tool in (await client.list_tools()).tools]
                assert "exit code 0" in text(await client.call_tool("terminal", {"command": "true"}))
                assert (await client.call_tool("fs_read", {"path": "nope"})).is_error

    run(main)
