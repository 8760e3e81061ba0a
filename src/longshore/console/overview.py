"""What a server is: its name, its transport, its toolsets, and what the caller may do here."""

from __future__ import annotations

import os
from time import monotonic
from typing import Any

from longshore import __version__
from longshore.console.live import Live
from longshore.errors import LongshoreError
from longshore.protocol.revisions import REVISIONS
from longshore.registry.toolset import ToolsetHandle
from longshore.server.engine import Engine
from longshore.transports.http.gate import resource_url
from longshore.transports.http.parts import PartHost


def describe(host: PartHost, live: Live, *, may_change: bool) -> dict[str, Any]:
    """The overview, for one caller."""
    engine, config = host.engine, host.engine.policy.config
    info = engine.server_info
    return {
        "name": info["name"],
        "version": info["version"],
        "title": info.get("title") or info["name"],
        "longshore": __version__,
        "pid": os.getpid(),
        "uptime_seconds": round(monotonic() - engine.executor.since, 1),
        "revisions": list(REVISIONS),
        "transport": {
            "http": resource_url(host.config),
            "path": host.config.http.path,
            "workers": host.config.http.workers,
        },
        "catalog": host.engine.policy.catalog_form,
        "schemas": config.server.schemas,
        "dialect": config.server.dialect,
        "toolsets": [describe_toolset(engine, handle) for handle in engine.catalog.toolsets.values()],
        "tools": len(engine.tools),
        "records": host.config.telemetry.records,
        "pages": live.pages,
        "read_only": not may_change,
        "mcp": host.config.http.path,
        "auth": {"required": host.guard.required},
        "files_roots": _roots(engine),
    }


def describe_toolset(engine: Engine, handle: ToolsetHandle) -> dict[str, Any]:
    """A toolset, and the tools of it that are on offer."""
    tools = [name for name, entry in engine.tools.items() if entry.toolset is handle]
    is_open = handle.ready and not handle.stateless
    return {"name": handle.name, "tools": tools, "open": is_open, "unavailable": handle.unavailable}


def _roots(engine: Engine) -> list[str]:
    try:
        return [*engine.executor.files.roots.folders]
    except LongshoreError:
        return []
