"""Who is measured: a name, and how to start it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from benchmarks.environment import HERE, python


@dataclass(frozen=True)
class Contestant:
    name: str
    command: tuple[str, ...]
    slow: bool = False  # thirty times slower than the others or more: it gets fewer calls
    primer: str | None = None  # a tool to call once before anything is measured
    tool: str | None = None  # a tool without parameters to call, if it has no `add`
    environment: dict[str, str] = field(default_factory=dict)

    def with_generated_tools(self, count: int) -> Contestant:
        return replace(self, environment={**self.environment, "NTOOLS": str(count)})


def _script(venv: str, path: Path, *arguments: str) -> tuple[str, ...]:
    return (str(python(venv)), str(path), *arguments)


def _longshore(variant: str) -> tuple[str, ...]:
    return _script("longshore", HERE / "servers" / "longshore_small.py", variant)


def _peer(peer: str, variant: str) -> Contestant:
    command = _script(peer, HERE / "servers" / f"{peer}_small.py", variant)
    return Contestant(f"{peer} {variant}", command, slow=True)


FLOOR = Contestant("floor", _script("longshore", HERE / "floor.py"))
HANDOVER = Contestant("bare thread hand-over", _script("longshore", HERE / "handover.py"))

INLINE = Contestant("longshore inline", _longshore("inline"))
INLINE_IN_LOOP = Contestant("longshore inline, asyncio started", _longshore("loop"), primer="wake")
ASYNC = Contestant("longshore async", _longshore("async"))
SUSPENDING = Contestant("longshore async, suspending", _longshore("suspend"))
THREAD = Contestant("longshore thread", _longshore("thread"))
BUILTIN = Contestant("longshore built-in", (str(python("longshore")), "-m", "longshore", "serve"), tool="hello")

MCP_SYNC = _peer("mcp", "sync")
MCP_ASYNC = _peer("mcp", "async")
FASTMCP_SYNC = _peer("fastmcp", "sync")
FASTMCP_ASYNC = _peer("fastmcp", "async")
