"""docs/tutorial.md: its commands run one after the other, and print what it says."""

from __future__ import annotations

import difflib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pages.blocks import ROOT, blocks, commands, matches
from services import free_port
from waiting import PATIENCE, eventually

EXAMPLE = ROOT / "examples" / "tutorial"
BLOCKS = {
    kind: [each.text for each in blocks() if (each.page, each.kind) == ("tutorial", kind)]
    for kind in ("text", "python")
}
ASKING = ("longshore install", "longshore uninstall")


def quotes() -> Iterator[tuple[str, str]]:
    """The code of the page: the example that it is in, and the text."""
    for block in BLOCKS["python"]:
        first, _, code = block.partition("\n")
        yield first.removeprefix("# "), code


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    home = tmp_path / "home"
    home.mkdir()
    path = f"{Path(sys.executable).parent}{os.pathsep}/usr/bin{os.pathsep}/bin"
    return {"HOME": str(home), "PATH": path, "PYTHONDONTWRITEBYTECODE": "1"}


def test_what_the_page_adds_is_all_that_the_example_adds(tmp_path: Path, env: dict[str, str]) -> None:
    subprocess.run(["longshore", "new", "word-tools"], cwd=tmp_path, env=env, check=True, timeout=PATIENCE)
    for example in EXAMPLE.glob("*.py"):
        made = (tmp_path / "word-tools" / example.name).read_text().splitlines()
        changes = list(difflib.ndiff(made, example.read_text().splitlines()))
        assert [line for line in changes if line.startswith("- ")] == []
        added = {line[2:] for line in changes if line.startswith("+ ")}
        quoted = {line for name, code in quotes() if name == example.name for line in code.splitlines()}
        assert added - {""} <= quoted, example.name
    assert all(code in (EXAMPLE / name).read_text() for name, code in quotes())


def test_its_commands_print_what_the_page_says(tmp_path: Path, env: dict[str, str]) -> None:
    port = str(free_port())
    folder, serving = tmp_path, None
    try:
        for command, shown in commands("".join(BLOCKS["text"])):
            shown = shown.replace("9100", port)
            if command.startswith("cd "):
                folder /= command.removeprefix("cd ")
                continue
            if "--http" in command:
                argv = [*command.split(), "--port", port]
                log = (tmp_path / "log").open("wb")
                serving = subprocess.Popen(argv, cwd=folder, env=env, stdin=subprocess.DEVNULL, stderr=log)
                log.close()
                eventually("it serves", lambda shown=shown: matches(shown, (tmp_path / "log").read_text()))
                continue
            line = command.replace("9100", port) + (" --yes" if command.startswith(ASKING) else "")
            done = subprocess.run(
                line, shell=True, cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                timeout=PATIENCE,
            )  # fmt: skip
            assert matches(shown, done.stdout + done.stderr), f"{line}\n{done.stdout}{done.stderr}"
            if command.startswith("longshore new"):
                for example in EXAMPLE.glob("*.py"):
                    (folder / "word-tools" / example.name).write_text(example.read_text())
    finally:
        if serving is not None:
            serving.terminate()
            serving.wait(PATIENCE)
