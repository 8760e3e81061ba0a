"""The modules that `from longshore.client import Client` loads. Milliseconds vary by machine, modules don't.

asyncio and msgspec are what a client can't do without; all that they load themselves (ssl, inspect, logging …) is not
ours to cut, so what counts is what comes on top of them.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sys, asyncio, msgspec
before = set(sys.modules)
{}
print(*sorted(set(sys.modules) - before))
"""

FOREIGN = {
    "click",
    "httptools",
    "joserfc",
    "jsonschema_rs",
    "mcp",
    "pydantic",
    "redis",
    "rich",
    "starlette",
    "uvicorn",
    "uvloop",
}
"""Packages that only some clients need, or none."""

HEAVY = {
    "argparse",
    "dataclasses",
    "email",
    "http",
    "importlib.metadata",
    "ipaddress",
    "json",
    "pathlib",
    "secrets",
    "sqlite3",
    "ssl",
    "tempfile",
    "urllib.parse",
    "urllib.request",
    "xml",
    "zipfile",
}
"""Parts of the standard library that cost milliseconds each."""

ELSEWHERE = {
    "longshore.app",
    "longshore.cli",
    "longshore.client.http",
    "longshore.client.memory",
    "longshore.client.auth",
    "longshore.client.configs",
    "longshore.client.stdio",
    "longshore.client.sync",
    "longshore.config",
    "longshore.registry",
    "longshore.schema.validate",
    "longshore.server",
    "longshore.stores",
    "longshore.telemetry",
    "longshore.transports",
}
"""Our own rooms that come with a target, or never."""


def _loaded(statement: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(statement)], capture_output=True, text=True, timeout=60, check=True
    )
    return set(done.stdout.split())


def _found(loaded: set[str], unwanted: set[str]) -> set[str]:
    """The unwanted modules that were loaded, whole or in part."""
    return {name for name in unwanted if any(module == name or module.startswith(name + ".") for module in loaded)}


@pytest.mark.parametrize(
    "statement",
    ["from longshore.client import Client", "from longshore import Client"],
)
def test_importing_the_client_brings_nothing_heavy(statement: str) -> None:
    loaded = _loaded(statement)
    assert "longshore.client.client" in loaded
    assert _found(loaded, FOREIGN | HEAVY | ELSEWHERE) == set()


def test_the_room_itself_brings_nothing() -> None:
    loaded = _loaded("import longshore.client")
    assert {name for name in loaded if name.startswith("longshore")} == {"longshore", "longshore.client"}


def test_pointing_a_client_at_a_child_or_a_url_connects_nothing_and_loads_little() -> None:
    loaded = _loaded('from longshore.client import Client; Client(["python", "server.py"])')
    assert _found(loaded, FOREIGN | HEAVY | ELSEWHERE) == set()
    assert _found(_loaded('from longshore.client import Client; Client("http://localhost/mcp")'), FOREIGN) == set()


def test_a_module_counts_by_its_parts_too() -> None:
    assert _found({"http.client", "httptools"}, {"http", "https", "httptools.parser"}) == {"http"}
