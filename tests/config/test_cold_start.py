"""Nothing configured costs nothing: the set of modules is pinned, not the milliseconds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

OURS = {
    "longshore",
    "longshore.errors",
    "longshore.files",
    "longshore.limits",
    "longshore.config",
    "longshore.config.load",
    "longshore.config.sections",
    "longshore.config.tools",
}

PROGRAM = """
import sys, msgspec
before = set(sys.modules)
from longshore import config
found = config.load()
config.tool_timeout(found, "t", "s", None), config.tool_enabled(found, "t", "s"), config.fingerprint(found)
print(*sorted(set(sys.modules) - before))
"""


def _loaded(cwd: Path, **environ: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=cwd,
        env={"HOME": str(cwd), **environ},
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    return set(done.stdout.split())


def test_with_nothing_configured_only_this_package_is_loaded(tmp_path: Path) -> None:
    assert _loaded(tmp_path) == OURS


def test_a_variable_does_not_bring_in_the_toml_parser(tmp_path: Path) -> None:
    loaded = _loaded(tmp_path, LONGSHORE_SERVER_TIMEOUT="3")
    assert not loaded & {"tomllib", "difflib", "pathlib", "json", "dataclasses", "asyncio", "logging"}


def test_a_file_brings_in_tomllib_and_nothing_slow(tmp_path: Path) -> None:
    (tmp_path / "longshore.toml").write_text("[server]\ntimeout = 3\n")
    loaded = _loaded(tmp_path)
    assert "tomllib" in loaded
    assert not loaded & {"difflib", "pathlib", "json", "dataclasses", "asyncio", "logging", "ast", "click", "rich"}


HOOKED = """
import sys
from longshore import config
asked = []
sys.addaudithook(lambda name, _: asked.append(name) if name in ("open", "os.listdir", "os.scandir", "import") else None)
config.load()
print(asked)
"""


def test_with_nothing_configured_no_file_is_opened(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", HOOKED],
        cwd=tmp_path,
        env={"HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert done.stdout == "[]\n"
