"""`longshore new`: the project of a server, with a tool, a test and what it takes to install it."""

from __future__ import annotations

import keyword
import os
import re
import sys
from importlib.metadata import packages_distributions
from string import Template
from typing import Final

import click

from longshore import __version__
from longshore.cli.screen import Screen

_NAME: Final = re.compile(r"[A-Za-z](?:[A-Za-z0-9_-]{0,38}[A-Za-z0-9])?")
_TAKEN: Final = frozenset(("test", "tests", "conftest", "setup", "src", "longshore", "browseros"))
"""Names of our modules, and of those that pytest or packaging tools use for themselves."""

_FILES: Final = {
    "$module.py": '''\
"""The server $name. Its tools are the functions below."""

from longshore import Server

app = Server("$name", version="0.1.0")


@app.tool(effects="read")
def count_words(text: str) -> int:
    """Count the words of a text.

    text: the text, in any language
    """
    return len(text.split())


def main() -> None:
    """Serve on stdio."""
    app.run()


if __name__ == "__main__":
    main()
''',
    "test_$module.py": '''\
"""Each test gets a client of the server, in memory."""

import pytest
from longshore import ToolFailed


def test_words_are_counted(mcp_client):
    text = "three short words"
    assert mcp_client.call_tool("count_words", {"text": text}, returns=int) == 3


def test_a_missing_text_is_named(mcp_client):
    with pytest.raises(ToolFailed, match="text"):
        mcp_client.call_tool("count_words", {})
''',
    "pyproject.toml": """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "$name"
version = "0.1.0"
description = "An MCP server."
requires-python = ">=3.11"
dependencies = ["longshore>=$version"]

[project.optional-dependencies]
dev = ["pytest"]

[project.scripts]
$name = "$module:main"

[tool.hatch.build.targets.wheel]
only-include = ["$module.py"]

[tool.pytest.ini_options]
longshore_server = "$module.py"
""",
    "README.md": """\
# $name

An MCP server.

    pip install -e '.[dev]'     # once
    pytest                      # test it
    longshore lint $module.py   # see what clients would refuse
    longshore call $module.py count_words text='three short words'

## Install it into a client

    longshore install claude-code $module.py
    longshore install claude-desktop $module.py
    longshore install cursor $module.py
    longshore install vscode $module.py
    longshore install windsurf $module.py
    longshore install gemini $module.py
    longshore install codex $module.py
    longshore install zed $module.py
    longshore install goose $module.py

Each shows what it writes, asks, and connects to see that it works. `longshore uninstall CLIENT --name $name` takes it
out again, and `longshore doctor $module.py` says what is wrong if something is.
""",
    ".gitignore": """\
__pycache__/
*.egg-info/
.pytest_cache/
.venv/
dist/
""",
}


@click.command()
@click.argument("name")
def new(name: str) -> int:
    """Make the project of a server.

    It is a folder NAME with a server of one tool, a test, and what it takes to install it.
    """
    module = _check(name)
    try:
        os.mkdir(name)
    except FileExistsError:
        raise click.UsageError(f"{name} is there already; choose another name, or delete it") from None
    except OSError as problem:
        raise click.UsageError(f"{name} can't be made in {os.getcwd()}: {problem.strerror}") from None
    given = {"name": name, "module": module, "version": __version__}
    for path, text in _FILES.items():
        with open(os.path.join(name, Template(path).substitute(given)), "x", encoding="utf-8") as file:
            file.write(Template(text).substitute(given))
    screen = Screen()
    screen.text(f"made {name}: {', '.join(sorted(os.listdir(name)))}")
    screen.text(f"next: cd {name}, then pytest, then longshore install claude-code {module}.py")
    return 0


def _check(name: str) -> str:
    """The module of a project. Raises click.UsageError for a name that some tool would refuse."""
    if not _NAME.fullmatch(name):
        what = "expected letters, digits, - and _, at most 40, a letter first and a letter or digit last"
        raise click.UsageError(f"{name}: {what}; clients and packages take no other names")
    module = name.replace("-", "_").lower()
    if keyword.iskeyword(module) or module in _TAKEN:
        raise click.UsageError(f"{name}: {module} is taken by Longshore or Python's tools; try {name}-server")
    if module in sys.stdlib_module_names or module in packages_distributions():
        raise click.UsageError(
            f"{name}: there is a Python module {module} already, which this would hide; try {name}-server"
        )
    return module
