"""Sets up what the figures need under .bench/: one virtual environment a contestant, and the load generator.

Each contestant lives alone, because an installed package can change another's speed: msgspec, for one, imports
typing_extensions when it finds it. A second run finds everything in place and does nothing.
"""

from __future__ import annotations

import functools
import hashlib
import json
import shutil
import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
BENCH = ROOT / ".bench"
PIPELOAD = BENCH / "pipeload"
TEST_PINS = ROOT / "tests" / "interop" / "node"
TEST_NODE = ROOT / ".interop" / "node"  # where the tests have it: packages of npm live apart from each other anyway

# Which lock file fills which environment. The floor runs in longshore's, so that both start the same interpreter.
LOCKS = {
    "longshore": ROOT / "requirements" / "run.txt",
    "mcp": ROOT / "requirements" / "bench-mcp.txt",
    "fastmcp": ROOT / "requirements" / "bench-fastmcp.txt",
}


class SetupFailed(Exception):
    """A part of the benchmark's surroundings could not be built; the message says which and why."""


def python(contestant: str) -> Path:
    """The interpreter of a contestant's environment."""
    return BENCH / f"v-{contestant}" / "bin" / "python"


@functools.cache
def prepare() -> None:
    """Build whatever is missing or out of date."""
    BENCH.mkdir(exist_ok=True)
    for contestant, lock in LOCKS.items():
        _build_venv(contestant, lock)
    _build_pipeload()


def _build_venv(contestant: str, lock: Path) -> None:
    home = BENCH / f"v-{contestant}"
    stamp = home / "stamp"
    fingerprint = hashlib.sha256(sys.version.encode() + lock.read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == fingerprint:
        return
    _say(f"installing {lock.relative_to(ROOT)} into {home.relative_to(ROOT)} …")
    shutil.rmtree(home, ignore_errors=True)
    # Without pip there is no setuptools either, whose .pth file would slow every start.
    venv.create(home, with_pip=False, symlinks=True)
    pip = [sys.executable, "-m", "pip", "--python", str(python(contestant)), "install", "--quiet"]
    _run([*pip, "--require-hashes", "-r", str(lock)], f"could not install {lock.name}")
    if contestant == "longshore":
        (_site_packages(home) / "longshore.pth").write_text(f"{ROOT / 'src'}\n")
    stamp.write_text(fingerprint)


def _build_pipeload() -> None:
    source = HERE / "pipeload.c"
    if PIPELOAD.exists() and PIPELOAD.stat().st_mtime > source.stat().st_mtime:
        return
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise SetupFailed("no C compiler: install cc, gcc or clang to build benchmarks/pipeload.c")
    _say("compiling benchmarks/pipeload.c …")
    flags = ["-std=gnu11", "-O2", "-Wall", "-Wextra"]
    _run([compiler, *flags, "-o", str(PIPELOAD), str(source)], "could not compile benchmarks/pipeload.c")


@functools.cache
def node_server(package: str, pins: Path = TEST_PINS, home: Path = TEST_NODE) -> list[str]:
    """The command of a server of npm. It is installed first, as the lock file in `pins` has it."""
    _run(["sh", str(ROOT / "scripts" / "packages"), str(pins), str(home), package], f"could not install {package}")
    modules = home / "node_modules"
    node = next(modules.glob("node-linux-*/bin/node"), None)
    if node is None:
        raise SetupFailed(f"there is no node for this machine among the packages of {pins.relative_to(ROOT)}")
    return [str(node), str(modules / package / "dist" / "index.js")]


def pinned(package: str, pins: Path = TEST_PINS) -> str:
    """The version of a server of npm."""
    return str(json.loads((pins / "package.json").read_text())["dependencies"][package])


def installed(contestant: str, package: str) -> str:
    """The version of a package in a contestant's environment, read from its metadata without starting it."""
    pattern = f"{package.replace('-', '_')}-*.dist-info"
    found = sorted(_site_packages(BENCH / f"v-{contestant}").glob(pattern))
    return found[0].name.removesuffix(".dist-info").rpartition("-")[2] if found else "missing"


def _site_packages(home: Path) -> Path:
    return home / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"


def _run(argv: list[str], complaint: str) -> None:
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise SetupFailed(f"{complaint}:\n{done.stdout.strip()}")


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    prepare()
    _say(f"ready in {BENCH.relative_to(ROOT)}/")
