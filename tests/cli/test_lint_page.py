"""docs/lint.md is true: its commands parse, and its output is real.

To write what is printed anew: `python tests/cli/test_lint_page.py`.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from longshore.cli.lint import FORMS, lint
from longshore.cli.options import TargetOrCommand
from longshore.schema.lint.rule import PROFILES
from longshore.schema.lint.run import find_rule

PAGE = Path(__file__).parents[2] / "docs/lint.md"
TEXT = PAGE.read_text(encoding="utf-8")
SHOWN = re.compile(r"```text\n\$ (?P<command>.*)\n(?P<said>(?:.*\n)*?)```")


def blocks(kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", TEXT, re.DOTALL)


def shown() -> str:
    """The output of the page's command for the page's server."""
    found = SHOWN.search(TEXT)
    assert found is not None
    argv = shlex.split(found["command"])
    with TemporaryDirectory() as folder:
        (Path(folder) / "server.py").write_text(blocks("python")[0], encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-m", *argv], cwd=folder, capture_output=True, text=True, timeout=45, check=False
        )
    assert (done.returncode, done.stderr) == (1, "")
    return done.stdout


def test_the_page_shows_the_real_output() -> None:
    found = SHOWN.search(TEXT)
    assert found is not None and found["said"] == shown()


@pytest.mark.parametrize("line", [line for block in blocks("sh") for line in block.splitlines()])
def test_every_command_can_be_typed(line: str) -> None:
    program, name, *argv = shlex.split(line, comments=True)
    assert (program, name) == ("longshore", "lint") and isinstance(lint, TargetOrCommand)
    assert lint.make_context("lint", argv).params["form"] in FORMS


def test_the_configuration_names_profiles_and_rules_that_exist() -> None:
    (text,) = blocks("toml")
    section = tomllib.loads(text)["lint"]
    assert set(section["profiles"]) <= set(PROFILES)
    assert all(find_rule(key.rpartition(":")[2]) for key in section["waive"])


def test_every_profile_has_a_row() -> None:
    table = TEXT.partition("## Evidence")[2]
    assert re.findall(r"`([a-z-]+)`", re.sub(r"\| [^`|][^|]*\|\n", "\n", table).partition("\nWithout")[0]) == list(
        PROFILES
    )


if __name__ == "__main__":
    PAGE.write_text(SHOWN.sub(lambda found: f"```text\n$ {found['command']}\n{shown()}```", TEXT), encoding="utf-8")
