"""The tool lists of third-party servers, current and recorded, and their lint findings."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

from interop.client.peers import command
from longshore.cli.describe import describe
from longshore.cli.options import SessionOptions
from longshore.cli.screen import Screen
from longshore.schema.lint.rule import PROFILES
from longshore.schema.lint.run import lint
from longshore.schema.lint.tool_list import ToolList

HERE = Path(__file__).parent
SERVERS = ("everything", "filesystem", "memory", "playwright")


def ask(peer: str, folder: Path) -> dict[str, Any]:
    """The current list of a server, in the form of `longshore list --json`."""
    arguments = {"filesystem": [str(folder)], "playwright": ["--headless"]}.get(peer, [])
    env = (f"MEMORY_FILE_PATH={folder / 'memory.jsonl'}",)
    found = describe(None, tuple(command(peer, *arguments)), SessionOptions(env=env), Screen()).surface
    return {"server": {"name": found.name, "instructions": found.instructions}, "tools": list(found.tools)}


def find(listed: dict[str, Any]) -> Any:
    """The findings of all profiles, as JSON."""
    server = listed["server"]
    surface = ToolList(name=server["name"], tools=tuple(listed["tools"]), instructions=server["instructions"])
    return msgspec.json.decode(msgspec.json.encode(lint(surface, profiles=PROFILES)))


def count(findings: list[dict[str, Any]]) -> Counter[str]:
    return Counter(finding["rule"] for finding in findings)


def recorded(kind: str, peer: str) -> Any:
    """The recorded `lists` or `findings` of a server."""
    return msgspec.json.decode((HERE / kind / f"{peer}.json").read_bytes())


def record(kind: str, peer: str, value: Any) -> None:
    text = msgspec.json.format(msgspec.json.encode(value), indent=2)
    (HERE / kind / f"{peer}.json").write_bytes(text + b"\n")
